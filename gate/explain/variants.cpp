// Finds the same work done by other kernels.
#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {
namespace {

// Returns true if a third or more of the earlier kernels without names are gone: the shaders were
// built anew.
bool was_rebuilt(const ExplainState& state, const WorkChanges& removed) {
  std::set<std::string> names;
  for (const Work& work : state.evidence.before.works) {
    if (has_no_name(work.name)) names.insert(work.name);
  }
  return removed.size() >= 2 && removed.size() * 3 >= names.size();
}

// Returns kernels without names that replaced each other: all of them if their changes add up to
// 0, or with `one_by_one` pairs that ran equally often. Empty if that may be chance.
WorkChanges find_replaced(const ExplainState& state, bool one_by_one) {
  UnexplainedChanges changed(state);
  changed.remove_if(std::not_fn(is_unnamed_kernel));
  if (changed.increased.empty() || changed.decreased.empty()) return {};
  const WorkChanges all = concatenated(changed.decreased, changed.increased);
  if (total_delta(all) == k_zero) return all;
  if (!one_by_one) return {};
  // A kernel that runs on both sides, more or less often, is the same code.
  changed.remove_if(
      [](const WorkChange* change) { return change->before != k_zero && change->after != k_zero; });
  std::multimap<double, const WorkChange*> added;
  for (const WorkChange* added_kernel : changed.increased)
    added.emplace(added_kernel->absolute_delta(), added_kernel);
  WorkChanges pairs;
  std::set<double> call_counts;
  for (const WorkChange* removed_kernel : changed.decreased) {
    const auto match = added.find(removed_kernel->absolute_delta());
    if (match == added.end()) continue;
    pairs.insert(pairs.end(), {removed_kernel, match->second});
    call_counts.insert(removed_kernel->absolute_delta());
    added.erase(match);
  }
  // It is no accident if each of several replaced kernels has a partner that runs just as often.
  const bool all_paired = pairs.size() == 2 * changed.decreased.size() &&
                          changed.decreased.size() >= 3 && call_counts.size() >= 2;
  return all_paired || was_rebuilt(state, changed.decreased) ? pairs : WorkChanges{};
}

// Returns true if both names are known to mean the same work.
bool do_same_work(const WorkChange* a, const WorkChange* b) {
  return !a->parsed.works.empty() && a->parsed.works == b->parsed.works;
}

// Returns true if both names begin alike, or are known to mean the same work.
bool names_are_similar(const WorkChange* a, const WorkChange* b) {
  const auto& a_words = a->parsed.words;
  const auto& b_words = b->parsed.words;
  const auto common_prefix =
      static_cast<std::size_t>(std::ranges::mismatch(a_words, b_words).in1 - a_words.begin());
  return (common_prefix > 0 && common_prefix * 2 >= std::max(a_words.size(), b_words.size())) ||
         do_same_work(a, b);
}

// Pairs kinds of kernels where one runs as much less often as the other runs more often. A kind
// with several possible partners is left unpaired, unless all are kernels of one op.
std::vector<WorkChanges> find_exchanged_kinds(UnexplainedChanges changed) {
  struct Kind {
    WorkChanges changes;
    double sum = 0;
    bool small = false;
    std::vector<std::size_t> partners{};
  };
  // If nothing else changed, one that is gone and one that is new belong together under any name.
  const bool only_pair = changed.increased.size() == 1 && changed.decreased.size() == 1 &&
                         changed.increased.front()->before == k_zero &&
                         changed.decreased.front()->after == k_zero;
  changed.remove_if(is_unnamed_kernel);
  std::vector<Kind> kinds;
  for (auto& [words, changes] : group_by_work(concatenated(changed.increased, changed.decreased))) {
    const double sum = total_delta(changes).value();
    const bool small = is_small_kernel(changes.front());
    if (sum != 0) kinds.push_back({changes, sum, small});
  }
  std::vector<WorkChanges> groups;
  if (kinds.size() > 1000) return groups;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    for (std::size_t k = i + 1; k < kinds.size(); ++k) {
      Kind &first = kinds[i], &second = kinds[k];
      const bool small = first.small || second.small;
      const double imbalance = std::fabs(first.sum + second.sum);
      // A few large kernels may become part of something else, so the balance may be off by 5 %.
      const double max_imbalance = small ? 0 : std::fabs(first.sum) / 20;
      const bool as_often = first.sum * second.sum < 0 && imbalance <= max_imbalance;
      if (!as_often) continue;
      const WorkChange *a = first.changes.front(), *b = second.changes.front();
      // A longer name of a small kernel may be a fused one, so small kernels need known works.
      const bool any_name = only_pair && imbalance == 0;
      const bool names_fit = small ? do_same_work(a, b) : names_are_similar(a, b);
      if (!any_name && !names_fit) continue;
      first.partners.push_back(k);
      second.partners.push_back(i);
    }
  }
  // The kernels of an op that takes several have several partners each: they belong together if all
  // of them are known to compute that op, as often as before.
  std::map<std::vector<std::string>, WorkChanges> by_op;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Kind& kind = kinds[i];
    const auto& ops = kind.changes.front()->parsed.works;
    if (kind.partners.size() > 1 && !ops.empty()) {
      by_op[ops] = concatenated(by_op[ops], kind.changes);
    }
    if (kind.partners.size() != 1 || kind.partners.front() < i) continue;
    const Kind& partner = kinds[kind.partners.front()];
    if (partner.partners.size() == 1) groups.push_back(concatenated(kind.changes, partner.changes));
  }
  for (auto& [ops, changes] : by_op) {
    if (total_delta(changes) == k_zero) groups.push_back(std::move(changes));
  }
  return groups;
}

