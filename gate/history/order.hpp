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

// The commits of a repository, parents before children: what `git rev-list --topo-order --reverse`
// says.
class CommitOrder {
 public:
  CommitOrder() = default;  // knows none: everything goes by time
  explicit CommitOrder(std::vector<std::string> commits);

  // Which one it is, by its name or by 7 or more of its first digits; nothing where it is not
  // there, or more than one begins so.
  [[nodiscard]] std::optional<std::size_t> place(std::string_view commit) const;
  [[nodiscard]] const std::string& name(std::size_t place) const { return commits_[place]; }
  [[nodiscard]] bool empty() const { return commits_.empty(); }

 private:
  std::vector<std::string> commits_;
  std::vector<std::size_t> by_name_;  // places, by the names there
};

// Orders the points of every series: by their commits where these are known; points of one commit
// by time, then by their run's id. A commit that is not known stands where its time (of the commit
// if that is known, else of its first run in this history) puts it among those that are, and so
// does a run without a commit by its own time. A run that came late or again is thereby in its
// place.
void put_in_order(History& history, const CommitOrder& order);

// Along an ordered series the device class or the machine class became another one.
struct ClassChange {
  std::size_t index = 0;  // of the first point of the new class
  std::string device_class_before, device_class, machine_class_before, machine_class;
  // Medians of the points of the class before and of the new one, as far as each goes.
  double before = 0, after = 0;
};
// Counts do not depend on the machine class, so that for metrics of the kind `count` only the
// device class is looked at. A class that is not known ("") is no other one.
[[nodiscard]] std::vector<ClassChange> class_changes(const History& history, const Series& series);

}  // namespace weir::history
