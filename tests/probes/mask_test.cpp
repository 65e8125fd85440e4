// Which rows of a mask of attention are the next tokens of sequences of their own.
#include "gate/probes/inject/ggml/mask.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gate/base/text.hpp"

namespace weir_probe {
namespace mask_test {

// Lines of places: x is attended to. The places of the rows' own tokens are the last ones.
template <class Value>
std::uint64_t rows_apart(const std::string& drawn, Value closed, std::int64_t sheets) {
  std::vector<Value> values;
  std::int64_t rows = 0;
  for (const std::string_view line : weir::text::lines(drawn)) {
    for (const char place : line) values.push_back(place == 'x' ? Value{0} : closed);
    ++rows;
  }
  const auto places = static_cast<std::int64_t>(values.size()) / rows;
  return MaskValues<Value>{values.data(), closed, places, rows / sheets, sheets}.independent_rows();
}

TEST(Mask, RowsAreApartThatEachAttendToATokenOfTheirOwn) {
  const struct {
    const char* what;
    const char* drawn;
    std::int64_t sheets;
    std::uint64_t expected;
  } cases[] = {
      {"one token", "xxx.\n", 1, 1},
      {"a prompt", "x...\nxx..\nxxx.\nxxxx\n", 1, 0},
      {"the rest of a prompt", "xxx.\nxxxx\n", 1, 0},
      {"no causal mask", "xx\nxx\n", 1, 0},
      {"three sequences", "x..x..\n.x..x.\n..x..x\n", 1, 3},
      {"the same, with a prompt that they share", "xxx..\nxx.x.\nxx..x\n", 1, 3},
      {"new tokens in the places of older ones", "x.xx\n.xxx\n", 1, 2},
      {"two sequences, and the prompt of a third", "x...\n.x..\n..x.\n..xx\n", 1, 0},
      {"a prompt in a sliding window", "xxx..\n.xxx.\n..xxx\n", 1, 0},
      {"a token and what is guessed to follow it in two ways", "xx..\nxxx.\nxx.x\n", 1, 0},
      {"rows that pad", "x.x.\n.x.x\n....\n....\n", 1, 2},
      {"a cache for each sequence", "xx.\nxxx\n", 2, 2},
      {"the same, of two prompts", "x..\nxx.\nx..\nxx.\n", 2, 0},
      {"nothing", "...\n...\n", 1, 0},
  };
  for (const auto& entry : cases) {
    EXPECT_EQ(rows_apart<std::uint32_t>(entry.drawn, 0xFF800000U, entry.sheets), entry.expected)
        << entry.what;
    EXPECT_EQ(rows_apart<std::uint16_t>(entry.drawn, 0xFC00U, entry.sheets), entry.expected)
        << entry.what;
  }
}

}  // namespace mask_test
}  // namespace weir_probe
