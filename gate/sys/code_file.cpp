// Recognizes files that run by their beginning or their ending.
#include "gate/sys/code_file.hpp"

#include <algorithm>

namespace weir::sys {

bool is_program(const Files& files, const std::string& path) {
  constexpr std::string_view k_beginnings[] = {"\x7f\x45LF", "#!", "\xcf\xfa\xed\xfe",
                                               "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe"};
  const auto beginning = files.read_prefix(path, 4);
  return beginning && std::ranges::any_of(k_beginnings, [&](std::string_view mark) {
           return beginning->starts_with(mark);
         });
}

bool is_module(std::string_view path) {
  constexpr std::string_view k_endings[] = {".py",  ".pyc", ".js", ".mjs", ".cjs", ".sh",
                                            ".lua", ".rb",  ".pl", ".pm",  ".jl",  ".jar"};
  return std::ranges::any_of(k_endings,
                             [&](std::string_view ending) { return path.ends_with(ending); });
}

}  // namespace weir::sys
