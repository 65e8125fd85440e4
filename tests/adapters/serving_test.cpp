// Tests of each API's requests and of the meaning of its events. Events of llama-server are
// recorded ones (tests/adapters/data) or shaped by its source; vLLM's and Ollama's by their
// documentation.
#include "gate/adapters/serving.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/adapters/read_data.hpp"

namespace weir::adapters::serving {
namespace serving_test {

const Api& api(std::string_view name) {
  const Api* match = find_api(name);
  EXPECT_NE(match, nullptr) << name;
  return match != nullptr ? *match : apis().front();
}

ServingRequest ask() {
  ServingRequest ask;
  ask.model = "m";
  ask.prompt = "Why?\n\"\xC3\xA9\"";
  ask.max_tokens = 32;
  ask.seed = 7;
  return ask;
}

TEST(Bodies, AreGreedySeededStreamedAndWithoutCaches) {
  const struct {
    const char* api;
    const char* body;
  } cases[] = {
      {"completions", R"({"model": "m", "prompt": "Why?\n\"é\"", "max_tokens": 32, "seed": 7,
          "temperature": 0, "stream": true, "stream_options": {"include_usage": true},
          "cache_prompt": false, "ignore_eos": true})"},
      {"chat", R"({"model": "m", "messages": [{"role": "user", "content": "Why?\n\"é\""}],
          "max_tokens": 32, "seed": 7, "temperature": 0, "stream": true,
          "stream_options": {"include_usage": true}, "cache_prompt": false, "ignore_eos": true})"},
      {"llama", R"({"model": "m", "prompt": "Why?\n\"é\"", "n_predict": 32, "seed": 7,
          "temperature": 0, "stream": true, "cache_prompt": false, "ignore_eos": true})"},
      {"ollama", R"({"model": "m", "prompt": "Why?\n\"é\"", "raw": true, "stream": true,
          "options": {"num_predict": 32, "seed": 7, "temperature": 0}})"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(parse_json(make_body(api(c.api), ask())).value_or(Json()), Json::parse(c.body))
        << c.api;
  }
}

TEST(Bodies, LeaveOutWhatIsNoPartOfOpenAisApiWhereAServerRefusesIt) {
  ServingRequest strict = ask();
  strict.sends_extra_fields = false;
  strict.model.clear();
  for (const char* name : {"completions", "chat"}) {
    const Json body = parse_json(make_body(api(name), strict)).value_or(Json());
    for (const char* key : {"cache_prompt", "ignore_eos", "model"}) {
      EXPECT_FALSE(body.contains(key)) << name << " " << key;
    }
  }
}

TEST(Bodies, TakeMoreMembersLast) {
  ServingRequest more = ask();
  more.allows_cached_prompts = true;
  more.ignores_eos = false;
  more.extra_members = {{"cache_salt", "x"}, {"seed", 9}};
  const Json body = parse_json(make_body(api("llama"), more)).value_or(Json());
  EXPECT_EQ(body["cache_salt"], "x");
  EXPECT_EQ(body["seed"], 9);
  EXPECT_FALSE(body.contains("cache_prompt")) << "the server's own flag decides";
  EXPECT_FALSE(body.contains("ignore_eos"));
}

TEST(Bodies, AreOneWithObjectsOfBothSides) {
  ServingRequest more = ask();
  more.extra_members = {{"options", {{"num_ctx", 4096}}}, {"keep_alive", "5m"}};
  const Json body = parse_json(make_body(api("ollama"), more)).value_or(Json());
  EXPECT_EQ(body["options"],
            Json::parse(R"({"num_predict": 32, "seed": 7, "temperature": 0, "num_ctx": 4096})"));
  EXPECT_EQ(body["keep_alive"], "5m");
}

TEST(Bodies, SayWhatNobodyElseMaySend) {
  using testing::Contains;
  using testing::Not;
  const struct {
    const char* api;
    std::vector<std::string> members;
  } cases[] = {
      {"completions", {"prompt", "max_tokens", "stream", "stream_options.include_usage", "seed"}},
      {"chat", {"messages", "max_tokens", "max_completion_tokens", "temperature", "model", "n"}},
      {"llama", {"prompt", "n_predict", "cache_prompt", "ignore_eos", "max_tokens"}},
      {"ollama", {"prompt", "raw", "options.num_predict", "options.seed", "options.temperature"}},
  };
  for (const auto& c : cases) {
    const auto sent = reserved_members(api(c.api), true);
    for (const std::string& member : c.members) EXPECT_THAT(sent, Contains(member)) << c.api;
    EXPECT_EQ(std::set<std::string>(sent.begin(), sent.end()).size(), sent.size()) << "once each";
  }
  EXPECT_THAT(reserved_members(api("completions"), true), Contains("ignore_eos"));
  EXPECT_THAT(reserved_members(api("completions"), false), Not(Contains("ignore_eos")));
  EXPECT_THAT(reserved_members(api("ollama"), true), Not(Contains("options")));
}

