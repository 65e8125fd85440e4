// Finds changed kernels that do the work of others, by kernel names and the engine's graph.
#include "gate/verdict/kernel_paths.hpp"

#include "gate/profile/kernel_name.hpp"

namespace weir::verdict {
namespace {

using profile::kernel_name;
using profile::KernelName;

constexpr Rational k_none;

// Adds `more` to `sum`. A result that does not fit leaves the sum as it was.
void add(Rational& sum, const Rational& more) { sum = sum.plus(more).value_or(sum); }

Rational minus(const Rational& a, const Rational& b) { return a.minus(b).value_or(k_none); }

Rational change_of_count(const Changed& kernel) {
  return minus(kernel.current.value_or(k_none), kernel.baseline.value_or(k_none));
}

// Returns true for matrix multiplications and attention, where a model's time goes to.
bool is_large_op(const std::string& op) { return is_large_work(kernel_name(op)); }

// The changed kernels of one kind of work, as counts of calls.
struct KernelGroup {
  Rational gained, lost;
  std::vector<std::string> names;  // kernels that run more often
  std::vector<std::string> ops;    // those that each of them computes; empty: not known
  bool large = false;

  [[nodiscard]] Rational swapped() const { return std::min(gained, lost); }
};

struct ChangedWork {
  std::map<std::string, KernelGroup> groups;  // by all ops that a kernel computes: "RMS_NORM_MUL"
  Numbers runs_of_op;                         // by op: how many more of its kernels run
  std::vector<KernelName> removed;
};

// Returns the change of each kernel's count, by the name that stays the same over releases. Kernels
// that only got another name are left out.
Numbers sum_changes(std::span<const Changed> kernels) {
  Numbers changes;
  for (const Changed& kernel : kernels) {
    add(changes[profile::stable_name(kernel.name)], change_of_count(kernel));
  }
  std::erase_if(changes, [](const auto& item) { return item.second == k_none; });
  return changes;
}

// Groups the changed kernels by all ops that each computes. Sums how many calls each group gained
// and lost, and how many more kernels run for each op.
ChangedWork group_by_work(std::span<const Changed> kernels) {
  ChangedWork work;
  for (const auto& [kernel, more_calls] : sum_changes(kernels)) {
    const KernelName name = kernel_name(kernel);
    for (const std::string& op : name.works) add(work.runs_of_op[op], more_calls);
    KernelGroup& group = work.groups[name.work()];
    group.large = group.large || is_large_work(name);
    group.ops = name.works;
    if (more_calls > k_none) {
      add(group.gained, more_calls);
      group.names.push_back(kernel);
    } else {
      add(group.lost, minus(k_none, more_calls));
      work.removed.push_back(name);
    }
  }
  return work;
}

// The ops that both graphs ask for, by the names that kernels have for them ("CONT" is a copy).
struct Graphs {
  Numbers before, now;
  bool is_complete = false;  // both graphs are known
  Rational small, large;     // ops by which the graphs differ

