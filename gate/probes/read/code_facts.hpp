// What a recording of kernels says of the code of each: what identifies it, what specializes it.
// Pure.
#pragma once

#include <map>
#include <string>

#include "gate/probes/read/read_kernels.hpp"
#include "gate/profile/counts.hpp"

namespace weir::probes {

// As in profile::code_key().
[[nodiscard]] std::string identity_of(const RecordedPipeline& pipeline);

// By identity, without what a compiler says.
[[nodiscard]] std::map<std::string, profile::CodeFacts> code_facts(const RecordedKernels& recorded);

// A file of recorded kernels that holds that pipeline alone.
[[nodiscard]] std::string recording_of(const RecordedKernels& recorded, std::size_t pipeline);

}  // namespace weir::probes
