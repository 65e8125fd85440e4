#include "benchmarks/change_points/trials.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "gate/stats/change_search.hpp"

#include "benchmarks/change_points/otava.hpp"
#include "benchmarks/change_points/pelt.hpp"

namespace weir::changes {
namespace {

Places places_of(std::span<const double> values, const stats::ChangePolicy& policy) {
  Places places;
  const auto changes = stats::find_changes(values, {}, policy);
  for (const stats::Change& change : changes.value().changes) places.push_back(change.index);
  return places;
}

bool any(const Places& places, const std::function<bool(std::size_t)>& fits) {
  return std::any_of(places.begin(), places.end(), fits);
}

// A method that knows of no nights: it is run anew after each.
Method run_anew(std::string name, std::function<Places(std::span<const double>)> once) {
  Method method;
  method.name = std::move(name);
  method.once = once;
  method.nightly = [once = std::move(once)](std::span<const double> values,
                                            const std::function<bool(std::size_t)>& fits) {
    for (std::size_t night = 3; night <= values.size(); ++night) {
      if (any(once(values.first(night)), fits)) return true;
    }
    return false;
  };
  return method;
}

}  // namespace

Method weir_method(std::optional<double> memory) {
  Method method;
  method.name = "weir";
  stats::ChangePolicy policy;
  policy.memory = memory;
  method.nightly = [policy](std::span<const double> values,
                            const std::function<bool(std::size_t)>& fits) {
    // Nothing is shown before a look has found something; from then on all nights are gone through.
    std::vector<std::size_t> seen;
    stats::Memory told;
    told.told = policy.memory.value_or(-1);
    stats::look_nightly(stats::orders_of(values), 0, values.size(), policy.false_alarm / 365, seen,
                        told);
    if (seen.empty()) return false;
    for (std::size_t night = seen.front(); night <= values.size(); ++night) {
      if (any(places_of(values.first(night), policy), fits)) return true;
    }
    return false;
  };
  policy.first_look = stats::k_one_look;
  method.once = [policy](std::span<const double> values) { return places_of(values, policy); };
  return method;
}

Method otava_method() {
  return run_anew("Otava", [](std::span<const double> values) { return otava(values); });
}
Method pelt_method() { return run_anew("PELT", pelt); }

double share(const Bench& bench, std::string_view name, std::size_t trials,
             const std::function<bool(Random&)>& test) {
  std::atomic<std::size_t> next = 0, held = 0;
  const std::uint64_t key = quality::key_of(bench.seed, name);
  const auto work = [&] {
    for (std::size_t i = next++; i < trials; i = next++) {
      Random random(quality::key_of(key, i));
      if (test(random)) ++held;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < bench.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(held) / static_cast<double>(std::max<std::size_t>(1, trials));
}

double shown_unchanged(const Bench& bench, const Method& method, std::string_view noise,
                       std::size_t nights, bool nightly, std::size_t trials) {
  return share(bench, noise, trials, [&](Random& random) {
    const std::vector<double> values = make_series(noise, nights, {}, bench.times, random);
    if (!nightly) return !method.once(values).empty();
    return method.nightly(values, [](std::size_t) { return true; });
  });
}

double found_step(const Bench& bench, const Method& method, const StepTrial& trial, bool nightly,
                  std::size_t trials) {
  return share(bench, trial.noise, trials, [&](Random& random) {
    const std::vector<double> values =
        make_series(trial.noise, trial.history + trial.behind, {{trial.history, trial.size, 0}},
                    bench.times, random);
    const auto fits = [&](std::size_t place) {
      return place + k_near >= trial.history && place <= trial.history + k_near;
    };
    return nightly ? method.nightly(values, fits) : any(method.once(values), fits);
  });
}

}  // namespace weir::changes
