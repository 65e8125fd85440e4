// Patterns of counts alone: batches, waits, sums of dispatches, barriers, splits, copies, growth
// with the context, the fixed part, and the rest.
#include <cctype>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

std::string capitalized(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

// Counts as amounts, and their sum in units. Bytes add no units, because they are no work.
struct Counts {
  std::vector<Amount> amounts;
  double units = 0;
};
Counts sum_counts(const std::map<std::string, Rational>& counts, double weight = 1,
                  const std::string& words = "") {
  Counts result;
  for (const auto& [base, delta] : counts) {
    result.amounts.push_back({readable_name(base) + words, delta});
    if (!base.ends_with("_bytes")) result.units += weight * absolute_value(delta);
  }
  return result;
}

// --- the same work in more or fewer batches: every count is multiplied ---------------------------

// Returns after / before of a count; nothing unless it is exact and above 0 on both sides.
std::optional<double> count_ratio(const ExplainState& state, const std::string& base) {
  const auto both = exact_counts(state.evidence, base);
  if (!both || both->before <= k_zero || both->after <= k_zero) return std::nullopt;
  return both->after.value() / both->before.value();
}

// Returns the whole number, 2 to 1024, by which the counts of most kernels were multiplied
// (`is_increase`) or divided; 1 if there is none.
std::int64_t common_count_factor(const ExplainState& state, bool is_increase) {
  std::map<std::int64_t, int> factors;
  int kernels_on_both_sides = 0;
  for (const WorkChange& change : state.differences.kernels) {
    const Rational& small = is_increase ? change.before : change.after;
    const Rational& large = is_increase ? change.after : change.before;
    if (small == k_zero || large == k_zero) continue;
    ++kernels_on_both_sides;
    const double factor = large.value() / small.value();
    if (factor >= 2 && factor <= 1024 && factor == std::floor(factor)) {
      ++factors[static_cast<std::int64_t>(factor)];
    }
  }
  const auto* match = find_first(factors, [&](const auto& entry) {
    return entry.second >= 4 && entry.second * 2 > kernels_on_both_sides;
  });
  return match == nullptr ? 1 : match->first;
}

// Adds the finding that the same work runs in more or fewer batches. It explains every changed
// count and kernel.
void add_batch_finding(ExplainState& state, const std::string& base, bool more,
                       std::string headline) {
  Finding finding = state.finding_about(kind::batches_changed, base);
  finding.headline = std::move(headline);
  for (const Amount& amount : changed_amounts(state, {"graphs", "dispatches", "syncs"})) {
    add_number(amount, finding);
  }
  if (more) finding.cause = "the batch is limited (-b, -ub), or requests are not taken together.";
  finding.look_at = "batch sizes among the arguments, and the engine's defaults.";
  for (const auto& [count, delta] : state.differences.counts) state.mark_explained(count);
  for (const bool is_increase : {true, false})
    state.mark_explained(select_changes(state.differences.kernels, is_increase));
  state.mark_explained("moves");
  state.add(std::move(finding), /*units=*/sum_counts(state.differences.counts).units, /*rank=*/0);
}

// Finds a change of batches when graphs were not counted: all kernels and the waits changed by one
// factor. Layers that moved to the CPU would not divide the waits.
void find_batches_by_kernels(ExplainState& state) {
  const auto syncs = count_ratio(state, "syncs");
  if (!syncs) return;
  for (const bool is_increase : {true, false}) {
    const std::int64_t factor = common_count_factor(state, is_increase);
    if (factor < 2) continue;
    const double log_factor = is_increase ? std::log(factor) : -std::log(factor);
    if (std::fabs(std::log(*syncs) - log_factor) > 1e-9) continue;
    const std::string times = is_increase ? fmt::format("{}", factor) : fmt::format("1/{}", factor);
    const char* batches = is_increase ? "more, smaller" : "fewer, larger";
    return add_batch_finding(
        state, "dispatches", is_increase,
        fmt::format("The same kernels run {} times as often: the work is done in {} batches.",
                    times, batches));
  }
}

// --- waits of the CPU for the device: by layer, or not -------------------------------------------

// Returns "twice in each layer that has blk.*.ssm_* tensors".
std::string layers_phrase(const Fit& fit, std::int64_t per_layer) {
  const std::string expert =
      fit.set.experts > 1 ? fmt::format(" for each of {} experts", fit.set.experts) : "";
  const std::string tensors =
      fit.set.tensors.empty() ? "" : " that has " + safe_name(fit.set.tensors);
  return fmt::format("{}{} in each layer{}", frequency_text(per_layer, unit::Scope::whole_run),
                     expert, tensors);
}

// Returns a hint based on the layers without the change.
std::string where_to_look(const ExplainState& state, const Fit& fit) {
  const auto rest = state.model->layers - static_cast<std::int64_t>(fit.set.layers.size());
  if (rest <= 0) return "what every layer does between its first and its last kernel.";
  const char* verb = rest == 1 ? "does" : "do";
  return fmt::format("what those layers do that the other {} {} not.", rest, verb);
}

// Adds the finding that the CPU waits for the device in each of the layers of `fit`. It explains
// those of `amounts` that are multiples of these layers.
void add_sync_per_layer(ExplainState& state, const std::vector<Amount>& amounts, const Fit& fit,
                        Finding finding) {
  const bool is_increase = amounts.front().delta > k_zero;
  finding.kind = is_increase ? kind::sync_per_layer : kind::sync_removed;
  const char* change = is_increase ? "came in between GPU steps" : "between GPU steps is gone";
  finding.headline = fmt::format("A CPU step {}, {}.", change,
                                 layers_phrase(fit, std::abs(fit.term(0)->per_layer)));
  if (is_increase) {
    finding.cause =
        "a split or copy moved from a kernel to the CPU, which has to wait for the GPU before and "
        "after.";
    finding.look_at = where_to_look(state, fit);
  }
  state.mark_explained("syncs");
  double units = k_sync_units * absolute_value(amounts.front().delta);
  for (const Term& term : fit.terms) {
    if (term.amount == 0) continue;
    state.mark_explained(amounts[term.amount].name);
    units += absolute_value(amounts[term.amount].delta);
  }
  state.add(std::move(finding), units);
  add_also(state, amounts, fit);
}

// --- dispatches of which only the sum is known ---------------------------------------------------

// Returns true if both sides say whether an op ran on the CPU: by name, or as a count.
bool knows_op_places(const Evidence& evidence) {
  return evidence.cpu_ops_known || evidence.graph_known || evidence.device == "cpu" ||
         both_sides_count(evidence, "cpu_ops");
}

// Rewrites the finding if a backend now runs whole layers as one dispatch each: "30 = 24 layers +
// 6". Returns false, without a change, if there are too many dispatches for that.
bool set_dispatch_per_layer(const ExplainState& state, Finding& finding) {
  const auto both = exact_counts(state.evidence, "dispatches");
  if (state.model == nullptr || state.model->layers < 8 || !both || !both->after.is_integer()) {
    return false;
  }
  const std::int64_t layers = state.model->layers;
  const std::int64_t rest = both->after.numerator() - layers;
  if (rest < 0 || rest > layers / 2 || both->before.value() < 4 * both->after.value()) return false;
  finding.kind = kind::fusion_gained;
  const char* run = knows_op_places(state.evidence) ? "run" : "seem to run";
  std::string sum = fmt::format("{} layers", layers);
  if (rest > 0) sum += fmt::format(" + {}", rest);
  finding.headline =
      fmt::format("Whole layers {} as one dispatch each: {} = {}.", run, both->after.str(), sum);
  finding.layers.clear();
  for (std::int64_t layer = 0; layer < layers; ++layer) finding.layers.push_back(layer);
  return true;
}

// Returns the headline for more or fewer dispatches, per layer if the finding has that number.
// `is_certain`: work that is missing did not move to the CPU.
std::string total_headline(const ExplainState& state, const Finding& finding, bool more,
                           bool is_certain) {
  if (!finding.per_layer) {
    if (more) {
      const auto& gate = state.evidence.gate;
      const bool is_compared = !gate || gate->not_compared.empty();
      return fmt::format(
          "{} more dispatches; {}, so no cause is known.",
          finding.delta ? finding.delta->str() : "There are",
          is_compared ? "no kernel names were counted" : "kernels were not compared");
    }
    return is_certain ? "Fewer dispatches do the work: it is fused."
                      : "Fewer dispatches: the work is fused, or done elsewhere.";
  }
  const auto per_layer = std::abs(*finding.per_layer);
  std::string layers = finding.layers.empty() ? "" : " in each layer";
  if (!finding.layers.empty() && !finding.tensors.empty()) {
    layers += " that has " + safe_name(finding.tensors.front());
  }
  std::string reason = is_certain ? "they are fused" : "fused, or done elsewhere";
  if (more) reason = "a fusion is lost, or work was added";
  const char* dispatches = per_layer == 1 ? "dispatch" : "dispatches";
  return fmt::format("{} {} {}{}: {}.", per_layer, more ? "more" : "fewer", dispatches, layers,
                     reason);
}

// Returns true if the number of waits follows the dispatches: one for each, or one for every few.
bool changes_with(const ExactCounts& waits, const ExactCounts& works) {
  constexpr double k_min_waits = 4;
  const double before = waits.before.value(), after = waits.after.value();
  const auto rest_before = waits.before.minus(works.before),
             rest_after = waits.after.minus(works.after);
  if (rest_before && rest_after && *rest_before >= k_zero && *rest_before == *rest_after) {
    return true;
  }
  if (before < k_min_waits || works.before == k_zero) return false;
  const double expected = before * works.after.value() / works.before.value();
  return works.before != works.after && std::fabs(expected - after) < 1;
}

// Returns true if tensors now pass through other memory: the engine moves the same ones as before
// (ggml's counts say so), but the device needs a copy and a wait for some.
bool goes_through_staging(const ExplainState& state, const Rational& waits) {
  if (waits != state.unexplained_change("copies") ||
      !both_sides_count(state.evidence, "tensor_sets")) {
    return false;
  }
  constexpr std::array k_moves = {"tensor_sets", "tensor_gets", "tensor_copies", "uploaded_bytes"};
  return std::ranges::all_of(
      k_moves, [&](const char* base) { return state.differences.count(base) == k_zero; });
}

// Adds a finding if the same kernels and copies are sent in another number of submissions, each of
// which the CPU waits for. Returns true if it was added.
bool find_submissions(ExplainState& state, const ExactCounts& waits) {
  const Rational k_min_submits(4);
  const auto submits = exact_counts(state.evidence, "submits");
  const bool is_each_waited_for = submits && submits->before == waits.before &&
                                  submits->after == waits.after && waits.before >= k_min_submits &&
                                  waits.after >= k_min_submits;
  const bool is_same_work = state.differences.count("dispatches") == k_zero &&
                            state.differences.kernels.empty() &&
                            state.unexplained_change("copies") == k_zero;
  if (!is_each_waited_for || !is_same_work) return false;
  Finding finding = state.finding_about(kind::submits_changed, "submits");
  finding.headline = fmt::format(
      "The same work is sent in {} submissions, each waited for: {}, before {}.",
      waits.after > waits.before ? "more" : "fewer", submits->after.str(), submits->before.str());
  finding.look_at = "after how many kernels, or when, the engine submits.";
  state.mark_all_explained({"submits", "syncs", "backend_syncs"});
  state.add(std::move(finding),
            /*units=*/k_sync_units * absolute_value(state.differences.count("submits")));
  return true;
}

// Returns the one new op that may be waited for each time it runs and whose place nothing reports.
// Null if there is none or several.
const WorkChange* find_op_to_wait_for(const ExplainState& state, const Rational& waits) {
  const WorkChange* result = nullptr;
  for (const WorkChange& change : state.differences.kernels) {
    if (change.before != k_zero || change.delta() > waits) continue;
    if (result != nullptr || place_known(state.evidence, change)) return nullptr;
    result = &change;
  }
  return result;
}

// Returns true if so many barriers come with the dispatches: at most one before and one after each.
bool explained_by_dispatches(const Rational& barriers, const Rational& dispatches) {
  return absolute_value(barriers) <= 2 * absolute_value(dispatches) + 2;
}

// Returns "15 more barriers beside each of 16 more dispatches"; "" if it does not divide evenly.
std::string barriers_per_dispatch(const Rational& barriers, const Rational& dispatches) {
  const auto each = std::abs(barriers.numerator()),
             dispatch_count = std::abs(dispatches.numerator());
  if (!barriers.is_integer() || !dispatches.is_integer() || dispatch_count < 2 ||
      each % dispatch_count != 0) {
    return "";
  }
  const std::string_view more = barriers > k_zero ? "more" : "fewer";
  return fmt::format("{} {} barriers beside each of {} {} dispatches", each / dispatch_count, more,
                     dispatch_count, more);
}

}  // namespace

