#include "gate/source/bisection.hpp"

#include <cmath>

namespace weir::source {
namespace {

// From 1 for the first guess down to 0: a commit is worth less the nearer it lies to one that was
// skipped, and less again where some were skipped on both of its sides: what broke the build has
// then probably been there all the way. Not a probability that anybody measured; it makes the
// tries leave a long stretch that does not build in a few steps, to both sides.
double likely_to_build(std::size_t weight, const std::vector<std::size_t>& skipped) {
  if (skipped.empty()) return 1;
  std::size_t nearest = weight, below = 0, above = 0;
  for (const std::size_t other : skipped) {
    const std::size_t apart = std::max(weight, other) - std::min(weight, other);
    const std::size_t away = std::max<std::size_t>(1, apart);
    nearest = &other == &skipped.front() ? away : std::min(nearest, away);
    if (other <= weight) {
      below += 1;
    } else {
      above += 1;
    }
  }
  return std::ldexp(static_cast<double>(nearest) / static_cast<double>(nearest + skipped.size()),
                    -static_cast<int>(std::min(below, above)));
}

}  // namespace

Bisection::Bisection(const std::vector<HistoryCommit>& history) {
  for (const HistoryCommit& commit : history) {
    places_.emplace(commit.name, nodes_.size());
    nodes_.emplace_back().name = commit.name;
  }
  for (std::size_t i = 0; i < history.size(); ++i) {
    for (const std::string& parent : history[i].parents) {
      const auto place = places_.find(parent);
      if (place != places_.end() && place->second > i) nodes_[i].parents.push_back(place->second);
    }
  }
}

std::vector<bool> Bisection::contained_in(std::size_t commit) const {
  std::vector<bool> contained(nodes_.size(), false);
  contained[commit] = true;
  for (std::size_t i = commit; i < nodes_.size(); ++i) {
    if (!contained[i]) continue;
    for (const std::size_t parent : nodes_[i].parents) contained[parent] = true;
  }
  return contained;
}

std::size_t Bisection::suspects_in(std::size_t commit) const {
  const std::vector<bool> contained = contained_in(commit);
  std::size_t count = 0;
  for (std::size_t i = commit; i < nodes_.size(); ++i) {
    if (contained[i] && nodes_[i].suspect) ++count;
  }
  return count;
}

void Bisection::tell(const std::string& commit, Tried tried) {
  const auto place = places_.find(commit);
  if (place == places_.end() || !nodes_[place->second].suspect) return;
  if (tried == Tried::skipped) {
    nodes_[place->second].skipped = true;
    return;
  }
  const std::vector<bool> contained = contained_in(place->second);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    // Good: what it contains is good. Bad: what it does not contain came later or beside it.
    if (contained[i] == (tried == Tried::good)) nodes_[i].suspect = false;
  }
}

std::optional<std::string> Bisection::next() const {
  // How many suspects a commit contains: so many are left when it turns out bad, and all others
  // when it turns out good. Parents stand behind their children, so they are known first.
  std::vector<std::size_t> weight(nodes_.size(), 0);
  std::vector<std::size_t> skipped;
  std::size_t all = 0;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (!nodes_[i].suspect) continue;
    ++all;
    std::vector<std::size_t> parents;
    for (const std::size_t parent : nodes_[i].parents) {
      if (nodes_[parent].suspect) parents.push_back(parent);
    }
    weight[i] = parents.empty()       ? 1
                : parents.size() == 1 ? weight[parents.front()] + 1
                                      : suspects_in(i);
    if (nodes_[i].skipped) skipped.push_back(weight[i]);
  }
  std::optional<std::size_t> best;
  double best_worth = -1;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    // The one that contains them all is the bad one.
    if (!nodes_[i].suspect || nodes_[i].skipped || weight[i] == all) continue;
    const double worth = static_cast<double>(std::min(weight[i], all - weight[i])) *
                         likely_to_build(weight[i], skipped);
    if (worth > best_worth) {
      best = i;
      best_worth = worth;
    }
  }
  if (!best) return std::nullopt;
  return nodes_[*best].name;
}

std::vector<std::string> Bisection::suspects() const {
  std::vector<std::string> names;
  for (const Node& node : nodes_) {
    if (node.suspect) names.push_back(node.name);
  }
  return names;
}

std::size_t Bisection::steps_left() const {
  const auto open =
      std::ranges::count_if(nodes_, [](const Node& node) { return node.suspect && !node.skipped; });
  std::size_t steps = 0;
  while ((1LL << steps) < open) ++steps;
  return steps;
}

}  // namespace weir::source
