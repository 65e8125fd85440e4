// Recognizes files that run by their beginning or their ending.
#include "gate/sys/code_file.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::sys {

bool is_program(const Files& files, const std::string& path) {
  constexpr std::string_view k_beginnings[] = {"\x7f\x45LF", "#!", "\xcf\xfa\xed\xfe",
                                               "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe"};
  const auto beginning = files.read_prefix(path, 4);
  return beginning && std::ranges::any_of(k_beginnings, [&](std::string_view mark) {
           return beginning->starts_with(mark);
         });
}

// Returns true for the file ending of a source, script, library or kernel: "py".
bool is_code_suffix(std::string_view suffix) {
  constexpr std::string_view k_suffixes[] = {
      "a",     "bash",  "bat",    "bc",    "ll",       "mlir",   "c",      "cc",  "cjs", "cl",
      "class", "cmake", "cmd",    "comp",  "cpp",      "cs",     "csproj", "cts", "cu",  "cubin",
      "cuh",   "cxx",   "dart",   "dll",   "dylib",    "erl",    "ex",     "exe", "exs", "fish",
      "frag",  "fs",    "fsproj", "glsl",  "go",       "gradle", "h",      "hh",  "hip", "hlsl",
      "hpp",   "hs",    "hsaco",  "hxx",   "jar",      "java",   "jl",     "js",  "jsx", "kt",
      "kts",   "lua",   "m",      "metal", "metallib", "mjs",    "mk",     "ml",  "mm",  "mts",
      "nim",   "ninja", "php",    "pl",    "pm",       "ps1",    "ptx",    "py",  "pyc", "pyi",
      "pyx",   "pyz",   "r",      "rb",    "rs",       "s",      "scala",  "sh",  "so",  "spv",
      "swift", "ts",    "tsx",    "vert",  "wasm",     "wgsl",   "zig",    "zon", "zsh"};
  return holds(k_suffixes, suffix);
}

bool is_module(std::string_view path) {
  constexpr std::string_view k_archives[] = {"egg", "whl", "zip"};
  const std::string suffix = text::lower(path.substr(path.rfind('.') + 1));
  return is_code_suffix(suffix) || holds(k_archives, suffix);
}

}  // namespace weir::sys