// Finds that the same work is done in more or fewer batches: computed graphs and their work are
// multiplied by about the same factor.
void find_batches(ExplainState& state) {
  const std::string name = metric_name(state.evidence, "graphs");
  if (name.empty()) return find_batches_by_kernels(state);
  const auto graphs = count_ratio(state, "graphs");
  if (state.unexplained_change("graphs") == k_zero || !graphs) return;
  const auto dispatches = count_ratio(state, "dispatches");
  const auto work = dispatches ? dispatches : count_ratio(state, "cpu_ops");
  if (!work) return;
  const bool more = *graphs > 1, more_work = *work > 1;
  const bool is_much = std::fabs(std::log(*work)) >= 0.5 * std::fabs(std::log(*graphs));
  if (more != more_work || !is_much) return;
  const auto graph_counts = exact_counts(state.evidence, "graphs");
  add_batch_finding(state, "graphs", more,
                    fmt::format("The same work is done in {} batches: {} graphs{}, before {}.",
                                more ? "more, smaller" : "fewer, larger", graph_counts->after.str(),
                                state.per_unit_text(), graph_counts->before.str()));
}

// Finds that graphs of CUDA or HIP are used on one side only. Such a graph, unlike ggml's, gives
// the device many kernels with one call.
void find_graphs(ExplainState& state) {
  const auto launches = exact_counts(state.evidence, "graph_launches");
  if (!launches || !is_on_one_side(launches->before, launches->after)) return;
  const auto dispatches = exact_counts(state.evidence, "dispatches");
  // A side that runs no kernels has no use for graphs.
  if (dispatches && (dispatches->before == k_zero || dispatches->after == k_zero)) return;
  const bool is_lost = launches->after == k_zero;
  Finding finding =
      state.finding_about(is_lost ? kind::graphs_lost : kind::graphs_gained, "graph_launches");
  finding.headline = is_lost ? "GPU graphs are no longer used: each kernel is handed over alone."
                             : "GPU graphs are now used: many kernels are handed over at once.";
  if (is_lost) {
    finding.cause =
        "a switch of the engine, work that cannot be captured, or a graph that never settles.";
    finding.look_at =
        "when the engine captures: copies between devices, buffers that move, new shapes.";
  }
  const double units = absolute_value(state.unexplained_change("submits")) + 1;
  state.mark_all_explained({"graph_launches", "graph_instantiations", "submits"});
  state.add(std::move(finding), units, /*rank=*/0);
}

