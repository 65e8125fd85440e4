// Tests that edits to the rules come first in every report, and that their contents stay text.
#include "gate/report/proposals.hpp"

#include <gmock/gmock.h>

#include "gate/report/annotations.hpp"
#include "gate/report/document.hpp"
#include "gate/report/hints.hpp"
#include "gate/report/html.hpp"
#include "gate/report/junit.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/terminal.hpp"

#include "tests/report/fixtures.hpp"

namespace weir::report {
namespace proposals_test {

using testing::HasSubstr;
using testing::Not;

verdict::GateVerdict proposed() {
  verdict::GateVerdict gate = fixtures::red();
  gate.rules = verdict::RulesFrom{"origin/main", "1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d",
                                  std::string(64, 'e')};
  gate.proposals = {
      {"max_drop of decode_tokens_per_second", "5 %", "20 %", verdict::Proposal::Effect::looser},
      {"cpu_ops_allowed of engine e: <img src=x> @all #1 `x`\n::error::no", "", "\"y\"",
       verdict::Proposal::Effect::looser}};
  return gate;
}

TEST(Proposals, StandBeforeWhatIsWrongInEveryReport) {
  const auto gate = proposed();
  const std::string line = "5 % → 20 %: looser";
  const std::string wrong = "dispatches/token";
  for (const std::string& text :
       {terminal(gate, {}), markdown(gate, {}), junit(gate), html(gate)}) {
    ASSERT_NE(text.find(line), std::string::npos) << text;
    EXPECT_LT(text.find(line), text.find(wrong)) << text;
    EXPECT_THAT(text, HasSubstr("2 edits to the rules, 2 of them looser; judged by those of"));
  }
  EXPECT_THAT(html(gate), HasSubstr("judged by those of origin/main (1a2b3c4)"));
  EXPECT_THAT(annotations(gate), HasSubstr("::warning title=weir%3A 2 edits to the rules"));
}

TEST(Proposals, AreInertText) {
  const auto gate = proposed();
  EXPECT_THAT(html(gate), Not(HasSubstr("<img")));
  EXPECT_THAT(junit(gate), Not(HasSubstr("<img")));
  EXPECT_THAT(markdown(gate, {}), Not(HasSubstr("<img")));
  EXPECT_THAT(markdown(gate, {}), Not(HasSubstr(" @all")));
  EXPECT_THAT(annotations(gate), Not(HasSubstr("\n::error::no")));
}

TEST(Proposals, AreNotSpokenOfWhereThereAreNone) {
  EXPECT_TRUE(proposal_text(fixtures::red(), 10).head.empty());
  EXPECT_THAT(terminal(fixtures::red(), {}), Not(HasSubstr("rules")));
}

}  // namespace proposals_test
}  // namespace weir::report
