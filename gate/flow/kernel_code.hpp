// The code of kernels beyond its hash: what compiles it, where it is kept, what two pieces of it
// differ in.
#pragma once

#include <memory>

#include "gate/flow/measure.hpp"
#include "gate/run/code_store.hpp"
#include "gate/run/kernel_compiler.hpp"

namespace weir::flow {

// Code::unavailable where nothing here compiles for Radeons, with what to do.
[[nodiscard]] Result<std::unique_ptr<run::KernelCompiler>> make_compiler(sys::World& world);
// In weir's cache; keeps nothing where there is no place for one.
[[nodiscard]] run::CodeStore code_store();

// Leaves cells without a compiler where there is none and only a twin's description asks for it:
// what is to be said of that. Code::config where weir.yaml asks for it. `compiler`: gets the one
// that the others' kernels are compiled by.
[[nodiscard]] Result<std::vector<std::string>> check_compilers(
    std::vector<run::PreparedCell>& cells, sys::World& world, const sys::Stop& stop,
    std::unique_ptr<run::KernelCompiler>& compiler);

// What the code of changed kernels differs in, where all pieces of it are kept: constants with
// their names, instructions.
void add_code_differences(std::vector<verdict::CellVerdict>& cells, const sys::Files& files);

// How the machine code of a changed kernel differs, line by line: for `target` ("radv-navi31"). Of
// several pieces of code, each from the one that it was.
[[nodiscard]] Result<std::string> machine_code_diff(const verdict::OtherCode& one,
                                                    const std::string& target, std::size_t most,
                                                    sys::World& world);
// The same for a page, of the first kernels that changed, where it can be told.
void add_machine_code(verdict::GateVerdict& gate, sys::World& world);
// "radv-navi31" of "radv-navi31, Mesa 25.0.7".
[[nodiscard]] std::string target_of(const std::string& compiler);

}  // namespace weir::flow
