// Apache Otava's change detection: E-divisive in overlapping windows, then a merge.
#include "benchmarks/change_points/otava.hpp"

#include <algorithm>
#include <cmath>

#include "gate/stats/quantile.hpp"

namespace weir::changes {
namespace {

using Values = std::span<const double>;
using Places = std::vector<std::size_t>;

// Returns the two-sided p-value of Student's t test for two samples of equal variance; 1 if there
// are too few values.
double t_test_p_value(Values left, Values right) {
  const double left_count = static_cast<double>(left.size()),
               right_count = static_cast<double>(right.size());
  if (left.empty() || right.empty() || left_count + right_count <= 2) return 1;
  const auto mean = [](Values part) {
    double sum = 0;
    for (const double value : part) sum += value;
    return sum / static_cast<double>(part.size());
  };
  const double left_mean = mean(left), right_mean = mean(right);
  double squares = 0;
  for (const double value : left) squares += (value - left_mean) * (value - left_mean);
  for (const double value : right) squares += (value - right_mean) * (value - right_mean);
  if (squares == 0) return left_mean == right_mean ? 1 : 0;
  const double t = (left_mean - right_mean) / std::sqrt(squares / (left_count + right_count - 2) *
                                                        (1 / left_count + 1 / right_count));
  return 2 * stats::student_cdf(-std::abs(t), left_count + right_count - 2);
}

struct Candidate {
  std::size_t place = 0;
  double energy = -1;
};

// Returns the number of pairs among `count` values, and 1 for a single value.
double count_pairs(double count) { return std::max(1.0, count * (count - 1) / 2); }

// Returns the place where the parts [0, place) and [place, end) differ most, for the best end. The
// difference of parts with l and r values is their energy:
//
//   l r / (l + r) * (2 * mean distance across - mean distance in left - mean distance in right)
//
// sum(i, k) is the sum of the distances |values[x] - values[y]| over x < i and y < k. All sums
// within and across parts are differences of it.
Candidate best_split(Values values) {
  const std::size_t n = values.size();
  std::vector<double> sums((n + 1) * (n + 1), 0.0);
  const auto sum = [&](std::size_t i, std::size_t k) -> double& { return sums[i * (n + 1) + k]; };
  for (std::size_t i = 0; i < n; ++i) {
    double row = 0;
    for (std::size_t k = 0; k < n; ++k) {
      row += std::abs(values[i] - values[k]);
      sum(i + 1, k + 1) = sum(i, k + 1) + row;
    }
  }
  Candidate best;
  for (std::size_t place = 1; place < n; ++place) {
    for (std::size_t end = place + 1; end <= n; ++end) {
      const double left = static_cast<double>(place), right = static_cast<double>(end - place);
      const double across = sum(place, end) - sum(place, place);
      // Within a part, the sum has each pair twice.
      const double in_left = sum(place, place) / 2;
      const double in_right =
          (sum(end, end) - sum(place, end) - sum(end, place) + sum(place, place)) / 2;
      const double energy = left * right / (left + right) *
                            (2 * across / (left * right) - in_left / count_pairs(left) -
                             in_right / count_pairs(right));
      if (energy > best.energy) best = {place, energy};
    }
  }
  return best;
}

// Splits the part with the largest energy (see best_split()), again and again, until a split fails
// the t test. Returns the splits, sorted.
Places split_window(Values values, double level) {
  struct Part {
    std::size_t begin, end;
    Candidate best;
  };
  const auto make_part = [&](std::size_t begin, std::size_t end) {
    return Part{begin, end, best_split(values.subspan(begin, end - begin))};
  };
  std::vector<Part> parts{make_part(0, values.size())};
  Places places;
  for (;;) {
    const auto strongest = std::max_element(
        parts.begin(), parts.end(),
        [](const Part& a, const Part& b) { return a.best.energy < b.best.energy; });
    if (strongest->best.energy < 0) break;
    const std::size_t place = strongest->begin + strongest->best.place;
    const Values left = values.subspan(strongest->begin, place - strongest->begin);
    if (t_test_p_value(left, values.subspan(place, strongest->end - place)) >= level) break;
    places.push_back(place);
    const Part right_part = make_part(place, strongest->end);
    *strongest = make_part(strongest->begin, place);
    parts.push_back(right_part);
  }
  std::sort(places.begin(), places.end());
  return places;
}

// Removes the split with the largest p-value between its neighbours until all are below the level.
void remove_weak_splits(Values values, double level, Places& places) {
  while (!places.empty()) {
    std::size_t weakest = 0;
    double largest_p_value = -1;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t begin = i == 0 ? 0 : places[i - 1];
      const std::size_t end = i + 1 < places.size() ? places[i + 1] : values.size();
      const double p_value = t_test_p_value(values.subspan(begin, places[i] - begin),
                                            values.subspan(places[i], end - places[i]));
      if (p_value <= largest_p_value) continue;
      largest_p_value = p_value;
      weakest = i;
    }
    if (largest_p_value < level) return;
    places.erase(places.begin() + static_cast<std::ptrdiff_t>(weakest));
  }
}

}  // namespace

// Returns the first points of changes as Apache Otava finds them, ascending. Windows overlap by
// half, and each begins at the last split of the one before if that is later.
std::vector<std::size_t> otava(std::span<const double> values, double level, std::size_t window) {
  Places places;
  for (std::size_t start = 0; start < values.size();) {
    const std::size_t end = std::min(start + window, values.size());
    const Places splits = split_window(values.subspan(start, end - start), 10 * level);
    for (const std::size_t place : splits) places.push_back(start + place);
    const std::size_t last = splits.empty() ? 0 : start + splits.back();
    start = std::max(last, start + window / 2);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  remove_weak_splits(values, level, places);
  return places;
}

}  // namespace weir::changes
