// What is known of two sides of one cell, in one shape, whatever it was read from.
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
struct Known {
  std::optional<Rational> exact;  // a count that does not vary
  std::vector<double> samples;    // else what runs gave, one number each
  std::vector<double> tokens{};   // those of each token that `exact` is the mean of, where told

  [[nodiscard]] double value() const;  // 0 where nothing is known
};

// Times of single calls, or of single command buffers: the shortest and longest of so many.
struct TimeRange {
  double least = 0, most = 0;  // seconds
  double times = 0;            // in all, not a unit

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
  std::optional<double> seconds;     // of all its times together
  std::optional<TimeRange> range{};  // absent where not all its calls tell one
  std::set<std::string> labels{};    // of the command buffers that it is in; "" where not told

  friend bool operator==(const Work&, const Work&) = default;
};

struct Side {
  std::map<std::string, Known> metrics;  // by full name
  std::vector<Work> works;
  std::map<std::int64_t, double> layers{};  // seconds of the works of each that tell their layer
};

// A metric that a gate called changed, and by how much it did (relative, as Judgement::change).
struct CalledChanged {
  unit::Metric metric;
  std::optional<double> change{};
};

// What a gate said of a cell.
struct CellRuling {
  verdict::Outcome cell = verdict::Outcome::pass;
  verdict::Outcome kernels = verdict::Outcome::info, placement = verdict::Outcome::info;
  std::string reason;  // of the first that is not "pass", one line; "" where there is none
  // Metrics that it called changed (failed, improved or accepted), by full name: a verdict keeps
  // one number a side, from which nobody could tell it again.
  std::map<std::string, CalledChanged> changed;
  std::vector<verdict::Finding> findings{};  // that it made: it knew the model and the true names
  std::set<std::string> not_allowed{};       // ops on the CPU that are not allowed there
};

struct Evidence {
  std::string cell;                            // its name, or what was compared; as given
  std::string device;                          // that was asked for: "vulkan"; "" where not known
  unit::Scope scope = unit::Scope::per_token;  // what works count by
  std::optional<std::int64_t> length;          // of Scope::at_length: the only one looked at
  Side before, after;
  bool kernels_known = false;  // both sides name the kernels of the device, at least what changed
  bool cpu_ops_known = false;  // both sides tell which ops ran on the CPU of a cell on a device
  // Both sides tell every op of the graph, with where it ran.
  bool graph_known = false;
  bool alone = false;       // one profile, which stands on both sides: nothing is compared
  bool same_graph = false;  // both sides tell its ops: the same ones, in the same place
  std::vector<verdict::OtherCode> code{};  // kernels with other code, or in other groups
  std::vector<verdict::Changed> calls{};   // system calls that changed, by name
  std::optional<CellRuling> gate;          // of evidence out of a verdict
  std::optional<Fusible> fusible{};        // of the later side, where its profile is there
  // Counts of the later side that differ from run to run, by full name: compared with nothing.
  std::map<std::string, double> unjudged{};
  // Of Scope::at_length, where `metrics` has no dispatches: how many more there are at `length`, by
  // those of the start and of each token.
  std::optional<Rational> more_dispatches{};
  std::vector<std::string> doubts;  // checks of the data against itself that failed, one line each
};

// Two measured profiles of the same cell, or of two that one wants to compare.
[[nodiscard]] Evidence evidence_of(const profile::Profile& before, const profile::Profile& after);

// Both sides out of a verdict: metrics as they were judged, works only where they changed.
[[nodiscard]] Evidence evidence_of(const verdict::CellVerdict& cell);

// What a profiler said of two runs. Works are per token where both sides tell decoding apart and
// how many tokens it was, else in all. A work whose calls one side does not tell has none on
// either.
[[nodiscard]] Evidence evidence_of(const observed::Observed& before,
                                   const observed::Observed& after);

// One profile alone: hints and the checklist, as far as they need no other.
[[nodiscard]] Evidence evidence_of(const profile::Profile& profile);
[[nodiscard]] Evidence evidence_of(const observed::Observed& observed);

// Which rows of two profilers' outputs are held against each other. Used by this module alone.

// Decoding is what is compared, where both sides tell it apart; per token, where both also say how
// many tokens it was. Then only rows that belong to those tokens count.
struct Shared {
  bool decoding = false;
  bool per_token = false;
};
[[nodiscard]] Shared shared_of(const observed::Observed& before, const observed::Observed& after);

struct RowChoice {
  bool decoding = false;
  bool of_steps = false;
  std::int64_t tokens = 1;  // to divide by

  [[nodiscard]] bool takes(const observed::ObservedOp& op) const;
};
[[nodiscard]] RowChoice rows_of_side(const observed::Observed& observed, const Shared& shared);

// By its category; what a trace says of the CPU's calls is none.
[[nodiscard]] bool is_device_work(const observed::ObservedOp& op);

}  // namespace weir::explain
