#include "gate/stats/change_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "gate/stats/quantile.hpp"

namespace weir::stats {
namespace {

// The normal quantile, in steps: a score is looked up some hundred times a point.
constexpr std::size_t k_score_steps = 8192;
using ScoreTable = std::array<float, k_score_steps>;
const ScoreTable& score_table() {
  static const ScoreTable table = [] {
    ScoreTable made{};
    for (std::size_t i = 0; i < made.size(); ++i) {
      const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(made.size());
      made[i] = static_cast<float>(normal_quantile(p));
    }
    return made;
  }();
  return table;
}

double share_of_scores(std::size_t n) {
  return static_cast<double>(k_score_steps) / (2 * static_cast<double>(n));
}
float score_at(const ScoreTable& table, std::int32_t twice_rank, double share) {
  return table[static_cast<std::size_t>((twice_rank + 1) * share)];
}

// Autocorrelations are underestimated where a level was taken out: by about this much over n.
constexpr double k_bias_next = 3, k_bias_many = 1.5;
// An estimate counts where it is above so many standard errors, and is raised by so many: found by
// simulation, together with the thresholds (benchmarks/change_points --calibrate).
constexpr double k_clear_next = 1.25, k_raise_next = 1.5;
constexpr double k_clear_many = 2.25, k_raise_many = 0.5;
// Below so many points an estimate says little: it need not be clear to count, and is raised more.
constexpr double k_points_known = 120;

}  // namespace

std::vector<Order> orders_of(std::span<const double> values) {
  const std::vector<std::uint32_t> places = places_in_order(values);
  std::vector<Order> orders(values.size());
  Order order = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i > 0 && values[places[i]] != values[places[i - 1]]) ++order;
    orders[places[i]] = order;
  }
  return orders;
}

double mean_of(std::span<const float> scores) {
  if (scores.empty()) return 0;
  return std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
}

void Memory::add(const Memory& other) {
  squares += other.squares;
  next += other.next;
  slow += other.slow;
  points += other.points;
  told = std::max(told, other.told);
}

Memory Memory::with(const Memory& other) const {
  Memory both = *this;
  both.add(other);
  return both;
}

double Memory::of_next() const {
  if (told >= 0) return std::min(told, 0.95);
  if (squares <= 0 || points < 2) return 0;
  const double error = 1 / std::sqrt(points);
  const double estimate = next / squares + k_bias_next / points;
  const double unknown = std::max(0.0, (k_points_known - points) / k_points_known);
  const double clear = k_clear_next - 1.5 * (k_clear_next + 2) * unknown;
  if (estimate <= clear * error) return 0;
  return std::clamp(estimate + k_raise_next * (1 + unknown) * error, 0.0, 0.95);
}

double Memory::of_many() const {
  if (told >= 0 || squares <= 0 || points < 2) return 0;
  const double lags = static_cast<double>(k_lags);
  const double error = 1 / std::sqrt(lags * points);
  const double estimate = slow / squares / lags + k_bias_many / points;
  if (estimate <= k_clear_many * error) return 0;
  return std::clamp(estimate + k_raise_many * error, 0.0, 0.95);
}

namespace {

// Variance of the difference of two neighbouring means, over what it were without correlation.
template <class VarianceOfMean>
double inflated(double before, double after, const VarianceOfMean& variance, double shared) {
  const double plain = 1 / before + 1 / after;
  return std::max(1.0, (variance(before) + variance(after) - 2 * shared) / plain);
}

}  // namespace

double inflation_next(double correlation, double before, double after) {
  const double r = correlation;
  if (r <= 0) return 1;
  const auto variance = [r](double n) {
    return ((1 + r) / (1 - r) - 2 * r * (1 - std::pow(r, n)) / ((1 - r) * (1 - r) * n)) / n;
  };
  const double shared = r * (1 - std::pow(r, before)) * (1 - std::pow(r, after)) /
                        ((1 - r) * (1 - r) * before * after);
  return inflated(before, after, variance, shared);
}

