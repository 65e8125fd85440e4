// Tests how a server ends, and how much it bears at once.
#include <atomic>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/serve/echo.hpp"
#include "tests/serve/raw_client.hpp"
#include "tests/support/eventually.hpp"

namespace weir::tests {
namespace server_stop_test {

const std::string k_get = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
const std::string k_slow = "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n";

// A thread of its own closes the listening socket, so a moment may pass.
bool refuses_connections(std::uint16_t port) {
  return eventually([&] {
    try {
      RawClient client(port);
    } catch (const std::runtime_error&) {
      return true;
    }
    return false;
  });
}

TEST(Server, LosesNoAnswerThatIsMadeWhileItStops) {
  Served served;
  RawClient slow(served.port()), also_slow(served.port()), idle(served.port()), half(served.port());
  idle.send(k_get);
  ASSERT_TRUE(idle.answer());
  half.send("GET /a HTTP/1.1\r\nHo");
  slow.send(k_slow + k_get);
  also_slow.send(k_slow);
  served.echo.wait_for_slow(2);
  served.stop();
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(half.closed());
  EXPECT_TRUE(refuses_connections(served.port()));
  served.echo.let_go();
  for (RawClient* client : {&slow, &also_slow}) {
    const auto answer = client->answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(parse_json(answer->body)->at("path"), "/slow");
    EXPECT_EQ(answer->header("connection"), "close");
    EXPECT_TRUE(client->closed());  // the request sent behind it is not begun
  }
  served.wait();
}

TEST(Server, TellsThatItStopsBeforeItWaitsForAnswers) {
  Echo echo;
  auto server = serve::Server::listen(Served::local(), echo);
  ASSERT_TRUE(server);
  sys::Stop stop;
  // The pending answer is sent after the stop was announced.
  std::thread running([&] { (*server)->run(stop, [&] { echo.let_go(); }); });
  RawClient client((*server)->port());
  client.send(k_slow);
  echo.wait_for_slow(1);
  stop.request();
  const auto answer = client.answer();
  running.join();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

TEST(Server, LetsABodyComeThatHadBegunWhenItStops) {
  Served served;
  RawClient client(served.port());
  client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello");
  EXPECT_TRUE(eventually([&] { return served.echo.admitted == 1; }));
  served.stop();
  EXPECT_TRUE(refuses_connections(served.port()));
  client.send("world");
  const auto answer = client.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(parse_json(answer->body)->at("body"), "helloworld");
  served.wait();
}

TEST(Server, DoesNotWaitForeverForItsService) {
  serve::ServerOptions options = Served::local();
  options.limits.shutdown_seconds = 0.2;
  Served served(options);
  RawClient client(served.port());
  client.send(k_slow);
  served.echo.wait_for_slow(1);
  served.stop();
  served.wait();
  EXPECT_TRUE(client.closed());
  served.server.reset();
  served.echo.let_go();  // nobody waits for this answer
}

TEST(Server, EndsAtOnceWhenItIsAskedTwice) {
  serve::ServerOptions options = Served::local();
  options.limits.shutdown_seconds = 1e6;
  Served served(options);
  RawClient client(served.port());
  client.send(k_slow);
  served.echo.wait_for_slow(1);
  served.stop();
  served.stop();
  served.wait();
  EXPECT_TRUE(client.closed());
}

TEST(Server, ThatNeverRanGoesWithoutAWord) {
  Echo echo;
  const auto server = serve::Server::listen(Served::local(), echo);
  ASSERT_TRUE(server);
  EXPECT_GT((*server)->port(), 0);
}

TEST(Server, ServesTwoHundredAtOnce) {
  Served served;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(std::make_unique<RawClient>(served.port()));
  for (int round = 0; round < 3; ++round) {
    for (auto& client : clients) client->send(k_get);
    for (auto& client : clients) {
      const auto answer = client->answer();
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->status, 200);
    }
  }
  EXPECT_EQ(served.server->traffic().open, 200U);
  EXPECT_EQ(served.server->traffic().requests, 600U);
}

// Fixed number of requests: 50 clients of 200 requests, some of which leave in the middle of one.
TEST(Server, BearsManyThatComeAndGo) {
  serve::ServerOptions options = Served::local();
  options.threads = 4;
  Served served(options);
  std::atomic<int> answered{0}, wrong{0};
  const auto run = [&](unsigned seed) {
    std::mt19937 random(seed);
    auto client = std::make_unique<RawClient>(served.port());
    for (int i = 0; i < 200; ++i) {
      const std::string body(random() % 20000, 'x');
      const std::string path = "/" + std::to_string(random() % 1000000);
      std::string bytes = "POST " + path +
                          " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
                          "\r\n\r\n" + body;
      const auto fate = random() % 20;
      if (fate < 2) bytes.resize(random() % bytes.size());
      client->send(bytes);
      if (fate == 0 || fate == 3) client->abort();
      if (fate == 1) client->half_close();
      if (fate < 4) {
        client = std::make_unique<RawClient>(served.port());
        continue;
      }
      const auto answer = client->answer();
      const auto json = answer ? parse_json(answer->body) : parse_json("");
      const bool right = json && json->at("path") == path && json->at("body") == body;
      ++(right ? answered : wrong);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 50; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(answered, 5000);
}

TEST(Server, MayBeStoppedInTheMiddleOfALoad) {
  for (int round = 0; round < 5; ++round) {
    Served served;
    std::atomic<bool> cut{false};
    std::atomic<int> answered{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        try {
          RawClient client(served.port());
          while (client.send(k_get)) {
            const auto answer = client.answer();
            if (!answer) return;  // may close between requests
            ++answered;
            if (parse_json(answer->body)->at("path") != "/a") cut = true;
          }
        } catch (const std::runtime_error&) {  // the connection came too late
        }
      });
    }
    EXPECT_TRUE(eventually([&] { return answered >= 100; }));
    served.stop();
    served.wait();
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(cut);
  }
}

}  // namespace server_stop_test
}  // namespace weir::tests
