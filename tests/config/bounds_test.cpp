// Tests that a small weir.yaml cannot make a matrix, a comparison or a text without bounds.
#include <random>

#include <gmock/gmock.h>

#include "gate/config/redactor.hpp"
#include "gate/config/rules.hpp"

#include "parse_text.hpp"

namespace weir::config {
namespace bounds_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::string numbered(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    std::string item = text;
    const std::string number = std::to_string(i);
    for (std::size_t at = item.find('#'); at != std::string::npos; at = item.find('#', at)) {
      item.replace(at, 1, number);
    }
    all += (i == 0 ? "" : ", ") + item;
  }
  return all;
}

// A matrix of `engines` × 10 models × 10 backends × 10 prompts.
std::string large(int engines, const std::string& words, const std::string& rest) {
  return "version: 1\nengines: {e: &e {command: [e, '{model}', '{tokens}'" + words +
         "], output: generic, metrics: {syncs_per_token: {regex: '(.*)'}}}, " +
         numbered("e#: *e", engines - 1) + "}\nmodels: {" + numbered("m#: x", 10) +
         "}\nbackends: {" + numbered("b#: {device: cpu}", 10) + "}\nprompts: {" +
         numbered("p#: {tokens: 4}", 10) + "}\n" + rest;
}

TEST(Bounds, CellsThatRepeatALongCommandAreRefused) {
  EXPECT_EQ(config_error(large(2, "", "")), "");
  EXPECT_THAT(config_error(large(2, ", " + numbered("a", 9000), "")),
              HasSubstr("more than 64 MiB"));
}

// Each of these takes milliseconds to compile, and a record may hold any weir.yaml.
TEST(Bounds, ManyOrLargeExpressionsAreRefused) {
  const auto with_rules = [](int rules, const std::string& expression) {
    std::string engines;
    for (int i = 0; i < rules; i += 100) {
      engines +=
          fmt::format("{}e{}: {{command: [e, '{{tokens}}'], output: generic, metrics: {{{}}}}}",
                      i == 0 ? "" : ", ", i,
                      numbered("x#: {regex: '" + expression + "', unit: s, better: lower}",
                               std::min(100, rules - i)));
    }
    return "version: 1\nengines: {" + engines +
           "}\nmodels: {m: x}\nbackends: {cpu: {}}\nprompts: {p: {tokens: 4}}\n";
  };
  EXPECT_EQ(config_error(with_rules(500, "(.*)")), "");
  EXPECT_THAT(config_error(with_rules(501, "(.*)")),
              HasSubstr("more than 500 regular expressions"));
  EXPECT_THAT(config_error(with_rules(1, "(?i)(\\pL{0,200})")), HasSubstr("pattern too large"));
}

TEST(Bounds, CellsThatRepeatManyNamesOfKernelsAreRefused) {
  const std::string entry = "{max: 1, metrics: [" + numbered("'op_calls:k#'", 100) + "]}";
  const auto with_kernels = [&](int more) {
    std::string entries = entry;
    for (int i = 0; i < more; ++i) {
      std::string next = entry;
      const std::string prefix = "op_calls:k" + std::string(static_cast<std::size_t>(i + 1), 'k');
      for (std::size_t at = next.find("op_calls:k"); at != std::string::npos;
           at = next.find("op_calls:k", at + prefix.size())) {
        next.replace(at, 10, prefix);
      }
      entries += ", " + next;
    }
    return large(2, "", "limits: [" + entries + "]\n");
  };
  EXPECT_EQ(config_error(with_kernels(0)), "");
  EXPECT_THAT(config_error(with_kernels(15)), HasSubstr("more than 64 MiB"));
}

TEST(Bounds, ListsOfPromptsThatMultiplyAreRefusedAlsoWhereTheyAreExcluded) {
  const std::string yaml = config_with("matrix: {exclude: [{prompt: long}]}\n");
  std::string lists = "prompts: {long: {tokens: 4, depth: [" + numbered("#", 100) +
                      "], threads: [" + numbered("1#", 100) + "]}, ";
  std::string many = yaml;
  many.replace(many.find("prompts: {"), 10,
               lists + numbered("p#: {tokens: 4, depth: [1, 2]}", 20) + ", ");
  EXPECT_THAT(config_error(many), testing::Not(HasSubstr("200000")));
  lists.replace(lists.find("threads: ["), 10, "threads: [" + numbered("2#", 0));
  const std::string more = "backends: {" + numbered("c#: {device: cpu}", 20) + ", ";
  many.replace(many.find("backends: {"), 11, more);
  EXPECT_THAT(config_error(many), HasSubstr("more than 200000 combinations"));
}

