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

// Kernel name -> what it did at each length; a kernel missing from a run must be given as 0 there.
using KernelSeries = std::map<std::string, std::vector<LengthCount>>;

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
// System calls by name, per token or per prefill: the exact line, or where there is none least
// squares to a tenth. They explain and are never gated. REQUIRES: sweep is not none.
[[nodiscard]] KernelSet fit_calls(const KernelSeries& series, Sweep sweep);

}  // namespace weir::profile
