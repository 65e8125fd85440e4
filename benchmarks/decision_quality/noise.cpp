// The table of made-up noises, and the random processes behind them.
#include "benchmarks/decision_quality/noise.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/text.hpp"

namespace weir::quality {
namespace {

// Runs that are independent of each other; a function draws each.
class Independent final : public Runs {
 public:
  using Draw = double (*)(Random&, const Slot&);
  explicit Independent(Draw draw) : draw_(draw) {}
  double next(Random& random, const Slot& slot) override { return draw_(random, slot); }

 private:
  Draw draw_;
};

template <int PerMille>
double normal(Random& random, const Slot& slot) {
  return slot.effect + PerMille / 1000.0 * random.normal();
}

// No run is faster than the floor (0); runs are slower than it by 15 % on average.
double above_floor(Random& random) { return std::log1p(random.exponential(0.15)); }
double floor(Random& random, const Slot& slot) { return slot.effect + above_floor(random); }

// A quiet machine on which 15 % of the runs are disturbed: they take twice as long on average.
double spikes(Random& random, const Slot& slot) {
  const double quiet = 0.01 * random.normal();
  const double spike = random.chance(0.15) ? std::log1p(random.exponential(1)) : 0;
  return slot.effect + quiet + spike;
}

// The second run of each pair is 8 % slower, whichever program it is.
double slot2(Random& random, const Slot& slot) {
  return slot.effect + 0.05 * random.normal() + (slot.second ? 0.08 : 0);
}

// A clock so coarse that a run takes about 12 ticks. The effect is added after rounding, since
// rounding would remove a part of it.
double ticks(Random& random, const Slot& slot) {
  return slot.effect + std::log(std::max(1.0, std::round(12 + random.normal())));
}

// The candidate's noise is twice as wide, on the logarithmic scale.
double noisier(Random& random, const Slot& slot) {
  return slot.effect + (slot.candidate ? 0.10 : 0.05) * random.normal();
}
double noisier_floor(Random& random, const Slot& slot) {
  return slot.effect + (slot.candidate ? 2 : 1) * above_floor(random);
}

// The machine is in one of two states, one of them 1.8 times slower. Before each run it changes its
// state with probability `change`.
class Bimodal final : public Runs {
 public:
  Bimodal(Random& random, double change) : change_(change), slow_(random.coin()) {}
  double next(Random& random, const Slot& slot) override {
    if (random.chance(change_)) slow_ = !slow_;
    return slot.effect + (slow_ ? std::log(1.8) : 0) + std::log1p(random.exponential(0.04));
  }

 private:
  double change_;
  bool slow_;
};

// An AR(1) process with autocorrelation 0.95 and a standard deviation of 20 %; each run adds 2 % of
// independent noise.
class Autoregressive final : public Runs {
 public:
  explicit Autoregressive(Random& random) : at_(k_spread * random.normal()) {}
  double next(Random& random, const Slot& slot) override {
    at_ = k_memory * at_ + k_spread * std::sqrt(1 - k_memory * k_memory) * random.normal();
    return slot.effect + at_ + 0.02 * random.normal();
  }

 private:
  static constexpr double k_memory = 0.95, k_spread = 0.2;
  double at_;
};

// Each run is 0.1 % slower than the one before. A step of 20 % comes at one of the first 100 runs.
// 3 % of noise.
class Drift final : public Runs {
 public:
  explicit Drift(Random& random) : step_(random.below(100)) {}
  double next(Random& random, const Slot& slot) override {
    const double at = 0.001 * static_cast<double>(run_) + (run_ >= step_ ? std::log(1.2) : 0);
    ++run_;
    return slot.effect + at + 0.03 * random.normal();
  }

 private:
  std::size_t step_, run_ = 0;
};

using Start = std::unique_ptr<Runs> (*)(Random&);

template <Independent::Draw Draw>
std::unique_ptr<Runs> independent(Random&) {
  return std::make_unique<Independent>(Draw);
}
template <class State>
std::unique_ptr<Runs> stateful(Random& random) {
  return std::make_unique<State>(random);
}
template <int Percent>
std::unique_ptr<Runs> bimodal(Random& random) {
  return std::make_unique<Bimodal>(random, Percent / 100.0);
}

struct NoiseEntry {
  const char* name;
  Start start;
  bool same_program = true;
  const char* alias = nullptr;  // another name that differs by more than punctuation
};

constexpr NoiseEntry k_noises[] = {
    {"normal-1", independent<normal<10>>},
    {"normal-5", independent<normal<50>>},
    {"normal-20", independent<normal<200>>},
    {"lognormal-0.3", independent<normal<300>>},
    {"floor", independent<floor>, true, "floor 15 %"},
    {"spikes", independent<spikes>},
    {"bimodal-slow", bimodal<5>},
    {"bimodal-fast", bimodal<40>},
    {"ar1", stateful<Autoregressive>},
    {"drift", stateful<Drift>},
    {"slot2", independent<slot2>},
    {"ticks", independent<ticks>},
    {"noisier", independent<noisier>, false, "noisier candidate"},
    {"noisier-floor", independent<noisier_floor>, false},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns only the letters and digits of a name, in lower case, with ".3" read as "0.3". So
// "lognormal .3" and "lognormal-0.3" both give "lognormal03"; "normal .1" and "normal-1" differ.
std::string normalize_name(std::string_view text) {
  std::string name;
  char previous = ' ';
  for (const char c : text::lower(text)) {
    if (c == '.' && !is_digit(previous)) name += '0';
    if (is_digit(c) || (c >= 'a' && c <= 'z')) name += c;
    previous = c;
  }
  return name;
}

// Returns true if `name` starts with `prefix` and the prefix does not end inside a number:
// "normal 2 %" is no prefix of "normal-20". Both are normalized names.
bool is_name_prefix(std::string_view prefix, std::string_view name) {
  if (prefix.empty() || !name.starts_with(prefix)) return false;
  if (name.size() == prefix.size()) return true;
  return !is_digit(prefix.back()) || !is_digit(name[prefix.size()]);
}

}  // namespace

std::vector<std::string> noise_names() {
  std::vector<std::string> names;
  for (const NoiseEntry& entry : k_noises) names.emplace_back(entry.name);
  return names;
}

std::optional<Scenario> noise(std::string_view name) {
  for (const NoiseEntry& entry : k_noises) {
    if (name == entry.name) return scenario_of_runs(entry.name, entry.same_program, entry.start);
  }
  return std::nullopt;
}

// Returns the name of the noise that `text` names or is an unambiguous prefix of. Fails if there is
// none or several.
Result<std::string> find_noise_name(std::string_view text) {
  const std::string wanted = normalize_name(text);
  std::vector<std::string> matches;
  for (const NoiseEntry& entry : k_noises) {
    const std::string name = normalize_name(entry.name);
    const std::string alias = normalize_name(entry.alias ? entry.alias : "");
    if (wanted == name || (wanted == alias && !alias.empty())) return std::string(entry.name);
    if (is_name_prefix(wanted, name) || is_name_prefix(wanted, alias)) {
      matches.emplace_back(entry.name);
    }
  }
  if (matches.size() == 1) return matches[0];
  return fail(Code::usage, "{} noise is named \"{}\"; there are: {}",
              matches.empty() ? "no" : "more than one", text::printable(text),
              text::join(noise_names()));
}

}  // namespace weir::quality
