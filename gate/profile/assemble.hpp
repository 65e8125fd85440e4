// A cell's records -> its profile: marginal counting (docs/explanation/counting.md), best of
// repeats, placement. Pure; the order of the records does not matter, only their `order` field
// does.
//
// - Records of other cells are passed over, so a whole journal may be handed in. Of records with
//   one `order`, the one with the highest `attempt` counts.
// - Any record with an error makes its pass an error: nothing of that pass is then shown as
//   measured, while the other pass keeps its numbers.
// - Records of the other side are passed over too. Of pairs, those that measured something add to
//   the samples and the others are told by paired.hpp; warm-ups measure nothing.
// - Timed: each process gives one number a metric, the best of its repeats; peak memory is the
//   process's own. Counted: see marginal.hpp. What must be the same on two sides (WorkDone) is
//   taken from the longest counted runs, or from the timed ones where nothing was counted.
// - Records of instructions are a pass of their own within the counted one: an error of theirs
//   leaves the other counts as they are.
#pragma once

#include "gate/profile/profile.hpp"

namespace weir::profile {
// How a cell's counted pass varies: over generation lengths (decode), over repeats (prefill), or
// not at all (an engine without {repeats}, or one that counts by itself). Overlapping: of a server
// with more than one request under way, whose counts are divided by all tokens it generated.
// Held: the same, where all requests of a burst are queued before the first computation, so that
// batches are the same in each run. Request: over generation lengths, one request alone of each.
enum class Sweep { tokens, repeats, none, overlapping, burst, request };
[[nodiscard]] constexpr bool varies_token_count(Sweep sweep) {
  return sweep == Sweep::tokens || sweep == Sweep::request;
}
[[nodiscard]] constexpr bool requests_share_batches(Sweep sweep) {
  return sweep == Sweep::overlapping || sweep == Sweep::burst;
}

// The parts of the plan that assembling needs.
struct CellFacts {
  CellKey cell;
  std::string device;  // "cpu", "vulkan", …
  Sweep sweep = Sweep::tokens;
  bool counts_reported_per_token = false;  // the engine's own counters need no fit
  std::optional<std::string> counts_skip_reason;
  // As of a profile: not counted on this machine.
  std::optional<std::string> instructions_skip_reason{}, host_skip_reason{};
  // The device's name, where weir looked for it before the start and found it. An engine that then
  // never opens it has put its work elsewhere; without this it is a pass that could not be counted.
  std::optional<std::string> device_present;
  // How engines take a device that they leave out: a sentence; "": nothing.
  std::string device_cure{};
  // The device is a description (`twin:`): its counts are those of that GPU, what it computes is
  // not.
  std::optional<std::string> twin{};
  bool kernels_gated = true;
  // Ops that may run on the CPU although the cell asks for a device: op -> why.
  std::map<std::string, std::string> cpu_ops_allowed{};
  // Conditions for some of those: the op may run there only if one holds for its shape
  // (shape_fits).
  std::map<std::string, std::vector<std::string>> cpu_ops_when{};
  Provenance provenance;      // device_class may still be empty: the probe fills it
  std::string engine_source;  // adapter's name
};

// As a journal keeps them.
void fields(Fields& io, CellFacts& facts);

// Returns true if the result of an op fits a condition such as "ne0 < 128" or "ne0 <= 64 and ne1 ==
// 1". ne0 to ne3 are its sizes, the fastest first, as in ggml; `shape` is as in OpCount. An unknown
// shape fits nothing. Code::config for a text that is no condition.
[[nodiscard]] Result<bool> shape_fits(std::string_view condition, std::string_view shape);

// The error of a cell without any record.
inline constexpr std::string_view k_no_record = "no run of this cell is recorded";

[[nodiscard]] Profile assemble(const CellFacts& facts, std::span<const RunRecord> records,
                               Side side = Side::candidate);

// Lines of errors without how many runs had them: "timed: all 3 runs: exit 1" is "timed: exit 1",
// and of a part of the runs "timed: some runs: exit 1".
[[nodiscard]] std::string without_run_numbers(std::string_view errors);

// Kernels by name against the count of dispatches, a line each; `side` stands in front ("before",
// "after"; "" for none). Counts of two probes are compared where a profile is assembled.
[[nodiscard]] std::vector<std::string> cross_checks(const Profile& profile,
                                                    const std::string& side = "");

// The records of a run, each cell's together, so that none is looked for among those of others.
class RecordsByCell {
 public:
  RecordsByCell(std::vector<RunRecord> records);  // NOLINT: any records can be grouped
  [[nodiscard]] std::span<const RunRecord> find(const CellKey& cell) const;

 private:
  std::vector<RunRecord> records_;  // by cell, else in their order
};

// Every cell's, in their order; `unavailable`: cells that could not be measured, by name, and why.
[[nodiscard]] std::vector<Profile> assemble_all(
    const std::vector<CellFacts>& cells, const std::map<std::string, std::string>& unavailable,
    const RecordsByCell& records);

// One count at one length, and the exact line through several.
struct LengthCount {
  std::int64_t length = 0;  // tokens reported generated, or repeats
  std::int64_t count = 0;
};
struct Line {
  Rational slope;      // per token or per prefill
  Rational intercept;  // fixed
};
// The line through points at rising lengths, two or more, when it goes through all of them.
struct ExactPoint {
  std::int64_t length = 0;
  Rational value;
};
[[nodiscard]] std::optional<Line> line_through(std::span<const ExactPoint> points);
// The exact line, when there are at least two different lengths, every length repeated has one
// count, and (with three or more lengths) all points are collinear in integers; nothing otherwise.
[[nodiscard]] std::optional<Line> exact_line(std::span<const LengthCount> points);

// Generation lengths of the counted pass: n, 2n, 3n with n = max(4, min(8, tokens / 4)).
[[nodiscard]] std::vector<std::int64_t> decode_lengths(std::int64_t tokens);
// Lengths for processes whose instructions are counted: 4, 4 + k, 4 + 2k with k = max(8, min(32, 2
// x tokens)). A count that varies by some 50 000 of 170 million needs lengths that far apart for a
// slope good to 0.1 % (docs/explanation/counting.md).
[[nodiscard]] std::vector<std::int64_t> instruction_lengths(std::int64_t tokens);
// The same for prefills, which are bigger than tokens: repeats 1, 1 + k, 1 + 2k with
// k = max(1, min(8, 64 / prompt_tokens)).
[[nodiscard]] std::vector<std::int64_t> instruction_repeats(std::int64_t prompt_tokens);

// The reference workload: a pinned engine and model, timed in every round beside the other cells.
// Pure.

// Gives every timed cell of `profiles` what the cell named `reference` did in the same rounds: its
// decode rate, else its prefill rate, else its first rate. Nothing where that cell is not there or
// reported no rate.
void set_reference_rates(std::span<Profile> profiles, std::string_view reference);

// Kernels of a run whose costs its compiler could not tell, one line a reason, each kernel once.
[[nodiscard]] std::vector<std::string> missing_kernel_costs(std::span<const Profile> profiles);

}  // namespace weir::profile
