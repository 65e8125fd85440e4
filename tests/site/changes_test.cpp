// Tests of the pages of changes by commit.
#include "gate/site/changes.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/site/parts.hpp"

#include "tests/browser/site_scene.hpp"
#include "tests/support/memory_files.hpp"
#include "tests/support/mutated.hpp"

namespace weir::site {
namespace changes_test {

using testing::HasSubstr;

const std::string k_vulkan = "llama.cpp/tiny-llama/vulkan/decode";
const std::string k_rx7900 = "llama.cpp/tiny-llama/rx7900/decode";
const std::string k_head = "{\"schema\":\"weir.changes/1\"}\n";

Site site_with_changes() {
  SiteModel model = scene::small_scene();
  model.commit_changes = read_commit_changes(scene::changes_lines()).value();
  return Site(std::move(model));
}

const Json& field(const Json& step, const std::string& cell) {
  for (const Json& entry : step["cells"]) {
    if (entry["cell"] == cell) return entry;
  }
  ADD_FAILURE() << cell;
  return step["cells"][0];
}

TEST(CommitChanges, AreReadInTheOrderOfTheirCommits) {
  const auto all = read_commit_changes(scene::changes_lines());
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->repeat, "count {commit} {cell}");
  EXPECT_THAT(all->commits.all, testing::ElementsAre("b1", "b2", "b3", "b4"));
  EXPECT_EQ(all->changed.size(), 2U);
  const ChangedCell& cell = all->changed.at({3, 2}).begin()->second;
  EXPECT_EQ(cell.values.size(), 2U);
  const auto without = read_commit_changes(k_head +
                                           "\n{\"commit\":\"a\",\"cell\":\"c\",\"words\":"
                                           "\"no\",\"of a later weir\":{}}");
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(without->counted[0].at(0).words, "no");
}

TEST(CommitChanges, AreRefusedWithTheirLine) {
  const auto line = [](const std::string& more) {
    return k_head + R"({"commit":"b1","cell":"c")" + more + "}\n";
  };
  const std::string kernels = R"(,"kernels":{})", before = R"(,"before":"b0")";
  const struct {
    std::string text;
    const char* message;
  } k_cases[] = {
      {"", "line 1"},
      {"{\"schema\":\"weir.changes/2\"}", "line 1: it should be {\"schema\":\"weir.changes/1\"}"},
      {k_head + "[]", "line 2"},
      {k_head + "{\"cell\":\"c\"}", "lacks \"commit\""},
      {k_head + "{\"commit\":\"\",\"cell\":\"c\",\"kernels\":{}}", "1 to 1024 bytes"},
      {k_head + "{\"commit\":\"" + std::string(1025, 'x') + "\",\"cell\":\"c\"}", "1 to 1024"},
      {line(""), "one of \"before\", \"kernels\" and \"words\""},
      {line(kernels + R"(,"words":"x")"), "one of"},
      {line(kernels) + line(kernels).substr(k_head.size()), "line 3: \"c\" of \"b1\" stands twice"},
      {line(R"(,"kernels":{"k":"often"})"), "names with numbers"},
      {line(R"(,"kernels":[1])"), "should be an object"},
      {line(before + R"(,"values":{"syncs_per_token":[1]})"), "two numbers each"},
      {line(before + R"(,"values":{"syncs_per_token":[1,1e999]})"), "line 2"},
      {line(before + R"(,"findings":[{"kind":"x"}])"), "lacks \"text\""},
      {line(before + R"(,"causes":[{"text":"x","pulls":[-1]}])"), "numbers of pull requests"},
      {line(before + R"(,"values":)" + std::string(9, '[') + std::string(9, ']')), "line 2"},
      {line(R"(,"words":")" + std::string(5 << 20, 'x') + "\""), "line 2"},
  };
  for (const auto& c : k_cases) {
    const auto read = read_commit_changes(c.text);
    ASSERT_FALSE(read) << c.message;
    EXPECT_THAT(read.error().message, HasSubstr(c.message));
    EXPECT_EQ(read.error().code, Code::data);
  }
  std::string many = k_head;
  for (std::size_t i = 0; i <= k_max_commits; ++i) {
    many += fmt::format("{{\"commit\":\"{}\",\"cell\":\"c\",\"words\":\"\"}}\n", i);
  }
  EXPECT_FALSE(read_commit_changes(many));
  many = k_head;
  for (std::size_t i = 0; i <= k_max_commits + 1; ++i) {
    many +=
        fmt::format("{{\"commit\":\"{}\",\"before\":\"b{}\",\"cell\":\"c\"}}\n", i % 200, i / 200);
  }
  EXPECT_FALSE(read_commit_changes(many));
}

TEST(CommitChanges, OfAnyTextAreReadOrRefused) {
  const std::string text = scene::changes_lines();
  const std::string_view pieces[] = {"{",      "}",         "[",          "\n",   "null", "1e308",
                                     "\"b3\"", "\"cell\":", "\"before\"", "\"\"", "-1",   "\xff"};
  std::mt19937 random(20);
  std::size_t taken = 0;
  for (int i = 0; i < 10'000; ++i) {
    auto read = read_commit_changes(tests::mutated(text, pieces, 4, random));
    if (!read) continue;
    ++taken;
    SiteModel model;
    model.commit_changes = *std::move(read);
    const Site site(std::move(model));
    if (i % 50 != 0) continue;
    for (const std::string& path : site.paths()) EXPECT_TRUE(site.text(path)) << path;
  }
  EXPECT_GT(taken, 100U);
}

