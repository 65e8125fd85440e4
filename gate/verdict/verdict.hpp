// The verdict of a gate (weir.verdict/1). Every report, bot and check is made from it.
//
// judge() is pure: profiles, bases and limits in, verdicts with reasons out. Times of day, commits
// and the budget are filled in by the caller.
#pragma once

#include <map>
#include <set>

#include "gate/profile/load_picture.hpp"
#include "gate/profile/paired.hpp"
#include "gate/verdict/limits.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::verdict {

// In order of precedence: a cell and a gate take the first that occurs. `info` counts as nothing.
enum class Outcome { fail, error, inconclusive, new_, improved, waived, pass, skipped, info };
// "fail", "error", "inconclusive", "new", "improved", "waived", "pass", "skipped", "info".
[[nodiscard]] std::string_view to_string(Outcome outcome);
[[nodiscard]] std::optional<Outcome> parse_outcome(std::string_view text);

enum class ExitCode {
  pass = 0,
  fail = 1,
  usage = 2,
  unmeasured = 3,
  inconclusive = 4,
  interrupted = 130
};

// When a post of a verdict writes a comment on its pull request (gate.comment). A comment that is
// there is edited, except with `never`. `changed`: unless the verdict is a pass that needs no
// reader.
enum class Comment { changed, always, never };
inline constexpr auto k_comments = names_in_order<Comment>("changed", "always", "never");

// A kernel or op whose number changed. Absent on a side: it did not occur there.
struct Changed {
  std::string name;
  std::optional<Rational> baseline, current;

  friend bool operator==(const Changed&, const Changed&) = default;
};
// Numbers by name, and those that differ between base and candidate.
using Numbers = std::map<std::string, Rational>;
[[nodiscard]] std::vector<Changed> differences(const Numbers& base, const Numbers& current);

// The distribution of the runs of one side, in the metric's unit: the fastest tenth, the middle,
// the mean, the slowest tenth. Processes that did not end are infinitely slow.
struct RunSpread {
  double fast = 0, median = 0, mean = 0, slow = 0;
};
void fields(Fields& io, RunSpread& runs);

// A count or kernel of a device twin that is another on the device itself. Absent on a side: it was
// not counted there.
struct TwinDifference {
  std::string name;  // a metric or kernel
  std::optional<Rational> twin, real;
};

// A cell on a twin, compared with the same cell on the device that the twin describes.
struct TwinCheck {
  std::string twin;                // the description's name
  std::string device;              // the real one's name
  profile::CellKey against{};      // the cell on it
  std::vector<std::string> about;  // how the two differ otherwise: driver version, arguments, …
  std::int64_t compared = 0;       // counts
  bool kernels_compared = false;   // both were named, and neither varied
  std::vector<TwinDifference> differences, kernels;

  [[nodiscard]] bool equal() const { return differences.empty() && kernels.empty(); }
};

// An outcome, and one line: why.
struct Ruling {
  Outcome verdict = Outcome::pass;
  std::string reason{};
};

// A kernel that is called as often as before, and is not the same.
struct KernelChange {
  struct Cost {
    std::string cost;  // as in unit/kernel_cost.hpp
    std::int64_t before = 0, now = 0;

    friend bool operator==(const Cost&, const Cost&) = default;
  };
  std::string kernel;
  Rational calls;
  bool code_changed = false;                                  // else only its groups differ
  std::vector<std::string> hashes_before, hashes_now;         // hashes of its code
  std::optional<Rational> workgroups_before, workgroups_now;  // set if they differ
  std::vector<Cost> costs;  // costs that differ, by the same compiler
  // How its code differs, most telling first: "constant 2: 64 → 128". Its instructions are compared
  // by the caller, who may have them.
  std::vector<std::string> metadata_differences;
  std::string machine_code{};  // a diff of it, for pages alone; in no document

