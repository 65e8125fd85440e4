#include "gate/profile/kernel_name.hpp"

#include <array>
#include <map>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::profile {
namespace {

using Words = std::vector<std::string>;

// "f16", "bf16", "q4", "iq2", "i64", "p021", "f16acc", "wg512", "x4": letters of a type or size and
// a number.
bool type_or_size(std::string_view word) {
  static constexpr std::array k_heads = {"f",  "bf",    "fp",    "i",  "u",  "s",  "q", "iq",
                                         "tq", "mxfp",  "nvfp",  "p",  "wg", "x",  "d", "cm",
                                         "hs", "float", "nwarp", "dk", "dv", "bs", "n", "int"};
  for (const std::string_view head : k_heads) {
    if (!word.starts_with(head)) continue;
    const std::string_view rest = word.substr(head.size());
    const auto behind = std::ranges::find_if_not(rest, text::is_digit);
    if (behind != rest.begin() && rest.end() - behind <= 4) return true;
  }
  return false;
}

bool variant_word(std::string_view word) {
  static constexpr std::array k_words = {
      "k",        "m",       "s",     "l",         "xs",     "xxs",       "nl",
      "norepeat", "aligned", "small", "large",     "medium", "acc",       "dp",
      "subgroup", "wave",    "simd",  "simdgroup", "int",    "quant",     "half",
      "float",    "bfloat",  "fp",    "opt",       "wg",     "unaligned", "coopmat"};
  return (!word.empty() && std::ranges::all_of(word, text::is_digit)) || type_or_size(word) ||
         holds(k_words, word);
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

// Where the words of a part stand within more of them.
std::optional<std::ptrdiff_t> place_in(const Words& words, const Words& part) {
  const auto found = std::search(words.begin(), words.end(), part.begin(), part.end());
  if (part.empty() || found == words.end() || part.size() == words.size()) return std::nullopt;
  return found - words.begin();
}

// Kernels that do the work of others without their names: any word in the left one, then words that
// stand in names of what it replaces.
struct KnownFusion {
  std::string_view joined;
  std::array<std::string_view, 8> parts;
  std::size_t least = 1;  // so many kinds of them: of common ones a single one may be anything
};
constexpr std::array k_known = {
    KnownFusion{"flash_attn",
                {"soft_max", "softmax", "gemm", "mul_mat", "matmul", "mul_mv", "cpy", "cont"}},
    KnownFusion{"xe_fa",
                {"soft_max", "softmax", "gemm", "mul_mat", "matmul", "mul_mv", "cpy", "cont"}},
    KnownFusion{"sdpa", {"soft_max", "softmax", "gemv", "gemm", "matmul", ""}},
    KnownFusion{"attention", {"soft_max", "softmax", "gemv", "gemm", "matmul", ""}},
    KnownFusion{"topk_moe", {"soft_max", "argsort", "get_rows", "sum_rows", "div", "scale"}},
    KnownFusion{"gate_up", {"mul_mat", "matmul", "mul_mv", "gemv", "gemm", "glu"}},
    KnownFusion{"swiglu", {"silu", "mul", "", "", "", ""}, 2},
    KnownFusion{"geglu", {"gelu", "mul", "", "", "", ""}, 2},
    KnownFusion{"gemm", {"matmul", "add", "", "", "", ""}, 2},
    KnownFusion{"multi_add", {"add", "", "", "", "", ""}},
    KnownFusion{"megakernel", {"norm", "gemv", "matmul", "rope", "add", "mul"}},
};

// Words of names that tell of work, joined as KernelName::base() joins them, with a space on either
// side: ggml's ops, by their own names, and what its backends, Agave, MLX and PyTorch call the
// same. The ways to turn belong to ROPE: the "norm" there is no norm.
constexpr std::string_view k_own_names =
    " mul_mat soft_max rms_norm norm group_norm rope get_rows set_rows sum_rows cpy glu add mul "
    "sub div scale silu gelu relu tanh sigmoid view ";
struct OtherNames {
  std::string_view work, words;
};
constexpr std::array k_other_names{
    OtherNames{"MUL_MAT", " mul_mv mul_mm matmul gemv gemm sgemm mm addmm qmv qmm "},
    OtherNames{"FLASH_ATTN_EXT", " flash_attn fattn xe_fa sdpa attention "},
    OtherNames{"SOFT_MAX", " softmax "},
    OtherNames{"RMS_NORM", " rmsnorm "},
    OtherNames{"NORM", " layer_norm layernorm "},
    OtherNames{"ROPE", " rope_norm rope_neox rope_multi rope_vision "},
    OtherNames{"GET_ROWS", " emb_lookup embedding "},
    OtherNames{"CPY", " contig_cpy copy dup cont convert_unary convert_unary_cont f32_to_f16 "},
    OtherNames{"GLU", " silu_mul gelu_mul swiglu geglu reglu "},
    OtherNames{"ADD", " multi_add "},
};

constexpr std::string_view k_product = "MUL_MAT";

void append(std::string& list, std::string_view word) {
  if (!list.empty()) list += '_';
  list += word;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return text;
}

// What words tell of; "" where they are not known.
std::string work_of(const std::string& joined) {
  const std::string apart = " " + joined + " ";
  if (k_own_names.find(apart) != std::string_view::npos) return upper(joined);
  const OtherNames* found = first_of(k_other_names, [&](const OtherNames& other) {
    return other.words.find(apart) != std::string_view::npos;
  });
  return found == nullptr ? "" : std::string(found->work);
}

// What the known words that stand at `at` tell of, of several the longest; "" where none are known.
std::string role_at(const Words& words, std::size_t at, std::size_t& length) {
  constexpr std::size_t k_most_words = 3;
  std::string best, joined;
  for (std::size_t i = at; i < words.size() && i - at < k_most_words; ++i) {
    append(joined, words[i]);
    std::string work = work_of(joined);
    if (work.empty()) continue;
    best = std::move(work);
    length = i - at + 1;
  }
  return best;
}

// Of work that a profiler timed together: "rope_norm_f32, set_rows_f32_f16_i64 x 2".
Words names_in(std::string_view name) {
  constexpr std::string_view k_between = ", ";
  const bool of_ops = !op_of(name.substr(0, name.find(k_between))).empty();
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
    const std::string_view op = op_of(one);
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
    const std::string work = role_at(parsed.words, at, length);
    // "lm_head_gemv" says what is multiplied before it says that something is. Other words in front
    // may be work of their own ("quantize_mul").
    if (!work.empty() && (at == 0 || !role.work.empty() || work == k_product)) {
      append(role.work, work);
      role.works.push_back(work);
    } else {
      length = 1;
      append(role.part, parsed.words[at]);
    }
  }
  if (role.work.empty()) return {upper(parsed.base()), "", parsed.variant, {}};
  // "mul_mat_vec_id": of experts that another tensor chooses.
  Words parts = text::split(role.part, '_');
  if (const auto id = std::ranges::find(parts, "id");
      id != parts.end() && role.work.starts_with(k_product)) {
    parts.erase(id);
    role.part = text::join(parts, "_");
    role.work.insert(k_product.size(), "_ID");
    role.works.front() += "_ID";
  }
  return role;
}

// All that the part does is among what the known one does: "rms_norm_mul" is no "mul".
bool known_part(const KnownFusion& known, const std::string& part) {
  const auto any = [&](const auto& fits) {
    return std::ranges::any_of(
        known.parts, [&](std::string_view one) { return !one.empty() && fits(std::string(one)); });
  };
  const Role role = role_of_one(part);
  const bool all = std::ranges::all_of(role.works, [&](const std::string& work) {
    return any([&](const std::string& one) {
      const std::string its = work_of(one);
      return !its.empty() && work.ends_with(its);
    });
  });
  return all && any([&](const std::string& one) { return part.find(one) != std::string::npos; });
}

// "MatMulPackedProgram": words that begin with a capital, MatMul being one.
std::string split_capitals(std::string_view name) {
  std::string words;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool begins =
        i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z' && name[i] >= 'A' && name[i] <= 'Z';
    if (begins && !(name.substr(i).starts_with("Mul") && words.ends_with("Mat"))) words += '_';
    words += name[i];
  }
  return words;
}

