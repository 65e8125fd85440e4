// Differences between base and candidate, sorted by kind, and the patterns that explain them: one
// function each, in causal order. A difference that an earlier pattern claims is no cause for a
// later one. Used by this module alone.
//
//   moved.cpp     work that left the device for the CPU, or came back
//   kernels.cpp   what changed among kernels: pieces of work; variants (variants.cpp), fusions
//                 (fusions.cpp), work added and removed
//   products.cpp  matrix products that moved between the engine's kernels and a vendor's library
//   matrix_cores.cpp  attention and products that moved to or from the GPU's matrix cores; stream-k
//   tensor_kernels.cpp  names of PyTorch's and vLLM's kernels
//   code.cpp      other code behind the names of kernels
//   counts.cpp    batches, waits, sums of dispatches, barriers, splits, copies, context, the fixed
//                 part, and what is left
//   read_backs.cpp  values that the program reads back
//   memory.cpp    memory of devices, pipelines that are made late
//   host.cpp      system calls by name, threads
//   python.cpp    calls of Python's functions and those in C, lines
//   served.cpp    what a server says of itself: caches, drafts
//   times.cpp     works that take longer each time; rates, times and memory that nothing explains
//
// The items that a pattern claims before it adds a finding are the ones that this finding explains
// (claims.cpp).
#pragma once

#include <cmath>
#include <functional>
#include <utility>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/evidence.hpp"
#include "gate/explain/explain.hpp"
#include "gate/explain/fit.hpp"
#include "gate/profile/kernel_name.hpp"
#include "gate/unit/kernel_cost.hpp"

