// The code that a cell executed (source files with functions, kernels, ops), and how it is stored.
// Pure.
//
// It comes from callgrind's output (probes/read/instructions.hpp), from the JSON of an engine's own
// coverage build (read_coverage), and for kernels and ops from the counted pass. All text is
// hostile.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "gate/base/json_fwd.hpp"
#include "gate/base/result.hpp"

namespace weir::profile {

inline constexpr std::size_t k_max_reach_files = 100'000;
inline constexpr std::size_t k_max_reach_functions = 64;  // kept of one file

struct Executed {
  // Path as debug information or coverage names it -> some of the functions that ran, at most 64.
  std::map<std::string, std::set<std::string>> files;
  // Programs and libraries of which something ran and no source file is known: they have no debug
  // information.
  std::set<std::string> without_debug_info;
  // Files that are compiled in and may run without a line that tells it, for their functions are
  // inlined. Nothing: that is not known.
  std::optional<std::set<std::string>> inlined = std::set<std::string>();

  friend bool operator==(const Executed&, const Executed&) = default;
};
// One more function of `file`; what is beyond the limits is left out, of files too.
void add_executed(Executed& executed, const std::string& file, std::string_view function);
// Programs and libraries of the system run in every cell, without being what a change is about.
[[nodiscard]] bool is_system_object(std::string_view object);
void merge_executed(Executed& into, const Executed& more);

// "a/./b/../c" -> "a/c"; "//" is "/". What leads above the start stays ("../x").
[[nodiscard]] std::string normal_path(std::string_view path);
// Below `top` (absolute, normal): counted from there; else as it is. Normal.
[[nodiscard]] std::string path_below(std::string_view path, std::string_view top);

struct Reach {
  std::string cell;
  std::string commit;  // the engine repository's when it was recorded; "" if unknown
  bool dirty = false;  // files that git knows differed from it
  std::string source;  // "callgrind" or "coverage"
  Executed executed;   // paths of the repository counted from its top, others as they were
  // Kernels of the newest run's counted pass; nothing if there was none.
  std::optional<std::set<std::string>> kernels;
  bool kernels_named = false;  // by the program, each of them
  std::set<std::string> ops;

  friend bool operator==(const Reach&, const Reach&) = default;
};
// weir.reach/1
void fields(Fields& io, Reach& reach);

// Reads what `llvm-cov export -format=text` or `gcov --json-format --stdout` prints (one document a
// line). Files of which no line ran are left out. Fails with Code::data on anything else, also if
// nothing ran at all.
[[nodiscard]] Result<Executed> read_coverage(std::string_view text);

}  // namespace weir::profile
