// Tests of recorded and drawn requests.
#include "gate/adapters/workload.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace weir::adapters {
namespace workload_test {

std::vector<WorkloadRequest> read(std::string_view text, std::int64_t tokens = 0,
                                  std::size_t most = 100, std::int64_t turns = 1) {
  const auto requests = read_workload(text, tokens, most, turns);
  EXPECT_TRUE(requests) << requests.error().message;
  return requests ? *requests : std::vector<WorkloadRequest>{};
}

TEST(Workload, IsReadFromJsonLines) {
  const auto requests = read(
      "{\"prompt\": \"Why?\", \"output_tokens\": 64, \"timestamp\": 1500}\n\n"
      "{\"prompt\": \"How?\", \"max_tokens\": 8, \"timestamp\": 2250}\r\n"
      "{\"prompt\": \"When?\", \"timestamp\": 4000}",
      16);
  EXPECT_EQ(requests, (std::vector<WorkloadRequest>{
                          {"Why?", 64, 0.0}, {"How?", 8, 0.75}, {"When?", 16, 2.5}}));
  EXPECT_EQ(read("{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n{", 4, 2).size(), 2U)
      << "no more than is asked for is looked at";
}

// As in ShareGPT_V3_unfiltered_cleaned_split.json.
TEST(Workload, IsReadFromConversations) {
  const auto requests = read(
      R"([{"id": "x", "conversations": [{"from": "system", "value": "Be kind."},
          {"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi!"}]},
          {"conversations": [{"from": "user", "value": "Bye"}]}])",
      32);
  EXPECT_EQ(requests,
            (std::vector<WorkloadRequest>{{"Hello", 32, std::nullopt}, {"Bye", 32, std::nullopt}}));
}

TEST(Workload, TurnsOfAConversationHoldWhatWasSaidBefore) {
  const auto requests = read(
      R"([{"conversations": [{"from": "gpt", "value": "?"}, {"from": "human", "value": "Hello"},
           {"from": "gpt", "value": "Hi!"}, {"from": "human", "value": "Why?"},
           {"from": "gpt", "value": "So."}, {"from": "human", "value": "Bye"}]},
          {"conversations": [{"from": "user", "value": "One"}]}])",
      32, 100, 2);
  EXPECT_EQ(requests, (std::vector<WorkloadRequest>{{"Hello", 32, std::nullopt},
                                                    {"Hello\nHi!\nWhy?", 32, std::nullopt, 0},
                                                    {"One", 32, std::nullopt}}));
}

std::int64_t count_words(const std::string& text) {
  return text.empty() ? 0 : std::ranges::count(text, ' ') + 1;
}

// Lines of conversation_trace.jsonl of Mooncake, shortened. Each hash is 512 tokens.
TEST(Workload, MakesPrefixesThatAreSharedOutOfATrace) {
  const auto requests = read(
      "{\"timestamp\": 0, \"input_length\": 1200, \"output_length\": 52, \"hash_ids\": [0, 1, 2]}\n"
      "{\"timestamp\": 3000, \"input_length\": 1100, \"output_length\": 26, \"hash_ids\": [0, 1, "
      "7]}"
      "\n{\"timestamp\": 3000, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [5]}\n");
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(count_words(requests[0].prompt), 1200);
  EXPECT_EQ(count_words(requests[1].prompt), 1100);
  EXPECT_EQ(count_words(requests[2].prompt), 600) << "one hash, and 88 tokens of nobody else's";
  EXPECT_EQ(requests[1].tokens, 26);
  EXPECT_EQ(requests[1].at, 3);
  const auto [first, second] = std::ranges::mismatch(requests[0].prompt, requests[1].prompt);
  const auto shared = std::string(requests[0].prompt.begin(), first);
  EXPECT_GE(count_words(shared), 1024);
  EXPECT_LT(count_words(shared), 1032) << "what follows is another's";
}

TEST(Workload, IsDrawnAsItsFileSays) {
  const char* rule =
      "{\n \"prompt_tokens\": {\"median\": 200, \"p99\": 1000},\n"
      " \"output_tokens\": {\"least\": 16, \"most\": 48}, \"seed\": 7}";
  const auto requests = read(rule, 0, 4000);
  ASSERT_EQ(requests.size(), 4000U);
  std::vector<std::int64_t> prompts, outputs;
  for (const WorkloadRequest& request : requests) {
    prompts.push_back(count_words(request.prompt));
    outputs.push_back(request.tokens);
  }
  std::ranges::sort(prompts);
  EXPECT_NEAR(static_cast<double>(prompts[2000]), 200, 10);
  EXPECT_NEAR(static_cast<double>(prompts[3960]), 1000, 150);  // its 40 largest are beyond
  EXPECT_EQ(std::ranges::min(outputs), 16);
  EXPECT_EQ(std::ranges::max(outputs), 48);
  EXPECT_EQ(read(rule, 0, 50), std::vector(requests.begin(), requests.begin() + 50))
      << "the same for the same seed";
}