namespace weir::explain {

using profile::kernel_name;
using profile::KernelName;

inline constexpr Rational k_zero;  // 0
// A wait empties the device: about what ten dispatches cost.
inline constexpr double k_sync_units = 10;

// A row of WEIR_FINDING_KINDS.
struct FindingKind {
  enum class Effect { either, slower, faster, neither };  // on times, that it may have
  std::string_view name;
  Effect effect;
  std::string_view sentence, seems;
};
#define WEIR_KIND_ROW(name, effect, sentence, seems) \
  FindingKind{#name, FindingKind::Effect::effect, sentence, seems},
inline constexpr FindingKind k_finding_kinds[] = {WEIR_FINDING_KINDS(WEIR_KIND_ROW)};
#undef WEIR_KIND_ROW

// A kernel or op on both sides.
struct WorkChange {
  std::string name;
  Rational before, after;
  KernelName parsed;
  std::optional<double> seconds_before, seconds_after;
  std::optional<TimeRange> range_before{}, range_after{};
  std::set<std::string> labels{};  // as Work's, of both sides

  [[nodiscard]] Rational delta() const;
  [[nodiscard]] double absolute_delta() const;  // absolute value of the delta
  // The work it computes: "rms_norm_mul" of a kernel; of an op its own name, "MUL_MAT", without
  // shapes.
  [[nodiscard]] std::string work() const;
  [[nodiscard]] bool is_increase() const { return delta() > k_zero; }
};
using WorkChanges = std::vector<const WorkChange*>;
[[nodiscard]] WorkChanges pointers_to(const std::vector<WorkChange>& changes);
[[nodiscard]] WorkChanges select_changes(const std::vector<WorkChange>& changes, bool up);
[[nodiscard]] std::vector<KernelName> names_in(const WorkChanges& changes);
// The later count of a name less the earlier one; a side that lacks it counts 0.
[[nodiscard]] Rational delta_of(const verdict::Changed& entry);
// Sum of the deltas; one that does not fit a Rational is left out.
[[nodiscard]] Rational total_delta(const WorkChanges& changes);

struct Differences {
  struct Moved {
    unit::Metric metric;
    Rational delta;
  };
  std::map<std::string, Moved> moved;  // every count that differs beyond its noise, by full name
  // Counts that differ beyond their noise: base name -> change, by scope.
  std::map<std::string, Rational> counts;   // in the scope of the works
  std::map<std::string, Rational> fixed;    // counts of the start
  std::map<std::string, Rational> context;  // per token of context
  std::map<std::string, Rational> levels;   // counts of things that exist at once
  std::vector<std::string> unsteady;        // full names that only one side has as a slope
  std::vector<WorkChange> kernels;          // on the device, the largest change first
  std::vector<WorkChange> cpu_ops;          // on the CPU of a cell on a device
  std::vector<WorkChange> graph;            // ops wherever they ran, where both sides tell all
  std::vector<WorkChange> buffers;          // command buffers by label, per token
  std::vector<WorkChange> timed_buffers;    // the same with times on both sides, changed or not
  std::vector<WorkChange> timed;            // works with times on both sides, changed or not
  std::map<std::string, double> times;      // full name of what is no count -> ratio, beyond noise

  [[nodiscard]] Rational count(const std::string& base) const;  // 0 where it did not change
  [[nodiscard]] bool work_changed() const;        // anything but the fixed part and times
  [[nodiscard]] bool only_works_changed() const;  // no count and no memory, of the start neither
  [[nodiscard]] bool any() const;
};
[[nodiscard]] Differences find_differences(const Evidence& evidence);

// Returns the metric of this name. Of a metric that the gate called changed it is the gate's, which
// knows those that a configuration declares. Nothing for other names.
[[nodiscard]] std::optional<unit::Metric> metric_by_name(const Evidence& evidence,
                                                         const std::string& name);

// Returns true if something says where the work ran: a side reports each op's place, or these are
// the device's kernels.
[[nodiscard]] bool place_known(const Evidence& evidence, const WorkChange& work);

// "dispatches_per_token" of "dispatches" in the scope of the evidence; "" where there is none.
[[nodiscard]] std::string metric_name(const Evidence& evidence, const std::string& base);
// Returns true if both sides counted it, exactly or not.
[[nodiscard]] bool both_sides_count(const Evidence& evidence, const std::string& base);
// A count of `base` that is exact on both sides.
struct ExactCounts {
  Rational before, after;
  [[nodiscard]] std::optional<Rational> delta() const { return after.minus(before); }
};
[[nodiscard]] std::optional<ExactCounts> exact_counts(const Evidence& evidence,
                                                      const std::string& base);
// The same by the metric's whole name.
[[nodiscard]] std::optional<ExactCounts> exact_values(const Evidence& evidence,
                                                      const std::string& name);

// Returns a finding for each rule that holds, in the order of the rules.
[[nodiscard]] std::vector<Finding> user_findings(const Evidence& evidence,
                                                 const Differences& differences,
                                                 const std::vector<Rule>& rules);

[[nodiscard]] std::vector<Hint> find_hints(const Evidence& evidence, const Bands& bands);
// Answers the questions of the checklist; some answers follow from the findings.
[[nodiscard]] std::vector<Check> fill_checklist(const Evidence& evidence, const Options& options,
                                                const std::vector<Finding>& findings);

[[nodiscard]] Finding make_finding(const char* kind, std::string metric = "");

// Everything that the patterns read, and the findings they add.
struct ExplainState {
  const Evidence& evidence;
  const Differences& differences;
  const ModelFacts* model;  // may be null

  struct Entry {
    Finding finding;
    double units = 0;                  // how much it explains; a dispatch is 1
    int rank = 0;                      // smaller goes before larger, whatever the units
    std::vector<std::string> items{};  // the claimed ones that it explains
  };
  std::vector<Entry> entries{};
  std::set<std::string> claimed_items{};     // "syncs", "kernel rms_norm_f32", …
  std::vector<std::string> pending_items{};  // claimed ones for the finding that is added next
  // Claimed ones that no finding explains: they follow from the rest.
  std::vector<std::string> unattributed_items{};

  [[nodiscard]] bool is_unexplained(const std::string& item) const {
    return !claimed_items.contains(item);
  }
  [[nodiscard]] bool is_unexplained(const WorkChange& kernel) const {
    return is_unexplained("kernel " + kernel.name);
  }
  // Marks an item as explained by the finding that is added next, unless a finding explains it
  // already. Later patterns then pass over it.
  void mark_explained(const std::string& item) {
    if (claimed_items.insert(item).second) pending_items.push_back(item);
  }
  void mark_explained(const WorkChanges& kernels);
  void mark_all_explained(std::initializer_list<const char*> items) {
    for (const char* item : items) mark_explained(item);
  }
  // The change of a count that no finding has claimed; else 0.
  [[nodiscard]] Rational unexplained_change(const std::string& base) const {
    return is_unexplained(base) ? differences.count(base) : k_zero;
  }
  void add(Finding finding, double units, int rank = 1) {
    entries.push_back({std::move(finding), units, rank, std::exchange(pending_items, {})});
  }
  template <class Predicate>
  [[nodiscard]] bool any_entry(const Predicate& predicate) const {
    return std::ranges::any_of(entries, predicate);
  }
  void end_pattern() {
    std::ranges::move(std::exchange(pending_items, {}), std::back_inserter(unattributed_items));
  }

  // Returns a finding of this kind about a count, with the count's metric and delta.
  [[nodiscard]] Finding finding_about(const char* kind, const std::string& base) const;
  [[nodiscard]] std::string per_unit_text() const;  // " a token", or ""
};

using Pattern = void(ExplainState& state);
Pattern find_served, find_batches, find_graphs, find_unfused, find_moved, find_read_backs,
    find_syncs, find_pieces, find_products, find_matrix_cores, find_stream_k, find_tensor_kernels,
    find_kernels, find_totals, find_barriers, find_submits, find_code, find_splits, find_copies,
    find_context, find_slow, find_fixed, find_memory, find_made_late, find_python, find_calls,
    find_threads, find_rest, find_times;

// Fills Finding::claims of the entries, which are in the order in which they are reported. Without
// a gate there are no judgements to claim. Each judgement belongs to one finding: a finding that
// follows from another leaves its claims to that one.
void add_claims(ExplainState& state);

// Adds each amount to `finding` as a line, as a multiple of the model's layers if it is one. Fills
// the finding's layers, tensors and per_layer from the first amount, and adds how likely the fit is
// by chance. Returns the best fit; nothing if none is worth reporting.
std::optional<Fit> add_amounts(const ExplainState& state, const std::vector<Amount>& amounts,
                               Finding& finding);
// Adds an amount to `finding`, its line and its number, without fitting it to layers.
void add_number(const Amount& amount, Finding& finding);
// Returns the changes of those counts in `bases` that changed, by readable name ("syncs").
[[nodiscard]] std::vector<Amount> changed_amounts(const ExplainState& state,
                                                  const std::vector<std::string>& bases);
// Adds another set of layers that fits some of the amounts, as a finding of its own.
void add_also(ExplainState& state, const std::vector<Amount>& amounts, const Fit& best);

[[nodiscard]] Rational magnitude(const Rational& value);     // without its sign
[[nodiscard]] double absolute_value(const Rational& value);  // the same
// Returns true if both changed in the same direction.
[[nodiscard]] bool same_sign(const Rational& a, const Rational& b);
// Returns true for calls of a vendor's library of matrix products: "hipblasGemmEx".
[[nodiscard]] bool is_library_call(std::string_view kernel);
// Returns true if exactly one of the counts is 0: something appeared, or is gone.
[[nodiscard]] bool is_on_one_side(const Rational& before, const Rational& after);
// "copied bytes" of "copied_bytes".
[[nodiscard]] std::string readable_name(std::string base);
// "+9 mul_f32", at most `most` of them, then "and 3 more".
[[nodiscard]] std::string changes_text(const WorkChanges& changes, std::size_t max_changes = 5);
// Hostile names as one short line.
[[nodiscard]] std::string safe_name(std::string_view name);
// "main@ec2ac0f063322dd0": a hash of its code, as the program gave it no name.
[[nodiscard]] bool has_no_name(std::string_view kernel);
// "once a token", "8 times a token", "1/2 times a token"; without a sign.
[[nodiscard]] std::string frequency_text(const Rational& times, unit::Scope scope);

}  // namespace weir::explain
