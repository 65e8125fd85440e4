// Evidence about the two sides of a cell, in one shape for every source it is read from.
//
// Base units; counts per unit of work (a token, a prefill) where `scope` says so. Absent is absent:
// a metric that one side lacks is no difference, and no finding is made from it. Pure.
#pragma once

#include "gate/base/rational.hpp"
#include "gate/explain/fusible.hpp"
#include "gate/observed/observed.hpp"
#include "gate/profile/profile.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::explain {

// One number of one side.
struct MetricValue {
  std::optional<Rational> exact;  // a count that does not vary
  std::vector<double> samples;    // else what runs gave, one number each
  std::vector<double> tokens{};   // values of each token that `exact` is the mean of, if reported

  [[nodiscard]] double value() const;  // 0 where nothing is known
};

// Times of single calls, or of single command buffers: the shortest and longest of so many.
struct TimeRange {
  double min_seconds = 0, max_seconds = 0;  // seconds
  double times = 0;                         // in all, not a unit

  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

// A kernel or op that runs some times a unit, or command buffers of one label.
struct Work {
  enum class Kind { kernel, op, buffers };
  Kind kind = Kind::kernel;
  std::string name;                  // "mul_mat_vec_f16_f32_f32", "MUL_MAT", "layer.attn"
  std::string type, shape, backend;  // "" where not known
  bool on_cpu = false;
  Rational times;
  std::optional<double> seconds;     // time of all its runs together
  std::optional<TimeRange> range{};  // absent unless all its calls report one
  std::set<std::string>
      labels{};  // labels of the command buffers that it is in; "" if not reported

  friend bool operator==(const Work&, const Work&) = default;
};

struct Side {
  std::map<std::string, MetricValue> metrics;  // by full name
  std::vector<Work> works;
  std::map<std::int64_t, double> layers{};  // seconds by layer, of works that report it
};

// A metric that a gate called changed, and by how much it did (relative, as Judgement::change).
struct GateChange {
  unit::Metric metric;
  std::optional<double> change{};
};

// The verdict of a gate about a cell.
struct CellRuling {
  verdict::Outcome cell = verdict::Outcome::pass;
  verdict::Outcome kernels = verdict::Outcome::info, placement = verdict::Outcome::info;
  std::string
      reason;  // reason of the first judgement that is not "pass", one line; "" if there is none
  // Metrics that it called changed (failed, improved or waived), by full name: a verdict keeps
  // one number a side, which is not enough to decide it again.
  std::map<std::string, GateChange> changed;
  std::vector<verdict::Finding> findings{};  // the gate's own: it knew the model and the true names
  std::set<std::string> not_allowed{};       // ops on the CPU that are not allowed there
  std::string not_compared{};                // as CellVerdict has it; "" if it was compared
};

struct Evidence {
  std::string cell;    // its name, or what was compared; as given
  std::string device;  // the device that was asked for: "vulkan"; "" if not known
  unit::Scope scope = unit::Scope::per_token;  // the unit of works
  std::optional<std::int64_t> length;          // the only length compared, for Scope::at_length
  Side before, after;
  bool kernels_known = false;  // both sides name the kernels of the device, at least what changed
  bool cpu_ops_known = false;  // both sides report which ops ran on the CPU of a device's cell
  // Both sides report every op of the graph and where it ran.
  bool graph_known = false;
  bool is_alone = false;    // one profile, used as both sides: nothing is compared
  bool same_graph = false;  // both sides report the same ops in the same places
  std::vector<verdict::KernelChange> code{};   // kernels with other code, or in other groups
  std::vector<verdict::Changed> calls{};       // system calls that changed, by name
  std::vector<verdict::Changed> read_backs{};  // the same of reads of few bytes
  std::vector<verdict::Changed> host_calls{};  // functions that Python calls more or less often
  std::vector<verdict::Changed> host_lines{};  // the same of lines that run
  std::optional<CellRuling> gate;              // only for evidence from a verdict
  std::optional<Fusible> fusible{};            // about the later side, if its profile is there
  // Counts of the later side that differ from run to run, by full name: compared with nothing.
  std::map<std::string, double> varying_counts{};
  // Additional dispatches at `length` for Scope::at_length, if `metrics` has none: computed from
  // those of the start and of each token.
  std::optional<Rational> more_dispatches{};
  std::vector<std::string>
      warnings;          // checks of the data against itself that failed, one line each
  bool has_work = true;  // false for a file without ops, kernels and counts, as of a load
};

// Two measured profiles of the same cell, or of two that one wants to compare.
[[nodiscard]] Evidence make_evidence(const profile::Profile& before, const profile::Profile& after);

// Both sides out of a verdict: metrics as they were judged, works only where they changed.
[[nodiscard]] Evidence make_evidence(const verdict::CellVerdict& cell);

// Reads two profilers' outputs. Works are per token if both sides separate decoding and report its
// tokens; else they are totals. If one side does not report the calls of a work, neither side has
// any.
[[nodiscard]] Evidence make_evidence(const observed::Observed& before,
                                     const observed::Observed& after);

// One profile alone: hints and the checklist, as far as they need no other.
[[nodiscard]] Evidence make_evidence(const profile::Profile& profile);
[[nodiscard]] Evidence make_evidence(const observed::Observed& observed);

// Selection of rows of two profilers' outputs. Used by this module alone.

// How two outputs can be compared. Only decoding is compared if both separate it; it is per token
// if both report the number of tokens. Then only rows of these tokens count.
struct Basis {
  bool decoding = false;
  bool per_token = false;
};
[[nodiscard]] Basis common_basis(const observed::Observed& before, const observed::Observed& after);

struct RowChoice {
  bool decoding = false;
  bool of_steps = false;
  std::int64_t tokens = 1;  // to divide by

  [[nodiscard]] bool takes(const observed::ObservedOp& op) const;
};
[[nodiscard]] RowChoice choose_rows(const observed::Observed& observed, const Basis& shared);

// Returns true if the category says so; a trace's calls of the CPU are no device work.
[[nodiscard]] bool is_device_work(const observed::ObservedOp& op);

}  // namespace weir::explain
