// Which counted processes may run side by side: as many as there are cores, as long as their memory
// is there, one at a time on a device with memory of its own, and one at a port that a url names.
// Pure; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "gate/run/plan.hpp"
#include "gate/run/starts.hpp"

namespace weir::run {

// How requests that overlap meet in batches is a matter of time: what else runs would be in their
// counts. Some engines cannot run twice.
[[nodiscard]] inline bool counts_alone(const PreparedCell& cell) {
  return cell.facts.sweep == profile::Sweep::overlapping ||
         (cell.cell.engine != nullptr && cell.cell.engine->exclusive);
}

class Admission {
 public:
  explicit Admission(std::int64_t cores) : cores_(cores < 1 ? 1 : cores) {}

  // `available`: bytes that the machine can give now; absent: not known, then one at a time is run.
  // An engine that fits nowhere is run alone: it may fit all the same, and if not, it says so.
  // `alone`: nothing may run beside it (counts_alone()).
  [[nodiscard]] bool admits(const PreparedCell& cell, std::optional<std::int64_t> available,
                            bool alone = false) const {
    if (running_ == 0) return true;
    if (alone || alone_) return false;
    if (running_ >= cores_ || !available) return false;
    if (!cell.on_cpu && devices_.contains(cell.cell.device)) return false;
    if (urls_.contains(only_address(cell))) return false;
    // Processes may not have used the memory yet that they were promised: `available` still counts
    // it as free. Subtract all of it, since the used part cannot be told apart.
    return promised_ + estimate(cell) <= *available - *available / 5;
  }

  void started(const PreparedCell& cell, bool alone = false) {
    ++running_;
    alone_ = alone;
    const std::int64_t bytes = estimate(cell);
    promised_ += bytes;
    promised_by_cell_.emplace(cell.cell.key.str(), bytes);
    devices_.insert(cell.cell.device);
    if (std::string place = only_address(cell); !place.empty()) urls_.insert(std::move(place));
  }

  void ended(const PreparedCell& cell, std::optional<std::int64_t> peak_rss_bytes) {
    const std::string name = cell.cell.key.str();
    --running_;
    alone_ = false;
    if (const auto given = promised_by_cell_.extract(name)) promised_ -= given.mapped();
    (void)devices_.extract(cell.cell.device);  // one of them
    (void)urls_.extract(only_address(cell));
    if (peak_rss_bytes) peaks_[name] = std::max(peaks_[name], *peak_rss_bytes);
  }

  // Memory that a process of the cell will need: 1.2 x the largest peak so far, else 1.5 x the
  // model + 256 MiB.
  [[nodiscard]] std::int64_t estimate(const PreparedCell& cell) const {
    if (const auto peak = peaks_.find(cell.cell.key.str()); peak != peaks_.end()) {
      return peak->second + peak->second / 5;
    }
    const auto model = static_cast<std::int64_t>(
        std::min<std::uint64_t>(cell.model_bytes, std::uint64_t{1} << 50));
    return model + model / 2 + (std::int64_t{256} << 20);
  }

 private:
  std::int64_t cores_;
  std::int64_t running_ = 0;
  bool alone_ = false;         // the one that runs wants nothing beside it
  std::int64_t promised_ = 0;  // the estimates of all that run
  std::multiset<std::string> devices_, urls_;
  std::map<std::string, std::int64_t> peaks_;                  // by cell name
  std::multimap<std::string, std::int64_t> promised_by_cell_;  // by cell name: what was promised
};

// The state of a plan: which passes are given up, and how long the rest will take. Pure; not
// thread-safe.
class Tally {
 public:
  // `side_by_side`: so many counted steps run at once.
  Tally(const Plan& plan, std::int64_t side_by_side)
      : side_by_side_(std::max<std::int64_t>(1, side_by_side)) {
    for (const Step& step : plan.steps) ++all_[key(step)].total;
  }

  // One more step than the plan had.
  void add(const Step& step) { ++all_[key(step)].total; }
  // The last record of a step. Seconds are its wall time.
  void note(const Step& step, const profile::RunRecord& record) {
    PassState& state = all_[key(step)];
    ++state.done;
    state.seconds += record.wall_seconds;
    count_failure(record, state);
  }

  // No more steps of this cell's pass: one time-out, or two failures. An engine that hangs would
  // otherwise cost its time-out again and again. Never of pairs, whose failures are numbers
  // (profile/paired.hpp says when enough is enough).
  [[nodiscard]] bool given_up(const Step& step) const {
    return !never_given_up(step) && too_many(all_.at(key(step)));
  }

  // Would it be given up after one more record like this one?
  [[nodiscard]] bool would_give_up(const Step& step, const profile::RunRecord& record) const {
    if (never_given_up(step)) return false;
    PassState state = all_.at(key(step));
    count_failure(record, state);
    return too_many(state);
  }

  // Steps of this cell's pass that have no record.
  [[nodiscard]] std::int64_t open(const Step& step) const {
    const PassState& state = all_.at(key(step));
    return state.total - state.done;
  }

  // Steps with a record or given up
  [[nodiscard]] std::int64_t done(profile::Pass pass) const {
    std::int64_t sum = 0;
    for (const auto& [key, state] : all_) {
      if (std::get<1>(key) != pass) continue;
      sum += too_many(state) ? state.total : state.done;
    }
    return sum;
  }

  [[nodiscard]] std::int64_t total(profile::Pass pass) const {
    std::int64_t sum = 0;
    for (const auto& [key, state] : all_) {
      if (std::get<1>(key) == pass) sum += state.total;
    }
    return sum;
  }

  // Seconds for the rest of the plan; nothing before the first step has ended.
  [[nodiscard]] std::optional<double> seconds_left() const {
    double seconds_done = 0;
    std::int64_t steps_done = 0;
    for (const auto& [key, state] : all_) {
      seconds_done += state.seconds;
      steps_done += state.done;
    }
    if (steps_done == 0) return std::nullopt;
    double seconds_left = 0;
    for (const auto& [key, state] : all_) {
      if (too_many(state)) continue;
      // Assume that steps without a record take as long as the others on average.
      const double each = state.done > 0 ? state.seconds / static_cast<double>(state.done)
                                         : seconds_done / static_cast<double>(steps_done);
      const double seconds = each * static_cast<double>(state.total - state.done);
      seconds_left += std::get<1>(key) == profile::Pass::counted
                          ? seconds / static_cast<double>(side_by_side_)
                          : seconds;
    }
    return seconds_left;
  }

 private:
  struct PassState {
    std::int64_t total = 0, done = 0, failures = 0, timeouts = 0;
    double seconds = 0;  // spent on the done ones
  };
  // Processes that count apart are a pass of their own: its failure stops nothing else. So is each
  // side.
  using Key = std::tuple<std::size_t, profile::Pass, profile::Counts, profile::Side>;
  [[nodiscard]] static Key key(const Step& step) {
    return {step.cell, step.pass, step.counts, step.side};
  }
  [[nodiscard]] static bool never_given_up(const Step& step) {
    return step.pair.has_value() || step.with_probes.has_value();
  }
  static void count_failure(const profile::RunRecord& record, PassState& state) {
    if (record.error) ++state.failures;
    if (record.ended == profile::Ended::timed_out) ++state.timeouts;
  }
  [[nodiscard]] static bool too_many(const PassState& state) {
    return state.timeouts >= 1 || state.failures >= 2;
  }

  std::map<Key, PassState> all_;
  std::int64_t side_by_side_;
};

}  // namespace weir::run
