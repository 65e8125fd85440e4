// Wraps the methods in one interface and runs them on many series.
#include "benchmarks/change_points/trials.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "gate/stats/trend_rule.hpp"

#include "benchmarks/change_points/otava.hpp"
#include "benchmarks/change_points/pelt.hpp"

namespace weir::changes {
namespace {

bool any(const Places& places, const std::function<bool(std::size_t)>& fits) {
  return std::any_of(places.begin(), places.end(), fits);
}

// Makes a method of an analysis of whole series. After each night, from the third on, it repeats
// the analysis.
Method repeat_nightly(std::string name,
                      std::function<Places(std::span<const double>)> on_whole_series) {
  Method method;
  method.name = std::move(name);
  method.on_whole_series = on_whole_series;
  method.after_each_night = [on_whole_series = std::move(on_whole_series)](
                                std::span<const double> values,
                                const std::function<bool(std::size_t)>& fits) {
    for (std::size_t night = 3; night <= values.size(); ++night) {
      if (any(on_whole_series(values.first(night)), fits)) return true;
    }
    return false;
  };
  return method;
}

}  // namespace

// Returns weir's method: its trend rule after each night, and find_changes on the whole series.
Method weir_method(int sensitivity) {
  Method method;
  method.name = "weir";
  const double offset = stats::k_offset_of_sensitivity * sensitivity;
  method.after_each_night = [offset](std::span<const double> values,
                                     const std::function<bool(std::size_t)>& is_wanted_place) {
    const auto shows_change = [&](std::span<const double> nights) {
      stats::TrendRule rule(offset);
      for (const double value : stats::scaled(nights).values) {
        rule.add(value);
        for (const stats::Alert& alert : rule.alerts()) {
          if (is_wanted_place(alert.place)) return true;
        }
      }
      return false;
    };
    // weir takes logarithms while all values are positive. From the first that is not, it works on
    // the values themselves.
    const auto not_positive = std::ranges::find_if(values, [](double value) { return value <= 0; });
    const auto positive = static_cast<std::size_t>(not_positive - values.begin());
    if (shows_change(values.first(positive))) return true;
    return positive < values.size() && shows_change(values);
  };
  method.on_whole_series = [offset](std::span<const double> values) {
    Places places;
    const auto changes = stats::find_changes(values, {.offset = offset});
    for (const stats::Change& change : changes.value().changes) places.push_back(change.index);
    return places;
  };
  return method;
}

Method otava_method() {
  return repeat_nightly("Otava", [](std::span<const double> values) { return otava(values); });
}
Method pelt_method() { return repeat_nightly("PELT", pelt); }

// Runs `trials` tests on several threads and returns, for each of the `count` answers, the share of
// trials in which it was true. A trial's random numbers depend on the seed, `name` and its index.
std::vector<double> measure_shares(const Bench& bench, std::string_view name, std::size_t trials,
                                   std::size_t count, const std::function<Answers(Random&)>& test) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::atomic<std::size_t>> true_counts(count);
  const std::uint64_t key = quality::derive_key(bench.seed, name);
  const auto work = [&] {
    while (true) {
      const std::size_t trial = next.fetch_add(1);
      if (trial >= trials) return;
      Random random(quality::derive_key(key, trial));
      const Answers answers = test(random);
      for (std::size_t k = 0; k < count; ++k) true_counts[k] += answers[k] ? 1U : 0U;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < bench.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  const auto all = static_cast<double>(std::max<std::size_t>(1, trials));
  std::vector<double> shares;
  for (const auto& true_count : true_counts) {
    shares.push_back(static_cast<double>(true_count) / all);
  }
  return shares;
}

double measure_share(const Bench& bench, std::string_view name, std::size_t trials,
                     const std::function<bool(Random&)>& test) {
  const auto answers = [&](Random& random) { return Answers{test(random)}; };
  return measure_shares(bench, name, trials, 1, answers)[0];
}

// The share of series without a change in which the method shows one.
double false_alarm_share(const Bench& bench, const Method& method, std::string_view noise,
                         std::size_t nights, Analysis analysis, std::size_t trials) {
  return measure_share(bench, noise, trials, [&](Random& random) {
    const std::vector<double> values = make_series(noise, nights, {}, bench.recordings, random);
    if (analysis == Analysis::on_whole_series) return !method.on_whole_series(values).empty();
    return method.after_each_night(values, [](std::size_t) { return true; });
  });
}

// Returns the share of series with a step in which the method shows it, at most k_max_place_error
// points off.
double detection_share(const Bench& bench, const Method& method, const StepTrial& trial,
                       Analysis analysis, std::size_t trials) {
  return measure_share(bench, trial.noise, trials, [&](Random& random) {
    const std::vector<double> values =
        make_series(trial.noise, trial.points_before_step + trial.points_after_step,
                    {{trial.points_before_step, trial.size, 0}}, bench.recordings, random);
    const auto is_near_step = [&](std::size_t place) {
      return place + k_max_place_error >= trial.points_before_step &&
             place <= trial.points_before_step + k_max_place_error;
    };
    if (analysis == Analysis::after_each_night)
      return method.after_each_night(values, is_near_step);
    return any(method.on_whole_series(values), is_near_step);
  });
}

}  // namespace weir::changes