// Finds that the CPU waits for the device more or less often: in each layer, per new copy, or for
// another reason.
void find_syncs(ExplainState& state) {
  // Waits are counted by the device, or else by the engine.
  const std::string base = metric_name(state.evidence, "syncs").empty() ? "backend_syncs" : "syncs";
  const Rational delta = state.unexplained_change(base);
  if (delta == k_zero) return;
  const bool more = delta > k_zero;
  std::vector<std::string> bases = {base};
  // Kernels explain dispatches better than a sum does.
  if (state.differences.kernels.empty()) bases.emplace_back("dispatches");
  for (const char* count : {"barriers", "copies", "submits"}) {
    if (state.unexplained_change(count) != k_zero) bases.emplace_back(count);
  }
  // An engine that waits after each dispatch waits as often as it dispatches.
  const auto waits = exact_counts(state.evidence, base);
  const auto works = exact_counts(state.evidence, "dispatches");
  if (waits && find_submissions(state, *waits)) return;
  const bool per_dispatch = waits && works && changes_with(*waits, *works);
  if ((more || state.differences.kernels.empty()) && !per_dispatch) {
    Finding finding = state.finding_about(kind::sync_per_layer, base);
    const std::vector<Amount> amounts = changed_amounts(state, bases);
    const auto fit = add_amounts(state, amounts, finding);
    if (fit && fit->chance <= k_by_chance && fit->set.size() >= 2 && base == "syncs" &&
        fit->term(0)->rest == 0) {
      return add_sync_per_layer(state, amounts, *fit, std::move(finding));
    }
  }
  // Each part of the graph, copied tensor and new copy is waited for.
  const Rational splits = state.unexplained_change("splits");
  const bool follows_splits =
      same_sign(splits, delta) && absolute_value(delta) <= 2 * absolute_value(splits);
  const bool is_staged = goes_through_staging(state, delta);
  const bool is_per_copy = more && !per_dispatch && !follows_splits && !is_staged &&
                           delta == state.unexplained_change("copies");
  Finding finding = state.finding_about(more ? kind::sync_added : kind::sync_removed, base);
  add_amounts(state, changed_amounts(state, {base}), finding);
  const std::string per = state.per_unit_text();
  finding.headline = state.evidence.device == "cpu" ? "The engine waits for its backend"
                                                    : "The CPU waits for the GPU";
  finding.headline += more ? " more often" : " less often";
  if (!per.empty()) finding.headline += " in" + per;
  if (is_per_copy) finding.headline += ": once per new copy";
  finding.headline += ".";
  if (is_per_copy) {
    add_number({"copies", delta}, finding);
    state.mark_explained("copies");
  }
  if (more && !per_dispatch) {
    finding.cause = "results read back or written in between, or work no longer sent ahead.";
    finding.look_at = "what runs between two submissions: a read, a copy to the host, a log.";
    if (const WorkChange* op = find_op_to_wait_for(state, delta)) {
      finding.cause = fmt::format(
          "{} is new ({} times{}): if it runs on the CPU, it waits for the GPU before and after.",
          safe_name(op->name), op->after.str(), per);
      finding.look_at = fmt::format("where {} runs: nothing here says it.", safe_name(op->name));
    }
  }
  state.mark_explained(base);
  state.mark_explained("backend_syncs");
  // Removed work is no longer waited for, so that finding comes first. A removed CPU step takes a
  // wait and at most one dispatch along.
  const bool work_removed =
      !state.differences.kernels.empty() || state.unexplained_change("dispatches") < delta;
  const bool follows = per_dispatch || follows_splits || (!more && work_removed) || is_staged;
  state.add(std::move(finding), /*units=*/k_sync_units * absolute_value(delta),
            /*rank=*/follows ? 2 : 1);
}

