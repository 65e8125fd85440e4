// Tests the causes of all gates in the report fixtures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/explain/causes.hpp"

#include "tests/explain/judged.hpp"
#include "tests/report/paired_fixtures.hpp"

namespace weir::report {
namespace causes_made_test {

TEST(CausesMade, NothingThatFailedIsInNeither) {
  std::vector<fixtures::Case> cases = fixtures::all();
  for (fixtures::Case& fixture : fixtures::all_beside()) cases.push_back(std::move(fixture));
  for (auto& [name, gate] : cases) {
    // Once with the findings of the fixture, which claim nothing, and once with weir's own.
    for (const bool explained : {false, true}) {
      for (verdict::CellVerdict& cell : gate.cells) {
        if (!explained) continue;
        cell.findings =
            explain::explain(explain::make_evidence(cell), nullptr, {explain::default_bands(), {}})
                .findings;
      }
      explain::find_causes(gate);
      EXPECT_THAT(explain::test::lost(gate), testing::IsEmpty()) << name << explained;
      const auto failed =
          std::ranges::count(gate.cells, verdict::Outcome::fail, &verdict::CellVerdict::verdict);
      if (failed == 0) {
        EXPECT_TRUE(gate.causes.empty() && gate.unexplained.empty()) << name;
      }
    }
  }
}

}  // namespace causes_made_test
}  // namespace weir::report