  // "constant 2: 64 → 128, occupancy 18 → 6"; "other code" where nothing more is known.
  [[nodiscard]] std::string words() const;
  friend bool operator==(const KernelChange&, const KernelChange&) = default;
};
// The code of the kernels as a profile or a baseline reports it.
struct CodeSide {
  const std::optional<profile::KernelSet>&codes, &groups;
  const std::map<std::string, profile::CodeFacts>& facts;
  const std::string& compiler;
};
template <typename Side>
[[nodiscard]] CodeSide collect_code(const Side& side) {
  return {side.codes, side.code_groups, side.code_facts, side.compiler};
}
// Kernels that run as often on both sides, with other code or other groups. Empty if a side does
// not report its code, or not by the same unit of work.
[[nodiscard]] std::vector<KernelChange> find_kernel_changes(const CodeSide& base,
                                                            const CodeSide& candidate);

// Subjects of judgements that are no metric.
inline constexpr const char *k_kernels = "kernels", *k_kernel_code = "kernel_code",
                            *k_placement = "placement";

// Between the lowest and highest value of a count that varies.
inline constexpr std::string_view k_range_to = " to ";

// The judgement of one subject of a cell: a metric, its kernels, their code, or where its work ran.
struct Judgement : Ruling {
  Judgement() : Ruling{Outcome::info} {}
  // For kernels, their code or placement: a metric by name alone.
  Judgement(const char* subject, Limit wanted);

  [[nodiscard]] bool is_metric() const;
  // Sets the verdict and its reason.
  void set_ruling(Ruling ruling) { static_cast<Ruling&>(*this) = std::move(ruling); }

  unit::Metric metric;
  Limit limit;
  std::vector<Changed> changed{};    // kernels; of placement, ops that moved
  std::vector<KernelChange> code{};  // kernels whose code changed
  std::string compiler{};            // reports the costs: "radv-navi31, Mesa 25.0.7"; "": none

  // For metrics alone.
  profile::Nature nature = profile::Nature::sampled;
  std::string source;
  std::optional<double> baseline, current;
  // Exact forms: "133/2". A count that varies now and did not before is "10 to 11".
  std::optional<std::string> baseline_text, current_text;
  std::optional<double> change;     // relative, (current - baseline) / baseline; absent at 0
  std::optional<double> low, high;  // interval of `change`, times only
  std::optional<std::int64_t> samples, baseline_sessions;
  // From pairs: the number of pairs that this verdict took, about how many more one would take, and
  // candidate / base of each pair run (absent where a process did not end). Also where the runs of
  // each side lie, and how many times as wide the candidate's spread is, where that is hardly
  // chance.
  std::optional<std::int64_t> pairs, more_pairs;
  std::optional<double> more_seconds{};  // about how long the latter would take
  std::vector<std::optional<double>> ratios{};
  std::optional<RunSpread> baseline_runs{}, current_runs{};
  std::optional<double> spread_ratio{};
  // Against stored samples its limit on the change fails, and nothing else does: pairs may decide
  // (confirm()). Not a part of weir.verdict/1.
  bool suspected = false;
  // About how many pairs an undecided time lacks, and the seconds of a pair. Not a part of
  // weir.verdict/1.
  std::optional<double> missing_pairs{};
  double pair_seconds = 0;
  std::vector<std::string> warnings;
};

// One difference that a finding explains.
struct FindingNumber {
  std::string name;  // a count ("syncs"), a kernel or an op
  Rational delta;
  std::optional<std::int64_t> per_layer;  // delta = per_layer x layers, where that fits
  std::vector<std::int64_t> layers;       // from 0

  friend bool operator==(const FindingNumber&, const FindingNumber&) = default;
};