// Returns true if the names differ by at most one word.
bool is_only_renamed(const WorkChanges& group) {
  const WorkChange *a = group.front(), *b = group.back();
  return extends(a, b) && std::abs(std::ssize(a->parsed.words) - std::ssize(b->parsed.words)) <= 1;
}

}  // namespace

// Adds the finding that kernels without names were replaced by others that run as often.
void add_replaced(ExplainState& state, bool one_by_one) {
  const WorkChanges all = find_replaced(state, one_by_one);
  if (all.empty()) return;
  Finding finding = make_finding(kind::variant_changed, metric_name(state.evidence, "dispatches"));
  const auto added_count = std::ranges::count_if(all, &WorkChange::is_increase);
  finding.headline =
      added_count == 1
          ? std::string("A kernel without a name was replaced by another, as often.")
          : fmt::format("{} kernels without names were replaced by others, as often.", added_count);
  finding.lines.push_back(changes_text(all, 6));
  add_op_names(all, finding);
  finding.cause = "their code was changed or compiled anew, or another variant was chosen.";
  finding.look_at = "weir kernels, which shows the code of a recorded kernel.";
  state.mark_explained(all);
  // The work is the same, so it ranks last if anything else changed.
  state.add(std::move(finding), /*units=*/0.5,
            /*rank=*/state.differences.only_works_changed() ? 1 : 3);
}

std::vector<WorkChanges> find_swapped(const UnexplainedChanges& open) {
  auto kinds = group_by_work(concatenated(open.increased, open.decreased));
  std::vector<WorkChanges> groups;
  for (const WorkChange* first : open.decreased) {
    const auto group = kinds.extract(first->parsed.words);
    if (!group.empty() && group.mapped().size() >= 2 && total_delta(group.mapped()) == k_zero) {
      groups.push_back(group.mapped());
    }
  }
  return groups;
}

std::vector<WorkChanges> extract_if(std::vector<WorkChanges>& groups,
                                    bool (*is)(const WorkChanges&)) {
  const auto rest = std::ranges::stable_partition(groups, std::not_fn(is));
  std::vector<WorkChanges> result(rest.begin(), rest.end());
  groups.erase(rest.begin(), rest.end());
  return result;
}

