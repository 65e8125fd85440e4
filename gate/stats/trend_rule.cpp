// Watches a series of nights for steps and drifts: fits, tests and alerts.
#include "gate/stats/trend_rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::stats {
namespace {

constexpr std::size_t k_window = 120;  // points that a fit looks back at
constexpr std::size_t k_points_to_fit = TrendRule::k_min_points - 2, k_points_to_slope = 20;
constexpr std::size_t k_points_before_step = 4, k_points_before_bend = 8;
constexpr std::size_t k_points_of_first_line = 41;
constexpr double k_min_scale = 5e-5;
constexpr double k_outlier = 3.5;  // scales away
constexpr double k_step_threshold = 4.77, k_bend_threshold = 4.92, k_slope_threshold = 4.2;
// How many standard deviations apart two levels of the first points have to lie. Noise without a
// change, with a memory of up to 0.7 and outliers, is as far apart in 3 of 10 000 series at most.
constexpr double k_early_distance = 10, k_least_early_distance = 6;
constexpr std::size_t k_nights_to_move = 6;
constexpr std::size_t k_points_explained = 80;
constexpr std::size_t k_longest_step = 24;
constexpr std::size_t k_bend_lengths[] = {6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64};

double square(double x) { return x * x; }

// The memory of noise that so few points cannot rule out.
double least_memory(double points) { return std::max(0.0, 0.6 * (1 - points / 80)); }

using Terms = NightFit::Terms;
using Matrix = std::array<Terms, NightFit::k_terms>;

// Inverts the first `size` rows and columns by Gauss-Jordan elimination with pivots, and writes
// the result to `into`. False if there is no inverse.
bool invert(Matrix from, std::size_t size, Matrix& into) {
  for (std::size_t i = 0; i < size; ++i) {
    into[i] = {};
    into[i][i] = 1;
  }
  for (std::size_t column = 0; column < size; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < size; ++row) {
      if (std::abs(from[row][column]) > std::abs(from[pivot][column])) pivot = row;
    }
    if (from[pivot][column] == 0) return false;
    std::swap(from[column], from[pivot]);
    std::swap(into[column], into[pivot]);
    const double pivot_inverse = 1 / from[column][column];
    for (std::size_t i = 0; i < size; ++i) {
      from[column][i] *= pivot_inverse;
      into[column][i] *= pivot_inverse;
    }
    for (std::size_t row = 0; row < size; ++row) {
      const double factor = from[row][column];
      if (row == column || factor == 0) continue;
      for (std::size_t i = 0; i < size; ++i) {
        from[row][i] -= factor * from[column][i];
        into[row][i] -= factor * into[column][i];
      }
    }
  }
  return true;
}

// Sums for weighted least squares, and their solution.
class Squares {
 public:
  explicit Squares(std::size_t size) : size_(size) {}

  // Terms from `size` on are 0.
  void add(const Terms& terms, double value, double weight = 1) {
    if (size_ == 2) {
      add_first<2>(terms, value, weight);
    } else {
      add_first<NightFit::k_terms>(terms, value, weight);
    }
  }
  bool solve(Terms& coefficients, Matrix& inverse) {
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t k = i + 1; k < size_; ++k) matrix_[i][k] = matrix_[k][i];
    }
    if (!invert(matrix_, size_, inverse)) return false;
    for (std::size_t i = 0; i < size_; ++i) {
      coefficients[i] = 0;
      for (std::size_t k = 0; k < size_; ++k) coefficients[i] += inverse[i][k] * products_[k];
    }
    return true;
  }
  // The sum of squared residuals for these coefficients, which solve() found.
  [[nodiscard]] double residual_sum(const Terms& coefficients) const {
    double explained = 0;
    for (std::size_t i = 0; i < size_; ++i) explained += coefficients[i] * products_[i];
    return total_ - explained;
  }

 private:
  // The size is known to the compiler: twice as fast.
  template <std::size_t size>
  void add_first(const Terms& terms, double value, double weight) {
    for (std::size_t i = 0; i < size; ++i) {
      const double weighted = weight * terms[i];
      products_[i] += weighted * value;
      for (std::size_t k = 0; k <= i; ++k) matrix_[i][k] += weighted * terms[k];
    }
    total_ += weight * value * value;
  }

  std::size_t size_;
  Matrix matrix_{};
  Terms products_{};
  double total_ = 0;
};

