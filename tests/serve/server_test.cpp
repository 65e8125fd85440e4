// Tests the HTTP server over sockets: requests, answers, bodies and connections.
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "gate/serve/server_reader.hpp"

#include "tests/serve/echo.hpp"
#include "tests/serve/raw_client.hpp"

namespace weir::tests {
namespace server_test {

const std::string k_get = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

std::string post(const std::string& path, const std::string& body, const std::string& more = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: h\r\n" + more +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(Server, HandsOnWhatWasAsked) {
  Served served;
  RawClient client(served.port());
  client.send(
      "POST /a/b?c=d HTTP/1.1\r\nHoST: h:80\r\nX-One:  1 \r\nx-one: 2\r\nContent-Length: "
      "3\r\n\r\nabc");
  const auto answer = client.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->line, "HTTP/1.1 200 OK");
  const auto json = parse_json(answer->body);
  ASSERT_TRUE(json) << answer->body;
  EXPECT_EQ(json->at("method"), static_cast<int>(serve::Method::post));
  EXPECT_EQ(json->at("path"), "/a/b");
  EXPECT_EQ(json->at("headers"),
            Json({{"host", "h:80"}, {"x-one", "1, 2"}, {"content-length", "3"}}));
  EXPECT_EQ(json->at("peer"), "127.0.0.1");
  EXPECT_EQ(json->at("secure"), false);
  EXPECT_EQ(json->at("body"), "abc");
}

TEST(Server, SaysOfEveryAnswerWhatItIs) {
  Served served;
  RawClient client(served.port());
  for (const std::string target : {"/a", "/refused", "/throw", "/nothing", "/%"}) {
    client.send("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n");
    const auto answer = client.answer();
    ASSERT_TRUE(answer) << target;
    EXPECT_EQ(answer->header("x-content-type-options"), "nosniff") << target;
    EXPECT_EQ(answer->header("referrer-policy"), "no-referrer") << target;
    EXPECT_EQ(answer->header("date").size(), 29U) << target;
    EXPECT_EQ(answer->headers.count("server"), 0U) << target;
    // RFC 9110, 8.6: no Content-Length with 204.
    EXPECT_EQ(answer->headers.count("content-length"), answer->status == 204 ? 0U : 1U) << target;
  }
}

TEST(Server, LetsNoValueEndItsLine) {
  Served served;
  RawClient client(served.port());
  client.send("GET /evil HTTP/1.1\r\nHost: h\r\n\r\n");
  const auto answer = client.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header("x-said"), "a??Set-Cookie: b");
  EXPECT_EQ(answer->headers.count("set-cookie"), 0U);
}

TEST(Server, AnswersWhatWasSentTogetherInOrder) {
  Served served;
  RawClient client(served.port());
  std::string together;
  for (int i = 0; i < 50; ++i) together += post("/" + std::to_string(i), std::to_string(i * i));
  client.send(together);
  for (int i = 0; i < 50; ++i) {
    const auto answer = client.answer();
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(parse_json(answer->body)->at("path"), "/" + std::to_string(i));
    EXPECT_EQ(parse_json(answer->body)->at("body"), std::to_string(i * i));
  }
}

TEST(Server, LeavesTheBodyOutForHead) {
  Served served;
  RawClient client(served.port());
  client.send("HEAD /big HTTP/1.1\r\nHost: h\r\n\r\n" + k_get);
  const auto head = client.answer(true);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->header("content-length"), std::to_string(1 << 20));
  const auto next = client.answer();
  ASSERT_TRUE(next);
  EXPECT_EQ(parse_json(next->body)->at("path"), "/a");
}