// "dequant_q4", "gs_64_b": the number behind it belongs to a type.
bool ends_in_a_type(std::string_view name) {
  static constexpr std::array k_types = {"q", "iq", "tq", "b", "gs"};
  const std::string_view word = name.substr(name.rfind('_') + 1);
  return holds(k_types, word.substr(0, word.find_first_of("0123456789")));
}

}  // namespace

std::string KernelName::base() const { return text::join(words, "_"); }

std::string_view op_of(std::string_view name) {
  const std::string_view word = name.substr(0, name.find(' '));
  const bool capitals = word.size() > 1 && std::ranges::all_of(word, [](char c) {
                          return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
                        });
  return capitals ? word : std::string_view();
}

KernelName kernel_name(std::string_view name) {
  KernelName made;
  const std::string_view op = op_of(name);
  if (!op.empty() && op.size() < name.size()) {
    made = kernel_name(op);
    append(made.variant, name.substr(op.size() + 1, 512));
    return made;
  }
  std::string lowered = text::lower(split_capitals(bare(name.substr(0, 512))));
  std::ranges::replace_if(
      lowered, [](char c) { return holds("-. /", c); }, '_');
  for (std::string& word : text::split(lowered, '_')) {
    if (word.empty()) continue;
    // "split_k": along the inner dimension. Elsewhere the letter belongs to a type.
    const std::string before = made.words.empty() ? "" : made.words.back();
    const bool split_k = word == "k" && before == "split";
    // "f32_to_f16": what the kernel does.
    const bool target = before == "to";
    if (!made.variant.empty() ||
        (!made.words.empty() && !split_k && !target && variant_word(word))) {
      append(made.variant, word);
    } else {
      made.words.push_back(std::move(word));
    }
  }
  return made;
}

