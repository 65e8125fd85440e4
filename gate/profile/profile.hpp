// The one model of a measurement: everything known of one cell on one machine.
//
// Base units only. Absent is absent, never 0. Nothing measured is thrown away in silence: a doubt
// is a warning here.
#pragma once

#include <map>
#include <set>

#include "gate/profile/cell.hpp"
#include "gate/profile/record.hpp"

namespace weir::profile {

enum class Nature { exact, nearly_exact, sampled };

struct Measurement {
  unit::Metric metric;
  Nature nature = Nature::sampled;
  std::string source;             // "vulkan" (a probe), "llama-bench" (an adapter), "weir"
  std::optional<Rational> exact;  // counts
  std::vector<double> samples;    // one number a process; times and memory; for counts the values
                                  // seen when they did not agree
  std::optional<double> relative_spread;  // nearly exact: (max - min) / median
  std::vector<std::string> warnings;

  // The one number to show: the exact value, else the median of the samples.
  [[nodiscard]] std::optional<double> value() const;
};

// The multiset of kernel names, per token or per prefill (or in all, at one length).
struct KernelSet {
  unit::Scope scope = unit::Scope::per_token;
  std::optional<std::int64_t> length;  // for at_length
  bool has_names = false;              // gated only when the program named them
  std::map<std::string, Rational> counts;
  bool runs_disagree = false;  // runs of one length disagreed: not compared one by one

  [[nodiscard]] std::optional<Rational> sum()
      const;  // sum of the counts; absent if it does not fit
  friend bool operator==(const KernelSet&, const KernelSet&) = default;
};

// Did the work run where it was asked to?
struct Placement {
  enum class State {
    unknown,  // nothing here shows it
    seen,     // the device was given work (a device probe counted it); single ops are not seen
    shown,    // every op is accounted for (a probe that sees ops, or the engine's own report)
    ran_elsewhere,  // all work did, or some ops
  };
  State state = State::unknown;
  std::string reason;  // one line if it ran elsewhere
  // In a cell that asks for a device, where only some ops ran on the CPU: op -> times per token (or
  // prefill), rounded, at least 1. Empty in cells of the CPU.
  std::map<std::string, std::int64_t> cpu_ops;
  // The ones among cpu_ops that may not run there; cpu_ops_allowed can permit them. Empty if that
  // would not help, as when all ops ran on the CPU.
  std::set<std::string> not_allowed{};
  // In such a cell, ops that ran on a third device: "ROPE on blas" -> times, as in cpu_ops.
  std::map<std::string, std::int64_t> other_ops{};

  // All that ran elsewhere than asked, on the CPU and on a third device: name -> times.
  [[nodiscard]] std::map<std::string, std::int64_t> ops_elsewhere() const;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// Facts that must be the same on both sides for their numbers to be comparable.
struct WorkDone {
  std::optional<std::int64_t> generated_tokens;
  std::optional<std::int64_t> prompt_tokens;
  std::optional<std::string> output_digest;
  std::optional<std::string> model;
  std::optional<std::string> load{};  // number of requests and how many at once, in result files
  // Medians over runs that are result files.
  std::optional<double> prompt_tokens_per_request{}, generated_tokens_per_request{};
  Likely likely{};  // from a server that is asked for them: then they judge a different output
  // As in EngineReport: of the longest counted runs, of timed ones, or of pairs. Older baselines
  // have none.
  std::map<std::string, std::int64_t> printed_values{};

  friend bool operator==(const WorkDone&, const WorkDone&) = default;
};

// Returns true if two means over requests are of the same work: lengths of answers that differ by
// chance may move them by a quarter.
[[nodiscard]] constexpr bool is_same_mean(double a, double b) {
  constexpr double k_max_ratio = 1.25;
  return a <= k_max_ratio * b && b <= k_max_ratio * a;
}

struct Provenance {
  std::string fingerprint;  // the cell's: run/prepare.hpp
  // Parts of the fingerprint by name ("model header", "arguments", …) -> short hash, so that weir
  // can report which one changed.
  std::map<std::string, std::string> fingerprint_parts;
  std::string preset{};       // "llama-bench 1": what the engine's keys come from; "": none
  std::string device_class;   // class that counts depend on; empty if nothing was measured
  std::string device_name;    // for people
  std::string machine_class;  // class that times depend on
  std::string machine_name;   // for people: CPU model, cores, memory
  std::optional<std::string> engine_build;
  std::vector<std::int64_t> lengths;  // generation lengths (or repeats) of the counted pass
  // The one device that the probe saw work: its own class and name. Of a twin, whose device_class
  // is "twin-NAME", they are what its description answers. Empty where none or several were seen.
  std::string probed_device_class{}, probed_device_name{};
  // Tells this run's timed processes from those of any other, by how long each took; "": none ran.
  std::string timed_run{};
};

// How fast the machine was beside each timed process: what a pinned program did there in the same
// round. A rate, so more is faster.
struct Reference {
  std::string cell;                       // the reference workload's
  std::string fingerprint, engine_build;  // another build has another speed
  std::string metric;
  std::vector<double> rates;

