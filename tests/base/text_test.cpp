// Tests helpers for text: globs, nearest words, printable text, numbers and lines.
#include "gate/base/text.hpp"

#include <random>

#include <gtest/gtest.h>

namespace weir::text {
namespace text_test {

TEST(Glob, StarCrossesSlashesAndMatchesNothingToo) {
  struct Case {
    const char* pattern;
    const char* name;
    bool matches;
  };
  for (const Case& c : {Case{"*", "", true},
                        {"*", "a/b/c", true},
                        {"", "", true},
                        {"", "a", false},
                        {"llama.cpp/*/vulkan/*", "llama.cpp/tiny/vulkan/decode", true},
                        {"*/decode", "a/b/c/decode", true},
                        {"*decode", "a/b/c/decode@d256", false},
                        {"a*b*c", "a123b45c", true},
                        {"a*b*c", "a123c45b", false},
                        {"long*", "long@d256", true},
                        {"a**b", "ab", true}}) {
    EXPECT_EQ(glob_match(c.pattern, c.name), c.matches) << c.pattern << " on " << c.name;
  }
}

TEST(Glob, StaysFastOnPatternsMadeToBeSlow) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(glob_match(pattern + "b", std::string(5000, 'a')));
}

// Tries every length for each star.
bool glob_match_slowly(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*') {
    return !name.empty() && name[0] == pattern[0] &&
           glob_match_slowly(pattern.substr(1), name.substr(1));
  }
  for (std::size_t i = 0; i <= name.size(); ++i) {
    if (glob_match_slowly(pattern.substr(1), name.substr(i))) return true;
  }
  return false;
}

TEST(Glob, MatchesAsTryingEveryLengthOfAStarWould) {
  std::mt19937 random(1);
  const auto draw = [&](std::string_view letters, std::size_t most) {
    std::string text;
    for (std::size_t i = random() % (most + 1); i > 0; --i)
      text += letters[random() % letters.size()];
    return text;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string pattern = draw("ab*", 7), name = draw("ab", 8);
    EXPECT_EQ(glob_match(pattern, name), glob_match_slowly(pattern, name))
        << pattern << " on " << name;
  }
}

TEST(Nearest, FindsATypoAndKeepsQuietAboutAnotherWord) {
  const std::vector<std::string> names{"cpu", "vulkan", "opencl"};
  EXPECT_EQ(nearest("vulcan", names), "vulkan");
  EXPECT_EQ(nearest("Vulkan", names), "vulkan");
  EXPECT_EQ(nearest("gpu", names), std::nullopt);
  EXPECT_EQ(nearest("vukl", names), std::nullopt);
  EXPECT_EQ(nearest("gaet", std::vector<std::string>{"gate"}), "gate");
  EXPECT_EQ(nearest("directx", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(did_you_mean("vulcan", names), " (did you mean \"vulkan\"?)");
}

TEST(Decoded, IsUtf8WithoutMarksWhateverTheTextWas) {
  struct Case {
    std::string_view text;
    std::optional<std::string> decoded;
  };
  using namespace std::string_view_literals;
  for (const Case& c : {Case{"plain ± text", std::nullopt},
                        {"", std::nullopt},
                        {"\xEF\xBB\xBF{}\n\xEF\xBB\xBF{}\n", "{}\n{}\n"},
                        {"a\xEF\xBB\xBF", std::nullopt},  // no line begins with it
                        {"\xFF\xFE{\0\xB1\0\x3D\xD8\x00\xDE"sv, "{±😀"},
                        {"\xFE\xFF\0{\0\xB1\xD8\x3D\xDE\x00"sv, "{±😀"},
                        {"\xFF\xFE{\0\x3D\xD8x\0"sv, "{\uFFFDx"},  // half a character
                        {"\xFF\xFE{\0}"sv, "{\uFFFD"},
                        {"{\0\"\0"sv, "{\""},  // without a mark
                        {"gr\xF6\xDF\x65 \x80\x81", "größe €\uFFFD"}}) {
    EXPECT_EQ(decoded(c.text), c.decoded) << c.text;
  }
}

TEST(Printable, RemovesWhatCouldTakeOverATerminalAndMarksWhatIsNotText) {
  EXPECT_EQ(printable("a\x1B[31mred\x1B[0m\rb\n\tc"), "aredb\n\tc");
  EXPECT_EQ(printable("a\xFFz"), "a\xEF\xBF\xBDz");                              // not UTF-8
  EXPECT_EQ(printable("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(printable("ab\xE2\x80\xAE"
                      "c"),
            "ab<U+202E>c");                                          // right-to-left override
  EXPECT_EQ(printable("65 \xE2\x86\x92 77"), "65 \xE2\x86\x92 77");  // an arrow stays
  EXPECT_EQ(printable("\x1B["), "");                                 // a torn sequence
  EXPECT_EQ(printable("a\u200Bb\uFEFF\u00AD\u2028\U000E0041"),
            "a<U+200B>b<U+FEFF><U+00AD><U+2028><U+E0041>");
}

TEST(Numbers, AreReadWholeOrNotAtAll) {
  EXPECT_EQ(to_double("12.5"), 12.5);
  for (const char* bad : {"", "nan", "inf", "-inf", "1e999", "12x", " 1", "0x10"}) {
    EXPECT_EQ(to_double(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(to_int("-7"), -7);
  EXPECT_EQ(to_int("99999999999999999999"), std::nullopt);
}

TEST(Lines, EndWithOrWithoutANewline) {
  EXPECT_EQ(lines("a\r\nb\n"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lines(""), std::vector<std::string>{});
  EXPECT_EQ(lines("\n\nx"), (std::vector<std::string>{"", "", "x"}));
}

TEST(Text, LastLinesLeaveOutBlankOnes) {
  EXPECT_EQ(last_lines("a\n\nb\n \t\nc\n", 2), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(last_lines("a", 2), std::vector<std::string>{"a"});
  EXPECT_TRUE(last_lines(" \n\n", 2).empty());
}

TEST(Text, CanNotBecomeACommandOfACiSystem) {
  const std::pair<const char*, const char*> k_cases[] = {
      {"::error::x", "\u2237error::x"},
      {"a\n::set-output name=x::y\n", "a\n\u2237set-output name=x::y\n"},
      {"\n  ::stop-commands::t", "\n  \u2237stop-commands::t"},
      {"\u3000::error::x", "\u3000\u2237error::x"},  // white space too, to .NET
      {"\u00a0\f::error::x", "\u00a0\f\u2237error::x"},
      {"a ##vso[task.x]y", "a ##vso(task.x]y"},
      {"\t::x", "\t\u2237x"},
      {"one\r::x", "one\r\u2237x"},
      {"::::", "\u2237::"},
      {"##[error]x", "##(error]x"},
      {"see ##[group]a ##[b", "see ##(group]a ##(b"},
      {"std::vector", "std::vector"},
      {"a :: b", "a :: b"},
      {":", ":"},
      {"", ""},
  };
  for (const auto& [from, want] : k_cases) {
    EXPECT_EQ(neutralize_ci_commands(from), want);
    EXPECT_EQ(neutralize_ci_commands(want), want);
  }
}

}  // namespace text_test
}  // namespace weir::text
