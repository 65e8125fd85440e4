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

// Of standard deviation 1, but for its spikes.
std::function<double()> shape_of(std::string_view name, Random& random) {
  if (name == "t3") {  // Student's t with 3 degrees of freedom, whose variance is 3
    return [&random] {
      double squares = 0;
      for (int i = 0; i < 3; ++i) squares += std::pow(random.normal(), 2);
      return random.normal() / std::sqrt(squares);
    };
  }
  return [&random] { return random.normal(); };
}

Noise noise_of(const NoiseName& name, const std::vector<Recorded>& times, Random& random) {
  if (needs_recorded(name.shape)) return replayed(times, name.shape == "blocks", random);
  const double memory = name.memory;
  Noise noise{[memory, next = shape_of(name.shape, random), at = random.normal()]() mutable {
                const double now = at;
                at = memory * at + std::sqrt(1 - memory * memory) * next();
                return now;
              },
              name.spread, name.shape == "lognormal"};
  if (name.shape == "spikes") {
    noise.next = [plain = std::move(noise.next), &random]() mutable {
      const double spike = random.chance(0.03) ? (random.coin() ? 8 : -8) : 0;
      return plain() + spike;
    };
  }
  if (name.shape == "ticks") {  // a clock with three ticks in a standard deviation
    noise.next = [plain = std::move(noise.next)]() mutable { return std::round(3 * plain()) / 3; };
  }
  return noise;
}

}  // namespace

Recorded recorded(std::vector<double> logs) {
  double mean = 0, squares = 0;
  for (const double log : logs) mean += log / static_cast<double>(logs.size());
  for (const double log : logs) squares += (log - mean) * (log - mean);
  const double spread = std::sqrt(squares / static_cast<double>(logs.size()));
  return {std::move(logs), spread > 0 ? spread : 1};
}

NoiseName name_of(std::string_view noise) {
  NoiseName name;
  const std::size_t at = noise.find('@'), dash = noise.substr(0, at).find('-');
  name.shape = noise.substr(0, std::min(at, dash));
  if (name.shape == "lognormal") name.spread = 0.3;
  if (dash != noise.npos) name.memory = std::stod(std::string(noise.substr(dash + 1)));
  if (at != noise.npos) name.spread = std::stod(std::string(noise.substr(at + 1)));
  return name;
}

std::vector<std::string> noises() {
  return {"normal", "normal-0.3", "normal-0.6", "normal-0.7", "t3",    "t3-0.3", "t3-0.6",
          "spikes", "spikes-0.3", "spikes-0.6", "lognormal",  "ticks", "drawn",  "blocks"};
}

bool needs_recorded(std::string_view noise) { return noise == "drawn" || noise == "blocks"; }

std::vector<double> make_series(std::string_view noise, std::size_t count,
                                const std::vector<Event>& events,
                                const std::vector<Recorded>& times, Random& random) {
  Noise made = noise_of(name_of(noise), times, random);
  std::vector<double> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    double at = made.next(), drifted = 1, grown = 1;
    for (const Event& event : events) {
      if (i < event.place) continue;
      at += event.step;
      const auto nights = static_cast<double>(i - event.place + 1);
      drifted += event.drift * nights;
      grown *= std::pow(1 + event.growth, nights);
    }
    const double by = made.spread * at;
    values.push_back(100 * drifted * grown * (made.logarithmic ? std::exp(by) : 1 + by));
  }
  return values;
}

}  // namespace weir::changes
