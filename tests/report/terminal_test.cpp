// Tests the report on a terminal: width, order, first lines, commands.
#include "gate/report/terminal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/report/fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace terminal_test {

using support::first_line;
using testing::HasSubstr;
using testing::Not;

TEST(Terminal, KeepsEveryLineWithinItsWidth) {
  // Without verbs: only the words of a command to paste may be wider.
  for (const auto& [name, gate] : fixtures::all()) {
    for (const int width : {40, 60, 80, 132}) {
      for (const bool verbose : {false, true}) {
        TerminalStyle style;
        style.width = width;
        style.verbose = verbose;
        for (const std::string& line : text::lines(terminal(gate, style))) {
          EXPECT_LE(text::columns(line), static_cast<std::size_t>(width)) << name << ": " << line;
        }
      }
    }
  }
}

TEST(Terminal, KeepsEightyColumnsAlsoWithCommands) {
  for (const auto& [name, gate] : fixtures::all()) {
    TerminalStyle style;
    style.verbs = {"explain",     "doctor",          "gate --counts-only",
                   "gate --from", "baseline accept", "baseline accept --reason"};
    for (const std::string& line : text::lines(terminal(gate, style))) {
      EXPECT_LE(text::columns(line), 80U) << name << ": " << line;
    }
  }
}

TEST(Terminal, TellsInItsFirstLinesWhatWasNotJudged) {
  const auto mixed = terminal(fixtures::mixed(), {});
  EXPECT_THAT(first_line(mixed), HasSubstr("throughput not decided in 3 of 8 cells, 2 cells new"));
  EXPECT_THAT(first_line(terminal(fixtures::undecided(), {})), HasSubstr("not decided in 1 of 8"));
  EXPECT_THAT(first_line(terminal(fixtures::all_skipped(), {})), HasSubstr("8 skipped: no probe"));
}

TEST(Terminal, NamesAFailureBeforeTheReasonWhyNothingWasCompared) {
  GateVerdict gate = fixtures::red();
  gate.nothing_judged_reason = "nothing was compared: no baseline is stored";
  const std::string head = terminal(gate, {});
  EXPECT_LT(head.find("FAIL: 1 of 8 cells broke a limit"), head.find("nothing was compared"));
  EXPECT_NE(head.find("nothing was compared"), std::string::npos);
}

TEST(Terminal, PutsWhatIsWrongBeforeWhatIsFine) {
  const std::string red = terminal(fixtures::red(), {});
  EXPECT_LT(red.find("FAIL  llama.cpp / tiny-llama / vulkan / decode"), red.find("pass  7 cells"));
  EXPECT_EQ(support::occurrences(red, "tiny-gemma3"), 0U) << "cells that are fine are one line";
}

TEST(Terminal, NamesNoCommandThatThisBuildDoesNotHave) {
  for (const auto& [name, gate] : fixtures::all()) {
    if (name == "hostile") continue;
    for (const char* verb : {"weir explain", "weir doctor", "weir baseline", "weir gate"}) {
      EXPECT_THAT(terminal(gate, {}), Not(HasSubstr(verb))) << name;
    }
  }
  TerminalStyle style;
  style.verbs = {"baseline accept"};
  const std::string red = terminal(fixtures::red(), style);
  EXPECT_THAT(red, HasSubstr("weir baseline accept"));
  EXPECT_THAT(red, Not(HasSubstr("--reason")));
}

TEST(Terminal, AcceptsNoMoreCellsThanWereGated) {
  TerminalStyle style;
  style.verbs = {"baseline accept"};
  auto gate = fixtures::red();
  std::erase_if(gate.cells,
                [](const auto& cell) { return cell.verdict != verdict::Outcome::fail; });
  EXPECT_THAT(terminal(gate, style), Not(HasSubstr("--cell")));
  gate.is_selection = true;  // the configuration has others
  EXPECT_THAT(terminal(gate, style),
              HasSubstr("weir baseline accept --cell 'llama.cpp/tiny-llama/vulkan/decode'"));
}

TEST(Terminal, LetsNoEscapeSequenceOrWorkflowCommandThrough) {
  TerminalStyle style;
  style.verbose = true;
  for (const std::string& line : text::lines(terminal(fixtures::hostile(), style))) {
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20U) << line;
    EXPECT_FALSE(text::trim(line).starts_with("::")) << line;
    EXPECT_EQ(line.find("##["), std::string::npos) << line;
    EXPECT_EQ(line.find("\u202e"), std::string::npos) << line;  // right-to-left override
  }
}

TEST(Terminal, SaysTheSameWithAndWithoutColour) {
  for (const auto& [name, gate] : fixtures::all()) {
    TerminalStyle colored;
    colored.color = true;
    const std::string with = terminal(gate, colored);
    EXPECT_NE(with.find("\x1b["), std::string::npos) << name;
    EXPECT_EQ(text::printable(with), terminal(gate, {})) << name;
  }
}

TEST(Terminal, ShortensNothingWhenAskedForEverything) {
  TerminalStyle style;
  style.verbose = true;
  const std::string mixed = terminal(fixtures::mixed(), style);
  for (const auto& cell : fixtures::mixed().cells) {
    const bool named = mixed.find(cell_title(cell.cell)) != std::string::npos ||
                       mixed.find(cell.cell.str()) != std::string::npos;
    EXPECT_TRUE(named) << cell.cell.str();
  }
  EXPECT_THAT(mixed, HasSubstr("dispatches fixed"));
}

TEST(Terminal, NamesTheConfigInCommandsWhereItIsNotTheDefault) {
  TerminalStyle style;
  style.verbs = {"baseline accept"};
  auto gate = fixtures::red();
  gate.config = "configs/llama.cpp.yaml";
  EXPECT_THAT(terminal(gate, style), HasSubstr("weir baseline accept -c configs/llama.cpp.yaml"));
  gate.config = "a file; rm -rf x.yaml";
  EXPECT_THAT(terminal(gate, style), HasSubstr("-c 'a file; rm -rf x.yaml'"));
  gate.config = "a\nb.yaml";  // fits in no line
  EXPECT_THAT(terminal(gate, style), testing::Not(HasSubstr("weir baseline accept")));
}

}  // namespace terminal_test
}  // namespace weir::report
