// Tests the text of `weir explain`.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/explain_text.hpp"

#include "tests/explain/build.hpp"

namespace weir::report {
namespace explain_test {

using testing::HasSubstr;

std::vector<explain::Explanation> agaves() {
  const explain::ModelFacts model = explain::test::qwen();
  std::vector<explain::Explanation> all;
  all.push_back(explain::test::explained(explain::test::counts(690, 690, 1),
                                         explain::test::counts(706, 930, 17), &model));
  return all;
}

TEST(ExplainText, PutsTheBestFindingFirstWithItsArithmetic) {
  EXPECT_EQ(explain_text(agaves(), {}),
            "llama.cpp / tiny / vulkan / decode\n"
            "   690 / 690 / 1 → 706 / 930 / 17   dispatches / barriers / syncs a token\n"
            "\n"
            "1  A CPU step came in between GPU steps, once in each layer that has\n"
            "   blk.*.ssm_*.\n"
            "     +16 syncs = 1 × 16 layers with blk.*.ssm_* tensors (of 24 layers)\n"
            "     +16 dispatches = 1 × the same 16 layers\n"
            "     +240 barriers = 15 × the same 16 layers\n"
            "     3 of 3 numbers fit these layers: by chance about 1 in 95.\n"
            "   Typical cause: a split or copy moved from a kernel to the CPU, which has to\n"
            "     wait for the GPU before and after.\n"
            "   Look at: what those layers do that the other 8 do not.\n"
            "\n"
            "2  Also possible: +240 barriers = 10 × 24 layers (batching off), but syncs and\n"
            "   dispatches would not fit these layers.\n");
}

// Each cell has one more sync, from different counts: printed once, with the counts of each cell.
TEST(ExplainText, SaysOneCauseOfSeveralCellsOnce) {
  std::vector<explain::Explanation> all;
  for (const char* model : {"tiny", "small", "large"}) {
    all.push_back(explain::test::explained(explain::test::counts(690, 690, 1),
                                           explain::test::counts(690, 690, 2)));
    all.back().cell = fmt::format("llama.cpp/{}/vulkan/decode", model);
  }
  all[1].totals.front().before = all[1].totals.front().after = Rational(700);
  all[2] = explain::test::explained(explain::test::counts(690, 690, 1),
                                    explain::test::counts(690, 690, 1));
  all[2].cell = "llama.cpp/tiny/cpu/decode";
  const std::string text = explain_text(all, {});
  EXPECT_THAT(text, testing::StartsWith(
                        "2 of 3 cells: tiny, small \u00d7 vulkan \u00d7 decode\n"
                        "   690 / 690 / 1 → 690 / 690 / 2   dispatches / barriers / syncs a token\n"
                        "   in tiny\n"
                        "   700 / 690 / 1 → 700 / 690 / 2   dispatches / barriers / syncs a token\n"
                        "   in small\n\n1  "));
  EXPECT_EQ(text.find("\n1  "), text.rfind("\n1  ")) << text;
  EXPECT_THAT(text, HasSubstr("llama.cpp / tiny / cpu / decode: nothing differs.\n"));
  all[1].findings.front().kind = "sync_removed";
  EXPECT_THAT(explain_text(all, {}), HasSubstr("llama.cpp / small / vulkan / decode\n"));
}

// The same op moved in all cells, by different numbers: printed once, with the first cell's
// numbers.
TEST(ExplainText, SaysOneCauseOfManyCellsOnceThoughTheirNumbersDiffer) {
  std::vector<explain::Explanation> all;
  for (std::int64_t i = 1; i <= 5; ++i) {
    explain::Explanation& explanation = all.emplace_back();
    explanation.cell = fmt::format("llama.cpp/model-{}/vulkan/decode", i);
    explanation.sides_differ = true;
    explanation.totals = {{"dispatches", Rational(690), Rational(690 - i)},
                          {"syncs", Rational(1), Rational(1 + i)}};
    explain::Finding& finding = explanation.findings.emplace_back();
    finding.kind = "work_moved_to_cpu";
    finding.ops = {i == 1 ? "set_rows_f32_f16_i64" : "set_rows_f32_f16_i32"};
    finding.headline = fmt::format("SET_ROWS moved to the CPU, {} times a token.", i);
  }
  EXPECT_EQ(explain_text(all, {}),
            "all 5 cells: 5 models \u00d7 vulkan \u00d7 decode\n"
            "   690 / 1 \u2192 685 \u2026 689 / 2 \u2026 6   dispatches / syncs a token\n"
            "   in model-1, model-2, model-3, model-4, model-5\n"
            "\n"
            "   Numbers below are those of llama.cpp / model-1 / vulkan / decode. --cell\n"
            "   shows another cell.\n"
            "\n"
            "1  SET_ROWS moved to the CPU, 1 times a token.\n");
  all[4].findings.front().ops = {"ROPE"};
  EXPECT_THAT(explain_text(all, {}), HasSubstr("\nllama.cpp / model-5 / vulkan / decode\n"));
}

TEST(ExplainText, SaysThatNothingDiffers) {
  std::vector<explain::Explanation> all;
  all.push_back(explain::test::explained(explain::test::counts(690, 690, 1),
                                         explain::test::counts(690, 690, 1)));
  EXPECT_EQ(explain_text(all, {}), "llama.cpp / tiny / vulkan / decode: nothing differs.\n");
}

TEST(ExplainText, OfAFileWithoutOpsIsItsWarningAlone) {
  std::vector<explain::Explanation> all(1);
  all.front().cell = "tiny";
  all.front().is_alone = true;
  all.front().has_work = false;
  all.front().warnings = {"no op is in it"};
  EXPECT_EQ(explain_text(all, {}), "tiny\n   warning: no op is in it\n");
}

TEST(ExplainText, HasTheChecklistOfOneProfileUnasked) {
  std::vector<explain::Explanation> all(1);
  all.front().cell = "llama.cpp/tiny/vulkan/decode";
  all.front().is_alone = true;
  all.front().totals = {{"dispatches", Rational(690), Rational(690)}};
  all.front().checklist = {{"Syncs: 3 a token or fewer", explain::Check::Answer::fine, "1"}};
  EXPECT_EQ(explain_text(all, {}),
            "llama.cpp / tiny / vulkan / decode\n"
            "   690   dispatches a token\n"
            "   One profile, compared with nothing.\n"
            "\n"
            "Checklist for slow engines\n"
            "   [x] Syncs: 3 a token or fewer: 1\n");
}

TEST(ExplainText, NeverSaysThatNothingDiffersOfACellThatIsNoPass) {
  std::vector<explain::Explanation> all(1);
  all.front().cell = "llama.cpp/tiny/vulkan/decode";
  all.front().verdict = "error";
  all.front().reason = "the engine ended with exit code 1";
  EXPECT_EQ(explain_text(all, {}),
            "llama.cpp / tiny / vulkan / decode\n"
            "   The verdict is error: the engine ended with exit code 1\n");
}

TEST(ExplainText, KeepsToItsWidthAndLetsNothingOut) {
  using explain::test::side;
  const std::string hostile = "mul\x1b[31m_mat\n::error::x" + std::string(300, 'y');
  std::vector<explain::Explanation> all;
  all.push_back(explain::test::explained(side({{"dispatches", 4}}, {{hostile, 4}}),
                                         side({{"dispatches", 9}}, {{hostile, 9}})));
  for (const int width : {40, 80}) {
    const std::string text = explain_text(all, {.width = width, .checklist = true});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    for (const std::string& line : text::lines(text)) {
      EXPECT_LE(text::columns(line), static_cast<std::size_t>(width)) << line;
      EXPECT_NE(line.find("::error"), 0U) << line;
    }
  }
}

TEST(ExplainJson, HoldsTheFindingsOfAllCells) {
  const Json json = explain_json(agaves());
  EXPECT_EQ(json["schema"], "weir.explanation/1");
  ASSERT_EQ(json["findings"].size(), 2U);
  const Json& best = json["findings"][0];
  EXPECT_EQ(best["kind"], "sync_per_layer");
  EXPECT_EQ(best["metric"], "syncs_per_token");
  EXPECT_EQ(best["delta"], 16);
  EXPECT_EQ(best["per_layer"], 1);
  EXPECT_EQ(best["layers"].size(), 16U);
  EXPECT_EQ(best["tensors"], Json::array({"blk.*.ssm_*"}));
  EXPECT_EQ(best["cell"], "llama.cpp/tiny/vulkan/decode");
}

TEST(Finding, ComesBackFromAVerdictAsItWas) {
  const verdict::Finding finding = agaves().front().findings.front();
  const auto read = read_fields<verdict::Finding>(write_fields(finding), "findings");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, finding);
}

}  // namespace explain_test
}  // namespace weir::report
