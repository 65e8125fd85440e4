#include "gate/explain/names.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "gate/base/text.hpp"

namespace weir::explain {
namespace {

using Words = std::vector<std::string>;

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "f16", "bf16", "q4", "iq2", "i64", "p021", "f16acc", "wg512", "x4": letters of a type or size and
// a number.
bool type_or_size(std::string_view word) {
  static constexpr std::array k_heads = {"f",  "bf",    "fp",    "i",  "u",  "s",  "q", "iq",
                                         "tq", "mxfp",  "nvfp",  "p",  "wg", "x",  "d", "cm",
                                         "hs", "float", "nwarp", "dk", "dv", "bs", "n", "int"};
  for (const std::string_view head : k_heads) {
    if (!word.starts_with(head)) continue;
    const std::string_view rest = word.substr(head.size());
    const auto digits = static_cast<std::size_t>(
        std::find_if(rest.begin(), rest.end(), [](char c) { return c < '0' || c > '9'; }) -
        rest.begin());
    if (digits > 0 && rest.size() - digits <= 4) return true;
  }
  return false;
}

bool variant_word(std::string_view word) {
  static constexpr std::array k_words = {
      "k",        "m",       "s",     "l",         "xs",     "xxs",       "nl",
      "norepeat", "aligned", "small", "large",     "medium", "acc",       "dp",
      "subgroup", "wave",    "simd",  "simdgroup", "int",    "quant",     "half",
      "float",    "bfloat",  "fp",    "opt",       "wg",     "unaligned", "coopmat"};
  return all_digits(word) || type_or_size(word) ||
         std::find(k_words.begin(), k_words.end(), word) != k_words.end();
}

// The function's own name out of "void ns::kernel_mul_mv<float, 4>(int)".
std::string_view bare(std::string_view name) {
  if (const std::size_t cut = name.find_first_of("<("); cut != std::string_view::npos && cut > 0) {
    name = name.substr(0, cut);
  }
  if (const std::size_t colons = name.rfind("::"); colons != std::string_view::npos) {
    name = name.substr(colons + 2);
  }
  if (const std::size_t space = name.rfind(' '); space != std::string_view::npos) {
    name = name.substr(space + 1);
  }
  for (const std::string_view head : {"kernel_", "ggml_cuda_", "ggml_", "k_"}) {
    if (name.starts_with(head) && name.size() > head.size()) name = name.substr(head.size());
  }
  return name;
}

bool holds(const Words& words, const Words& part, std::size_t& at) {
  const auto found = std::search(words.begin(), words.end(), part.begin(), part.end());
  if (part.empty() || found == words.end() || part.size() == words.size()) return false;
  at = static_cast<std::size_t>(found - words.begin());
  return true;
}

// Kernels that do the work of others without their names: any word in the left one, then words that
// stand in names of what it replaces.
struct KnownFusion {
  std::string_view joined;
  std::array<std::string_view, 6> parts;
};
constexpr std::array k_known = {
    KnownFusion{"flash_attn", {"soft_max", "softmax", "mul_mat", "matmul", "mul_mv", "cpy"}},
    KnownFusion{"sdpa", {"soft_max", "softmax", "gemv", "gemm", "matmul", ""}},
    KnownFusion{"attention", {"soft_max", "softmax", "gemv", "gemm", "matmul", ""}},
    KnownFusion{"topk_moe", {"soft_max", "argsort", "get_rows", "sum_rows", "div", "scale"}},
    KnownFusion{"swiglu", {"silu", "mul", "", "", "", ""}},
    KnownFusion{"geglu", {"gelu", "mul", "", "", "", ""}},
    KnownFusion{"multi_add", {"add", "", "", "", "", ""}},
    KnownFusion{"megakernel", {"norm", "gemv", "matmul", "rope", "add", "mul"}},
};

bool known_part(const KnownFusion& known, const std::string& part) {
  return std::any_of(known.parts.begin(), known.parts.end(), [&](std::string_view one) {
    return !one.empty() && part.find(one) != std::string::npos;
  });
}

}  // namespace

std::string KernelName::base() const { return text::join(words, "_"); }

KernelName kernel_name(std::string_view name) {
  KernelName made;
  std::string lowered = text::lower(bare(name.substr(0, 512)));
  std::replace_if(
      lowered.begin(), lowered.end(),
      [](char c) { return c == '-' || c == '.' || c == ' ' || c == '/'; }, '_');
  bool variant = false;
  std::string rest;
  for (std::string& word : text::split(lowered, '_')) {
    if (word.empty()) continue;
    variant = variant || (!made.words.empty() && variant_word(word));
    if (!variant) {
      made.words.push_back(std::move(word));
    } else {
      rest += (rest.empty() ? "" : "_") + word;
    }
  }
  made.variant = std::move(rest);
  return made;
}

bool same_work(const KernelName& a, const KernelName& b) {
  if (a.words.empty() || b.words.empty()) return false;
  return a.words == b.words;
}

std::vector<std::size_t> parts_of(const KernelName& joined, const std::vector<KernelName>& parts) {
  std::map<std::size_t, std::size_t> by_place;  // where in the joined name -> which part
  std::vector<bool> taken(joined.words.size(), false);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::size_t at = 0;
    if (!holds(joined.words, parts[i].words, at)) continue;
    const auto begin = taken.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(parts[i].words.size());
    if (std::find(begin, end, true) != end) continue;
    std::fill(begin, end, true);
    by_place[at] = i;
  }
  std::vector<std::size_t> found;
  if (by_place.size() >= 2) {
    for (const auto& [at, part] : by_place) found.push_back(part);
    return found;
  }
  const std::string name = joined.base();
  for (const KnownFusion& known : k_known) {
    if (name.find(known.joined) == std::string::npos) continue;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (known_part(known, parts[i].base())) found.push_back(i);
    }
    if (!found.empty()) return found;
  }
  return {};
}

bool small_work(const KernelName& name) {
  static constexpr std::array k_small = {
      "add",  "mul",     "sub",  "div",  "scale", "silu",   "gelu",    "relu",     "tanh",
      "norm", "rope",    "cpy",  "copy", "glu",   "swiglu", "sigmoid", "cont",     "rows",
      "max",  "softmax", "bias", "sqr",  "sum",   "exp",    "act",     "activate", "activation"};
  if (name.words.size() > 4) return false;
  for (const std::string& word : name.words) {
    if (word == "mat" || word == "matmul" || word == "gemv" || word == "gemm" || word == "mv") {
      return false;
    }
  }
  return std::any_of(name.words.begin(), name.words.end(), [](const std::string& word) {
    return std::find(k_small.begin(), k_small.end(), word) != k_small.end();
  });
}

}  // namespace weir::explain