  Graphs(const Numbers* ops_before, const Numbers* ops_now)
      : is_complete(ops_before != nullptr && ops_now != nullptr) {
    if (!is_complete) return;
    for (const auto& [op, count] : *ops_before) add(before[kernel_name(op).work()], count);
    for (const auto& [op, count] : *ops_now) add(now[kernel_name(op).work()], count);
    for (const Changed& op : differences(before, now)) {
      const Rational delta = change_of_count(op);
      const Rational magnitude = delta < k_none ? minus(k_none, delta) : delta;
      add(is_large_op(op.name) ? large : small, magnitude);
    }
  }
};

// By op: how many more the graph asks for than its own kernels run more. Above 0 other kernels
// compute them now, below 0 they did so before.
Numbers missing_kernels(const ChangedWork& work, const Graphs& graphs) {
  Numbers missing;
  for (const Changed& op : differences(graphs.before, graphs.now)) {
    missing[op.name] = change_of_count(op);
  }
  for (const auto& [op, runs] : work.runs_of_op) missing[op] = minus(missing[op], runs);
  return missing;
}

// Counts the small ops that other kernels compute now (`fell`), or computed before and no longer
// do. Names alone do not show that.
Rational count_fused_ops(const Numbers& missing, const Graphs& graphs, bool fell) {
  Rational fused;
  for (const auto& [op, count] : missing) {
    if (is_large_op(op)) continue;
    // At most as many as the graph asks for: further kernels of an op are helpers, not fused ops.
    const Rational in_graph = look_up(fell ? graphs.now : graphs.before, op, k_none);
    const Rational number = std::min(fell ? count : minus(k_none, count), in_graph);
    if (number > k_none) add(fused, number);
  }
  return fused;
}

// Adds large ops that the graph asks for and that no kernel which came can compute.
void add_uncomputed_ops(const ChangedWork& work, const Numbers& missing, KernelPaths& paths) {
  std::set<std::string_view> computed;  // by kernels that run more often
  for (const auto& [name, group] : work.groups) {
    if (group.gained > k_none) computed.insert(group.ops.begin(), group.ops.end());
  }
  for (const auto& [op, count] : missing) {
    if (is_large_op(op) && count > k_none && !computed.contains(op)) {
      paths.unexplained.push_back(op);
    }
  }
}

}  // namespace

bool only_renamed(std::span<const Changed> kernels) { return sum_changes(kernels).empty(); }

KernelPaths find_kernel_paths(std::span<const Changed> kernels, const Numbers* before,
                              const Numbers* now, bool fell) {
  const ChangedWork work = group_by_work(kernels);
  const Graphs graphs(before, now);
  const Numbers missing = missing_kernels(work, graphs);
  Rational excused = count_fused_ops(missing, graphs, fell);
  add(excused, graphs.small);
  // Returns true if the name of a kernel is made of the names of kernels that went. Each name is
  // compared with all of these, so that of too many none counts as such.
  constexpr std::size_t k_max_compared = 100'000;
  std::size_t compared = 0;
  const auto is_made_of_removed = [&](const std::string& name) {
    compared += work.removed.size();
    return compared <= k_max_compared && !find_fused_parts(kernel_name(name), work.removed).empty();
  };
  KernelPaths paths;
  // How many ops must have been fused, or be others, for every change to be explained.
  Rational swaps, newcomers;
  std::vector<const KernelGroup*> unknown;
  Numbers small;
  for (const auto& [name, group] : work.groups) {
    const Rational swapped = group.swapped();
    if (swapped > k_none && group.large) {
      paths.replaced[name] = swapped;
    } else if (swapped > k_none) {
      small[name] = swapped;
      add(swaps, swapped);
    }
    if (!fell || !(group.gained > group.lost)) continue;
    if (group.ops.empty() && !group.large) {
      if (std::ranges::all_of(group.names, is_made_of_removed)) continue;
      unknown.push_back(&group);
      // A fusion takes at least two ops: a kernel for one op replaces another.
      const Rational more = minus(group.gained, group.lost);
      add(newcomers, more);
      add(newcomers, more);
    } else if (group.ops.empty() || std::ranges::any_of(group.ops, [&](const std::string& op) {
                 return missing.at(op) < k_none;
               })) {
      if (!graphs.is_complete && std::ranges::all_of(group.names, is_made_of_removed)) continue;
      paths.unexplained.insert(paths.unexplained.end(), group.names.begin(), group.names.end());
    }
  }
  if (fell && graphs.is_complete && unknown.empty()) add_uncomputed_ops(work, missing, paths);
  if (swaps > excused) paths.replaced.merge(small);
  // Attention that is new in the graph brings helpers of its own.
  add(excused, graphs.large);
  add(newcomers, swaps);
  if (newcomers > excused) {
    for (const KernelGroup* group : unknown) {
      paths.unexplained.insert(paths.unexplained.end(), group->names.begin(), group->names.end());
    }
  }
  return paths;
}

}  // namespace weir::verdict
