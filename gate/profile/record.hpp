// One engine process: what was asked, how it ended, what it reported, what the probes counted.
// A journal line holds one record; a Profile is assembled from a cell's records.
#pragma once

#include "gate/base/fields.hpp"
#include "gate/profile/counts.hpp"
#include "gate/profile/likely.hpp"
#include "gate/unit/metric.hpp"

namespace weir::profile {

enum class Pass { timed, counted };

// Names what a counted process counts. Instructions, system calls and calls of Python's functions
// have processes of their own: a device probe's instructions would count as the engine's, a traced
// process is slow, and the interpreter calls a probe at each function.
enum class Counts { device, instructions, system_calls, python };

// The program that a process ran: the one being judged, or the base (`--against`).
enum class Side { candidate, base };

// The values the placeholders got in this process.
struct RunParameters {
  std::int64_t prompt_tokens = 0;
  std::int64_t tokens = 0;
  std::int64_t repeats = 1;
  std::int64_t depth = 0;

  friend bool operator==(const RunParameters&, const RunParameters&) = default;
};

enum class Ended {
  exited,        // by itself; exit_code says how
  signaled,      // by a signal of its own
  timed_out,     // weir stopped it
  output_limit,  // printed more than output_limit; weir stopped it
  not_started,   // could not be spawned
  interrupted,   // Ctrl-C or SIGTERM reached weir
};

// A figure of a server's own metrics over a load: the growth of a counter, the last value of a
// gauge, or the mean of what a histogram recorded.
struct ServerFigure {
  enum class Kind { counter, gauge, mean };
  std::string name;  // as the server has it, without labels; hostile text, fit to show
  Kind kind = Kind::counter;
  double value = 0;

  friend bool operator==(const ServerFigure&, const ServerFigure&) = default;
};
[[nodiscard]] std::string_view to_string(ServerFigure::Kind kind);  // "counter", "gauge", "mean"
void fields(Fields& io, ServerFigure& figure);

inline constexpr std::size_t k_max_latencies = 10'000;

// The report of an engine about itself, read by an adapter. Base units; absent is absent.
struct EngineReport {
  struct Series {
    unit::Metric metric;
    std::vector<double> samples;  // one per repetition within this process
    friend bool operator==(const Series&, const Series&) = default;
  };
  std::vector<Series> times;                   // times and memory
  std::map<std::string, std::int64_t> counts;  // the engine's own counters, by metric name
  std::map<std::string, unit::Metric>
      count_metrics;  // metrics of `counts` not known to find_metric
  // Counters that an engine printed for each token, as their mean; and what a server counted of a
  // load. By metric name.
  std::map<std::string, Rational> shares{};
  // Counters that it printed and that are not counted, by metric name, with the reason.
  std::map<std::string, std::string> uncounted{};
  // How many values the process printed of a metric, by metric name; only where a pattern of the
  // config looks for them, and not of times of which the last counts. Besides, by printed_form(),
  // 1 for each unit after a value, and for the numbers in a row with it.
  std::map<std::string, std::int64_t> printed_values{};
  std::optional<std::int64_t> generated_tokens;  // really generated, one repetition
  std::optional<std::int64_t> prompt_tokens;     // really processed, one repetition
  std::optional<std::string> output_digest;
  std::optional<std::int64_t>
      requests;  // number of requests behind its figures, of an inference server
  std::optional<std::string> model;   // the engine's description of the model
  std::optional<std::string> load{};  // "max_concurrency 8, num_prompts 200", of result files
  // Means over the answered requests of a result file.
  std::optional<double> prompt_tokens_per_request{}, generated_tokens_per_request{};
  std::optional<std::string> engine_build;  // commit or version
  std::optional<std::string> cpu_variant;
  // Why the asked-for device did not do the work, where the engine itself says so.
  std::optional<std::string> device_refuted;
  std::vector<ServerFigure> server;  // by name
  Likely likely{};                   // tokens of one answer
  // Intended start, time to first token and end-to-end latency of each request that succeeded, in
  // microseconds, one request after the other; at most k_max_latencies requests.
  std::vector<std::int64_t> latencies{};
  std::vector<std::string> warnings;