// How much the j-th point after a change, from 0, says about the size of the change.
double change_weight(Alert::Kind kind, std::size_t j, double memory) {
  const double since = static_cast<double>(j);
  if (kind == Alert::Kind::bend) return since + 1 - memory * since;
  return j == 0 ? 1 : 1 - memory;
}

// Twice the logarithm by which a change of `size` explains the errors better. Each point counts at
// most `bound`.
double explained_log_likelihood(std::span<const double> weights, std::span<const double> errors,
                                double size, double bound) {
  double sum = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    const double moved = weights[j] * size;
    sum += std::clamp(moved * (errors[j] - moved / 2), -bound, bound);
  }
  return sum;
}

}  // namespace

// Returns the factor of each coefficient at point i: level, slope, then step and bend if the fit
// has them.
Terms NightFit::terms_at(std::size_t i) const {
  Terms at{1, static_cast<double>(i) - static_cast<double>(begin)};
  std::size_t next = 2;
  if (step) {
    if (i >= *step) at[next] = 1;
    ++next;
  }
  if (bend && i > *bend) at[next] = static_cast<double>(i - *bend);
  return at;
}

double TrendRule::Distance::excess() const {
  return std::min(evidence - evidence_needed, clearness - clearness_needed);
}

void TrendRule::add(double value) {
  values_.push_back(value);
  revise_last_alert();
  if (!find_early_step()) find_change();
  fit();
  test_slope();
}

// --- the first points ----------------------------------------------------------------------------

// Returns the two levels that fit all points best. The first level ends within the first
// k_points_to_fit points, and each has three points at least.
TrendRule::TwoLevels TrendRule::find_two_levels() const {
  constexpr std::size_t k_points_of_level = 3;
  const std::size_t count = values_.size();
  TwoLevels best;
  best.squares = std::numeric_limits<double>::infinity();
  const std::size_t last_place = std::min(k_points_to_fit, count - k_points_of_level);
  for (std::size_t place = k_points_of_level; place <= last_place; ++place) {
    double before = 0, after = 0;
    for (std::size_t i = 0; i < count; ++i) {
      double& level = i < place ? before : after;
      level += values_[i];
    }
    before /= static_cast<double>(place);
    after /= static_cast<double>(count - place);
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i)
      squares += square(values_[i] - (i < place ? before : after));
    if (squares >= best.squares) continue;
    const double noise = std::sqrt(squares / static_cast<double>(count - 2));
    best = {place, after - before, std::max(k_min_scale, noise), squares};
  }
  return best;
}

// Looks for a step among the points of the first fit, which takes it for part of its line. Noise
// and memory are not known yet, so only levels that lie far apart count.
bool TrendRule::find_early_step() {
  const std::size_t count = values_.size();
  if (!alerts_.empty() || count < k_min_points || count > k_early_points) return false;
  const double needed = std::max(k_least_early_distance, k_early_distance + 4 * offset_);
  const TwoLevels levels = find_two_levels();
  if (std::abs(levels.size) < needed * levels.noise) return false;
  add_early_step(levels, 0);
  return true;
}

// Raises the alert of a step among the first points. The fits of later nights contain it.
void TrendRule::add_early_step(const TwoLevels& levels, double excess) {
  const double memory = least_memory(static_cast<double>(values_.size()));
  alerts_.push_back({night(), Alert::Kind::step, levels.place, levels.size, memory,
                     levels.noise * std::sqrt(1 - square(memory)), excess, true});
  add_to_regime(Alert::Kind::step, levels.place);
  last_alert_ = night();
}

// Returns true if two levels explain all points as well as the first fit with `change` after it.
// Such a change is the end of a line that a step among the first points has tilted.
bool TrendRule::is_early_step(const Explanation& change, const TwoLevels& levels) const {
  const NightFit* const fit = fit_of(k_points_to_fit - 1);
  if (fit == nullptr || levels.place >= k_points_to_fit || change.place > k_early_points)
    return false;
  double squares = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    double line = fit->line_at(i);
    if (i >= change.place) {
      const double since = static_cast<double>(i - change.place) + 1;
      line += change.size * (change.kind == Alert::Kind::step ? 1 : since);
    }
    squares += square(values_[i] - line);
  }
  return levels.squares <= squares;
}

const NightFit* TrendRule::fit_of(std::size_t night) const {
  const NightFit& fit = fits_[night % k_stored_nights];
  return fit.night == night && fit.noise > 0 ? &fit : nullptr;
}

