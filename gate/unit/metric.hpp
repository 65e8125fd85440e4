// Metrics: a name with a base unit, a direction and a kind. Code never guesses these from a name
// outside this module.
//
// Names: times and memory stand alone ("decode_tokens_per_second"); counts are a base and a scope
// ("dispatches" + per_token -> "dispatches_per_token"). Fits over depths are named after their time
// or count, with "_at_zero_context" or "_per_context_token" at the end. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/base/json_fwd.hpp"
#include "gate/base/result.hpp"

namespace weir::unit {

enum class Unit { seconds, bytes, count, tokens_per_second, requests_per_second, ratio };
enum class Better { higher, lower };
enum class Kind {
  time,     // sampled; judged by max_drop (higher is better) or max_increase (lower is better)
  memory,   // sampled; bytes
  quality,  // quality of the answer (perplexity); judged as times are, the same in every run
  usage,    // sampled; the machine's resources that a timed process used: judged by pairs only
  count,    // exact by default
};
enum class Scope {
  whole_run,
  per_token,
  per_prefill,
  fixed,
  at_length,
  per_request,  // a server's cost of one request, with its prompt and the longest answer
  // The line over a prompt's list of depths, for a time or for a count per token (per prefill if a
  // prompt generates nothing): its value without context, and the increase per token of context.
  at_zero_context,
  per_context_token,
};

struct Metric {
  std::string name;  // unique: "dispatches_per_token", "decode_tokens_per_second"
  std::string
      base;  // "dispatches"; equals name for Scope::whole_run; of a time over depths its name
  Kind kind = Kind::count;
  Unit unit = Unit::count;
  Better better = Better::lower;
  Scope scope = Scope::whole_run;
  std::optional<std::int64_t> length;  // for Scope::at_length: the generation length (or repeats)
  // Bytes of a metric of the user's: the unit that show() takes, "MB"; "": one that fits the value.
  std::string shown_in{};

