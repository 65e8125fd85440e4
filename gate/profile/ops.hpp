// What a probe that sees ops ("ggml", or an engine's own marks) tells of a counted pass: which ops
// a token or a prefill is made of, and where each of them ran. Pure. Used by this module alone.
//
// Ops of the start (warm-up, a prompt in front of what is generated) are not among them: an op's
// rate is its slope over the lengths. Where there is one length only, the kind of graph that was
// computed most often stands for the work.
#pragma once

#include <string>
#include <vector>

#include "gate/profile/passes.hpp"

namespace weir::profile {

struct OpRate {
  std::string op, type, shape, backend;  // as in OpCount
  bool on_cpu = false;
  Rational each;  // times a token (a prefill, a graph); more than 0
};

struct OpWork {
  std::vector<OpRate> ops;  // empty where no probe saw an op in every run
  std::string unit;         // what `each` counts by: "a token", "a prefill", "a graph"
  bool complete = false;    // every op that was counted is in a list, with where it ran
};

[[nodiscard]] OpWork op_work(const CellFacts& facts, const Records& counted);

// Adds the multiset of ops as the cell's kernels, unless it has some: on the CPU ops are what
// kernels are on a device.
void add_op_kernels(const CellFacts& facts, const Records& counted, Profile& profile);

// Holds what a token's graph says of itself against the slopes; a disagreement is a warning.
void check_graphs(const CellFacts& facts, const Records& counted, Profile& profile);

}  // namespace weir::profile
