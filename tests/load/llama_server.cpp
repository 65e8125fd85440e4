// The real llama-server under load: what the driver measured is held against what the server says
// of the same requests in `timings`. Two clocks that look at one thing from two sides: what the
// server spent lies within what the client waited, request by request and in sum.
#include <filesystem>
#include <set>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate/load/load.hpp"
#include "gate/profile/served.hpp"
#include "gate/sys/process.hpp"

#include "tests/load/scene.hpp"

namespace weir::load {
namespace {

int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int port = 0;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    port = ntohs(address.sin_port);
  close(fd);
  return port;
}

// Runs as long as it lives.
class LlamaServer {
 public:
  explicit LlamaServer(const std::string& model) : port_(free_port()) {
    sys::ProcessSpec spec;
    spec.argv = {WEIR_SOURCE_DIR "/engines/llama.cpp/llama-server",
                 "-m",
                 WEIR_SOURCE_DIR "/models/" + model,
                 "--host",
                 "127.0.0.1",
                 "--port",
                 std::to_string(port_),
                 "-c",
                 "4096",
                 "-np",
                 "4",
                 "-ngl",
                 "0",
                 "-t",
                 "1"};
    spec.timeout_seconds = 600;
    thread_ = std::thread([this, spec] { ended_ = processes_.run(spec, stop_); });
  }
  ~LlamaServer() {
    stop_.request();
    thread_.join();
  }
  LlamaServer(const LlamaServer&) = delete;
  LlamaServer& operator=(const LlamaServer&) = delete;

  [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  [[nodiscard]] bool is_ready() {
    sys::RealHttp http;
    const sys::Stop stop;
    for (int i = 0; i < 600; ++i) {
      const auto answer = http.send({.url = url() + "/health"}, {}, stop);
      if (answer && answer->status == 200) return true;
      usleep(200'000);
    }
    return false;
  }

 private:
  int port_;
  sys::RealProcesses processes_;
  sys::Stop stop_;
  Result<sys::Finished> ended_;
  std::thread thread_;
};

constexpr std::int64_t k_tokens = 48;

LoadPlan make_plan(const std::string& url, const std::string& api, std::int64_t concurrency) {
  LoadPlan plan;
  plan.url = url;
  plan.api = api;
  plan.model = "any";
  plan.prompts = {{"short", "Hello world", k_tokens},
                  {"long", std::string(300, 'a') + " and so on", k_tokens}};
  plan.requests = 12;
  plan.warm_up = 2;
  plan.loop = ClosedLoop{concurrency};
  // Letters only: a small model with random weights else says bytes that are no characters, and
  // those are held back.
  plan.extra_members = {{"grammar", "root ::= [a-z ]+"}};
  return plan;
}

std::vector<profile::ServedRequest> measured(const Load& load) {
  std::vector<profile::ServedRequest> result;
  for (const auto& request : load.requests) {
    EXPECT_EQ(outcome(request), "whole") << failure_text(request);
    if (!request.warm_up && !request.failure) result.push_back(request);
  }
  return result;
}

void print(const char* api, std::int64_t concurrency, const Load& load) {
  double waited = 0, spent = 0, span = 0, predicted = 0;
  const auto requests = measured(load);
  for (const auto& request : requests) {
    waited += request.tokens.front().received_at - request.scheduled;
    spent += request.reported.prompt_seconds.value_or(0);
    span += request.tokens.back().received_at - request.tokens.front().received_at;
    predicted += request.reported.output_seconds.value_or(0);
  }
  const auto summary = profile::summarise(load.requests);
  const auto tpot = [&](double seconds) {
    return seconds * 1e3 / static_cast<double>(k_tokens - 1) / static_cast<double>(requests.size());
  };
  fmt::print(
      "{} at {}: TTFT {:.2f} ms, the server's prompt_ms {:.2f}; TPOT {:.3f} ms, the server's "
      "{:.3f}; {:.0f} tokens/s\n",
      api, concurrency, waited * 1e3 / static_cast<double>(requests.size()),
      spent * 1e3 / static_cast<double>(requests.size()), tpot(span), tpot(predicted),
      summary.output_tokens_per_second.value_or(0));
}

class OnLlamaServer : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(WEIR_SOURCE_DIR "/engines/llama.cpp/llama-server")) {
      GTEST_FAIL() << "no llama-server: run ci/llama.cpp llama-server";
    }
  }
};

TEST_F(OnLlamaServer, WhatTheServerSpentLiesWithinWhatTheClientWaited) {
  LlamaServer server("tiny-llama.gguf");
  ASSERT_TRUE(server.is_ready());
  for (const char* api : {"llama", "completions", "chat"}) {
    std::set<std::string> digests;  // digests of each prompt at each concurrency
    for (const std::int64_t concurrency : {1, 4}) {
      // As weir asks servers: it closes connections that it kept just when they are used again.
      const Load load =
          drive_for_real(make_plan(server.url(), api, concurrency), {.keep_connections = false});
      const auto requests = measured(load);
      ASSERT_EQ(requests.size(), 12U);
      double waited = 0, spent = 0;
      for (const auto& request : requests) {
        EXPECT_EQ(request.reported.output_tokens, k_tokens);
        EXPECT_EQ(request.counted_tokens, k_tokens) << api;
        EXPECT_EQ(request.reported.cached_tokens, 0) << "cache_prompt: false";
        ASSERT_TRUE(request.reported.prompt_seconds && request.reported.output_seconds);
        // In order: the prompt is done before the first token is there, all before the last.
        EXPECT_GE(request.tokens.front().received_at - request.scheduled,
                  *request.reported.prompt_seconds);
        EXPECT_GE(request.tokens.back().received_at - request.scheduled,
                  *request.reported.prompt_seconds + *request.reported.output_seconds);
        waited += request.tokens.back().received_at - request.scheduled;
        spent += *request.reported.prompt_seconds + *request.reported.output_seconds;
        digests.insert(request.prompt + " " + request.output_digest);
      }
      // In sum: what neither account holds are the server's queue and its HTTP.
      EXPECT_GT(spent, waited / 2) << api << " at " << concurrency;
      print(api, concurrency, load);
    }
    // With one request at a time, outputs are the same; batches may round otherwise.
    EXPECT_GE(digests.size(), 2U);
    EXPECT_LE(digests.size(), 4U) << api;
  }
}

TEST_F(OnLlamaServer, RequestsThatGoWrongHaveItsWords) {
  LlamaServer server("tiny-llama.gguf");
  ASSERT_TRUE(server.is_ready());
  LoadPlan plan = make_plan(server.url(), "llama", 1);
  plan.requests = 1;
  plan.warm_up = 0;
  plan.extra_members = {{"grammar", "root ::= no such rule"}};
  const Load load = drive_for_real(plan);
  EXPECT_EQ(outcome(load.requests.at(0)), "status");
  EXPECT_EQ(load.requests.at(0).failure->status, 400);
  EXPECT_NE(failure_text(load.requests.at(0)), "");

  plan.extra_members = nullptr;
  plan.prompts[0].text.assign(40'000, 'a');  // more than a slot's context
  const Load too_long = drive_for_real(plan);
  EXPECT_EQ(outcome(too_long.requests.at(0)), "status");
  EXPECT_NE(failure_text(too_long.requests.at(0)).find("context"), std::string::npos)
      << failure_text(too_long.requests.at(0));
}

}  // namespace
}  // namespace weir::load
