// Differences between two pieces of code of a kernel.
#include "gate/explain/code_changes.hpp"

#include <gmock/gmock.h>

#include "gate/explain/spirv.hpp"
#include "gate/explain/spirv_values.hpp"

namespace weir::explain {
namespace code_changes_test {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

// Variants of kernel.comp, compiled with different definitions (tests/CMakeLists.txt).
using Words = std::vector<std::uint32_t>;
const Words k_plain =
#include "kernel_plain.inc"
    ;
const Words k_rolled =
#include "kernel_ROLLED.inc"
    ;
const Words k_half =
#include "kernel_HALF.inc"
    ;
const Words k_mask =
#include "kernel_MASK.inc"
    ;
const Words k_added =
#include "kernel_ADDED.inc"
    ;
const Words k_changed_literal =
#include "kernel_OTHER_LITERAL.inc"
    ;

KernelCode code(const Words& words, std::map<std::string, std::string> options) {
  return {words, "", std::move(options)};
}

std::vector<std::string> describe_changes(const KernelCode& before, const KernelCode& now) {
  const CodeChanges changes = code_changes(before, now);
  std::vector<std::string> all = changes.lines;
  if (!changes.headline.empty()) all.insert(all.begin(), changes.headline);
  return all;
}

TEST(CodeChanges, AreNoneOfTheSameCode) {
  EXPECT_THAT(describe_changes({}, {}), IsEmpty());
  const auto same = code(k_plain, {{"constant 2", "64"}, {"subgroup size", "32"}});
  EXPECT_THAT(describe_changes(same, same), IsEmpty());
  // Setting a constant to its default changes nothing.
  EXPECT_THAT(describe_changes(code(k_plain, {}), code(k_plain, {{"constant 2", "32"}})),
              IsEmpty());
}

TEST(CodeChanges, NameConstantsAndWhatFollowsFromThem) {
  // TILE * 4 + 1 floats are 516 bytes if TILE is 32, and 1 028 if it is 64; two vec3 are 32 bytes.
  const auto tile_changes = describe_changes(code(k_plain, {{"constant 2", "32"}}),
                                             code(k_plain, {{"constant 2", "64"}}));
  EXPECT_THAT(tile_changes,
              ElementsAre("constant 2 (TILE): 32 → 64", "bytes of shared memory 548 → 1060",
                          "bytes of tile 516 → 1028"));
  EXPECT_THAT(describe_changes(code(k_plain, {{"constant 0", "32"}}),
                               code(k_plain, {{"constant 0", "64"}})),
              ElementsAre("constant 0: 32 → 64", "local size 32 x 1 x 1 → 64 x 1 x 1"));
}

TEST(CodeChanges, ShowFloatsAndDefaultsAsTheSourceHasThem) {
  // 0x3e800000 is 0.25 as a float.
  EXPECT_THAT(describe_changes(code(k_plain, {}), code(k_plain, {{"constant 3", "1048576000"}})),
              ElementsAre("constant 3 (SCALE): 0.5 → 0.25"));
  // Probes print numbers of 32 bits with a sign; -2147483648 is a float of -0.0. The code reads -1
  // as 4 294 967 295, and 4 294 967 293 floats remain in 32 bits.
  EXPECT_THAT(describe_changes(code(k_plain, {}), code(k_plain, {{"constant 3", "-2147483648"}})),
              ElementsAre("constant 3 (SCALE): 0.5 → -0.0"));
  EXPECT_THAT(describe_changes(code(k_plain, {}), code(k_plain, {{"constant 2", "-1"}})),
              ElementsAre("constant 2 (TILE): 32 → -1", "bytes of shared memory 548 → 17179869204",
                          "bytes of tile 516 → 17179869172"));
  EXPECT_THAT(describe_changes(code(k_plain, {}), code(k_plain, {{"constant 4", "1"}})),
              ElementsAre("constant 4 (CAUSAL): 0 → 1"));
  EXPECT_THAT(
      describe_changes(code(k_plain, {{"constant 9", "1"}}), code(k_plain, {{"constant 9", "2"}})),
      ElementsAre("constant 9: 1 → 2 (the code does not have it)"));
}

TEST(CodeChanges, PutSeveralOptionsIntoTheHeadline) {
  const CodeChanges changes = code_changes(
      {{}, "a", {{"constant 1", "1"}, {"constant 10", "7"}, {"subgroup size", "32"}}},
      {{}, "a", {{"constant 1", "2"}, {"constant 10", "8"}, {"full subgroups", "yes"}}});
  EXPECT_EQ(changes.headline,
            "constant 1: 1 → 2, constant 10: 7 → 8, full subgroups: not set → yes");
  EXPECT_THAT(changes.lines, ElementsAre("subgroup size: 32 → not set"));
}

TEST(CodeChanges, NameWhatDiffersInTheCodeItself) {
  struct Case {
    const Words& changed;
    const char* headline;
    const char* line;
  };
  // Variants of kernel.comp have one loop. In HALF a FLOAT is a half, MASK has one more binding,
  // and ADDED turns one product into a sum.
  const Case cases[] = {
      {k_rolled, "loops with DontUnroll 0 → 1, loops with Unroll 1 → 0", nullptr},
      // Instructions that do the work in another way come first.
      {k_half, "16-bit float arithmetic instructions 0 → 2", "bytes of shared memory 548 → 290"},
      {k_mask, "bindings new: set 0 binding 2", "instructions "},
      {k_added, "OpFAdd 2 → 3, OpFMul 2 → 1", nullptr},
      {k_changed_literal, "literals gone: 0.125; new: 0.375", nullptr},
  };
  for (const Case& entry : cases) {
    const CodeChanges changes = code_changes(code(k_plain, {}), code(entry.changed, {}));
    EXPECT_EQ(changes.headline, entry.headline);
    if (entry.line == nullptr) continue;
    EXPECT_THAT(changes.lines, Contains(testing::StartsWith(entry.line))) << entry.headline;
  }
}

TEST(CodeChanges, SaySoWhereNothingThatIsCountedDiffers) {
  Words find_swapped = k_plain;  // operands of the last OpStore
  for (std::size_t at = 5, last = 0; at < find_swapped.size(); at += find_swapped[at] >> 16) {
    if ((find_swapped[at] & 0xffff) == 62) last = at;
    if (at + (find_swapped[at] >> 16) == find_swapped.size())
      std::swap(find_swapped[last + 1], find_swapped[last + 2]);
  }
  EXPECT_THAT(describe_changes(code(k_plain, {}), code(find_swapped, {})),
              ElementsAre("the same instructions, with other operands or in another order"));
}

TEST(CodeChanges, AreThoseOfOptionsWhereOneSideIsKnownByItsHashAlone) {
  // Names and defaults come from the other side's code if it is the same.
  EXPECT_THAT(describe_changes({{}, "abc", {}},
                               {k_plain, "abc", {{"constant 2", "32"}, {"constant 3", "0"}}}),
              ElementsAre("constant 3 (SCALE): 0.5 → 0.0"));
  EXPECT_THAT(describe_changes({{}, "abc", {{"constant 2", "16"}}}, {k_plain, "abd", {}}),
              ElementsAre("constant 2 (TILE): 16 → 32", "other SPIR-V"));
}

TEST(CodeChanges, OfSeveralPipelinesAreThoseOfTheOnesThatAreMostAlike) {
  const auto with = [](const Words& words, const char* tile, const char* type) {
    return code(words, {{"constant 2", tile}, {"constant 9", type}});
  };
  const auto all =
      code_changes({with(k_plain, "32", "12"), with(k_plain, "32", "14"), with(k_half, "8", "1")},
                   {with(k_plain, "64", "14"), with(k_half, "8", "1"), with(k_plain, "64", "12")});
  ASSERT_EQ(all.size(), 2U);  // the third is the same on both sides
  for (const CodeChanges& changes : all) EXPECT_EQ(changes.headline, "constant 2 (TILE): 32 → 64");
}

TEST(CodeChanges, OfSeveralPipelinesSayWhichBecameWhich) {
  const auto hashed = [](const char* hash, const char* type, const char* tile) {
    KernelCode kernel_code = code(k_plain, {{"constant 2", tile}, {"constant 9", type}});
    kernel_code.hash = hash;
    return kernel_code;
  };
  const auto all = code_changes({hashed("a12", "12", "32"), hashed("a14", "14", "32")},
                                {hashed("b14", "14", "64"), hashed("b12", "12", "64")});
  ASSERT_EQ(all.size(), 2U);
  for (const CodeChanges& changes : all) EXPECT_EQ(changes.before.substr(1), changes.now.substr(1));
  // Another hash is reported even if nothing else is known to differ.
  using Several = std::vector<KernelCode>;
  const Several was{hashed("a", "1", "2")}, is{hashed("b", "1", "2")};
  EXPECT_EQ(code_changes(was, is).size(), 1U);
  EXPECT_TRUE(code_changes(was, was).empty());
}

TEST(CodeChanges, OfWhatIsNoSpirvAreThoseOfOptions) {
  Words cut = k_plain;
  cut[5] |= 0xffff0000;
  EXPECT_THAT(describe_changes(code(k_plain, {}), code(cut, {{"constant 2", "64"}})).back(),
              testing::StartsWith("the code could not be read: SPIR-V with an instruction of"));
}

TEST(Spirv, IsRefusedWhereItIsNone) {
  const Words nothing, foreign{1, 2, 3, 4, 5}, empty{0x07230203, 0, 0, 0, 0, 0};
  for (const Words& words : {nothing, foreign, empty}) EXPECT_FALSE(read_spirv(words, {}));
}

TEST(Spirv, OfUnknownTypesHasNoSizes) {
  // The module declares a Workgroup variable before its type.
  const Words words{0x07230203, 0x10000, 0, 9, 0, 0x4003b, 1, 2,
                    4,          0x40020, 1, 4, 3, 0x30016, 3, 32};
  const auto facts = read_spirv(words, {});
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->shared_bytes, std::nullopt);
}

// Assembles SPIR-V from words: a header, and instructions of {operation, operands…}.
Words assemble_module(const std::vector<Words>& instructions) {
  Words out = {0x07230203, 0x00010600, 0, 100, 0};
  for (const auto& instruction : instructions) {
    out.push_back(static_cast<std::uint32_t>(instruction.size()) << 16 | instruction.front());
    out.insert(out.end(), instruction.begin() + 1, instruction.end());
  }
  return out;
}

TEST(Spirv, TellsTheThreadsOfAGroup) {
  // Numbers of the SPIR-V specification: 15 OpEntryPoint, 16 OpExecutionMode, 331 …ModeId, 71
  // OpDecorate, 43 OpConstant, 50 OpSpecConstant, 51 OpSpecConstantComposite, 54 OpFunction.
  const Words entry = {15, 5, 1, 0}, literal = {16, 1, 17, 32, 2, 3};
  const Words eight = {43, 9, 21, 8}, special = {50, 9, 22, 4};
  const Words number = {71, 22, 1, 7};  // constant 22 is specialized as 7
  const Words by_ids = {331, 1, 38, 21, 22, 21};
  const Words built_in = {71, 23, 11, 25}, size = {51, 9, 23, 22, 22, 21};
  const SpirvConstants plain, specialized = {{7, 16}};
  struct Case {
    const char* why;
    std::vector<Words> instructions;
    const SpirvConstants& constants;
    std::optional<std::uint64_t> threads;
  };
  const std::vector<Case> cases = {
      {"literals", {entry, literal}, plain, 32 * 2 * 3},
      {"ids, the default", {entry, by_ids, number, eight, special}, plain, 8 * 4 * 8},
      {"ids, specialized", {entry, by_ids, number, eight, special}, specialized, 8 * 16 * 8},
      {"built in",
       {entry, literal, built_in, number, eight, special, size},
       specialized,
       16 * 16 * 8},
      {"not said", {entry}, plain, {}},
      {"an id that is no constant", {entry, by_ids}, plain, {}},
      {"two entry points", {entry, entry, literal}, plain, {}},
      {"too late", {entry, {54, 1, 2, 0, 3}, literal}, plain, {}},
      {"too many", {entry, {16, 1, 17, 0xffffffff, 0xffffffff, 2}}, plain, {}},
      {"half an instruction", {entry, {16, 1}}, plain, {}}};
  for (const Case& test_case : cases) {
    const auto facts = read_spirv(assemble_module(test_case.instructions), test_case.constants);
    ASSERT_TRUE(facts) << test_case.why;
    EXPECT_EQ(facts->threads, test_case.threads) << test_case.why;
  }
}

TEST(Spirv, ComputesConstantsAsACompilerDoes) {
  struct Case {
    std::uint32_t instruction;
    std::vector<std::uint64_t> operands;
    std::optional<std::uint64_t> result;
  };
  // Instruction numbers as in the SPIR-V specification, 32 bits.
  const Case cases[] = {
      {128, {0xffffffff, 2}, 1}, {130, {1, 2}, 0xffffffff},   {132, {0x10000, 0x10001}, 0x10000},
      {134, {7, 2}, 3},          {134, {7, 0}, std::nullopt}, {137, {7, 0}, std::nullopt},
      {169, {0, 5, 6}, 6},       {169, {1, 5, 6}, 5},         {170, {3, 3}, 1},
      {176, {3, 4}, 1},          {196, {1, 4}, 16},           {129, {1, 1}, std::nullopt},
      {128, {}, std::nullopt},
  };
  for (const Case& entry : cases) {
    EXPECT_EQ(fold(entry.instruction, entry.operands), entry.result) << entry.instruction;
  }
  EXPECT_EQ(number_text(0x3555, 16), "0.333251953125");  // the half nearest to a third
  EXPECT_EQ(number_text(0x3f000000, 32), "0.5");
  EXPECT_EQ(number_text(0x40000000, 32), "2.0");  // and no whole number
  EXPECT_EQ(number_text(7, 0), "7");
}

}  // namespace code_changes_test
}  // namespace weir::explain
