#include "gate/stats/trend_rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::stats {
namespace {

constexpr std::size_t k_window = 120;  // points that a fit looks back at
constexpr std::size_t k_points_to_fit = 10, k_points_to_slope = 20;
constexpr std::size_t k_points_before_step = 4, k_points_before_bend = 8;
constexpr std::size_t k_points_to_start = 41;
constexpr double k_least_scale = 5e-5;
constexpr double k_outlier = 3.5;  // scales away
constexpr double k_step_threshold = 4.77, k_bend_threshold = 4.92, k_slope_threshold = 4.2;
constexpr std::size_t k_nights_of_doubt = 16, k_nights_to_move = 6;
constexpr std::size_t k_points_explained = 80;
constexpr std::size_t k_longest_step = 24;
constexpr std::size_t k_bend_lengths[] = {6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64};

double square(double x) { return x * x; }

// Reorders.
double middle(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  if (values.size() % 2 == 1) return *half;
  return (*half + *std::max_element(values.begin(), half)) / 2;
}

using Terms = NightFit::Terms;
using Matrix = std::array<Terms, NightFit::k_terms>;

// Gauss and Jordan, with the largest pivot of each column. False where it has no inverse.
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
    const double by = 1 / from[column][column];
    for (std::size_t k = 0; k < size; ++k) {
      from[column][k] *= by;
      into[column][k] *= by;
    }
    for (std::size_t row = 0; row < size; ++row) {
      const double times = from[row][column];
      if (row == column || times == 0) continue;
      for (std::size_t k = 0; k < size; ++k) {
        from[row][k] -= times * from[column][k];
        into[row][k] -= times * into[column][k];
      }
    }
  }
  return true;
}

// Sums from which coefficients come by weighted least squares.
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
  // The sum of squares that these coefficients, which solve() found, leave.
  [[nodiscard]] double left(const Terms& coefficients) const {
    double explained = 0;
    for (std::size_t i = 0; i < size_; ++i) explained += coefficients[i] * products_[i];
    return total_ - explained;
  }

 private:
  // Of a size that the compiler knows: twice as fast.
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

// How much the j-th point behind a change, from 0, says of its size.
double weight_of(Alert::Kind kind, std::size_t j, double memory) {
  const double since = static_cast<double>(j);
  if (kind == Alert::Kind::bend) return since + 1 - memory * since;
  return j == 0 ? 1 : 1 - memory;
}

// Twice the logarithm by which the change explains the errors better, each point bounded.
double gain(std::span<const double> weights, std::span<const double> errors, double size,
            double bound) {
  double sum = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    const double moved = weights[j] * size;
    sum += std::clamp(moved * (errors[j] - moved / 2), -bound, bound);
  }
  return sum;
}

}  // namespace

Terms NightFit::terms_at(std::size_t i) const {
  Terms at{1, static_cast<double>(i) - static_cast<double>(begin)};
  std::size_t next = 2;
  if (step) at[next++] = i >= *step ? 1 : 0;
  if (bend) at[next] = i > *bend ? static_cast<double>(i - *bend) : 0;
  return at;
}

double TrendRule::Distance::excess() const {
  return std::min(evidence - evidence_needed, clearness - clearness_needed);
}

void TrendRule::add(double value) {
  values_.push_back(value);
  reconsider();
  test();
  fit();
  test_slope();
}

const NightFit* TrendRule::fit_of(std::size_t night) const {
  const NightFit& fit = fits_[night % k_nights_kept];
  return fit.night == night && fit.noise > 0 ? &fit : nullptr;
}

// --- fit -----------------------------------------------------------------------------------------

void TrendRule::read_residuals(const NightFit& fit) const {
  residuals_.clear();
  for (std::size_t i = fit.begin; i <= fit.night; ++i) {
    residuals_.push_back(values_[i] - fit.line_at(i));
  }
}

// The scale of a normal distribution whose middle is theirs.
static double scale_of(const std::vector<double>& values, std::vector<double>& sorted) {
  constexpr double k_of_median = 1.4826;
  sorted.clear();
  for (const double value : values) sorted.push_back(std::abs(value));
  return std::max(k_least_scale, k_of_median * middle(sorted));
}