// --- fit -----------------------------------------------------------------------------------------

// Fills residuals_ with the distances of all points from the fit.
void TrendRule::compute_residuals(const NightFit& fit) const {
  residuals_.clear();
  for (std::size_t i = fit.begin; i <= fit.night; ++i) {
    residuals_.push_back(values_[i] - fit.line_at(i));
  }
}

// The scale of a normal distribution with the same median of absolute values.
static double robust_scale(const std::vector<double>& values, std::vector<double>& sorted) {
  constexpr double k_of_median = 1.4826;
  sorted.clear();
  for (const double value : values) sorted.push_back(std::abs(value));
  return std::max(k_min_scale, k_of_median * median_in_place(sorted).value_or(0));
}

// Sets first coefficients that outliers hardly move. Level and slope are those of Theil and Sen's
// line through the last points before the step and the bend; the slope is the median of the slopes
// of all pairs. The sizes of step and bend are medians of the distances from that line.
void TrendRule::fit_initially(NightFit& fit) const {
  std::size_t end = fit.night + 1;
  if (fit.step) end = std::min(end, *fit.step);
  if (fit.bend) end = std::min(end, *fit.bend + 1);
  const std::size_t begin =
      std::max(fit.begin, end > k_points_of_first_line ? end - k_points_of_first_line : 0);
  std::vector<double> samples;
  for (std::size_t i = begin; i < end; ++i) {
    for (std::size_t k = i + 1; k < end; ++k) {
      samples.push_back((values_[k] - values_[i]) / static_cast<double>(k - i));
    }
  }
  fit.coefficients = {};
  fit.coefficients[NightFit::k_slope] = median_in_place(samples).value_or(0);
  samples.clear();
  for (std::size_t i = begin; i < end; ++i) samples.push_back(values_[i] - fit.line_at(i));
  fit.coefficients[NightFit::k_level] = median_in_place(samples).value_or(0);
  // The earlier change goes first: the later one is measured from the line with it. Both take the
  // points up to `end`, which is the other change or the last night.
  const auto set_step_until = [&](std::size_t end) {
    samples.clear();
    for (std::size_t i = *fit.step; i < end; ++i) samples.push_back(values_[i] - fit.line_at(i));
    fit.coefficients[NightFit::k_step] = median_in_place(samples).value_or(0);
  };
  const auto set_bend_until = [&](std::size_t end) {
    samples.clear();
    for (std::size_t i = *fit.bend + 1; i < end; ++i) {
      samples.push_back((values_[i] - fit.line_at(i)) / static_cast<double>(i - *fit.bend));
    }
    fit.coefficients[fit.bend_place()] = median_in_place(samples).value_or(0);
  };
  const bool is_step_first = fit.step && (!fit.bend || *fit.step <= *fit.bend);
  if (is_step_first) set_step_until(fit.bend ? *fit.bend + 1 : fit.night + 1);
  if (fit.bend) set_bend_until(fit.step && !is_step_first ? *fit.step : fit.night + 1);
  if (fit.step && !is_step_first) set_step_until(fit.night + 1);
  compute_residuals(fit);
}

// Refines the fit by one round of weighted least squares: points far from the line count little.
void TrendRule::reweight(NightFit& fit, double scale) const {
  Squares squares(fit.terms);
  for (std::size_t i = fit.begin; i <= fit.night; ++i) {
    const double off = std::abs(residuals_[i - fit.begin]);
    double weight = off > 2 * scale ? 2 * scale / off : 1;
    if (off > 6 * scale) weight /= 4;
    squares.add(fit.terms_at(i), values_[i], weight);
  }
  if (squares.solve(fit.coefficients, fit.covariance)) compute_residuals(fit);
}

