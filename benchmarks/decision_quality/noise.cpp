#include "benchmarks/decision_quality/noise.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/text.hpp"

namespace weir::quality {
namespace {

// Runs that know nothing of each other: a function makes each.
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

// Nothing is faster than the floor; most runs are a little slower, by 15 % on average.
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

// A clock so coarse that a run is some 12 of its ticks. The effect comes on top of whole ticks: a
// drop that is rounded away in a part of the runs would not be that drop.
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

// The machine is in one of two states, one 1.8 times slower, and may change before each run.
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

// The machine is much as it was a run ago (autocorrelation .95), its spread over long is 20 %; each
// run adds 2 % of its own.
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

// Each run is .1 % slower than the one before, and from one of the first 100 on all are 20 %
// slower; 3 % of noise.
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

struct Known {
  const char* name;
  Start start;
  bool same_program = true;
  const char* also = nullptr;  // what it is called elsewhere, where that is more than punctuation
};

constexpr Known k_known[] = {
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

// Letters and digits in lower case; ".3" is "0.3", so that "lognormal .3" and "lognormal-0.3" are
// "lognormal03", and "normal .1" is not "normal-1".
std::string bare(std::string_view text) {
  std::string kept;
  char before = ' ';
  for (const char c : text::lower(text)) {
    if (c == '.' && !is_digit(before)) kept += '0';
    if (is_digit(c) || (c >= 'a' && c <= 'z')) kept += c;
    before = c;
  }
  return kept;
}

// "normal 2 %" is no beginning of "normal-20".
bool begins(std::string_view whole, std::string_view part) {
  return !part.empty() && whole.starts_with(part) &&
         (whole.size() == part.size() || !is_digit(part.back()) || !is_digit(whole[part.size()]));
}

}  // namespace

std::vector<std::string> noise_names() {
  std::vector<std::string> names;
  for (const Known& known : k_known) names.emplace_back(known.name);
  return names;
}

std::optional<Scenario> noise(std::string_view name) {
  for (const Known& known : k_known) {
    if (name == known.name) return scenario_of_runs(known.name, known.same_program, known.start);
  }
  return std::nullopt;
}

Result<std::string> noise_called(std::string_view text) {
  const std::string asked = bare(text);
  std::vector<std::string> begun;
  for (const Known& known : k_known) {
    const std::string name = bare(known.name), also = bare(known.also ? known.also : "");
    if (asked == name || (asked == also && !also.empty())) return std::string(known.name);
    if (begins(name, asked) || begins(also, asked)) begun.emplace_back(known.name);
  }
  if (begun.size() == 1) return begun[0];
  return fail(Code::usage, "{} noise is named \"{}\"; there are: {}",
              begun.empty() ? "no" : "more than one", text::printable(text),
              text::join(noise_names()));
}

}  // namespace weir::quality
