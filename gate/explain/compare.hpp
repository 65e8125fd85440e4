// Compares two profiles op by op: new, gone, slower, called more often, at which shape, on which
// backend.
//
// Ops are matched by role (gate/profile/kernel_name.hpp), so that profiles of other quantizations,
// backends and engines can be held against each other. Within a role rows are kept apart by shape,
// by part ("gemv_ffn") and by type as far as both sides tell these in the same words; else they
// are one row, but for shapes that both run as often. Judges nothing: times of single runs vary.
// Base units; absent is absent. Pure.
#pragma once

#include <set>
#include <variant>

#include "gate/base/json_fwd.hpp"
#include "gate/observed/observed.hpp"
#include "gate/profile/profile.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::explain {

// The kind of change of a row: the first that holds. Times have to change by more than single runs
// vary: k_slower_ratio, or k_named_ratio for rows that shift_named_rows() selects. Calls are
// compared exactly.
enum class Shift {
  fresh,        // on side B alone: "new"
  gone,         // on side A alone
  slower,       // each call takes longer
  more_calls,   // called more often
  fewer_calls,  // called less often
  faster,       // each call takes less long
  unchanged,
};
[[nodiscard]] std::string_view to_string(Shift shift);  // "new", "more_calls"

// The time of a call on B over that on A from which it is slower; faster from the inverse on.
inline constexpr double k_slower_ratio = 1.2;
inline constexpr double k_named_ratio = 1.02;

// One side of a row: work of one role together.
struct ComparedOp {
  std::set<std::string> names, types, shapes, backends;  // as reported; empty: not reported
  std::optional<double> calls, seconds;  // per unit of the comparison; absent where a row says none

  friend bool operator==(const ComparedOp&, const ComparedOp&) = default;
};

struct OpChange {
  std::string role;  // "MUL_MAT"; the name itself of what is no work of a device ("wait for fence")
  std::string part;  // "ffn"; "" unless both sides report it
  Shift shift = Shift::unchanged;
  std::optional<ComparedOp> a, b;  // at least one
  std::string kind{};              // "wait" for rows of a trace that are no device work; else ""

  [[nodiscard]] bool is_device_work() const { return kind.empty(); }

  // B / A; nothing where a side does not say, or A is 0.
  [[nodiscard]] std::optional<double> time_ratio() const;
  [[nodiscard]] std::optional<double> each_ratio() const;  // time of a single call
};

// A rate, time, count or size that one or both sides report.
struct MetricChange {
  std::string name;  // with the case it is of: "tg8 decode_tokens_per_second"
  unit::Metric metric;
  std::optional<double> a, b;
};

// Who is compared, in words of its own; hostile until shown.
struct ComparedInput {
  std::string name;                    // the file's or the cell's
  std::string format;                  // "vk-perf-logger", "weir"
  std::string words;                   // "llama.cpp · tiny.gguf · Vulkan"
  std::optional<std::int64_t> tokens;  // number of tokens that its ops were divided by
  bool all_labels = true;              // a label that it does not list has no command buffers
};

struct Comparison {
  ComparedInput a, b;
  bool decoding = false;      // only what decodes is compared
  std::string per;            // unit of calls and times: "token", "prefill"; "": all
  std::vector<OpChange> ops;  // by change, then the largest first
  // Command buffers of a token by label, which is the role: calls are buffers, seconds the
  // device's.
  std::vector<OpChange> buffers{};
  // Time of all ops that have one. If both sides time some ops, those that only one side times are
  // left out.
  std::optional<double> seconds_a, seconds_b;
  std::size_t untimed_ops = 0;               // ops left out there
  std::vector<MetricChange> metrics;         // by name, in the order of A, then of B
  std::vector<verdict::Finding> findings{};  // explain()'s, filled in by the caller
  std::vector<std::string> warnings;
};

// One profile to compare; the caller's, and not null.
struct Compared {
  std::string name;
  std::variant<const observed::Observed*, const profile::Profile*> what;
};
[[nodiscard]] Comparison compare(const Compared& a, const Compared& b);

// The difference in time per token between B and A, as far as command buffers show it.
struct TokenGap {
  std::optional<double>
      seconds;         // time of a token by its rate, B - A; absent if a side has no rate
  double buffers = 0;  // time of all command buffers of a token that both time, B - A
  std::size_t untimed_labels = 0;  // labels left out: a side does not time them, or may have them
  std::vector<std::pair<const OpChange*, double>> labels;  // B - A of each, the largest first
};
// Nothing where a side does not time its command buffers. Points into `comparison`.
[[nodiscard]] std::optional<TokenGap> token_gap(const Comparison& comparison);
inline constexpr std::size_t k_gap_labels = 3;  // labels that a text names

// Calls rows slower or faster that `findings`, or texts of the token's gap, name as such: they are
// not the same. The findings have to be filled in.
void shift_named_rows(Comparison& comparison);

// One element of the list in weir.comparison/1.
void fields(Fields& io, Comparison& comparison);

}  // namespace weir::explain
