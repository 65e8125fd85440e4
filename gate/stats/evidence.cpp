// Multiplies evidence that one program is slower, pair by pair.
#include "gate/stats/evidence.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace weir::stats {
namespace {

constexpr int k_cells_per_gap = 5;
// How far below the first value the grid begins, in gaps. A value closer to the beginning than
// k_too_close gaps makes it lay the grid anew.
constexpr double k_room_below = 12, k_too_close = 4;
constexpr std::size_t k_search_again = 32;
// Weight of an even density added to the learned one, per value learned.
constexpr double k_even_density = 0.002;

// Scales of the `pair` bets, in gaps: from a quiet machine to a loud one.
constexpr std::array<double, 4> k_pair_scales = {1.0 / 12, 1.0 / 3, 1.5, 6};

// The kernel by distance in cells: (1 + u^2)^-2, u in widths of 0.6 gaps, which are three cells.
constexpr int k_reach = RunDensity::k_cells + 2 * RunDensity::k_below;
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
  const double max_distance = std::sqrt(spread);
  const double y = std::clamp(difference, -max_distance, max_distance);
  return 1 + 2 * y * shift / (y * y + spread);
}

RunDensity::RunDensity(double gap, int shift_cells)
    : width_(gap / k_cells_per_gap), shift_(shift_cells) {
  assert(gap > 0 && shift_cells > 0 && shift_cells <= k_below);
}

int RunDensity::cell_of(double value) const {
  const double cell = std::floor((value - start_) / width_);
  return static_cast<int>(std::clamp(cell, 0.0, static_cast<double>(k_cells - 1)));
}

// Returns the factor by which a bet on `high` being the slower run multiplies, between 0 and 2. It
// compares the learned density of run times with the same density shifted; 1 before any pair.
double RunDensity::bet_factor(double low, double high) const {
  if (run_pairs_.empty()) return 1;
  const double even_density = k_even_density * 2 * static_cast<double>(run_pairs_.size());
  std::array<Step, k_cells> steps;
  std::size_t count = 0;
  for (int cell = 0; cell < k_cells; ++cell) {
    const auto index = static_cast<std::size_t>(cell + k_below);
    Step step{density_[index - static_cast<std::size_t>(shift_)] + even_density,
              density_[index] + even_density, cell + 1};
    while (count > 0 && steps[count - 1].over * step.under >= step.over * steps[count - 1].under) {
      step.over += steps[count - 1].over;
      step.under += steps[count - 1].under;
      --count;
    }
    steps[count] = step;
    ++count;
  }
  const auto ratio_at = [&](double value) {
    const int cell = cell_of(value);
    const auto* step =
        std::upper_bound(steps.data(), steps.data() + count, cell,
                         [](int wanted, const Step& item) { return wanted < item.end; });
    return step->over / step->under;
  };
  const double ratio_low = ratio_at(low), ratio_high = ratio_at(high);
  return 2 * ratio_high / (ratio_low + ratio_high);
}

void RunDensity::add_at(int cell) {
  const double* kernel = &k_kernel[static_cast<std::size_t>(k_reach - k_below - cell)];
  for (std::size_t i = 0; i < density_.size(); ++i) density_[i] += kernel[i];
}

void RunDensity::add(double lo, double hi) {
  add_at(cell_of(lo));
  add_at(cell_of(hi) - shift_);
}

// Returns the best lower end of the density's grid, which has a fixed length: below all values if
// they fit, else where it covers most of them.
double RunDensity::best_start() const {
  const double gap = width_ * k_cells_per_gap;
  const double below_all = lowest_ - k_room_below * gap;
  std::vector<double> values;
  values.reserve(2 * run_pairs_.size());
  for (const RunPair& run_pair : run_pairs_) {
    for (const double value : {run_pair.lo, run_pair.hi}) {
      if (!std::isinf(value)) values.push_back(value);
    }
  }
  const double length = k_cells * width_;
  if (*std::ranges::max_element(values) < below_all + length) return below_all;
  // The grid is too short for all values: take the place with most of them, the lowest such.
  std::ranges::sort(values);
  std::size_t best_begin = 0, most_values = 0, end = 0;
  for (std::size_t begin = 0; begin < values.size(); ++begin) {
    const double gaps_below = begin == 0 ? k_room_below : k_too_close;
    while (end < values.size() && values[end] < values[begin] - gaps_below * gap + length) ++end;
    if (end - begin <= most_values) continue;
    most_values = end - begin;
    best_begin = begin;
  }
  return best_begin == 0 ? below_all : values[best_begin] - k_too_close * gap;
}

