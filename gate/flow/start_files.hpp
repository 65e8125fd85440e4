// Files outside of the repository that programs load: an engine may leave some for the base.
#pragma once

#include "gate/flow/job.hpp"
#include "gate/source/seal.hpp"

namespace weir::flow {

// Returns true for code that an interpreter imports, by its name in a folder.
[[nodiscard]] bool is_package_code(std::string_view name);
// The same, and true for what Python writes by itself when it imports code.
[[nodiscard]] bool is_python_file(std::string_view name);

// Seals files of the user's home and of the system that shells, interpreters, the dynamic linker
// and drivers of GPUs load before the code of a program, also those that are not there.
void seal_start_files(const Job& job, source::Seal& seal, const sys::Stop& stop);

// Has Python compile all modules of a virtual environment that both sides share, and of the
// installation that it was made from, so that it writes none while engines run. Seals the latter.
void prepare_environment(const Job& job, const std::string& environment, source::Seal& seal,
                         const sys::Stop& stop);

// Seals what programs in `folder` look for in the folders above it ("node_modules"), also where
// nothing is there.
void seal_folders_above(const Job& job, const std::string& folder, source::Seal& seal);

}  // namespace weir::flow
