// Paths as text. Pure but for absolute(), which asks for the current folder, real_path(),
// follow_links() and find_program().
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gate/sys/files.hpp"

namespace weir::sys {

// "a" + "b" -> "a/b"; an absolute `name` stands alone; an empty `folder` is the current one.
[[nodiscard]] std::string join_path(std::string_view folder, std::string_view name);
// The part before the last '/': "." if there is none, "/" for "/x".
[[nodiscard]] std::string folder_of(std::string_view path);
[[nodiscard]] std::string file_name_of(std::string_view path);
// From the root, with "." and ".." taken out of the text (links are not looked at).
[[nodiscard]] std::string absolute(std::string_view path);
// A path in `folder`, both absolute, counted from there: "build/x" for "/a/build/x" in "/a", "" for
// "/a" itself. Nothing if it lies outside.
[[nodiscard]] std::optional<std::string> relative_path(const std::string& path,
                                                       const std::string& folder);
// Returns true if `path` is `outer` or lies below it, both counted from the same folder; "" holds
// every path. Async-signal-safe.
[[nodiscard]] bool is_within(std::string_view path, std::string_view outer);
// absolute() with links followed; nothing where no such file is.
[[nodiscard]] std::optional<std::string> real_path(const std::string& path);
// The same as far as there are such files; what follows stays as it is written.
[[nodiscard]] std::string follow_links(const std::string& path);
// A program as a command line names it: with a '/' counted from `folder`, else looked up in the
// folders of `path_variable` (PATH's value). Nothing when no executable file is found.
[[nodiscard]] std::optional<std::string> find_program(const Files& files, std::string_view name,
                                                      std::string_view folder,
                                                      std::string_view path_variable);

}  // namespace weir::sys