TEST(Bodies, HoldPromptsThatAreNoUtf8) {
  ServingRequest odd = ask();
  odd.prompt = "\xFF\xFE";
  EXPECT_TRUE(parse_json(make_body(api("completions"), odd)));
}

// How an event reads, in short: "token", "token×3", "", "last", "error".
std::string kind(const StreamPiece& piece) {
  if (piece.error) return "error";
  std::string words = piece.is_token ? "token" : "";
  if (piece.is_token && piece.tokens != 1) words += "×" + std::to_string(piece.tokens);
  if (piece.is_last) words += words.empty() ? "last" : ", last";
  return words;
}

TEST(Events, AreTokensOrNone) {
  const struct {
    const char* api;
    const char* data;
    const char* kind;
    const char* text = "";
  } cases[] = {
      // vLLM
      {"completions", R"({"choices":[{"index":0,"text":" a","finish_reason":null}]})", "token",
       " a"},
      {"completions", R"({"choices":[{"index":0,"text":" b","finish_reason":"length"}]})", "token",
       " b"},
      {"completions", R"({"choices":[{"index":0,"text":"","finish_reason":null}]})", "token"},
      {"completions", R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}})", ""},
      {"completions", "[DONE]", "last"},
      // llama-server ends without a text
      {"completions", R"({"choices":[{"text":"","index":0,"finish_reason":"length"}],"usage":{}})",
       ""},
      {"completions", R"({"usage":{"completion_tokens":2}})", ""},
      // A role is no token, though vLLM's bench takes it for the first one
      {"chat", R"({"choices":[{"delta":{"role":"assistant","content":""}}]})", ""},
      {"chat", R"({"choices":[{"delta":{"role":"assistant","content":null}}]})", ""},
      {"chat", R"({"choices":[{"delta":{"role":"assistant","content":"a"}}]})", "token", "a"},
      {"chat", R"({"choices":[{"delta":{"content":"a"},"finish_reason":null}]})", "token", "a"},
      {"chat", R"({"choices":[{"delta":{"content":""},"finish_reason":null}]})", "token"},
      {"chat", R"({"choices":[{"delta":{"content":""},"finish_reason":"stop"}]})", ""},
      {"chat", R"({"choices":[{"delta":{"content":"z"},"finish_reason":"stop"}]})", "token", "z"},
      {"chat", R"({"choices":[{"delta":{},"finish_reason":"stop"}]})", ""},
      {"chat", R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})", "token", "hm"},
      {"chat", R"({"choices":[{"delta":{"reasoning":"hm","content":null}}]})", "token", "hm"},
      {"chat", R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})", "token"},
      // llama-server names the tokens: none of text, and several in one
      {"llama", R"({"content":" a","tokens":[5],"stop":false})", "token", " a"},
      {"llama", R"({"content":"","tokens":[5],"stop":false})", "token"},
      {"llama", R"({"content":"abc","tokens":[5,6,7],"stop":false})", "token×3", "abc"},
      {"llama", R"({"content":"","tokens":[],"stop":false})", ""},
      {"llama", R"({"content":"","stop":false})", "token"},
      {"llama", R"({"content":"","tokens":[],"stop":true})", "last"},
      {"ollama", R"({"response":"a","done":false})", "token", "a"},
      {"ollama", R"({"response":"","done":false})", "token"},
      {"ollama", R"({"thinking":"h","response":"","done":false})", "token", "h"},
      {"ollama", R"({"response":"","done":true,"done_reason":"stop"})", "last"},
      {"ollama", R"({"response":"a","done":true})", "token, last", "a"},
      // Errors
      {"completions", R"({"error":{"message":"no memory","code":500}})", "error"},
      {"chat", R"({"error":"no memory"})", "error"},
      {"llama", R"({"error":{"code":400,"message":"no memory","type":"x"}})", "error"},
      {"ollama", R"({"error":"no memory"})", "error"},
      {"ollama", R"({"error":{"code":1}})", "error"},
  };
  for (const auto& c : cases) {
    const auto piece = api(c.api).read(c.data);
    ASSERT_TRUE(piece) << c.data << ": " << piece.error().message;
    EXPECT_EQ(kind(*piece), c.kind) << c.data;
    EXPECT_EQ(piece->text, c.text) << c.data;
  }
}

