// What a request asks for: "/api/v1/series?project=a&cell=b%2Fc", taken apart. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::serve {

inline constexpr std::size_t k_longest_target = 8192;  // bytes
inline constexpr std::size_t k_most_parameters = 64;

struct Target {
  // Decoded once, beginning with '/': UTF-8 without control characters, and no segment is "." or
  // "..", also not in a form that somebody might decode again; no '\\' and no "//" in front. An
  // encoded '/' is one like the others. Not a name of a file.
  std::string path = "/";
  // Decoded, '+' as a space; in the order in which they stood for each name. UTF-8 without control
  // characters, too. One without '=' has the value "".
  std::map<std::string, std::vector<std::string>, std::less<>> query;

  // The only value, or nothing where there is none or several.
  [[nodiscard]] std::optional<std::string> one(std::string_view name) const;
};

// An origin-form target alone ("/path?query"). Code::data says what is wrong with another one, and
// repeats nothing of it.
[[nodiscard]] Result<Target> parse_target(std::string_view text);

}  // namespace weir::serve