// Finds more or fewer dispatches (kernel launches) if no kernel has a name: a fusion was lost or
// gained, or work was added or removed.
void find_totals(ExplainState& state) {
  const Rational dispatches = state.unexplained_change("dispatches");
  if (!state.differences.kernels.empty() || dispatches == k_zero) return;
  const bool is_increase = dispatches > k_zero, is_certain = knows_op_places(state.evidence);
  // Removed work may be done elsewhere, or not at all.
  const char* kind = is_certain ? kind::fusion_gained : kind::op_removed;
  if (is_increase) kind = kind::op_added;
  Finding finding = state.finding_about(kind, "dispatches");
  std::vector<Amount> amounts = changed_amounts(state, {"dispatches"});
  // Barriers stand between dispatches: they come and go with them, unless there are more.
  const Rational barriers = state.unexplained_change("barriers");
  if (same_sign(barriers, dispatches) && explained_by_dispatches(barriers, dispatches)) {
    amounts.push_back({"barriers", barriers});
    state.mark_explained("barriers");
  }
  const auto fit = add_amounts(state, amounts, finding);
  // New work is seldom the same in each layer.
  if (is_increase && finding.per_layer) finding.kind = kind::fusion_lost;
  if (is_increase || !set_dispatch_per_layer(state, finding)) {
    finding.headline = total_headline(state, finding, is_increase, is_certain);
  }
  if (is_increase) {
    finding.look_at = "kernels by name: weir profile, or an engine that names them.";
  } else if (!is_certain) {
    finding.look_at = "whether the CPU does what is gone: only a probe that sees ops can tell.";
  }
  state.mark_explained("dispatches");
  state.add(std::move(finding), absolute_value(dispatches));
  if (fit) add_also(state, amounts, *fit);
}