// Adds a pair of run times to the density; infinity stands for a run that timed out. Moves the
// grid if values come close to its beginning, or if another place covers more of them.
void RunDensity::learn_pair(double low, double high) {
  const double lower = std::min(low, high);
  if (std::isinf(lower)) return;  // both timed out: they do not show where runs lie
  const double gap = width_ * k_cells_per_gap;
  run_pairs_.push_back({low, high});
  lowest_ = anchored_ ? std::min(lowest_, lower) : lower;
  // Search for the best start again when a value comes close to the beginning, and now and then. If
  // runs spread wider than the grid, many come close: then search once there are an eighth more.
  const bool is_close = lower < start_ + k_too_close * gap;
  const bool has_more = run_pairs_.size() > searched_after_ + searched_after_ / 8;
  const bool is_power_of_two = (run_pairs_.size() & (run_pairs_.size() - 1)) == 0;
  const bool is_search_due = !anchored_ || (is_close && (!too_short_ || has_more)) ||
                             (run_pairs_.size() >= k_search_again && is_power_of_two);
  const double start = is_search_due ? best_start() : start_;
  if (is_search_due) {
    searched_after_ = run_pairs_.size();
    too_short_ = start > lowest_ - k_room_below * gap;
  }
  if (anchored_ && std::abs(start - start_) < k_too_close * gap) {
    add(low, high);
    return;
  }
  anchored_ = true;
  start_ = start;
  density_.fill(0);
  for (const RunPair& run_pair : run_pairs_) add(run_pair.lo, run_pair.hi);
}

Evidence::Evidence(Side side, double null, double gap, std::span<const double> shifts, Scale scale)
    : side_(side), null_change_(null), scale_(scale) {
  for (const double shift : shifts) {
    for (const double width : k_pair_scales) pair_bets_.push_back({shift * gap, width * gap});
    const double cells = shift * k_cells_per_gap;
    density_bets_.push_back({RunDensity(gap, static_cast<int>(std::lround(cells)))});
  }
}

// Multiplies the wealth of every bet by its factor for this pair. A bet gains where `side` is
// larger, as it claims; its wealth is evidence against the null hypothesis, a change of
// null_change_.
void Evidence::add(const Pair& pair) {
  const double candidate_under_null = scale_ == Scale::linear
                                          ? pair.candidate * std::exp(-null_change_)
                                          : pair.candidate - null_change_;
  const double low = side_ == Side::larger ? pair.base : candidate_under_null;
  const double high = side_ == Side::larger ? candidate_under_null : pair.base;
  // A tie bets nothing, and infinity less infinity is not a number.
  if (low != high) {
    for (PairBet& bet : pair_bets_) {
      bet.log_wealth += std::log(pair_factor(high - low, bet.shift, bet.scale));
    }
  }
  for (DensityBet& bet : density_bets_) {
    bet.log_wealth += std::log(bet.density.bet_factor(low, high));
    bet.density.learn_pair(low, high);
  }
  max_log_value_ = std::max(max_log_value_, log_value());
}

namespace {

// ln of the mean of e^x over `bets`.
template <typename Bets>
double log_mean(const Bets& bets) {
  double max_log = bets.front().log_wealth;
  for (const auto& bet : bets) max_log = std::max(max_log, bet.log_wealth);
  double sum = 0;
  for (const auto& bet : bets) sum += std::exp(bet.log_wealth - max_log);
  return max_log + std::log(sum / static_cast<double>(bets.size()));
}

}  // namespace

double Evidence::log_pair_bets() const { return log_mean(pair_bets_); }
double Evidence::log_density_bets() const { return log_mean(density_bets_); }

double Evidence::log_value() const {
  const double a = log_pair_bets(), b = log_density_bets(), max_log = std::max(a, b);
  return max_log + std::log((std::exp(a - max_log) + std::exp(b - max_log)) / 2);
}

}  // namespace weir::stats
