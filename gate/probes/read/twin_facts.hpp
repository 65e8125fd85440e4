// What engines decide by, of a description, in words. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/probes/read/twins.hpp"

namespace weir::probes {

// Subject and what is so: {"subgroup size", "64, from 32 to 64 on request"}.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> facts_of(const Twin& twin);

// The description as a document of its own: a Khronos profile with everything that was read, what
// agrees filled in, and "weir". UUIDs and LUIDs are left out. read_twin() gives the same again.
[[nodiscard]] Json document_of(const Twin& twin);

}  // namespace weir::probes