// Finds barriers that changed by more than dispatches, copies and other findings explain.
void find_barriers(ExplainState& state) {
  const Rational barriers = state.unexplained_change("barriers");
  if (barriers == k_zero) return;
  state.mark_explained("barriers");
  const bool more = barriers > k_zero;
  const std::optional<Rational>& by_line = state.evidence.more_dispatches;
  const Rational dispatches = by_line.value_or(state.differences.count("dispatches"));
  const Rational copies = state.differences.count("copies");
  const bool kernels_differ = !state.differences.kernels.empty();
  const bool with_dispatches = same_sign(dispatches, barriers);
  // A copy has one barrier before it and one after: if no dispatch changed, they came with the
  // copies.
  const bool with_copies = same_sign(copies, barriers) && dispatches == k_zero && !kernels_differ;
  if (with_copies && absolute_value(barriers) <= 2 * absolute_value(copies)) return;
  // Barriers stand between dispatches, so other kernels bring other barriers. The same kernels with
  // other sizes or code do not.
  double explained = 0;
  for (const ExplainState::Entry& entry : state.entries) {
    if (entry.rank < 3) explained += entry.units;
  }
  if (kernels_differ && absolute_value(barriers) <= 2 * explained + 2) return;
  if (with_dispatches && !kernels_differ && explained_by_dispatches(barriers, dispatches)) return;
  Finding finding =
      state.finding_about(more ? kind::batching_lost : kind::batching_gained, "barriers");
  const bool dispatches_counted = by_line || both_sides_count(state.evidence, "dispatches");
  const std::string per_dispatch =
      with_dispatches ? barriers_per_dispatch(barriers, dispatches) : "";
  const char* compared = ", more than dispatches explain";
  if (dispatches == k_zero) compared = " between the same dispatches";
  if (!dispatches_counted) compared = "; dispatches are not known";
  std::string change =
      fmt::format("{} barriers{}{}", signed_text(barriers), state.per_unit_text(), compared);
  if (!per_dispatch.empty()) change = per_dispatch;
  std::string outcome = more ? "lost" : "gained";
  if (!dispatches_counted) outcome = "seems " + outcome;
  finding.headline = fmt::format("Batching {}: {}.", outcome, change);
  add_amounts(state, changed_amounts(state, {"barriers"}), finding);
  if (more) {
    finding.cause =
        "work that may overlap is no longer sent together: ops are in another order, or each is "
        "followed by a barrier.";
    finding.look_at = "the order of the graph's nodes, and what is timed or logged op by op.";
  }
  // Next to new dispatches the barriers are the smaller part.
  state.add(std::move(finding),
            per_dispatch.empty() ? absolute_value(barriers) : absolute_value(barriers) / 2);
}

