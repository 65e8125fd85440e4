// Describes a GPU in words, and writes descriptions. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/probes/read/twins.hpp"

namespace weir::probes {

// The facts that engines base decisions on, as pairs of a subject and a text:
// {"subgroup size", "64, from 32 to 64 on request"}.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> facts_of(const Twin& twin);

// Returns the twin's description: a Khronos profile, completed by agree(), with a section "weir".
// UUIDs and LUIDs are left out. read_twin() reads the same twin from it.
[[nodiscard]] Json document_of(const Twin& twin);

}  // namespace weir::probes
