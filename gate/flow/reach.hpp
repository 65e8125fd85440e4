// What cells were recorded to run, kept below <out>/reach, and which of it lies between two
// commits.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/flow/job.hpp"
#include "gate/flow/measure.hpp"
#include "gate/profile/reach_diff.hpp"
#include "gate/source/git.hpp"

namespace weir::flow {
class StoredReach {
 public:
  StoredReach(sys::Files& files, const std::string& out);
  [[nodiscard]] const std::string& folder() const { return folder_; }
  // Nothing where the cell was never recorded. A record that cannot be read is an Error that
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
void tell_reach(const Measured& measured, const Job& job, verdict::GateVerdict& verdict);

// weir reach: what each cell runs, recorded once; which cells run what changed.
struct ReachOptions {
  bool record = false;
  std::vector<std::string> coverage;
  std::string diff;
  std::string format = "text";
};
[[nodiscard]] Result<Answer> reach(const Job& job, const ReachOptions& options);

// weir reach --record: each cell once under callgrind, or what its own coverage build said.
// `coverage`: files of one cell, or none. Cells that fail are told and keep the record they had;
// the exit code then is 3. Kernels and ops come from the newest run, where there is one.
[[nodiscard]] Result<Answer> record_reach(const Job& job, const std::vector<std::string>& coverage);

}  // namespace weir::flow
