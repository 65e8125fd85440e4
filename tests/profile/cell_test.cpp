// Names of cells.
#include "gate/profile/cell.hpp"

#include <gtest/gtest.h>

namespace weir::profile {
namespace cell_test {

TEST(CellName, ReadsBackExactlyWhatItWrites) {
  for (const char* text : {
           "llama.cpp/tiny-llama/vulkan/decode",
           "llama.cpp@fused/tiny-llama/vulkan/decode",
           "e/m/b/long@d256",
           "e/m/b/long@d0",
           "e/m/b/chat@c4",
           "e@v/m/b/chat@d16@c4",
           "e/m/b/decode@t4",
           "e/m/b/decode@d16@tall",
       }) {
    const auto key = CellKey::parse(text);
    ASSERT_TRUE(key) << text;
    EXPECT_EQ(key->str(), text);
  }
}

TEST(CellName, PutsVariantDepthAndConcurrencyWhereTheyBelong) {
  const auto key = CellKey::parse("llama.cpp@fused/m/b/long@d256@c4");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->engine, "llama.cpp");
  EXPECT_EQ(key->variant, "fused");
  EXPECT_EQ(key->prompt, "long");
  EXPECT_EQ(key->depth, 256);
  EXPECT_EQ(key->concurrency, 4);
  EXPECT_EQ(CellKey::parse("e/m/b/p")->variant, "default");
}

TEST(CellName, RefusesWhatIsNotFourNamesInTheirOneSpelling) {
  const std::string long_name(65, 'a');
  for (const std::string& text : {std::string(),
                                  std::string("a/b/c"),
                                  std::string("a/b/c/d/e"),
                                  std::string("a//c/d"),
                                  std::string("../b/c/d"),
                                  std::string("a/../c/d"),
                                  std::string("a/b/c/d@x4"),
                                  std::string("a/b/c/d@d"),
                                  std::string("a/b/c/d@d04"),
                                  std::string("a/b/c/d@d-1"),
                                  std::string("a/b/c/d@c4@d2"),
                                  std::string("a/b/c/d@d1@d2"),
                                  std::string("a/b/c/d@t0"),
                                  std::string("a/b/c/d@tall@d1"),
                                  std::string("a/b/c/d@t1@t2"),
                                  std::string("a@default/b/c/d"),
                                  std::string("a@/b/c/d"),
                                  std::string("a@b@c/b/c/d"),
                                  long_name + "/b/c/d",
                                  std::string("a/b/c/d\n"),
                                  std::string("a\0/b/c/d", 8),
                                  std::string(1 << 20, '/')}) {
    EXPECT_FALSE(CellKey::parse(text)) << text.substr(0, 80);
  }
}

TEST(CellName, KeepsNamesFitToBeFolders) {
  EXPECT_TRUE(valid_name("a"));
  EXPECT_TRUE(valid_name("Q4_K.m-1"));
  EXPECT_TRUE(valid_name(std::string(64, 'a')));
  for (const char* name : {"", ".", "..", ".a", "-a", "_a", "a b", "a/b", "a@b", "\xC3\xA4"}) {
    EXPECT_FALSE(valid_name(name)) << name;
  }
}

}  // namespace cell_test
}  // namespace weir::profile