// Theil and Sen's line through the points in front of the changes; medians for step and bend.
void TrendRule::start(NightFit& fit) const {
  std::size_t end = fit.night + 1;
  if (fit.step) end = std::min(end, *fit.step);
  if (fit.bend) end = std::min(end, *fit.bend + 1);
  const std::size_t begin =
      std::max(fit.begin, end > k_points_to_start ? end - k_points_to_start : 0);
  std::vector<double> some;
  for (std::size_t i = begin; i < end; ++i) {
    for (std::size_t k = i + 1; k < end; ++k) {
      some.push_back((values_[k] - values_[i]) / static_cast<double>(k - i));
    }
  }
  fit.coefficients = {};
  fit.coefficients[1] = middle(some);
  some.clear();
  for (std::size_t i = begin; i < end; ++i) some.push_back(values_[i] - fit.line_at(i));
  fit.coefficients[0] = middle(some);
  // The earlier change first: the later one is measured from the line with it.
  const auto put_step = [&](std::size_t to) {
    some.clear();
    for (std::size_t i = *fit.step; i < to; ++i) some.push_back(values_[i] - fit.line_at(i));
    fit.coefficients[2] = middle(some);
  };
  const auto put_bend = [&](std::size_t to) {
    some.clear();
    for (std::size_t i = *fit.bend + 1; i < to; ++i) {
      some.push_back((values_[i] - fit.line_at(i)) / static_cast<double>(i - *fit.bend));
    }
    fit.coefficients[fit.terms - 1] = middle(some);
  };
  const bool step_first = fit.step && (!fit.bend || *fit.step <= *fit.bend);
  if (step_first) put_step(fit.bend ? *fit.bend + 1 : fit.night + 1);
  if (fit.bend) put_bend(fit.step && !step_first ? *fit.step : fit.night + 1);
  if (fit.step && !step_first) put_step(fit.night + 1);
  read_residuals(fit);
}

// One round of weighted least squares: what lies far from the line counts little.
void TrendRule::refine(NightFit& fit, double scale) const {
  Squares squares(fit.terms);
  for (std::size_t i = fit.begin; i <= fit.night; ++i) {
    const double off = std::abs(residuals_[i - fit.begin]);
    double weight = off > 2 * scale ? 2 * scale / off : 1;
    if (off > 6 * scale) weight /= 4;
    squares.add(fit.terms_at(i), values_[i], weight);
  }
  if (squares.solve(fit.coefficients, fit.covariance)) read_residuals(fit);
}

void TrendRule::fit() {
  NightFit fit;
  fit.night = night();
  std::size_t begin = std::max(now_.begin, fit.night + 1 > k_window ? fit.night + 1 - k_window : 0);
  if (now_.bend && begin < *now_.bend && *now_.bend < begin + k_points_before_bend) {
    begin = *now_.bend;
  }
  if (now_.step && begin < *now_.step && *now_.step < begin + k_points_before_step) {
    begin = *now_.step;
  }
  fit.begin = begin;
  if (now_.step && *now_.step > begin) fit.step = now_.step;
  if (now_.bend && *now_.bend > begin && *now_.bend < fit.night) fit.bend = now_.bend;
  fit.terms = 2 + (fit.step ? 1U : 0U) + (fit.bend ? 1U : 0U);
  NightFit& kept = fits_[fit.night % k_nights_kept];
  kept = {};
  if (fit.night + 1 < begin + k_points_to_fit) return;

  const NightFit* last = fit.night > 0 ? fit_of(fit.night - 1) : nullptr;
  if (last != nullptr && last->step == fit.step && last->bend == fit.bend) {
    fit.coefficients = last->coefficients;
    fit.coefficients[0] +=
        fit.coefficients[1] * (static_cast<double>(begin) - static_cast<double>(last->begin));
    read_residuals(fit);
    for (int round = 0; round < 2; ++round) refine(fit, last->scale);
  } else {
    start(fit);
    for (int round = 0; round < 8; ++round) refine(fit, scale_of(residuals_, sorted_));
  }
  fit.scale = scale_of(residuals_, sorted_);

  const double points = fit.points(), far = 2 * fit.scale;
  const double terms = static_cast<double>(fit.terms);
  // Outliers pulled in, not left out: where noise remembers them, it shows in the nights behind.
  const auto pulled_in = [&](std::size_t i) { return std::clamp(residuals_[i], -far, far); };
  double products = 0, squares = 0;
  for (std::size_t i = 1; i < residuals_.size(); ++i) {
    products += pulled_in(i) * pulled_in(i - 1);
    squares += (square(pulled_in(i)) + square(pulled_in(i - 1))) / 2;
  }
  // Raised by what the fit has taken from it, and by what it may be wrong by.
  double memory = squares > 0 ? products / squares : 0;
  memory += terms * (1 + 2 * std::max(0.0, memory)) / points;
  memory = std::clamp(memory, -0.4, 0.95);
  memory += std::sqrt((1 - memory * memory) / points);
  fit.memory = std::clamp(memory, std::max(0.0, 0.6 * (1 - points / 80)), 0.85);

  errors_.assign(1, residuals_[0] * std::sqrt(1 - square(fit.memory)));
  for (std::size_t i = 1; i < residuals_.size(); ++i) {
    errors_.push_back(residuals_[i] - fit.memory * residuals_[i - 1]);
  }
  const double near = k_outlier * scale_of(errors_, sorted_);
  double sum = 0, count = 0;
  for (const double error : errors_) {
    if (std::abs(error) > near) continue;
    sum += square(error);
    ++count;
  }
  fit.noise = std::max(k_least_scale, std::sqrt(sum / std::max(1.0, count - terms - 1)));
  const auto outliers =
      static_cast<double>(std::count_if(errors_.begin(), errors_.end(), [&](double error) {
        return std::abs(error) > k_outlier * fit.noise;
      }));
  // A point with chance p may weigh exp(-reach^2 / 2) = p and no more; prior Beta(0.2, 10).
  const auto reach_of = [points](double share) {
    return std::sqrt(2 * std::log((10.2 + points) / (0.2 + share)));
  };
  fit.reach = std::min(4.0, reach_of(outliers));
  fit.strictness = std::max(0.0, std::min(3.5, reach_of(0)) - fit.reach) * (1 + 1.2 * fit.memory);
  fit.last_residual = std::clamp(residuals_.back(), -3 * fit.scale, 3 * fit.scale);
  std::size_t since = begin;
  if (now_.step) since = std::max(since, *now_.step);
  if (now_.bend) since = std::max(since, *now_.bend + 1);
  fit.fresh = std::max(3.0, static_cast<double>(fit.night + 1) - static_cast<double>(since));
  kept = fit;
}

