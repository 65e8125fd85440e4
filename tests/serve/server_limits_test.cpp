// Tests how a server bears clients that are slow, many, or never satisfied. Its limits are set low
// here. Each wait has the time that a busy machine needs, and no test checks how fast it was.
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/serve/echo.hpp"
#include "tests/serve/raw_client.hpp"
#include "tests/support/eventually.hpp"

namespace weir::tests {
namespace server_limits_test {

const std::string k_get = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

// Sends one octet after the other until the peer refuses more.
std::optional<RawAnswer> drip(RawClient& client, const std::string& begin) {
  client.send(begin);
  for (int i = 0; i < 12000; ++i) {
    if (!client.send("a")) return client.answer();
    if (auto answer = client.answer(false, 0.01)) return answer;
  }
  return std::nullopt;
}

TEST(Server, EndsHeadersThatComeDropByDrop) {
  serve::ServerOptions options = Served::local();
  options.limits.header_seconds = 0.3;
  Served served(options);
  RawClient client(served.port());
  const auto answer = drip(client, "GET / HTTP/1.1\r\nX: ");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
  EXPECT_EQ(parse_json(answer->body)->at("error").at("code"), "timed_out");
  EXPECT_EQ(served.server->traffic().timed_out, 1U);
}

TEST(Server, EndsBodiesThatComeDropByDrop) {
  serve::ServerOptions options = Served::local();
  options.limits.body_seconds = 0.3;
  Served served(options);
  for (const std::string framing : {"Content-Length: 100000", "Transfer-Encoding: chunked"}) {
    RawClient client(served.port());
    const auto answer =
        drip(client, "POST / HTTP/1.1\r\nHost: h\r\n" + framing + "\r\n\r\n" + "ffff\r\n");
    ASSERT_TRUE(answer) << framing;
    EXPECT_EQ(answer->status, 408) << framing;
  }
  EXPECT_EQ(served.echo.handled, 0);
  EXPECT_EQ(served.server->traffic().timed_out, 2U);
}

// At 1024 bytes a second it could go on for a minute; the first seconds are not limited.
TEST(Server, EndsBodiesThatComeSlowerThanTheyMay) {
  serve::ServerOptions options = Served::local();
  options.limits.body_seconds = 600;
  Served served(options);
  RawClient client(served.port());
  const auto answer = drip(client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
}

TEST(Server, EndsAnswersThatNobodyTakes) {
  serve::ServerOptions options = Served::local();
  options.limits.answer_seconds = 0.5;
  Served served(options);
  served.echo.big = std::make_shared<const std::string>(16 << 20, 'b');
  RawClient client(served.port());
  client.small_receive_buffer();
  client.send("GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return served.server->traffic().timed_out == 1; }));
  EXPECT_TRUE(eventually([&] { return served.server->traffic().open == 0; }));
  EXPECT_LT(client.rest().size(), std::size_t{16} << 20);
}

TEST(Server, ClosesIdleConnectionsWithoutAWord) {
  serve::ServerOptions options = Served::local();
  options.limits.idle_seconds = 0.2;
  Served served(options);
  RawClient never(served.port());
  EXPECT_TRUE(never.closed());
  // On a busy machine, the first attempts may be too late.
  std::optional<RawClient> once;
  EXPECT_TRUE(eventually([&] {
    once.emplace(served.port());
    once->send(k_get);
    return once->answer().has_value();
  }));
  EXPECT_TRUE(once->closed());
  EXPECT_EQ(served.server->traffic().timed_out, 0U);
}

TEST(Server, TellsWhoIsOneTooMany) {
  serve::ServerOptions options = Served::local();
  options.limits.connections = 3;
  options.limits.patience_seconds = 1e9;
  Served served(options);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(served.port()));
    clients.back()->send(k_get);
    ASSERT_EQ(clients.back()->answer()->status, 200);
  }
  {
    RawClient many(served.port());
    const auto answer = many.answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503);
    EXPECT_FALSE(answer->header("retry-after").empty());
    EXPECT_TRUE(many.closed());
  }
  EXPECT_EQ(served.server->traffic().refused, 1U);
  clients.clear();
  EXPECT_TRUE(eventually([&] { return served.server->traffic().open == 0; }));
  RawClient again(served.port());
  again.send(k_get);
  EXPECT_EQ(again.answer()->status, 200);
}

TEST(Server, CountsConnectionsByTheirPeerButNotThoseOfItsProxies) {
  for (const bool proxy : {false, true}) {
    serve::ServerOptions options = Served::local();
    options.limits.connections_a_peer = 2;
    options.limits.patience_seconds = 1e9;
    if (proxy) options.trusted_proxies = {"127.0.0.1"};
    Served served(options);
    RawClient first(served.port()), second(served.port()), third(served.port());
    for (RawClient* client : {&first, &second, &third}) client->send(k_get);
    EXPECT_EQ(first.answer()->status, 200);
    EXPECT_EQ(second.answer()->status, 200);
    EXPECT_EQ(third.answer()->status, proxy ? 200 : 503);
  }
}

TEST(Server, HoldsNoMoreOfBodiesThanItMay) {
  serve::ServerOptions options = Served::local();
  options.limits.buffered_bytes = 160000;  // half of it for each peer
  options.threads = 1;  // it takes all counted bytes of one body before it reads another
  Served served(options);
  const std::string begin = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 80000\r\n\r\n";
  RawClient first(served.port());
  first.send(begin + std::string(79999, 'a'));
  EXPECT_TRUE(
      eventually([&] { return served.server->traffic().bytes_in == 79999 + begin.size(); }));
  {
    RawClient second(served.port());
    second.send(begin + std::string(80000, 'b'));
    const auto busy = second.answer();
    ASSERT_TRUE(busy);
    EXPECT_EQ(busy->status, 503);
    EXPECT_FALSE(busy->header("retry-after").empty());
  }
  first.send("a");
  EXPECT_EQ(first.answer()->status, 200);
  RawClient third(served.port());  // room again, also from those that left halfway
  third.send(begin + std::string(80000, 'c'));
  EXPECT_EQ(third.answer()->status, 200);
}

TEST(Server, HoldsNoMoreOfAnswersThanItMay) {
  serve::ServerOptions options = Served::local();
  options.limits.buffered_bytes = 36 << 20;  // half of it for each peer
  Served served(options);
  served.echo.big = std::make_shared<const std::string>(16 << 20, 'b');  // no socket holds it
  const std::string big = "GET /big HTTP/1.1\r\nHost: h\r\n\r\n";
  auto first = std::make_unique<RawClient>(served.port());
  first->small_receive_buffer();
  first->send(big);
  EXPECT_TRUE(eventually([&] { return served.server->traffic().bytes_out > 0; }));
  RawClient second(served.port());
  second.send(big);
  const auto busy = second.answer();
  ASSERT_TRUE(busy);
  EXPECT_EQ(busy->status, 503);
  EXPECT_FALSE(busy->header("retry-after").empty());
  second.send("HEAD /big HTTP/1.1\r\nHost: h\r\n\r\n");  // HEAD needs no memory for the body
  EXPECT_EQ(second.answer(true)->status, 200);
  second.send(k_get);
  EXPECT_EQ(second.answer()->status, 200);
  first->abort();
  EXPECT_TRUE(eventually([&] { return served.server->traffic().open == 1; }));
  for (int i = 0; i < 3; ++i) {  // room again, also after complete answers
    second.send(big);
    const auto answer = second.answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body.size(), std::size_t{16} << 20);
  }
}