// Finds that the engine cuts its graph into more or fewer parts, each of which runs on one
// backend.
void find_splits(ExplainState& state) {
  const Rational splits = state.unexplained_change("splits");
  if (splits == k_zero) return;
  Finding finding = state.finding_about(kind::splits_changed, "splits");
  finding.headline = fmt::format("The graph is cut into {} parts between backends{}.",
                                 splits > k_zero ? "more" : "fewer", state.per_unit_text());
  add_amounts(state, changed_amounts(state, {"splits", "copies"}), finding);
  finding.cause = "tensors or ops are placed on other backends.";
  finding.look_at = "where weights and cache are kept: buffers in the engine's log.";
  state.mark_all_explained({"splits", "copies", "submits", "tensor_copies", "tensor_sets",
                            "tensor_gets", "copied_bytes", "backend_syncs", "cpu_ops"});
  state.add(std::move(finding), 3 * absolute_value(splits));
}

// Finds that more or less is copied between memories.
void find_copies(ExplainState& state) {
  std::vector<Amount> amounts;
  std::string base;
  double units = 0;
  Rational first_delta;  // counts of other things do not add up
  // A finding about waits may have claimed the copies already.
  bool any_more = !state.is_unexplained("copies") && state.differences.count("copies") > k_zero,
       any_fewer = false;
  const Rational bytes = state.unexplained_change("copied_bytes");
  for (const char* kind : {"copies", "tensor_copies", "tensor_sets", "tensor_gets"}) {
    const Rational delta = state.unexplained_change(kind);
    if (delta == k_zero) continue;
    if (base.empty()) {
      base = kind;
      first_delta = delta;
    }
    any_more = any_more || delta > k_zero;
    any_fewer = any_fewer || delta < k_zero;
    units += 2 * absolute_value(delta);
    amounts.push_back({readable_name(kind), delta});
    state.mark_explained(kind);
  }
  state.mark_explained("copied_bytes");
  if (base.empty()) {
    // Bytes alone are a finding only if there is no other.
    if (bytes == k_zero || !state.entries.empty()) return;
    base = "copied_bytes";
    units = 1;
  }
  any_more = any_more || bytes > k_zero;
  any_fewer = any_fewer || bytes < k_zero;
  const bool more = (bytes != k_zero ? bytes : first_delta) > k_zero;
  Finding finding = state.finding_about(more ? kind::extra_copies : kind::copies_removed, base);
  const char* subject = more ? "More is" : "Less is";
  if (any_more && any_fewer) subject = "Other things are";
  finding.headline = fmt::format("{} copied between memories{}.", subject, state.per_unit_text());
  add_amounts(state, amounts, finding);
  if (bytes != k_zero) {
    finding.lines.insert(finding.lines.begin() + std::ssize(amounts),
                         fmt::format("{} copied bytes", signed_text(bytes)));
  }
  if (more) finding.cause = "a tensor lives in other memory than the op that reads it.";
  state.mark_explained("backend_syncs");
  // Kernels that were fused keep intermediate results; as single kernels they hand them over, and
  // some engines copy the parameters of each. Such copies follow from the kernels.
  const Rational dispatches = state.differences.count("dispatches");
  const bool follows_kernels =
      dispatches != k_zero && !state.differences.kernels.empty() && (dispatches > k_zero) == more &&
      2 * absolute_value(dispatches) >= absolute_value(amounts.front().delta);
  const bool follows = follows_kernels || state.any_entry([](const ExplainState::Entry& entry) {
    return entry.finding.kind == kind::fusion_lost || entry.finding.kind == kind::fusion_gained;
  });
  state.add(std::move(finding), units, /*rank=*/follows ? 2 : 1);
}

