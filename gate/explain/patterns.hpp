// What differs between two sides, sorted by what it is, and the patterns that it is held against,
// one function each, in causal order: what an earlier one claims is no cause for a later one. Used
// by this module alone.
//
//   moved.cpp     work that left the device for the CPU, or came back
//   kernels.cpp   what changed among kernels: pieces of work; variants (variants.cpp), fusions
//                 (fusions.cpp), work added and removed
//   code.cpp      other code behind the names of kernels
//   counts.cpp    batches, waits, sums of dispatches, barriers, splits, copies, context, the fixed
//                 part, and what is left
//   memory.cpp    memory of devices, pipelines that are made late
//   host.cpp      system calls by name, threads
//   served.cpp    what a server says of itself: caches, drafts
//   times.cpp     works that take longer each time; rates, times and memory that nothing explains
//
// What a pattern takes before it adds a finding is what that finding explains (claims.cpp).
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

inline constexpr Rational k_none;

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
struct Move {
  std::string name;
  Rational before, after;
  KernelName parsed;
  std::optional<double> seconds_before, seconds_after;
  std::optional<TimeRange> range_before{}, range_after{};
  std::set<std::string> labels{};  // as Work's, of both sides

  [[nodiscard]] Rational delta() const;
  [[nodiscard]] double size() const;  // of the delta, without its sign
  // What it computes: "rms_norm_mul" of a kernel; of an op its own name, "MUL_MAT", without shapes.
  [[nodiscard]] std::string work() const;
  [[nodiscard]] bool up() const { return delta() > k_none; }
};
using Moves = std::vector<const Move*>;
[[nodiscard]] Moves pointers_to(const std::vector<Move>& moves);
[[nodiscard]] Moves one_way(const std::vector<Move>& moves, bool up);
[[nodiscard]] std::vector<KernelName> names_in(const Moves& moves);
// Of the deltas; what does not fit a Rational is left out.
[[nodiscard]] Rational sum_of(const Moves& moves);

struct Differences {
  struct Moved {
    unit::Metric metric;
    Rational delta;
  };
  std::map<std::string, Moved> moved;  // every count that differs beyond its noise, by full name
  // Counts that differ beyond their noise: base name -> change, by scope.
  std::map<std::string, Rational> counts;   // in the scope of the works
  std::map<std::string, Rational> fixed;    // of the start
  std::map<std::string, Rational> context;  // per token of context
  std::map<std::string, Rational> levels;   // of how much there is at once
  std::vector<std::string> unsteady;        // full names that only one side has as a slope
  std::vector<Move> kernels;                // on the device, the largest change first
  std::vector<Move> cpu_ops;                // on the CPU of a cell on a device
  std::vector<Move> graph;                  // ops wherever they ran, where both sides tell all
  std::vector<Move> buffers;                // command buffers by label, per token
  std::vector<Move> timed_buffers;          // the same with times on both sides, changed or not
  std::vector<Move> timed;                  // works with times on both sides, changed or not
  std::map<std::string, double> times;      // full name of what is no count -> ratio, beyond noise

  [[nodiscard]] Rational count(const std::string& base) const;  // 0 where it did not change
  [[nodiscard]] bool work_changed() const;  // anything but the fixed part and times
  [[nodiscard]] bool only_works() const;    // no count and no memory, of the start neither
  [[nodiscard]] bool any() const;
};
[[nodiscard]] Differences differences_of(const Evidence& evidence);

// What a name says; of those that a gate called changed also what it said, which knows those that
// a config declares. Nothing for other names.
[[nodiscard]] std::optional<unit::Metric> metric_of(const Evidence& evidence,
                                                    const std::string& name);

// Something says where it ran: a side tells each op's place, or that these are a device's kernels.
[[nodiscard]] bool place_known(const Evidence& evidence, const Move& work);

// "dispatches_per_token" of "dispatches" in the scope of the evidence; "" where there is none.
[[nodiscard]] std::string metric_name(const Evidence& evidence, const std::string& base);
// Both sides counted it, exactly or not.
[[nodiscard]] bool counted(const Evidence& evidence, const std::string& base);
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

// One finding a rule that holds, in the order of the rules.
[[nodiscard]] std::vector<Finding> user_findings(const Evidence& evidence, const Differences& found,
                                                 const std::vector<Rule>& rules);

