// Tests which words of a command line are shown to others.
#include <gtest/gtest.h>

#include "gate/report/hiding.hpp"

namespace weir::report {
namespace shown_command_test {

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
  for (const Case& test_case : cases) {
    EXPECT_EQ(shown_command(test_case.words, PrivateWords::hidden), test_case.hidden);
    EXPECT_EQ(shown_command(test_case.words, PrivateWords::shown), test_case.shown);
  }
}

TEST(ShownCommand, TakesALineThatSomebodyElseWroteDown) {
  struct Case {
    const char* line;
    const char* hidden;
  };
  const Case cases[] = {
      {"/a/llama-bench -m /b/x.gguf -n 8", "llama-bench -m x.gguf -n 8"},
      {"e -p 'tell me' -n 8", "e -p <7 bytes> -n 8"},
      {"e -p tell me all -n 8", "e -p <11 bytes> -n 8"},  // quotes were left out
      {"e --prompt=tell me all --x", "e --prompt=<11 bytes> --x"},
      {"e -p 512 -n 8", "e -p 512 -n 8"},
      {"e \"/a b/c d\" \\ e", "e <8 bytes> <2 bytes>"},
      {"e 'never closed", "e <12 bytes>"},
      {"C:\\bin\\e.exe -m C:\\Users\\ann\\f.gguf", "e.exe -m f.gguf"},
      {"e -m=\\\\nas\\ann\\f.gguf", "e -m=f.gguf"},
      {"e \"C:\\a b\\f.gguf\"", "e f.gguf"},
      {"e --passphrase abc --passes 3", "e --passphrase *** --passes 3"},
      {"", ""},
  };
  for (const Case& test_case : cases) {
    EXPECT_EQ(shown_command_line(test_case.line, PrivateWords::hidden), test_case.hidden)
        << test_case.line;
  }
  EXPECT_EQ(shown_command_line("/a/e -p 'tell me' --api-key k", PrivateWords::shown),
            "/a/e -p 'tell me' --api-key ***");
}

TEST(ShownCommand, CutsPlacesOfWindowsInWhatWasSaid) {
  const std::pair<const char*, const char*> cases[] = {
      {"cannot open C:\\Users\\ann\\f.gguf: no", "cannot open f.gguf: no"},
      {"cannot open \"c:/Users/ann/f.gguf\"", "cannot open \"f.gguf\""},
      {"at \\\\nas\\ann\\f.gguf", "at f.gguf"},
      {"file=D:\\x\\y", "file=y"},
      {"10:30 a:b x\\y", "10:30 a:b x\\y"},
      {"see /home/ann/f and https://h/p", "see f and https:p"},
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(without_places(text), shown) << text;
}

TEST(ShownCommand, LeavesNamesWithSlashesInPeace) {
  const std::pair<const char*, const char*> cases[] = {
      {"/home/ann/proj/train.py(12): forward", "train.py(12): forward"},
      {"/proj/train.py(12): forward", "train.py(12): forward"},
      {"/model/layers.0/attn/MatMul", "/model/layers.0/attn/MatMul"},
      {"C:\\p\\train.py(12): forward", "train.py(12): forward"},
      {"a / b", "a / b"},
  };
  for (const auto& [name, shown] : cases) {
    EXPECT_EQ(without_places(name, Paths::certain), shown) << name;
  }
}

TEST(ShownCommand, NeverShowsSecretsByTheNameOfTheirOption) {
  const std::vector<std::string> words = {"e", "--api-key", "abc", "--hf-token=def", "-n", "8"};
  for (const PrivateWords how : {PrivateWords::hidden, PrivateWords::shown}) {
    EXPECT_EQ(shown_command(words, how), "e --api-key *** --hf-token=*** -n 8");
  }
}

}  // namespace shown_command_test
}  // namespace weir::report