// Finds counts that grow otherwise with the length of the context, or that are no longer the same
// for every token.
void find_context(ExplainState& state) {
  // Weighs the change over a thousand tokens of context, because a small growth per token adds up.
  constexpr double k_context_tokens = 1000;
  auto context = state.differences.context;
  std::erase_if(context, [](const auto& entry) { return entry.first.ends_with("_bytes"); });
  Finding finding = make_finding(kind::grows_with_context);
  if (!context.empty()) {
    for (const auto& [name, delta] : context) state.mark_explained("context " + name);
    const auto dispatches = context.find("dispatches");
    const auto& [base, delta] = dispatches != context.end() ? *dispatches : *context.begin();
    const bool grows = delta > k_zero;
    finding.metric = base + "_per_context_token";
    finding.delta = delta;
    finding.headline = fmt::format("Counts {} with the context.", grows ? "grow" : "grow less");
    const Counts counts = sum_counts(context, k_context_tokens, " for each token of context");
    for (const Amount& amount : counts.amounts) add_number(amount, finding);
    finding.cause =
        grows ? "work is done token by token of the context, or the cache is cut into parts." : "";
    return state.add(std::move(finding), counts.units);
  }
  if (state.differences.unsteady.empty()) return;
  finding.metric = state.differences.unsteady.front();
  const auto metric = unit::find_metric(finding.metric);
  finding.headline =
      capitalized(fmt::format("{} are no longer the same for every token.",
                              metric ? readable_name(metric->base) : safe_name(finding.metric)));
  finding.cause = "the count depends on the length: of the context, or of a batch.";
  state.add(std::move(finding), /*units=*/0.5);
}

// Finds the same work in more or fewer submissions, or command buffers by label. It ranks behind
// other changes, which may be the reason.
void find_submits(ExplainState& state) {
  const Rational delta = state.unexplained_change("submits");
  const WorkChanges buffers = pointers_to(state.differences.buffers);  // the largest change first
  if (delta == k_zero && buffers.empty()) return;
  Finding finding = state.finding_about(kind::submits_changed, "submits");
  std::vector<Amount> amounts;
  if (delta != k_zero) amounts.push_back({"submits", delta});
  finding.headline = fmt::format("The GPU gets its work in {} parts{}.",
                                 delta > k_zero ? "more" : "fewer", state.per_unit_text());
  if (!buffers.empty()) {
    const WorkChange& largest = *buffers.front();
    const Rational difference = magnitude(largest.delta());
    const char* more = largest.is_increase() ? "more" : "fewer";
    const char* noun = difference == Rational(1) ? "command buffer" : "command buffers";
    finding.headline = fmt::format("{} {} {} labelled {} a token.", difference.str(), more, noun,
                                   safe_name(largest.name));
    if (buffers.size() > 1) finding.lines.push_back(changes_text(buffers, 6));
    if (amounts.empty()) amounts.push_back({safe_name(largest.name), largest.delta()});
  }
  add_amounts(state, amounts, finding);
  if (delta == k_zero) {
    finding.metric = unit::work_name(unit::k_buffers, buffers.front()->name);
    finding.delta = buffers.front()->delta();
  }
  finding.look_at = "when the engine submits: after so many operations, bytes or flops.";
  state.mark_all_explained({"submits", "buffers"});
  // Other code alone does not change submissions.
  const bool may_follow = state.any_entry(
      [](const ExplainState::Entry& entry) { return entry.finding.kind != kind::code_changed; });
  state.add(std::move(finding), /*units=*/absolute_value(amounts.front().delta),
            /*rank=*/may_follow ? 2 : 1);
}