// Fits the points of the current regime, and stores the fit of this night.
void TrendRule::fit() {
  NightFit fit;
  fit.night = night();
  std::size_t begin =
      std::max(regime_.begin, fit.night + 1 > k_window ? fit.night + 1 - k_window : 0);
  if (regime_.bend && begin < *regime_.bend && *regime_.bend < begin + k_points_before_bend) {
    begin = *regime_.bend;
  }
  if (regime_.step && begin < *regime_.step && *regime_.step < begin + k_points_before_step) {
    begin = *regime_.step;
  }
  fit.begin = begin;
  if (regime_.step && *regime_.step > begin) fit.step = regime_.step;
  if (regime_.bend && *regime_.bend > begin && *regime_.bend < fit.night) fit.bend = regime_.bend;
  fit.terms = 2;
  if (fit.step) ++fit.terms;
  if (fit.bend) ++fit.terms;
  NightFit& stored = fits_[fit.night % k_stored_nights];
  stored = {};
  if (fit.night + 1 < begin + k_points_to_fit) return;

  const NightFit* last = fit.night > 0 ? fit_of(fit.night - 1) : nullptr;
  if (last != nullptr && last->step == fit.step && last->bend == fit.bend) {
    fit.coefficients = last->coefficients;
    fit.coefficients[NightFit::k_level] +=
        fit.coefficients[NightFit::k_slope] *
        (static_cast<double>(begin) - static_cast<double>(last->begin));
    compute_residuals(fit);
    for (int round = 0; round < 2; ++round) reweight(fit, last->scale);
  } else {
    fit_initially(fit);
    for (int round = 0; round < 8; ++round) reweight(fit, robust_scale(residuals_, sorted_));
  }
  fit.scale = robust_scale(residuals_, sorted_);

  const double points = fit.points(), far = 2 * fit.scale;
  const double terms = static_cast<double>(fit.terms);
  // Outliers are pulled in, not left out: noise that remembers shows them in the nights after.
  const auto pulled_in = [&](std::size_t i) { return std::clamp(residuals_[i], -far, far); };
  double products = 0, squares = 0;
  for (std::size_t i = 1; i < residuals_.size(); ++i) {
    products += pulled_in(i) * pulled_in(i - 1);
    squares += (square(pulled_in(i)) + square(pulled_in(i - 1))) / 2;
  }
  // The estimate is too low by the fit's degrees of freedom, and uncertain: it is raised by both.
  double memory = squares > 0 ? products / squares : 0;
  memory += terms * (1 + 2 * std::max(0.0, memory)) / points;
  memory = std::clamp(memory, -0.4, 0.95);
  memory += std::sqrt((1 - memory * memory) / points);
  fit.memory = std::clamp(memory, least_memory(points), 0.85);

  errors_.assign(1, residuals_[0] * std::sqrt(1 - square(fit.memory)));
  for (std::size_t i = 1; i < residuals_.size(); ++i) {
    errors_.push_back(residuals_[i] - fit.memory * residuals_[i - 1]);
  }
  const double near = k_outlier * robust_scale(errors_, sorted_);
  double sum = 0, count = 0;
  for (const double error : errors_) {
    if (std::abs(error) > near) continue;
    sum += square(error);
    ++count;
  }
  fit.noise = std::max(k_min_scale, std::sqrt(sum / std::max(1.0, count - terms - 1)));
  const auto outliers =
      static_cast<double>(std::count_if(errors_.begin(), errors_.end(), [&](double error) {
        return std::abs(error) > k_outlier * fit.noise;
      }));
  // A point that occurs with chance p may weigh exp(-reach^2 / 2) = p at most; prior Beta(0.2, 10).
  const auto reach_of = [points](double share) {
    return std::sqrt(2 * std::log((10.2 + points) / (0.2 + share)));
  };
  fit.reach = std::min(4.0, reach_of(outliers));
  fit.strictness = std::max(0.0, std::min(3.5, reach_of(0)) - fit.reach) * (1 + 1.2 * fit.memory);
  fit.last_residual = std::clamp(residuals_.back(), -3 * fit.scale, 3 * fit.scale);
  std::size_t since = begin;
  if (regime_.step) since = std::max(since, *regime_.step);
  if (regime_.bend) since = std::max(since, *regime_.bend + 1);
  fit.fresh = std::max(3.0, static_cast<double>(fit.night + 1) - static_cast<double>(since));
  stored = fit;
}

// --- test ----------------------------------------------------------------------------------------

// Fills residuals_ with the distances of these points from the continued line of `fit`, and errors_
// with their unpredicted parts in units of its noise.
void TrendRule::predict_errors(const NightFit& fit, std::size_t first, std::size_t count) const {
  residuals_.clear();
  errors_.clear();
  double before = fit.last_residual;
  for (std::size_t i = first; i < first + count; ++i) {
    residuals_.push_back(values_[i] - fit.line_at(i));
    errors_.push_back((residuals_.back() - fit.memory * before) / fit.noise);
    before = residuals_.back();
  }
}

