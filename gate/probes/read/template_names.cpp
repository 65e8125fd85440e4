// Shortens the names of kernels that are C++ templates.
#include "gate/probes/read/template_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "gate/base/text.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_long = 100;
constexpr std::string_view k_aten = "at::native::";
// The beginning of more of ATen's names, without a scope. Their numbers follow the length of the
// text.
constexpr std::string_view k_softmax = "softmax_warp_";

bool is_of_identifier(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::vector<std::string_view> identifiers_of(std::string_view text) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_of_identifier(text[end])) ++end;
    if (end > at) all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

// Returns the name of what a functor computes: "add" of CUDAFunctor_add, "neg" of neg_kernel_cuda.
// Nothing for identifiers that only pass others on.
std::optional<std::string_view> work_of(std::string_view identifier) {
  constexpr std::array<std::string_view, 5> k_wrappers = {
      "BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor", "UnaryFunctor", "gpu_kernel_impl"};
  constexpr std::array<std::string_view, 2> k_prefixes = {"CUDAFunctor_", "CUDAFunctorOnSelf_"};
  constexpr std::array<std::string_view, 7> k_endings = {
      "_kernel_cuda", "_kernel_cuda_impl", "_kernel_impl", "_kernel", "Functor", "Ops", "_cuda"};
  for (const std::string_view wrapper : k_wrappers) {
    if (identifier.starts_with(wrapper)) return std::nullopt;
  }
  for (const std::string_view prefix : k_prefixes) {
    if (identifier.starts_with(prefix)) return identifier.substr(prefix.size());
  }
  for (const std::string_view ending : k_endings) {
    if (identifier.size() > ending.size() && identifier.ends_with(ending)) {
      return identifier.substr(0, identifier.size() - ending.size());
    }
  }
  return std::nullopt;
}

// Returns the short name of a type of tensors; nothing for other identifiers.
std::optional<std::string_view> type_of(std::string_view identifier) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> k_types = {
      {{"BFloat16", "bf16"},
       {"Half", "f16"},
       {"bfloat16_t", "bf16"},
       {"half_t", "f16"},
       {"float", "f32"},
       {"double", "f64"},
       {"long", "i64"},
       {"int", "i32"},
       {"short", "i16"},
       {"bool", "bool"},
       {"Float8_e4m3fn", "f8"},
       {"Float8_e5m2", "f8"}}};
  const auto* entry =
      std::ranges::find(k_types, identifier, &std::pair<std::string_view, std::string_view>::first);
  return entry == k_types.end() ? std::nullopt : std::optional(entry->second);
}

// Returns a short name for a kernel of torch's ATen: "Function<work, type>". `arguments`: the
// kernel's template arguments.
std::string aten_name(std::string_view function, std::string_view arguments) {
  std::vector<std::string> parts;
  std::optional<std::string_view> work, type;
  for (const std::string_view identifier : identifiers_of(arguments)) {
    if (!work) work = work_of(identifier);
    if (!type) type = type_of(identifier);
  }
  if (work) parts.emplace_back(*work);
  if (type) parts.emplace_back(*type);
  std::string name(function);
  if (!parts.empty()) name += "<" + text::join(parts, ", ") + ">";
  return name;
}

// Returns a C++ name without scopes ("std::") and without all that stands in two or more levels of
// brackets.
std::string flat_name(std::string_view name) {
  std::string flat;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '>' || c == ')') --depth;
    if (depth <= 1 && c == ':' && i + 1 < name.size() && name[i + 1] == ':') {
      while (!flat.empty() && is_of_identifier(flat.back())) flat.pop_back();
      ++i;
    } else if (depth <= 0 || (depth == 1 && c != '<' && c != '>' && c != '(' && c != ')')) {
      flat += c;
    }
    if (c == '<' || c == '(') ++depth;
  }
  return flat;
}

}  // namespace

std::string short_template_name(std::string_view name) {
  const std::size_t bracket = name.find('<');
  if (bracket == std::string_view::npos) return std::string(name);
  if (name.find(k_aten) != std::string_view::npos || name.starts_with(k_softmax)) {
    const std::string_view scoped = name.substr(0, bracket);
    const std::string_view function = scoped.substr(scoped.rfind(':') + 1);  // npos + 1 is 0
    return aten_name(function, name.substr(bracket + 1));
  }
  return name.size() <= k_long ? std::string(name) : flat_name(name);
}

}  // namespace weir::probes
