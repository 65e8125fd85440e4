// What is replayed: something that deals out pairs of runs, at a known effect. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/stats/paired.hpp"

#include "benchmarks/decision_quality/random.hpp"

namespace weir::quality {

// Which run of a pair is asked for. `effect` is what this run takes longer because of its program,
// as a logarithm: 0 for the base.
struct Slot {
  bool candidate = false;
  bool second = false;
  double effect = 0;
};

// Runs in time order, the state of one trial.
class Runs {
 public:
  virtual ~Runs() = default;
  // ln of the time of the next run.
  [[nodiscard]] virtual double next(Random& random, const Slot& slot) = 0;
};

// Pairs of one trial.
class Pairs {
 public:
  virtual ~Pairs() = default;
  [[nodiscard]] virtual stats::Pair next() = 0;
};

// Fair: drawn for each pair. Off: always the base first, to show what the coin is for.
enum class Coin { fair, off };

// One effect that a scenario can be replayed at.
struct Effect {
  std::optional<double> drop;  // the true drop of the rate, a share; absent when not known
  double log = 0;              // what is added to the candidate's logarithms
};

struct Scenario {
  std::string name;
  // Without an effect, base and candidate are the same program: a fail is false then, and counts
  // towards the gate's false fails.
  bool same_program = true;
  // Empty: the drops that the command line asks for (0, T, D, 1.5 D).
  std::vector<Effect> effects;
  std::function<std::unique_ptr<Pairs>(Random random, double effect, Coin coin)> start;
};

// A scenario out of runs: two next to each other are a pair, the coin says which program is first.
[[nodiscard]] Scenario scenario_of_runs(std::string name, bool same_program,
                                        std::function<std::unique_ptr<Runs>(Random&)> start);

}  // namespace weir::quality
