// The code of kernels beyond its hash: its compiler, its store, and the difference of two versions.
#pragma once

#include <memory>

#include "gate/flow/measure.hpp"
#include "gate/run/code_store.hpp"
#include "gate/run/kernel_compiler.hpp"

namespace weir::flow {

// Returns the compiler for Radeons; Code::unavailable if there is none, with advice.
[[nodiscard]] Result<std::unique_ptr<run::KernelCompiler>> make_compiler(const Job& job);
// Returns the store in weir's cache; without a cache it stores nothing.
[[nodiscard]] run::CodeStore code_store();

// Checks that each cell's compiler is here. If one is missing that only a twin's description asks
// for, the cell goes without, and a note is returned. Code::config if weir.yaml asks for it. Sets
// `compiler` to the one for the other cells.
[[nodiscard]] Result<std::vector<std::string>> check_compilers(
    std::vector<run::PreparedCell>& cells, const Job& job, const sys::Stop& stop,
    std::unique_ptr<run::KernelCompiler>& compiler);

// Adds the differences in the code of changed kernels, if all of it is stored: named constants,
// instructions.
void add_code_differences(std::vector<verdict::CellVerdict>& cells, const sys::Files& files);

// Returns the difference of a changed kernel's machine code for `target` ("radv-navi31"), at most
// `most` lines. Each of several pieces is compared with its predecessor.
[[nodiscard]] Result<std::string> machine_code_diff(const verdict::KernelChange& code,
                                                    const std::string& target,
                                                    std::size_t max_lines, const Job& job);
// Adds these differences for a page, for the first changed kernels whose code is stored.
void add_machine_code(verdict::GateVerdict& gate, const Job& job);
// Returns "radv-navi31" for "radv-navi31, Mesa 25.0.7".
[[nodiscard]] std::string compiler_target(const std::string& compiler);

}  // namespace weir::flow