  // The unit that is shown makes no other metric.
  friend bool operator==(const Metric& a, const Metric& b) {
    return a.name == b.name && a.base == b.base && a.kind == b.kind && a.unit == b.unit &&
           a.better == b.better && a.scope == b.scope && a.length == b.length;
  }
};

// Returns true if a value that rose, or else fell, got worse.
[[nodiscard]] constexpr bool got_worse(Better better, bool rose) {
  return better == Better::lower ? rose : !rose;
}

// 0 if a model does not fit into a twin's memory; a cell that was counted has no such value.
inline constexpr std::string_view k_fits = "fits";
// Failed requests of a load, where a limit allows some.
inline constexpr std::string_view k_failed_requests = "failed_requests";
inline constexpr std::string_view k_divergence = "output_kl";  // a cell compared with its base

// A metric by its full name; knows every base x scope, and "<count>_at_<n>" with 1 <= n <= 10^9.
[[nodiscard]] std::optional<Metric> find_metric(std::string_view name);

// A count of `base` ("dispatches") in a scope; `length` only for Scope::at_length.
[[nodiscard]] Metric count_metric(std::string_view base, Scope scope,
                                  std::optional<std::int64_t> length = std::nullopt);

// True for counts of what exists at once ("device_memory_peak_bytes"), whose only scope is the
// whole.
[[nodiscard]] bool is_level(std::string_view base);
// True for counts of a timed load, which have limits of their own and need no base: drifts, failed
// requests.
[[nodiscard]] bool is_load_count(const Metric& metric);
// True for counts that a stored baseline of an older weir may lack.
[[nodiscard]] bool may_be_missing(std::string_view base);
// True for metrics that are fitted over depths, which belong to a line rather than to one cell.
[[nodiscard]] bool is_over_context(const Metric& metric);

// Metrics of single ops and kernels: their time ("op:lm_head", "kernel:NAME") and their calls
// ("op_calls:NAME", "kernel_calls:NAME"), per token or prefill as the cell counts; and what a
// kernel's code costs ("registers:NAME", as in kernel_cost.hpp). find_metric() knows every such
// name; no default limit covers one.
// Command buffers by the label that the engine gives them are such works too: "buffer:LABEL" is
// the device's time in those of a token, "buffers:LABEL" how many of them a token takes.
// Returns true if `text` begins as such names do; it may be a pattern.
[[nodiscard]] bool is_op_or_kernel_metric(std::string_view text);
inline constexpr std::string_view k_buffers = "buffers:";
// The label in "buffers:LABEL"; nothing of other names.
[[nodiscard]] std::optional<std::string_view> buffer_label(std::string_view name);
// `prefix` ("kernel_calls:") and a name from outside, made fit for a metric's name: a blank becomes
// '_', what cannot be shown "%07", and a long name ends in "~" and a hash of all of it.
[[nodiscard]] std::string work_name(std::string_view prefix, std::string_view name);

// A count of processes of one role, where several roles count: "rank:syncs_per_token".
[[nodiscard]] std::string role_metric_name(std::string_view role, std::string_view name);
inline constexpr std::size_t k_max_role_bytes = 16;

// A metric declared in the config: name as given, kind and unit as declared. Bytes are shown in the
// unit that the end of the name says ("heap_mb").
[[nodiscard]] Metric custom_metric(std::string_view name, Kind kind, Unit unit, Better better);

// Every name find_metric knows, without the `_at_<n>` forms: for suggestions and globs.
[[nodiscard]] const std::vector<std::string>& metric_names();
// "dispatches", "barriers", …: the counts that exist as per_token, per_prefill, fixed, at_n, and
// over depths.
[[nodiscard]] const std::vector<std::string>& count_bases();

// The metric's name for people: "dispatches/token", "syncs/prefill", "dispatches fixed",
// "dispatches at 8", "decode tok/s", "peak memory".
[[nodiscard]] std::string display_name(const Metric& metric);

// A description in a few words: "kernels that reach the device".
[[nodiscard]] std::string about(const Metric& metric);

// A value as people read it, with its unit where the label does not say it: "65", "133/2" is the
// caller's; seconds get s/ms/us/ns, bytes get KiB/MiB/GiB, rates three significant digits.
[[nodiscard]] std::string show(const Metric& metric, double value);

// A time: three significant digits in s, ms, us or ns ("1.47 ms"); whole seconds from 100 s on.
[[nodiscard]] std::string show_seconds(double seconds);
// "1.50 GiB", "64.0 KiB", "17 B".
[[nodiscard]] std::string show_bytes(double bytes);
// A relative change with its sign: "+1.2 %" for 0.0123, "−24.0 %", "+120 %", "+∞ %".
[[nodiscard]] std::string signed_percent(double ratio);
// The same without the unit: "−24.0".
[[nodiscard]] std::string signed_percent_number(double ratio);
// A share without a sign: "12.3 %" for 0.123.
[[nodiscard]] std::string percent(double share, int decimals = 1);

[[nodiscard]] std::string_view to_string(Unit unit);      // "s", "B", "count", "tok/s", …
[[nodiscard]] std::string_view to_string(Better better);  // "higher", "lower"
[[nodiscard]] std::string_view to_string(Kind kind);      // "time", "memory", …
[[nodiscard]] std::optional<Unit> parse_unit(std::string_view text);
[[nodiscard]] std::optional<Better> parse_better(std::string_view text);
[[nodiscard]] std::optional<Kind> parse_kind(std::string_view text);

// In JSON a metric that weir knows is its name; one declared in a config is an object that says
// what it is: {"name", "kind", "unit", "better"}. Nothing when it is neither. Names are 1 to 128
// printable characters without spaces.
[[nodiscard]] std::optional<Metric> metric_from_json(const Json& json);
// Both as a field (base/fields.hpp).
struct MetricField {
  Metric& value;
  std::string_view complaint;  // when it is missing or no metric
  bool complaint_when_missing = true;
  void put(Json& slot) const;
  void take(const Json& json, Fields& io, const char* key) const;
};

// Factor and base unit of a unit as engines print it: "ms" -> {seconds, 1e-3}, "MiB" -> {bytes,
// 2^20}, "tok/s" -> {tokens_per_second, 1}, "" or "count" -> {count, 1}.
struct Scale {
  Unit unit = Unit::count;
  double factor = 1;
};
[[nodiscard]] std::optional<Scale> parse_scale(std::string_view text);

// Splits "120s" or "1e9 B" into a number of at least 0 and the text after it.
[[nodiscard]] std::optional<std::pair<double, std::string_view>> split_number(
    std::string_view text);

// Durations and sizes as configs write them: "120s", "10m", "500ms", "2h"; "16MiB", "1GB", "4096".
[[nodiscard]] Result<double> parse_duration_seconds(std::string_view text);
[[nodiscard]] Result<std::int64_t> parse_bytes(std::string_view text);
// "1 m 12 s", "41 s", "0.3 s".
[[nodiscard]] std::string show_duration(double seconds);

}  // namespace weir::unit
