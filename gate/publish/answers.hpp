// Parts of what the API answered, which may be anything: what is not there or not as it should be
// is empty. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gate/publish/api.hpp"

namespace weir::publish {

// null where it is no object or has no such part.
[[nodiscard]] const Json& below(const Json& json, const char* key);
[[nodiscard]] std::string text_in(const Json& json, const char* key);
[[nodiscard]] std::int64_t number_in(const Json& json, const char* key);  // 0
// A link to show: "" unless it is http or https without white space.
[[nodiscard]] std::string link_in(const Json& json, const char* key);

// A text as it was sent: GitHub's web editor makes "\r\n" of line ends, and ends may be trimmed.
[[nodiscard]] std::string as_written(std::string_view body);

[[nodiscard]] inline bool fine(const ApiResponse& answer) {
  return answer.status >= 200 && answer.status < 300;
}
// "403: Resource not accessible by integration", one line.
[[nodiscard]] std::string refusal(const ApiResponse& answer);

}  // namespace weir::publish
