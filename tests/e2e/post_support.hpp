// Shared by the tests of the real weir post: verdicts, events, a GitHub of their own.
#pragma once

#include "gate/verdict/verdict.hpp"

#include "tests/e2e/weir_process.hpp"
#include "tests/publish/fault_server.hpp"

namespace weir::e2e {

inline const std::string k_token = "ghs_0123456789abcdefSECRET";
inline const std::string k_head(40, 'a'), k_base(40, 'b');

inline verdict::GateVerdict gate_with(std::size_t cells, std::size_t failing) {
  verdict::GateVerdict gate;
  gate.weir_version = "0.1.0";
  gate.config = "weir.yaml";
  gate.rules = verdict::RulesFrom{"origin/main", k_base, std::string(64, 'e')};
  for (std::size_t i = 0; i < cells; ++i) {
    const bool fails = i < failing;
    verdict::CellVerdict cell;
    cell.cell.engine = "llama.cpp";
    cell.cell.model = fmt::format("model-{}", i / 100);
    cell.cell.backend = "vulkan";
    cell.cell.prompt = fmt::format("decode-{}", i);
    cell.device = "vulkan";
    cell.verdict = fails ? verdict::Outcome::fail : verdict::Outcome::pass;
    verdict::Judgement metric;
    metric.metric = unit::find_metric("dispatches_per_token").value();
    metric.nature = profile::Nature::exact;
    metric.verdict = cell.verdict;
    metric.baseline = 65;
    metric.current = fails ? 65 + static_cast<double>(i) : 65;
    metric.baseline_text = "65";
    metric.current_text = std::to_string(fails ? 65 + i : 65);
    metric.limit.exact = true;
    metric.reason = fails ? "changed; an exact count must not" : "unchanged";
    cell.judgements.push_back(metric);
    gate.cells.push_back(std::move(cell));
  }
  gate.totals["fail"] = static_cast<std::int64_t>(failing);
  gate.totals["pass"] = static_cast<std::int64_t>(cells - failing);
  gate.metrics_judged = static_cast<std::int64_t>(cells);
  gate.verdict = failing > 0 ? verdict::Outcome::fail : verdict::Outcome::pass;
  gate.exit_code = failing > 0 ? verdict::ExitCode::fail : verdict::ExitCode::pass;
  return gate;
}

inline Json pull_request_event(int number = 7) {
  return {{"pull_request",
           {{"number", number},
            {"head", {{"sha", k_head}, {"repo", {{"full_name", "o/r"}}}}},
            {"base", {{"ref", "main"}, {"sha", k_base}, {"repo", {{"full_name", "o/r"}}}}}}},
          {"repository", {{"full_name", "o/r"}}}};
}

inline Json workflow_run_event(const std::string& conclusion) {
  return {{"workflow_run",
           {{"id", 800},
            {"run_attempt", 1},
            {"head_sha", k_head},
            {"head_branch", "fix"},
            {"event", "pull_request"},
            {"conclusion", conclusion},
            {"head_repository", {{"full_name", "someone/fork"}}},
            {"pull_requests", Json::array()}}},
          {"repository", {{"full_name", "o/r"}}}};
}

class PostScene : public testing::Test {
 protected:
  PostScene() : server_(k_token) {
    server_.store([](tests::GithubStore& store) { store.add_pull(7, k_head); });
    verdict("red.json", gate_with(8, 1));
    event(pull_request_event());
  }
  void verdict(const std::string& name, const verdict::GateVerdict& gate) {
    spill(scratch_ / name, write_fields(gate).dump());
  }
  void event(const Json& json) { spill(scratch_ / "event.json", json.dump()); }

  // As a step of a workflow runs it.
  [[nodiscard]] std::map<std::string, std::string> runner(int run = 900, int attempt = 1,
                                                          const std::string& name = "") const {
    return {{"GITHUB_API_URL", server_.url()},
            {"GITHUB_SERVER_URL", "https://github.com"},
            {"GITHUB_EVENT_PATH", (scratch_ / "event.json").string()},
            {"GITHUB_EVENT_NAME", name},
            {"GITHUB_REPOSITORY", "o/r"},
            {"GITHUB_SHA", std::string(40, 'c')},
            {"GITHUB_RUN_ID", std::to_string(run)},
            {"GITHUB_RUN_ATTEMPT", std::to_string(attempt)},
            {"WEIR_TOKEN", ""},
            {"GH_TOKEN", ""},
            {"GITHUB_TOKEN", k_token}};
  }
  Ended post(std::vector<std::string> words, const std::map<std::string, std::string>& env) {
    words.insert(words.begin(), "post");
    words.insert(words.end(), {"--settle", "10ms"});
    Ended ended = weir(scratch_, words, env);
    EXPECT_EQ((ended.out + ended.err).find(k_token), std::string::npos) << "the token is shown";
    return ended;
  }
  std::vector<Json> comments(int pull = 7) {
    std::vector<Json> result;
    server_.store([&](const tests::GithubStore& store) { result = store.comments(pull); });
    return result;
  }

  Scratch scratch_;
  tests::FaultServer server_;
};

}  // namespace weir::e2e
