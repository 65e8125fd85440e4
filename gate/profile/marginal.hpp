// Marginal counting (docs/explanation/counting.md): what one count did over the runs of a counted
// pass -> metrics.
//
// C(n) = fixed + slope * n over the lengths n (tokens reported generated, or repeats). Only an
// exact line makes `_per_token` and `_fixed`; otherwise every length is a metric of its own. Of a
// server's request alone C at the largest length is `_per_request`. Where
// requests overlap (Sweep::overlapping; n is then all tokens generated) it is count / n, nearly
// exact, with what its runs span, the farthest on each side left out, for a repeatability. Pure.
#pragma once

#include "gate/profile/assemble.hpp"

namespace weir::profile {

// The counts of one base name ("dispatches") from one source.
struct CountSeries {
  std::string base;
  std::string source;               // "vulkan"
  std::vector<LengthCount> points;  // in the order of the runs; a length may occur several times
};

struct Fit {
  std::vector<Measurement> metrics;
  std::vector<std::string> notes;  // why there is no line, or a length that does not repeat
};

// Measurements of counts that agreed, and of counts that did not, with their spread.
[[nodiscard]] Measurement exact_measurement(const unit::Metric& metric, const std::string& source,
                                            Rational value);
[[nodiscard]] Measurement varying_measurement(const unit::Metric& metric, const std::string& source,
                                              std::vector<double> values);

[[nodiscard]] Fit fit_counts(const CountSeries& series, Sweep sweep);

// A run, by its place in the pass, and what it counted of a name.
struct RunCount {
  std::size_t run = 0;
  std::int64_t count = 0;
};

// The lengths of the runs of a counted pass, in the order of the runs.
class RunLengths {
 public:
  RunLengths() = default;
  explicit RunLengths(std::vector<std::int64_t> lengths);

  [[nodiscard]] std::int64_t of_run(std::size_t run) const { return lengths_[run]; }
  // Different lengths, and how many runs have each.
  [[nodiscard]] const std::map<std::int64_t, std::size_t>& runs_of_length() const {
    return runs_of_length_;
  }
  // The slope of the line by least squares through the counts of all runs; those that `counts` has
  // not are 0.
  [[nodiscard]] double slope(std::span<const RunCount> counts) const;
  // Places of the first run of the shortest length, and of the first and last of the longest.
  [[nodiscard]] std::size_t first_shortest() const;
  [[nodiscard]] std::size_t first_longest() const;
  [[nodiscard]] std::size_t last_longest() const;

 private:
  std::vector<std::int64_t> lengths_;
  std::map<std::int64_t, std::size_t> runs_of_length_;
  double mean_ = 0, squares_ = 0;
};

// The counts of one name in the runs that list it, by rising places. A run that does not list it
// counted 0: what is stored grows with what runs list, not with runs x names.
using RunCounts = std::vector<RunCount>;
// Adds to the count of a run, the last one that was added to or a later one.
void add_count(RunCounts& counts, std::size_t run, std::int64_t more);
[[nodiscard]] std::int64_t count_of_run(const RunCounts& counts, std::size_t run);
// exact_line() of a name's counts.
[[nodiscard]] std::optional<Line> exact_line(const RunLengths& runs, const RunCounts& counts);

// Counts of each kernel in each run of a pass.
struct KernelSeries {
  RunLengths runs;
  std::map<std::string, RunCounts> counts;
};

struct KernelFit {
  KernelSet set;
  std::vector<std::string> notes;
};
// The multiset per token or per prefill when every kernel has an exact line, else the multiset at
// the largest length. Of requests to a server all that they ran: of one alone the multiset at the
// largest length, of a held burst that of all its requests over the tokens that they generated.
// `named` is the caller's.
[[nodiscard]] KernelFit fit_kernels(const KernelSeries& series, Sweep sweep);

// Instructions that functions took, per token or per prefill: least squares over all runs, in whole
// instructions, the largest 40 of at least 0.1 % of all. They explain and are never gated.
// REQUIRES: sweep is not none.
[[nodiscard]] KernelSet fit_functions(const KernelSeries& series, Sweep sweep);

// Fits counts that depend on scheduling: least squares over all runs, sampled, never judged.
[[nodiscard]] Fit fit_sampled(const CountSeries& series, Sweep sweep);
// Fits counts that depend on scheduling in some engines: exact where they lie on a line, else
// sampled. `takes_near_lines`: nearly exact where all runs are near one.
[[nodiscard]] Fit fit_unsteady(const CountSeries& series, Sweep sweep, bool takes_near_lines);
// Fits calls within imports. A rise over the lengths of at most 0.2 % of them is none: processes
// differ by less.
[[nodiscard]] Fit fit_imports(const CountSeries& series, Sweep sweep);
// System calls and calls of Python by name, per token or per prefill: the exact line, or where
// there is none least squares to a tenth. Runs of one length give the calls of a run. They explain
// and are never gated.
[[nodiscard]] KernelSet fit_calls(const KernelSeries& series, Sweep sweep);

}  // namespace weir::profile
