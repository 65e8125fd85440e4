// The local pre-push check: the hook put in place, taken away, and what git starts.
#pragma once

#include <string>
#include <vector>

#include "gate/flow/job.hpp"

namespace weir::flow {

struct HookOptions {
  std::string against;        // REF whose merge-base is the base; "": the remote's own branches
  std::string limit = "60s";  // of all measuring, and again of all building
  bool build = false;         // what is not built, however long that takes
  bool no_build = false;      // it is not judged
  bool strict = false;        // what was not judged keeps the push back
  bool all = false;           // also cells that by their record run nothing of what changed
};
struct HookRunOptions : HookOptions {
  std::vector<std::string> words{};  // after "--": the remote's name, as git gives it
};
[[nodiscard]] Result<Answer> install_hook(const Job& job, const HookOptions& options);
[[nodiscard]] Result<Answer> uninstall_hook(const Job& job, const HookOptions& options);
// Judges the tips of what is pushed by counts, each beside its merge-base. Says what it judged,
// what it did not, and why. ExitCode::fail where a limit is broken, and if `strict` where something
// was not judged; else ExitCode::pass.
[[nodiscard]] Result<Answer> run_hook(const Job& job, const HookRunOptions& options);

// The hook's text: it starts `program` with `words` and what git hands it, behind the hook that was
// there first. POSIX sh.
[[nodiscard]] std::string hook_text(const std::string& program,
                                    const std::vector<std::string>& words);
// Writes <folder>/pre-push. One that is not weir's is renamed to pre-push.before-weir and run first
// from then on; weir's own is written again. True where there was one. Code::config where both
// names are taken by others, Code::io.
[[nodiscard]] Result<bool> put_hook(sys::Files& files, const std::string& folder,
                                    const std::string& text);
// Removes it and gives the other one its name back. False where there was none of weir's.
[[nodiscard]] Result<bool> take_hook_away(sys::Files& files, const std::string& folder);

}  // namespace weir::flow
