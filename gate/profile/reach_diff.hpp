// From changed files to the cells that run them. Pure. The rules are docs/how-to/reach.md's table.
//
// What is not known never counts as "no": a cell without a record, a program without debug
// information, a shader after which no kernel is named, a header.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gate/profile/reach.hpp"

namespace weir::profile {
struct ChangedFile {
  std::string path;        // from the repository's top
  std::string was{};       // its name before a rename or copy, else ""
  bool submodule = false;  // a whole repository below this path
  bool added = false;      // no record from before can hold it

  friend bool operator==(const ChangedFile&, const ChangedFile&) = default;
};
// Parses the output of `git diff --raw -z`. Code::data on anything else. At most 1 000 000 files.
[[nodiscard]] Result<std::vector<ChangedFile>> parse_raw_diff(std::string_view text);

enum class FileKind {
  source,     // reaches the cells that execute it
  shader,     // reaches the cells whose kernels are named after it
  anything,   // headers, build files, weir.yaml: what they reach is unknown, so every cell
  documents,  // documents and CI: no cell runs them, and that is no news
  tests,      // the same unless a cell executes them
};
[[nodiscard]] FileKind file_kind(std::string_view path);

struct CellReach {
  std::string cell;
  std::string device;          // "vulkan", "cpu", …
  std::optional<Reach> reach;  // nothing: never recorded
};

struct Touched {
  std::string file, why;
};
struct ReachedCell {
  std::string cell;
  std::vector<Touched> changed_code_run;  // in the order of the diff; empty: not reached
  std::string unknown;                    // why its source files are not known, or ""
};
struct DiffReach {
  std::vector<ReachedCell> cells;            // all, in the order they were given
  std::vector<std::string> unreached_files;  // changed files that no cell runs
  std::vector<std::string>
      quiet_files;  // documents, tests and CI among them, which no cell has to run
};

// `known`: every file of the repository, from its top, in any order: which of them debug
// information of a build elsewhere means is decided by the longest common end of the paths, of the
// file's name and a folder at least; where several fit equally well, all of them.
[[nodiscard]] DiffReach reach_of_diff(std::span<const CellReach> cells,
                                      std::span<const ChangedFile> changed,
                                      std::span<const std::string> known_paths);

// "changed files that no cell runs: a.cpp, b.cpp (+3 more)"; "" when there are none. One line, at
// most ten names, fit to show.
[[nodiscard]] std::string unreached_files_text(const DiffReach& reach);
// A path in one line, fit to show.
[[nodiscard]] std::string shown_path(std::string_view path);
// How many names at the end of both paths are the same: 2 of "x/src/a.cpp" and "y/src/a.cpp".
[[nodiscard]] std::size_t common_end(std::string_view one, std::string_view other);

}  // namespace weir::profile
