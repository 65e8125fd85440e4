#include "gate/explain/roles.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "gate/base/text.hpp"
#include "gate/explain/names.hpp"

namespace weir::explain {
namespace {

using Words = std::vector<std::string>;

// Words of a name, joined as KernelName::base() joins them, and the work they tell of. ggml's ops,
// then what its backends, Agave, MLX and PyTorch call the same.
struct RoleWords {
  std::string_view words;
  std::string_view work;
};
constexpr std::array k_role_words{
    RoleWords{"mul_mat", "MUL_MAT"},
    RoleWords{"mul_mv", "MUL_MAT"},
    RoleWords{"mul_mm", "MUL_MAT"},
    RoleWords{"matmul", "MUL_MAT"},
    RoleWords{"gemv", "MUL_MAT"},
    RoleWords{"gemm", "MUL_MAT"},
    RoleWords{"mm", "MUL_MAT"},
    RoleWords{"addmm", "MUL_MAT"},
    RoleWords{"qmv", "MUL_MAT"},
    RoleWords{"qmm", "MUL_MAT"},
    RoleWords{"flash_attn", "FLASH_ATTN_EXT"},
    RoleWords{"fattn", "FLASH_ATTN_EXT"},
    RoleWords{"sdpa", "FLASH_ATTN_EXT"},
    RoleWords{"attention", "FLASH_ATTN_EXT"},
    RoleWords{"soft_max", "SOFT_MAX"},
    RoleWords{"softmax", "SOFT_MAX"},
    RoleWords{"rms_norm", "RMS_NORM"},
    RoleWords{"rmsnorm", "RMS_NORM"},
    RoleWords{"layer_norm", "NORM"},
    RoleWords{"layernorm", "NORM"},
    RoleWords{"group_norm", "GROUP_NORM"},
    RoleWords{"norm", "NORM"},
    // The ways to turn belong to ROPE: the "norm" there is no norm.
    RoleWords{"rope_norm", "ROPE"},
    RoleWords{"rope_neox", "ROPE"},
    RoleWords{"rope_multi", "ROPE"},
    RoleWords{"rope_vision", "ROPE"},
    RoleWords{"rope", "ROPE"},
    RoleWords{"get_rows", "GET_ROWS"},
    RoleWords{"emb_lookup", "GET_ROWS"},
    RoleWords{"embedding", "GET_ROWS"},
    RoleWords{"set_rows", "SET_ROWS"},
    RoleWords{"sum_rows", "SUM_ROWS"},
    RoleWords{"contig_cpy", "CPY"},
    RoleWords{"cpy", "CPY"},
    RoleWords{"copy", "CPY"},
    RoleWords{"dup", "CPY"},
    RoleWords{"cont", "CPY"},
    RoleWords{"silu_mul", "GLU"},
    RoleWords{"gelu_mul", "GLU"},
    RoleWords{"swiglu", "GLU"},
    RoleWords{"geglu", "GLU"},
    RoleWords{"reglu", "GLU"},
    RoleWords{"glu", "GLU"},
    RoleWords{"multi_add", "ADD"},
    RoleWords{"add", "ADD"},
    RoleWords{"mul", "MUL"},
    RoleWords{"sub", "SUB"},
    RoleWords{"div", "DIV"},
    RoleWords{"scale", "SCALE"},
    RoleWords{"silu", "SILU"},
    RoleWords{"gelu", "GELU"},
    RoleWords{"relu", "RELU"},
    RoleWords{"tanh", "TANH"},
    RoleWords{"sigmoid", "SIGMOID"},
    RoleWords{"view", "VIEW"},
};

constexpr std::string_view k_product = "MUL_MAT";

// The known words that stand at `at`: of several the longest.
const RoleWords* role_words_at(const Words& words, std::size_t at, std::size_t& length) {
  constexpr std::size_t k_most_words = 3;
  const RoleWords* best = nullptr;
  std::string joined;
  for (std::size_t i = at; i < words.size() && i - at < k_most_words; ++i) {
    joined += (i == at ? "" : "_") + words[i];
    for (const RoleWords& known : k_role_words) {
      if (known.words != joined) continue;
      best = &known;
      length = i - at + 1;
    }
  }
  return best;
}

void append(std::string& list, std::string_view word) {
  if (!list.empty()) list += '_';
  list += word;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

// "lm_head_gemv" says what is multiplied before it says that something is. Other words in front
// may be work of their own ("quantize_mul").
bool may_follow_words(const RoleWords& known) { return known.work == k_product; }

// "MUL_MAT_VEC q8_0 m=64 n=1 k=256": an op in capitals, and what it works on.
std::string_view op_in_capitals(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  const bool capitals = word.size() > 1 && std::all_of(word.begin(), word.end(), [](char c) {
                          return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
                        });
  return capitals ? word : std::string_view();
}

// Of work that a profiler timed together: "rope_norm_f32, set_rows_f32_f16_i64 x 2".
Words names_in(std::string_view name) {
  constexpr std::string_view k_between = ", ";
  const bool of_ops = !op_in_capitals(name).empty();
  // A comma in there parts arguments.
  const bool arguments = !of_ops && name.find_first_of("<(") != std::string_view::npos;
  if (name.size() > 4096 || arguments) return {std::string(name)};
  Words names;
  while (true) {
    const std::size_t end = name.find(k_between);
    std::string_view one = name.substr(0, end);
    if (const std::size_t times = one.rfind(" x "); times != std::string_view::npos) {
      one = one.substr(0, times);
    }
    // "q(64,1,4,1)" among the shapes of an op is none.
    const std::string_view op = op_in_capitals(one);
    if (!of_ops || !op.empty()) names.emplace_back(of_ops ? op : one);
    if (end == std::string_view::npos) return names;
    name.remove_prefix(end + k_between.size());
  }
}

Role role_of_one(std::string_view name) {
  const KernelName parsed = kernel_name(name);
  Role role;
  role.variant = parsed.variant;
  std::size_t length = 0;
  for (std::size_t at = 0; at < parsed.words.size(); at += length) {
    length = 1;
    const RoleWords* known = role_words_at(parsed.words, at, length);
    if (known != nullptr && (at == 0 || !role.work.empty() || may_follow_words(*known))) {
      append(role.work, known->work);
    } else {
      length = 1;
      append(role.part, parsed.words[at]);
    }
  }
  if (role.work.empty()) return {upper(parsed.base()), "", parsed.variant};
  // "mul_mat_vec_id": of experts that another tensor chooses.
  Words parts = text::split(role.part, '_');
  if (const auto id = std::find(parts.begin(), parts.end(), "id");
      id != parts.end() && role.work.starts_with(k_product)) {
    parts.erase(id);
    role.part = text::join(parts, "_");
    role.work.insert(k_product.size(), "_ID");
  }
  return role;
}

}  // namespace

Role role_of(std::string_view name) {
  const Words names = names_in(name);
  Role all = role_of_one(names.front());
  for (std::size_t i = 1; i < names.size(); ++i) {
    const Role one = role_of_one(names[i]);
    all.part.clear();
    all.variant.clear();
    const Words known = text::split(all.work, '+');
    if (std::find(known.begin(), known.end(), one.work) == known.end()) all.work += "+" + one.work;
  }
  return all;
}

}  // namespace weir::explain
