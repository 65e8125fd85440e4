#include <filesystem>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/hook.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_mark = "# weir's pre-push hook";
constexpr std::uint64_t k_hook_bytes = 1 << 20;

struct Places {
  explicit Places(const std::string& folder) : hook(sys::join_path(folder, "pre-push")) {}
  std::string hook, first = hook + ".before-weir";
};

// A link that leads nowhere is there as well.
bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

bool is_ours(const std::string& path, const sys::Files& files) {
  const auto text = files.read_prefix(path, k_hook_bytes);
  return text && text->find(k_mark) != std::string::npos;
}

Result<void> rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return fail(Code::io, "{}: cannot be renamed to {}: {}", from, to, error.message());
  return {};
}

}  // namespace

std::string hook_text(const std::string& program, const std::vector<std::string>& words) {
  std::string call;
  for (const std::string& word : words) call += " " + text::shell_word(word);
  return fmt::format(R"(#!/bin/sh
{}: made by `weir hook install`, removed by `weir hook uninstall`.
# Compares the counts of what is pushed with those of the merge-base. WEIR_SKIP=1 or `git push --no-verify`: not now.
refs=$(cat)
hand_on() {{
  if [ -n "$refs" ]; then printf '%s\n' "$refs"; fi
}}
# The hook that was there first has the first word.
first=$(dirname "$0")/pre-push.before-weir
if [ -x "$first" ]; then
  hand_on | "$first" "$@" || exit $?
fi
[ "$WEIR_SKIP" != 1 ] || exit 0
weir={}
[ -x "$weir" ] || weir=$(command -v weir) || {{
  echo "weir: not installed here, so nothing was judged" >&2
  exit {}
}}
hand_on | "$weir" hook run{} -- "$@"
)",
                     k_mark, text::shell_word(program), holds(words, "--strict") ? 1 : 0, call);
}

Result<bool> put_hook(sys::Files& files, const std::string& folder, const std::string& text) {
  const Places places(folder);
  WEIR_CHECK(files.make_dirs(folder));
  const bool other = is_there(places.hook) && !is_ours(places.hook, files);
  if (other && is_there(places.first)) {
    return fail(Code::config,
                "{} is not weir's, and {} is there already: one of them has to go first",
                places.hook, places.first);
  }
  // A hook that goes by its own name would do nothing under another, and say nothing.
  if (other) {
    WEIR_TRY(const std::string there, files.read(places.hook, std::uint64_t{1} << 20));
    for (const char* sign : {"husky", "overcommit", "basename", "lefthook"}) {
      if (there.find(sign) == std::string::npos) continue;
      return fail(Code::config,
                  "{} goes by its own name (\"{}\" stands in it), so it cannot be run from beside "
                  "weir's: call weir from it instead, with the line\n  weir hook run -- \"$@\"",
                  places.hook, sign);
    }
  }
  // Made ready under another name: a push meanwhile meets the old one or the new one.
  const std::string ready = places.hook + ".weir-new";
  WEIR_CHECK(files.write_atomic(ready, text));
  std::error_code error;
  fs::permissions(ready,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                      fs::perms::others_read | fs::perms::others_exec,
                  error);
  if (error) return fail(Code::io, "{}: cannot be made a program: {}", ready, error.message());
  if (other) WEIR_CHECK(rename(places.hook, places.first));
  if (auto made = rename(ready, places.hook); !made) {
    if (other) (void)rename(places.first, places.hook);
    return tl::unexpected(std::move(made).error());
  }
  return is_there(places.first);
}

Result<bool> take_hook_away(sys::Files& files, const std::string& folder) {
  const Places places(folder);
  if (!is_there(places.hook) || !is_ours(places.hook, files)) return false;
  WEIR_CHECK(is_there(places.first) ? rename(places.first, places.hook)
                                    : files.remove(places.hook));
  return true;
}

}  // namespace weir::flow
