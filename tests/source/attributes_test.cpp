// Tests which lines of .gitattributes can change what a checkout contains.
#include "gate/source/attributes.hpp"

#include <gmock/gmock.h>

namespace weir::source {
namespace attributes_test {

TEST(Attributes, OfContentsAreTextEncodingsFiltersAndMacros) {
  const struct {
    const char* line;
    bool counts;
  } cases[] = {
      {"* text=auto", true},
      {"*.dat -text", true},
      {"*.dat  eol=crlf # no comment", true},
      {"*.dat crlf", true},
      {"*.bin filter=lfs diff=lfs merge=lfs", true},
      {"*.txt ident", true},
      {"*.txt working-tree-encoding=UTF-16", true},
      {"*.png binary", true},
      {"*.png !text", true},
      {"*.dat my-macro", true},
      {"[attr]diff filter=x", true},
      {"\"a b.dat\" text", true},
      {"# *.dat text", false},
      {"", false},
      {"*.dat", false},
      {"*.gen linguist-generated -diff merge=ours", false},
      {"docs/ export-ignore whitespace=tab-in-indent", false},
      {"*.cpp diff=cpp\r", false},
  };
  for (const auto& [line, counts] : cases)
    EXPECT_EQ(content_attributes(line).size(), counts ? 1U : 0U) << line;
  EXPECT_EQ(content_attributes("b\ttext\n\n# x\na  eol=lf \n"),
            (std::vector<std::string>{"b text", "a eol=lf"}));
}

TEST(Attributes, ConcernTheFilesThatTheirPatternMayMatch) {
  const struct {
    const char *line, *folder;
    bool concerns;
  } cases[] = {
      {"*.png binary", "", false},   {"*.json binary", "", true},     {"*.JSON binary", "", true},
      {"w.* text", "", true},        {"w.?son text", "", true},       {"w.[jx]son text", "", true},
      {"[ab].json text", "", true},  {"\\w.json text", "", true},     {"\"w.json\" text", "", true},
      {"[attr]mine text", "", true}, {"in/*.json text", "", true},    {"/in/w.json text", "", true},
      {"/w.json text", "", false},   {"out/** text", "", false},      {"in/** text", "", true},
      {"**/w.json text", "", true},  {"in/**/w.json text", "", true}, {"*.json text", "in", true},
      {"/w.json text", "in", true},  {"*.json text", "out", false},
  };
  const std::vector<std::string> paths{"in/w.json", "model.bin"};
  for (const auto& [line, folder, concerns] : cases)
    EXPECT_EQ(may_concern(line, folder, paths), concerns) << line << " in " << folder;
}

}  // namespace attributes_test
}  // namespace weir::source
