// Gives kernels readable names: from symbols, labels, and the files of their shaders.
#include "gate/probes/read/kernel_names.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include <cxxabi.h>
#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/hash.h"
#include "gate/probes/read/template_names.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_max_shaders = 4096;
constexpr int k_deepest = 16;
constexpr std::uint64_t k_max_file_bytes = std::uint64_t{16} << 20;

// Replaces "**/" by "*", which matches any path: "shaders/**/*.spv" also matches shaders/x.spv.
std::string make_glob(std::string pattern) {
  constexpr std::string_view k_any_folder = "**/";
  std::size_t at = pattern.find(k_any_folder);
  while (at != std::string::npos) {
    pattern.replace(at, k_any_folder.size(), "*");
    at = pattern.find(k_any_folder, at);
  }
  return pattern;
}

// Finds the files below a folder that match a glob.
struct Search {
  const sys::Files& files;
  std::string glob;
  std::size_t visited = 0;
  std::vector<std::string> matches{};

  // Appends the matching files of `folder` and its subfolders. Fails where there are too many
  // files.
  Result<void> search(const std::string& folder, int depth) {
    WEIR_TRY(const std::vector<std::string> names, files.list(folder));
    for (const std::string& name : names) {
      ++visited;
      if (visited > 16 * k_max_shaders || matches.size() > k_max_shaders) {
        return fail(Code::config, "{}: more files than weir looks at", folder);
      }
      const std::string path = sys::join_path(folder, name);
      const sys::Kind kind = files.kind(path);
      if (kind == sys::Kind::folder && depth < k_deepest && !name.starts_with('.')) {
        WEIR_CHECK(search(path, depth + 1));
      } else if (kind == sys::Kind::file && text::glob_match(glob, path)) {
        matches.push_back(path);
      }
    }
    return {};
  }
};

// Returns "main" of "main@9d548dcf01234567", a name that a probe made from the entry point and a
// hash. Nothing for other names.
std::optional<std::string> entry_of_hashed_name(const std::string& kernel) {
  constexpr std::string_view k_digits = "0123456789abcdef";
  if (kernel.size() < 18 || kernel[kernel.size() - 17] != '@') return std::nullopt;
  if (kernel.find_first_not_of(k_digits, kernel.size() - 16) != std::string::npos)
    return std::nullopt;
  return kernel.substr(0, kernel.size() - 17);
}

// Removes a function's parameters, the last pair of brackets: "scale(float*)" -> "scale".
std::string_view without_parameters(std::string_view name) {
  if (!name.ends_with(')')) return name;
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(') --depth;
    if (depth == 0) return name.substr(0, at);
  }
  return name;
}

// Removes a function's type: all up to the last blank that is in no brackets.
std::string_view without_type(std::string_view name) {
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    const char c = name[at];
    if (c == ')' || c == '>') ++depth;
    if (c == '(' || c == '<') --depth;
    if (c == ' ' && depth == 0) return name.substr(at + 1);
  }
  return name;
}

// Removes the scopes of a file's own functions. nvcc's name of such a scope contains a hash of the
// build.
void remove_file_scopes(std::string& name) {
  for (const std::string_view begin : {"_INTERNAL_", "(anonymous namespace)"}) {
    std::size_t at = name.find(begin);
    while (at != std::string::npos) {
      const std::size_t end = name.find("::", at);
      if (end == std::string::npos) return;
      name.erase(at, end + 2 - at);
      at = name.find(begin, at);
    }
  }
}

// Removes the prefix that WebGPU's Dawn puts before a label: "DawnDbg=1;Dawn_ShaderModule_".
std::string_view without_dawn_prefix(std::string_view name) {
  if (name.starts_with("DawnDbg=")) name.remove_prefix(name.find(';') + 1);
  constexpr std::string_view k_dawn = "Dawn_";
  const std::size_t end = name.starts_with(k_dawn) ? name.find('_', k_dawn.size()) : name.npos;
  if (end != name.npos && end + 1 < name.size()) name.remove_prefix(end + 1);
  return name;
}

// The shader whose code, hashed with the entry point, gives the kernel's name; null if none does.
const ShaderFile* find_shader(std::span<const ShaderFile> shaders, const std::string& kernel) {
  const auto entry = entry_of_hashed_name(kernel);
  if (!entry) return nullptr;
  return find_first(shaders, [&](const ShaderFile& shader) {
    const std::uint64_t hash = weir_probe::hash_bytes(shader.hash, entry->data(), entry->size());
    return kernel == fmt::format("{}@{:016x}", *entry, hash);
  });
}

}  // namespace

std::string readable_kernel_name(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return std::string(without_dawn_prefix(symbol));
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  if (text == nullptr || status != 0) return symbol;
  std::string name(text.get());
  remove_file_scopes(name);
  return short_template_name(without_type(without_parameters(name)));
}

// Returns the files that match `pattern`, each with the hash of its code. Its name is its path
// below the pattern's folder.
Result<std::vector<ShaderFile>> find_shaders(const sys::Files& files, const std::string& pattern) {
  // The folder before the first '*'.
  const std::string root = sys::folder_of(pattern.substr(0, pattern.find('*')) + "x");
  Search search{files, make_glob(pattern)};
  if (files.kind(root) == sys::Kind::folder) WEIR_CHECK(search.search(root, 0));
  if (search.matches.empty()) return fail(Code::config, "{}: no such file", pattern);
  std::vector<ShaderFile> shaders;
  for (const std::string& path : search.matches) {
    WEIR_TRY(const std::string code, files.read(path, k_max_file_bytes));
    std::string name = path.substr(std::min(path.size(), root.size() + 1));
    name = text::printable(name.substr(0, name.rfind('.')));
    shaders.push_back({std::move(name),
                       weir_probe::hash_bytes(weir_probe::k_hash_seed, code.data(), code.size())});
  }
  return shaders;
}

// Renames kernels from hashes to the shaders that they were made of. They are marked as named if
// then every kernel has a name.
void name_kernels(std::span<const ShaderFile> shaders, profile::ProbeCounts& counts) {
  if (shaders.empty() || counts.kernels_named) return;
  std::map<std::string, std::int64_t> renamed;
  bool are_all_named = !counts.kernels.empty();
  for (const auto& [kernel, dispatches] : counts.kernels) {
    const ShaderFile* shader = find_shader(shaders, kernel);
    if (shader != nullptr) {
      renamed[shader->name] += dispatches;
      continue;
    }
    renamed[kernel] += dispatches;
    // "(other)" and a hash are no names.
    if (entry_of_hashed_name(kernel) || kernel.starts_with('(')) are_all_named = false;
  }
  counts.kernels = std::move(renamed);
  counts.kernels_named = are_all_named;
}

}  // namespace weir::probes
