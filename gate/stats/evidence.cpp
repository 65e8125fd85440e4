#include "gate/stats/evidence.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace weir::stats {
namespace {

constexpr int k_cells_per_gap = 5;
// How far below the first value the grid begins, and how close to its beginning a value may come
// before the grid is laid anew; in gaps.
constexpr double k_room_below = 12, k_too_close = 4;
constexpr std::size_t k_look_again = 32;
// Weight of an even density beside what was learned, per value learned.
constexpr double k_even = 0.002;

// Scales of the `pair` bets, in gaps: from a quiet machine to a loud one.
constexpr std::array<double, 4> k_pair_scales = {1.0 / 12, 1.0 / 3, 1.5, 6};

// The kernel by distance in cells: (1 + u^2)^-2, u in widths of 0.6 gaps, which are three cells.
constexpr int k_reach = Place::k_cells + 2 * Place::k_below;
constexpr std::array<double, 2 * k_reach + 1> k_kernel = [] {
  std::array<double, 2 * k_reach + 1> kernel{};
  for (int i = -k_reach; i <= k_reach; ++i) {
    const double u = i / (0.6 * k_cells_per_gap);
    kernel[static_cast<std::size_t>(i + k_reach)] = 1 / ((1 + u * u) * (1 + u * u));
  }
  return kernel;
}();

// One step of the non-decreasing function nearest to over / under (pool adjacent violators). All
// denominators are positive.
struct Step {
  double over, under;
  int end;  // first cell after it
};

}  // namespace

double pair_factor(double difference, double shift, double scale) {
  const double spread = shift * shift + scale * scale;
  const double most = std::sqrt(spread);
  const double y = std::clamp(difference, -most, most);
  return 1 + 2 * y * shift / (y * y + spread);
}

Place::Place(double gap, int shift_cells) : width_(gap / k_cells_per_gap), shift_(shift_cells) {
  assert(gap > 0 && shift_cells > 0 && shift_cells <= k_below);
}

int Place::cell_of(double value) const {
  const double cell = std::floor((value - start_) / width_);
  return static_cast<int>(std::clamp(cell, 0.0, static_cast<double>(k_cells - 1)));
}

double Place::factor(double lo, double hi) const {
  if (seen_.empty()) return 1;
  const double even = k_even * 2 * static_cast<double>(seen_.size());
  std::array<Step, k_cells> steps;
  std::size_t count = 0;
  for (int cell = 0; cell < k_cells; ++cell) {
    const auto at = static_cast<std::size_t>(cell + k_below);
    Step step{density_[at - static_cast<std::size_t>(shift_)] + even, density_[at] + even,
              cell + 1};
    while (count > 0 && steps[count - 1].over * step.under >= step.over * steps[count - 1].under) {
      step.over += steps[count - 1].over;
      step.under += steps[count - 1].under;
      --count;
    }
    steps[count++] = step;
  }
  const auto ratio_at = [&](double value) {
    const int cell = cell_of(value);
    const auto* step =
        std::upper_bound(steps.data(), steps.data() + count, cell,
                         [](int wanted, const Step& one) { return wanted < one.end; });
    return step->over / step->under;
  };
  const double at_lo = ratio_at(lo), at_hi = ratio_at(hi);
  return 2 * at_hi / (at_lo + at_hi);
}

void Place::add_at(int cell) {
  const double* kernel = &k_kernel[static_cast<std::size_t>(k_reach - k_below - cell)];
  for (std::size_t i = 0; i < density_.size(); ++i) density_[i] += kernel[i];
}

void Place::add(double lo, double hi) {
  add_at(cell_of(lo));
  add_at(cell_of(hi) - shift_);
}

