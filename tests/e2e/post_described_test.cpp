// Every request that weir post makes, held to GitHub's own description of its API. Needs what
// ci/github-api gets.
#include <gmock/gmock.h>

#include "tests/e2e/post_support.hpp"

namespace weir::e2e {
namespace post_described_test {

class PostDescribed : public PostScene {
 protected:
  // "" where GitHub's description has nothing against them, else what it has.
  std::string against(const std::vector<tests::ReceivedRequest>& requests) {
    const fs::path tools = WEIR_BINARY_DIR "/github-api";
    if (!fs::exists(tools / "node_modules")) return "run ci/github-api first";
    std::string lines;
    for (const tests::ReceivedRequest& request : requests) {
      const Json line = {
          {"method", request.method}, {"target", request.target}, {"body", request.body}};
      lines += line.dump() + "\n";
    }
    spill(scratch_ / "requests.jsonl", lines);
    const std::string command = fmt::format(
        "node {}/tests/publish/github/validate.mjs {} {} >{} 2>&1", WEIR_SOURCE_DIR, tools.string(),
        (scratch_ / "requests.jsonl").string(), (scratch_ / "validated").string());
    return std::system(command.c_str()) == 0 ? "" : slurp(scratch_ / "validated");
  }
};

// Else the test below would show nothing.
TEST_F(PostDescribed, ARequestThatDoesNotFitIsFound) {
  const std::string check =
      R"({"name": "weir", "head_sha": "a", "status": "completed", "conclusion": "great"})";
  EXPECT_THAT(against({{"POST", "/repos/o/r/check-runs", check, {}}}),
              testing::HasSubstr("conclusion"));
  EXPECT_NE(against({{"POST", "/repos/o/r/issues/7/comments", R"({"text": "x"})", {}}}), "");
  EXPECT_NE(against({{"PATCH", "/repos/o/r/issues/7/comments", R"({"body": "x"})", {}}}), "");
}

TEST_F(PostDescribed, EveryRequestFitsGitHubsDescription) {
  // Created, edited, with other annotations, without a verdict, of a fork, many cells, a person's
  // token, a comment to remove.
  verdict("green.json", gate_with(8, 0));
  verdict("huge.json", gate_with(10'000, 9'000));
  EXPECT_EQ(post({"red.json", "--fail"}, runner(900, 1)).exit_code, 0);
  EXPECT_EQ(post({"huge.json", "--fail"}, runner(900, 2)).exit_code, 0);
  EXPECT_EQ(post({"green.json", "--fail", "--name", "gpu / linux"}, runner(900, 3)).exit_code, 0);
  // Judged by a later commit of the base than the event has; while a second pull request is red.
  verdict::GateVerdict later = gate_with(8, 0);
  later.rules->commit = std::string(40, 'd');
  verdict("later.json", later);
  server_.store([](tests::GithubStore& store) {
    store.set_branch("main", {k_base, std::string(40, 'd')});
    store.add_pull(8, k_head);
  });
  event(pull_request_event(8));
  EXPECT_EQ(post({"red.json", "--fail"}, runner(900, 4)).exit_code, 0);
  event(pull_request_event());
  EXPECT_EQ(post({"later.json", "--fail"}, runner(900, 5)).exit_code, 0);
  server_.store([](tests::GithubStore& store) {
    for (int i = 0; i < 2; ++i) {
      store.add_comment(7, "github-actions[bot]",
                        "<!-- weir:gate=gate pr=7 base=main run=1 attempt=1 -->\nleft behind");
    }
  });
  EXPECT_EQ(post({"red.json", "--fail"}, runner(901)).exit_code, 0);
  event(workflow_run_event("cancelled"));
  EXPECT_EQ(post({"none.json"}, runner(950, 1, "workflow_run")).exit_code, 0);
  event({{"issue", {{"number", 7}, {"pull_request", {{"url", "x"}}}}},
         {"comment", {{"id", 1}}},
         {"repository", {{"full_name", "o/r"}}}});
  server_.store([](tests::GithubStore& store) { store.login = "maintainer"; });
  EXPECT_EQ(post({"red.json"}, runner(960, 1, "issue_comment")).exit_code, 0);
  EXPECT_EQ(post({"red.json"}, runner(961, 1, "issue_comment")).exit_code, 0);

  std::string kinds;
  for (const auto& request : server_.requests())
    kinds += request.method + " " + request.target + "\n";
  for (const char* kind : {"POST ", "PATCH ", "DELETE ", "/user", "/annotations", "/pulls?",
                           "/pulls/7", "/compare/", "/pulls/8"}) {
    EXPECT_THAT(kinds, testing::HasSubstr(kind));
  }
  EXPECT_EQ(against(server_.requests()), "");
}

// Checks all requests that `/weir waive` and `/weir run` in a comment make: the author's rights,
// the head, the check run; then a file that is already on the branch, and the check turned green.
TEST_F(PostDescribed, EveryRequestOfACommentsCommandFitsIt) {
  verdict::GateVerdict gate = gate_with(3, 2);
  for (verdict::CellVerdict& cell : gate.cells) {
    if (cell.verdict != verdict::Outcome::fail) continue;
    cell.judgements[0].current = 77;
    cell.judgements[0].current_text = "77";
  }
  verdict("grown.json", gate);
  ASSERT_EQ(post({"grown.json", "--fail"}, runner(900, 1)).exit_code, 0);
  const auto run_command = [&](const std::string& body) {
    std::int64_t id = 0;
    server_.store([&](tests::GithubStore& store) {
      store.set_permission("ada", "write");
      store.set_file("perf-baselines", "waivers/7.json",
                     R"({"schema": "weir.waivers/1", "pull_request": 7, "waivers": []})");
      id = store.add_comment(7, "ada", body);
    });
    event({{"action", "created"},
           {"repository", {{"full_name", "o/r"}}},
           {"issue", {{"number", 7}, {"pull_request", {{"url", "u"}}}}},
           {"comment",
            {{"id", id}, {"body", body}, {"user", {{"login", "ada"}, {"type", "User"}}}}}});
    const Ended ended = weir(scratch_, {"waive", "--event", "event.json", "--json", "-"},
                             runner(960, 1, "issue_comment"));
    EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
    EXPECT_EQ((ended.out + ended.err).find(k_token), std::string::npos) << "the token is shown";
    return json_of(ended);
  };
  const std::size_t posted = server_.requests().size();
  EXPECT_EQ(run_command("/weir run " + k_head)["command"], "run");
  const std::string shown = comments().at(0)["body"].get<std::string>();
  const std::string line = shown.substr(shown.find("/weir waive "), 52);
  EXPECT_EQ(run_command(line + " a new fusion")["command"], "waived");
  auto requests = server_.requests();
  requests.erase(requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(posted));
  std::string kinds;
  for (const auto& request : requests) kinds += request.method + " " + request.target + "\n";
  for (const char* kind : {"/permission", "/pulls/7", "/check-runs", "GET /repos/o/r/contents",
                           "PUT /repos/o/r/contents", "PATCH /repos/o/r/check-runs", "/statuses"}) {
    EXPECT_THAT(kinds, testing::HasSubstr(kind));
  }
  EXPECT_EQ(against(requests), "");
}

}  // namespace post_described_test
}  // namespace weir::e2e