// Correlation that holds for k_lags points and is gone after three times as many.
double inflation_many(double correlation, double before, double after) {
  if (correlation <= 0) return 1;
  constexpr std::size_t k_gone = 3 * k_lags;
  const auto at = [correlation](std::size_t lag) {
    if (lag <= k_lags) return correlation;
    return correlation * static_cast<double>(k_gone - lag) / static_cast<double>(k_gone - k_lags);
  };
  const auto variance = [&at](double n) {
    double sum = 1;
    for (std::size_t lag = 1; lag < k_gone && static_cast<double>(lag) < n; ++lag) {
      sum += 2 * (1 - static_cast<double>(lag) / n) * at(lag);
    }
    return sum / n;
  };
  double shared = 0;
  for (std::size_t lag = 1; lag < k_gone; ++lag) {
    shared += std::min({static_cast<double>(lag), before, after}) * at(lag);
  }
  return inflated(before, after, variance, shared / (before * after));
}

double inflation(const Memory& memory, double before, double after) {
  return std::max(inflation_next(memory.of_next(), before, after),
                  inflation_many(memory.of_many(), before, after));
}

void scores_of_ranks(std::span<const std::int32_t> twice_ranks, std::size_t n,
                     std::vector<float>& scores) {
  const ScoreTable& table = score_table();
  const double share = share_of_scores(n);
  scores.resize(twice_ranks.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = score_at(table, twice_ranks[i], share);
  }
}

std::vector<float> scores_of(std::span<const Order> orders) {
  std::vector<float> scores;
  scores_of_ranks(twice_ranks(orders), orders.size(), scores);
  return scores;
}

double squares_of_scores(std::size_t n) {
  const ScoreTable& table = score_table();
  const double share = share_of_scores(n);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double score = score_at(table, static_cast<std::int32_t>(2 * i), share);
    sum += score * score;
  }
  return sum;
}

Split best_split(std::span<const float> last, std::size_t n, double mean, std::size_t least_before,
                 std::size_t least_after) {
  Split best;
  if (n < least_before + least_after) return best;
  const std::size_t most = std::min(last.size(), n - least_before);
  const double whole = static_cast<double>(n);
  double sum = 0, largest = -1;  // of sum^2 / (after * before)
  for (std::size_t after = 1; after <= most; ++after) {
    sum += last[last.size() - after] - mean;
    if (after < least_after) continue;
    const double held = static_cast<double>(after);
    const double size = sum * sum / (held * (whole - held));
    if (size > largest) {
      largest = size;
      best = {after, size * whole};
    }
  }
  return best;
}

Split best_split(std::span<const float> scores, std::size_t least_before, std::size_t least_after) {
  return best_split(scores, scores.size(), mean_of(scores), least_before, least_after);
}

Split split_at(std::span<const float> scores, std::size_t after) {
  const std::size_t before = scores.size() - after;
  if (before == 0 || after == 0) return {after, 0};
  // Of all splits, the one that leaves so many on each side.
  return best_split(scores, before, after);
}

Memory memory_of_split(std::span<const float> scores, std::size_t after) {
  const std::size_t before = scores.size() - after;
  const double level_before = mean_of(scores.first(before)),
               level_after = mean_of(scores.last(after));
  const auto rest = [&](std::size_t i) {
    return scores[i] - (i < before ? level_before : level_after);
  };
  Memory memory;
  memory.points = static_cast<double>(scores.size());
  double last = 0, recent = 0;  // the point before, and the sum of the last k_lags
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double at = rest(i);
    memory.squares += at * at;
    memory.next += at * last;
    memory.slow += at * recent;
    last = at;
    recent += at;
    if (i >= k_lags) recent -= rest(i - k_lags);
  }
  return memory;
}

double distance(const Split& split, const Memory& own, const Memory& memory) {
  const double n = own.points, after = static_cast<double>(split.after);
  // Nothing is left but what splits: as far apart as n points can say.
  const double rest = std::max(own.squares, 1e-9 * n);
  return std::sqrt((n - 2) * split.between / rest / inflation(memory, n - after, after));
}

