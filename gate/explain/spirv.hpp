// Facts that a SPIR-V module states about itself, with the specialization it is compiled with, in a
// form that can be compared. Pure; nothing in the module is trusted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::explain {

struct SpirvConstant {
  std::string name{};      // OpName; "": the module has none
  std::string fallback{};  // the value in the module, where nothing sets it
  bool is_float = false;   // a float of 32 bits, whose value is set as its bits
};

struct SpirvFacts {
  using Counts = std::map<std::string, std::int64_t>;
  std::map<std::uint32_t, SpirvConstant> constants{};  // by SpecId
  std::string local_size{};                            // "64 x 1 x 1"; "": not said, or not known
  std::optional<std::uint64_t> threads{};              // threads of a group: the product of these
  // Workgroup variables: bytes of each, unnamed ones as "an array" or the like; and of all of them.
  Counts shared{};
  std::optional<std::int64_t> shared_bytes{};  // absent: the size of one is not known
  Counts kinds{};         // instructions of a kind: "cooperative matrix instructions" -> 12
  Counts instructions{};  // in functions: "OpFMul" -> 64
  Counts decorations{};   // "NoContraction decorations"
  Counts loops{};         // "loops", "loops with Unroll", "loops with DontUnroll"
  std::set<std::string> capabilities{}, modes{}, bindings{}, literals{};
  std::int64_t all = 0;  // instructions in functions
};

// Values set by specialization, by SpecId, among the options of a kernel's code ("constant 2" ->
// "64").
using SpirvConstants = std::map<std::uint32_t, std::uint64_t>;
[[nodiscard]] std::optional<std::uint32_t> spirv_constant_id(std::string_view option);
[[nodiscard]] SpirvConstants spirv_constants(const std::map<std::string, std::string>& options);

// `constants`: bits, of which those count that the type has.
// Fails with Code::data on what is no SPIR-V.
[[nodiscard]] Result<SpirvFacts> read_spirv(std::span<const std::uint32_t> words,
                                            const SpirvConstants& constants);

}  // namespace weir::explain