bool is_attention(const WorkChanges& group) {
  return std::ranges::any_of(group, [](const WorkChange* change) {
    return profile::is_large_work(change->parsed) && !profile::is_matmul(change->parsed);
  });
}

bool differ_in_tuning_only(const WorkChanges& group) {
  std::map<std::string, WorkChanges> alike;
  for (const WorkChange* change : group) {
    alike[profile::untuned_name(change->name)].push_back(change);
  }
  return std::ranges::all_of(
      alike, [](const auto& group_entry) { return total_delta(group_entry.second) == k_zero; });
}

bool differ_in_switches(const WorkChanges& group) {
  const auto count_switches = [](const WorkChange* change) {
    const std::string name = profile::untuned_name(change->name);
    return std::ranges::count(text::split(name, ','), "true");
  };
  const auto [min_switches, max_switches] = std::ranges::minmax(group, {}, count_switches);
  return count_switches(min_switches) != count_switches(max_switches);
}

// Adds one finding for groups of kernels that do the same work as before; the largest group makes
// the headline.
void add_variants(ExplainState& state, std::vector<WorkChanges> groups, int rank) {
  if (groups.empty()) return;
  std::ranges::stable_sort(groups, std::greater(), dispatch_change);
  Finding finding = make_finding(kind::variant_changed, metric_name(state.evidence, "dispatches"));
  // The kernels that replace others: kinds that run more often, or variants of one kind that do.
  const auto kinds = group_by_work(groups.front());
  WorkChanges added = groups.front();
  std::erase_if(added, [&](const WorkChange* change) {
    return !change->is_increase() ||
           (kinds.size() > 1 && total_delta(kinds.at(change->parsed.words)) < k_zero);
  });
  if (added.empty()) added = groups.front();
  const WorkChange* first = added.front();
  const bool cpu = state.evidence.device == "cpu";
  const bool same_op = cpu && kinds.size() == 1 && !profile::op_of(first->name).empty();
  const std::string frequency = frequency_text(total_delta(added), state.evidence.scope);
  const std::string work = safe_name(first->work());
  if (same_op) {
    finding.headline = fmt::format("{} has other types or shapes, {}.", work, frequency);
  } else {
    finding.headline = fmt::format("Another {} does the same work: {}, {}.", cpu ? "op" : "kernel",
                                   work, frequency);
  }
  double units = 0;
  for (const WorkChanges& group : groups) {
    state.mark_explained(group);
    add_op_names(group, finding);
    units += dispatch_change(group);
    finding.lines.push_back(changes_text(group, 4));
  }
  std::vector<std::string> lines = std::move(finding.lines);
  finding.lines.clear();
  if (add_amounts(state, {{safe_name(first->name), first->delta()}}, finding)) {
    lines.push_back(finding.lines.front());
  } else {
    finding.numbers.clear();
  }
  finding.lines = std::move(lines);
  if (cpu) {
    finding.cause = "a setting of the cache or of attention, or the types of tensors.";
    finding.look_at = "the engine's arguments and defaults.";
  } else {
    finding.cause =
        "the device reports other features, a switch turned a path off, or the choice by shape, "
        "alignment or type changed.";
    finding.look_at = "how the kernel is chosen, and what the device reported.";
  }
  state.add(std::move(finding), units, rank);
}

// Adds findings of kinds of kernels that took the place of others. Another attention kernel comes
// first: it takes other inputs, so that more changes with it.
void add_exchanged_kinds(ExplainState& state) {
  std::vector<WorkChanges> groups = find_exchanged_kinds(UnexplainedChanges(state));
  add_variants(state, extract_if(groups, is_attention), 0);
  std::vector<WorkChanges> renamed = extract_if(groups, is_only_renamed);
  add_variants(state, std::move(groups));
  add_variants(state, std::move(renamed), state.differences.count("dispatches") == k_zero ? 1 : 2);
}

}  // namespace weir::explain
