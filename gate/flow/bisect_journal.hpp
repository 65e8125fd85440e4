// The journal of a bisection, <out>/bisect/<time>/bisect.jsonl: the request, then one commit a
// line. Each is on the disk before the next is tried. After a kill the last line may be incomplete;
// it is ignored.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/source/bisection.hpp"
#include "gate/sys/files.hpp"

namespace weir::flow {
struct BisectRequest {
  std::string good, bad;  // commits
  std::string good_words, bad_words;
  std::vector<std::string> notes;
  std::vector<std::string> cells;  // --cell
  bool judges_by_times = false;
  std::optional<std::string> budget{};  // as typed; absent: gate.budget
  std::string config_file, config_hash;  // the config's path and the hash of its text
};

// One tried commit.
struct BisectStep {
  std::string commit, subject;
  source::TrialOutcome outcome = source::TrialOutcome::skipped;
  std::string reason;  // the reason if bad or skipped, one line
  bool built = false;  // built in this step, not taken from the cache
  double seconds = 0;  // the whole step
  std::string run;     // the run's folder; "" if nothing was measured
};
void fields(Fields& io, BisectStep& step);

struct BisectState {
  BisectRequest request;
  std::vector<BisectStep> steps;
  std::uint64_t whole_bytes = 0;
};
// Parses a journal, which may be hostile. Code::data names the line.
[[nodiscard]] Result<BisectState> parse_bisect(std::string_view text);

// The journal, to which steps are appended. `folder` exists and has no journal yet.
using BisectJournal = std::unique_ptr<sys::AppendLog>;
[[nodiscard]] Result<BisectJournal> begin_bisect(sys::Files& files, const std::string& folder,
                                                 const BisectRequest& request);
// Resumes a journal and reads it into `state`. Code::io if another weir is writing to it.
[[nodiscard]] Result<BisectJournal> resume_bisect(sys::Files& files, const std::string& folder,
                                                  BisectState& state);

}  // namespace weir::flow