// Compares the last points with the prediction of the night before them: the evidence for a change
// of `kind`, its clearness, and how much of both an alert needs.
std::optional<TrendRule::Distance> TrendRule::distance(Alert::Kind kind, std::size_t points) const {
  if (points > night()) return std::nullopt;
  const std::size_t first = night() + 1 - points;
  const NightFit* const fit = first > last_alert_ ? fit_of(first - 1) : nullptr;
  if (fit == nullptr) return std::nullopt;
  const double memory = fit->memory, bound = 1.5 * fit->reach;
  // Nearly every call ends after this loop, so it stores nothing.
  double sum = 0, squares = 0, residual_before = fit->last_residual;
  for (std::size_t j = 0; j < points; ++j) {
    const double residual = values_[first + j] - fit->line_at(first + j);
    const double error = (residual - memory * residual_before) / fit->noise;
    residual_before = residual;
    const double weight = change_weight(kind, j, memory);
    sum += weight * std::clamp(error, -bound, bound);
    squares += square(weight);
  }
  if (square(sum) < 9 * squares) return std::nullopt;

  predict_errors(*fit, first, points);
  weights_.clear();
  for (std::size_t j = 0; j < points; ++j) weights_.push_back(change_weight(kind, j, memory));
  // How much each coefficient of the line moves the weighted sum.
  Terms moved{}, before = fit->terms_at(first - 1);
  for (std::size_t j = 0; j < points; ++j) {
    const Terms at = fit->terms_at(first + j);
    for (std::size_t k = 0; k < fit->terms; ++k) {
      moved[k] += weights_[j] * (at[k] - memory * before[k]);
    }
    before = at;
  }
  double line_variance = 0;
  for (std::size_t i = 0; i < fit->terms; ++i) {
    for (std::size_t k = 0; k < fit->terms; ++k) {
      line_variance += moved[i] * fit->covariance[i][k] * moved[k];
    }
  }
  const double width = std::sqrt(squares + line_variance / square(1 - memory));

  const bool step = kind == Alert::Kind::step;
  sorted_.clear();
  for (std::size_t j = step ? 0 : points / 2; j < points; ++j) {
    sorted_.push_back(residuals_[j] / (fit->noise * (step ? 1 : static_cast<double>(j + 1))));
  }
  Distance best;
  double weaker_evidence = -1;
  for (const double size : {sum / squares, median_in_place(sorted_).value_or(0)}) {
    const double likelihood =
        explained_log_likelihood(weights_, errors_, size, square(fit->reach) / 2);
    const double evidence = std::sqrt(2 * std::max(0.0, likelihood));
    const double clearness = std::abs(size) * squares / width;
    if (std::min(evidence, clearness) <= weaker_evidence) continue;
    weaker_evidence = std::min(evidence, clearness);
    best = {evidence, clearness};
  }
  double threshold = step ? k_step_threshold : k_bend_threshold;
  if (step && points == 2) threshold += 0.3;
  best.evidence_needed = threshold + offset_ + 1.65 * memory + fit->strictness;
  best.clearness_needed = best.evidence_needed + (step ? 35 : 60) / fit->fresh;
  return best;
}

// Looks for a step or a bend that began in the last points, over all numbers of last points.
// Raises an alert if its evidence is beyond the thresholds.
void TrendRule::find_change() {
  std::optional<std::size_t> earliest_change;
  double excess = 0;
  // Keeps the clearest change of one kind.
  const auto keep_if_clearer = [&](Alert::Kind kind, std::size_t points, double& best,
                                   std::optional<std::size_t>& first_changed) {
    const auto evidence = distance(kind, points);
    if (!evidence || evidence->excess() < 0 || (first_changed && evidence->excess() <= best))
      return;
    best = evidence->excess();
    first_changed = night() + 1 - points;
  };
  for (const Alert::Kind kind : {Alert::Kind::step, Alert::Kind::bend}) {
    std::optional<std::size_t> first_changed;
    double best = 0;
    if (kind == Alert::Kind::step) {
      for (std::size_t points = 2; points <= k_longest_step; ++points) {
        keep_if_clearer(kind, points, best, first_changed);
      }
    } else {
      for (const std::size_t points : k_bend_lengths)
        keep_if_clearer(kind, points, best, first_changed);
    }
    if (!first_changed) continue;
    earliest_change = earliest_change ? std::min(*earliest_change, *first_changed) : first_changed;
    excess = std::max(excess, best);
  }
  if (!earliest_change) return;
  const NightFit& fit = find_fit_before(*earliest_change);
  const Explanation change = explain(fit, *earliest_change);
  if (alerts_.empty() && night() < k_early_points) {
    const TwoLevels levels = find_two_levels();
    if (is_early_step(change, levels)) {
      add_early_step(levels, excess);
      return;
    }
  }
  alerts_.push_back(
      {night(), change.kind, change.place, change.size, fit.memory, fit.noise, excess, false});
  revisable_alert_ = RevisableAlert{fit, regime_, *earliest_change};
  add_to_regime(change.kind, change.place);
  last_alert_ = night();
}