// --- test ----------------------------------------------------------------------------------------

// Residuals of the fit's line, continued over these points, and their errors in units of its noise.
void TrendRule::foretell(const NightFit& fit, std::size_t first, std::size_t count) const {
  residuals_.clear();
  errors_.clear();
  double before = fit.last_residual;
  for (std::size_t i = first; i < first + count; ++i) {
    residuals_.push_back(values_[i] - fit.line_at(i));
    errors_.push_back((residuals_.back() - fit.memory * before) / fit.noise);
    before = residuals_.back();
  }
}

std::optional<TrendRule::Distance> TrendRule::distance(Alert::Kind kind, std::size_t points) const {
  if (points > night()) return std::nullopt;
  const std::size_t first = night() + 1 - points;
  const NightFit* const fit = first > last_alert_ ? fit_of(first - 1) : nullptr;
  if (fit == nullptr) return std::nullopt;
  const double memory = fit->memory, bound = 1.5 * fit->reach;
  // Nearly every look ends behind this loop, so it keeps nothing.
  double sum = 0, squares = 0, residual_before = fit->last_residual;
  for (std::size_t j = 0; j < points; ++j) {
    const double residual = values_[first + j] - fit->line_at(first + j);
    const double error = (residual - memory * residual_before) / fit->noise;
    residual_before = residual;
    const double weight = weight_of(kind, j, memory);
    sum += weight * std::clamp(error, -bound, bound);
    squares += square(weight);
  }
  if (square(sum) < 9 * squares) return std::nullopt;

  foretell(*fit, first, points);
  weights_.clear();
  for (std::size_t j = 0; j < points; ++j) weights_.push_back(weight_of(kind, j, memory));
  Terms moved{}, before = fit->terms_at(first - 1);
  for (std::size_t j = 0; j < points; ++j) {
    const Terms at = fit->terms_at(first + j);
    for (std::size_t k = 0; k < fit->terms; ++k) {
      moved[k] += weights_[j] * (at[k] - memory * before[k]);
    }
    before = at;
  }
  double of_line = 0;  // what the line may be wrong by
  for (std::size_t i = 0; i < fit->terms; ++i) {
    for (std::size_t k = 0; k < fit->terms; ++k) {
      of_line += moved[i] * fit->covariance[i][k] * moved[k];
    }
  }
  const double wide = std::sqrt(squares + of_line / square(1 - memory));

  const bool step = kind == Alert::Kind::step;
  sorted_.clear();
  for (std::size_t j = step ? 0 : points / 2; j < points; ++j) {
    sorted_.push_back(residuals_[j] / (fit->noise * (step ? 1 : static_cast<double>(j + 1))));
  }
  Distance best;
  double least = -1;
  for (const double size : {sum / squares, middle(sorted_)}) {
    const double by = gain(weights_, errors_, size, square(fit->reach) / 2);
    const double evidence = std::sqrt(2 * std::max(0.0, by));
    const double clearness = std::abs(size) * squares / wide;
    if (std::min(evidence, clearness) <= least) continue;
    least = std::min(evidence, clearness);
    best = {evidence, clearness};
  }
  best.evidence_needed = (step ? k_step_threshold + (points == 2 ? 0.3 : 0) : k_bend_threshold) +
                         offset_ + 1.65 * memory + fit->strictness;
  best.clearness_needed = best.evidence_needed + (step ? 35 : 60) / fit->fresh;
  return best;
}

