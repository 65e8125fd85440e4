// The description of the interface (openapi.json, OpenAPI 3.1) as it was when weir was built.
#pragma once

#include <string_view>

namespace weir::serve {

[[nodiscard]] std::string_view openapi_text();

}  // namespace weir::serve