// Finds counts of the start that changed: load, warm-up, prompt. Next to other changes they rank
// last, and small ones are left out.
void find_fixed(ExplainState& state) {
  // A change per token changes the warm-up as well, so such counts are left out.
  std::map<std::string, Rational> start_counts = state.differences.fixed;
  std::erase_if(start_counts,
                [&](const auto& entry) { return state.differences.counts.contains(entry.first); });
  for (const auto& [base, delta] : start_counts) state.mark_explained(base);
  // Kernels that only have other code or sizes change no count.
  const bool only_fixed =
      state.differences.counts.empty() &&
      !state.any_entry([](const ExplainState::Entry& entry) { return entry.rank < 2; });
  const Counts counts = sum_counts(start_counts);
  // Next to other changes, a small difference at the start says little.
  constexpr double k_min_units = 5;
  if (start_counts.empty() || (!only_fixed && counts.units < k_min_units)) return;
  Finding finding = make_finding(kind::fixed_cost_changed, start_counts.begin()->first + "_fixed");
  finding.delta = start_counts.begin()->second;
  const std::string unit_text = state.per_unit_text();
  const bool only_start = only_fixed && state.differences.kernels.empty();
  const bool knows_rest = only_fixed && !unit_text.empty();
  finding.headline = only_start ? "Only what is done once changed" : "What is done once changed";
  if (!only_fixed) finding.headline += " as well";
  finding.headline += ": load, warm-up";
  if (state.evidence.scope == unit::Scope::per_token) finding.headline += ", prompt";
  if (knows_rest) finding.headline += "; no count" + unit_text + " did";
  finding.headline += ".";
  if (start_counts.size() == 1 && start_counts.contains("allocations")) {
    finding.kind = kind::memory_changed;
    finding.headline = fmt::format("Devices are asked for memory {} often at the start",
                                   *finding.delta > k_zero ? "more" : "less");
    if (knows_rest) finding.headline += "; no count" + unit_text + " changed";
    finding.headline += ".";
  }
  add_amounts(state, counts.amounts, finding);
  // Memory that stays allocated says more than the number of requests for it.
  const auto allocations = start_counts.find("allocations");
  const bool is_kept = allocations != start_counts.end() && !state.differences.levels.empty() &&
                       counts.units - absolute_value(allocations->second) < k_min_units;
  int rank = is_kept ? 3 : 2;
  if (!only_fixed) rank = 4;
  state.add(std::move(finding), /*units=*/counts.units + 0.5, rank);
}

// Reports changed counts that no other pattern explains, if there is no other finding at all.
void find_rest(ExplainState& state) {
  std::vector<std::string> bases;
  for (const auto& [base, delta] : state.differences.counts) {
    if (state.is_unexplained(base)) bases.push_back(base);
  }
  // Next to an explained change they say little.
  if (bases.empty() || !state.entries.empty()) return;
  Finding finding = state.finding_about(kind::count_changed, bases.front());
  finding.headline =
      capitalized(fmt::format("{} changed, and nothing known explains it.",
                              bases.size() == 1 ? readable_name(bases.front()) : "Counts"));
  add_amounts(state, changed_amounts(state, bases), finding);
  for (const std::string& base : bases) state.mark_explained(base);
  state.add(std::move(finding), /*units=*/1, /*rank=*/3);
}

}  // namespace weir::explain
