// Finds changes among kernels by their names and numbers: pieces of work, variants, fusions, and
// work added or removed.
#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {
namespace {

// Returns true if a copy kernel runs in place of copies of the device, or the reverse: about as
// many of one came as of the other are gone.
bool copies_for_device(const ExplainState& state, const WorkChange* change) {
  const double copies = state.differences.count("copies").value(),
               kernels = change->delta().value();
  return is_copy(change->parsed) && copies * kernels < 0 &&
         2 * std::fabs(copies) >= std::fabs(kernels);
}

// Returns large kernels with new code that may have taken over, or given away, the work of the
// small kernels `changes`. Empty if changes go both ways, or so many kernels have new code that it
// is a new build.
std::vector<std::string> find_kernels_with_new_code(const ExplainState& state,
                                                    const WorkChanges& changes, bool is_added) {
  std::vector<std::string> names;
  double max_calls = 0;
  for (const verdict::KernelChange& code : state.evidence.code) {
    if (!code.code_changed || is_small_work(kernel_name(code.kernel))) continue;
    names.push_back(code.kernel);
    max_calls = std::max(max_calls, code.calls.value());
  }
  const bool has_one_direction = std::ranges::all_of(
      state.differences.kernels,
      [&](const WorkChange& change) { return change.is_increase() == is_added; });
  const bool are_all_small = std::ranges::all_of(changes, [&](const WorkChange* change) {
    return is_small_kernel(change) && change->absolute_delta() <= max_calls;
  });
  return has_one_direction && are_all_small && names.size() <= changes.size()
             ? names
             : std::vector<std::string>{};
}

// Adds a finding about kernels that are new (`added`) or gone: a fusion lost or gained if the
// graph of ops is the same, else work added or removed.
void add_work_change(ExplainState& state, WorkChanges changes, bool added) {
  if (changes.empty()) return;
  sort_by_size(changes);
  // If the engine's graph has the same ops as before, kernels were fused or no longer are.
  const bool is_same_graph =
      state.evidence.same_graph || (state.evidence.graph_known && state.differences.graph.empty());
  const std::vector<std::string> kernels_with_new_code =
      find_kernels_with_new_code(state, changes, added);
  // Copies that no op asks for are needed by another kernel.
  const bool is_fusion = (is_same_graph || !kernels_with_new_code.empty()) &&
                         is_small_kernel(changes.front()) && !is_copy(changes.front()->parsed);
  const char* kind = added ? kind::op_added : kind::op_removed;
  if (is_fusion) kind = added ? kind::fusion_lost : kind::fusion_gained;
  Finding finding = state.finding_about(kind, "dispatches");
  const std::string names = joined_names(
      changes.size() > 3 ? WorkChanges(changes.begin(), changes.begin() + 3) : changes);
  const bool is_one = changes.size() == 1;
  const char* outcome = added ? "lost" : "gained";
  const char* now = added ? "now" : "no longer";
  if (is_fusion && !is_same_graph) {
    finding.headline =
        fmt::format("Fusion seems {}: {} has other code, and {} {} {} apart.", outcome,
                    safe_name(kernels_with_new_code.front()), names, now, is_one ? "runs" : "run");
  } else if (is_fusion) {
    finding.headline = fmt::format("Fusion {}: the same ops {} run {} in kernels of {} own.",
                                   outcome, now, names, is_one ? "its" : "their");
  } else {
    const char* place = state.evidence.device == "cpu" ? " on the CPU" : " on the device";
    if (!place_known(state.evidence, *changes.front())) place = "";
    finding.headline = fmt::format("{} work{}: {}.", added ? "More" : "Less", place, names);
  }
  if (changes.size() > 1) finding.lines.push_back(changes_text(changes, 6));
  add_amounts(state, {{safe_name(changes.front()->name), changes.front()->delta()}}, finding);
  finding.cause = added ? "an op was added, is converted or copied first, or is no longer fused."
                        : "an op is gone, was fused into another kernel, or runs elsewhere.";
  add_dispatched(state, std::move(finding), changes, dispatch_change(changes));
}

// Adds a finding that matrix multiplications run in more or fewer dispatches. `amount` stands in
// if the counts of dispatches and barriers did not change.
void add_batching(ExplainState& state, Finding finding, const WorkChanges& changes,
                  const Amount& amount) {
  // A sum of dispatches that includes other changes says nothing about this one.
  const Rational dispatches = state.differences.count("dispatches");
  const bool only_these = dispatches == k_zero || dispatches == total_delta(changes);
  std::vector<Amount> amounts;
  if (only_these) amounts = changed_amounts(state, {"dispatches", "barriers"});
  if (amounts.empty()) amounts.push_back(amount);
  add_amounts(state, amounts, finding);
  if (finding.kind == kind::batching_lost) {
    finding.cause =
        "matrix multiplications that ran together now run one by one, or some run twice.";
    finding.look_at =
        "where matmuls of the same input are joined: query, key and value; gate and up.";
  }
  add_dispatched(state, std::move(finding), changes, absolute_value(total_delta(changes)));
}

// Adds findings about large kernels that were all replaced by others of the same work, which run
// more often: other kernels do the work, in more pieces.
void add_replaced_in_pieces(ExplainState& state) {
  const UnexplainedChanges changed(state);
  for (const auto& [words, changes] :
       group_by_work(concatenated(changed.increased, changed.decreased))) {
    const bool are_all_new_or_gone = std::ranges::all_of(changes, [](const WorkChange* change) {
      return is_on_one_side(change->before, change->after);
    });
    const bool has_gone = !changes.back()->is_increase();
    if (!are_all_new_or_gone || !has_gone || is_small_kernel(changes.front()) ||
        is_unnamed_kernel(changes.front()) || total_delta(changes) < Rational(2)) {
      continue;
    }
    add_variants(state, {changes});
    Rational before, after;
    for (const WorkChange* change : changes) {
      before = before.plus(change->before).value_or(before);
      after = after.plus(change->after).value_or(after);
    }
    const std::string work = safe_name(changes.front()->work());
    Finding finding = state.finding_about(kind::batching_lost, "dispatches");
    finding.headline = fmt::format("Batching lost: {} runs {}, before {}.", work,
                                   frequency_text(after, state.evidence.scope), before.str());
    add_batching(state, std::move(finding), changes, {work, total_delta(changes)});
  }
}

}  // namespace