TEST(Workload, ThatIsDrawnSharesPrefixesAndHasTurns) {
  const auto requests = read(
      R"({"prompt_tokens": 20, "output_tokens": 5, "shared_prefix_tokens": 100, "prefixes": 2})", 0,
      60, 3);
  ASSERT_EQ(requests.size(), 60U);
  std::vector<std::string> prefixes;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(count_words(requests[i].prompt), 120 + 25 * static_cast<std::int64_t>(i % 3));
    if (i % 3 == 0) {
      EXPECT_FALSE(requests[i].after);
      prefixes.push_back(requests[i].prompt.substr(0, 200));
    } else {
      EXPECT_EQ(requests[i].after, i - 1);
      EXPECT_TRUE(requests[i].prompt.starts_with(requests[i - 1].prompt));
    }
  }
  std::ranges::sort(prefixes);
  const auto rest = std::ranges::unique(prefixes);
  prefixes.erase(rest.begin(), rest.end());
  EXPECT_EQ(prefixes.size(), 2U);
}

TEST(Workload, OfOneLineIsNoRule) {
  const auto requests =
      read(R"({"prompt": "Why is the sky blue?", "prompt_tokens": 6, "output_tokens": 4})", 0, 10);
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests.front().prompt, "Why is the sky blue?");
}

TEST(Workload, ThatIsNoneIsRefusedWithItsPlace) {
  const struct {
    std::string text, words;
  } cases[] = {
      {"", "no request"},
      {"[]", "no request"},
      {"{\"prompt\": \"a\"}", "line 1: it does not say how many tokens"},
      {"{\"prompt\": \"a\", \"max_tokens\": 0}", "line 1: it does not say how many tokens"},
      {"\n{\"prompt\": \"\", \"max_tokens\": 1}", "line 2: an empty prompt"},
      {"[{\"conversations\": [{\"from\": \"gpt\", \"value\": \"a\"}]}]", "entry 1: a conversation"},
      {"{\"input_length\": 5}", "line 1: no input_length and hash_ids"},
      {"{\"input_length\": 9999999, \"hash_ids\": []}", "line 1: no input_length and hash_ids"},
      {"{\"input_length\": 5, \"output_length\": 5, \"hash_ids\": [\"a\"]}", "a hash that is no"},
      {"7", "line 1: no JSON object"},
      {"{\"prompt_tokens\": {\"median\": 5}, \"output_tokens\": 5}", "prompt_tokens: expected"},
      {"{\"prompt_tokens\": {\"median\": 5, \"p99\": 4}, \"output_tokens\": 5}",
       "expected a number"},
      {"{\"prompt_tokens\": 5, \"output_tokens\": {\"least\": 9, \"most\": 8}}",
       "output_tokens: expec"},
      {"{\"prompt_tokens\": 5}", "output_tokens: expected a number"},
      {"{\"prompt_tokens\": 5, \"output_token\": 5}", "unknown key \"output_token\""},
      {"{\"prompt_tokens\": 5, \"output_tokens\": 5, \"shared_prefix_tokens\": \"lots\"}",
       "shared_prefix_tokens: expected a whole number"},
      {"{\"prompt_tokens\": 5, \"output_tokens\": 5, \"prefixes\": -4}", "prefixes: expected"},
      {"{\"prompt\": \"a\", \"max_tokens\": 1, \"timestamp\": 5}\n"
       "{\"prompt\": \"a\", \"max_tokens\": 1, \"timestamp\": 4}",
       "line 2: it came before"},
      {"{", "line 1"},
      {"[1", ""},
  };
  for (const auto& c : cases) {
    const auto requests = read_workload(c.text, 0, 100);
    ASSERT_FALSE(requests) << c.text;
    EXPECT_EQ(requests.error().code, Code::data) << c.text;
    EXPECT_NE(requests.error().message.find(c.words), std::string::npos)
        << requests.error().message;
  }
}

TEST(Workload, HasALimitOfText) {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "{\"input_length\": 1000000, \"output_length\": 1, \"hash_ids\": []}\n";
  }
  const auto requests = read_workload(text, 1, 1000);
  ASSERT_FALSE(requests);
  EXPECT_NE(requests.error().message.find("256 MiB"), std::string::npos);
  const auto drawn = read_workload(
      R"({"prompt_tokens": 1000000, "output_tokens": 1000000, "shared_prefix_tokens": 1000000})", 1,
      1000, 100);
  ASSERT_FALSE(drawn);
  EXPECT_NE(drawn.error().message.find("256 MiB"), std::string::npos);
}

}  // namespace workload_test
}  // namespace weir::adapters
