// The rows of an Observed added up: by op, shape, backend, layer, per token. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/rational.hpp"
#include "gate/observed/observed.hpp"
#include "gate/unit/metric.hpp"

namespace weir::observed {
enum class GroupBy {
  op,
  kernel,    // the op where the document names no kernel
  shape,     // kernel with type and shape: "MUL_MAT q8_0,f32->f32 256x64,256->64"
  op_shape,  // op with type, shape and backend: "MUL_MAT f16,f32->f32 256x64,256->64 on CPU"
  backend,
  layer,  // rows without one are "(no layer)"
  phase,
  category,
  buffer,  // by the label of the command buffer
};

// By one, or by one within the other.
struct Grouping {
  GroupBy by;
  std::optional<GroupBy> within{};
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Grouping(GroupBy one) : by(one) {}
  constexpr Grouping(GroupBy outer, GroupBy inner) : by(outer), within(inner) {}
  friend bool operator==(const Grouping&, const Grouping&) = default;
};

// Which rows count. Rows that cover others never do.
struct Rows {
  std::optional<Phase> phase;
  std::optional<std::size_t> step;
  bool of_steps = false;  // only those that belong to some step
};

// What a row adds to a sum of times: of spans that hold others (a trace's) what is left of them, so
// that no time is counted twice.
[[nodiscard]] std::optional<double> time_of_its_own(const ObservedOp& op);

// Rows of one group, or of one within it ("layer 0: MUL_MAT"). Absent where no row of it says;
// where only some do, `partly` is true and the sums are of those. `seconds` adds up
// time_of_its_own; `least` and `most` are of whole calls.
struct OpTotal {
  std::string name;
  std::optional<std::int64_t> layer;  // of groups by layer
  std::size_t rows = 0;
  std::optional<std::int64_t> calls;
  std::optional<double> seconds, least, most;
  std::optional<double> flops, bytes;  // of all calls together
  std::optional<double> peak_seconds;
  bool nested = false;  // of the group without it that stands before
  bool partly = false;
  bool flops_partly = false, bytes_partly = false, peak_partly = false;  // some rows do not say

  // Operations or bytes a second; nothing where not all rows have both.
  [[nodiscard]] std::optional<double> flops_per_second() const;
  [[nodiscard]] std::optional<double> bytes_per_second() const;
  [[nodiscard]] std::optional<double> share_of_peak() const;
};

// Most time first, then most calls, then by name, k_not_listed last; groups by layer in the order
// of layers. After each group those within it.
[[nodiscard]] std::vector<OpTotal> op_totals(const Observed& observed, const Grouping& by,
                                             const Rows& rows = {});

// The same of Observed::cpu_calls; none by what the CPU's calls have not: backend, layer, phase,
// buffer.
[[nodiscard]] std::vector<OpTotal> cpu_totals(const Observed& observed, GroupBy by);

// The tokens that were generated in what `ops` cover: those of the steps that decode, else
// profiled_tokens; nothing when neither says. What totals of Phase::decode are divided by.
[[nodiscard]] std::optional<std::int64_t> decoded_tokens(const Observed& observed);

// op_totals of the decode rows, every sum divided by decoded_tokens. Empty where that is unknown or
// 0.
struct OpPerToken {
  std::string name;
  std::optional<double> calls, seconds, flops, bytes;
};
[[nodiscard]] std::vector<OpPerToken> op_totals_per_token(const Observed& observed,
                                                          const Grouping& by);

// Adds up rows of command buffers; what one of them does not say is absent.
void add_up(ObservedBuffer& sum, const ObservedBuffer& more);

// Command buffers of one label and phase together, most time first. `step` is one of that phase;
// what one of them does not say is absent.
[[nodiscard]] std::vector<ObservedBuffer> buffer_totals(const Observed& observed);

// The command buffers of one label that a token takes, and the device's time in them.
struct BuffersPerToken {
  std::string label;
  Rational buffers;
  std::optional<double> seconds;          // absent where a row has none
  std::optional<double> least{}, most{};  // of one buffer; absent where a row has none
  std::optional<Rational> dispatches{}, barriers{}, syncs{};  // of a token; absent as the others
};
// Of the decode steps that have command buffers; of buffers without steps by profiled_tokens. By
// label.
struct BuffersOfTokens {
  std::vector<BuffersPerToken> labels;
  std::int64_t tokens = 0;  // 0: nothing tells what the buffers are of, and no label is listed
  bool whole = true;        // false: some labels are not listed, so an absent one is not 0
};
[[nodiscard]] BuffersOfTokens buffers_per_token(const Observed& observed);

// The layer that a tensor's or node's name tells: "Qcur-3", "blk.3.attn_q.weight", "cache_k_l3
// (view)", "layers.3.mlp", "layer 3" -> 3. Nothing for "node_27", "norm", "result_output".
[[nodiscard]] std::optional<std::int64_t> layer_of_node(std::string_view node);

// Fills in flops and bytes of a call that its shape and types give, where they are absent:
// multiplications of matrices, those of attention included, and bytes of every op whose types are
// known.
void fill_from_shape(ObservedOp& op);

// Fills in peak_seconds of each op of a backend that `peak` has rates of: the longer of its flops
// and its bytes at the highest rates there (the roofline: Williams, Waterman, Patterson, 2009).
void compare_with_peak(Observed& observed, const Observed& peak);
// Bytes of what a call results in; nothing where type or shape do not tell.
[[nodiscard]] std::optional<double> result_bytes(const ObservedOp& op);

// A backend of this name is the host's processor: "CPU", "BLAS", "host".
[[nodiscard]] bool names_a_cpu(std::string_view backend);

// Three digits: "7.63 s", "140 ms", "0.3 us".
[[nodiscard]] std::string time_text(double seconds);

// What a profile says in single numbers, whatever shows or compares them. Pure.

struct ObservedFigure {
  std::string name;  // with the case it is of: "tg8 decode_tokens_per_second"
  unit::Metric metric;
  std::optional<double> value;  // in the metric's base unit; absent in a line for `error` alone
  // Why no ratio is to be made of it: what the case that it is of failed with, or that it is a
  // bound ("at most 50.0 ms": the edge of a histogram's bucket).
  std::optional<std::string> error;
};

// "p50", also of a median; "mean".
[[nodiscard]] std::string figure_name(const ObservedLatency& latency);

// Times, percentiles of latency, counts (their median), then case by case: its times, its error.
[[nodiscard]] std::vector<ObservedFigure> figures_of(const Observed& observed);

// What was measured, held against itself: sums against the whole, times against the clock, counts
// of two sources. Disagreements are doubts, told beside whatever shows the numbers. Pure.

// One line each; `side` stands in front ("before", "after"; "" for none).
// Of what an engine or a profiler said: times of dispatches against their command buffers', and of
// ops against the rate. What other documents of the same run say is not looked at.
[[nodiscard]] std::vector<std::string> cross_checks(const Observed& observed,
                                                    const std::string& side = "");

}  // namespace weir::observed