TEST(Events, ThatAreNotWhatTheApiSaysAreErrors) {
  const struct {
    const char* api;
    const char* data;
  } cases[] = {
      {"completions", ""},
      {"completions", "{"},
      {"completions", "[]"},
      {"completions", "7"},
      {"completions", "{}"},
      {"completions", "[done]"},
      {"completions", R"({"choices":{}})"},
      {"completions", R"({"choices":[{"text":"a"},{"text":"b"}]})"},
      {"llama", "[DONE]"},
      {"llama", R"({"content":"a"})"},
      {"llama", R"({"content":7,"stop":false})"},
      {"llama", R"({"content":"a","stop":"no"})"},
      {"ollama", R"({"response":"a"})"},
      {"ollama", R"({"response":"a","done":0})"},
  };
  for (const auto& c : cases) {
    const auto piece = api(c.api).read(c.data);
    EXPECT_FALSE(piece) << c.api << " " << c.data;
    if (piece) continue;
    EXPECT_FALSE(piece.error().message.empty());
  }
}

TEST(Reports, OfEachServer) {
  const struct {
    const char* api;
    const char* data;
    profile::ServedReport report;
  } cases[] = {
      {"completions",
       R"({"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,
           "prompt_tokens_details":{"cached_tokens":4}}})",
       {.prompt_tokens = 9, .cached_tokens = 4, .output_tokens = 3, .model = "m"}},
      {"completions",  // vLLM without --enable-prompt-tokens-details
       R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,
           "prompt_tokens_details":null}})",
       {.prompt_tokens = 9, .output_tokens = 3}},
      {"chat",  // llama-server adds its timings; cache_n are not in prompt_n
       R"({"choices":[],"system_fingerprint":"b1-0ad4a86","usage":{"completion_tokens":3,
           "prompt_tokens":9},"timings":{"cache_n":4,"prompt_n":5,"prompt_ms":167.268,
           "predicted_n":3,"predicted_ms":24.383}})",
       {.prompt_tokens = 9,
        .cached_tokens = 4,
        .output_tokens = 3,
        .prompt_seconds = 0.167268,
        .output_seconds = 0.024383,
        .build = "b1-0ad4a86"}},
      {"ollama",
       R"({"model":"m","response":"","done":true,"done_reason":"length","prompt_eval_count":11,
           "prompt_eval_cached_count":8,"prompt_eval_duration":13000000,"eval_count":18,
           "eval_duration":52000000})",
       {.prompt_tokens = 11,
        .cached_tokens = 8,
        .output_tokens = 18,
        .prompt_seconds = 0.013,
        .output_seconds = 0.052,
        .finish = "length",
        .model = "m"}},
      {"llama",  // an older build, without timings
       R"({"content":"","stop":true,"tokens_predicted":3,"tokens_evaluated":9})",
       {.prompt_tokens = 9, .output_tokens = 3}},
      {"completions",  // an invalid count is absent
       R"({"choices":[],"usage":{"prompt_tokens":-9,"completion_tokens":1e300,
           "prompt_tokens_details":[1]},"timings":{"prompt_n":18446744073709551615,
           "predicted_ms":-1}})",
       {}},
  };
  for (const auto& c : cases) {
    const auto piece = api(c.api).read(c.data);
    ASSERT_TRUE(piece) << c.data << ": " << piece.error().message;
    const profile::ServedReport& got = piece->reported;
    EXPECT_EQ(got.prompt_tokens, c.report.prompt_tokens) << c.data;
    EXPECT_EQ(got.cached_tokens, c.report.cached_tokens) << c.data;
    EXPECT_EQ(got.output_tokens, c.report.output_tokens) << c.data;
    EXPECT_NEAR(got.prompt_seconds.value_or(-1), c.report.prompt_seconds.value_or(-1), 1e-12);
    EXPECT_NEAR(got.output_seconds.value_or(-1), c.report.output_seconds.value_or(-1), 1e-12);
    EXPECT_EQ(got.finish, c.report.finish) << c.data;
    EXPECT_EQ(got.model, c.report.model) << c.data;
    EXPECT_EQ(got.build, c.report.build) << c.data;
  }
}

