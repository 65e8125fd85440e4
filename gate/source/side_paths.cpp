// Maps paths into the user's checkout to those of one side of a pair.
#include "gate/source/side_paths.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/config/word_paths.hpp"
#include "gate/source/virtual_environment.hpp"
#include "gate/sys/code_file.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {
namespace {

std::string path_below(const std::string& root, const std::string& inner) {
  return inner.empty() ? root : sys::join_path(root, inner);
}

}  // namespace

// Returns the path from the top of the user's checkout; "" for the top, nothing for one outside.
std::optional<std::string> SidePaths::inner_path(const std::string& path) const {
  for (const std::string& root : side_.own_roots) {
    if (auto inner = sys::relative_path(path, root)) return inner;
  }
  return std::nullopt;
}

// Returns true if this side uses a file of its own at `inner`.
bool SidePaths::has(const std::string& inner) const {
  return files_.exists(path_below(side_.root, inner)) &&
         (side_.other_root.empty() || files_.exists(path_below(side_.other_root, inner)));
}

// Returns this side's own file for a path into the user's checkout, which may lead there over a
// link; nothing where it has none.
std::optional<std::string> SidePaths::own_path(const std::string& path) const {
  for (const std::string& name : {path, sys::follow_links(path)}) {
    const auto inner = inner_path(name);
    if (inner && has(*inner)) return path_below(side_.link, *inner);
  }
  return std::nullopt;
}

std::string SidePaths::folder() const {
  return path_below(side_.link, inner_path(side_.own_folder).value_or(""));
}

// Replaces the paths in a word of the command by those of this checkout (the base's or
// candidate's). Fails for code that the checkout lacks; other missing files are shared.
Result<std::string> SidePaths::place(const std::string& word) {
  std::optional<Error> problem;
  std::string placed = config::replace_paths(word, [&](const std::string& part) {
    std::optional<std::string> replacement;
    // Placeholders stand for files that both sides share.
    if (part.empty() || part.find('{') != std::string::npos) return replacement;
    const std::string path = sys::absolute(sys::join_path(side_.own_folder, part));
    auto path_in_checkout = inner_path(path);
    const bool is_absolute = part.starts_with('/');
    // Both sides start in a folder that has this file by the same relative path.
    if (!is_absolute && path_in_checkout && has(*path_in_checkout)) {
      ++own_files_;
      return replacement;
    }
    if (auto own_path_of_file = own_path(path)) {
      ++own_files_;
      return own_path_of_file;
    }
    // "models" may be a command of the engine as well as a folder here.
    const sys::Kind kind = files_.kind(path);
    const bool is_name = part.find('/') == std::string::npos;
    const bool is_environment =
        kind == sys::Kind::folder && environment_around(files_, path) == path;
    if (kind == sys::Kind::absent || (is_name && kind != sys::Kind::file && !is_environment))
      return replacement;
    if (!is_absolute) replacement = path;
    if (!path_in_checkout) path_in_checkout = inner_path(sys::follow_links(path));
    if (!path_in_checkout) return replacement;
    const auto is_shared = share_environment(path);
    if (!is_shared) problem = is_shared.error();
    if (!is_shared || *is_shared) return replacement;
    if (sys::is_program(files_, path)) {
      problem = Error{Code::config,
                      fmt::format("{}: the command names it, and {} has no such file; the command "
                                  "under `build:` has to make it there",
                                  text::printable(path), text::printable(side_.root))};
    }
    shared_.insert(*path_in_checkout);
    return replacement;
  });
  if (problem) return tl::unexpected(*std::move(problem));
  return placed;
}

// Lets this checkout use the user's virtual environment around `path`; returns false if it has its
// own, or there is none. Fails if a file in it leads to code of the user's checkout.
Result<bool> SidePaths::share_environment(const std::string& path) {
  const auto environment = environment_around(files_, path);
  const auto path_in_checkout = environment ? inner_path(*environment) : std::nullopt;
  if (!path_in_checkout || path_in_checkout->empty() || has(*path_in_checkout)) return false;
  // Links may lead to files of the checkout: from the environment, or the environment itself.
  const std::string real_environment = sys::follow_links(*environment);
  const std::string real_path = sys::follow_links(path);
  const bool leads_away = !sys::is_within(real_path, real_environment);
  if (leads_away && inner_path(real_path)) return false;
  if (shared_.contains(*path_in_checkout)) return true;
  if (!side_.is_tracked || side_.is_tracked(*path_in_checkout)) return false;
  const auto real_inner = inner_path(real_environment);
  if (real_inner && side_.is_tracked(*real_inner)) return false;
  if (const auto file = find_way_back(files_, *environment, side_.own_roots)) {
    return fail(Code::config,
                "{}: by this file the virtual environment {} has the candidate's code, which the "
                "base would run; uninstall that package there, or let the command under "
                "`build:` make the environment in each checkout",
                text::printable(*file), text::printable(*path_in_checkout));
  }
  shared_.insert(*path_in_checkout);
  shares_environment_ = true;
  return true;
}

std::string SidePaths::place_inherited(const std::string& value) const {
  return config::replace_paths(value, [&](const std::string& part) {
    return part.starts_with('/') ? own_path(sys::absolute(part)) : std::nullopt;
  });
}

}  // namespace weir::source
