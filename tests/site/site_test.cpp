// Tests of the documents of a site.
#include "gate/site/site.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/site/parts.hpp"

#include "tests/browser/served_scene.hpp"
#include "tests/browser/site_scene.hpp"

namespace weir::site {
namespace site_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Returns the document that the script at `path` hands over.
Json document(const Site& site, const std::string& path) {
  const auto script = site.text(path);
  EXPECT_TRUE(script) << path;
  if (!script) return {};
  const std::string call = "weirData(\"" + path.substr(5, path.size() - 8) + "\",'";
  EXPECT_EQ(script->substr(0, call.size()), call);
  EXPECT_TRUE(script->ends_with("');\n"));
  std::string json;
  for (std::size_t i = call.size(); i + 4 < script->size(); ++i) {
    if ((*script)[i] == '\'') {
      ADD_FAILURE() << path << ": its text ends early";
      break;
    }
    if ((*script)[i] != '\\') {
      json += (*script)[i];
    } else if ((*script)[i + 1] != 'u') {
      json += (*script)[++i];
    } else {
      static const std::map<std::string, std::string> k_characters{
          {"003c", "<"}, {"003e", ">"}, {"2028", "\xe2\x80\xa8"}};
      const auto character = k_characters.find(script->substr(i + 2, 4));
      json += character == k_characters.end() ? "?" : character->second;
      i += 5;
    }
  }
  const auto read = parse_json(json);
  EXPECT_TRUE(read) << path;
  return read.value_or(Json());
}

const Json& cell_line(const Json& overview, const std::string& name) {
  for (const Json& line : overview["cells"]) {
    if (line[2] == name) return line;
  }
  ADD_FAILURE() << name;
  return overview["cells"][0];
}

TEST(Site, HasADocumentAtEachOfItsPathsAndNowhereElse) {
  const Site site(scene::small_scene());
  const std::vector<std::string> paths = site.paths();
  EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()).size(), paths.size());
  for (const std::string& path : paths) {
    EXPECT_TRUE(std::regex_match(path, std::regex("data/[a-z]+(/[0-9a-z]+)?\\.js"))) << path;
    document(site, path);
  }
  for (const char* path :
       {"", "data/", "data/.js", "data/cells.js", "data/cells/.js", "data/cells/../overview.js",
        "data/sparks/00.js", "data/sparks/-1.js", "data/sparks/99999999999999999999.js",
        "data/sparks/1.js", "data/overview.js/", "data/commits/zz.js", "index.html",
        "data/runs/0000000000000000.js"}) {
    EXPECT_FALSE(site.text(path)) << path;
  }
}