TEST(SiteSteps, CountWhatGotWorse) {
  const Site site = site_with_changes();
  const Json steps = site_steps_json(site.index());
  ASSERT_EQ(steps["steps"].size(), 3U);
  EXPECT_EQ(steps["steps"][0]["before"], "b1");  // counted, and nothing changed
  EXPECT_EQ(steps["steps"][0]["failed"], 1);
  EXPECT_EQ(steps["steps"][0]["metrics"], Json::array());
  const Json& fused = steps["steps"][1];
  EXPECT_EQ(fused["states"]["mixed"], 2);  // a sync more, dispatches fewer
  EXPECT_EQ(fused["findings"], (Json{{"sync_added", 2}}));
  ASSERT_EQ(fused["metrics"].size(), 2U);
  EXPECT_EQ(steps["metrics"][fused["metrics"][0][0].get<std::size_t>()]["name"], "syncs_per_token");
  EXPECT_EQ(fused["metrics"][0][1], 2);
  EXPECT_EQ(fused["metrics"][1][2], 2);
  const Json& last = steps["steps"][2];
  EXPECT_EQ(last["states"]["worse"], 1);
  EXPECT_EQ(last["states"]["changed"], 1);  // a single occurrence judges nothing
}

TEST(SiteSteps, ShowEachCellOfOne) {
  const Site site = site_with_changes();
  const Json fused = site_step_json(site.index(), 1);
  const Json& cell = field(fused, k_vulkan);
  EXPECT_EQ(cell["kernels"], true);
  EXPECT_EQ(cell["values"], Json::parse(R"([[0, 1.0, 2.0, "worse"], [1, 77.0, 65.0, "better"]])"));
  EXPECT_EQ(cell["findings"][0][1], field(fused, k_rx7900)["findings"][0][1]);  // told once
  const Json last = site_step_json(site.index(), 2);
  EXPECT_THAT(last["causes"][field(last, k_rx7900)["causes"][0].get<std::size_t>()][2],
              testing::ElementsAre(123));
  EXPECT_EQ(last["new"], Json::array({"llama.cpp/tiny-llama/vulkan/prefill"}));
  const Json first = site_step_json(site.index(), 0);
  EXPECT_EQ(first["same"], Json::array({k_vulkan, k_rx7900}));
  EXPECT_EQ(first["texts"][first["failed"][0][1].get<std::size_t>()], scene::k_hostile);
}

TEST(SiteSteps, JudgeAsAGateDoesByDefault) {
  const struct {
    const char* metric;
    double before, after;
    const char* state;
  } k_cases[] = {
      {"syncs_per_token", 2, 1, "better"},
      {"cpu_ops_per_prefill", 1, 2, "worse"},
      {"decode_tokens_per_second", 10, 9, "worse"},
      {"syncs_fixed", 1, 9, "changed"},
      {"device_memory_peak_bytes", 1000, 1010, "changed"},
      {"device_memory_peak_bytes", 1000, 1011, "worse"},
      {"device_memory_steady_bytes", 1000, 2000, "changed"},
      {"uploaded_bytes_per_token", 1, 9, "changed"},
      {"device_memory_bytes_per_token", 1, 9, "changed"},
      {"estimated_cycles_per_token", 1, 9, "changed"},
      {"of the engine's own", 1, 9, "changed"},
  };
  for (const auto& c : k_cases) {
    const auto all =
        read_commit_changes(k_head + dump_json({{"commit", "b"},
                                                {"before", "a"},
                                                {"cell", "c"},
                                                {"values", {{c.metric, {c.before, c.after}}}}}));
    ASSERT_TRUE(all) << all.error().message;
    SiteModel model;
    model.commit_changes = *all;
    const Site site(std::move(model));
    EXPECT_EQ(site_steps_json(site.index())["steps"][0]["states"][c.state], 1) << c.metric;
  }
}

TEST(SiteKernels, AreTakenFromOneCommitToAnother) {
  const Site site = site_with_changes();
  const Json index = site_kernels_json(site.index());
  const Json file = site_kernel_file_json(site.index(), 0);
  const auto kernel_runs = [&](const std::string& name) {
    for (std::size_t i = 0; i < index["kernels"].size(); ++i) {
      if (index["kernels"][i][0] == name) return file[i];
    }
    return Json();
  };
  EXPECT_EQ(kernel_runs("mul_f32").size(), 2U);  // two cells, each from b1 to b2
  EXPECT_EQ(kernel_runs("mul_f32")[0], Json::parse("[0, 0, 1, 12]"));
  // 12 times from b3 to b4, where one cell has another number, and a cell that could not run does.
  EXPECT_EQ(kernel_runs("rms_norm_mul_f32").size(), 4U);
  EXPECT_EQ(kernel_runs(scene::k_hostile).size(), 3U);
}

TEST(SiteChanges, AreThereWhereTheSiteHasThem) {
  const Site with = site_with_changes(), without{scene::small_scene()};
  EXPECT_EQ(overview_json(with.index())["changes"]["repeat"], "count {commit} {cell}");
  EXPECT_FALSE(overview_json(without.index()).contains("changes"));
  for (const char* path :
       {"data/changes.js", "data/changes/2.js", "data/kernels.js", "data/kernels/0.js"}) {
    EXPECT_THAT(with.paths(), testing::Contains(path));
    EXPECT_FALSE(without.text(path)) << path;
  }
  EXPECT_FALSE(with.text("data/changes/3.js"));
  sys::MemoryFiles files;
  files.put("/share/web/index.html", "<meta name=\"generator\" content=\"weir\">");
  files.put("/share/web/assets/weir.js", "pages");
  ASSERT_TRUE(write_site(files, "/share/web", with, "/out"));
  const auto removed = write_site(files, "/share/web", without, "/out");
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->removed, 6U);
  EXPECT_FALSE(files.exists("/out/data/changes.js"));
}

}  // namespace changes_test
}  // namespace weir::site
