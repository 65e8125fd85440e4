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

Method weir_method(int sensitivity) {
  Method method;
  method.name = "weir";
  const double offset = stats::k_offset_of_sensitivity * sensitivity;
  method.nightly = [offset](std::span<const double> values,
                            const std::function<bool(std::size_t)>& fits) {
    const auto shows = [&](std::span<const double> nights) {
      stats::TrendRule rule(offset);
      for (const double value : stats::scaled(nights).values) {
        rule.add(value);
        for (const stats::Alert& alert : rule.alerts()) {
          if (fits(alert.place)) return true;
        }
      }
      return false;
    };
    // Logarithms, until a value is none.
    const auto bad = std::ranges::find_if(values, [](double value) { return value <= 0; });
    const auto good = static_cast<std::size_t>(bad - values.begin());
    return shows(values.first(good)) || (good < values.size() && shows(values));
  };
  method.once = [offset](std::span<const double> values) {
    Places places;
    const auto changes = stats::find_changes(values, {.offset = offset});
    for (const stats::Change& change : changes.value().changes) places.push_back(change.index);
    return places;
  };
  return method;
}

Method otava_method() {
  return run_anew("Otava", [](std::span<const double> values) { return otava(values); });
}
Method pelt_method() { return run_anew("PELT", pelt); }

std::vector<double> shares(const Bench& bench, std::string_view name, std::size_t trials,
                           std::size_t count, const std::function<Held(Random&)>& test) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::atomic<std::size_t>> held(count);
  const std::uint64_t key = quality::key_of(bench.seed, name);
  const auto work = [&] {
    for (std::size_t i = next++; i < trials; i = next++) {
      Random random(quality::key_of(key, i));
      const Held here = test(random);
      for (std::size_t k = 0; k < count; ++k) held[k] += here[k] ? 1U : 0U;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < bench.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& one : held) {
    all.push_back(static_cast<double>(one) / static_cast<double>(std::max<std::size_t>(1, trials)));
  }
  return all;
}

double share(const Bench& bench, std::string_view name, std::size_t trials,
             const std::function<bool(Random&)>& test) {
  return shares(bench, name, trials, 1, [&](Random& random) { return Held{test(random)}; })[0];
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