namespace {

// Chance that a standard normal number is farther out than z, on either side.
double outside(double z) { return std::erfc(z / std::sqrt(2.0)); }
double outside_quantile(double p) {
  return p >= 1 ? 0.0 : -normal_quantile(std::max(p, 1e-300) / 2);
}

// The largest of many neighbouring normal numbers exceeds z with a chance that goes like
// z^2 * outside(z) (Siegmund, Sequential Analysis, 1985, chapter IV), times how many there are; few
// points add what one over their number has to say. The four constants are by simulation:
// benchmarks/change_points --calibrate.
constexpr double k_once = 0.40, k_once_few = 0;
constexpr double k_night = 0.27, k_night_few = 8;

// How many: what the logarithm of after / before ranges over.
double many_once(double n) {
  constexpr double k_ends =
      static_cast<double>(k_points_before) * static_cast<double>(k_points_after);
  return k_once * std::log(std::max(2.0, n * n / k_ends));
}
double many_news(double n) {
  constexpr double k_most = static_cast<double>(k_news), k_least = k_points_after;
  return k_once * std::log(k_most * (n - k_least) / (k_least * (n - k_most)));
}

double threshold(double p, double many) {
  double z = 4;
  for (int i = 0; i < 20; ++i) z = std::max(1.5, outside_quantile(p / (many * z * z)));
  return z;
}

double chance(double z, double many) {
  return z <= 1.5 ? 1.0 : std::min(1.0, many * z * z * outside(z));
}

}  // namespace

double threshold_once(double p, double n) { return threshold(p, many_once(n)) + k_once_few / n; }
OnceThresholds thresholds_once(double p, double n) {
  if (n < 3 * static_cast<double>(k_news)) return {threshold_once(p, n), threshold_once(p, n)};
  return {threshold(p / 2, many_news(n)) + k_once_few / n, threshold_once(p / 2, n)};
}
NightlyThreshold::NightlyThreshold(double p) : long_run_(threshold(p, k_night)) {}
double NightlyThreshold::at(double n) const { return long_run_ + k_night_few / n; }
double chance_left(double p, const Memory& told) {
  constexpr double k_left = 0.6;  // by simulation, as above
  return told.told >= 0 ? k_left * p : p;
}
double chance_once(double z, double n) { return chance(z - k_once_few / n, many_once(n)); }
double chance_nightly(double z, double n) { return chance(z - k_night_few / n, k_night); }

// --- the search
// ------------------------------------------------------------------------------------

namespace {

// A point is compared with so many points before it at most, and up to half as many more.
constexpr std::size_t k_window = 1024;
// Changes older than this are looked for on every eighth look only: nights later they are as clear.
constexpr std::size_t k_recent = 64, k_seldom = 8;

const std::vector<double>& squares_by_length() {
  static const std::vector<double> squares = [] {
    std::vector<double> made(k_window + k_window / 2 + 1);
    for (std::size_t n = 1; n < made.size(); ++n) made[n] = squares_of_scores(n);
    return made;
  }();
  return squares;
}

// The points since the last change, and each one's rank among them.
class Segment {
 public:
  explicit Segment(std::span<const Order> orders) : orders_(orders) {}

  void start(std::size_t begin) {
    begin_ = end_ = begin;
    twice_ranks_.clear();
    ties_ = false;
  }
  void add() {
    if (end_ - begin_ == squares_by_length().size() - 1) forget();
    const Order added = orders_[end_];
    std::int32_t below = 0, equal = 0;
    const std::size_t n = end_ - begin_, whole = n - n % k_block;
    const Order* const orders = orders_.data() + begin_;
    std::int32_t* const ranks = twice_ranks_.data();
    for (std::size_t i = 0; i < whole; i += k_block) {
      meet<k_block>(orders + i, added, ranks + i, below, equal);
    }
    for (std::size_t i = whole; i < n; ++i) meet<1>(orders + i, added, ranks + i, below, equal);
    ties_ = ties_ || equal > 0;
    twice_ranks_.push_back(2 * below + equal);
    ++end_;
  }

