// The files of the pre-push hook: its text, and how it is installed beside another hook.
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

// The paths of the hook, and of another hook that was there first.
struct HookPaths {
  explicit HookPaths(const std::string& folder) : hook(sys::join_path(folder, "pre-push")) {}
  std::string hook, first = hook + ".before-weir";
};

// Returns true if a file or a link is at `path`, even a broken link.
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

// Returns the text of the hook, which runs the hook that was there first and then `program`.
std::string hook_text(const std::string& program, const std::vector<std::string>& arguments) {
  std::string call;
  for (const std::string& word : arguments) call += " " + text::shell_word(word);
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
                     k_mark, text::shell_word(program), holds(arguments, "--strict") ? 1 : 0, call);
}

// Installs the hook, and renames a hook that was there. Returns true if there is such a hook. Fails
// if that acts by its own file name.
Result<bool> write_hook(sys::Files& files, const std::string& folder, const std::string& text) {
  const HookPaths paths(folder);
  WEIR_CHECK(files.make_dirs(folder));
  const bool has_other_hook = is_there(paths.hook) && !is_ours(paths.hook, files);
  if (has_other_hook && is_there(paths.first)) {
    return fail(Code::config,
                "{} is not weir's, and {} is there already: one of them has to go first",
                paths.hook, paths.first);
  }
  // A hook that acts by its own file name would silently do nothing under another.
  if (has_other_hook) {
    WEIR_TRY(const std::string other_text, files.read(paths.hook, std::uint64_t{1} << 20));
    for (const char* sign : {"husky", "overcommit", "basename", "lefthook"}) {
      if (other_text.find(sign) == std::string::npos) continue;
      return fail(Code::config,
                  "{} goes by its own name (\"{}\" stands in it), so it cannot be run from beside "
                  "weir's: call weir from it instead, with the line\n  weir hook run -- \"$@\"",
                  paths.hook, sign);
    }
  }
  // Written under another name first, so that a push meanwhile runs either the old hook or the new.
  const std::string temporary = paths.hook + ".weir-new";
  WEIR_CHECK(files.write_atomic(temporary, text));
  std::error_code error;
  fs::permissions(temporary,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                      fs::perms::others_read | fs::perms::others_exec,
                  error);
  if (error) return fail(Code::io, "{}: cannot be made a program: {}", temporary, error.message());
  if (has_other_hook) WEIR_CHECK(rename(paths.hook, paths.first));
  if (auto renamed = rename(temporary, paths.hook); !renamed) {
    if (has_other_hook) (void)rename(paths.first, paths.hook);
    return tl::unexpected(std::move(renamed).error());
  }
  return is_there(paths.first);
}

Result<bool> remove_hook(sys::Files& files, const std::string& folder) {
  const HookPaths paths(folder);
  if (!is_there(paths.hook) || !is_ours(paths.hook, files)) return false;
  WEIR_CHECK(is_there(paths.first) ? rename(paths.first, paths.hook) : files.remove(paths.hook));
  return true;
}

}  // namespace weir::flow
