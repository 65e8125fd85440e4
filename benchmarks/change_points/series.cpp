#include "benchmarks/change_points/series.hpp"

#include <cmath>
#include <functional>

namespace weir::changes {
namespace {

// The noise of a night, in standard deviations. `logarithmic`: of the logarithm; else of the value.
struct Noise {
  std::function<double()> next;
  double spread = 0.02;
  bool logarithmic = false;
};

Noise remembering(double memory, Random& random) {
  return {[memory, &random, at = random.normal()]() mutable {
            const double now = at;
            at = memory * at + std::sqrt(1 - memory * memory) * random.normal();
            return now;
          },
          0.02, false};
}

// Runs of one recorded program: each any of them, or, with chance 1 - 1/60, the one behind the
// last.
Noise replayed(const std::vector<Recorded>& times, bool in_order, Random& random) {
  const Recorded& from = times[random.below(times.size())];
  const std::size_t start = random.below(from.logs.size());
  return {[&from, in_order, &random, at = start]() mutable {
            const bool on = in_order && !random.chance(1.0 / 60);
            at = on ? (at + 1) % from.logs.size() : random.below(from.logs.size());
            return from.logs[at] / from.spread;
          },
          from.spread, true};
}

Noise noise_of(std::string_view name, const std::vector<Recorded>& times, Random& random) {
  const auto normal = [&random] { return random.normal(); };
  if (name == "lognormal") return {normal, 0.3, true};
  if (name == "spikes") {
    return {[&random] {
              const double spike = random.chance(0.05) ? 5 + 5 * random.uniform() : 0;
              return random.normal() + spike;
            },
            0.02, false};
  }
  if (name == "ticks") {  // a clock with three ticks in a standard deviation
    return {[&random] { return std::round(3 * random.normal()) / 3; }, 0.02, false};
  }
  if (name == "ar1-0.15") return remembering(0.15, random);
  if (name == "ar1-0.3") return remembering(0.3, random);
  if (name == "ar1-0.5") return remembering(0.5, random);
  if (name == "ar1-0.7") return remembering(0.7, random);
  if (needs_recorded(name)) return replayed(times, name == "blocks", random);
  return {normal, 0.02, false};
}

}  // namespace

Recorded recorded(std::vector<double> logs) {
  double mean = 0, squares = 0;
  for (const double log : logs) mean += log / static_cast<double>(logs.size());
  for (const double log : logs) squares += (log - mean) * (log - mean);
  const double spread = std::sqrt(squares / static_cast<double>(logs.size()));
  return {std::move(logs), spread > 0 ? spread : 1};
}

std::vector<std::string> noises() {
  return {"normal",  "lognormal", "spikes",  "ticks", "ar1-0.15",
          "ar1-0.3", "ar1-0.5",   "ar1-0.7", "drawn", "blocks"};
}

bool needs_recorded(std::string_view noise) { return noise == "drawn" || noise == "blocks"; }

std::vector<double> make_series(std::string_view noise, std::size_t count,
                                const std::vector<Event>& events,
                                const std::vector<Recorded>& times, Random& random) {
  Noise made = noise_of(noise, times, random);
  std::vector<double> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    double at = made.next(), drifted = 1;
    for (const Event& event : events) {
      if (i < event.place) continue;
      at += event.step;
      drifted += event.drift * static_cast<double>(i - event.place + 1);
    }
    const double by = made.spread * at;
    values.push_back(100 * drifted * (made.logarithmic ? std::exp(by) : 1 + by));
  }
  return values;
}

}  // namespace weir::changes