// An explanation of a cell's differences: made by explain, shown by reports.
//
// Names in it (of ops, kernels, tensors) come from engines and models: hostile until escaped.
struct Finding {
  std::string kind;                       // "fusion_lost": see docs/how-to/explain.md
  std::string metric;                     // full name; "" where it is about none
  std::optional<Rational> delta;          // the metric's, if it is a count
  std::optional<std::int64_t> per_layer;  // delta = per_layer x layers, where that fits
  std::vector<std::int64_t> layers;       // from 0
  std::vector<std::string> tensors;       // patterns that distinguish these layers; empty: none do
  std::vector<std::string> ops;           // ops and kernels that it is about, the largest first
  std::string headline;                   // one sentence
  // The sentence without the numbers of its cell, for a cause of several cells; "" where there is
  // none. Not a part of weir.verdict/1.
  std::string summary{};
  std::vector<std::string> lines;        // the arithmetic, a line each
  std::vector<FindingNumber> numbers{};  // the same as data; metric and delta are of the first
  std::string cause, look_at;            // "" where there is nothing to add
  // Judgements of its cell that follow from it: full names of metrics, "kernels", "kernel_code",
  // "placement". Each is claimed by one finding.
  std::vector<std::string> claims{};
  bool also = false;  // another reading of what a finding before it explains
  double score = 0;   // 0 to 1: share of all differences that it explains

  [[nodiscard]] std::string text() const;  // headline and lines

  friend bool operator==(const Finding&, const Finding&) = default;
};

void fields(Fields& io, Finding& finding);

struct CellVerdict {
  profile::CellKey cell;
  std::string device;
  Outcome verdict = Outcome::pass;
  std::string reason;  // for error and skipped: what people read, may be lines
  std::string device_class, device_name, machine_class, machine_name;
  std::optional<std::string> base;  // which baseline judged it: "same device class", "nearest: …"
  bool is_stored = false;           // that is a stored one; not a part of weir.verdict/1
  // The cell was measured and nothing of it was compared: why, in one clause without its name.
  std::optional<std::string> not_compared{};
  // Metrics first: counts, then times, then what has no limit. Then kernels, kernel code and
  // placement, where they were judged or changed.
  std::vector<Judgement> judgements;
  [[nodiscard]] std::span<const Judgement> metrics() const;
  [[nodiscard]] std::span<Judgement> metrics();
  // The judgement of a subject: the full name of a metric, k_kernels, …; an info without a reason
  // if there is none.
  [[nodiscard]] const Judgement& judgement_of(std::string_view subject) const;
  // The judgement of kernels, their code or placement. If there is none, adds one that must not
  // change.
  Judgement& put(const char* subject);
  // Instructions per token or prefill of functions that changed, where those counts differ: they
  // say which, and judge nothing.
  std::vector<Changed> functions{};
  // Work ran elsewhere than asked: no baseline can be accepted of it. not_allowed as Placement has
  // it.
  bool ran_elsewhere = false;
  std::set<std::string> not_allowed{};
  std::string stderr_tail;            // with an error
  std::vector<std::string> warnings;  // suspicious data
  std::vector<std::string> notes;     // facts that need no action
  // Explanations of the differences, best first; filled in by the caller (explain).
  std::vector<Finding> findings{};
  std::optional<double> profiling_cost;
  std::optional<std::string>
      counts_skip_reason;  // why nothing was counted although nothing went wrong
  std::optional<std::string> instructions_skip_reason{}, host_skip_reason{};  // as Profile has them
  std::vector<profile::ServerFigure> server{};                                // as Profile::server
  std::optional<std::int64_t> requests{};  // as Profile::requests
  std::vector<std::int64_t> latencies{};   // as Profile::latencies; in a file at most 400 requests
  std::vector<profile::BatchBar> batches{};  // batch_bars(Profile::batches)
  std::optional<TwinCheck> twin_check{};     // for a twin whose real device was there
};

// The text that was typed after --against: a REF or DIR, or the words of a command. Both are empty
// if they hold private names and were taken out.
struct Against {
  std::string spec;
  std::vector<std::string> command;
};

// Cells that were not compared, for the same reason.
struct NotCompared {
  std::string reason;
  std::int64_t cells = 0;
};

// A metric that moved in cells of one cause. Changes are current - baseline.
struct Carrier {
  std::string metric;  // full name
  double min_change = 0, max_change = 0;
  std::int64_t cells = 0;  // cells of the cause that have it

  friend bool operator==(const Carrier&, const Carrier&) = default;
};

