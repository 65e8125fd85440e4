#include "gate/probes/read/kernel_names.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include <cxxabi.h>
#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/probes/hash.h"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_most_shaders = 4096;
constexpr int k_deepest = 16;
constexpr std::uint64_t k_largest = std::uint64_t{16} << 20;

// "shaders/**/*.spv" also fits what lies in shaders itself.
std::string glob_of(std::string pattern) {
  for (std::size_t at = 0; (at = pattern.find("**/", at)) != std::string::npos;) {
    pattern.erase(at, 3);
    pattern.insert(at, "*");
  }
  return pattern;
}

struct Search {
  const sys::Files& files;
  std::string glob;
  std::size_t looked_at = 0;
  std::vector<std::string> found{};

  Result<void> look(const std::string& folder, int depth) {
    WEIR_TRY(const std::vector<std::string> names, files.list(folder));
    for (const std::string& name : names) {
      if (++looked_at > 16 * k_most_shaders || found.size() > k_most_shaders) {
        return fail(Code::config, "{}: more files than weir looks at", folder);
      }
      const std::string path = sys::join_path(folder, name);
      const sys::Kind kind = files.kind(path);
      if (kind == sys::Kind::folder && depth < k_deepest && !name.starts_with('.')) {
        WEIR_CHECK(look(path, depth + 1));
      } else if (kind == sys::Kind::file && text::glob_match(glob, path)) {
        found.push_back(path);
      }
    }
    return {};
  }
};

// "main@9d548dcf01234567" -> "main".
std::optional<std::string> made_up(const std::string& kernel) {
  constexpr std::string_view k_digits = "0123456789abcdef";
  if (kernel.size() < 18 || kernel[kernel.size() - 17] != '@') return std::nullopt;
  if (kernel.find_first_not_of(k_digits, kernel.size() - 16) != std::string::npos)
    return std::nullopt;
  return kernel.substr(0, kernel.size() - 17);
}

// Without what stands in the last pair of brackets at the end: a function's parameters.
std::string_view without_parameters(std::string_view name) {
  if (!name.ends_with(')')) return name;
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    depth += name[at] == ')' ? 1 : name[at] == '(' ? -1 : 0;
    if (depth == 0) return name.substr(0, at);
  }
  return name;
}

// Behind the last blank that stands in no brackets.
std::string_view without_type(std::string_view name) {
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    const char c = name[at];
    depth += c == ')' || c == '>' ? 1 : c == '(' || c == '<' ? -1 : 0;
    if (c == ' ' && depth == 0) return name.substr(at + 1);
  }
  return name;
}

// nvcc's name for a file's own functions has a hash of the build in it.
void drop_scopes(std::string& name) {
  for (const std::string_view begin : {"_INTERNAL_", "(anonymous namespace)"}) {
    for (std::size_t at = 0; (at = name.find(begin, at)) != std::string::npos;) {
      const std::size_t end = name.find("::", at);
      if (end == std::string::npos) return;
      name.erase(at, end + 2 - at);
    }
  }
}

// What WebGPU's Dawn puts before a label: "DawnDbg=1;Dawn_ShaderModule_".
std::string_view label_of(std::string_view name) {
  if (name.starts_with("DawnDbg=")) name.remove_prefix(name.find(';') + 1);
  constexpr std::string_view k_dawn = "Dawn_";
  const std::size_t end = name.starts_with(k_dawn) ? name.find('_', k_dawn.size()) : name.npos;
  if (end != name.npos && end + 1 < name.size()) name.remove_prefix(end + 1);
  return name;
}

}  // namespace

std::string kernel_of_symbol(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return std::string(label_of(symbol));
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  if (text == nullptr || status != 0) return symbol;
  std::string name(text.get());
  drop_scopes(name);
  return std::string(without_type(without_parameters(name)));
}

Result<std::vector<ShaderFile>> find_shaders(const sys::Files& files, const std::string& pattern) {
  const std::string fixed = sys::folder_of(pattern.substr(0, pattern.find('*')) + "x");
  Search search{files, glob_of(pattern)};
  if (files.kind(fixed) == sys::Kind::folder) WEIR_CHECK(search.look(fixed, 0));
  if (search.found.empty()) return fail(Code::config, "{}: no such file", pattern);
  std::vector<ShaderFile> shaders;
  for (const std::string& path : search.found) {
    WEIR_TRY(const std::string code, files.read(path, k_largest));
    std::string name = path.substr(std::min(path.size(), fixed.size() + 1));
    name = text::printable(name.substr(0, name.rfind('.')));
    shaders.push_back({std::move(name),
                       weir_probe::hash_bytes(weir_probe::k_hash_seed, code.data(), code.size())});
  }
  return shaders;
}

void name_kernels(std::span<const ShaderFile> shaders, profile::ProbeCounts& counts) {
  if (shaders.empty() || counts.kernels_named) return;
  std::map<std::string, std::int64_t> named;
  bool all = !counts.kernels.empty();
  for (const auto& [kernel, dispatches] : counts.kernels) {
    const auto entry = made_up(kernel);
    const auto shader = std::ranges::find_if(shaders, [&, &name = kernel](const ShaderFile& one) {
      return entry &&
             name == fmt::format("{}@{:016x}", *entry,
                                 weir_probe::hash_bytes(one.hash, entry->data(), entry->size()));
    });
    all = all && (shader != shaders.end() || (!entry && !kernel.starts_with('(')));  // "(other)"
    named[shader == shaders.end() ? kernel : shader->name] += dispatches;
  }
  counts.kernels = std::move(named);
  counts.kernels_named = all;
}

}  // namespace weir::probes
