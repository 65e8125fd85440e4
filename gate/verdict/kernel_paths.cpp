#include "gate/verdict/kernel_paths.hpp"

#include "gate/profile/kernel_name.hpp"

namespace weir::verdict {
namespace {

using profile::kernel_name;
using profile::KernelName;

constexpr Rational k_none;

// What does not fit leaves the sum as it was.
void add(Rational& sum, const Rational& more) { sum = sum.plus(more).value_or(sum); }

Rational minus(const Rational& a, const Rational& b) { return a.minus(b).value_or(k_none); }

Rational delta_of(const Changed& one) {
  return minus(one.current.value_or(k_none), one.baseline.value_or(k_none));
}

// What a model's time goes to: never excused by what happened to small kernels.
bool is_large(const std::string& op) { return large_work(kernel_name(op)); }

// The changed kernels of one kind of work.
struct Group {
  Rational came, went;
  std::vector<std::string> names;  // of those that came
  std::vector<std::string> works;  // of each of them; empty: not known
  bool large = false;

  [[nodiscard]] Rational swapped() const { return std::min(came, went); }
};

struct Work {
  std::map<std::string, Group> groups;  // by all that a kernel does: "RMS_NORM_MUL"
  Numbers runs;                         // by op: how many more of its kernels run
  std::vector<KernelName> gone;
};

// By the names that last, without those that only got another name.
Numbers deltas_of(std::span<const Changed> kernels) {
  Numbers deltas;
  for (const Changed& one : kernels) {
    add(deltas[profile::lasting_name(one.name)], delta_of(one));
  }
  std::erase_if(deltas, [](const auto& item) { return item.second == k_none; });
  return deltas;
}

Work work_of(std::span<const Changed> kernels) {
  Work work;
  for (const auto& [full, delta] : deltas_of(kernels)) {
    const KernelName name = kernel_name(full);
    for (const std::string& op : name.works) add(work.runs[op], delta);
    Group& group = work.groups[name.work()];
    group.large = group.large || large_work(name);
    group.works = name.works;
    if (delta > k_none) {
      add(group.came, delta);
      group.names.push_back(full);
    } else {
      add(group.went, minus(k_none, delta));
      work.gone.push_back(name);
    }
  }
  return work;
}

// What both graphs ask for, by what kernels' names are read as ("CONT" is a copy).
struct Graphs {
  Numbers before, now;
  bool known = false;
  Rational small, large;  // ops that one asks for and the other does not

  Graphs(const Numbers* ops_before, const Numbers* ops_now)
      : known(ops_before != nullptr && ops_now != nullptr) {
    if (!known) return;
    for (const auto& [op, count] : *ops_before) add(before[kernel_name(op).work()], count);
    for (const auto& [op, count] : *ops_now) add(now[kernel_name(op).work()], count);
    for (const Changed& op : differences(before, now)) {
      const Rational delta = delta_of(op);
      add(is_large(op.name) ? large : small, delta < k_none ? minus(k_none, delta) : delta);
    }
  }
};

// By op: how many more of it the graph asks for than kernels of its own run. Above 0 others compute
// them now, below 0 they did so before.
Numbers without_own(const Work& work, const Graphs& graphs) {
  Numbers missing;
  for (const Changed& op : differences(graphs.before, graphs.now)) {
    missing[op.name] = delta_of(op);
  }
  for (const auto& [op, runs] : work.runs) missing[op] = minus(missing[op], runs);
  return missing;
}

// How many small ops other kernels compute now; with `fell` unset: did so before, and no longer. No
// names alone tell that.
Rational fused_of(const Numbers& missing, const Graphs& graphs, bool fell) {
  Rational fused;
  for (const auto& [op, count] : missing) {
    if (is_large(op)) continue;
    // No more than the graph asks for: what a kernel needed beside its op is not fused.
    const Rational asked = look_up(fell ? graphs.now : graphs.before, op, k_none);
    const Rational one_way = std::min(fell ? count : minus(k_none, count), asked);
    if (one_way > k_none) add(fused, one_way);
  }
  return fused;
}

// Products that the graph asks for and nothing that came can compute.
void add_left_alone(const Work& work, const Numbers& missing, KernelPaths& paths) {
  for (const auto& [op, count] : missing) {
    if (!is_large(op) || !(count > k_none)) continue;
    const bool taken = std::ranges::any_of(work.groups, [&work_done = op](const auto& item) {
      return item.second.came > k_none && holds(item.second.works, work_done);
    });
    if (!taken) paths.unexplained.push_back(op);
  }
}

}  // namespace

bool only_renamed(std::span<const Changed> kernels) { return deltas_of(kernels).empty(); }

KernelPaths paths_of(std::span<const Changed> kernels, const Numbers* before, const Numbers* now,
                     bool fell) {
  const Work work = work_of(kernels);
  const Graphs graphs(before, now);
  const Numbers missing = without_own(work, graphs);
  Rational excused = fused_of(missing, graphs, fell);
  add(excused, graphs.small);
  const auto by_name = [&](const std::string& name) {
    return !parts_of(kernel_name(name), work.gone).empty();
  };
  KernelPaths paths;
  // How many ops have to have been fused, or be others, that nothing is left to be explained.
  Rational swaps, newcomers;
  std::vector<const Group*> unknown;
  Numbers small;
  for (const auto& [name, group] : work.groups) {
    const Rational swapped = group.swapped();
    if (swapped > k_none && group.large) {
      paths.replaced[name] = swapped;
    } else if (swapped > k_none) {
      small[name] = swapped;
      add(swaps, swapped);
    }
    if (!fell || !(group.came > group.went)) continue;
    if (group.works.empty() && !group.large) {
      if (std::ranges::all_of(group.names, by_name)) continue;
      unknown.push_back(&group);
      // A fusion takes at least two ops: one is a kernel for another.
      const Rational more = minus(group.came, group.went);
      add(newcomers, more);
      add(newcomers, more);
    } else if (group.works.empty() || std::ranges::any_of(group.works, [&](const std::string& op) {
                 return missing.at(op) < k_none;
               })) {
      if (!graphs.known && std::ranges::all_of(group.names, by_name)) continue;
      paths.unexplained.insert(paths.unexplained.end(), group.names.begin(), group.names.end());
    }
  }
  if (fell && graphs.known && unknown.empty()) add_left_alone(work, missing, paths);
  if (swaps > excused) paths.replaced.merge(small);
  // Attention that is new in the graph brings helpers of its own.
  add(excused, graphs.large);
  add(newcomers, swaps);
  if (newcomers > excused) {
    for (const Group* group : unknown) {
      paths.unexplained.insert(paths.unexplained.end(), group->names.begin(), group->names.end());
    }
  }
  return paths;
}

}  // namespace weir::verdict
