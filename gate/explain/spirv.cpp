// Reads a SPIR-V module: its constants, types, shared memory, and what its instructions do.
#include "gate/explain/spirv.hpp"

#include <array>
#include <bit>
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/spirv_values.hpp"

namespace weir::explain {
namespace {

// --- names of enumerants, as in the specification (1.6) and in extensions that engines use ------

using Names = std::map<std::uint32_t, std::string>;

// Parses a table of numbers and names: "61 Load 62 Store".
Names parse_names(std::string_view text) {
  Names result;
  const std::vector<std::string> words = text::split(text, ' ');
  for (std::size_t at = 0; at + 1 < words.size(); at += 2) {
    result[static_cast<std::uint32_t>(*text::to_int(words[at]))] = words[at + 1];
  }
  return result;
}

const Names k_instructions = parse_names(
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
const Names k_extended = parse_names(
    "1 Round 3 Trunc 4 FAbs 6 FSign 8 Floor 9 Ceil 10 Fract 13 Sin 14 Cos 21 Tanh 26 Pow "
    "27 Exp 28 Log 31 Sqrt 32 InverseSqrt 37 FMin 38 UMin 39 SMin 40 FMax 41 UMax 42 SMax "
    "43 FClamp 45 SClamp 50 Fma 58 PackHalf2x16 62 UnpackHalf2x16 73 FindILsb");
const Names k_capabilities = parse_names(
    "9 Float16 10 Float64 11 Int64 22 Int16 39 Int8 61 GroupNonUniform "
    "62 GroupNonUniformVote 63 GroupNonUniformArithmetic 64 GroupNonUniformBallot "
    "65 GroupNonUniformShuffle 67 GroupNonUniformClustered 4433 StorageBuffer16BitAccess "
    "4448 StorageBuffer8BitAccess 5116 BFloat16TypeKHR 5118 BFloat16CooperativeMatrixKHR "
    "5345 VulkanMemoryModel 5347 PhysicalStorageBufferAddresses "
    "6018 DotProductInput4x8BitPacked 6019 DotProduct 6022 CooperativeMatrixKHR");
const Names k_modes = parse_names(
    "4459 DenormPreserve 4460 DenormFlushToZero 4461 SignedZeroInfNanPreserve "
    "4462 RoundingModeRTE 4463 RoundingModeRTZ 35 SubgroupSize");
const Names k_decorations = parse_names(
    "0 RelaxedPrecision 19 Restrict 20 Aliased 21 Volatile 23 Coherent 24 NonWritable "
    "25 NonReadable 42 NoContraction");

// A range of instructions, and what they are called together.
struct InstructionKind {
  std::uint32_t first, last;
  std::string_view name;
};
constexpr std::string_view k_matrix = "cooperative matrix instructions";
constexpr std::string_view k_atomic = "atomic operations";
constexpr InstructionKind k_kinds[] = {{4457, 4460, k_matrix},
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

// Names an instruction in a function: "OpFMul"; "instruction 6000" where it is not listed.
std::string instruction_name(std::uint32_t number) {
  const std::string* name = look_up(k_instructions, number);
  return name == nullptr ? fmt::format("instruction {}", number) : "Op" + *name;
}
// Names an instruction of GLSL.std.450: "Fma".
std::string extended_name(std::uint32_t number) {
  return name_in(k_extended, number, "extended instruction");
}
std::string capability_name(std::uint32_t number) {
  return name_in(k_capabilities, number, "capability");
}
std::string mode_name(std::uint32_t number) { return name_in(k_modes, number, "execution mode"); }
// Names a decoration that says how values are computed or memory is used; "" for others.
std::string decoration_name(std::uint32_t number) { return look_up(k_decorations, number, ""); }

// Returns the kind of work that an instruction does: "cooperative matrix instructions"; "" if it
// has no kind of its own.
std::string kind_of_instruction(std::uint32_t number) {
  for (const InstructionKind& kind : k_kinds) {
    if (number >= kind.first && number <= kind.last) return std::string(kind.name);
  }
  return "";
}

// --- the reader ---------------------------------------------------------------------------------

constexpr std::size_t k_header_words = 5;
constexpr std::size_t k_max_words = std::size_t{4} << 20;  // 16 MiB
constexpr std::uint32_t k_magic = 0x07230203;
constexpr std::uint64_t k_max_bytes = std::uint64_t{1} << 40;
constexpr std::uint64_t k_max_threads = 1U << 16;  // per group

// Numbers from the specification. Instructions:
constexpr std::uint32_t k_name = 5, k_ext_inst = 12, k_entry_point = 15, k_execution_mode = 16,
                        k_capability = 17, k_function = 54, k_function_parameter = 55,
                        k_variable = 59, k_decorate = 71, k_loop_merge = 246, k_label = 248,
                        k_execution_mode_id = 331;
// Types:
constexpr std::uint32_t k_type_bool = 20, k_type_int = 21, k_type_float = 22, k_type_vector = 23,
                        k_type_matrix = 24, k_type_array = 28, k_type_struct = 30,
                        k_type_pointer = 32, k_type_matrix_khr = 4456, k_type_matrix_nv = 5358;
// Constants:
constexpr std::uint32_t k_constant_true = 41, k_constant_false = 42, k_plain_constant = 43,
                        k_spec_constant_true = 48, k_spec_constant_false = 49, k_spec_constant = 50,
                        k_spec_constant_composite = 51, k_spec_constant_op = 52;
// Decorations, built-ins, storage classes and modes:
constexpr std::uint32_t k_spec_id = 1, k_built_in = 11, k_binding = 33, k_set = 34;
constexpr std::uint32_t k_workgroup_size = 25, k_workgroup = 4;
constexpr std::uint32_t k_local_size = 17, k_local_size_id = 38;
constexpr std::uint32_t k_unroll = 1, k_dont_unroll = 2;

struct SpirvType {
  std::uint32_t op = 0;
  std::uint32_t width = 0;               // bits of each number in it; 0 if they differ
  bool is_float = false;                 // the numbers in it
  std::optional<std::uint64_t> bytes{};  // in shared memory; absent if not known
  std::uint64_t align = 1;
  std::uint32_t pointee = 0;
};

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t align) {
  return (bytes + align - 1) / align * align;
}

class SpirvReader {
 public:
  SpirvReader(const SpirvConstants& set) : set_(set) {}

  // Reads the module. Fails with Code::data if it is too large or cut off.
  Result<SpirvFacts> read(std::span<const std::uint32_t> words) {
    if (words.size() < k_header_words || words.front() != k_magic || words.size() > k_max_words) {
      return fail(Code::data, "not SPIR-V, or more than {} words of it", k_max_words);
    }
    for (words = words.subspan(k_header_words); !words.empty();) {
      const std::uint32_t length = words.front() >> 16;
      if (length == 0 || length > words.size()) {
        return fail(Code::data, "SPIR-V with an instruction of {} words, {} before its end", length,
                    words.size());
      }
      read_instruction(words.front() & 0xffff, words.subspan(1, length - 1));
      words = words.subspan(length);
    }
    finish();
    return std::move(out_);
  }

 private:
  using Words = std::span<const std::uint32_t>;

  // Reads one instruction; before the first function, only those that declare something.
  void read_instruction(std::uint32_t op, Words in) {
    if (op == k_function) in_functions_ = true;
    if (in_functions_) return count_instruction(op, in);
    if (in.empty()) return;
    if (op == k_entry_point) ++entry_points_;
    if (op == k_capability) out_.capabilities.insert(capability_name(in[0]));
    if (op == k_name) names_[in[0]] = read_text(in.subspan(1));
    if (in.size() < 2) return;
    if (op == k_decorate) read_decoration(in);
    if (op == k_execution_mode || op == k_execution_mode_id) read_execution_mode(in);
    if (op >= k_type_bool && op <= k_type_pointer) read_type(op, in);
    if (op == k_type_matrix_khr || op == k_type_matrix_nv) types_[in[0]] = element_type(in[1]);
    if (op >= k_constant_true && op <= k_spec_constant_op) read_constant(op, in);
    if (op == k_variable && in.size() >= 3) read_variable(in);
  }

  // Four characters a word; ends at the first 0.
  static std::string read_text(Words in) {
    std::string text;
    for (const std::uint32_t word : in.first(std::min<std::size_t>(in.size(), 24))) {
      for (std::uint32_t shift = 0; shift < 32; shift += 8) {
        const char c = static_cast<char>(word >> shift & 0xff);
        if (c == '\0') return text::printable(text);
        text += c;
      }
    }
    return text::printable(text);
  }

  void read_decoration(Words in) {
    const std::string name = decoration_name(in[1]);
    if (!name.empty()) ++out_.decorations[name + " decorations"];
    if (in.size() < 3) return;
    if (in[1] == k_spec_id) spec_ids_[in[0]] = in[2];
    if (in[1] == k_built_in && in[2] == k_workgroup_size) workgroup_size_ = in[0];
    if (in[1] == k_binding) places_[in[0]].second = in[2];
    if (in[1] == k_set) places_[in[0]].first = in[2];
  }

  void read_execution_mode(Words in) {
    if (in[1] != k_local_size && in[1] != k_local_size_id) {
      out_.modes.insert(mode_name(in[1]) + (in.size() > 2 ? fmt::format(" {}", in[2]) : ""));
    } else if (in.size() >= 5) {
      local_size_.assign(in.begin() + 2, in.begin() + 5);
      local_size_by_id_ = in[1] == k_local_size_id;
    }
  }

  SpirvType find_type(std::uint32_t id) const { return look_up(types_, id, SpirvType{}); }

  // Returns the type of the elements of a vector, matrix or array. A type stands before the types
  // made of it, so an undefined one stays unknown and there are no cycles.
  SpirvType element_type(std::uint32_t id) const {
    const SpirvType element = find_type(id);
    return {k_type_matrix_khr, element.width, element.is_float, {}, 1, 0};
  }

  // Stores a declared type with its size in shared memory, as far as that is known.
  void read_type(std::uint32_t op, Words in) {
    SpirvType result{op, 0, false, {}, 1, 0};
    const SpirvType inner = find_type(in[1]);
    if (op == k_type_int || op == k_type_float) {
      result.width = in[1];
      result.is_float = op == k_type_float;
      result.bytes = std::clamp<std::uint32_t>(in[1] / 8, 1, 8);
      result.align = *result.bytes;
    } else if (op == k_type_vector || op == k_type_matrix || op == k_type_array) {
      if (in.size() < 3) return;
      result = {op, inner.width, inner.is_float, {}, inner.align, 0};
      const std::optional<std::uint64_t> count =
          op == k_type_array ? constant_value(in[2]) : std::optional<std::uint64_t>(in[2]);
      const std::uint64_t stride = round_up(inner.bytes.value_or(0), inner.align);
      if (inner.bytes && count && (stride == 0 || *count <= k_max_bytes / stride)) {
        result.bytes = stride * *count;
      }
      // A vector of three is aligned like one of four.
      if (op == k_type_vector) {
        constexpr std::uint64_t k_max_alignment = 64;
        const std::uint64_t aligned_count = in[2] == 3 ? 4 : std::clamp(in[2], 1U, 4U);
        result.align = std::min(inner.align * aligned_count, k_max_alignment);
      }
    } else if (op == k_type_struct) {
      result.bytes = 0;
      for (const std::uint32_t member : in.subspan(1)) add_member(result, member);
    } else if (op == k_type_pointer && in.size() >= 3) {
      result.pointee = in[2];
    }
    types_[in[0]] = result;
  }

  // Appends a member to a structure, after padding. The size is unknown from the first unknown
  // member on.
  void add_member(SpirvType& structure, std::uint32_t id) const {
    const SpirvType member = find_type(id);
    structure.align = std::max(structure.align, member.align);
    const bool size_known = structure.bytes && member.bytes && *structure.bytes < k_max_bytes;
    if (size_known) structure.bytes = round_up(*structure.bytes, member.align) + *member.bytes;
    if (!size_known) structure.bytes.reset();
  }

  std::optional<std::uint64_t> constant_value(std::uint32_t id) const {
    const auto* value = look_up(values_, id);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }

  // Returns the value as probes show it; integers of 32 bits with a sign.
  static std::string value_text(std::uint64_t value, const SpirvType& type) {
    if (type.is_float) return number_text(value, type.width);
    const bool is_short = type.width == 32;
    return is_short ? fmt::format("{}", static_cast<std::int32_t>(value)) : number_text(value, 0);
  }

  // Stores the value of a constant, specialized if a value is set. The result follows the type in
  // the instruction.
  void read_constant(std::uint32_t op, Words in) {
    const std::uint32_t id = in[1];
    const SpirvType type = find_type(in[0]);
    std::optional<std::uint64_t> value;
    if (op == k_constant_true || op == k_spec_constant_true) value = 1;
    if (op == k_constant_false || op == k_spec_constant_false) value = 0;
    if ((op == k_plain_constant || op == k_spec_constant) && in.size() >= 3) {
      value = in[2] | (in.size() > 3 ? std::uint64_t{in[3]} << 32 : 0);
    }
    if (op == k_spec_constant_op && in.size() >= 3) value = fold_operation(in);
    if (op == k_spec_constant_composite && id == workgroup_size_ && in.size() >= 5) {
      local_size_.assign(in.begin() + 2, in.begin() + 5);
      local_size_by_id_ = true;
    }
    if (!value) return;
    if (op == k_plain_constant) out_.literals.insert(value_text(*value, type));
    if (const std::uint32_t* spec = look_up(spec_ids_, id)) {
      out_.constants[*spec] = {look_up(names_, id, ""), value_text(*value, type),
                               type.is_float && type.width == 32};
      value = look_up(set_, *spec, *value) & (type.width <= 32 ? UINT32_MAX : UINT64_MAX);
    }
    values_[id] = *value;
  }

  // Computes an OpSpecConstantOp; nothing if an operand is not known.
  std::optional<std::uint64_t> fold_operation(Words in) const {
    std::vector<std::uint64_t> operands;
    for (const std::uint32_t id : in.subspan(3).first(std::min<std::size_t>(in.size() - 3, 3))) {
      const auto value = constant_value(id);
      if (!value) return std::nullopt;
      operands.push_back(*value);
    }
    return fold(in[2], operands);
  }

  // Records a binding, or the size of a variable in shared memory.
  void read_variable(Words in) {
    if (const auto* place = look_up(places_, in[1])) {
      out_.bindings.insert(fmt::format("set {} binding {}", place->first, place->second));
    }
    if (in[2] != k_workgroup) return;
    const SpirvType type = find_type(find_type(in[0]).pointee);
    const std::string name = look_up(names_, in[1], "");
    const std::string shown_name = name.empty() ? fmt::format("array {}", ++unnamed_) : name;
    if (!type.bytes) shared_known_ = false;
    if (!type.bytes) return;
    out_.shared[shown_name] += static_cast<std::int64_t>(*type.bytes);
    shared_ += static_cast<std::int64_t>(*type.bytes);
  }

  // Counts an instruction of a function by name and by kind.
  void count_instruction(std::uint32_t op, Words in) {
    constexpr std::uint32_t k_line = 8, k_no_line = 317, k_function_end = 56;
    constexpr std::array k_no_work = {k_label, k_function_parameter, k_line, k_no_line,
                                      k_function_end};
    if (holds(k_no_work, op)) return;
    ++out_.all;
    const bool extended = op == k_ext_inst && in.size() >= 4;
    ++out_.instructions[extended ? extended_name(in[3]) : instruction_name(op)];
    const std::string kind = kind_of_instruction(op);
    if (!kind.empty()) ++out_.kinds[kind];
    if (op == k_loop_merge && in.size() >= 3) {
      ++out_.loops["loops"];
      if ((in[2] & k_unroll) != 0) ++out_.loops["loops with Unroll"];
      if ((in[2] & k_dont_unroll) != 0) ++out_.loops["loops with DontUnroll"];
    }
    constexpr std::uint32_t k_first_arithmetic = 126, k_last_arithmetic = 148;
    const bool computes = extended || (op >= k_first_arithmetic && op <= k_last_arithmetic);
    if (!computes || in.empty()) return;
    const SpirvType type = find_type(in[0]);
    if (type.is_float && type.width < 32) ++out_.kinds["16-bit float arithmetic instructions"];
  }

  // Sets the sums: bytes of shared memory, and the group size if there is one entry point.
  void finish() {
    if (shared_known_) out_.shared_bytes = shared_;
    if (entry_points_ != 1) return;  // each has a size of its own
    std::vector<std::string> sizes;
    std::uint64_t threads = 1;
    for (const std::uint32_t size : local_size_) {
      const auto value =
          local_size_by_id_ ? constant_value(size) : std::optional<std::uint64_t>(size);
      if (!value) return;
      sizes.push_back(fmt::format("{}", *value));
      threads = *value > k_max_threads ? 0 : std::min(threads * *value, k_max_threads + 1);
    }
    out_.local_size = text::join(sizes, " x ");
    if (!sizes.empty() && threads != 0 && threads <= k_max_threads) out_.threads = threads;
  }

  const SpirvConstants& set_;
  SpirvFacts out_;
  bool in_functions_ = false;
  std::map<std::uint32_t, std::string> names_;
  std::map<std::uint32_t, SpirvType> types_;
  std::map<std::uint32_t, std::uint64_t> values_;  // constants by id
  std::map<std::uint32_t, std::uint32_t> spec_ids_;
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> places_;  // set, binding
  std::uint32_t workgroup_size_ = 0, unnamed_ = 0, entry_points_ = 0;
  std::vector<std::uint32_t> local_size_;
  bool local_size_by_id_ = false;
  std::int64_t shared_ = 0;
  bool shared_known_ = true;
};

}  // namespace

std::optional<std::uint32_t> spirv_constant_id(std::string_view option) {
  constexpr std::string_view k_constant = "constant ";
  if (!option.starts_with(k_constant)) return std::nullopt;
  const auto id = text::to_int(option.substr(k_constant.size()));
  if (!id || *id < 0 || *id > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*id);
}

// Reads the constants among the options of a kernel.
SpirvConstants spirv_constants(const std::map<std::string, std::string>& options) {
  SpirvConstants constants;
  for (const auto& [option, value] : options) {
    const auto id = spirv_constant_id(option);
    const auto number = text::to_int(value);
    if (id && number) constants[*id] = static_cast<std::uint64_t>(*number);
  }
  return constants;
}

Result<SpirvFacts> read_spirv(std::span<const std::uint32_t> words,
                              const SpirvConstants& constants) {
  return SpirvReader(constants).read(words);
}

}  // namespace weir::explain
