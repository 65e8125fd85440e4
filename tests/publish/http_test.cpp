// Tests the HTTP client of sys against a real server.
#include "gate/sys/http.hpp"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "gate/sys/clock.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/process.hpp"

#include "tests/publish/fault_server.hpp"
#include "tests/support/eventually.hpp"

namespace weir::sys {
namespace http_test {

using tests::faults::body;
using tests::faults::cut;
using tests::faults::drip;
using tests::faults::half;
using tests::faults::never;
using tests::faults::redirect;
using What = HttpFailure::What;

constexpr const char* k_token = "ghp_TheTokenOfThisTest";

HttpRequest get(const std::string& url) {
  return {.url = url, .headers = {{"User-Agent", "weir/test"}}};
}

TEST(RealHttp, SendsARequestAsItIs) {
  tests::FaultServer server;
  RealHttp http;
  Stop stop;
  HttpRequest request{.method = "PATCH", .url = server.url() + "/repos/o/r?a=b"};
  request.headers = {{"Accept", "x/y"}, {"User-Agent", "weir/test"}};
  request.authorization = Secret(std::string("Bearer ") + k_token);
  request.body = std::string(2 << 20, 'x');  // libcurl would ask before it sends this much
  const auto response = http.send(request, {}, stop);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->header("content-type"), "application/json; charset=utf-8");
  const tests::ReceivedRequest received = server.requests().at(0);
  EXPECT_EQ(received.method, "PATCH");
  EXPECT_EQ(received.target, "/repos/o/r?a=b");
  EXPECT_EQ(received.headers.at("authorization"), std::string("Bearer ") + k_token);
  EXPECT_EQ(received.headers.at("accept"), "x/y");
  EXPECT_EQ(received.headers.count("expect"), 0U);
  EXPECT_EQ(received.body, *request.body);
}

TEST(RealHttp, SendsEveryMethodWithAndWithoutABody) {
  tests::FaultServer server;
  RealHttp http;
  Stop stop;
  for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    for (const bool with_body : {false, true}) {
      HttpRequest request = get(server.url() + "/x");
      request.method = method;
      if (with_body) request.body = "{}";
      const auto response = http.send(request, {}, stop);
      ASSERT_TRUE(response) << method << response.error().message;
      EXPECT_EQ(response->status, 404);
      EXPECT_EQ(server.requests().back().method, method);
      EXPECT_EQ(server.requests().back().body, with_body ? "{}" : "");
    }
  }
}

