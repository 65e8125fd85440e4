// Files of commits and runners, by path.
#pragma once

#include <map>
#include <string>

#include "tests/support/memory_files.hpp"

namespace weir::tests::race {

struct TreeFile {
  std::string text;  // of a link: where it leads
  enum class Kind { plain, program, link } kind = Kind::plain;
};
using Tree = std::map<std::string, TreeFile>;

// Returns the same files below a folder.
[[nodiscard]] Tree below(const std::string& folder, const Tree& tree);
// Adds the files to a folder, "/" for whole paths.
void put(sys::MemoryFiles& files, const std::string& folder, const Tree& tree);
// Returns the files below a folder, links followed, by their whole paths.
[[nodiscard]] Tree take(const sys::MemoryFiles& files, const std::string& folder);

}  // namespace weir::tests::race
