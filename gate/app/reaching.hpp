// What cells were recorded to run, kept below <out>/reach, and which of it lies between two
// commits.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/app/command_line.hpp"
#include "gate/app/session.hpp"
#include "gate/profile/reach_diff.hpp"
#include "gate/source/git.hpp"
#include "gate/sys/files.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::app {

class StoredReach {
 public:
  StoredReach(sys::Files& files, const std::string& out);
  [[nodiscard]] const std::string& folder() const { return folder_; }
  // Nothing where the cell was never recorded. A record that can not be read is an Error that
  // names it.
  [[nodiscard]] Result<std::optional<profile::Reach>> of(const std::string& cell) const;
  [[nodiscard]] Result<void> put(const profile::Reach& reach);

 private:
  [[nodiscard]] std::string path_of(const std::string& cell) const;
  sys::Files& files_;
  std::string folder_;
};

// A cell and what its backend asks for.
struct ReachCell {
  std::string cell, device;
};
[[nodiscard]] std::vector<ReachCell> reach_cells(std::span<const config::Cell> cells);

struct ReachBetween {
  profile::DiffReach diff;
  std::size_t changed = 0;   // files
  std::size_t recorded = 0;  // cells
};
// Commits in full.
[[nodiscard]] Result<ReachBetween> reach_between(const source::Git& git, const std::string& from,
                                                 const std::string& to,
                                                 std::span<const ReachCell> cells,
                                                 const StoredReach& stored);

// A note in the verdict beside a base: changed files that no cell runs. Nothing where no cell of
// the run was ever recorded.
void tell_reach(const Measured& measured, const CommonOptions& options,
                verdict::GateVerdict& verdict, sys::Files& files);

}  // namespace weir::app
