#include "gate/serve/http.hpp"

#include <algorithm>

namespace weir::serve {

const std::string* Head::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

std::string header_value(std::string_view text) {
  std::string value(text);
  for (char& c : value) {
    if (c < ' ' || c > '~') c = '?';
  }
  return value;
}

}  // namespace weir::serve
