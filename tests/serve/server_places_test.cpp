// Tests that nobody keeps the places and the room of a server from others. Its clock stands still
// until a test sets it.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gate/sys/clock.hpp"

#include "tests/serve/echo.hpp"
#include "tests/serve/raw_client.hpp"
#include "tests/support/eventually.hpp"

namespace weir::tests {
namespace server_places_test {

const std::string k_get = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
const std::string k_half = "GET /a HTTP/1.1\r\nX: ";

class StoppedClock final : public sys::Clock {
 public:
  [[nodiscard]] double now() const override { return 1'795'000'000 + seconds; }
  [[nodiscard]] double steady() const override { return seconds; }
  std::atomic<double> seconds{100};
};

class ServerPlaces : public testing::Test {
 protected:
  ServerPlaces() { options_.clock = &clock_; }

  // Connects clients that send the first half of a head; returns when the server has them.
  void trickle(Served& served, std::size_t count) {
    const std::uint64_t before = served.server->traffic().bytes_in;
    for (std::size_t i = 0; i < count; ++i) {
      slow_.push_back(std::make_unique<RawClient>(served.port()));
      slow_.back()->send(k_half);
    }
    EXPECT_TRUE(eventually(
        [&] { return served.server->traffic().bytes_in == before + count * k_half.size(); }));
  }
  static std::string get_for(const std::string& client, const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: " + client + "\r\n\r\n";
  }

  StoppedClock clock_;
  serve::ServerOptions options_ = Served::local();
  std::vector<std::unique_ptr<RawClient>> slow_;
};

TEST_F(ServerPlaces, EndAHeadThatComesDropByDropAtItsDeadline) {
  Served served(options_);
  trickle(served, 1);
  clock_.seconds = 109;
  slow_[0]->send("a");
  EXPECT_FALSE(slow_[0]->answer(false, 0.5));
  clock_.seconds = 110.5;  // ten seconds after its first byte
  const auto answer = slow_[0]->answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
  EXPECT_EQ(served.server->traffic().timed_out, 1U);
}

TEST_F(ServerPlaces, EndABodyThatComesDropByDropAtItsDeadline) {
  options_.limits.min_rate = 0;
  Served served(options_);
  RawClient client(served.port());
  client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\na");
  EXPECT_TRUE(eventually([&] { return served.echo.admitted == 1; }));
  clock_.seconds = 159;
  client.send("a");
  EXPECT_FALSE(client.answer(false, 0.5));
  clock_.seconds = 160.5;
  const auto answer = client.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
  EXPECT_EQ(served.server->traffic().timed_out, 1U);
}

TEST_F(ServerPlaces, OfAPeerGoToItsNewRequestsInPlaceOfThoseThatWait) {
  options_.limits.connections_a_peer = 3;
  Served served(options_);
  trickle(served, 3);
  RawClient early(served.port());
  early.send(k_get);
  EXPECT_EQ(early.answer()->status, 503);  // the others may still be on their way
  clock_.seconds = 102;
  for (int i = 0; i < 3; ++i) {
    RawClient client(served.port());
    client.send(k_get);
    const auto answer = client.answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
  }
}

TEST_F(ServerPlaces, OfAllGoToNewRequestsInPlaceOfThoseThatWait) {
  options_.limits.connections = 3;
  options_.trusted_proxies = {"127.0.0.1"};
  Served served(options_);
  trickle(served, 3);
  clock_.seconds = 102;
  RawClient client(served.port());
  client.send(get_for("192.0.2.1", "/a"));
  const auto answer = client.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

TEST_F(ServerPlaces, OfOneClientOfAProxyAreBounded) {
  options_.limits.connections_a_peer = 2;
  options_.trusted_proxies = {"127.0.0.1"};
  Served served(options_);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<RawClient>(served.port()));
    clients.back()->send(get_for("192.0.2.1", "/slow"));
  }
  served.echo.wait_for_slow(2);
  RawClient third(served.port()), other(served.port());
  third.send(get_for("192.0.2.1", "/a"));
  EXPECT_EQ(third.answer()->status, 503);
  other.send(get_for("192.0.2.2", "/a"));
  EXPECT_EQ(other.answer()->status, 200);
  served.echo.let_go();
  for (const auto& client : clients) EXPECT_EQ(client->answer()->status, 200);
  for (int i = 0; i < 3; ++i) {
    other.send(get_for("192.0.2.1", "/a"));
    EXPECT_EQ(other.answer()->status, 200);
  }
}

TEST_F(ServerPlaces, LeaveHalfOfTheRoomToOthers) {
  options_.limits.buffered_bytes = 100'000;
  options_.trusted_proxies = {"127.0.0.1"};
  Served served(options_);
  const auto upload = [](const std::string& client) {
    return "POST /a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: " + client +
           "\r\nContent-Length: 40000\r\n\r\n";
  };
  const std::string body(39'999, 'a');
  RawClient first(served.port()), second(served.port()), other(served.port());
  first.send(upload("192.0.2.1") + body);
  EXPECT_TRUE(eventually([&] { return served.server->traffic().bytes_in > body.size(); }));
  second.send(upload("192.0.2.1") + body);
  EXPECT_EQ(second.answer()->status, 503);
  other.send(upload("192.0.2.2") + body + "a");
  EXPECT_EQ(other.answer()->status, 200);
  first.send("a");
  EXPECT_EQ(first.answer()->status, 200);
}

}  // namespace server_places_test
}  // namespace weir::tests