  [[nodiscard]] std::size_t begin() const { return begin_; }
  [[nodiscard]] std::size_t end() const { return end_; }
  [[nodiscard]] std::size_t size() const { return end_ - begin_; }
  [[nodiscard]] const std::vector<float>& scores() {
    scores_of_ranks(twice_ranks_, size(), scores_);
    return scores_;
  }
  // Where the last points have most likely changed, and the sum of squares of all scores.
  [[nodiscard]] Split best(double& squares) {
    const bool seldom = size() % k_seldom == 0 && size() > k_recent;
    if (ties_ || seldom) {
      squares = 0;
      for (const float score : scores()) squares += static_cast<double>(score) * score;
      return best_split(scores_, k_points_before, k_points_after);
    }
    squares = squares_by_length()[size()];
    const std::span<const std::int32_t> ranks(twice_ranks_);
    scores_of_ranks(ranks.last(std::min(size(), k_recent)), size(), scores_);
    return best_split(scores_, size(), 0, k_points_before, k_points_after);
  }

 private:
  // A fixed number at a time, which compilers turn into vector instructions.
  static constexpr std::size_t k_block = 32;
  template <std::size_t Count>
  static void meet(const Order* __restrict orders, Order added, std::int32_t* __restrict ranks,
                   std::int32_t& below, std::int32_t& equal) {
    std::int32_t above_here = 0, equal_here = 0;
    for (std::size_t i = 0; i < Count; ++i) {
      const std::int32_t above = orders[i] > added ? 1 : 0, same = orders[i] == added ? 1 : 0;
      ranks[i] += 2 * above + same;
      above_here += above;
      equal_here += same;
    }
    below += static_cast<std::int32_t>(Count) - above_here - equal_here;
    equal += equal_here;
  }
  void forget() {
    const std::size_t begin = end_ - k_window, end = end_;
    start(begin);
    while (end_ < end) add();
  }

  std::span<const Order> orders_;
  std::size_t begin_ = 0, end_ = 0;
  std::vector<std::int32_t> twice_ranks_;
  std::vector<float> scores_;
  bool ties_ = false;
};

// How many of the last points have changed; 0: none. `closed` is what earlier segments remember.
std::size_t changed(Segment& segment, const NightlyThreshold& threshold, const Memory& closed) {
  if (segment.size() < k_points_before + k_points_after) return 0;
  const double n = static_cast<double>(segment.size());
  const double least = threshold.at(n);
  double squares = 0;
  const Split split = segment.best(squares);
  if (split.between * (n - 2) <= least * least * (squares - split.between)) return 0;
  const Memory own = memory_of_split(segment.scores(), split.after);
  return distance(split, own, own.with(closed)) > least ? split.after : 0;
}

// How many points lie behind the clearest change; 0: none. `last`: the series ends with these
// points.
std::size_t changed_once(const std::vector<float>& scores, double p, bool last,
                         const Memory& told) {
  const double n = static_cast<double>(scores.size());
  const auto holds = [&](const Split& split, double least) {
    const Memory own = memory_of_split(scores, split.after);
    return split.after > 0 && distance(split, own, own.with(told)) > least;
  };
  const Split any = best_split(scores, k_points_before, k_points_after);
  if (!last) return holds(any, threshold_once(p, n)) ? any.after : 0;
  const OnceThresholds least = thresholds_once(p, n);
  if (holds(any, any.after <= k_news ? least.news : least.any)) return any.after;
  const std::span<const float> end = std::span(scores).last(std::min(scores.size(), k_news));
  const Split news =
      best_split(end, scores.size(), mean_of(scores), k_points_before, k_points_after);
  return holds(news, least.news) ? news.after : 0;
}

void split_once(std::span<const Order> orders, std::size_t begin, double p, bool last,
                const Memory& told, Places& found) {
  if (orders.size() < k_points_before + k_points_after) return;
  const std::size_t after = changed_once(scores_of(orders), p, last, told);
  if (after == 0) return;
  const std::size_t before = orders.size() - after;
  split_once(orders.first(before), begin, p, false, told, found);
  found.push_back(begin + before);
  split_once(orders.last(after), begin + before, p, last, told, found);
}

}  // namespace

