// Chooses the commit to try next when searching for the first bad one.
#include "gate/source/bisection.hpp"

#include <cmath>

namespace weir::source {
namespace {

// Rates how likely a commit builds: 1 without skipped commits, less the nearer it lies to one.
// Halved for each pair of skipped commits around it, where the build was probably broken too. Not
// measured: it only makes the search leave such a stretch quickly.
double build_likelihood(std::size_t weight, const std::vector<std::size_t>& skipped) {
  if (skipped.empty()) return 1;
  std::size_t nearest = weight, at_or_below = 0, above = 0;
  for (const std::size_t other : skipped) {
    const std::size_t difference = std::max(weight, other) - std::min(weight, other);
    const std::size_t distance = std::max<std::size_t>(1, difference);
    nearest = &other == &skipped.front() ? distance : std::min(nearest, distance);
    if (other <= weight) {
      at_or_below += 1;
    } else {
      above += 1;
    }
  }
  return std::ldexp(static_cast<double>(nearest) / static_cast<double>(nearest + skipped.size()),
                    -static_cast<int>(std::min(at_or_below, above)));
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

// Returns which commits `commit` contains, itself included.
std::vector<bool> Bisection::ancestors_of(std::size_t commit) const {
  std::vector<bool> contained(nodes_.size(), false);
  contained[commit] = true;
  for (std::size_t i = commit; i < nodes_.size(); ++i) {
    if (!contained[i]) continue;
    for (const std::size_t parent : nodes_[i].parents) contained[parent] = true;
  }
  return contained;
}

std::size_t Bisection::count_suspects(std::size_t commit) const {
  const std::vector<bool> contained = ancestors_of(commit);
  std::size_t count = 0;
  for (std::size_t i = commit; i < nodes_.size(); ++i) {
    if (contained[i] && nodes_[i].suspect) ++count;
  }
  return count;
}

// Narrows the suspects (commits that may be the cause) by the result of trying a commit.
void Bisection::record_outcome(const std::string& commit, TrialOutcome outcome) {
  const auto place = places_.find(commit);
  if (place == places_.end() || !nodes_[place->second].suspect) return;
  if (outcome == TrialOutcome::skipped) {
    nodes_[place->second].skipped = true;
    return;
  }
  const std::vector<bool> contained = ancestors_of(place->second);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    // All that a good commit contains is good. What a bad one does not contain is not the cause.
    if (contained[i] == (outcome == TrialOutcome::good)) nodes_[i].suspect = false;
  }
}

// Returns the commit that halves the suspects best; nullopt if none is left to try. Commits that
// likely don't build are avoided.
std::optional<std::string> Bisection::next() const {
  // Number of suspects that a commit contains: they remain if it is bad, all others if it is good.
  // Parents come after their children, so going backwards their weight is known first.
  std::vector<std::size_t> contained_suspects(nodes_.size(), 0);
  std::vector<std::size_t> skipped;
  std::size_t suspect_count = 0;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (!nodes_[i].suspect) continue;
    ++suspect_count;
    std::vector<std::size_t> parents;
    for (const std::size_t parent : nodes_[i].parents) {
      if (nodes_[parent].suspect) parents.push_back(parent);
    }
    if (parents.empty()) {
      contained_suspects[i] = 1;
    } else if (parents.size() == 1) {
      contained_suspects[i] = contained_suspects[parents.front()] + 1;
    } else {
      contained_suspects[i] = count_suspects(i);
    }
    if (nodes_[i].skipped) skipped.push_back(contained_suspects[i]);
  }
  std::optional<std::size_t> best;
  double best_score = -1;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    // The commit that contains all suspects is the one known to be bad.
    if (!nodes_[i].suspect || nodes_[i].skipped || contained_suspects[i] == suspect_count) continue;
    const double score = static_cast<double>(std::min(contained_suspects[i],
                                                      suspect_count - contained_suspects[i])) *
                         build_likelihood(contained_suspects[i], skipped);
    if (score > best_score) {
      best = i;
      best_score = score;
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
  const auto untried =
      std::ranges::count_if(nodes_, [](const Node& node) { return node.suspect && !node.skipped; });
  std::size_t steps = 0;
  while ((1LL << steps) < untried) ++steps;
  return steps;
}

}  // namespace weir::source