// One change of an engine that explains judgements in one or more cells. Made from findings, whose
// names are hostile.
struct Cause {
  std::string kind;                 // as its findings have it
  std::string headline;             // one sentence, true of all of its cells
  std::vector<std::string> ops;     // ops that changed, as Finding::ops
  std::vector<std::string> cells;   // full names, in plan order
  std::vector<Carrier> carriers{};  // at most three, the most telling first
  std::int64_t follow = 0;          // how many other metrics moved because of it
  std::string cause, look_at;       // as Finding has them
  // Other changes of its cells: they may follow from this cause, or have one of their own.
  // Sentences.
  std::vector<std::string> beside{};

  friend bool operator==(const Cause&, const Cause&) = default;
};

// A judgement that needs a reader (it failed, or is not decided) and follows from no cause.
struct Unexplained {
  std::string what;                // full name of a metric, "kernels", "kernel_code", "placement"
  std::vector<std::string> cells;  // full names, in plan order

  friend bool operator==(const Unexplained&, const Unexplained&) = default;
};

struct GateVerdict {
  Outcome verdict = Outcome::pass;
  ExitCode exit_code = ExitCode::pass;
  std::string weir_version;
  std::string config;         // path as given
  bool is_selection = false;  // --cell left out other cells of `config`
  // From --baselines, --baselines-ref, --out, --rules-from, --from and those of waivers: the values
  // that are not the default, those of a repeated option with a blank between. Commands in reports
  // repeat them.
  std::map<std::string, std::string> options{};
  bool counts_only = false;
  std::optional<std::string> commit, base_commit;
  // The base in words: "stored baselines in baselines", "run weir-out/…". `base_commit` is the
  // commit of a base program that judged.
  std::string base_origin;
  std::optional<Against> against{};  // set if a base program was measured with the candidate
  // Only for weir compare: the runs A and B, as typed. Empty if they hold private names; absent for
  // a gate.
  std::optional<std::vector<std::string>> runs{};
  // Set where limits, allow-lists and settings were read in place of the working tree. The changes
  // that the working tree would make are listed first, in this order.
  std::optional<RulesFrom> rules{};
  std::vector<Proposal> proposals{};
  std::vector<CellVerdict> cells;  // in plan order
  // Explains cells that failed; filled in by the caller (explain). The causes of most cells first.
  std::vector<Cause> causes{};
  std::vector<Unexplained> unexplained{};
  std::map<std::string, std::int64_t> totals;  // outcome name -> cells
  std::int64_t metrics_judged = 0;
  std::int64_t compared = 0;  // cells of which something was, with a base or a plain limit
  std::vector<NotCompared> not_compared;  // the other cells that were measured
  // Why this gate judged nothing, in one sentence: then no report shows it as a success. Absent: it
  // judged something.
  std::optional<std::string> nothing_judged_reason{};
  bool fail_on_inconclusive = false;  // an inconclusive gate fails here
  Comment comment = Comment::changed;
  // Gaps that the first line of every report admits, ready to show: "throughput not decided in
  // 31 of 40 cells", "12 cells new", "3 skipped: no probe".
  std::vector<std::string> not_judged;
  std::vector<std::string> notes;
  std::string decision_rule;      // in words: what the limits of this gate promise
  std::optional<double> seconds;  // how long it took
  std::optional<double> budget_seconds;
  std::optional<double> profiling_cost;
  std::optional<std::string> run;  // directory
};

struct Policy {
  bool require_baseline = false;  // a missing exact baseline is an error (exit 3)
  // A time under a limit that nothing is compared with is inconclusive, not new: whoever measured
  // the run chose its machine, and whether it has pairs.
  bool require_times = false;
  bool fail_on_inconclusive = false;
  Comment comment = Comment::changed;
  double stored_level = 0.05;
  double assumed_session_sd = 0.03;  // log rate from run to run, before any are stored
  bool counts_only = false;
  // Beside a base program (docs/explanation/decision-rule.md).
  double false_alarm = 0.001;  // for the whole gate
  double missed = 0.01;        // for each metric
  bool strict = false;
  std::optional<double> budget_seconds{};  // for all pairs; absent if they ended for another reason
  std::int64_t timed_metrics = 1;  // among which false_alarm is divided; see timed_metrics()
};