[[nodiscard]] std::vector<Hint> hints_of(const Evidence& evidence, const Bands& bands);
// The findings answer some of it.
[[nodiscard]] std::vector<Check> checklist_of(const Evidence& evidence, const Options& options,
                                              const std::vector<Finding>& findings);

[[nodiscard]] Finding finding_of(const char* kind, std::string metric = "");

// What the patterns look at and write on.
struct Board {
  const Evidence& evidence;
  const Differences& found;
  const ModelFacts* model;  // may be null

  struct Entry {
    Finding finding;
    double units = 0;                  // how much it explains; a dispatch is 1
    int rank = 0;                      // smaller goes before larger, whatever the units
    std::vector<std::string> items{};  // of `taken`: what it explains
  };
  std::vector<Entry> entries{};
  std::set<std::string> taken{};       // "syncs", "kernel rms_norm_f32", …
  std::vector<std::string> pending{};  // of these, for the finding that is added next
  // Taken for no finding: these follow from what is told of the rest.
  std::vector<std::string> followed{};

  [[nodiscard]] bool free(const std::string& item) const { return !taken.contains(item); }
  [[nodiscard]] bool free(const Move& kernel) const { return free("kernel " + kernel.name); }
  void take(const std::string& item) {
    if (taken.insert(item).second) pending.push_back(item);
  }
  void take(const Moves& kernels);
  void take_all(std::initializer_list<const char*> all) {
    for (const char* item : all) take(item);
  }
  // The change of a count that nothing has claimed; 0 where there is none.
  [[nodiscard]] Rational open(const std::string& base) const {
    return free(base) ? found.count(base) : k_none;
  }
  void add(Finding finding, double units, int rank = 1) {
    entries.push_back({std::move(finding), units, rank, std::exchange(pending, {})});
  }
  template <class Is>
  [[nodiscard]] bool any_entry(const Is& is) const {
    return std::ranges::any_of(entries, is);
  }
  void end_pattern() {
    std::ranges::move(std::exchange(pending, {}), std::back_inserter(followed));
  }

  // A finding about this count, with its metric and delta.
  [[nodiscard]] Finding about(const char* kind, const std::string& base) const;
  [[nodiscard]] std::string per() const;  // " a token", or ""
};

using Pattern = void(Board& board);
Pattern find_served, find_batches, find_graphs, find_moved, find_syncs, find_pieces, find_kernels,
    find_totals, find_barriers, find_submits, find_code, find_splits, find_copies, find_context,
    find_slow, find_fixed, find_memory, find_made_late, find_calls, find_threads, find_rest,
    find_times;

// Fills Finding::claims of the entries, which are in the order in which they are told. Without a
// gate there are no judgements to claim. Each has one finding: what follows from another leaves its
// claims to that.
void add_claims(Board& board);

// Writes each amount as a line, held against the model's layers where that fits, and fills the
// finding's layers, tensors and per_layer from the first of them. Says how surprising the fit is.
// The best fit comes back; nothing where none is worth telling.
std::optional<Fit> arithmetic(const Board& board, const std::vector<Amount>& amounts,
                              Finding& finding);
// An amount that is held against no layers: its line and its number.
void add_number(const Amount& amount, Finding& finding);
// Amounts of these counts that changed, by what people call them ("syncs").
[[nodiscard]] std::vector<Amount> amounts_of(const Board& board,
                                             const std::vector<std::string>& bases);
// Another set of layers that fits some of the amounts, as a finding of its own.
void add_also(Board& board, const std::vector<Amount>& amounts, const Fit& best);

[[nodiscard]] Rational magnitude(const Rational& value);  // without its sign
[[nodiscard]] double size_of(const Rational& value);      // the same
// Both changed: both are more, or both are less.
[[nodiscard]] bool same_way(const Rational& a, const Rational& b);
// "copied bytes" of "copied_bytes".
[[nodiscard]] std::string plain(std::string base);
// "+9 mul_f32", at most `most` of them, then "and 3 more".
[[nodiscard]] std::string move_words(const Moves& moves, std::size_t most = 5);
// Hostile names as one short line.
[[nodiscard]] std::string safe(std::string_view name);
// "main@ec2ac0f063322dd0": a hash of its code, as the program gave it no name.
[[nodiscard]] bool has_no_name(std::string_view kernel);
// "once a token", "8 times a token", "1/2 times a token"; without a sign.
[[nodiscard]] std::string times_words(const Rational& times, unit::Scope scope);

}  // namespace weir::explain
