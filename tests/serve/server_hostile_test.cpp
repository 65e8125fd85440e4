// Tests that a server refuses malformed requests, sent byte for byte over a socket.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/serve/echo.hpp"
#include "tests/serve/raw_client.hpp"

namespace weir::tests {
namespace server_hostile_test {

struct Case {
  std::string what, bytes;
  int status;
};

std::string get(const std::string& headers) { return "GET / HTTP/1.1\r\n" + headers + "\r\n"; }
std::string post(const std::string& headers, const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n" + body;
}

// Follows each bad request: a reader that parses the bytes differently would answer it.
const std::string k_smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";

void expect_refused(const std::vector<Case>& cases) {
  Served served;
  for (const Case& c : cases) {
    RawClient client(served.port());
    client.send(c.bytes + k_smuggled);
    const auto answer = client.answer();
    ASSERT_TRUE(answer) << c.what;
    EXPECT_EQ(answer->status, c.status) << c.what << ": " << answer->body;
    EXPECT_EQ(answer->header("connection"), "close") << c.what;
    const auto json = parse_json(answer->body);
    ASSERT_TRUE(json) << c.what << ": " << answer->body;
    EXPECT_FALSE(json->at("error").at("code").get<std::string>().empty()) << c.what;
    EXPECT_FALSE(json->at("error").at("message").get<std::string>().empty()) << c.what;
    EXPECT_TRUE(client.closed()) << c.what;
  }
  EXPECT_EQ(served.echo.handled, 0);
}

TEST(Server, RefusesRequestsThatOthersMayEndElsewhere) {
  const std::string chunks = "0\r\n\r\n";
  expect_refused({
      {"both", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunks), 400},
      {"both, the other way", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", chunks),
       400},
      {"two lengths", post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), 400},
      {"the same length twice", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), 400},
      {"a list of lengths", post("Content-Length: 5, 5\r\n", "hello"), 400},
      {"a signed length", post("Content-Length: +5\r\n", "hello"), 400},
      {"a negative length", post("Content-Length: -5\r\n", "hello"), 400},
      {"a hexadecimal length", post("Content-Length: 0x5\r\n", "hello"), 400},
      {"a length with a point", post("Content-Length: 5.0\r\n", "hello"), 400},
      {"two numbers", post("Content-Length: 5 5\r\n", "hello"), 400},
      {"an empty length", post("Content-Length:\r\n", "hello"), 400},
      {"a length beyond 64 bits", post("Content-Length: 18446744073709551621\r\n", "hello"), 400},
      {"a quoted length", post("Content-Length: \"5\"\r\n", "hello"), 400},
      {"identity", post("Transfer-Encoding: identity\r\n", "hello"), 400},
      {"gzip, chunked", post("Transfer-Encoding: gzip, chunked\r\n", chunks), 400},
      {"chunked, identity", post("Transfer-Encoding: chunked, identity\r\n", chunks), 400},
      {"chunked twice", post("Transfer-Encoding: chunked, chunked\r\n", chunks), 400},
      {"two headers", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunks),
       400},
      {"a hidden one", post("Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n", chunks), 400},
      {"quoted", post("Transfer-Encoding: \"chunked\"\r\n", chunks), 400},
      {"with a parameter", post("Transfer-Encoding: chunked;q=1\r\n", chunks), 400},
      {"a vertical tab", post("Transfer-Encoding: \vchunked\r\n", chunks), 400},
      {"xchunked", post("Transfer-Encoding: xchunked\r\n", chunks), 400},
      {"an empty coding", post("Transfer-Encoding:\r\n", chunks), 400},
      {"chunks by HTTP/1.0",
       "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, 400},
      {"a space before the colon", post("Transfer-Encoding : chunked\r\n", chunks), 400},
      {"a space before the name", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400},
      {"a folded header", get("Host: h\r\nX: a\r\n b\r\n"), 400},
      {"a folded header by a tab", get("Host: h\r\nTransfer-Encoding:\r\n\tchunked\r\n"), 400},
      {"a folded empty header", get("Host: h\r\nX:\r\n \r\n"), 400},
  });
}