double Place::best_start() const {
  const double gap = width_ * k_cells_per_gap;
  const double below_all = lowest_ - k_room_below * gap;
  std::vector<double> values;
  values.reserve(2 * seen_.size());
  for (const Seen& seen : seen_) {
    for (const double value : {seen.lo, seen.hi}) {
      if (!std::isinf(value)) values.push_back(value);
    }
  }
  const double length = k_cells * width_;
  if (*std::ranges::max_element(values) < below_all + length) return below_all;
  // Too short for all: where most of them are, the lowest such place.
  std::ranges::sort(values);
  std::size_t best = 0, most = 0, end = 0;
  for (std::size_t begin = 0; begin < values.size(); ++begin) {
    const double room = begin == 0 ? k_room_below : k_too_close;
    while (end < values.size() && values[end] < values[begin] - room * gap + length) ++end;
    if (end - begin <= most) continue;
    most = end - begin;
    best = begin;
  }
  return best == 0 ? below_all : values[best] - k_too_close * gap;
}

void Place::learn(double lo, double hi) {
  const double lower = std::min(lo, hi);
  if (std::isinf(lower)) return;  // both timed out: nothing is known of where runs lie
  const double gap = width_ * k_cells_per_gap;
  seen_.push_back({lo, hi});
  lowest_ = anchored_ ? std::min(lowest_, lower) : lower;
  // Looked at again when a value comes close to the beginning, and now and then. Of runs that
  // spread wider than the grid many do: those are looked at when there are an eighth more.
  const bool close = lower < start_ + k_too_close * gap;
  const bool more = seen_.size() > looked_after_ + looked_after_ / 8;
  const bool look = !anchored_ || (close && (!too_short_ || more)) ||
                    (seen_.size() >= k_look_again && (seen_.size() & (seen_.size() - 1)) == 0);
  const double start = look ? best_start() : start_;
  if (look) {
    looked_after_ = seen_.size();
    too_short_ = start > lowest_ - k_room_below * gap;
  }
  if (anchored_ && std::abs(start - start_) < k_too_close * gap) {
    add(lo, hi);
    return;
  }
  anchored_ = true;
  start_ = start;
  density_.fill(0);
  for (const Seen& seen : seen_) add(seen.lo, seen.hi);
}

Evidence::Evidence(Side side, double null, double gap, std::span<const double> shifts, Scale scale)
    : side_(side), null_(null), scale_(scale) {
  for (const double shift : shifts) {
    for (const double width : k_pair_scales) pair_.push_back({shift * gap, width * gap});
    const double cells = shift * k_cells_per_gap;
    place_.push_back({Place(gap, static_cast<int>(std::lround(cells)))});
  }
}

void Evidence::add(const Pair& pair) {
  const double moved =
      scale_ == Scale::line ? pair.candidate * std::exp(-null_) : pair.candidate - null_;
  const double lo = side_ == Side::larger ? pair.base : moved;
  const double hi = side_ == Side::larger ? moved : pair.base;
  // A tie bets nothing, and infinity less infinity is no number.
  if (lo != hi) {
    for (PairBet& bet : pair_) {
      bet.log_wealth += std::log(pair_factor(hi - lo, bet.shift, bet.scale));
    }
  }
  for (PlaceBet& bet : place_) {
    bet.log_wealth += std::log(bet.place.factor(lo, hi));
    bet.place.learn(lo, hi);
  }
  most_ = std::max(most_, log_value());
}

namespace {

// ln of the mean of e^x over `bets`.
template <typename Bets>
double log_mean(const Bets& bets) {
  double most = bets.front().log_wealth;
  for (const auto& bet : bets) most = std::max(most, bet.log_wealth);
  double sum = 0;
  for (const auto& bet : bets) sum += std::exp(bet.log_wealth - most);
  return most + std::log(sum / static_cast<double>(bets.size()));
}

}  // namespace

double Evidence::log_pair() const { return log_mean(pair_); }
double Evidence::log_place() const { return log_mean(place_); }

double Evidence::log_value() const {
  const double a = log_pair(), b = log_place(), most = std::max(a, b);
  return most + std::log((std::exp(a - most) + std::exp(b - most)) / 2);
}

}  // namespace weir::stats
