// Makes a shared library with functions that a twin lacks: each calls the twin, which prints the
// function's name and answers "not supported" (weir_twin_missing, gate/probes/twin/cuda).
#pragma once

#include <set>
#include <string>

#include "gate/base/result.hpp"

namespace weir::probes {

// Returns the bytes of an ELF library for x86-64 that defines `functions`; their names must be
// identifiers of C. Fails with Code::unavailable on another machine.
[[nodiscard]] Result<std::string> make_stub_library(const std::set<std::string>& functions);

}  // namespace weir::probes