  friend bool operator==(const Reference&, const Reference&) = default;
};

struct Profile {
  CellKey cell;
  std::string device;  // the device that the backend asked for: "cpu", "vulkan", …
  Provenance provenance;
  std::map<std::string, Measurement> metrics;  // by metric name
  std::optional<KernelSet> kernels;
  // The same kernels with the code that each ran (counts.hpp: code_key), and how many groups that
  // took in all, where a probe knows code: what stands behind a name.
  std::optional<KernelSet> codes{}, code_groups{};
  std::map<std::string, CodeFacts> code_facts{};  // facts about that code, by its hash
  std::string compiler{};  // compiler of their costs; "": nothing was compiled
  // Ops of the engine's graphs that its devices computed, by name, where a probe saw all of them:
  // what kernels were sent for. They explain a change of kernels and are never gated.
  std::optional<KernelSet> graph_ops{};
  // Rows among these ops that engines compute as one kernel (unit/fusions.hpp), by their names.
  std::optional<KernelSet> fusible{};
  // Instructions per token or prefill by function, the largest ones, where valgrind counted them:
  // they explain a change of instructions_per_… and decide nothing.
  std::optional<KernelSet> functions{};
  Placement placement;
  WorkDone work;
  // Passes that could not be measured. A cell with an error still has what its other pass gave.
  std::vector<std::string> errors;
  bool engine_ended =
      false;  // among them: an engine ended by itself, with an exit code or a signal
  std::string stderr_tail;
  // Why nothing could be counted although nothing went wrong ("no probe sees cpu").
  std::optional<std::string> counts_skip_reason;
  // Why instructions, and what the probe "host" counts, were not counted although the config asks
  // for them.
  std::optional<std::string> instructions_skip_reason{}, host_skip_reason{};
  std::vector<std::string> warnings;
  std::int64_t counted_runs = 0;
  std::int64_t timed_runs = 0;
  // For an inference server: requests of the last timed run, and what its own metrics reported.
  std::optional<std::int64_t> requests{};
  std::vector<ServerFigure> server{};
  std::vector<std::int64_t>
      latencies{};  // latencies of the last run, as EngineReport::latencies; in no file
  // Tokens that one graph computes -> graphs of the last counted run, if requests share batches; in
  // no file.
  std::map<std::int64_t, std::int64_t> batches{};
  // The reference workload names its own cell here.
  std::optional<Reference> reference{};
  std::optional<double> profiling_cost;  // 1 - rate with probes / rate without, of pairs
};

// A part beside those of the fingerprint: "NAME=HASH NAME=HASH", a hash for each variable's value,
// so that a changed "environment" names the variables that changed. Absent if not known.
inline constexpr const char* k_variables = "variables";
// Returns the names of parts that `other` lacks or has with another hash: "prompt", "environment
// (A, B)".
[[nodiscard]] std::vector<std::string> other_parts(const std::map<std::string, std::string>& parts,
                                                   const std::map<std::string, std::string>& other);

// Nothing failed but the counted pass, and that because the model does not fit into a twin's
// memory.
[[nodiscard]] bool only_does_not_fit(const Profile& profile);

// Why a metric that is counted in processes of its own was not counted by `profile`, although the
// config asks for it; nothing of others.
[[nodiscard]] std::optional<std::string> skip_reason(const Profile& profile,
                                                     const unit::Metric& metric,
                                                     std::string_view source);

[[nodiscard]] std::string_view to_string(Nature nature);
[[nodiscard]] Named<Nature> nature_field(Nature& nature);
[[nodiscard]] std::optional<Nature> parse_nature(std::string_view text);
[[nodiscard]] std::string_view to_string(Placement::State state);

// The parts that other documents (baselines) hold as well.
void fields(Fields& io, KernelSet& kernels);
void fields(Fields& io, Placement& placement);
void fields(Fields& io, WorkDone& work);
void fields(Fields& io, Reference& reference);

// weir.profile/1: what `weir compare` reads and artifacts carry.
void fields(Fields& io, Profile& profile);

}  // namespace weir::profile
