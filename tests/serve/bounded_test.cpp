// Tests that a page of an answer has an end, whatever is stored, and that the next one goes on
// there.
#include <set>

#include <gmock/gmock.h>

#include "tests/serve/support.hpp"

namespace weir::serve {
namespace bounded_test {

constexpr std::size_t k_page = std::size_t{2} << 20;

class Pages : public ServiceTest {
 protected:
  void add_verdict(int number, const std::string& text) {
    history::StoredVerdict verdict =
        history::verdict_at(fmt::format("r{}", number), number, "pass");
    verdict.text = text;
    verdict.id = hash_hex(text);
    history::Batch batch;
    batch.verdicts = {verdict};
    value_of(store()->history().add(batch));
  }
  // Follows the pages from `path` on; returns the bodies.
  std::vector<std::string> all_pages(std::string path) {
    const auto service = start(/*is_public=*/true);
    std::vector<std::string> bodies;
    while (!path.empty() && bodies.size() < 100) {
      const Reply got = ask(*service, {Method::get, path});
      EXPECT_EQ(got.status, 200) << got.body.substr(0, 200);
      if (got.status != 200) break;
      bodies.push_back(got.body);
      path = got.json().value("next", "");
    }
    return bodies;
  }
};

TEST_F(Pages, OfVerdictsWithTheirDocumentsEndByBytes) {
  std::vector<std::string> texts;
  for (int i = 0; i < 6; ++i) {
    texts.push_back(fmt::format("{{\"n\":{},\"s\":\"{}\"}}", i, std::string(900'000, 'x')));
    add_verdict(i, texts.back());
  }
  const auto bodies = all_pages("/api/v1/verdicts?project=default&full=1");
  EXPECT_EQ(bodies.size(), 2U);
  int number = 5;
  for (const std::string& body : bodies) {
    EXPECT_LT(body.size(), k_page + 1'000'000);
    const Json json = Json::parse(body);
    for (const Json& verdict : json["verdicts"]) {
      EXPECT_EQ(verdict["verdict"]["n"], number);
      EXPECT_NE(body.find(texts[static_cast<std::size_t>(number)]), std::string::npos);
      --number;
    }
  }
  EXPECT_EQ(number, -1);
}

TEST_F(Pages, OfVerdictsHaveOneThatIsLargerThanAPage) {
  add_verdict(0, "{\"n\":0,\"s\":\"" + std::string(3 * k_page, 'x') + "\"}");
  add_verdict(1, "{\"n\":1}");
  const auto bodies = all_pages("/api/v1/verdicts?project=default&full=1");
  ASSERT_EQ(bodies.size(), 1U);
  EXPECT_EQ(Json::parse(bodies[0])["verdicts"].size(), 2U);
}

TEST_F(Pages, OfVerdictsShowADocumentThatIsNoJsonAsNull) {
  add_verdict(0, "{\"n\":0}],\"next\":\"//elsewhere\",\"a\":[");
  add_verdict(1, "{\"n\":1}");
  const auto bodies = all_pages("/api/v1/verdicts?project=default&full=1");
  ASSERT_EQ(bodies.size(), 1U);
  const Json json = Json::parse(bodies[0]);
  EXPECT_EQ(json["verdicts"][0]["verdict"]["n"], 1);
  EXPECT_TRUE(json["verdicts"][1]["verdict"].is_null());
  EXPECT_FALSE(json.contains("next"));
}

TEST_F(Pages, OfSeriesEndByBytesAndMissNothing) {
  history::Batch batch;
  for (int i = 0; i < 2'400; ++i) {
    history::Run run = history::run_at(fmt::format("{:0500d}", i), i,
                                       {history::count_point(fmt::format("e/m/b/{}", i % 40), i)});
    run.facts.branch = std::string(500, 'b');
    batch.runs.push_back(std::move(run));
  }
  value_of(store()->history().add(batch));
  const auto bodies = all_pages("/api/v1/series?project=default&limit=10000");
  EXPECT_GT(bodies.size(), 1U);
  std::set<std::string> runs;
  for (const std::string& body : bodies) {
    EXPECT_LT(body.size(), 2 * k_page);
    const Json json = Json::parse(body);
    for (const Json& series : json["series"]) {
      for (const Json& point : series["points"]) {
        EXPECT_TRUE(runs.insert(point["run"].get<std::string>()).second);
      }
    }
  }
  EXPECT_EQ(runs.size(), 2'400U);
}

// Names that match nothing are passed over, some thousands a page.
TEST_F(Pages, OfSeriesGoOnBehindNamesThatDoNotMatch) {
  history::Batch batch;
  batch.runs = {history::run_at("r", 1, {})};
  for (int i = 0; i < 12'000; ++i) {
    batch.runs[0].points.push_back(history::count_point(fmt::format("e/m/b/{:05d}", i), i));
  }
  value_of(store()->history().add(batch));
  std::size_t points = 0;
  for (const std::string& body : all_pages("/api/v1/series?project=default&cell=*/11999")) {
    const Json json = Json::parse(body);
    for (const Json& series : json["series"]) points += series["points"].size();
  }
  EXPECT_EQ(points, 1U);
}

TEST_F(Pages, ThatNeedTooMuchMemorySayHowToAskForLess) {
  history::Batch batch;
  for (int i = 0; i < 60; ++i) {
    history::Run run = history::run_at(fmt::format("r{}", i), i, {});
    for (int j = 0; j < 4'000; ++j) {
      run.points.push_back(history::count_point(fmt::format("e/m/b/{}", j), i));
    }
    batch.runs.push_back(std::move(run));
  }
  value_of(store()->history().add(batch));
  const auto service = start(/*is_public=*/true);
  const Reply all = ask(*service, {Method::get, "/api/v1/changes?project=default"});
  EXPECT_EQ(all.status, 400);
  EXPECT_THAT(all.body, testing::HasSubstr("fewer cells"));
  EXPECT_EQ(ask(*service, {Method::get, "/api/v1/changes?project=default&cell=e/m/b/7*"}).status,
            200);
  EXPECT_EQ(ask(*service, {Method::get, "/api/v1/changes?project=default&since=58"}).status, 200);
}

}  // namespace bounded_test
}  // namespace weir::serve
