// Names of SPIR-V's enumerants, as in its specification (1.6) and the extensions that inference
// engines use.
#pragma once

#include <cstdint>
#include <string>

namespace weir::explain {

// Of an instruction in a function: "OpFMul"; "instruction 6000" where it is not listed.
[[nodiscard]] std::string instruction_name(std::uint32_t number);
// Of GLSL.std.450: "Fma".
[[nodiscard]] std::string extended_name(std::uint32_t number);
[[nodiscard]] std::string capability_name(std::uint32_t number);
[[nodiscard]] std::string mode_name(std::uint32_t number);
// Of a decoration that says how values are computed or memory is used; "" of others.
[[nodiscard]] std::string decoration_name(std::uint32_t number);
// What kind of work an instruction does where people ask for it by kind: "cooperative matrix
// instructions"; "" else.
[[nodiscard]] std::string kind_of_instruction(std::uint32_t number);

}  // namespace weir::explain
