// Makes pairs out of a sequence of runs.
#include "benchmarks/decision_quality/scenario.hpp"

#include <utility>

namespace weir::quality {
namespace {

// Makes a pair out of the next two runs; which program runs first is drawn, or always the base.
class PairsOfRuns final : public Pairs {
 public:
  PairsOfRuns(const std::function<std::unique_ptr<Runs>(Random&)>& start, Random random,
              double effect, Coin coin)
      : random_(random), runs_(start(random_)), effect_(effect), coin_(coin) {}

  stats::Pair next() override {
    const bool candidate_first = coin_ == Coin::fair && random_.coin();
    const double first = run(candidate_first, /*second=*/false);
    const double second = run(!candidate_first, /*second=*/true);
    return candidate_first ? stats::Pair{second, first} : stats::Pair{first, second};
  }

 private:
  double run(bool candidate, bool second) {
    return runs_->next(random_, {candidate, second, candidate ? effect_ : 0});
  }

  Random random_;
  std::unique_ptr<Runs> runs_;
  double effect_;
  Coin coin_;
};

}  // namespace

Scenario scenario_of_runs(std::string name, bool same_program,
                          std::function<std::unique_ptr<Runs>(Random&)> start) {
  Scenario scenario;
  scenario.name = std::move(name);
  scenario.same_program = same_program;
  scenario.start = [start = std::move(start)](Random random, double effect, Coin coin) {
    return std::make_unique<PairsOfRuns>(start, random, effect, coin);
  };
  return scenario;
}

}  // namespace weir::quality
