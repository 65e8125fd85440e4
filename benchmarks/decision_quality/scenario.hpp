// Scenarios: sources of pairs of runs with a known effect, which rules are replayed on. Pure.
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

// The place of a run in its pair. `effect` is by how much its program makes it slower, as a
// logarithm: 0 for the base.
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

// Fair: the order is drawn for each pair. Off: the base is always first, which shows why a coin is
// needed.
enum class Coin { fair, off };

// One effect that a scenario can be replayed at.
struct Effect {
  std::optional<double> drop;  // the true drop of the rate, a share; absent if not known
  double log = 0;              // added to the candidate's logarithms
};

struct Scenario {
  std::string name;
  // True if base and candidate are one program when there is no effect. A fail is false then, and
  // counts towards the gate's false fails.
  bool same_program = true;
  // If empty, the drops of the command line are replayed (0, T, D, 1.5 D).
  std::vector<Effect> effects;
  std::function<std::unique_ptr<Pairs>(Random random, double effect, Coin coin)> start;
};

// Makes a scenario of runs: each two in a row are a pair; the coin decides which program is first.
[[nodiscard]] Scenario scenario_of_runs(std::string name, bool same_program,
                                        std::function<std::unique_ptr<Runs>(Random&)> start);

}  // namespace weir::quality
