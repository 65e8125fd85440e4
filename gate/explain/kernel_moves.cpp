// Helpers for kernels that ran more or less often.
#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {

bool too_many_names(const UnexplainedChanges& changes) {
  return changes.increased.size() + changes.decreased.size() > 2000;
}

WorkChanges concatenated(WorkChanges a, const WorkChanges& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

double dispatch_change(const WorkChanges& changes) {
  double up = 0, down = 0;
  for (const WorkChange* change : changes) {
    if (change->is_increase()) {
      up += change->absolute_delta();
    } else {
      down += change->absolute_delta();
    }
  }
  return std::max(up, down);
}

std::map<std::vector<std::string>, WorkChanges> group_by_work(const WorkChanges& changes) {
  std::map<std::vector<std::string>, WorkChanges> kinds;
  for (const WorkChange* change : changes) {
    if (!change->parsed.words.empty()) kinds[change->parsed.words].push_back(change);
  }
  return kinds;
}

void sort_by_size(WorkChanges& changes) {
  std::map<std::string, double> sums;
  for (const WorkChange* change : changes) sums[change->parsed.base()] += change->absolute_delta();
  std::ranges::stable_sort(changes, {}, [&](const WorkChange* change) {
    const std::string base = change->parsed.base();
    return std::tuple(-sums[base], base, -change->absolute_delta());
  });
}

bool is_small_kernel(const WorkChange* change) { return is_small_work(change->parsed); }

bool is_unnamed_kernel(const WorkChange* change) { return has_no_name(change->name); }

bool extends(const WorkChange* a, const WorkChange* b) {
  const bool a_is_longer = a->parsed.words.size() > b->parsed.words.size();
  const auto& longer = a_is_longer ? a->parsed.words : b->parsed.words;
  const auto& shorter = a_is_longer ? b->parsed.words : a->parsed.words;
  return !shorter.empty() &&
         std::ranges::all_of(shorter, [&](const std::string& word) { return holds(longer, word); });
}

std::string joined_names(const WorkChanges& changes) {
  std::vector<std::string> names;
  for (const WorkChange* change : changes) {
    const std::string name = safe_name(change->work());
    if (!holds(names, name)) names.push_back(name);
  }
  if (names.size() < 2) return text::join(names);
  const std::string last = std::move(names.back());
  names.pop_back();
  return text::join(names) + " and " + last;
}

void add_op_names(const WorkChanges& changes, Finding& finding) {
  for (const WorkChange* change : changes) finding.ops.push_back(change->name);
}

void add_dispatched(ExplainState& state, Finding finding, const WorkChanges& kernels,
                    double units) {
  add_op_names(kernels, finding);
  state.mark_explained(kernels);
  state.mark_explained("dispatches");
  state.add(std::move(finding), units);
}

}  // namespace weir::explain
