// Tests which parts of words may be paths.
#include "gate/config/word_paths.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weir::config {
namespace word_paths_test {

TEST(WordPaths, AreTheWordAndItsPartsBetweenSeparators) {
  const struct {
    std::string word;
    std::vector<std::string> parts;
  } cases[] = {
      {"", {""}},
      {"models/x.gguf", {"models/x.gguf"}},
      {"--model=models/x.gguf", {"--model=models/x.gguf", "--model", "models/x.gguf"}},
      {"my file", {"my file", "my", "file"}},
      {"a:b,@c", {"a:b,@c", "a", "b", "c"}},
      {"-Ia/b", {"-Ia/b", "a/b"}},
      {"x=-Ia", {"x=-Ia", "x", "-Ia", "a"}},
      {"cd a && ./b<'c d'", {"cd a && ./b<'c d'", "cd", "a", "./b", "c", "d"}},
      {"a/{tokens}.txt", {"a/{tokens}.txt"}},
  };
  for (const auto& [word, parts] : cases) {
    std::vector<std::string> seen;
    EXPECT_EQ(replace_paths(word,
                            [&](const std::string& part) {
                              seen.push_back(part);
                              return std::optional<std::string>();
                            }),
              word);
    EXPECT_EQ(seen, parts) << word;
  }
}

TEST(WordPaths, AreReplacedInPlace) {
  const auto replace = [](const std::string& part) {
    return part == "a" || part == "my file" ? std::optional<std::string>("/there/" + part)
                                            : std::nullopt;
  };
  const std::pair<const char*, const char*> cases[] = {
      {"a", "/there/a"},     {"my file", "/there/my file"},       {"--x=a", "--x=/there/a"},
      {"-Ia", "-I/there/a"}, {"a:b:a", "/there/a:b:/there/a"},    {":a:", ":/there/a:"},
      {"ab", "ab"},          {"./b; cat a", "./b; cat /there/a"},
  };
  for (const auto& [word, replaced] : cases) EXPECT_EQ(replace_paths(word, replace), replaced);
}

}  // namespace word_paths_test
}  // namespace weir::config
