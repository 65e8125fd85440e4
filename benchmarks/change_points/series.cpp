// Makes series of nights: a noise with steps, drifts and growth.
#include "benchmarks/change_points/series.hpp"

#include <cmath>
#include <functional>

namespace weir::changes {
namespace {

// A source of noise, in standard deviations; each call of `next` is a night. If `logarithmic`, it
// is added to the logarithm, else to the value.
struct Noise {
  std::function<double()> next;
  double spread = 0.02;
  bool logarithmic = false;
};

// Replays one of the recordings, drawn at random. Each night is any of its runs; if `in_order`, it
// is the run after the last one instead with chance 1 - 1/60.
Noise replay_recording(const std::vector<Recording>& recordings, bool in_order, Random& random) {
  const Recording& recording = recordings[random.below(recordings.size())];
  const std::size_t start = random.below(recording.logs.size());
  return {[&recording, in_order, &random, at = start]() mutable {
            const std::size_t size = recording.logs.size();
            const bool continues = in_order && !random.chance(1.0 / 60);
            at = continues ? (at + 1) % size : random.below(size);
            return recording.logs[at] / recording.spread;
          },
          recording.spread, /*logarithmic=*/true};
}

// Independent noise of standard deviation 1: Student's t for "t3", else normal.
std::function<double()> independent_noise(std::string_view name, Random& random) {
  if (name == "t3") {  // Student's t with 3 degrees of freedom, whose variance is 3
    return [&random] {
      double squares = 0;
      for (int i = 0; i < 3; ++i) squares += std::pow(random.normal(), 2);
      return random.normal() / std::sqrt(squares);
    };
  }
  return [&random] { return random.normal(); };
}

// Makes the noise of this name: an AR(1) process (each value remembers the last) or a recording,
// with spikes or rounding on top.
Noise make_noise(const NoiseName& name, const std::vector<Recording>& recordings, Random& random) {
  if (needs_recording(name.shape)) {
    return replay_recording(recordings, /*in_order=*/name.shape == "blocks", random);
  }
  auto autoregressive = [memory = name.memory, next = independent_noise(name.shape, random),
                         state = random.normal()]() mutable {
    const double current = state;
    state = memory * state + std::sqrt(1 - memory * memory) * next();
    return current;
  };
  Noise noise{std::move(autoregressive), name.spread, /*logarithmic=*/name.shape == "lognormal"};
  if (name.shape == "spikes") {
    noise.next = [plain = std::move(noise.next), &random]() mutable {
      double spike = 0;
      if (random.chance(0.03)) spike = random.coin() ? 8 : -8;
      return plain() + spike;
    };
  }
  if (name.shape == "ticks") {  // a clock with three ticks in a standard deviation
    noise.next = [plain = std::move(noise.next)]() mutable { return std::round(3 * plain()) / 3; };
  }
  return noise;
}

}  // namespace

Recording make_recording(std::vector<double> logs) {
  double mean = 0, squares = 0;
  for (const double log : logs) mean += log / static_cast<double>(logs.size());
  for (const double log : logs) squares += (log - mean) * (log - mean);
  const double spread = std::sqrt(squares / static_cast<double>(logs.size()));
  return {std::move(logs), spread > 0 ? spread : 1};
}

NoiseName parse_noise_name(std::string_view noise) {
  NoiseName name;
  const std::size_t at = noise.find('@'), dash = noise.substr(0, at).find('-');
  name.shape = noise.substr(0, std::min(at, dash));
  if (name.shape == "lognormal") name.spread = 0.3;
  if (dash != noise.npos) name.memory = std::stod(std::string(noise.substr(dash + 1)));
  if (at != noise.npos) name.spread = std::stod(std::string(noise.substr(at + 1)));
  return name;
}

std::vector<std::string> noise_names() {
  return {"normal", "normal-0.3", "normal-0.6", "normal-0.7", "t3",    "t3-0.3", "t3-0.6",
          "spikes", "spikes-0.3", "spikes-0.6", "lognormal",  "ticks", "drawn",  "blocks"};
}

bool needs_recording(std::string_view noise) { return noise == "drawn" || noise == "blocks"; }

// Makes a series around 100 of a noise and events, one value a night. Steps add to the noise; drift
// and growth multiply the value.
std::vector<double> make_series(std::string_view noise, std::size_t count,
                                const std::vector<Event>& events,
                                const std::vector<Recording>& recordings, Random& random) {
  Noise source = make_noise(parse_noise_name(noise), recordings, random);
  std::vector<double> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    double deviation = source.next();  // in standard deviations
    double drift = 1, growth = 1;      // factors
    for (const Event& event : events) {
      if (i < event.place) continue;
      deviation += event.step;
      const auto nights = static_cast<double>(i - event.place + 1);
      drift += event.drift * nights;
      growth *= std::pow(1 + event.growth, nights);
    }
    const double offset = source.spread * deviation;
    const double noise_factor = source.logarithmic ? std::exp(offset) : 1 + offset;
    values.push_back(100 * drift * growth * noise_factor);
  }
  return values;
}

}  // namespace weir::changes