// Returns the fit of some nights before the change, so that a place a little before it can be
// found.
const NightFit& TrendRule::find_fit_before(std::size_t place) const {
  for (std::size_t nights = 6; nights > 1; --nights) {
    if (place < nights + last_alert_ + 1) continue;
    if (const NightFit* fit = fit_of(place - nights)) return *fit;
  }
  return *fit_of(place - 1);
}

// Explains the points after `fit` by a step at every place and by a bend at every place, and
// returns the likeliest change. `place` is where the change was first seen.
TrendRule::Explanation TrendRule::explain(const NightFit& fit, std::size_t place) const {
  const std::size_t first_night = fit.night + 1;
  const std::size_t count = std::min(k_points_explained, night() + 1 - first_night);
  predict_errors(fit, first_night, count);
  sorted_.clear();
  for (std::size_t j = place - first_night; j < count; ++j) {
    sorted_.push_back(std::abs(residuals_[j] / fit.noise));
  }
  const double outlier_bound = std::max(3 * fit.reach, 2 * median_in_place(sorted_).value_or(0));
  const auto best_of = [&](Alert::Kind kind) {
    Explanation best{kind, first_night, 0, -std::numeric_limits<double>::infinity()};
    for (std::size_t offset = 0; offset < count; ++offset) {
      weights_.clear();
      double sum = 0, squares = 0;
      for (std::size_t j = offset; j < count; ++j) {
        weights_.push_back(change_weight(kind, j - offset, fit.memory));
        sum += weights_.back() * std::clamp(errors_[j], -outlier_bound, outlier_bound);
        squares += square(weights_.back());
      }
      double size = sum / squares;
      if (kind == Alert::Kind::step && count - offset <= 4) {
        sorted_.assign(residuals_.begin() + static_cast<std::ptrdiff_t>(offset), residuals_.end());
        size = median_in_place(sorted_).value_or(0) / fit.noise;
      }
      const double likelihood = explained_log_likelihood(
          weights_, std::span(errors_).subspan(offset), size, square(outlier_bound) / 2);
      if (likelihood > best.likelihood)
        best = {kind, first_night + offset, size * fit.noise, likelihood};
    }
    return best;
  };
  const Explanation step = best_of(Alert::Kind::step), bend = best_of(Alert::Kind::bend);
  // With too few points to distinguish the two, a step is preferred.
  const double step_bonus = night() + 1 - step.place < 8 ? 3 : 0;
  return step.likelihood + step_bonus >= bend.likelihood ? step : bend;
}

// Lets later fits begin at the last change of the same kind, and contain this one.
void TrendRule::add_to_regime(Alert::Kind kind, std::size_t place) {
  if (kind == Alert::Kind::step) {
    regime_.begin = std::max(regime_.begin, regime_.step.value_or(0));
    regime_.step = place;
  } else {
    regime_.begin = std::max(regime_.begin, regime_.bend.value_or(0));
    regime_.bend = place - 1;
    regime_.sloped = true;
  }
}

// Corrects the kind or place of the last alert by the points that came since. After
// k_nights_to_revise nights it is settled.
void TrendRule::revise_last_alert() {
  if (!revisable_alert_) return;
  Alert& alert = alerts_.back();
  if (night() > alert.night + k_nights_to_revise) {
    alert.settled = true;
    revisable_alert_.reset();
    return;
  }
  const Explanation change = explain(revisable_alert_->fit, revisable_alert_->place);
  const bool is_same_kind = change.kind == alert.kind;
  const bool may_move =
      change.kind == Alert::Kind::step && night() <= alert.night + k_nights_to_move;
  if (is_same_kind && !may_move) return;
  if (is_same_kind) {
    regime_.step = change.place;
  } else {
    regime_ = revisable_alert_->before;
    add_to_regime(change.kind, change.place);
    last_alert_ = night();
  }
  alert.kind = change.kind;
  alert.place = change.place;
  alert.size = change.size;
}

