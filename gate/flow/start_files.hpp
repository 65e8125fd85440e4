// Files outside of the repository that programs load as they start: an engine may leave some for
// the base.
#pragma once

#include "gate/flow/job.hpp"
#include "gate/source/seal.hpp"

namespace weir::flow {

// Returns true for code that an interpreter imports, by its name in a folder. Python itself writes
// __pycache__.
[[nodiscard]] bool is_package_code(std::string_view name);

// Seals files of the user's home and of the system that shells, interpreters, the dynamic linker
// and drivers of GPUs load before the code of a program, also those that are not there.
void seal_start_files(const Job& job, source::Seal& seal);

}  // namespace weir::flow
