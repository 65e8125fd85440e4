// For headers that only declare functions on Json: all of nlohmann_json is many times as long.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace weir {

using Json = nlohmann::json;  // object keys are sorted
class Fields;                 // base/fields.hpp

}  // namespace weir