// Explains kernels that changed in steps, each with those that the steps before left over:
// replaced, variants, fusions, pieces, merged, and finally work added or removed.
void find_kernels(ExplainState& state) {
  add_replaced(state, /*one_by_one=*/false);
  std::vector<WorkChanges> groups = find_swapped(UnexplainedChanges(state));
  // Other tile sizes do not cause anything else that changed.
  if (!state.differences.only_works_changed())
    add_variants(state, extract_if(groups, differ_in_tuning_only), 3);
  // Small kernels that only changed their variant next to a fusion belong to it. So do other
  // kernels with a switch turned on, if no name says what was joined.
  std::vector<WorkChanges> small_groups = extract_if(
      groups, [](const WorkChanges& group) { return std::ranges::all_of(group, is_small_kernel); });
  std::vector<WorkChanges> switched_groups = extract_if(groups, differ_in_switches);
  add_variants(state, std::move(groups));
  const Rational dispatches = state.differences.count("dispatches");
  bool is_fusion_found = false;
  // More dispatches suggest that a fusion was lost, so that is tried first; both may occur.
  const bool is_loss_first = dispatches >= k_zero;
  std::set<const WorkChange*> switched_kernels;
  for (const WorkChanges& group : switched_groups)
    switched_kernels.insert(group.begin(), group.end());
  for (const bool is_lost : {is_loss_first, !is_loss_first}) {
    UnexplainedChanges changed(state);
    if (too_many_names(changed)) break;
    changed.remove_if([&](const WorkChange* change) { return switched_kernels.contains(change); });
    is_fusion_found = find_fusion(state, changed, is_lost, FusionBy::name) || is_fusion_found;
  }
  if (!is_fusion_found) add_exchanged_kinds(state);
  is_fusion_found = is_fusion_found || add_compiler_fusion_change(state);
  if (!is_fusion_found && dispatches != k_zero) {
    UnexplainedChanges unfused(state);
    unfused.remove_if([&](const WorkChange* change) { return copies_for_device(state, change); });
    find_fusion(state, unfused, dispatches > k_zero, FusionBy::number);
  }
  add_replaced_in_pieces(state);
  std::ranges::move(switched_groups, std::back_inserter(small_groups));
  std::erase_if(small_groups,
                [&](const WorkChanges& group) { return !state.is_unexplained(*group.front()); });
  add_variants(state, std::move(small_groups), dispatches == k_zero ? 1 : 2);
  add_exchanged_kinds(state);
  for (const bool is_lost : {is_loss_first, !is_loss_first}) add_merged(state, is_lost);
  add_replaced(state, /*one_by_one=*/true);
  const UnexplainedChanges rest(state);
  add_work_change(state, rest.increased, /*added=*/true);
  add_work_change(state, rest.decreased, /*added=*/false);
}

// Finds the same matrix multiplications in more, smaller dispatches: kernels run more often, and
// none is gone. Fewer dispatches count only if the graph is known to be the same.
void find_pieces(ExplainState& state) {
  WorkChanges changes;  // the largest first, as differences are
  for (const WorkChange& change : state.differences.kernels) {
    if (!state.is_unexplained(change)) continue;
    // A single additional dispatch may be anything, and so may kernels without names.
    const bool is_on_both_sides = change.before != k_zero && change.after != k_zero;
    if (!is_on_both_sides || absolute_value(change.delta()) < 2 || change.parsed.words.empty() ||
        is_small_kernel(&change) || is_unnamed_kernel(&change)) {
      return;
    }
    if (!changes.empty() && !same_sign(change.delta(), changes[0]->delta())) return;
    changes.push_back(&change);
  }
  if (changes.empty()) return;
  const WorkChange& first = *changes.front();
  const bool is_lost = first.is_increase(), is_uncertain = !is_lost && !state.evidence.graph_known;
  const bool is_same_graph = state.differences.graph.empty() && state.differences.cpu_ops.empty();
  if (!is_lost && !is_same_graph) return;
  std::string outcome = is_lost ? "lost" : "gained";
  if (is_uncertain) outcome = "seems " + outcome;
  Finding finding =
      state.finding_about(is_lost ? kind::batching_lost : kind::batching_gained, "dispatches");
  finding.headline =
      fmt::format("Batching {}: {} runs {}, before {}, and nothing {}.", outcome,
                  safe_name(first.work()), frequency_text(first.after, state.evidence.scope),
                  first.before.str(), is_lost ? "is gone" : "came");
  finding.lines.push_back(changes_text(changes, 6));
  if (is_uncertain) {
    finding.look_at =
        "whether the work is gone, or the CPU does it: a probe that sees ops can tell.";
  }
  add_batching(state, std::move(finding), changes, {safe_name(first.name), first.delta()});
}

}  // namespace weir::explain