void look_nightly(std::span<const Order> orders, std::size_t begin, std::size_t end, double p,
                  Places& known, const Memory& told) {
  const NightlyThreshold threshold(chance_left(p, told));
  Segment segment(orders);
  Memory closed = told;
  const auto close = [&](std::size_t from, std::size_t to) {
    closed.add(memory_of_split(scores_of(orders.subspan(from, to - from)), 0));
  };
  std::size_t start = 0;
  for (const std::size_t place : known) {
    close(start, place);
    start = place;
  }
  segment.start(start);
  while (segment.end() < end) {
    segment.add();
    if (segment.end() <= begin) continue;
    const std::size_t after = changed(segment, threshold, closed);
    if (after == 0) continue;
    const std::size_t place = segment.end() - after;
    close(start, place);
    start = place;
    known.push_back(place);
    segment.start(place);
    while (segment.end() < place + after) segment.add();
  }
}

Places look_once(std::span<const Order> orders, std::size_t end, double p, const Places& known,
                 const Memory& told) {
  const double left = chance_left(p, told);
  Places found;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= known.size(); ++i) {
    const std::size_t stop = i < known.size() ? known[i] : end;
    split_once(orders.subspan(start, stop - start), start, left, i == known.size(), told, found);
    if (i < known.size()) found.push_back(stop);
    start = stop;
  }
  return found;
}

namespace {

// Points that each side of a change keeps at least when it is moved.
constexpr std::size_t k_side = 3;
// A change is taken back where its sides are less apart than this: far below what it took to find
// it, so that it does not come and go from night to night.
constexpr double k_refuted = 2.5;

struct Sides {
  std::size_t begin = 0, end = 0;  // of the points that a change is judged by
};
Sides sides_of(const Places& places, std::size_t i, std::size_t points) {
  return {i == 0 ? 0 : places[i - 1], i + 1 == places.size() ? points : places[i + 1]};
}

bool rises(std::span<const float> scores, const Split& split) {
  return mean_of(scores.last(split.after)) > mean_of(scores.first(scores.size() - split.after));
}

bool move(std::span<const Order> orders, Places& places) {
  bool moved = false;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [begin, end] = sides_of(places, i, orders.size());
    const Split split = best_split(scores_of(orders.subspan(begin, end - begin)), k_side, k_side);
    if (split.after == 0 || end - split.after == places[i]) continue;
    places[i] = end - split.after;
    moved = true;
  }
  return moved;
}

Memory memory_between(std::span<const Order> orders, const Places& places) {
  Memory memory;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= places.size(); ++i) {
    const std::size_t end = i < places.size() ? places[i] : orders.size();
    memory.add(memory_of_split(scores_of(orders.subspan(start, end - start)), 0));
    start = end;
  }
  return memory;
}

}  // namespace

std::vector<Found> settled(std::span<const Order> orders, Places places, Memory& memory) {
  const Memory told = memory;
  for (;;) {
    for (int round = 0; round < 3 && move(orders, places);) ++round;
    memory = memory_between(orders, places).with(told);
    std::vector<Found> found;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto [begin, end] = sides_of(places, i, orders.size());
      const std::vector<float> scores = scores_of(orders.subspan(begin, end - begin));
      const Split split = split_at(scores, end - places[i]);
      const Memory own = memory_of_split(scores, split.after);
      found.push_back({places[i], distance(split, own, memory), end - begin, rises(scores, split)});
    }
    const auto weakest = std::ranges::min_element(found, {}, &Found::distance);
    if (weakest == found.end() || weakest->distance >= k_refuted) return found;
    places.erase(places.begin() + (weakest - found.begin()));
  }
}

}  // namespace weir::stats