// --- slope ---------------------------------------------------------------------------------------

// Looks for a drift that no step or bend shows: a slope that is too steep for its uncertainty. The
// alert says if a bend or a step explains the points better.
void TrendRule::test_slope() {
  const NightFit* const fit = fit_of(night());
  if (fit == nullptr || regime_.sloped || fit->bend) return;
  const double points = fit->points(), slope = fit->coefficients[NightFit::k_slope];
  if (points < static_cast<double>(k_points_to_slope)) return;
  const double spread = fit->noise * std::sqrt(fit->covariance[1][1]) / (1 - fit->memory);
  const double needed = k_slope_threshold + offset_ + 2.4 * fit->memory + 40 / points;
  if (std::abs(slope) < needed * spread) return;

  // The points from the first on, with those far from the line pulled in.
  const std::size_t count = fit->night + 1 - fit->begin;
  residuals_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const double line = fit->line_at(fit->begin + i);
    residuals_.push_back(
        std::clamp(values_[fit->begin + i], line - 3 * fit->scale, line + 3 * fit->scale) -
        fit->line_at(fit->begin));
  }
  enum class Shape { line, bend, step };
  struct ShapeFit {
    double squares = std::numeric_limits<double>::infinity();
    std::size_t place = 0;
    double size = 0;
  };
  // Fits one shape with a change at `place`; infinitely bad if it cannot be fitted.
  const auto fit_shape = [&](Shape shape, std::size_t place) {
    std::size_t coefficient_count = shape == Shape::bend ? 3 : 2;
    if (fit->step) ++coefficient_count;
    Squares squares(coefficient_count);
    for (std::size_t i = 0; i < count; ++i) {
      const double since_place = i > place ? static_cast<double>(i - place) : 0;
      const double after_step = i >= place ? 1 : 0;
      Terms terms{1, shape == Shape::step ? after_step : static_cast<double>(i)};
      std::size_t next = 2;
      if (shape == Shape::bend) {
        terms[next] = since_place;
        ++next;
      }
      if (fit->step && fit->begin + i >= *fit->step) terms[next] = 1;
      squares.add(terms, residuals_[i]);
    }
    Terms coefficients{};
    Matrix inverse{};
    if (!squares.solve(coefficients, inverse)) return ShapeFit{};
    return ShapeFit{squares.residual_sum(coefficients), place,
                    coefficients[1] + (shape == Shape::bend ? coefficients[2] : 0)};
  };
  const auto find_best = [&](Shape shape, std::size_t before, std::size_t after) {
    ShapeFit best;
    for (std::size_t place = before; place + after <= count; ++place) {
      const ShapeFit candidate = fit_shape(shape, place);
      if (candidate.squares < best.squares) best = candidate;
    }
    return best;
  };
  const double unit = square(fit->scale) * (1 + fit->memory) / (1 - fit->memory);
  ShapeFit drift = fit_shape(Shape::line, 0);
  const ShapeFit bend = find_best(Shape::bend, k_points_before_bend, k_points_before_bend + 1);
  const bool bends = bend.squares <= drift.squares - 6 * unit;
  if (bends) drift = bend;
  const ShapeFit step = fit->step ? ShapeFit{} : find_best(Shape::step, k_points_before_step, 3);
  const bool steps = step.squares <= drift.squares - 2 * unit;
  Alert alert{night(), Alert::Kind::bend, fit->begin, drift.size, fit->memory, fit->noise};
  alert.excess = std::abs(slope) / spread - needed;
  alert.settled = true;
  if (steps) {
    alert.kind = Alert::Kind::step;
    alert.place = fit->begin + step.place;
    alert.size = step.size;
    add_to_regime(Alert::Kind::step, alert.place);
  } else {
    if (bends) {
      alert.place = fit->begin + drift.place + 1;
      regime_.bend = alert.place - 1;
    }
    regime_.sloped = true;
  }
  alerts_.push_back(alert);
  revisable_alert_.reset();
  last_alert_ = night();
}

}  // namespace weir::stats
