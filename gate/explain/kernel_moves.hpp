// Kernels of which more or fewer ran, and what a pattern asks of them by their names. Used by
// kernels.cpp, variants.cpp, fusions.cpp, products.cpp, matrix_cores.cpp and tensor_kernels.cpp
// alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gate/explain/patterns.hpp"

namespace weir::explain {

// The kernels that changed and are not explained yet.
struct UnexplainedChanges {
  WorkChanges increased, decreased;

  explicit UnexplainedChanges(const ExplainState& state)
      : increased(select_changes(state.differences.kernels, true)),
        decreased(select_changes(state.differences.kernels, false)) {
    remove_if([&](const WorkChange* change) { return !state.is_unexplained(*change); });
  }

  template <class Is>
  void remove_if(const Is& is) {
    for (WorkChanges* side : {&increased, &decreased}) std::erase_if(*side, is);
  }
};

// Each name is compared with each: engines have some hundreds of kernels, a file from strangers may
// have a million.
[[nodiscard]] bool too_many_names(const UnexplainedChanges& open);

[[nodiscard]] WorkChanges concatenated(WorkChanges a, const WorkChanges& b);
template <class Is>
[[nodiscard]] WorkChanges filter(WorkChanges changes, const Is& is) {
  std::erase_if(changes, std::not_fn(is));
  return changes;
}
// How many more, or how many fewer: what is greater.
[[nodiscard]] double dispatch_change(const WorkChanges& changes);
// Kernels that do the same work (same_work), by the words of their names, where they have any.
[[nodiscard]] std::map<std::vector<std::string>, WorkChanges> group_by_work(
    const WorkChanges& changes);
// The largest first, variants of one kernel taken together.
void sort_by_size(WorkChanges& changes);

[[nodiscard]] bool is_small_kernel(const WorkChange* change);  // small_work() of its name
[[nodiscard]] bool is_unnamed_kernel(const WorkChange* change);
// One name has all words of the other.
[[nodiscard]] bool extends(const WorkChange* a, const WorkChange* b);
[[nodiscard]] std::string joined_names(const WorkChanges& changes);  // "a, b and c"
void add_op_names(const WorkChanges& changes, Finding& finding);
// Adds a finding that names these kernels and explains them, and how many dispatches there are.
void add_dispatched(ExplainState& state, Finding finding, const WorkChanges& kernels, double units);

// --- variants.cpp ------------------------------------------------------------------------------

// Kernels without names came for others, as often: all of them, or `one_by_one`.
void add_replaced(ExplainState& state, bool one_by_one);
// Kernels of one kind of work whose changes add up to nothing: none came, none went.
[[nodiscard]] std::vector<WorkChanges> find_swapped(const UnexplainedChanges& open);
// Moves the groups that satisfy `is` out of `groups`, and returns them.
[[nodiscard]] std::vector<WorkChanges> extract_if(std::vector<WorkChanges>& groups,
                                                  bool (*is)(const WorkChanges&));
// By their names only the sizes of the work's pieces differ.
[[nodiscard]] bool differ_in_tuning_only(const WorkChanges& group);
// Other template arguments are on: "<64, true>" for "<64, false>".
[[nodiscard]] bool differ_in_switches(const WorkChanges& group);
void add_variants(ExplainState& state, std::vector<WorkChanges> groups, int rank = 1);
// Adds kinds of kernels that replaced each other, as often, regardless of variants.
void add_exchanged_kinds(ExplainState& state);

// --- fusions.cpp -------------------------------------------------------------------------------

enum class FusionBy { name, number };
// Kernels that ran as one and run apart (`lost`), or the other way round; false where there are
// none.
bool find_fusion(ExplainState& state, const UnexplainedChanges& open, bool lost, FusionBy by);
// Adds a finding if nearly every kernel is another, and they are many more or many fewer: a
// compiler fuses ops now, or no longer does.
bool add_compiler_fusion_change(ExplainState& state);
// Several calls of one kernel for each of another that is named by more words (gemv_qkv for three
// gemv), or the other way round.
void add_merged(ExplainState& state, bool lost);

}  // namespace weir::explain