TEST(Bounds, LimitsNameMetricsUpToANumberInAll) {
  const std::string entry = "{exact: true, metrics: [" + numbered("dispatches_at_1#", 100) + "]}";
  EXPECT_EQ(config_error(config_with("limits: [" + numbered(entry, 20) + "]\n")), "");
  EXPECT_THAT(config_error(config_with("limits: [" + numbered(entry, 21) + "]\n")),
              HasSubstr("more than 2000 metrics"));
}

TEST(Bounds, ProblemsBeyondTheFirstAreCounted) {
  const std::string message =
      config_error(config_with("limits: [" + numbered("{metrics: no_such}", 1000) + "]\n"));
  EXPECT_THAT(message, HasSubstr("unknown metric \"no_such\""));
  EXPECT_THAT(message, HasSubstr("and 992 more"));
}

TEST(Bounds, EditsThatMakeEveryCellACaseOfItsOwnAreOneProposal) {
  const std::string each = numbered("{match: {model: m#}, exact: false}", 10) + ", " +
                           numbered("{match: {backend: b#}, exact: false}", 10) + ", " +
                           numbered("{match: {prompt: p#}, exact: false}", 10) + ", " +
                           numbered("{match: {engine: e#}, exact: false}", 8);
  const auto base = parse_text(large(9, "", "")),
             head = parse_text(large(9, "", "limits: [" + each + "]\n"));
  ASSERT_TRUE(base && head) << (head ? "" : head.error().message);
  const auto base_cells = expand(*base), head_cells = expand(*head);
  ASSERT_TRUE(base_cells && head_cells) << (head_cells ? "" : head_cells.error().message);
  const Edits edits = compare_rules(*base, *base_cells, *head, *head_cells, {});
  ASSERT_EQ(edits.proposals.size(), 1);
  EXPECT_EQ(edits.proposals.front().words(), "limits, in too many ways to list: looser");
}

// The longest word at each place, by looking at all of them.
std::string redact_slowly(const std::vector<std::pair<std::string, std::string>>& words,
                          const std::string& text) {
  const auto is_word_byte = [](char c) {
    return c == '_' || static_cast<unsigned char>(c) >= 0x80U || std::isalnum(c) != 0;
  };
  std::string redacted;
  for (std::size_t at = 0; at < text.size();) {
    const std::pair<std::string, std::string>* longest = nullptr;
    for (const auto& word : words) {
      const std::size_t end = at + word.first.size();
      if (text.compare(at, word.first.size(), word.first) != 0) continue;
      const bool begins = at == 0 || !is_word_byte(text[at]) || !is_word_byte(text[at - 1]);
      const bool ends =
          end >= text.size() || !is_word_byte(text[end - 1]) || !is_word_byte(text[end]);
      const bool is_longer = longest == nullptr || word.first.size() > longest->first.size();
      if (begins && ends && is_longer) longest = &word;
    }
    redacted += longest == nullptr ? text.substr(at, 1) : longest->second;
    at += longest == nullptr ? 1 : longest->first.size();
  }
  return redacted;
}

TEST(Bounds, TheLongestPrivateWordIsHiddenHoweverManyThereAre) {
  std::mt19937 random(3);
  const auto draw = [&](std::size_t least, std::size_t more) {
    std::string text;
    for (std::size_t i = least + random() % more; i > 0; --i) text += "ab -"[random() % 4];
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::string lines;
    for (int i = 0; i < 12; ++i) lines += "x" + draw(7, 6) + "x\\n";
    const auto settings = parse_text(with_head("prompts: {decode: {tokens: 32}, secret: {text: \"" +
                                               lines + "\", tokens: 8, private: true}}\n"));
    ASSERT_TRUE(settings) << settings.error().message;
    const Redactor redactor(*settings, "/");
    const std::string alias = redactor.text("secret");
    std::vector<std::pair<std::string, std::string>> words{{"secret", alias}, {alias, alias}};
    const std::string& text = *settings->prompts.back().text;
    std::string line;
    std::vector<std::string> listed;
    for (const char c : text + "\n") {
      if (c != '\n') {
        line += c;
        continue;
      }
      if (!line.empty()) listed.push_back(line);
      line.clear();
    }
    for (const std::string& word : listed) words.emplace_back(word, alias);
    std::string shown = "secret " + draw(0, 5);
    for (int i = 0; i < 8; ++i) shown += listed[random() % listed.size()] + draw(0, 3);
    EXPECT_EQ(redactor.text(shown), redact_slowly(words, shown)) << shown;
  }
}

}  // namespace bounds_test
}  // namespace weir::config
