// Tests that names of kernels, ops and tensors, which come from engines and models, stay inert in
// explanations wherever they are shown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/annotations.hpp"
#include "gate/report/explain_text.hpp"
#include "gate/report/html.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/terminal.hpp"

#include "tests/explain/build.hpp"
#include "tests/report/fixtures.hpp"

namespace weir::report {
namespace explain_inert_test {

using explain::Explanation;
using explain::test::side;
using testing::HasSubstr;
using testing::Not;

// Names that a log, a page, a comment or a terminal would interpret.
const std::vector<std::string>& hostile_names() {
  static const std::vector<std::string> k_names = {
      "x\n::error::run",
      "x\r::set-output name=a::b\r",
      "##[error]run",
      "\x1b[31mred\x1b[0m\x1b]8;;https://evil.example\x07",
      "a\u202egnp.exe\u202c",
      "<img src=x onerror=alert(1)>",
      "</li></ul><script>x</script>",
      "&lt;b&gt;",
      "![i](//evil.example/p.png)",
      "<!-- weir:gate -->",
      "@octocat",
      "\xff\xfe\xc0\x80",
      "a | b",
      std::string(5000, 'x'),
  };
  return k_names;
}

// Explanations with the name in each kind of place: a kernel, an op on the CPU, a tensor of some
// layers.
std::vector<Explanation> with_name(const std::string& name) {
  std::vector<std::string> tensors;
  for (int i = 0; i < 24; ++i) {
    tensors.push_back("blk." + std::to_string(i) + ".attn_q.weight");
    if (i % 3 != 2) tensors.push_back("blk." + std::to_string(i) + "." + name);
  }
  const explain::ModelFacts model = explain::model_facts(explain::test::header(tensors));
  std::vector<Explanation> all;
  all.push_back(explain::test::explained(
      side({{"dispatches", 53}, {"syncs", 1}}, {{"mul_mat_vec", 53}}, {{"GET_ROWS", 1}}),
      side({{"dispatches", 69}, {"syncs", 1}}, {{"mul_mat_vec", 53}, {name, 16}},
           {{"GET_ROWS", 1}, {name, 4}}),
      &model));
  all.push_back(explain::test::explained(explain::test::counts(690, 690, 1),
                                         explain::test::counts(706, 930, 17), &model));
  return all;
}

verdict::GateVerdict gate_with(const std::vector<Explanation>& all) {
  verdict::GateVerdict gate = fixtures::red();
  verdict::CellVerdict cell = fixtures::decode_on_vulkan(gate);
  gate.cells.clear();
  for (const Explanation& explanation : all) {
    for (const verdict::Finding& finding : explanation.findings) {
      cell.findings = {finding};
      gate.cells.push_back(cell);
    }
  }
  return gate;
}

// Checks that the text moves no cursor, begins no line of its own and gives a runner no command.
void expect_plain(const std::string& text, const std::string& name) {
  EXPECT_EQ(text::neutralize_ci_commands(text::printable(text)), text) << name;
  EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << name;
  EXPECT_THAT(text, Not(HasSubstr("\u202e"))) << name;
  EXPECT_THAT(text, Not(HasSubstr("\r"))) << name;
  for (const std::string& line : text::lines(text)) {
    EXPECT_NE(text::trim(line).find("::error::run"), 0U) << name;
    EXPECT_NE(text::trim(line).find("##["), 0U) << name;
  }
}

TEST(ExplanationsOfHostileNames, NameThem) {
  // Otherwise the tests below would prove nothing.
  for (const Explanation& explanation : with_name("evil_name")) {
    ASSERT_FALSE(explanation.findings.empty());
    std::string all;
    for (const verdict::Finding& finding : explanation.findings) all += finding.text() + "\n";
    EXPECT_THAT(all, HasSubstr("evil"));
  }
}

TEST(ExplanationsOfHostileNames, ArePlainInATerminal) {
  for (const std::string& name : hostile_names()) {
    const auto all = with_name(name);
    for (const int width : {40, 80}) {
      const std::string text = explain_text(all, {.width = width, .checklist = true});
      expect_plain(text, name);
      for (const std::string& line : text::lines(text)) {
        EXPECT_LE(text::columns(line), static_cast<std::size_t>(width)) << line;
      }
    }
    TerminalStyle everything;
    everything.verbose = true;
    expect_plain(terminal(gate_with(all), everything), name);
  }
}

TEST(ExplanationsOfHostileNames, AreOneLineEachInJson) {
  for (const std::string& name : hostile_names()) {
    const Json json = explain_json(with_name(name));
    const std::string text = dump_json(json, -1);  // invalid UTF-8 would be an error or replaced
    EXPECT_TRUE(parse_json(text)) << name;
    for (const Json& finding : json.at("findings")) {
      for (const char* list : {"ops", "tensors", "lines"}) {
        if (!finding.contains(list)) continue;
        for (const Json& item : finding.at(list)) {
          const auto words = item.get<std::string>();
          EXPECT_EQ(words.find_first_of("\n\r\x1b"), std::string::npos) << name;
          EXPECT_LE(words.size(), 2000U) << list;
        }
      }
    }
  }
}

TEST(ExplanationsOfHostileNames, AreNoMarkupOnAPage) {
  for (const std::string& name : hostile_names()) {
    const std::string page = html(gate_with(with_name(name)));
    for (const char* bad :
         {"<img", "<script>x", "<!-- weir:gate", "</ul><script", "\x1b", "\u202e"}) {
      EXPECT_THAT(page, Not(HasSubstr(bad))) << name;
    }
  }
}

TEST(ExplanationsOfHostileNames, AreInertInACommentAndInALog) {
  for (const std::string& name : hostile_names()) {
    const verdict::GateVerdict gate = gate_with(with_name(name));
    const std::string comment = markdown(gate, {});
    for (const char* bad : {"<img", "<script", "![i]", "\x1b", "\u202e", "\n::error", "\n##["}) {
      EXPECT_THAT(comment, Not(HasSubstr(bad))) << name;
    }
    // Names, and the marker of weir's own comment in one, may stand in code only.
    EXPECT_THAT(comment, Not(HasSubstr("\n<!-- weir:gate -->"))) << name;
    const std::string commands = annotations(gate);
    EXPECT_EQ(commands.find('\r'), std::string::npos);
    for (const std::string& line : text::lines(commands)) {
      EXPECT_TRUE(line.starts_with("::error title=weir ") ||
                  line.starts_with("::warning title=weir ") ||
                  line.starts_with("::notice title=weir "))
          << line;
    }
  }
}

}  // namespace explain_inert_test
}  // namespace weir::report
