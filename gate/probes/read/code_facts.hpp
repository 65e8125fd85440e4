// Collects facts about the code of recorded kernels: their identity and what specializes it. Pure.
#pragma once

#include <map>
#include <string>

#include "gate/probes/read/read_kernels.hpp"
#include "gate/profile/counts.hpp"

namespace weir::probes {

// The identity of the pipeline's code, as in profile::code_key().
[[nodiscard]] std::string pipeline_hash(const RecordedPipeline& pipeline);

// Facts of all pipelines, by identity; without those that a compiler reports.
[[nodiscard]] std::map<std::string, profile::CodeFacts> code_facts(const RecordedKernels& recorded);

// The bytes of a file of recorded kernels with one of the pipelines.
[[nodiscard]] std::string single_pipeline_recording(const RecordedKernels& recorded,
                                                    std::size_t index);

}  // namespace weir::probes
