// Tests which steps of a plan the journal still lacks.
#include "gate/run/journal.hpp"

#include "tests/run/scene.hpp"

namespace weir::run {
namespace unfinished_test {

using profile::Pass;

// Returns a run of `plan` with records of its first `done` processes.
RunFile make_run(const Plan& plan, std::size_t done) {
  RunFile run;
  run.header = make_header(plan);
  for (std::size_t i = 0; i < done; ++i) {
    profile::RunRecord record;
    record.cell = plan.cells[plan.steps[i].cell].cell.key.str();
    record.pass = plan.steps[i].pass;
    record.order = plan.steps[i].order;
    run.records.push_back(record);
  }
  return run;
}

std::int64_t missing_in_all(const RunFile& run) {
  std::int64_t missing = 0;
  for (const auto& [cell, rest] : unfinished(run)) missing += rest.counted + rest.timed;
  return missing;
}

TEST(Unfinished, IsWhatThePlanHasAndTheJournalHasNot) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  for (std::size_t done = 0; done <= plan.steps.size(); ++done) {
    EXPECT_EQ(missing_in_all(make_run(plan, done)),
              static_cast<std::int64_t>(plan.steps.size() - done));
  }
  RunFile last_lost = make_run(plan, plan.steps.size() - 1);
  const Step& step = plan.steps.back();
  const auto result = unfinished(last_lost);
  ASSERT_EQ(result.size(), 1U);
  EXPECT_EQ(result.begin()->first, plan.cells[step.cell].cell.key.str());
  EXPECT_EQ(result.begin()->second.timed, step.pass == Pass::timed ? 1 : 0);
  EXPECT_GT(result.begin()->second.timed_planned, 1);
}

TEST(Unfinished, CountsOneRecordOfARetriedProcessOnce) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  RunFile run = make_run(plan, plan.steps.size());
  run.records.push_back(run.records.front());
  run.records.back().attempt = 1;
  EXPECT_TRUE(unfinished(run).empty());
}

TEST(Unfinished, IsNotAPassThatWasGivenUp) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  RunFile run = make_run(plan, 1);
  const std::int64_t before = unfinished(run).at(run.records.front().cell).counted;
  run.records.front().error = "exit 1";
  ASSERT_GT(before, 0) << "the scene counts at several lengths";
  EXPECT_EQ(unfinished(run).at(run.records.front().cell).counted, 0) << "its error says enough";
}

TEST(Unfinished, TellsInstructionsThatWereGivenUpFromTheOtherCounts) {
  const auto scene = make_scene();
  Plan plan = plan_scene(*scene);
  // The first counted process is for instructions and failed: the others are still missing.
  plan.steps.front().counts = profile::Counts::instructions;
  RunFile run = make_run(plan, 1);
  run.records.front().counts = profile::Counts::instructions;
  const std::int64_t before = unfinished(run).at(run.records.front().cell).counted;
  run.records.front().error = "valgrind wrote nothing";
  EXPECT_EQ(unfinished(run).at(run.records.front().cell).counted, before);
}

}  // namespace unfinished_test
}  // namespace weir::run
