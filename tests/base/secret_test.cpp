// Tests the masking of secrets in texts, and the encodings that it looks for.
#include "gate/base/secret.hpp"

#include <type_traits>

#include <gtest/gtest.h>

#include "gate/base/encode.hpp"

namespace weir {
namespace secret_test {

static_assert(!fmt::is_formattable<Secret>::value, "a secret does not format");
static_assert(!std::is_convertible_v<Secret, std::string>, "nor become text by itself");

constexpr const char* k_token = "ghp_Not+A/Real?Token=1";

std::string masked(const std::string& text) {
  Masker masker;
  masker.add(Secret(k_token));
  return masker.mask(text);
}

TEST(Masker, TakesASecretOutInEveryForm) {
  struct Case {
    const char* form;
    std::string text, expected;
  };
  const Case cases[] = {
      {"plain", std::string("Authorization: Bearer ") + k_token, "Authorization: Bearer ***"},
      {"twice", std::string(k_token) + " " + k_token, "*** ***"},
      {"percent-encoded", "?access_token=ghp_Not%2BA%2FReal%3FToken%3D1&x", "?access_token=***&x"},
      {"percent-encoded in small digits", "?t=ghp_Not%2bA%2fReal%3fToken%3d1&x", "?t=***&x"},
      {"nothing to hide", "nothing to hide: ghp_ alone", "nothing to hide: ghp_ alone"},
  };
  for (const Case& c : cases) EXPECT_EQ(masked(c.text), c.expected) << c.form;
}

TEST(Masker, TakesASecretOutOfBase64WhateverStandsAroundIt) {
  // All that a reader could get back of what is left is less than four bytes at each end.
  for (const char* before : {"", "x", "xy", "user:", "x-access-token:"}) {
    for (const char* after : {"", "x", "xy", "\n"}) {
      const std::string coded = base64(before + std::string(k_token) + after);
      const std::string left = masked("basic " + coded);
      EXPECT_NE(left.find("***"), std::string::npos) << coded;
      EXPECT_LT(left.size(), 6 + 3 + coded.size() - 27) << coded << " -> " << left;
    }
  }
}

TEST(Masker, LeavesShortSecretsAlone) {
  Masker masker;
  masker.add(Secret(""));
  masker.add(Secret("abc"));
  EXPECT_EQ(masker.mask("abcabc abc"), "abcabc abc");
}

// Words that were cut before anybody looked for secrets in them.
TEST(Masker, AlsoFindsThePartThatACutLeft) {
  Masker masker;
  masker.add(Secret("SECRETTOKEN0123456789"));
  const std::pair<const char*, const char*> cases[] = {
      {"said SECRETTOKEN0123456789 back", "said *** back"},
      {"said SECRETTOKEN01…", "said ***…"},
      {"said SECRET", "said ***"},
      {"23456789 was said", "*** was said"},
      {"nothing of SECRE", "nothing of SECRE"},
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(masker.mask_with_parts(text), shown);
}

TEST(Encode, CodesBase64AsRfc4648Does) {
  // RFC 4648, section 10.
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [plain, coded] : cases) {
    EXPECT_EQ(base64(plain), coded);
    EXPECT_EQ(decode_base64(coded).value_or("none"), plain);
  }
  EXPECT_EQ(decode_base64("Zm9v\nYmFy\n").value_or("none"), "foobar");
  for (const char* text : {"Zg", "Zg=", "Z===", "Zg==Zg==", "Zh==", "Zm9*", "Zm9v="}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
}

TEST(Encode, EncodesAllButUnreservedCharactersWithPercent) {
  EXPECT_EQ(percent_encode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encode("a/b c?&=#%\n\xC3\xA9"), "a%2Fb%20c%3F%26%3D%23%25%0A%C3%A9");
}

}  // namespace secret_test
}  // namespace weir