TEST(Site, KeepsHostileTextInsideItsStrings) {
  const Site site(scene::small_scene());
  std::size_t matches = 0;
  for (const std::string& path : site.paths()) {
    const std::string text = *site.text(path);
    EXPECT_THAT(text, Not(HasSubstr("<")));
    EXPECT_THAT(text, Not(HasSubstr(">")));
    EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xa8")));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << path;
    matches += document(site, path).dump().find("hostile=1") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(matches, 4U);  // as it was, in cells, runs, branches, subjects and reasons
}

TEST(Site, HandsHostileTextOverUnchanged) {
  const Site site(scene::small_scene());
  const Json overview = document(site, "data/overview.js");
  EXPECT_EQ(cell_line(overview, scene::k_hostile)[2], scene::k_hostile);
}

TEST(Site, PutsACellDownAsTheWorstOfItsSeries) {
  const Site site(scene::small_scene());
  const Json overview = document(site, "data/overview.js");
  const Json& vulkan = cell_line(overview, "llama.cpp/tiny-llama/vulkan/decode");
  EXPECT_EQ(vulkan[3], "worse");
  EXPECT_EQ(vulkan[6], "fail");  // its newest verdict
  EXPECT_EQ(cell_line(overview, scene::k_hostile)[3], "steady");
  EXPECT_EQ(cell_line(overview, scene::k_hostile)[6], Json());
}

// Whatever else is counted per token, and of however many cells.
TEST(Site, ShowsWhatTheDeviceWasGivenFromTheStart) {
  SiteModel model = scene::small_scene();
  for (const char* name :
       {"backend_syncs_per_token", "copied_bytes_per_token", "cpu_ops_per_token",
        "graphs_per_token", "dispatches_per_prefill", "prefill_tokens_per_second"}) {
    for (int cell = 0; cell < 3; ++cell) {
      model.history.series.push_back(model.history.series.front());
      model.history.series.back().cell += std::to_string(cell);
      model.history.series.back().metric = history::metric_named(name);
      model.changes.emplace_back();
    }
  }
  // It comes late, and got worse in one cell.
  model.history.series.push_back(model.history.series.front());
  model.history.series.back().metric = history::metric_named("splits_per_prefill");
  model.changes.resize(model.history.series.size());
  model.changes.back() = {scene::step(3, 1, 2)};
  const Site site(std::move(model));
  const Json overview = document(site, "data/overview.js");
  std::set<std::string> shown;
  for (const Json& at : overview["columns"]) {
    shown.insert(overview["metrics"][at.get<std::size_t>()]["name"]);
  }
  EXPECT_THAT(shown, testing::IsSupersetOf({"decode_tokens_per_second", "dispatches_per_token",
                                            "syncs_per_token", "splits_per_prefill"}));
}

TEST(Site, SaysOfAChangeWhetherItIsForTheBetter) {
  enum class Kind { step, drift, device_class };
  history::Series series;
  const struct {
    std::optional<unit::Better> better;
    Kind kind;
    double before, after;
    bool is_acknowledged;
    const char* state;
  } k_cases[] = {
      {unit::Better::higher, Kind::step, 10, 9, false, "worse"},
      {unit::Better::higher, Kind::drift, 10, 11, false, "better"},
      {unit::Better::lower, Kind::step, 65, 77, false, "worse"},
      {unit::Better::lower, Kind::step, 77, 65, false, "better"},
      {std::nullopt, Kind::step, 1, 2, false, "changed"},
      {unit::Better::lower, Kind::device_class, 65, 77, false, "place"},
      {unit::Better::lower, Kind::step, 65, 77, true, "known"},
  };
  for (const auto& c : k_cases) {
    series.metric.better = c.better;
    history::SeriesChange change;
    if (c.kind == Kind::drift) change.kind = stats::ChangeKind::drift;
    if (c.kind == Kind::device_class) change.new_class.emplace();
    change.before = c.before;
    change.after = c.after;
    if (c.is_acknowledged) change.acknowledgement = history::Acknowledgement{};
    EXPECT_EQ(series_state(series, {change}), c.state);
  }
  EXPECT_EQ(series_state(series, {}), "steady");
}

TEST(Site, GivesACellItsSeriesInColumns) {
  const Site site(scene::small_scene());
  const Json overview = document(site, "data/overview.js");
  const std::string id = cell_line(overview, "llama.cpp/tiny-llama/vulkan/decode")[0];
  const Json cell = document(site, "data/cells/" + id + ".js");
  ASSERT_EQ(cell["series"].size(), 4U);
  const Json& rates = cell["series"][0];
  EXPECT_EQ(rates["metric"]["unit"], "tok/s");
  EXPECT_EQ(rates["value"].size(), 90U);
  EXPECT_EQ(rates["place"], Json::parse("[[0, 0], [20, 1]]"));  // another driver from there on
  EXPECT_EQ(rates["changes"][0]["kind"], "place");
  EXPECT_EQ(rates["changes"][1]["commit"], scene::commit_of(62).substr(0, 12));
  // A point's value lies inside its interval, which its ten samples give.
  EXPECT_EQ(rates["samples"], 10);
  EXPECT_LT(rates["low"][0], rates["high"][0]);
  const Json& dispatches = cell["series"][1];
  EXPECT_FALSE(dispatches.contains("low"));  // exact
  EXPECT_EQ(dispatches["value"][62], 77);
  EXPECT_EQ(cell["runs"]["commit"][rates["run"][62].get<std::size_t>()],
            scene::commit_of(62).substr(0, 12));
}

// P(Binomial(n, 1/2) < k) <= 0.025 holds for the k-th of n samples: 1 of 6 (0.016), 2 of 10
// (0.011; the third would have 0.055), 2 of 11 (0.006; the third 0.033), 3 of 12 (0.019).
TEST(Site, GivesTheMiddleAnIntervalWithoutAssumingADistribution) {
  const struct {
    std::size_t samples;
    double low, high;
  } k_cases[] = {{2, 1, 2}, {5, 1, 5}, {6, 1, 6}, {10, 2, 9}, {11, 2, 10}, {12, 3, 10}};
  for (const auto& c : k_cases) {
    SiteModel model;
    model.history.runs.emplace_back();
    model.history.places.emplace_back();
    history::Series series{"p", "c", history::metric_named("load_seconds"), "m", {{}}};
    for (std::size_t i = c.samples; i > 0; --i) {
      series.points[0].samples.push_back(static_cast<double>(i));
    }
    model.history.series.push_back(series);
    const Site site(std::move(model));
    const Json cell = document(site, site.paths()[5]);
    EXPECT_EQ(cell["series"][0]["low"][0], c.low) << c.samples;
    EXPECT_EQ(cell["series"][0]["high"][0], c.high) << c.samples;
  }
}

TEST(Site, TellsOfARunWhichKernelsChanged) {
  const Site site(scene::small_scene());
  const Json runs = document(site, "data/runs.js");
  std::string red;
  for (const Json& run : runs["runs"]) {
    if (run["commit"] == scene::commit_of(62) && run["verdict"] == "fail") red = run["id"];
  }
  const Json run = document(site, "data/runs/" + red + ".js");
  const Json& cell = run["verdicts"][0]["cells"][0];
  EXPECT_EQ(cell["judgements"][0]["current"], 77);
  EXPECT_EQ(cell["judgements"][1]["reason"], "other kernels");
  EXPECT_EQ(cell["judgements"][1]["changed"][0], Json::parse(R"(["rms_norm_f32", null, "12"])"));
  EXPECT_EQ(run["points"].size(), 7U);  // all that was measured that night on that machine
}

TEST(Site, TellsOfARunOfServersWhatItsBaseMeasured) {
  const Site site(scene::served_scene());
  const std::string id = document(site, "data/runs.js")["runs"][0]["id"];
  const Json run = document(site, "data/runs/" + id + ".js");
  EXPECT_THAT(run["served"][0]["figures"][0]["words"].get<std::string>(),
              HasSubstr("400 of 10000 requests"));
  ASSERT_EQ(run["bases"].size(), run["points"].size());
  for (const Json& base : run["bases"]) {
    if (base[0] != "llama-server/tiny-llama/cpu/chat@c4") continue;
    if (run["metrics"][base[1].get<std::size_t>()]["name"] != "time_to_first_token_seconds") {
      continue;
    }
    EXPECT_DOUBLE_EQ(base[2], 0.8 * 4 * 0.018);
    return;
  }
  FAIL() << "chat@c4 has no base";
}

TEST(Site, TellsTheAgeOfEachBaselineByItsNewest) {
  const Site site(scene::small_scene());
  const Json baselines = document(site, "data/baselines.js")["baselines"];
  ASSERT_FALSE(baselines.empty());
  for (const Json& baseline : baselines) {
    if (baseline["cell"] == "llama.cpp/tiny-llama/cpu/decode") {
      EXPECT_EQ(baseline["commit"], scene::commit_of(50).substr(0, 12));
    }
  }
}

TEST(Site, GivesPagesToTheNewestRunsAndToThoseWithVerdicts) {
  SiteModel model = scene::long_scene(k_max_run_pages + 100);
  model.verdicts = {scene::stored(3, {}, "box"), scene::stored(k_max_run_pages + 50, {}, "box")};
  const Site site(std::move(model));
  const Json runs = document(site, "data/runs.js");
  EXPECT_EQ(runs["all"], k_max_run_pages + 100);
  EXPECT_EQ(runs["runs"].size(), k_max_run_pages + 1);
  EXPECT_EQ(runs["runs"].back()["commit"], scene::commit_of(3));
}

TEST(Site, SpreadsManyCommitsOverFiles) {
  SiteModel model = scene::long_scene(3'000);
  for (const auto& run : model.history.runs) model.subjects[*run.commit] = "about " + *run.commit;
  const Site site(std::move(model));
  EXPECT_EQ(document(site, "data/overview.js")["commit_digits"], 2);
  const std::string commit = scene::commit_of(1);
  const Json lines = document(site, "data/commits/" + commit.substr(0, 2) + ".js");
  EXPECT_THAT(lines, testing::Contains(Json{commit.substr(0, 12), "about " + commit}));
}

TEST(Site, OfAnEmptyHistoryIsEmpty) {
  const Site site(SiteModel{});
  EXPECT_THAT(site.paths(), ElementsAre("data/overview.js", "data/runs.js", "data/baselines.js",
                                        "data/tally.js"));
  EXPECT_EQ(document(site, "data/overview.js")["cells"], Json::array());
}

TEST(RepoUrl, TakesAddressesThatABrowserReadsAsOne) {
  EXPECT_EQ(repo_url("https://github.com/me/engine/"), "https://github.com/me/engine");
  EXPECT_EQ(repo_url("http://localhost:3000/me/engine"), "http://localhost:3000/me/engine");
  for (const char* wrong :
       {"", "javascript:alert(1)", "https://", "https:///x", "github.com/me/engine",
        "https://u:p@host/x", "https://host/x?y", "https://host/x#y", "https://host/ x",
        "https://host/\"x", "https://host/<x>", "ftp://host/x", "https://host/\xc3\xa9"}) {
    EXPECT_FALSE(repo_url(wrong)) << wrong;
  }
}

}  // namespace site_test
}  // namespace weir::site
