// Two things that hold profiles, beside each other: runs, files of profiles, folders of a profile's
// probe files, and what engines and profilers wrote.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gate/app/command_line.hpp"
#include "gate/app/profile_files.hpp"
#include "gate/app/session.hpp"

namespace weir::app {

// A run's folder or its journal. Other folders, and other files that end in .jsonl, are none.
[[nodiscard]] bool holds_run(const std::string& path, const sys::Files& files);

// Of a run also its profiles with private names hidden, and the run itself into `measured`. A
// folder of probe files is what was observed.
[[nodiscard]] Result<ProfileFile> read_side(const CommonOptions& options, const std::string& path,
                                            const sys::Files& files,
                                            std::optional<Measured>& measured);

// --cell selects it, or there is no --cell.
[[nodiscard]] bool cell_wanted(const CommonOptions& options, const std::string& cell);

// Cells of one name; where both sides have one cell each, these two whatever their names. Pointers
// into `a` and `b`.
using CellPairs = std::vector<std::pair<const profile::Profile*, const profile::Profile*>>;
[[nodiscard]] CellPairs cell_pairs(const ProfileFile& a, const ProfileFile& b,
                                   const CommonOptions& options);

}  // namespace weir::app
