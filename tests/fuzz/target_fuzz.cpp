// Fuzz target: any text as what a request asks for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gate/base/text.hpp"
#include "gate/serve/http.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto target = weir::serve::parse_target({reinterpret_cast<const char*>(data), size});
  if (!target) {
    if (target.error().message.empty()) std::abort();
    return 0;
  }
  const std::string& path = target->path;
  if (path.empty() || path.front() != '/' || path.starts_with("//")) std::abort();
  for (const std::string& segment : weir::text::split(path, '/')) {
    if (segment == "." || segment == "..") std::abort();
  }
  std::size_t count = 0;
  for (const auto& [name, values] : target->query) count += values.size();
  if (count > weir::serve::k_max_parameters) std::abort();
  return 0;
}
