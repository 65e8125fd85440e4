// The parts of assemble() and of paired_runs(). Used by this module alone.
#pragma once

#include "gate/profile/marginal.hpp"

namespace weir::profile {
using Records = std::vector<const RunRecord*>;

// A cell's records of both sides by `order`, the last attempt of each.
[[nodiscard]] Records last_attempts(std::string_view cell, std::span<const RunRecord> records);
// Returns the reason why a record measures nothing, even if the record does not state one; nothing
// if it measures.
[[nodiscard]] std::optional<std::string> find_error(const RunRecord& record);

// One number of a timed process: the best of its repeats for one metric.
struct ProcessNumber {
  unit::Metric metric;
  std::string source;
  double value = 0;
};
// `engine_source` names the adapter.
[[nodiscard]] std::vector<ProcessNumber> process_numbers(const RunRecord& record,
                                                         const std::string& engine_source);

// Processes that took over 1.5 x as long as the middle one of `records`, one side's, and what the
// machine did meanwhile that fits: other work on the processors, time that a hypervisor took, pages
// that had to be read again. Nothing when there are none, or none of them is explained.
[[nodiscard]] std::optional<std::string> explain_outliers(std::string_view program,
                                                          const Records& records);

// Adds the timed metrics of records that all measured something.
void add_timed(const CellFacts& facts, const Records& timed, Profile& profile);

// Adds counts, kernels, device and placement of counted records that all ended well. What stops
// the pass from being counted becomes an error in the profile. Counts that the engine prints in
// timed records as well must be the same there. `is_counted_otherwise`: system calls, instructions
// or Python's calls are, so that on the CPU nothing else has to be.
void add_counted(const CellFacts& facts, const Records& counted_runs, const Records& timed_runs,
                 bool is_counted_otherwise, Profile& profile);

// Adds what the code of the profile's kernels costs, by its compiler (kernel_costs.cpp).
void add_kernel_costs(Profile& profile);
// One cost of one piece of code (`key`: code_key()) over all waves of its calls; nothing where that
// is not known.
[[nodiscard]] std::optional<Rational> cost_of_code(const Profile& profile, std::string_view key,
                                                   std::string_view cost);

// Adds instructions and the functions that took them, of records that all ended well.
void add_instructions(const CellFacts& facts, const Records& counted_runs, Profile& profile);

// Adds what was counted of system calls, of records that all ended well.
void add_host(const CellFacts& facts, const Records& counted_runs, Profile& profile);

// Adds calls of Python's functions and those in C, of records that all ended well.
void add_python(const CellFacts& facts, const Records& counted_runs, Profile& profile);

// Length of a record in the counted pass: tokens reported generated (else asked for), or repeats.
[[nodiscard]] std::int64_t run_length(const RunRecord& record, Sweep sweep);
[[nodiscard]] RunLengths run_lengths(const Records& counted, Sweep sweep);

// The cell's sweep; of a server that nothing could hold back, requests overlap as it happens.
[[nodiscard]] Sweep actual_sweep(const CellFacts& facts, const Records& counted_runs);

// The probe that is made of an engine's own marks: of whatever device the engine says.
inline constexpr std::string_view k_engine_marks = "instrument";

// Decides whether the work ran where it was asked to. `probe` saw every run and reports the cell's
// device: its own, or k_engine_marks if the engine marks any work; "" if there is none.
void set_placement(const CellFacts& facts, std::string_view probe, const Records& counted_runs,
                   Profile& profile);

// Returns a probe's counts of a run; null if it was not attached.
[[nodiscard]] const ProbeCounts* find_probe(const RunRecord& record, std::string_view name);
// A count by its base name; 0 when it is not there.
[[nodiscard]] std::int64_t count_of(const ProbeCounts& probe, const std::string& base);
// The devices that a probe saw, each class once, sorted.
[[nodiscard]] std::vector<ProbedDevice> find_devices(std::string_view probe,
                                                     const Records& counted_runs);
// Returns the devices of an API, by its own probe or else by the engine's marks.
[[nodiscard]] std::vector<ProbedDevice> find_api_devices(std::string_view api,
                                                         const Records& counted_runs);
[[nodiscard]] bool has_counts(const Profile& profile);

void add_once(std::vector<std::string>& lines, const std::string& line);
void reject_placement(Profile& profile, std::string reason);
// The lengths that records of a counted pass have.
[[nodiscard]] std::set<std::int64_t> collect_lengths(const Records& counted_runs, Sweep sweep);

// Ops of a counted pass, by a probe that sees them ("ggml", or an engine's own marks): which ones a
// token or a prefill consists of, and where each of them ran. Pure. Used by this module alone.
//
// Ops of the start (warm-up, a prompt) are not among them, because an op's rate is its slope over
// the lengths. If there is one length only, the graph that was computed most often stands for the
// work.

struct OpRate : OpKey {
  Rational per_unit;  // times a token (a prefill, a graph); more than 0
};

struct OpWork {
  std::vector<OpRate> ops;  // empty where no probe saw an op in every run
  std::string unit;         // unit of the rates: "a token", "a prefill", "a graph"
  bool complete = false;    // every op that was counted is in a list, with where it ran
};

[[nodiscard]] OpWork find_op_work(const CellFacts& facts, const Records& counted_runs);

// Adds the multiset of ops as the cell's kernels, unless it has some: on the CPU ops are what
// kernels are on a device.
void add_op_kernels(const CellFacts& facts, const Records& counted_runs, Profile& profile);

// Adds the ops that devices computed, where all are known and each token or prefill has the same.
void add_graph_ops(const CellFacts& facts, const Records& counted_runs, Profile& profile);

// Compares a token's graph with the slopes; a disagreement is a warning.
void check_graphs(const CellFacts& facts, const Records& counted_runs, Profile& profile);

// Conditions for a counted pass on a device twin, whose counts are to stand for the real device.
// Pure. Used by this module alone.

// Takes the processes that read the device's memory as other bytes out of `counted`, and compares
// their counts with those of the process that was asked for the same. Returns false, with an error
// in the profile, if they differ or if the work ran on another device than the twin. They differ if
// the engine reads results, which a twin does not compute.
[[nodiscard]] bool check_twin_counts(const CellFacts& facts, Records& counted_runs,
                                     Profile& profile);

// Removes results that a twin makes up.
void drop_twin_results(const CellFacts& facts, Profile& profile);

}  // namespace weir::profile