// By OpenAI's reference, llama.cpp's README of its server and vLLM's protocol.py.
TEST(LikelyTokens, AreAskedForAndReadInEachApi) {
  using profile::Likely;
  const Likely both = {{"a", {{"a", -0.5}, {"b", -1}}}};
  const char* const k_content =
      R"([{"token":"a","logprob":-0.5,"top_logprobs":[{"token":"a","logprob":-0.5},{"token":"b","logprob":-1}]}])";
  struct Case {
    const char* api;
    std::string asks, event;
    Likely likely;
  };
  const Case cases[] = {
      {"llama", R"({"n_probs":10})",
       fmt::format(R"({{"content":"a","stop":false,"completion_probabilities":{}}})", k_content),
       both},
      {"chat", R"({"logprobs":true,"top_logprobs":10})",
       fmt::format(R"({{"choices":[{{"delta":{{"content":"a"}},"logprobs":{{"content":{}}}}}]}})",
                   k_content),
       both},
      {"completions", R"({"logprobs":10})",
       R"({"choices":[{"text":"a","logprobs":{"tokens":["a"],"top_logprobs":[{"a":-0.5,"b":-1}]}}]})",
       both},
      {"completions", R"({"logprobs":10})",
       fmt::format(R"({{"choices":[{{"text":"a","logprobs":{{"content":{}}}}}]}})", k_content),
       both},
      {"completions", R"({"logprobs":10})", R"({"choices":[{"text":"a","logprobs":null}]})", {}},
      {"chat",
       R"({"logprobs":true,"top_logprobs":10})",
       R"({"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"token":5},{"token":"a","top_logprobs":[{"token":"\u001b","logprob":"x"},7]}]}}]})",
       {{"a", {}}}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(dump_json(api(c.api).likely_tokens_request(10)), c.asks) << c.api;
    const auto piece = api(c.api).read(c.event);
    ASSERT_TRUE(piece) << c.event;
    EXPECT_EQ(piece->likely, c.likely) << c.event;
  }
  EXPECT_EQ(api("ollama").likely_tokens_request, nullptr);
}

// A stream as it was recorded from llama-server: 9 prompt tokens, 4 of them cached; 3 generated.
TEST(Events, OfARecordedStreamOfLlamaServer) {
  const std::string bytes = read_data("llama-server-stream.sse.txt");
  EventReader reader(Framing::server_sent);
  profile::ServedReport report;
  std::int64_t tokens = 0;
  std::string text;
  bool last = false;
  ASSERT_TRUE(reader.feed(bytes, [&](std::string_view, std::string_view event) {
    const auto piece = api("llama").read(event);
    ASSERT_TRUE(piece) << piece.error().message;
    EXPECT_FALSE(last);
    if (piece->is_token) tokens += piece->tokens;
    text += piece->text;
    last = piece->is_last;
    replace_reported_parts(report, piece->reported);
  }));
  EXPECT_TRUE(last);
  EXPECT_EQ(tokens, 3);
  EXPECT_EQ(text, "ldldld");
  EXPECT_EQ(report.prompt_tokens, 9);
  EXPECT_EQ(report.cached_tokens, 4);
  EXPECT_EQ(report.output_tokens, 3);
  EXPECT_NEAR(report.prompt_seconds.value_or(0), 0.167268, 1e-12);
  EXPECT_NEAR(report.output_seconds.value_or(0), 0.024383, 1e-12);
  EXPECT_EQ(report.finish, "limit");
}

TEST(ErrorWords, AreFoundInWhateverBodyAndFitToShow) {
  const struct {
    const char* body;
    const char* words;
  } cases[] = {
      {R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})",
       "Loading model"},
      {R"({"object":"error","message":"no such model","code":404})", "no such model"},
      {R"({"detail":"Not Found"})", "Not Found"},
      {R"({"error":"model 'x' not found"})", "model 'x' not found"},
      {"<html>Bad gateway</html>", "<html>Bad gateway</html>"},
      {"a\x1b[31mb\r\nc", "ab c"},
      {"", ""},
      {"{}", "{}"},
  };
  for (const auto& c : cases) EXPECT_EQ(error_answer_text(c.body), c.words) << c.body;
  EXPECT_LE(error_answer_text(std::string(10'000, 'x')).size(), 300U);
}

}  // namespace serving_test
}  // namespace weir::adapters::serving
