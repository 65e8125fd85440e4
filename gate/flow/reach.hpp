// Records of the code that each cell runs, in <out>/reach, and which cells run a change.
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
// Records of reach: for each cell, the functions, files, kernels and ops that one run of it
// executed.
class ReachRecords {
 public:
  ReachRecords(sys::Files& files, const std::string& out);
  [[nodiscard]] const std::string& folder() const { return folder_; }
  // Returns a cell's record; nothing if it was never recorded. The Error for an unreadable record
  // names it.
  [[nodiscard]] Result<std::optional<profile::Reach>> find(const std::string& cell) const;
  [[nodiscard]] Result<void> put(const profile::Reach& reach);

 private:
  [[nodiscard]] std::string path_of(const std::string& cell) const;
  sys::Files& files_;
  std::string folder_;
};

// A cell and the device that its backend asks for.
struct ReachCell {
  std::string cell, device;
};
[[nodiscard]] std::vector<ReachCell> reach_cells(std::span<const config::Cell> cells);

// How many of the changed files are run, and by which cells.
struct ReachOfChanges {
  profile::DiffReach diff;
  std::size_t changed_files = 0;
  std::size_t recorded_cells = 0;  // cells that have a record
};
// Returns which cells run the changes between two commits (full hashes).
[[nodiscard]] Result<ReachOfChanges> reach_of_changes(const source::Git& git,
                                                      const std::string& from,
                                                      const std::string& to,
                                                      std::span<const ReachCell> cells,
                                                      const ReachRecords& stored);

// Notes in a verdict against a base which changed files no cell runs. Does nothing if no cell of
// the run was ever recorded.
void add_reach_note(const MeasuredRun& measured, const Job& job, verdict::GateVerdict& verdict);

// weir reach: records what each cell runs, or shows which cells run a change.
struct ReachOptions {
  bool record = false;
  std::vector<std::string> coverage;
  std::string diff;
  std::string format = "text";
};
[[nodiscard]] Result<Answer> reach(const Job& job, const ReachOptions& options);

// weir reach --record: records each cell, run once under callgrind, or one cell from files of
// `coverage`. Cells that fail are reported and keep their old record; the exit code then is 3.
// Kernels and ops come from the newest run, if there is one.
[[nodiscard]] Result<Answer> record_reach(const Job& job, const std::vector<std::string>& coverage);

}  // namespace weir::flow