TEST(RealHttp, TellsFailuresApart) {
  struct Case {
    const char* what;
    tests::Fault fault;
    What expected;
  };
  const Case cases[] = {
      {"no answer", never(true), What::timed_out},
      {"cut before", cut(false), What::cut},
      {"cut after", cut(true), What::cut},
      {"cut amid the body", half(), What::cut},
      {"byte by byte, for too long", drip(0.05), What::timed_out},
      {"too large", body(std::string(100'001, 'x')), What::too_large},
  };
  for (const Case& c : cases) {
    tests::FaultServer server;
    server.fault({}, c.fault);
    RealHttp http;
    Stop stop;
    HttpRequest request = get(server.url() + "/repos/o/r");
    request.authorization = Secret(std::string("Bearer ") + k_token);
    // A short limit only for faults that end by it: other requests need longer on a busy machine.
    double limit = c.expected == What::timed_out ? 0.5 : 120;
    auto response = http.send(request, {.total_seconds = limit, .body_bytes = 100'000}, stop);
    for (; limit < 60 && !response && !response.error().sent; limit *= 2)
      response = http.send(request, {.total_seconds = limit, .body_bytes = 100'000}, stop);
    ASSERT_FALSE(response) << c.what;
    EXPECT_EQ(response.error().what, c.expected) << c.what << ": " << response.error().message;
    EXPECT_TRUE(response.error().sent) << c.what;
    EXPECT_EQ(response.error().message.find(k_token), std::string::npos);
  }
}

TEST(RealHttp, KnowsThatNothingWasSentWhereNobodyListens) {
  RealHttp http;
  Stop stop;
  const auto response =
      http.send(get("http://127.0.0.1:" + std::to_string(tests::closed_port())), {}, stop);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().what, What::no_connection);
  EXPECT_FALSE(response.error().sent);
}

TEST(RealHttp, SpeaksHttpAndHttpsAlone) {
  RealHttp http;
  Stop stop;
  for (const char* url : {"file:///etc/hostname", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "",
                          "http://127.0.0.1/\r\nX: y"}) {
    const auto response = http.send(get(url), {}, stop);
    ASSERT_FALSE(response) << url;
    EXPECT_EQ(response.error().what, What::invalid) << url << response.error().message;
    EXPECT_FALSE(response.error().sent);
  }
}

TEST(RealHttp, RefusesHeadersThatWouldEndTheirLine) {
  tests::FaultServer server;
  RealHttp http;
  Stop stop;
  HttpRequest request = get(server.url());
  request.authorization = Secret("Bearer x\r\nX-Evil: 1");
  EXPECT_EQ(http.send(request, {}, stop).error().what, What::invalid);
  request.authorization = Secret();
  request.headers = {{"X", "a\nb"}};
  EXPECT_EQ(http.send(request, {}, stop).error().what, What::invalid);
  EXPECT_TRUE(server.requests().empty());
}

TEST(RealHttp, TellsOfARedirectAndDoesNotFollowIt) {
  tests::FaultServer destination;
  tests::FaultServer server;
  server.fault({}, redirect(destination.url() + "/x"));
  RealHttp http;
  Stop stop;
  const auto response = http.send(get(server.url()), {}, stop);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 302);
  EXPECT_EQ(response->header("location"), destination.url() + "/x");
  EXPECT_TRUE(destination.requests().empty());
}

TEST(RealHttp, DoesNotSendACreationAgainOnAConnectionThatDied) {
  tests::FaultServer server;
  server.store([](tests::GithubStore& store) { store.add_pull(7, "abc"); });
  server.fault({.method = "POST"}, cut(true));
  RealHttp http;
  Stop stop;
  ASSERT_TRUE(http.send(get(server.url() + "/repos/o/r"), {}, stop));  // keeps this connection open
  HttpRequest request = get(server.url() + "/repos/o/r/issues/7/comments");
  request.method = "POST";
  request.body = R"({"body": "once"})";
  EXPECT_EQ(http.send(request, {}, stop).error().what, What::cut);
  server.store([](tests::GithubStore& store) { EXPECT_EQ(store.comments(7).size(), 1U); });
  EXPECT_EQ(server.count("POST", ""), 1);
}

TEST(RealHttp, EndsAtOnceWhenStopped) {
  tests::FaultServer server;
  server.fault({}, never(false));
  RealHttp http;
  Stop stop;
  std::thread stopper([&] {
    while (server.requests().empty()) std::this_thread::yield();
    stop.request();
  });
  const auto response = http.send(get(server.url()), {.total_seconds = 600}, stop);
  stopper.join();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().what, What::stopped);
  EXPECT_TRUE(response.error().sent);
  EXPECT_EQ(http.send(get(server.url()), {}, stop).error().what, What::stopped);
}

TEST(RealHttp, IsFineWithSeveralAtOnce) {
  tests::FaultServer server;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      RealHttp http;
      Stop stop;
      for (int k = 0; k < 5; ++k) EXPECT_TRUE(http.send(get(server.url() + "/x"), {}, stop));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server.requests().size(), 20U);
}

TEST(RealHttp, SpeaksTlsToNobodyWhoDoesNot) {
  tests::FaultServer server;
  RealHttp http;
  Stop stop;
  HttpRequest request = get("https" + server.url().substr(4) + "/x");
  request.authorization = Secret(std::string("Bearer ") + k_token);
  const auto response = http.send(request, {.total_seconds = 0.5}, stop);
  ASSERT_FALSE(response);
  EXPECT_FALSE(response.error().sent);
  EXPECT_FALSE(server.saw(k_token));
}

// Runs the openssl program as a server with a certificate that no authority signed.
class Unvouched {
 public:
  Unvouched() : port_(tests::closed_port()) {
    char pattern[] = "/tmp/weir-tls-XXXXXX";
    folder_ = mkdtemp(pattern);
    const std::string key = folder_ + "/key.pem";
    const std::string certificate = folder_ + "/certificate.pem";
    const auto finished =
        run({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2", "-keyout", key, "-out",
             certificate});
    ready_ = finished && finished->exit_code == 0;
    if (!ready_) return;
    server_ = std::thread([this, key, certificate] {
      (void)run({"s_server", "-accept", "127.0.0.1:" + std::to_string(port_), "-key", key, "-cert",
                 certificate, "-www", "-quiet"});
    });
  }
  ~Unvouched() {
    stop_.request();
    if (server_.joinable()) server_.join();
    (void)RealFiles().remove_tree(folder_);
  }
  Unvouched(const Unvouched&) = delete;
  Unvouched& operator=(const Unvouched&) = delete;
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }

 private:
  Result<Finished> run(std::vector<std::string> words) {
    words.insert(words.begin(), "/usr/bin/openssl");
    ProcessSpec spec;
    spec.argv = std::move(words);
    spec.timeout_seconds = 60;
    spec.kill_grace_seconds = 0.2;
    return RealProcesses().run(spec, stop_);
  }
  int port_;
  std::string folder_;
  bool ready_ = false;
  Stop stop_;
  std::thread server_;
};

TEST(RealHttp, RefusesACertificateThatNobodyVouchesFor) {
  if (access("/usr/bin/openssl", X_OK) != 0) GTEST_SKIP() << "no openssl program here";
  Unvouched server;
  ASSERT_TRUE(server.ready());
  RealHttp http;
  Stop stop;
  tl::expected<HttpResponse, HttpFailure> response;
  EXPECT_TRUE(tests::eventually([&] {  // until it listens
    response = http.send(get(server.url() + "/"), {}, stop);
    return response || response.error().what != What::no_connection;
  }));
  ASSERT_FALSE(response) << response->body;
  EXPECT_EQ(response.error().what, What::tls) << response.error().message;
  EXPECT_FALSE(response.error().sent);
}

}  // namespace http_test
}  // namespace weir::sys