bool same_work(const KernelName& a, const KernelName& b) {
  return !a.words.empty() && a.words == b.words;
}

std::vector<std::size_t> parts_of(const KernelName& joined, const std::vector<KernelName>& parts) {
  std::map<std::ptrdiff_t, std::size_t> by_place;  // where in the joined name -> which part
  std::vector<bool> taken(joined.words.size(), false);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto at = place_in(joined.words, parts[i].words);
    if (!at) continue;
    const auto begin = taken.begin() + *at, end = begin + std::ssize(parts[i].words);
    if (std::find(begin, end, true) != end) continue;
    std::fill(begin, end, true);
    by_place[*at] = i;
  }
  std::vector<std::size_t> found;
  if (by_place.size() >= 2) {
    for (const auto& [at, part] : by_place) found.push_back(part);
    return found;
  }
  const std::string name = joined.base();
  for (const KnownFusion& known : k_known) {
    if (name.find(known.joined) == std::string::npos) continue;
    std::set<std::string> kinds;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!known_part(known, parts[i].base())) continue;
      found.push_back(i);
      kinds.insert(parts[i].base());
    }
    if (kinds.size() >= known.least) return found;
    found.clear();
  }
  return {};
}

bool is_product(const KernelName& name) {
  return std::ranges::any_of(name.words, [](const std::string& word) {
    return word.find("mat") != std::string::npos || word == "gemv" || word.ends_with("gemm") ||
           word == "mv" || word == "mm";
  });
}

bool large_work(const KernelName& name) {
  const bool xe = name.base().starts_with("xe_fa");
  return xe || is_product(name) || std::ranges::any_of(name.words, [](const std::string& word) {
           return word.starts_with("attn") || word.starts_with("attention") || word == "sdpa";
         });
}

std::string lasting_name(std::string_view name) {
  constexpr std::string_view k_tiles = "sml";
  std::string lasting(name);
  if (!name.starts_with("matmul_") || name[name.size() - 2] != '_') return lasting;
  const std::size_t tile = k_tiles.find(name.back());
  if (tile != std::string_view::npos) lasting.back() = static_cast<char>('0' + tile);
  return lasting;
}

std::string untuned_name(std::string_view name) {
  // Its number is a tile, which is chosen by shape and by what the device has.
  if (name.starts_with("matmul_")) return lasting_name(name);
  const std::size_t arguments = std::min(name.find('<'), name.size());
  std::string_view head = name.substr(0, arguments);
  const std::size_t last = head.rfind('_');
  const std::string_view end = last == std::string_view::npos ? "" : head.substr(last + 1);
  if (!end.empty() && last > 0 && std::ranges::all_of(end, text::is_digit) &&
      !ends_in_a_type(head.substr(0, last))) {
    head = head.substr(0, last);
  }
  std::string untuned(head);
  for (const std::string& one : text::split(name.substr(arguments), ',')) {
    constexpr std::string_view k_off = "false";
    std::string argument = one;
    std::erase_if(argument, [](char c) { return holds(" <>", c); });
    const bool number = std::ranges::all_of(argument, text::is_digit);
    if (!number && argument != k_off) untuned += ',' + argument;
  }
  return untuned;
}

bool small_work(const KernelName& name) {
  static constexpr std::array k_small = {
      "add",    "mul",           "sub",   "div",  "scale",    "silu",       "gelu",
      "relu",   "tanh",          "norm",  "rope", "cpy",      "copy",       "glu",
      "swiglu", "sigmoid",       "cont",  "rows", "max",      "softmax",    "bias",
      "sqr",    "sum",           "exp",   "act",  "activate", "activation", "unary",
      "binary", "normalization", "bcast", "axpy", "xaxpy",    "to"};
  static constexpr std::array k_products = {"mat", "matmul", "gemv", "gemm", "mv"};
  const auto any = [&](const auto& known) {
    return std::ranges::any_of(name.words, [&](const auto& word) { return holds(known, word); });
  };
  return name.words.size() <= 4 && !any(k_products) && any(k_small);
}

Role role_of(std::string_view name) {
  const Words names = names_in(name);
  Role all = role_of_one(names.front());
  for (std::size_t i = 1; i < names.size(); ++i) {
    const Role one = role_of_one(names[i]);
    all.part.clear();
    all.variant.clear();
    all.works.insert(all.works.end(), one.works.begin(), one.works.end());
    if (!holds(text::split(all.work, '+'), one.work)) all.work += "+" + one.work;
  }
  return all;
}

}  // namespace weir::profile
