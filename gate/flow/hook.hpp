// The local pre-push check: installs and removes the hook, and judges when git starts it.
#pragma once

#include <string>
#include <vector>

#include "gate/flow/job.hpp"

namespace weir::flow {

struct HookOptions {
  std::string against;        // REF whose merge-base is the base; "": the remote's own branches
  std::string limit = "60s";  // for all measuring, and the same for all building
  bool build = false;         // build without a limit on time
  bool no_build = false;      // leave out what is not built
  bool strict = false;        // fail the push if something was not judged
  bool all = false;           // judge also cells whose record contains no change
};
struct HookRunOptions : HookOptions {
  std::vector<std::string> trailing_arguments{};  // after "--": the remote's name, as git gives it
};
[[nodiscard]] Result<Answer> install_hook(const Job& job, const HookOptions& options);
[[nodiscard]] Result<Answer> uninstall_hook(const Job& job, const HookOptions& options);
// Judges the pushed commits by counts, each compared with its merge-base. Prints what it judged,
// what it did not, and why. ExitCode::fail if a limit is broken, or with `strict` if something was
// not judged; else ExitCode::pass.
[[nodiscard]] Result<Answer> run_hook(const Job& job, const HookRunOptions& options);

// Returns the hook's text, POSIX sh. It runs the earlier hook first, then `program` with `words`
// and git's own arguments and input.
[[nodiscard]] std::string hook_text(const std::string& program,
                                    const std::vector<std::string>& arguments);
// Writes <folder>/pre-push. Another hook is renamed to pre-push.before-weir and runs first from
// then on; weir's own is overwritten. Returns true if there is another hook. Code::config if both
// names are taken, or the other hook depends on its name; Code::io.
[[nodiscard]] Result<bool> write_hook(sys::Files& files, const std::string& folder,
                                      const std::string& text);
// Removes weir's hook and gives the other hook its name back. Returns false if weir's was not
// there.
[[nodiscard]] Result<bool> remove_hook(sys::Files& files, const std::string& folder);

}  // namespace weir::flow
