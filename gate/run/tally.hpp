// What has come of a plan so far: which passes are given up, and how long the rest will take. Pure;
// not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "gate/run/plan.hpp"

namespace weir::run {

class Tally {
 public:
  // `side_by_side`: so many counted steps run at once.
  Tally(const Plan& plan, std::int64_t side_by_side);

  // One more step than the plan had.
  void add(const Step& step) { ++all_[key(step)].total; }
  // The last record of a step. Seconds are its wall time.
  void note(const Step& step, const profile::RunRecord& record);
  // No more steps of this cell's pass: one time-out, or two failures. An engine that hangs would
  // otherwise cost its time-out again and again. Never of pairs, whose failures are numbers
  // (profile/paired.hpp says when enough is enough).
  [[nodiscard]] bool given_up(const Step& step) const;
  // Would it be given up after one more record like this one?
  [[nodiscard]] bool would_give_up(const Step& step, const profile::RunRecord& record) const;
  // Steps of this cell's pass that have no record.
  [[nodiscard]] std::int64_t open(const Step& step) const;

  [[nodiscard]] std::int64_t done(profile::Pass pass) const;  // steps with a record or given up
  [[nodiscard]] std::int64_t total(profile::Pass pass) const;
  // Of the whole plan; nothing before the first step has ended.
  [[nodiscard]] std::optional<double> seconds_left() const;

 private:
  struct One {
    std::int64_t total = 0, done = 0, failures = 0, timeouts = 0;
    double seconds = 0;  // of those done
  };
  // Instructions are a pass of their own here, that they can not be counted stops nothing else; and
  // so is each side.
  using Key = std::tuple<std::size_t, profile::Pass, bool, profile::Side>;
  [[nodiscard]] static Key key(const Step& step) {
    return {step.cell, step.pass, step.instructions, step.side};
  }
  [[nodiscard]] static bool too_many(const One& one);
  std::map<Key, One> all_;
  std::int64_t side_by_side_;
};

}  // namespace weir::run