TEST(Server, RefusesLinesThatEndOtherwise) {
  expect_refused({
      {"bare LF", "GET / HTTP/1.1\nHost: h\n\n", 400},
      {"one bare LF", "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400},
      {"a bare CR", "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n", 400},
      {"CR CR LF", "GET / HTTP/1.1\r\r\nHost: h\r\n\r\n", 400},
      {"LF in the end", "GET / HTTP/1.1\r\nHost: h\r\n\n", 400},
      {"NUL in a value", get(std::string("Host: h\r\nX: a\0b\r\n", 16)), 400},
      {"NUL in a name", get(std::string("Host: h\r\nX\0: ab\r\n", 16)), 400},
      {"NUL in the target", std::string("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n", 28), 400},
      {"a control character", get("Host: h\r\nX: a\x01\r\n"), 400},
      {"DEL", get("Host: h\r\nX: a\x7f\r\n"), 400},
      {"no colon", get("Host: h\r\nX\r\n"), 400},
      {"no name", get("Host: h\r\n: x\r\n"), 400},
      {"a name with a bracket", get("Host: h\r\nX[a]: x\r\n"), 400},
      {"two empty lines in front", "\r\n\r\n" + get("Host: h\r\n"), 400},
  });
}

TEST(Server, RefusesRequestLinesThatAreNone) {
  const std::string host = "\r\nHost: h\r\n\r\n";
  expect_refused({
      {"absolute-form", "GET http://h/ HTTP/1.1" + host, 400},
      {"authority-form", "CONNECT h:80 HTTP/1.1" + host, 400},
      {"asterisk-form", "OPTIONS * HTTP/1.1" + host, 400},
      {"no target", "GET HTTP/1.1" + host, 400},
      {"an empty target", "GET  HTTP/1.1" + host, 400},
      {"a tab", "GET\t/ HTTP/1.1" + host, 400},
      {"two spaces", "GET /  HTTP/1.1" + host, 400},
      {"a space in front", " GET / HTTP/1.1" + host, 400},
      {"a space behind", "GET / HTTP/1.1 " + host, 400},
      {"a bad method", "G(T / HTTP/1.1" + host, 400},
      {"no version", "GET /" + host, 400},
      {"HTTP/0.9", "GET / HTTP/0.9" + host, 505},
      {"HTTP/1.2", "GET / HTTP/1.2" + host, 505},
      {"HTTP/2.0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"http/1.1", "GET / http/1.1" + host, 400},
      {"HTTP/1.10", "GET / HTTP/1.10" + host, 400},
      {"HTTP/01.1", "GET / HTTP/01.1" + host, 400},
      {"a fragment", "GET /#a HTTP/1.1" + host, 400},
      {"a bad escape", "GET /%zz HTTP/1.1" + host, 400},
      {"dots", "GET /a/../../etc/passwd HTTP/1.1" + host, 400},
      {"encoded dots", "GET /%2e%2e/ HTTP/1.1" + host, 400},
      {"raw octets", "GET /\xff HTTP/1.1" + host, 400},
      {"a TLS hello", std::string("\x16\x03\x01\x00\xa5\x01\x00", 7), 400},
  });
}

TEST(Server, RefusesWhatIsThereTwiceOrMissing) {
  expect_refused({
      {"no Host", get(""), 400},
      {"two Hosts", get("Host: a\r\nHost: b\r\n"), 400},
      {"the same Host twice", get("Host: a\r\nhost: a\r\n"), 400},
      {"an empty Host", get("Host:\r\n"), 400},
      {"a Host with a path", get("Host: a/b\r\n"), 400},
      {"a Host with a user", get("Host: a@b\r\n"), 400},
      {"a list of Hosts", get("Host: a, b\r\n"), 400},
      {"a Host with a strange port", get("Host: a:b\r\n"), 400},
      {"a Host in brackets that are open", get("Host: [::1\r\n"), 400},
      {"two Authorizations", get("Host: h\r\nAuthorization: a\r\nAuthorization: b\r\n"), 400},
      {"two Content-Types", post("Content-Type: a\r\nContent-Type: a\r\n", ""), 400},
      {"two keys", post("Idempotency-Key: a\r\nIdempotency-Key: b\r\n", ""), 400},
      {"another expectation", post("Expect: 200-ok\r\nContent-Length: 1\r\n", "a"), 417},
      {"two expectations", post("Expect: 100-continue\r\nExpect: 100-continue\r\n", ""), 400},
  });
}

TEST(Server, RefusesChunksThatAreNone) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  expect_refused({
      {"no number", post(chunked, "x\r\n"), 400},
      {"a sign", post(chunked, "+5\r\nhello\r\n0\r\n\r\n"), 400},
      {"0x", post(chunked, "0x5\r\nhello\r\n0\r\n\r\n"), 400},
      {"a space in front", post(chunked, " 5\r\nhello\r\n0\r\n\r\n"), 400},
      {"more than 64 bits", post(chunked, "10000000000000005\r\nhello\r\n0\r\n\r\n"), 400},
      {"more than there is", post(chunked, "4\r\nhello\r\n0\r\n\r\n"), 400},
      {"bare LF behind the size", post(chunked, "5\nhello\r\n0\r\n\r\n"), 400},
      {"bare CR behind the size", post(chunked, "5\rhello\r\n0\r\n\r\n"), 400},
      {"LF in an extension", post(chunked, "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"), 400},
      {"a quoted extension", post(chunked, "5;a=\"b\"\r\nhello\r\n0\r\n\r\n"), 400},
      {"a quote without end", post(chunked, "5;a=\"b\r\nhello\r\n0\r\n\r\n"), 400},
      {"a bad extension", post(chunked, "5;=\r\nhello\r\n0\r\n\r\n"), 400},
      {"a line without end", post(chunked, "5;" + std::string(100 << 10, 'a')), 400},
      {"trailers without end", post(chunked, "0\r\nX: " + std::string(100 << 10, 'a')), 400},
      {"a bad trailer", post(chunked, "0\r\nX\r\n\r\n"), 400},
      {"a chunk larger than a body may be", post(chunked, "ffffffffffffffff\r\n"), 413},
      {"chunks larger than a body may be",
       post(chunked, "80000\r\n" + std::string(0x80000, 'a') + "\r\n80001\r\n"), 413},
  });
}

TEST(Server, RefusesWhatIsTooLarge) {
  std::string many = "Host: h\r\n";
  for (int i = 0; i < 101; ++i) many += "X-" + std::to_string(i) + ": a\r\n";
  expect_refused({
      {"a long target", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n", 414},
      {"a request line without end", "GET /" + std::string(17 << 10, 'a'), 414},
      {"a long header", get("Host: h\r\nX: " + std::string(17 << 10, 'a') + "\r\n"), 431},
      {"headers without end", "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(17 << 10, 'a'), 431},
      {"many headers", get(many), 431},
      {"a long body", post("Content-Length: 1048577\r\n", "a"), 413},
      {"a very long body", post("Content-Length: 18446744073709551615\r\n", "a"), 413},
      {"a body that none is expected of", get("Host: h\r\nContent-Length: 1\r\n") + "a", 413},
      {"a chunk that none is expected of",
       get("Host: h\r\nTransfer-Encoding: chunked\r\n") + "1\r\na\r\n0\r\n\r\n", 413},
  });
}

// A request that comes byte by byte leaves and enters each state again.
TEST(Server, TakesTheSameDropByDrop) {
  Served served;
  RawClient client(served.port());
  const std::string bytes =
      "\r\nPOST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer-Is: ignored\r\n\r\n"
      "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  for (const char c : bytes) ASSERT_TRUE(client.send(std::string(1, c)));
  const auto first = client.answer();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(parse_json(first->body)->at("body"), "hello!");
  EXPECT_FALSE(parse_json(first->body)->at("headers").contains("trailer-is"));
  const auto second = client.answer();
  ASSERT_TRUE(second);
  EXPECT_EQ(parse_json(second->body)->at("body"), "abc");
  const auto third = client.answer();
  ASSERT_TRUE(third);
  EXPECT_EQ(parse_json(third->body)->at("body"), "");
}

}  // namespace server_hostile_test
}  // namespace weir::tests
