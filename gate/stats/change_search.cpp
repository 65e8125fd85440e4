#include "gate/stats/change_search.hpp"

#include <algorithm>

namespace weir::stats {
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
