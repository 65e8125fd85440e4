// Files that Git LFS keeps: a commit has a pointer, a work tree the content. No filter is run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gate/sys/files.hpp"

namespace weir::source {

struct LfsPointer {
  std::string sha256;
  std::uint64_t size = 0;
};
inline constexpr std::uint64_t k_max_lfs_pointer_bytes = 1024;

// Returns nothing for a text that is no pointer, or one of an extension of Git LFS.
[[nodiscard]] std::optional<LfsPointer> parse_lfs_pointer(std::string_view text);
// Returns true for a file that is a pointer itself: `git lfs pull` has not fetched its content.
[[nodiscard]] bool is_lfs_pointer(const sys::Files& files, const std::string& path);
// Returns true if the file is the content that the pointer names.
[[nodiscard]] bool is_content_of(const LfsPointer& pointer, const sys::Files& files,
                                 const std::string& path);

}  // namespace weir::source
