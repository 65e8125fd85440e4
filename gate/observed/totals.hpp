// Sums of an Observed's rows: by op, shape, backend, layer, per token. Pure.
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

// A grouping by one key, or by one within another.
struct Grouping {
  GroupBy by;
  std::optional<GroupBy> within{};
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Grouping(GroupBy group) : by(group) {}
  constexpr Grouping(GroupBy outer, GroupBy inner) : by(outer), within(inner) {}
  friend bool operator==(const Grouping&, const Grouping&) = default;
};

// The rows that count. Rows that cover others never do.
struct Rows {
  std::optional<Phase> phase;
  std::optional<std::size_t> step;
  bool of_steps = false;  // only rows that belong to some step
};

// The time that a row adds to a sum. A span that holds others (in a trace) adds the rest, so that
// no time is counted twice.
[[nodiscard]] std::optional<double> exclusive_time(const ObservedOp& op);

// The rows of one group, or of one within it ("layer 0: MUL_MAT"). A value is absent if no row has
// it; if only some do, `partly` is true and the sums are for those. `seconds` adds up
// time_of_its_own; `least` and `most` are for whole calls.
struct OpTotal {
  std::string name;
  std::optional<std::int64_t> layer;  // for groups by layer
  std::size_t rows = 0;
  std::optional<std::int64_t> calls;
  std::optional<double> seconds, min_seconds, max_seconds;
  std::optional<double> flops, bytes;  // for all calls together
  std::optional<double> seconds_at_peak;
  bool nested = false;  // within the last group before it that is not nested
  bool partly = false;
  bool flops_partly = false, bytes_partly = false, peak_partly = false;  // some rows have none

  // Operations or bytes a second; nothing unless all rows have both.
  [[nodiscard]] std::optional<double> flops_per_second() const;
  [[nodiscard]] std::optional<double> bytes_per_second() const;
  [[nodiscard]] std::optional<double> share_of_peak() const;
};

// Most time first, then most calls, then by name, k_not_listed last; groups by layer in the order
// of layers. After each group those within it.
[[nodiscard]] std::vector<OpTotal> op_totals(const Observed& observed, const Grouping& by,
                                             const Rows& rows = {});

// The same for Observed::cpu_calls; empty for keys that the CPU's calls lack: backend, layer,
// phase, buffer.
[[nodiscard]] std::vector<OpTotal> cpu_totals(const Observed& observed, GroupBy by);

// The tokens that were generated in the rows of `ops`: those of the steps that decode, else
// profiled_tokens; nothing without either. Totals of Phase::decode are divided by it.
[[nodiscard]] std::optional<std::int64_t> decoded_tokens(const Observed& observed);

// op_totals of the decode rows, every sum divided by decoded_tokens. Empty if that is unknown or
// 0.
struct OpPerToken {
  std::string name;
  std::optional<double> calls, seconds, flops, bytes;
};
[[nodiscard]] std::vector<OpPerToken> op_totals_per_token(const Observed& observed,
                                                          const Grouping& by);

// Adds up rows of command buffers; a value that one of them lacks becomes absent.
void add_up(ObservedBuffer& sum, const ObservedBuffer& more);

// Command buffers of one label and phase together, most time first. `step` is one of that phase; a
// value that one of them lacks is absent.
[[nodiscard]] std::vector<ObservedBuffer> buffer_totals(const Observed& observed);

// The command buffers of one label that a token takes, and the device's time in them.
struct BuffersPerToken {
  std::string label;
  Rational buffers;
  std::optional<double> seconds;                       // absent if a row has none
  std::optional<double> min_seconds{}, max_seconds{};  // for one buffer; absent if a row has none
  std::optional<Rational> dispatches{}, barriers{}, syncs{};  // per token; absent as the others
};
// Counts the decode steps that have command buffers; buffers without steps are divided by
// profiled_tokens. By label.
struct BuffersOfTokens {
  std::vector<BuffersPerToken> labels;
  std::int64_t tokens = 0;  // 0: the number of tokens is not known, and no label is listed
  bool is_complete = true;  // false: some labels are not listed, so an absent one is not 0
};
[[nodiscard]] BuffersOfTokens buffers_per_token(const Observed& observed);

// The layer in a tensor's or node's name: "Qcur-3", "blk.3.attn_q.weight", "cache_k_l3
// (view)", "layers.3.mlp", "layer 3" -> 3. Nothing for "node_27", "norm", "result_output".
[[nodiscard]] std::optional<std::int64_t> layer_of_node(std::string_view node);

// Fills in flops and bytes of a call from its shape and types, if they are absent: flops for matrix
// multiplications, those of attention included, and bytes for every op whose types are known.
void fill_from_shape(ObservedOp& op);

// Fills in seconds_at_peak of each op of a backend that `peak` has rates of: the longer of its
// flops and its bytes at the highest rates there (the roofline: Williams, Waterman, Patterson,
// 2009).
void compare_with_peak(Observed& observed, const Observed& peak);
// The bytes of a call's result; nothing if type or shape do not give them.
[[nodiscard]] std::optional<double> result_bytes(const ObservedOp& op);

// Returns true for names of the host's processor: "CPU", "BLAS", "host".
[[nodiscard]] bool is_cpu_name(std::string_view backend);

// The single numbers of a profile, for whatever shows or compares them. Pure.

struct ObservedFigure {
  std::string name;  // with its case: "tg8 decode_tokens_per_second"
  unit::Metric metric;
  std::optional<double> value;  // in the metric's base unit; absent in a line for `error` alone
  // Why no ratio can be made of it: its case failed, or it is a bound ("at most 50.0 ms": the edge
  // of a histogram's bucket).
  std::optional<std::string> error;
};

// The name of a case with those of its facts that `settings` names: "tg128, qwen2 7B, flash_attn
// 1". The name alone without any.
[[nodiscard]] std::string case_name(const ObservedCase& test,
                                    const std::vector<std::string>& settings);
// The facts by which the cases of either document differ: both name their cases by these, so that
// equal names mean equal settings.
[[nodiscard]] std::vector<std::string> common_case_settings(const Observed& a, const Observed& b);

// "p50", for a median as well; "mean".
[[nodiscard]] std::string figure_name(const ObservedLatency& latency);

// Times, percentiles of latency, counts (their median), then case by case: its times, its error.
// Cases are named by `settings`, else by the document's own.
[[nodiscard]] std::vector<ObservedFigure> figures_of(const Observed& observed);
[[nodiscard]] std::vector<ObservedFigure> figures_of(const Observed& observed,
                                                     const std::vector<std::string>& settings);

// Checks of measurements against each other: sums against the whole, times against the clock.
// Disagreements are warnings, shown beside the numbers. Pure.

// One line each; `side` comes first ("before", "after"; "" for none). Checks the report of one
// engine or profiler: times of dispatches against their command buffers', and times of ops against
// the rate. Other documents of the same run are not read.
[[nodiscard]] std::vector<std::string> cross_checks(const Observed& observed,
                                                    const std::string& side = "");

}  // namespace weir::observed