// The base of a cell.
struct Base {
  baseline::BaselineChoice choice;  // which stored baseline, or why none
  // Pairs of its program and the candidate's: with these, times are judged by them alone.
  std::optional<profile::PairedRuns> pairs{};
};

// `candidate` against `base` (absent choice: everything is new or info).
[[nodiscard]] CellVerdict judge_cell(const profile::Profile& candidate, const Base& base,
                                     const LimitTable& limits, const Policy& policy);

// How many metrics of these cells are judged by pairs: those with a limit on their change that
// gates, of cells whose warm-ups ended. Known before the first pair is run, and never changed by
// what pairs say, so that dividing false_alarm by it keeps its promise.
[[nodiscard]] std::int64_t timed_metrics(std::span<const profile::CellFacts> cells,
                                         std::span<const profile::PairedRuns> runs,
                                         const LimitTable& limits);

// A line for each name of an op or a kernel in `limits` that no metric of these cells has: a limit
// with a typing error limits nothing, and nobody knows the names before an engine printed them. No
// line if a cell that could have it was not measured.
[[nodiscard]] std::vector<std::string> limits_on_nothing(std::span<const CellVerdict> cells,
                                                         const LimitTable& limits,
                                                         const Policy& policy);

// An error for each metric under an absolute limit that gates if no cell of that limit has any of
// its metrics; it says where the metric could come from. None if such a cell was not measured.
[[nodiscard]] std::vector<std::string> unmeasured_bounds(std::span<const CellVerdict> verdicts,
                                                         const LimitTable& limits,
                                                         const Policy& policy);

// Folds cells into a gate: outcome, exit code, totals, what was not judged.
[[nodiscard]] GateVerdict judge_gate(std::vector<CellVerdict> cells, const Policy& policy);

// Nothing of this gate counts as judged, for this reason (none before it stands): an error, unless
// a limit is broken as well.
void mark_unjudged(GateVerdict& gate, std::string why);

// Says so of a gate that brings its rules along: that nothing of the base could judge it is no
// error.
void mark_brought(GateVerdict& gate);

// weir.verdict/1. Complete; only ever added to.
void fields(Fields& io, GateVerdict& verdict);
// The same as a document: its JSON in lines. Only one judgement at a time is held as JSON, which
// takes a multiple of the text. `verdict` is as before.
[[nodiscard]] std::string to_text(GateVerdict& verdict);

// Fills twin_check of each cell that ran on a twin, if another cell with the same engine, variant,
// model and prompt ran on the real device: same vendor, device and driver, or else the same device
// name. `profiles` has one profile for each of `cells`, in their order. A difference is a warning
// on the twin's cell, never a verdict: a description may be older than the driver.
//
// Returns one line for each twin: that all was equal, or why nothing was compared although the
// device is there.
[[nodiscard]] std::vector<std::string> check_twins(std::span<const profile::Profile> profiles,
                                                   std::span<CellVerdict> cells);

// Drops suspected against stored samples, confirmed (or not) by pairs beside a base program.
//
// Between sessions there is no coin, so a fail against stored samples holds at `stored_level`
// alone: something made the program slower, perhaps the machine. Pairs decide if it is the program,
// under false_alarm and missed. The metrics that are paired were chosen before any coin was thrown,
// so their guarantee is that of any other gate of as many metrics.

// The cells in which a time's limit on its change fails against stored samples and gates. A line
// over depths is listed by its own name.
[[nodiscard]] std::vector<profile::CellKey> suspected(std::span<const CellVerdict> cells);

struct Confirmed {
  std::int64_t confirmed = 0, cleared = 0, inconclusive = 0;  // suspected metrics
  // Metrics that pairs could not decide: one line each; they stay as they were.
  std::vector<std::string> not_asked;
};
// Takes the verdicts of `paired` into `cells`; these are some of the same cells, judged by pairs. A
// suspected metric gets their verdict, another time in those cells gets a fail alone. `base` is the
// base program in words.
[[nodiscard]] Confirmed confirm(std::vector<CellVerdict>& cells,
                                std::span<const CellVerdict> paired, const std::string& base);

}  // namespace weir::verdict
