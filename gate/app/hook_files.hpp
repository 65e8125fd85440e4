// The pre-push hook as a file: put beside what is there, and taken away again.
#pragma once

#include <string>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::app {

// The hook's text: it starts `program` with `words` and what git hands it, behind the hook that was
// there first. POSIX sh.
[[nodiscard]] std::string hook_text(const std::string& program,
                                    const std::vector<std::string>& words);

// Writes <folder>/pre-push. One that is not weir's is renamed to pre-push.before-weir and run first
// from then on; weir's own is written again. True where there was one. Code::config where both
// names are taken by others, Code::io.
[[nodiscard]] Result<bool> install_hook(const std::string& folder, const std::string& text);

// Removes it and gives the other one its name back. False where there was none of weir's.
[[nodiscard]] Result<bool> uninstall_hook(const std::string& folder);

}  // namespace weir::app
