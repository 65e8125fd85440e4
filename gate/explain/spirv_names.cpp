#include "gate/explain/spirv_names.hpp"

#include <map>
#include <string_view>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::explain {
namespace {

using Names = std::map<std::uint32_t, std::string>;

// "61 Load 62 Store".
Names names_of(std::string_view text) {
  Names names;
  const std::vector<std::string> words = text::split(text, ' ');
  for (std::size_t at = 0; at + 1 < words.size(); at += 2) {
    names[static_cast<std::uint32_t>(*text::to_int(words[at]))] = words[at + 1];
  }
  return names;
}

const Names k_instructions = names_of(
    "54 Function 57 FunctionCall 59 Variable 61 Load 62 Store 65 AccessChain "
    "77 VectorExtractDynamic 79 VectorShuffle 80 CompositeConstruct 81 CompositeExtract "
    "82 CompositeInsert 109 ConvertFToU 110 ConvertFToS 111 ConvertSToF 112 ConvertUToF "
    "113 UConvert 114 SConvert 115 FConvert 120 ConvertUToPtr 124 Bitcast 126 SNegate "
    "127 FNegate 128 IAdd 129 FAdd 130 ISub 131 FSub 132 IMul 133 FMul 134 UDiv 135 SDiv "
    "136 FDiv 137 UMod 139 SMod 142 VectorTimesScalar 143 MatrixTimesScalar 148 Dot "
    "151 UMulExtended 154 Any 155 All 156 IsNan 157 IsInf 164 LogicalEqual 166 LogicalOr "
    "167 LogicalAnd 168 LogicalNot 169 Select 170 IEqual 171 INotEqual 172 UGreaterThan "
    "173 SGreaterThan 174 UGreaterThanEqual 175 SGreaterThanEqual 176 ULessThan "
    "177 SLessThan 178 ULessThanEqual 179 SLessThanEqual 180 FOrdEqual 182 FOrdNotEqual "
    "183 FUnordNotEqual 184 FOrdLessThan 186 FOrdGreaterThan 188 FOrdLessThanEqual "
    "190 FOrdGreaterThanEqual 194 ShiftRightLogical 195 ShiftRightArithmetic "
    "196 ShiftLeftLogical 197 BitwiseOr 198 BitwiseXor 199 BitwiseAnd 200 Not "
    "202 BitFieldSExtract 203 BitFieldUExtract 204 BitReverse 205 BitCount "
    "224 ControlBarrier 225 MemoryBarrier 227 AtomicLoad 229 AtomicExchange 234 AtomicIAdd "
    "239 AtomicUMax 245 Phi 246 LoopMerge 247 SelectionMerge 249 Branch "
    "250 BranchConditional 251 Switch 253 Return 254 ReturnValue 255 Unreachable "
    "333 GroupNonUniformElect 334 GroupNonUniformAll 335 GroupNonUniformAny "
    "337 GroupNonUniformBroadcast 339 GroupNonUniformBallot "
    "342 GroupNonUniformBallotBitCount 343 GroupNonUniformBallotFindLSB "
    "345 GroupNonUniformShuffle 346 GroupNonUniformShuffleXor 349 GroupNonUniformIAdd "
    "350 GroupNonUniformFAdd 355 GroupNonUniformFMin 358 GroupNonUniformFMax "
    "400 CopyLogical 4450 SDot 4451 UDot 4452 SUDot 4453 SDotAccSat 4454 UDotAccSat "
    "4455 SUDotAccSat 4457 CooperativeMatrixLoadKHR 4458 CooperativeMatrixStoreKHR "
    "4459 CooperativeMatrixMulAddKHR 4460 CooperativeMatrixLengthKHR "
    "5293 CooperativeMatrixConvertNV 5366 CooperativeMatrixReduceNV "
    "5367 CooperativeMatrixLoadTensorNV 5368 CooperativeMatrixStoreTensorNV "
    "5369 CooperativeMatrixPerElementOpNV 5372 CreateTensorLayoutNV "
    "5373 TensorLayoutSetDimensionNV 5374 TensorLayoutSetStrideNV 5375 TensorLayoutSliceNV "
    "5376 TensorLayoutSetClampValueNV 5377 CreateTensorViewNV "
    "5384 TensorLayoutSetBlockSizeNV 6916 FDot2MixAcc32VALVE");
const Names k_extended = names_of(
    "1 Round 3 Trunc 4 FAbs 6 FSign 8 Floor 9 Ceil 10 Fract 13 Sin 14 Cos 21 Tanh 26 Pow "
    "27 Exp 28 Log 31 Sqrt 32 InverseSqrt 37 FMin 38 UMin 39 SMin 40 FMax 41 UMax 42 SMax "
    "43 FClamp 45 SClamp 50 Fma 58 PackHalf2x16 62 UnpackHalf2x16 73 FindILsb");
const Names k_capabilities = names_of(
    "9 Float16 10 Float64 11 Int64 22 Int16 39 Int8 61 GroupNonUniform "
    "62 GroupNonUniformVote 63 GroupNonUniformArithmetic 64 GroupNonUniformBallot "
    "65 GroupNonUniformShuffle 67 GroupNonUniformClustered 4433 StorageBuffer16BitAccess "
    "4448 StorageBuffer8BitAccess 5116 BFloat16TypeKHR 5118 BFloat16CooperativeMatrixKHR "
    "5345 VulkanMemoryModel 5347 PhysicalStorageBufferAddresses "
    "6018 DotProductInput4x8BitPacked 6019 DotProduct 6022 CooperativeMatrixKHR");
const Names k_modes = names_of(
    "4459 DenormPreserve 4460 DenormFlushToZero 4461 SignedZeroInfNanPreserve "
    "4462 RoundingModeRTE 4463 RoundingModeRTZ 35 SubgroupSize");
const Names k_decorations = names_of(
    "0 RelaxedPrecision 19 Restrict 20 Aliased 21 Volatile 23 Coherent 24 NonWritable "
    "25 NonReadable 42 NoContraction");

// By the first and the last number of a range.
struct Kind {
  std::uint32_t first, last;
  std::string_view name;
};
constexpr std::string_view k_matrix = "cooperative matrix instructions";
constexpr std::string_view k_atomic = "atomic operations";
constexpr Kind k_kinds[] = {{4457, 4460, k_matrix},
                            {5359, 5362, k_matrix},
                            {5293, 5293, k_matrix},
                            {5366, 5369, k_matrix},
                            {5390, 5390, k_matrix},
                            {4450, 4455, "integer dot products"},
                            {6916, 6918, "mixed-precision dot products"},
                            {333, 366, "subgroup operations"},
                            {224, 225, "barriers in the code"},
                            {227, 242, k_atomic},
                            {6035, 6035, k_atomic}};

std::string name_in(const Names& names, std::uint32_t number, const char* otherwise) {
  const std::string* name = look_up(names, number);
  return name == nullptr ? fmt::format("{} {}", otherwise, number) : *name;
}

}  // namespace

std::string instruction_name(std::uint32_t number) {
  const std::string* name = look_up(k_instructions, number);
  return name == nullptr ? fmt::format("instruction {}", number) : "Op" + *name;
}
std::string extended_name(std::uint32_t number) {
  return name_in(k_extended, number, "extended instruction");
}
std::string capability_name(std::uint32_t number) {
  return name_in(k_capabilities, number, "capability");
}
std::string mode_name(std::uint32_t number) { return name_in(k_modes, number, "execution mode"); }
std::string decoration_name(std::uint32_t number) { return look_up(k_decorations, number, ""); }

std::string kind_of_instruction(std::uint32_t number) {
  for (const Kind& kind : k_kinds) {
    if (number >= kind.first && number <= kind.last) return std::string(kind.name);
  }
  return "";
}

}  // namespace weir::explain
