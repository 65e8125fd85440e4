// What of a command line others may see.
#include "gate/report/shown_command.hpp"

#include <gtest/gtest.h>

namespace weir::report {
namespace {

TEST(ShownCommand, NeverShowsWhatAnAddressAsksFor) {
  struct Case {
    std::vector<std::string> words;
    const char* hidden;
    const char* shown;
  };
  const Case cases[] = {
      {{"curl", "https://h/p?api_key=abc"}, "curl p?***", "curl https://h/p?***"},
      {{"curl", "--url", "https://h/p?a=1&token=b/c"},
       "curl --url p?***",
       "curl --url https://h/p?***"},
      {{"curl", "--url=https://h/p?token=b/c"}, "curl --url=p?***", "curl --url=https://h/p?***"},
      {{"e", "URL=https://h/p?sig=b/c"}, "e URL=p?***", "e URL=https://h/p?***"},
      {{"e", "model-?.gguf"}, "e 'model-?.gguf'", "e 'model-?.gguf'"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(shown_command(one.words, Private::hidden), one.hidden);
    EXPECT_EQ(shown_command(one.words, Private::shown), one.shown);
  }
}

TEST(ShownCommand, NeverShowsSecretsByTheNameOfTheirOption) {
  const std::vector<std::string> words = {"e", "--api-key", "abc", "--hf-token=def", "-n", "8"};
  for (const Private how : {Private::hidden, Private::shown}) {
    EXPECT_EQ(shown_command(words, how), "e --api-key *** --hf-token=*** -n 8");
  }
}

}  // namespace
}  // namespace weir::report
