// Tests the tests' own GitHub: its lag, its refusals, its pages.
#include "tests/publish/fault_server.hpp"

#include <gtest/gtest.h>

namespace weir::tests {
namespace fault_server_test {

TEST(GithubStore, ShowsACommentInListsOnlyAfterItsLag) {
  GithubStore store;
  store.add_pull(7, "abc");
  store.create_lag = 2;
  const std::string path = "/repos/o/r/issues/7/comments";
  const StoreAnswer created = store.answer({"POST", path, {}, R"({"body": "hello"})"});
  ASSERT_EQ(created.status, 201);
  EXPECT_EQ(store.answer({"GET", path, {}, ""}).body.size(), 0U);
  EXPECT_EQ(store.answer({"GET", path, {}, ""}).body.size(), 0U);
  EXPECT_EQ(store.answer({"GET", path, {}, ""}).body.size(), 1U);
  const std::string comment_path = "/repos/o/r/issues/comments/" + dump_json(created.body["id"]);
  EXPECT_EQ(store.answer({"GET", comment_path, {}, ""}).status, 200);
}

TEST(GithubStore, ShowsADeletedCommentInListsForItsLag) {
  GithubStore store;
  store.add_pull(7, "abc");
  const std::string comment_path =
      "/repos/o/r/issues/comments/" + std::to_string(store.add_comment(7, store.login, "old"));
  store.delete_lag = 1;
  EXPECT_EQ(store.answer({"DELETE", comment_path, {}, ""}).status, 204);
  EXPECT_EQ(store.answer({"GET", comment_path, {}, ""}).status, 404);
  EXPECT_EQ(store.answer({"GET", "/repos/o/r/issues/7/comments", {}, ""}).body.size(), 1U);
  EXPECT_EQ(store.answer({"GET", "/repos/o/r/issues/7/comments", {}, ""}).body.size(), 0U);
  EXPECT_TRUE(store.comments(7).empty());
}

TEST(GithubStore, RefusesWhatGithubRefuses) {
  GithubStore store;
  store.add_pull(7, "abc");
  struct Case {
    const char *what, *method, *path;
    std::string body;
    int status;
  };
  // Limits as documented at docs.github.com/rest.
  const std::string long_body(65'537, 'x');
  Json oversized_check = {
      {"name", "weir"},
      {"head_sha", "abc"},
      {"output", {{"title", "t"}, {"summary", "s"}, {"annotations", Json::array()}}}};
  for (int i = 0; i < 51; ++i) {
    oversized_check["output"]["annotations"].push_back({{"path", "weir.yaml"},
                                                        {"start_line", 1},
                                                        {"end_line", 1},
                                                        {"annotation_level", "notice"},
                                                        {"message", "m"}});
  }
  const Case cases[] = {
      {"a comment too long", "POST", "/repos/o/r/issues/7/comments",
       dump_json({{"body", long_body}}), 422},
      {"a comment as long as can be", "POST", "/repos/o/r/issues/7/comments",
       dump_json({{"body", long_body.substr(1)}}), 201},
      {"an empty comment", "POST", "/repos/o/r/issues/7/comments", R"({"body": ""})", 422},
      {"no JSON", "POST", "/repos/o/r/issues/7/comments", "{", 400},
      {"no such pull request", "POST", "/repos/o/r/issues/8/comments", R"({"body": "x"})", 404},
      {"51 annotations", "POST", "/repos/o/r/check-runs", dump_json(oversized_check), 422},
      {"a check without a name", "POST", "/repos/o/r/check-runs", R"({"head_sha": "abc"})", 422},
      {"a strange conclusion", "POST", "/repos/o/r/check-runs",
       R"({"name": "weir", "head_sha": "abc", "conclusion": "green"})", 422},
      {"a status of a strange state", "POST", "/repos/o/r/statuses/abc", R"({"state": "ok"})", 422},
      {"a status", "POST", "/repos/o/r/statuses/abc", R"({"state": "success"})", 201},
      {"another repository", "GET", "/repos/o/other", "", 404},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(store.answer({c.method, c.path, {}, c.body}).status, c.status) << c.what;
  }
}

TEST(GithubStore, AddsUpTheAnnotationsOfBatches) {
  GithubStore store;
  const Json output = {{"title", "t"},
                       {"summary", "s"},
                       {"annotations", Json::array({{{"path", "weir.yaml"},
                                                     {"start_line", 1},
                                                     {"end_line", 1},
                                                     {"annotation_level", "notice"},
                                                     {"message", "m"}}})}};
  const StoreAnswer created =
      store.answer({"POST",
                    "/repos/o/r/check-runs",
                    {},
                    dump_json({{"name", "weir"}, {"head_sha", "abc"}, {"output", output}})});
  ASSERT_EQ(created.status, 201);
  const std::string check_path = "/repos/o/r/check-runs/" + dump_json(created.body["id"]);
  EXPECT_EQ(
      store
          .answer(
              {"PATCH", check_path, {}, dump_json({{"conclusion", "success"}, {"output", output}})})
          .status,
      200);
  ASSERT_EQ(store.check_runs().size(), 1U);
  EXPECT_EQ(store.check_runs()[0]["annotations"].size(), 2U);
  EXPECT_EQ(store.check_runs()[0]["status"], "completed");
  const StoreAnswer list =
      store.answer({"GET", "/repos/o/r/commits/abc/check-runs", {{"check_name", "weir"}}, ""});
  EXPECT_EQ(list.body["total_count"], 1);
}

TEST(GithubStore, CutsListsIntoPages) {
  GithubStore store;
  store.add_pull(7, "abc");
  for (int i = 0; i < 5; ++i) store.add_comment(7, "a", "x");
  const StoreAnswer answer =
      store.answer({"GET", "/repos/o/r/issues/7/comments", {{"per_page", "2"}, {"page", "2"}}, ""});
  EXPECT_EQ(answer.body.size(), 2U);
  EXPECT_EQ(answer.next_page, 3);
  EXPECT_EQ(answer.last_page, 3);
}

}  // namespace fault_server_test
}  // namespace weir::tests
