// Tests the text that compares recorded outputs of profilers.
#include "gate/report/compare_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/explain/compare.hpp"

#include "tests/report/support.hpp"

namespace weir::report {
namespace compare_text_test {

using support::expect_golden;
using testing::HasSubstr;
using testing::Not;

// Returns the output of a reader for a file in tests/adapters/data/.
observed::Observed recorded(const std::string& name) {
  const auto json = parse_json(support::read_file(std::filesystem::path(WEIR_SOURCE_DIR) /
                                                  "tests/golden/adapters" / (name + ".json")));
  if (!json) ADD_FAILURE() << name << ": " << json.error().message;
  const auto read =
      json ? read_fields<observed::Observed>(*json, "observed") : observed::Observed{};
  EXPECT_TRUE(read) << name;
  return read.value_or(observed::Observed{});
}

std::vector<explain::Comparison> compared(const std::string& a, const std::string& b) {
  const observed::Observed before = recorded(a), after = recorded(b);
  return {explain::compare({a, &before}, {b, &after})};
}

struct Pair {
  const char* a;
  const char* b;
  const char* golden;
};
// Pairs: two formats of one logger; another engine and backend; a profiler of all backends.
const Pair k_pairs[] = {
    {"vk-perf-logger", "vk-perf-logger-concurrent", "compare-vk-perf"},
    {"agave-profile", "vk-perf-logger", "compare-agave-llama"},
    {"ggml-profile-v2", "ggml-profile-v4", "compare-ggml"},
    {"llama-bench-json", "llama-bench-md", "compare-llama-bench"},
};

TEST(CompareText, LookAsStored) {
  for (const Pair& pair : k_pairs) {
    const auto all = compared(pair.a, pair.b);
    expect_golden(std::string(pair.golden) + ".txt", compare_text(all, {}));
    expect_golden(std::string(pair.golden) + ".md", compare_markdown(all, 10, 65'000));
  }
}

TEST(CompareText, SaysWhichCommandBuffersMakeTheDifferenceOfAToken) {
  const auto run = [](double rate, double moe, std::int64_t buffers) {
    observed::Observed observed;
    observed.format = "hf2q";
    observed.profiled_tokens = 1;
    observed.timings.push_back({*unit::find_metric("decode_tokens_per_second"), {rate}, {}, {}});
    observed.buffers = {{"layer.attn_moe_ffn", buffers, {}, {}, {}, {}, moe, {}, {}},
                        {"output|head", 2, {}, {}, {}, {}, 0.005, {}, {}}};
    return observed;
  };
  const observed::Observed before = run(40, 0.010, 40), after = run(32, 0.015, 43);
  const std::vector all{explain::compare({"a", &before}, {"b", &after})};
  const std::string text = compare_text(all, {});
  EXPECT_THAT(text, HasSubstr("A token takes +6.25 ms. Command buffers take +5.00 ms of it:"));
  EXPECT_THAT(text, HasSubstr("buffers A   B  command buffer\n"));
  EXPECT_THAT(text, HasSubstr("layer.attn_moe_ffn (each 1.40\u00d7)\n"));
  const std::string markdown = compare_markdown(all, 10, 65'000);
  EXPECT_THAT(markdown, HasSubstr(" buffers A | B | command buffer |\n"));
  EXPECT_THAT(markdown, Not(HasSubstr("output|head")));
  EXPECT_THAT(text, Not(HasSubstr("left out")));
  observed::Observed untimed = after;
  untimed.buffers.back().seconds.reset();
  const std::vector part{explain::compare({"a", &before}, {"b", &untimed})};
  EXPECT_THAT(compare_text(part, {.width = 200}),
              HasSubstr("layer.attn_moe_ffn +5.00 ms. 1 command buffer that only one side times is "
                        "left out."));
}

TEST(CompareText, CallNoDifferenceAPartOfASmallerOne) {
  const auto run = [](double rate, double seconds) {
    observed::Observed observed;
    observed.format = "hf2q";
    observed.profiled_tokens = 1;
    observed.timings.push_back({*unit::find_metric("decode_tokens_per_second"), {rate}, {}, {}});
    observed.buffers = {{"head", 2, {}, {}, {}, {}, seconds, {}, {}}};
    return observed;
  };
  struct Case {
    double rate, seconds;
    const char* text;
  };
  const observed::Observed before = run(40, 0.010);
  for (const Case& test_case :
       {Case{32, 0.015, "+6.25 ms. Command buffers take +5.00 ms of it: head"},
        Case{32, 0.019, "+6.25 ms. Command buffers take +9.00 ms: head"},
        Case{50, 0.015, "5.00 ms. Command buffers take +5.00 ms: head"}}) {
    const observed::Observed after = run(test_case.rate, test_case.seconds);
    const std::vector all{explain::compare({"a", &before}, {"b", &after})};
    EXPECT_THAT(compare_text(all, {.width = 200}), HasSubstr(test_case.text));
  }
}

TEST(CompareText, KeepToTheirWidth) {
  for (const Pair& pair : k_pairs) {
    const std::string text =
        compare_text(compared(pair.a, pair.b), {.width = 80, .max_rows = 1000});
    for (const std::string& line : text::lines(text)) EXPECT_LE(text::columns(line), 80U) << line;
  }
}

TEST(CompareText, OfAgaveAndLlamaMatchByRole) {
  const auto comparison = compared("agave-profile", "vk-perf-logger").front();
  std::map<std::string, const explain::OpChange*> by_role;
  for (const auto& op : comparison.ops) by_role[op.role] = &op;
  for (const char* role : {"MUL_MAT", "FLASH_ATTN_EXT", "RMS_NORM", "ROPE", "GET_ROWS"}) {
    ASSERT_TRUE(by_role.contains(role)) << role;
    EXPECT_TRUE(by_role[role]->a && by_role[role]->b) << role;
  }
  // Five tokens have 20 gemv_qkv, 20 gemv_out and 65 gemv_ffn; each of 2 blocks has 29 MUL_MAT_VEC.
  EXPECT_DOUBLE_EQ(by_role["MUL_MAT"]->a->calls.value(), 21);
  EXPECT_DOUBLE_EQ(by_role["MUL_MAT"]->b->calls.value(), 29);
}

TEST(CompareText, AreInertWhateverNamesAre) {
  auto before = recorded("vk-perf-logger");
  auto after = before;
  const std::string bad = "x\n::error::y\x1b[31m|<!-- @all <b>";
  after.ops.back().op = bad;
  after.ops.back().shape = bad;
  after.context.model = bad;
  after.warnings = {bad};
  const std::vector all{explain::compare({bad, &before}, {bad, &after})};
  const std::string text = compare_text(all, {});
  const std::string markdown = compare_markdown(all, 100, 65'000);
  for (const std::string* output : {&text, &markdown}) {
    EXPECT_THAT(*output, Not(HasSubstr("\x1b")));
    EXPECT_THAT(*output, Not(HasSubstr("\n::")));
  }
  EXPECT_THAT(markdown, Not(HasSubstr("<!--")));
}

}  // namespace compare_text_test
}  // namespace weir::report