void TrendRule::test() {
  std::optional<std::size_t> place;
  double most = 0;
  const auto look = [&](Alert::Kind kind, std::size_t points, double& best,
                        std::optional<std::size_t>& first) {
    const auto far = distance(kind, points);
    if (!far || far->excess() < 0 || (first && far->excess() <= best)) return;
    best = far->excess();
    first = night() + 1 - points;
  };
  for (const Alert::Kind kind : {Alert::Kind::step, Alert::Kind::bend}) {
    std::optional<std::size_t> first;
    double best = 0;
    if (kind == Alert::Kind::step) {
      for (std::size_t points = 2; points <= k_longest_step; ++points) {
        look(kind, points, best, first);
      }
    } else {
      for (const std::size_t points : k_bend_lengths) look(kind, points, best, first);
    }
    if (!first) continue;
    place = place ? std::min(*place, *first) : first;
    most = std::max(most, best);
  }
  if (!place) return;
  const NightFit& fit = fit_before(*place);
  const Explanation how = explain(fit, *place);
  alerts_.push_back({night(), how.kind, how.place, how.size, fit.memory, fit.noise, most, false});
  doubt_ = Doubt{fit, now_, *place};
  put(how.kind, how.place);
  last_alert_ = night();
}

// From some nights before the change, so that a place a little before it can be found.
const NightFit& TrendRule::fit_before(std::size_t place) const {
  for (std::size_t nights = 6; nights > 1; --nights) {
    if (place < nights + last_alert_ + 1) continue;
    if (const NightFit* fit = fit_of(place - nights)) return *fit;
  }
  return *fit_of(place - 1);
}

// By a step at every place and by a bend at every place: the one that explains most.
TrendRule::Explanation TrendRule::explain(const NightFit& fit, std::size_t place) const {
  const std::size_t from = fit.night + 1;
  const std::size_t count = std::min(k_points_explained, night() + 1 - from);
  foretell(fit, from, count);
  sorted_.clear();
  for (std::size_t j = place - from; j < count; ++j) {
    sorted_.push_back(std::abs(residuals_[j] / fit.noise));
  }
  const double bound = std::max(3 * fit.reach, 2 * middle(sorted_));
  const auto best_of = [&](Alert::Kind kind) {
    Explanation best{kind, from, 0, -std::numeric_limits<double>::infinity()};
    for (std::size_t at = 0; at < count; ++at) {
      weights_.clear();
      double sum = 0, squares = 0;
      for (std::size_t j = at; j < count; ++j) {
        weights_.push_back(weight_of(kind, j - at, fit.memory));
        sum += weights_.back() * std::clamp(errors_[j], -bound, bound);
        squares += square(weights_.back());
      }
      double size = sum / squares;
      if (kind == Alert::Kind::step && count - at <= 4) {
        sorted_.assign(residuals_.begin() + static_cast<std::ptrdiff_t>(at), residuals_.end());
        size = middle(sorted_) / fit.noise;
      }
      const double by = gain(weights_, std::span(errors_).subspan(at), size, square(bound) / 2);
      if (by > best.likelihood) best = {kind, from + at, size * fit.noise, by};
    }
    return best;
  };
  const Explanation step = best_of(Alert::Kind::step), bend = best_of(Alert::Kind::bend);
  const double few = night() + 1 - step.place < 8 ? 3 : 0;  // too few to tell: rather a step
  return step.likelihood + few >= bend.likelihood ? step : bend;
}