TEST(Server, KeepsConnectionsAsTheirVersionHasIt) {
  struct Case {
    std::string request, connection;
    bool stays;
  };
  const Case cases[] = {
      {k_get, "", true},
      {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "close", false},
      {"GET / HTTP/1.1\r\nHost: h\r\nConnection: x, Close\r\n\r\n", "close", false},
      {"GET / HTTP/1.0\r\n\r\n", "close", false},
      {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive", true},
  };
  Served served;
  for (const Case& c : cases) {
    RawClient client(served.port());
    client.send(c.request);
    const auto answer = client.answer();
    ASSERT_TRUE(answer) << c.request;
    EXPECT_EQ(answer->status, 200) << c.request;
    EXPECT_EQ(answer->header("connection"), c.connection) << c.request;
    if (c.stays) {
      client.send(k_get);
      EXPECT_TRUE(client.answer()) << c.request;
    } else {
      EXPECT_TRUE(client.closed()) << c.request;
    }
  }
}

TEST(Server, HandsOnMethodsThatItDoesNotKnow) {
  Served served;
  RawClient client(served.port());
  client.send("BREW /pot HTTP/1.1\r\nHost: h\r\n\r\n");
  const auto answer = client.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(parse_json(answer->body)->at("method"), static_cast<int>(serve::Method::other));
}

TEST(Server, AsksForABodyOnlyWhenItMayCome) {
  Served served;
  RawClient client(served.port());
  const std::string expect = "Expect: 100-Continue\r\n";
  const auto request_head = [&](const std::string& path, const std::string& size) {
    return "POST " + path + " HTTP/1.1\r\nHost: h\r\n" + expect + "Content-Length: " + size +
           "\r\n\r\n";
  };
  client.send(request_head("/a", "5"));
  const auto interim = client.answer();
  ASSERT_TRUE(interim);
  EXPECT_EQ(interim->line, "HTTP/1.1 100 Continue");
  client.send("hello");
  const auto answer = client.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(parse_json(answer->body)->at("body"), "hello");

  client.send(request_head("/refused", "5"));
  const auto refused = client.answer();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 403);
  EXPECT_TRUE(client.closed());

  RawClient large(served.port());
  large.send(request_head("/a", "99999999"));
  EXPECT_EQ(large.answer()->status, 413);

  // HTTP/1.0 clients do not wait for it, and a client that has sent the whole body needs none.
  RawClient old(served.port());
  old.send("POST / HTTP/1.0\r\n" + expect + "Content-Length: 1\r\n\r\na");
  EXPECT_EQ(old.answer()->status, 200);
}

TEST(Server, AnswersARefusalBeforeTheBodyHasCome) {
  Served served;
  RawClient client(served.port());
  client.send("POST /refused HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
  const auto answer = client.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(answer->header("connection"), "close");
  EXPECT_EQ(served.echo.handled, 0);
}

// A client that is still sending gets the answer. Closing at once would lose it with the unread
// bytes.
TEST(Server, IsHeardByWhoStillSends) {
  Served served;
  for (int i = 0; i < 20; ++i) {
    RawClient client(served.port());
    client.send(post("/refused", std::string(900 << 10, 'a')));
    const auto answer = client.answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 403);
  }
}

TEST(Server, KeepsTheConnectionAfterARefusalWithoutABody) {
  Served served;
  RawClient client(served.port());
  client.send("GET /refused HTTP/1.1\r\nHost: h\r\n\r\n" + k_get);
  EXPECT_EQ(client.answer()->status, 403);
  EXPECT_EQ(client.answer()->status, 200);
}

TEST(Server, AnswersWhoHasSaidAllAndListensOn) {
  Served served;
  RawClient client(served.port());
  client.send(k_get);
  client.half_close();
  ASSERT_TRUE(client.answer());
  EXPECT_TRUE(client.closed());
}

TEST(Server, GoesOnWhenItsServiceFails) {
  Served served;
  RawClient client(served.port());
  for (const std::string path : {"/throw", "/throw_early", "/forget"}) {
    client.send("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n");
    const auto answer = client.answer();
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 500) << path;
    EXPECT_EQ(answer->body.find("early"), std::string::npos);
  }
  client.send("GET /twice HTTP/1.1\r\nHost: h\r\n\r\n" + k_get);
  EXPECT_EQ(parse_json(client.answer()->body)->at("path"), "/twice");
  EXPECT_EQ(parse_json(client.answer()->body)->at("path"), "/a");
}

