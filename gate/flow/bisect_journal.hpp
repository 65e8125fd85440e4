// The state of a bisection, <out>/bisect/<time>/bisect.jsonl: what was asked for, then one commit a
// line, each on the disk before the next one is tried. What can be missing after a kill is the end
// of the last line, which is left out.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/source/bisection.hpp"
#include "gate/sys/files.hpp"

namespace weir::flow {
struct BisectAsked {
  std::string good, bad;  // commits
  std::string good_words, bad_words;
  std::vector<std::string> notes;
  std::vector<std::string> cells;  // of --cell
  bool times = false;
  std::string config_file, config_hash;  // as it was; the repository's own place of it
};

// One commit that was tried.
struct BisectStep {
  std::string commit, subject;
  source::Tried tried = source::Tried::skipped;
  std::string reason;  // why bad or skipped, one line
  bool built = false;  // now, not taken from the cache
  double seconds = 0;  // all of it
  std::string run;     // its folder, "" where nothing was measured
};
void fields(Fields& io, BisectStep& step);

struct BisectState {
  BisectAsked asked;
  std::vector<BisectStep> steps;
  std::uint64_t whole_bytes = 0;
};
// Hostile text. Code::data naming the line.
[[nodiscard]] Result<BisectState> parse_bisect(std::string_view text);

// The journal, to which steps are appended. `folder` is there and holds none yet.
using BisectJournal = std::unique_ptr<sys::AppendLog>;
[[nodiscard]] Result<BisectJournal> begin_bisect(sys::Files& files, const std::string& folder,
                                                 const BisectAsked& asked);
// Goes on: `state` becomes what is there. Code::io when another weir is writing it.
[[nodiscard]] Result<BisectJournal> resume_bisect(sys::Files& files, const std::string& folder,
                                                  BisectState& state);

}  // namespace weir::flow
