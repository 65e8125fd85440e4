// Puts the points of series in the order of their commits, and finds where their device or machine
// class changes. Pure: commits come in as a list.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/history/history.hpp"

namespace weir::history {

// The commits of a repository, parents before children: the list of
// `git rev-list --topo-order --reverse`.
class CommitOrder {
 public:
  CommitOrder() = default;  // knows none: everything goes by time
  explicit CommitOrder(std::vector<std::string> commits);

  // The place of a commit, by its name or by 7 or more of its first digits. Nothing if it is not in
  // the list, or if several begin with these digits.
  [[nodiscard]] std::optional<std::size_t> place(std::string_view commit) const;
  [[nodiscard]] const std::string& name(std::size_t place) const { return commits_[place]; }
  [[nodiscard]] bool empty() const { return commits_.empty(); }

 private:
  std::vector<std::string> commits_;
  std::vector<std::size_t> by_name_;  // places, by the names there
};

// Sorts the points of every series by their commits; points of one commit by time, then by their
// run's id. A commit that is not in `order` goes where its time puts it: the commit's own time,
// else that of its first run in this history. A run without a commit goes by its own time. So a run
// that came late, or again, is in its place.
void put_in_order(History& history, const CommitOrder& order);

// A place in an ordered series from which on the device class or the machine class is another one.
struct ClassChange {
  std::size_t index = 0;  // the first point of the new class
  std::string device_class_before, device_class, machine_class_before, machine_class;
  // Medians of the points of the old and the new class, up to the next change.
  double before = 0, after = 0;
};
// Finds the changes of class. Counts do not depend on the machine class, so that for metrics of the
// kind `count` only the device class matters. A class that is not known ("") is never another one.
[[nodiscard]] std::vector<ClassChange> class_changes(const History& history, const Series& series);

}  // namespace weir::history