TEST(Server, LetsGoOfBodiesWhoseSendersLeave) {
  serve::ServerOptions options = Served::local();
  options.limits.buffered_bytes = 160000;  // half of it for each peer
  Served served(options);
  const std::string begin = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 80000\r\n\r\n";
  const serve::Traffic& traffic = served.server->traffic();
  for (std::size_t i = 1; i <= 5; ++i) {
    RawClient client(served.port());
    client.send(begin + std::string(79999, 'a'));
    EXPECT_TRUE(eventually([&] { return traffic.bytes_in == i * (79999 + begin.size()); }));
    client.abort();
    EXPECT_TRUE(eventually([&] { return traffic.open == 0; }));
  }
  RawClient last(served.port());
  last.send(begin + std::string(80000, 'c'));
  EXPECT_EQ(last.answer()->status, 200);
}

TEST(Server, RaisesTheLimitOfOpenFilesForItsConnections) {
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  if (usual.rlim_max < 2000) GTEST_SKIP() << "the system allows too few open files";
  rlimit low = usual;
  low.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  { Served served; }
  rlimit raised{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &raised), 0);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_GT(raised.rlim_cur, serve::Limits{}.connections);
}

TEST(Server, TellsOfRequestsThatItRefusesItself) {
  serve::ServerOptions options = Served::local();
  std::promise<std::string> refusal;
  options.trusted_proxies = {"127.0.0.1"};
  options.refused = [&](int status, const std::string& peer) {
    refusal.set_value(std::to_string(status) + " " + peer);
  };
  Served served(options);
  RawClient client(served.port());
  client.send(k_get);
  ASSERT_TRUE(client.answer());
  client.send(
      "POST /a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.7\r\n"
      "Content-Length: 99999999\r\n\r\n");
  EXPECT_EQ(client.answer()->status, 413);
  EXPECT_EQ(refusal.get_future().get(), "413 192.0.2.7");
}

// The system is out of descriptors for a while: connections wait and are served later.
TEST(Server, WaitsOutALackOfDescriptors) {
  Served served;
  RawClient before(served.port());
  before.send(k_get);
  ASSERT_EQ(before.answer()->status, 200);
  RawClient waiting_less(served.port());

  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  std::vector<int> taken;
  rlimit low = usual;
  low.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY)) {
    taken.push_back(fd);
  }
  ASSERT_FALSE(taken.empty());
  close(taken.back());  // one descriptor for the client, none for the server
  taken.pop_back();
  RawClient waiting(served.port());
  waiting.send(k_get);
  EXPECT_FALSE(waiting.answer(false, 0.5));
  before.send(k_get);  // existing connections are served meanwhile
  EXPECT_TRUE(before.answer());
  for (const int fd : taken) close(fd);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  const auto answer = waiting.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

}  // namespace server_limits_test
}  // namespace weir::tests
