// The gate's own tally: what became of what it said. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gate/history/history.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::site {

struct SiteVerdict {
  const history::StoredVerdict* stored = nullptr;
  verdict::GateVerdict gate;
};
// Those that can be read, by project, time and when they were kept. They point into `stored`.
[[nodiscard]] std::vector<SiteVerdict> read_verdicts(
    const std::vector<history::StoredVerdict>& stored);

// What came after a red metric: the next verdict of the same project and branch on the same cell
// and metric decides.
enum class Fate {
  accepted,  // it was allowed, or is judged by another baseline and red no more
  reverted,  // it is red no more beside the same baseline
  disputed,  // another verdict on the same commit says that it is not red
  open,      // it is red still, or nothing came after it
};
[[nodiscard]] std::string_view to_string(Fate fate);

struct Red {
  std::size_t verdict = 0, cell = 0;  // places
  std::string metric;                 // its name; "kernels" and "placement" too
  Fate fate = Fate::open;
};

struct Tally {
  std::int64_t verdicts = 0;   // that were read
  std::int64_t red_gates = 0;  // among them
  std::int64_t errors = 0;     // could not be measured
  std::int64_t undecided = 0;  // metrics, of the newest verdict on each commit
  std::int64_t judged = 0;     // metrics that were judged
  // A metric that stays red over several verdicts in a row is one, told by its first.
  std::vector<Red> reds;
};
[[nodiscard]] Tally tally(const std::vector<SiteVerdict>& verdicts);

}  // namespace weir::site
