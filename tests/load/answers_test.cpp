// Answers as servers give them, through libcurl: each API, and every way to cut the same bytes.
#include <gtest/gtest.h>

#include "gate/base/hash.hpp"

#include "tests/load/scene.hpp"

namespace weir::load {
namespace answers_test {

using namespace tests;
using profile::ServedRequest;

constexpr const char* k_text = "t0 t1 t2 t3 ";  // the text of scripts of 4 tokens

ServedRequest drive_script(const Script& script, const std::string& api = "completions") {
  StreamServer server([&](const ReceivedPost&) { return script; });
  Load load = drive_for_real(plan_for(server.url(), api));
  EXPECT_EQ(load.requests.size(), 1U);
  return load.requests.empty() ? ServedRequest{} : load.requests.front();
}

TEST(Answers, OfEachApiAreTheSameFourTokens) {
  struct Case {
    const char* api;
    scripts::Words words;
    const char* type;
  };
  const Case cases[] = {{"completions", scripts::completions(4), "text/event-stream"},
                        {"chat", scripts::chat(4), "text/event-stream; charset=utf-8"},
                        {"llama", scripts::llama(4), "text/event-stream"},
                        {"ollama", scripts::ollama(4), "application/x-ndjson"}};
  for (const Case& c : cases) {
    const ServedRequest request = drive_script(scripts::well(c.words, 0, 0, c.type), c.api);
    EXPECT_EQ(outcome(request), "whole") << c.api << ": " << failure_text(request);
    EXPECT_EQ(request.counted_tokens, 4) << c.api;
    EXPECT_EQ(request.reported.output_tokens, 4) << c.api;
    EXPECT_EQ(request.reported.prompt_tokens, 5) << c.api;
    EXPECT_EQ(request.output_digest, hash_hex(k_text)) << c.api;
    EXPECT_EQ(request.output_bytes, 12) << c.api;
    ASSERT_EQ(request.tokens.size(), 4U) << c.api;
    EXPECT_LE(request.scheduled, request.sent);
    EXPECT_LE(request.sent, request.connected.value_or(-1));
    EXPECT_LE(*request.connected, request.answered.value_or(-1));
    EXPECT_LE(*request.answered, request.tokens.front().received_at);
    EXPECT_LE(request.tokens.back().received_at, request.ended);
  }
}

TEST(Answers, AreReadWhateverPacketsTheyComeIn) {
  const scripts::Words words = scripts::completions(4);
  std::string events, chunks;
  for (const auto& part : {words.tokens, words.end}) {
    for (const auto& text : part) {
      events += text;
      chunks += scripts::chunk(text);
    }
  }
  std::string cr_lf, cr;  // events with other ends of lines
  for (const char c : events) {
    cr_lf += c == '\n' ? "\r\n" : std::string(1, c);
    cr += c == '\n' ? '\r' : c;
  }
  const std::string head = scripts::head();
  const std::string length =
      scripts::head(scripts::k_event_stream, {"Content-Length: " + std::to_string(events.size())});
  const auto chunked = [&](const std::string& body) {
    return head + scripts::chunk(body) + scripts::last_chunk();
  };
  const struct {
    const char* what;
    Script script;
  } cases[] = {
      {"all in one packet", scripts::once(head + chunks + scripts::last_chunk())},
      {"a byte a packet", scripts::in_pieces(head + chunks + scripts::last_chunk(), 1)},
      {"seven bytes a packet, slowly",
       scripts::in_pieces(head + chunks + scripts::last_chunk(), 7, 0.0005)},
      {"all events in one chunk", scripts::once(chunked(events))},
      {"CR and LF", scripts::once(chunked(cr_lf))},
      {"CR alone", scripts::once(chunked(cr))},
      {"a byte order mark", scripts::once(chunked("\xEF\xBB\xBF" + events))},
      {"comments and keep-alives",
       scripts::once(chunked(": ping\n\n:\n\nretry: 100\nid: 7\n\n" + events))},
      {"keep-alives without data", scripts::once(chunked("data:\n\n" + events))},
      {"trailers",
       scripts::once(head + chunks + scripts::last_chunk({"X-Digest: 1", "X-More: 2"}))},
      {"chunk extensions",
       scripts::once(head + "0a;a=b\r\n: comment\n\r\n" + chunks + scripts::last_chunk())},
      {"a length instead of chunks", scripts::once(length + events)},
      {"neither: the connection's end is the end",
       scripts::once(scripts::head(scripts::k_event_stream, {}) + events, Script::End::close)},
      {"100 Continue first", scripts::once("HTTP/1.1 100 Continue\r\n\r\n" + length + events)},
      {"a slow header", scripts::in_pieces(length + events, 3, 0.001)},
      {"[DONE], and then the connection is cut amid chunks",
       scripts::once(head + chunks, Script::End::close)},
  };
  for (const auto& c : cases) {
    const ServedRequest request = drive_script(c.script);
    EXPECT_EQ(outcome(request), "whole") << c.what << ": " << failure_text(request);
    EXPECT_EQ(request.counted_tokens, 4) << c.what;
    EXPECT_EQ(request.output_digest, hash_hex(k_text)) << c.what;
  }
}

TEST(Answers, AreOverWithTheApisEndThoughTheConnectionGoesOn) {
  Script script = scripts::well(scripts::completions(4));
  script.steps.back().bytes.resize(script.steps.back().bytes.size() - 5);  // "0\r\n\r\n"
  script.end = Script::End::hang;
  EXPECT_EQ(outcome(drive_script(script)), "whole");
}

TEST(Answers, TheRequestIsWhatTheApiSays) {
  ReceivedPost received;
  {
    StreamServer server([&](const ReceivedPost& post) {
      received = post;
      return scripts::well(scripts::completions(4));
    });
    LoadPlan plan = plan_for(server.url() + "/v1/");  // as OpenAI's base URLs end
    plan.token = Secret("sesame");
    plan.extra_members = {{"cache_salt", "x"}};
    EXPECT_EQ(outcome(drive_for_real(plan).requests.at(0)), "whole");
  }
  EXPECT_EQ(received.target, "/v1/completions");
  EXPECT_EQ(received.headers["authorization"], "Bearer sesame");
  EXPECT_EQ(received.headers["content-type"], "application/json");
  EXPECT_EQ(received.headers.count("accept-encoding"), 0U);
  EXPECT_EQ(received.headers.count("expect"), 0U);
  const auto body = parse_json(received.body);
  ASSERT_TRUE(body) << received.body;
  EXPECT_EQ(*body, Json::parse(R"({"model": "m", "prompt": "Hello world", "max_tokens": 4,
      "temperature": 0, "seed": 1, "stream": true, "stream_options": {"include_usage": true},
      "cache_prompt": false, "ignore_eos": true, "cache_salt": "x"})"));
}

TEST(Answers, ConnectionsAreKeptOrNotAsStated) {
  for (const bool keep : {true, false}) {
    StreamServer server(
        [&](const ReceivedPost&) { return scripts::well(scripts::completions(4)); });
    LoadPlan plan = plan_for(server.url());
    plan.requests = 10;
    const Load load = drive_for_real(plan, {.keep_connections = keep});
    EXPECT_EQ(server.connections(), keep ? 1 : 10);
    ASSERT_EQ(load.requests.size(), 10U);
    EXPECT_FALSE(load.requests.front().kept_connection);
    EXPECT_EQ(load.requests.back().kept_connection, keep);
  }
}

}  // namespace answers_test
}  // namespace weir::load
