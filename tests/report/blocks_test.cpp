// Tests which cells with the same text are grouped, and how groups are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/find.hpp"
#include "gate/report/annotations.hpp"
#include "gate/report/html.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/terminal.hpp"

#include "tests/report/fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace blocks_test {

using support::occurrences;
using testing::HasSubstr;
using testing::Not;

struct Failed {
  const char* reason;
  const char* stderr_tail;
};

// Builds cells "model-0", "model-1", … that could not be measured.
GateVerdict unmeasured(const std::vector<Failed>& all) {
  GateVerdict gate = fixtures::many(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CellVerdict& cell = gate.cells[i];
    fixtures::absent_device(cell);
    cell.reason = all[i].reason;
    cell.stderr_tail = all[i].stderr_tail;
  }
  gate.verdict = Outcome::error;
  gate.exit_code = verdict::ExitCode::unmeasured;
  return gate;
}

TEST(Blocks, HoldErrorsOfOneReasonInHoweverManyRuns) {
  const GateVerdict gate = unmeasured({{"timed: all 3 runs: exited with code 1", "no memory\n"},
                                       {"timed: all 2 runs: exited with code 1", "no memory\n"},
                                       {"timed: exited with code 1", "no memory\n"}});
  ASSERT_EQ(Document(gate).blocks.size(), 1U);
  EXPECT_EQ(Document(gate).blocks.front().reason, "timed: exited with code 1");
  for (const std::string& report :
       {terminal(gate, {}), markdown(gate, {}), html(gate), annotations(gate)}) {
    EXPECT_EQ(occurrences(report, "exited with code 1"), 1U) << report;
    EXPECT_THAT(report, Not(HasSubstr(" runs: exited")));
  }
}

TEST(Blocks, KeepTheNumberOfRunsThatAllCellsShare) {
  const Failed twice{"counted: 1 of 3 runs: exited with code 1", ""};
  const GateVerdict gate = unmeasured({twice, twice});
  ASSERT_EQ(Document(gate).blocks.size(), 1U);
  EXPECT_EQ(Document(gate).blocks.front().reason, twice.reason);
}

TEST(Blocks, PartErrorsWhoseEnginesWroteDifferentReasons) {
  const char* const exited = "timed: all 3 runs: exited with code 1";
  const GateVerdict gate =
      unmeasured({{exited, "loading\nerror: unknown argument: --flash\n"},
                  {exited, "loading\nerror: failed to load the model\nbye\n"},
                  {"timed: 1 of 3 runs: exited with code 1", "error: failed to load the model\n"},
                  // Same error in another process.
                  {exited, "loading\nerror: failed to load the model (pid:4711)\nbye\n"}});
  const auto sizes = collect<std::size_t>(Document(gate).blocks,
                                          [](const Block& block) { return block.cells.size(); });
  EXPECT_THAT(sizes, testing::UnorderedElementsAre(1U, 1U, 2U));
  const std::string comment = markdown(gate, {});
  EXPECT_EQ(occurrences(comment, "\ufe0f error: "), 3U) << comment;
  for (const std::string& report : {terminal(gate, {}), comment, html(gate)}) {
    EXPECT_THAT(report, HasSubstr("unknown argument"));
    EXPECT_THAT(report, HasSubstr("failed to load"));
  }
}

TEST(Blocks, ListKernelsWhoseNamesAreCutToTheSameText) {
  GateVerdict gate = fixtures::red();
  CellVerdict& cell = fixtures::decode_on_vulkan(gate);
  const std::string start(500, 'k');
  verdict::Judgement& kernels = cell.put("kernels");
  kernels.changed = {fixtures::changed(start + "a", std::nullopt, 12),
                     fixtures::changed(start + "b", std::nullopt, 12)};
  const Document document(gate);
  const auto& changed = document.blocks.front().kernels;
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed.front().changes.size(), 2U);
  EXPECT_THAT(terminal(gate, {}), HasSubstr("+12"));
}

TEST(Blocks, AreNamedByTheValuesThatTheyAreTheProductOf) {
  struct Row {
    std::vector<const char*> cells;
    const char* title;
    std::vector<const char*> names;
  };
  const auto keys = [](const std::vector<const char*>& names) {
    return collect<profile::CellKey>(
        names, [](const char* name) { return profile::CellKey::parse(name).value(); });
  };
  const auto all = keys({"e/a/gpu/x", "e/a/gpu/y", "e/b/gpu/x", "e/b/gpu/y", "e/c/gpu/x",
                         "e/c/gpu/y", "e/d/gpu/x", "e/d/gpu/y", "e/a/cpu/x"});
  for (const Row& row : {
           Row{{"e/a/gpu/x"}, "e / a / gpu / x", {}},
           Row{{"e/b/gpu/x", "e/b/gpu/y"}, "2 of 9 cells: b \u00d7 gpu \u00d7 x, y", {"x", "y"}},
           Row{{"e/a/gpu/x", "e/b/gpu/x", "e/c/gpu/x"},
               "3 of 9 cells: a, b, c \u00d7 gpu \u00d7 x",
               {"a", "b", "c"}},
           Row{{"e/a/gpu/x", "e/b/gpu/y"},
               "2 of 9 cells: e / a / gpu / x, e / b / gpu / y",
               {"a / x", "b / y"}},
           Row{{"e/a/gpu/x", "e/a/gpu/y", "e/b/gpu/y", "e/c/gpu/x", "e/d/gpu/y"},
               "5 of 9 cells: e / a / gpu / x, e / a / gpu / y, e / b / gpu / y and 2 more",
               {"a / x", "a / y", "b / y", "c / x", "d / y"}},
       }) {
    const GroupNames group = name_group(keys(row.cells), all);
    EXPECT_EQ(group.title, row.title);
    EXPECT_EQ(group.names, std::vector<std::string>(row.names.begin(), row.names.end()));
  }
}

}  // namespace blocks_test
}  // namespace weir::report