TEST(Server, TakesAndGivesMuch) {
  serve::ServerOptions options = Served::local();
  Served served(options);
  served.echo.max_body_bytes = 8 << 20;
  served.echo.big = std::make_shared<const std::string>(16 << 20, 'b');
  RawClient client(served.port());
  const std::string body(8 << 20, 'x');
  std::thread sender([&] {
    client.send(post("/big", body, "X: y\r\n"));
    client.send("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 80; ++i) client.send("186a0\r\n" + body.substr(0, 100000) + "\r\n");
    client.send("0\r\n\r\n");
  });
  const auto big = client.answer();
  const auto echoed = client.answer();
  sender.join();
  ASSERT_TRUE(big);
  EXPECT_EQ(big->body.size(), std::size_t{16} << 20);
  ASSERT_TRUE(echoed);
  EXPECT_EQ(parse_json(echoed->body)->at("body"), body.substr(0, 8000000));
  EXPECT_GE(served.server->traffic().bytes_in, std::uint64_t{8} << 20);
  EXPECT_GE(served.server->traffic().bytes_out, std::uint64_t{16} << 20);
}

TEST(Server, ListensWhereItIsTold) {
  for (const auto& [address, client] :
       std::vector<std::pair<std::string, std::string>>{{"127.0.0.1", "127.0.0.1"},
                                                        {"localhost", "127.0.0.1"},
                                                        {"::1", "::1"},
                                                        {"[::1]", "::1"}}) {
    serve::ServerOptions options = Served::local();
    options.address = address;
    Served served(options);
    RawClient there(served.port(), client);
    there.send(k_get);
    const auto answer = there.answer();
    ASSERT_TRUE(answer) << address;
    EXPECT_EQ(parse_json(answer->body)->at("peer"), client);
  }
}

TEST(Server, SaysWhyItCanNotListen) {
  Echo echo;
  serve::ServerOptions options = Served::local();
  Served occupant;
  options.port = occupant.port();
  const auto taken = serve::Server::listen(options, echo);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::unavailable);
  EXPECT_NE(taken.error().message.find("taken"), std::string::npos);
  for (const std::string address : {"", "here", "256.0.0.1", "192.0.2.1", "127.0.0.1:80"}) {
    options = Served::local();
    options.address = address;
    const auto none = serve::Server::listen(options, echo);
    ASSERT_FALSE(none) << address;
    EXPECT_EQ(none.error().code, Code::config) << address << ": " << none.error().message;
  }
  for (const std::string proxy :
       {"", "here", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/"}) {
    options = Served::local();
    options.trusted_proxies = {proxy};
    const auto none = serve::Server::listen(options, echo);
    ASSERT_FALSE(none) << proxy;
    EXPECT_EQ(none.error().code, Code::config) << proxy;
  }
}

TEST(Server, BelievesTrustedProxiesAlone) {
  struct Case {
    std::vector<std::string> trusted;
    std::string headers, peer;
    bool secure;
  };
  const std::string both = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n";
  const Case cases[] = {
      {{}, both, "127.0.0.1", false},
      {{"10.0.0.0/8"}, both, "127.0.0.1", false},
      {{"127.0.0.1"}, both, "192.0.2.1", true},
      {{"127.0.0.0/8"}, both, "192.0.2.1", true},
      {{"::1", "127.0.0.1/32"}, both, "192.0.2.1", true},
      {{"127.0.0.1"}, "", "127.0.0.1", false},
      {{"127.0.0.1"}, "X-Forwarded-For: 203.0.113.9, 192.0.2.1\r\n", "192.0.2.1", false},
      {{"127.0.0.1", "10.0.0.0/8"},
       "X-Forwarded-For: 203.0.113.9, 192.0.2.1, 10.1.2.3\r\n",
       "192.0.2.1",
       false},
      {{"127.0.0.1"},
       "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 192.0.2.1\r\n",
       "192.0.2.1",
       false},
      {{"0.0.0.0/0"}, "X-Forwarded-For: 203.0.113.9, 10.1.2.3\r\n", "203.0.113.9", false},
      {{"127.0.0.1"}, "X-Forwarded-For: [2001:DB8::1]:443\r\n", "2001:db8::1", false},
      {{"127.0.0.1"}, "X-Forwarded-For: 192.0.2.1:443\r\n", "192.0.2.1", false},
      {{"127.0.0.1"}, "X-Forwarded-For: ::ffff:192.0.2.1\r\n", "192.0.2.1", false},
      {{"127.0.0.1", "2001:db8::/33"},
       "X-Forwarded-For: 2001:db8:8000::1, 2001:db8:7fff::1\r\n",
       "2001:db8:8000::1",
       false},
      {{"127.0.0.1"}, "X-Forwarded-For: 192.0.2.1, unknown\r\n", "127.0.0.1", false},
      {{"127.0.0.1"}, "X-Forwarded-For: <script>\r\n", "127.0.0.1", false},
      {{"127.0.0.1"}, "X-Forwarded-Proto: http, https\r\n", "127.0.0.1", true},
      {{"127.0.0.1"}, "X-Forwarded-Proto: https, http\r\n", "127.0.0.1", false},
  };
  for (const Case& c : cases) {
    serve::ServerOptions options = Served::local();
    options.trusted_proxies = c.trusted;
    Served served(options);
    RawClient client(served.port());
    client.send("GET / HTTP/1.1\r\nHost: h\r\n" + c.headers + "\r\n");
    const auto answer = client.answer();
    ASSERT_TRUE(answer) << c.headers;
    EXPECT_EQ(parse_json(answer->body)->at("peer"), c.peer) << c.headers;
    EXPECT_EQ(parse_json(answer->body)->at("secure"), c.secure) << c.headers;
  }
}

TEST(Answer, DatesAreThoseOfHttp) {
  // Example of RFC 9110, 5.6.7.
  EXPECT_EQ(serve::http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
}

}  // namespace server_test
}  // namespace weir::tests
