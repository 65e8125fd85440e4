// Whatever a server streams, it means the same in whatever chunks, and every event is a piece or an
// error: 10 000 streams that were good before something was done to them.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "gate/adapters/serving.hpp"

#include "tests/adapters/read_data.hpp"
#include "tests/support/mutated.hpp"
#include "tests/support/rounds.hpp"

namespace weir::adapters::serving {
namespace serving_random_test {

// Bytes that matter to readers of lines and JSON.
constexpr std::string_view k_pieces[] = {
    "\n", "\r", "\r\n\r\n", "data:", ": ",   "event: error\n", "[DONE]",      "{",
    "}",  "[",  "\"",       "null",  "1e99", "\xFF",           "\xEF\xBB\xBF"};

// All that is handed on, in words.
std::string describe_stream(const Api& api, std::string_view bytes, std::size_t step, int& errors) {
  EventReader reader(api.framing, {.line_bytes = 1000, .event_bytes = 1000});
  std::string text;
  const auto take = [&](std::string_view type, std::string_view event) {
    const auto piece = api.read(event);
    text.append(type).append("|");
    if (!piece) {
      ++errors;
      EXPECT_FALSE(piece.error().message.empty());
      text += piece.error().message;
      return;
    }
    EXPECT_GE(piece->tokens, 1);
    const auto seconds = piece->reported.output_seconds;
    EXPECT_TRUE(!seconds || (std::isfinite(*seconds) && *seconds >= 0));
    text += piece->text + (piece->is_token ? "|token" : "|") + piece->error.value_or("");
  };
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    const auto fed = reader.feed(bytes.substr(at, step), take);
    if (!fed) {
      text += fed.error().message;
      break;
    }
  }
  return text + (reader.finish(take) ? "|whole" : "|cut");
}

TEST(Streams, OfEveryKindMeanTheSameInWhateverChunks) {
  const std::string llama = read_data("llama-server-stream.sse.txt");
  const struct {
    const char* api;
    std::string stream;
  } streams[] = {
      {"llama", llama},
      {"completions",
       "data: {\"choices\":[{\"index\":0,\"text\":\" a\",\"finish_reason\":null}]}\n\n"
       ": ping\n\ndata: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n"
       "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n"
       "data: [DONE]\n\n"},
      {"chat",
       "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n"
       "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\r\n\r\n"
       "data: {\"error\":{\"message\":\"no memory\"}}\r\n\r\ndata: [DONE]\r\n\r\n"},
      {"ollama",
       "{\"model\":\"m\",\"response\":\"a\",\"done\":false}\n"
       "{\"model\":\"m\",\"response\":\"\",\"done\":true,\"eval_count\":1,\"eval_duration\":7}\n"},
  };
  std::mt19937 random(1);
  int errors = 0, quiet = 0;
  for (int i = 0; i < 10'000 / tests::k_one_of; ++i) {
    const auto& c = streams[static_cast<std::size_t>(i) % std::size(streams)];
    const Api& api = *find_api(c.api);
    const std::string bytes = tests::mutated(c.stream, k_pieces, 6, random);
    const std::string unchunked = describe_stream(api, bytes, bytes.size() + 1, errors);
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}}) {
      ASSERT_EQ(describe_stream(api, bytes, step, quiet), unchunked) << bytes;
    }
  }
  EXPECT_GT(errors, 1000 / tests::k_one_of);  // else nothing much was done to them
}

}  // namespace serving_random_test
}  // namespace weir::adapters::serving