  friend bool operator==(const EngineReport&, const EngineReport&) = default;
};

// Returns the entry of `printed_values` that notes a form of a metric's values ("GB/s").
[[nodiscard]] inline std::string printed_form(const std::string& metric, const std::string& form) {
  return metric + " in " + form;
}
// Returns the metric of an entry of `printed_values`; metrics have no blanks.
[[nodiscard]] inline std::string printed_metric(const std::string& entry) {
  return entry.substr(0, entry.find(' '));
}

// The machine around the process. Shares are 0…1 of all processor time in its span.
struct MachineState {
  std::optional<double> steal_share;
  std::optional<double> other_load;  // one-minute load average when it started
  std::optional<std::int64_t> major_faults;

  friend bool operator==(const MachineState&, const MachineState&) = default;
};

// Work of the system for a process and for the descendants that it waited for.
struct SystemUsage {
  std::int64_t voluntary_switches = 0, involuntary_switches = 0;
  std::int64_t minor_faults = 0, major_faults = 0;

  friend bool operator==(const SystemUsage&, const SystemUsage&) = default;
};

struct RunRecord {
  std::string cell;
  Pass pass = Pass::timed;
  Counts counts = Counts::device;  // of a counted process
  // For a cell with a twin: the byte that device memory is read as. Two different ones in one pass
  // show if counts depend on what a device computes.
  std::int64_t twin_fill = 0;
  std::int64_t order = 0;  // position in the plan: unique within a run
  Side side = Side::candidate;
  // For a timed process that runs next to one of the other side: the pair's number within its cell,
  // from 1. 0 is the warm-up, which is not measured.
  std::optional<std::int64_t> pair = std::nullopt;
  // For a server that was up next to the other side's: its own turns of the pair, from 0.
  std::vector<std::int64_t> turns{};
  // For a server whose start several steps shared: `order` of the first of them.
  std::optional<std::int64_t> start{};
  // For a server: the number of requests that were queued before it computed the first.
  std::optional<std::int64_t> held{};
  // For a timed process that shows the cost of probes: true if they were attached.
  std::optional<bool> with_probes{};
  RunParameters parameters;
  std::int64_t attempt = 1;  // 2 after the one infrastructure retry
  double started_at = 0;     // seconds since the epoch
  double wall_seconds = 0;
  Ended ended = Ended::exited;
  int exit_code = 0;                  // when exited
  int signal = 0;                     // when signaled
  std::optional<double> cpu_seconds;  // user + system, the whole process tree that was waited for
  std::optional<std::int64_t> peak_rss_bytes;
  // Instead, for a very small process: bytes that its peak does not exceed.
  std::optional<std::int64_t> peak_rss_bound{};
  std::optional<SystemUsage>
      system_usage{};  // for a timed process, if metrics of the host are asked for
  MachineState machine;
  std::optional<EngineReport> report;
  std::vector<ProbeCounts> probes;
  // Why this record measures nothing: one or more lines, ready to show. Absent when it measures.
  std::optional<std::string> error;
  // With an error: the last lines of stderr, or of stdout where stderr is empty.
  std::string stderr_tail;
  std::vector<std::string> warnings;

  friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

void fields(Fields& io, RunRecord& record);

// Texts of a record that are copied into each measurement (names of sources, devices and compilers)
// or into each reason (sentences). A record may come from a stranger, so they must not be long.
inline constexpr std::size_t k_short_text = 256, k_long_text = 2000;
// Complains when one of the texts that were read has more than `most` bytes.
void check_texts(Fields& io, std::size_t most, std::initializer_list<const std::string*> texts);
// The same for texts that may be absent.
void check_texts(Fields& io, std::size_t most,
                 std::initializer_list<const std::optional<std::string>*> texts);

[[nodiscard]] std::string_view to_string(Pass pass);
[[nodiscard]] std::string_view to_string(Side side);  // "candidate", "base"
[[nodiscard]] std::string_view to_string(Ended ended);
// As fields (base/fields.hpp).
[[nodiscard]] Named<Pass> pass_field(Pass& pass, std::string complaint);
[[nodiscard]] Named<Counts> counts_field(Counts& counts, std::string complaint);
[[nodiscard]] Named<Side> side_field(Side& side, std::string complaint);

}  // namespace weir::profile