void TrendRule::put(Alert::Kind kind, std::size_t place) {
  if (kind == Alert::Kind::step) {
    now_.begin = std::max(now_.begin, now_.step.value_or(0));
    now_.step = place;
  } else {
    now_.begin = std::max(now_.begin, now_.bend.value_or(0));
    now_.bend = place - 1;
    now_.sloped = true;
  }
}

void TrendRule::reconsider() {
  if (!doubt_) return;
  Alert& told = alerts_.back();
  if (night() > told.night + k_nights_of_doubt) {
    told.settled = true;
    doubt_.reset();
    return;
  }
  const Explanation how = explain(doubt_->fit, doubt_->place);
  const bool moves = how.kind == Alert::Kind::step && night() <= told.night + k_nights_to_move;
  if (how.kind == told.kind && !moves) return;
  if (how.kind != told.kind) {
    now_ = doubt_->before;
    put(how.kind, how.place);
    last_alert_ = night();
  } else {
    now_.step = how.place;
  }
  told.kind = how.kind;
  told.place = how.place;
  told.size = how.size;
}

// --- slope ---------------------------------------------------------------------------------------

void TrendRule::test_slope() {
  const NightFit* const fit = fit_of(night());
  if (fit == nullptr || now_.sloped || fit->bend) return;
  const double points = fit->points(), slope = fit->coefficients[1];
  if (points < static_cast<double>(k_points_to_slope)) return;
  const double spread = fit->noise * std::sqrt(fit->covariance[1][1]) / (1 - fit->memory);
  const double needed = k_slope_threshold + offset_ + 2.4 * fit->memory + 40 / points;
  if (std::abs(slope) < needed * spread) return;

  // What a line, a line with a bend, or a step leaves of the points, the far ones pulled in.
  const std::size_t count = fit->night + 1 - fit->begin;
  residuals_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const double line = fit->line_at(fit->begin + i);
    residuals_.push_back(
        std::clamp(values_[fit->begin + i], line - 3 * fit->scale, line + 3 * fit->scale) -
        fit->line_at(fit->begin));
  }
  enum class Shape { line, bend, step };
  struct Left {
    double squares = std::numeric_limits<double>::infinity();
    std::size_t place = 0;
    double size = 0;
  };
  const auto left_by = [&](Shape shape, std::size_t place) {
    Squares squares((shape == Shape::bend ? 3U : 2U) + (fit->step ? 1U : 0U));
    for (std::size_t i = 0; i < count; ++i) {
      const double at = static_cast<double>(i);
      Terms terms{1, shape == Shape::step ? (i >= place ? 1.0 : 0.0) : at};
      std::size_t next = 2;
      if (shape == Shape::bend) terms[next++] = i > place ? static_cast<double>(i - place) : 0;
      if (fit->step) terms[next] = fit->begin + i >= *fit->step ? 1 : 0;
      squares.add(terms, residuals_[i]);
    }
    Terms coefficients{};
    Matrix inverse{};
    if (!squares.solve(coefficients, inverse)) return Left{};
    return Left{squares.left(coefficients), place,
                coefficients[1] + (shape == Shape::bend ? coefficients[2] : 0)};
  };
  const auto best_of = [&](Shape shape, std::size_t before, std::size_t behind) {
    Left best;
    for (std::size_t place = before; place + behind <= count; ++place) {
      const Left left = left_by(shape, place);
      if (left.squares < best.squares) best = left;
    }
    return best;
  };
  const double unit = square(fit->scale) * (1 + fit->memory) / (1 - fit->memory);
  Left drift = left_by(Shape::line, 0);
  const Left bend = best_of(Shape::bend, k_points_before_bend, k_points_before_bend + 1);
  const bool bends = bend.squares <= drift.squares - 6 * unit;
  if (bends) drift = bend;
  const Left step = fit->step ? Left{} : best_of(Shape::step, k_points_before_step, 3);
  const bool steps = step.squares <= drift.squares - 2 * unit;
  Alert told{night(), Alert::Kind::bend, fit->begin, drift.size, fit->memory, fit->noise};
  told.excess = std::abs(slope) / spread - needed;
  told.settled = true;
  if (steps) {
    told.kind = Alert::Kind::step;
    told.place = fit->begin + step.place;
    told.size = step.size;
    put(Alert::Kind::step, told.place);
  } else {
    if (bends) {
      told.place = fit->begin + drift.place + 1;
      now_.bend = told.place - 1;
    }
    now_.sloped = true;
  }
  alerts_.push_back(told);
  doubt_.reset();
  last_alert_ = night();
}

}  // namespace weir::stats
