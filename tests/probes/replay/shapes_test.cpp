// Shapes that a recording may claim: those that ggml's kernels would take, and those by which they
// would leave their tensors.
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/replay/program/program.hpp"

namespace weir::replay {
namespace shapes_test {

using profile::ReplayNode;
using profile::ReplayTensor;
using testing::HasSubstr;
using Sizes = std::array<std::int64_t, 4>;

struct Part {
  std::int64_t slot;
  const char* type;
  Sizes ne;
};

ReplayNode make_node(const char* op, const std::vector<Part>& parts) {
  ReplayNode node;
  node.op = node.description = op;
  for (const Part& part : parts) {
    ReplayTensor tensor;
    tensor.slot = part.slot;
    tensor.type = part.type;
    tensor.ne = part.ne;
    node.tensors.push_back(tensor);
  }
  return node;
}

TEST(ReplayShapes, LookUpsVisitEachPlaceOnceBeforeOneComesAgain) {
  // 7919 and 7927 are the first steps.
  for (const std::int64_t places : {1, 2, 100, 7919, 7927, 2 * 7919, 32'000}) {
    std::set<std::int64_t> visited;
    for (std::int64_t i = 0; i < places; ++i) visited.insert(spread_index(i, places));
    EXPECT_EQ(visited.size(), static_cast<std::size_t>(places)) << places;
    EXPECT_EQ(*visited.rbegin(), places - 1);
    EXPECT_EQ(spread_index(places, places), spread_index(0, places));
  }
}

TEST(ReplayShapes, AreThoseThatAnOpTakes) {
  struct Case {
    const char* op;
    std::vector<Part> parts;
    bool fits;
  };
  const Case cases[] = {
      {"MUL_MAT",
       {{0, "f32", {64, 1, 8, 1}}, {1, "f16", {32, 64, 2, 1}}, {2, "f32", {32, 1, 8, 1}}},
       true},
      {"MUL_MAT",
       {{0, "f32", {65, 1, 8, 1}}, {1, "f16", {32, 64, 2, 1}}, {2, "f32", {32, 1, 8, 1}}},
       false},
      {"MUL_MAT",
       {{0, "f32", {64, 1, 8, 1}}, {1, "f16", {32, 64, 3, 1}}, {2, "f32", {32, 1, 8, 1}}},
       false},
      {"MUL_MAT",
       {{0, "f32", {64, 1, 8, 1}}, {1, "f16", {33, 64, 2, 1}}, {2, "f32", {32, 1, 8, 1}}},
       false},
      {"MUL_MAT", {{0, "f32", {64, 1, 8, 1}}, {1, "f16", {32, 64, 2, 1}}}, false},
      {"MUL_MAT_ID",
       {{0, "f32", {64, 2, 1, 1}},
        {1, "q8_0", {32, 64, 8, 1}},
        {2, "f32", {32, 1, 1, 1}},
        {3, "i32", {2, 1, 1, 1}}},
       true},
      {"MUL_MAT_ID",
       {{0, "f32", {64, 9, 1, 1}},
        {1, "q8_0", {32, 64, 8, 1}},
        {2, "f32", {32, 1, 1, 1}},
        {3, "i32", {9, 1, 1, 1}}},
       false},
      {"ADD",
       {{0, "f32", {64, 4, 1, 1}}, {1, "f32", {64, 4, 1, 1}}, {2, "f32", {64, 1, 1, 1}}},
       true},
      {"ADD",
       {{0, "f32", {64, 4, 1, 1}}, {1, "f32", {64, 4, 1, 1}}, {2, "f32", {63, 1, 1, 1}}},
       false},
      {"ADD",
       {{0, "f32", {64, 4, 1, 1}}, {1, "f32", {64, 4, 1, 1}}, {2, "f32", {0, 1, 1, 1}}},
       false},
      {"RMS_NORM", {{0, "f32", {64, 4, 1, 1}}, {1, "f32", {64, 4, 1, 1}}}, true},
      {"RMS_NORM", {{0, "f32", {64, 5, 1, 1}}, {1, "f32", {64, 4, 1, 1}}}, false},
      {"RMS_NORM", {{0, "f16", {64, 4, 1, 1}}, {1, "f32", {64, 4, 1, 1}}}, false},
      {"CPY", {{0, "f16", {64, 4, 1, 1}}, {1, "f32", {4, 64, 1, 1}}}, true},
      {"CPY", {{0, "f16", {64, 4, 1, 1}}, {1, "f32", {4, 63, 1, 1}}}, false},
      {"GET_ROWS",
       {{0, "f32", {64, 3, 1, 1}}, {1, "f16", {64, 100, 1, 1}}, {2, "i32", {3, 1, 1, 1}}},
       true},
      {"GET_ROWS",
       {{0, "f32", {64, 3, 1, 1}}, {1, "f16", {64, 100, 1, 1}}, {2, "f32", {3, 1, 1, 1}}},
       false},
      {"GET_ROWS",
       {{0, "f32", {64, 4, 1, 1}}, {1, "f16", {64, 100, 1, 1}}, {2, "i32", {3, 1, 1, 1}}},
       false},
      {"SET_ROWS",
       {{0, "f16", {64, 256, 1, 1}}, {1, "f32", {64, 1, 1, 1}}, {2, "i64", {1, 1, 1, 1}}},
       true},
      {"SET_ROWS",
       {{0, "f16", {64, 256, 1, 1}}, {1, "f32", {64, 2, 1, 1}}, {2, "i64", {1, 1, 1, 1}}},
       false},
      {"SOFT_MAX",
       {{0, "f32", {256, 1, 4, 1}}, {1, "f32", {256, 1, 4, 1}}, {2, "f16", {256, 1, 1, 1}}},
       true},
      {"SOFT_MAX",
       {{0, "f32", {256, 8, 4, 1}}, {1, "f32", {256, 8, 4, 1}}, {2, "f16", {256, 1, 1, 1}}},
       false},
      {"FLASH_ATTN_EXT",
       {{0, "f32", {64, 4, 1, 1}},
        {1, "f32", {64, 1, 4, 1}},
        {2, "f16", {64, 256, 2, 1}},
        {3, "f16", {64, 256, 2, 1}},
        {4, "f16", {256, 1, 1, 1}}},
       true},
      {"FLASH_ATTN_EXT",
       {{0, "f32", {64, 4, 1, 1}},
        {1, "f32", {64, 1, 4, 1}},
        {2, "f16", {64, 256, 2, 1}},
        {3, "f16", {64, 255, 2, 1}},
        {4, "f16", {256, 1, 1, 1}}},
       false},
      {"FLASH_ATTN_EXT",
       {{0, "f32", {64, 4, 1, 1}},
        {1, "f32", {64, 1, 4, 1}},
        {2, "f16", {64, 256, 2, 1}},
        {3, "f16", {64, 256, 2, 1}},
        {4, "f16", {128, 1, 1, 1}}},
       false},
      {"GLU",
       {{0, "f32", {64, 1, 1, 1}}, {1, "f32", {64, 1, 1, 1}}, {2, "f32", {64, 1, 1, 1}}},
       true},
      {"GLU", {{0, "f32", {64, 1, 1, 1}}, {1, "f32", {128, 1, 1, 1}}}, true},
      {"GLU", {{0, "f32", {64, 1, 1, 1}}, {1, "f32", {64, 1, 1, 1}}}, false},
      {"SSM_SCAN", {{0, "f32", {64, 1, 1, 1}}, {1, "f32", {64, 1, 1, 1}}}, false},
  };
  for (const Case& entry : cases) {
    const ReplayNode node = make_node(entry.op, entry.parts);
    EXPECT_EQ(shape_problem(node).empty(), entry.fits)
        << entry.op << " " << profile::shape_text(node) << ": " << shape_problem(node);
  }
  EXPECT_THAT(shape_problem(make_node("SSM_SCAN", {})), HasSubstr("no rule"));
}

TEST(ReplayShapes, ARotationTurnsNoMoreThanARow) {
  ReplayNode node = make_node(
      "ROPE", {{0, "f32", {64, 4, 1, 1}}, {1, "f32", {64, 4, 1, 1}}, {2, "i32", {1, 1, 1, 1}}});
  struct Case {
    std::int32_t turning, mode;
    bool fits;
  };
  // Mode 8: four positions a token.
  for (const Case& entry :
       {Case{64, 0, true}, Case{64, 2, true}, Case{32, 0, true}, Case{66, 0, false},
        Case{-2, 0, false}, Case{63, 0, false}, Case{64, 8, false}}) {
    node.params[1] = entry.turning;
    node.params[2] = entry.mode;
    EXPECT_EQ(shape_problem(node).empty(), entry.fits) << entry.turning << ", mode " << entry.mode;
  }
}

TEST(ReplayShapes, ATensorEndsWhereItsLastBlockDoes) {
  ReplayTensor tensor;
  tensor.ne = {64, 3, 2, 1};
  tensor.nb = {34, 100, 1000, 5000};
  tensor.offset = 10;
  // Blocks of 32 elements in 34 bytes (q8_0): 10 + 1*34 + 2*100 + 1*1000 + 34.
  EXPECT_EQ(end_of(tensor, {34, 32}), 1278);
  struct Case {
    const char* what;
    std::function<void(ReplayTensor&)> change;
  };
  const Case cases[] = {
      {"no whole blocks", [](ReplayTensor& t) { t.ne[0] = 33; }},
      {"nothing in it", [](ReplayTensor& t) { t.ne[2] = 0; }},
      {"few bytes without end",
       [](ReplayTensor& t) {
         t.ne[2] = 1 << 20;
         t.nb[2] = 0;
       }},
      {"more than there can be", [](ReplayTensor& t) { t.ne[3] = t.nb[3] = 1LL << 42; }},
  };
  for (const Case& entry : cases) {
    ReplayTensor changed = tensor;
    entry.change(changed);
    EXPECT_FALSE(end_of(changed, {34, 32})) << entry.what;
  }
  EXPECT_FALSE(end_of(tensor, {0, 0})) << "no such type";
}

// Whatever sizes and strides a recording claims: an answer, and no arithmetic that overflows (the
// sanitizers' build says so).
TEST(ReplayShapes, RandomNumbersHaveAnAnswer) {
  std::mt19937_64 random(1);
  const auto number = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() >> (random() % 64)) & (most - 1);
  };
  const char* const ops[] = {
      "MUL_MAT", "MUL_MAT_ID",     "ADD",  "CPY",    "GET_ROWS", "SET_ROWS", "SOFT_MAX",
      "GLU",     "FLASH_ATTN_EXT", "ROPE", "REPEAT", "SUM_ROWS", "RMS_NORM", "ARGSORT"};
  const char* const types[] = {"f32", "f16", "i32", "i64", "q8_0"};
  for (int i = 0; i < 10'000; ++i) {
    std::vector<Part> parts;
    for (std::int64_t slot = 0; slot <= 5; ++slot) {
      if (slot > 0 && random() % 3 == 0) continue;
      parts.push_back({slot,
                       types[random() % 5],
                       {number(1LL << 42), number(1LL << 42), number(4), number(1LL << 42)}});
    }
    ReplayNode node = make_node(ops[random() % std::size(ops)], parts);
    (void)shape_problem(node);
    for (ReplayTensor& tensor : node.tensors) {
      for (std::int64_t& stride : tensor.nb) stride = number(1LL << 42);
      const auto end = end_of(tensor, {34, 32});
      EXPECT_GE(end.value_or(34), 34);
    }
  }
}

// Each of these made a kernel of ggml's write beyond its result, or read beyond a source.
TEST(ReplayShapes, LieSoThatAKernelMayTrustThem) {
  struct Case {
    const char *what, *op;
    std::int64_t slot;
    Sizes ne, nb;
    const char* says;  // "": it may
  };
  const Case cases[] = {
      {"rows side by side", "RMS_NORM", 0, {8, 4, 2, 1}, {4, 32, 128, 256}, ""},
      {"rows with room", "ROPE", 0, {8, 4, 2, 1}, {4, 64, 256, 512}, ""},
      {"one row, whatever its strides", "ADD", 0, {8, 1, 1, 1}, {4, 0, 0, 0}, ""},
      {"numbers on top of each other", "RMS_NORM", 0, {8, 4, 1, 1}, {1, 8, 32, 32}, "numbers"},
      {"the same of a source", "RMS_NORM", 1, {8, 4, 1, 1}, {1, 8, 32, 32}, "numbers"},
      {"a source that stands across", "MUL_MAT", 1, {8, 4, 1, 1}, {16, 4, 128, 128}, ""},
      {"a result that stands across", "ADD", 0, {8, 4, 1, 1}, {16, 4, 128, 128}, "side by side"},
      {"the same, copied to", "CPY", 0, {8, 4, 1, 1}, {16, 4, 128, 128}, ""},
      {"heads on top of each other", "FLASH_ATTN_EXT", 0, {8, 4, 2, 1}, {4, 32, 32, 32}, "rows"},
      {"rows put by strides", "SET_ROWS", 0, {8, 4, 2, 1}, {4, 64, 32, 256}, ""},
  };
  for (const Case& c : cases) {
    ReplayTensor tensor;
    tensor.slot = c.slot;
    tensor.ne = c.ne;
    tensor.nb = c.nb;
    const std::string problem = layout_problem(c.op, tensor, {4, 1});
    EXPECT_EQ(problem.empty(), *c.says == '\0') << c.what << ": " << problem;
    EXPECT_THAT(problem, HasSubstr(c.says)) << c.what;
  }
}

TEST(ReplayShapes, HaveTypesThatTheirKernelWrites) {
  EXPECT_NE(shape_problem(make_node(
                "GET_ROWS",
                {{0, "i8", {32, 4, 1, 1}}, {1, "f32", {32, 64, 1, 1}}, {2, "i32", {4, 1, 1, 1}}})),
            "");
  EXPECT_NE(
      shape_problem(make_node("SOFT_MAX", {{0, "i8", {32, 4, 1, 1}}, {1, "f32", {32, 4, 1, 1}}})),
      "");
}

}  // namespace shapes_test
}  // namespace weir::replay
