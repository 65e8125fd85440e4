#include "gate/profile/kernel_name.hpp"

#include <array>
#include <map>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::profile {
namespace {

using Words = std::vector<std::string>;
using Size = KernelName::Size;

// --- the vocabulary ------------------------------------------------------------------------------

enum class Kind {
  large,      // work that a model's time goes to
  small,      // work that engines fuse into what stands beside it
  other,      // other work
  finishing,  // work that ends what other kernels began
  tuned,      // no work: how it is done
  type,       // letters of a type or size, with a number behind them: "f16", "wg512"
  quantized,  // the same, whose name goes on: "q4_0"
};

// What words of names mean, joined as KernelName::base() joins them, with a space on either side.
struct Meaning {
  std::string_view work;  // ggml's op; "" where it has none of the kind, or the word is too common
  Kind kind;
  std::string_view words;
  // Works that it does at once, where its name does not say so; and how many of them have to be
  // there, as a single common one may be anything.
  std::string_view made_of{};
  std::size_t least = 1;
};

// As ggml and its backends, Agave, MLX, PyTorch, ONNX Runtime, TensorFlow.js and CLBlast say it.
constexpr std::array k_vocabulary{
    Meaning{"MUL_MAT", Kind::large,
            " mul_mat mul_mv mul_mm mat mv matmul gemv mm addmm qmv qmm dmmv "},
    Meaning{"MUL_MAT", Kind::large, " gemm ", " MUL_MAT ADD ", 2},
    Meaning{"FLASH_ATTN_EXT", Kind::large, " flash_attn fattn xe_fa sdpa attention ",
            " SOFT_MAX MUL_MAT CPY "},
    Meaning{"", Kind::large, " attn "},
    Meaning{"", Kind::other, " gate_up ", " MUL_MAT GLU "},
    Meaning{"", Kind::other, " megakernel ", " RMS_NORM NORM MUL_MAT ROPE ADD MUL "},
    Meaning{"", Kind::other, " topk_moe ", " SOFT_MAX ARGSORT GET_ROWS SUM_ROWS DIV SCALE "},
    Meaning{"GLU", Kind::small, " glu silu_mul gelu_mul swiglu geglu reglu ", " SILU GELU MUL ", 2},
    Meaning{"ADD", Kind::small, " add "},
    Meaning{"ADD", Kind::small, " multi_add ", " ADD "},
    Meaning{"SOFT_MAX", Kind::small, " soft_max softmax "},
    Meaning{"RMS_NORM", Kind::small, " rms_norm rmsnorm "},
    Meaning{"NORM", Kind::small, " norm layer_norm layernorm layer_normalization "},
    Meaning{"GROUP_NORM", Kind::small, " group_norm "},
    // The ways to turn: the "norm" there is no norm.
    Meaning{"ROPE", Kind::small, " rope rope_norm rope_neox rope_multi rope_vision "},
    Meaning{"GET_ROWS", Kind::small, " get_rows emb_lookup embedding "},
    Meaning{"SET_ROWS", Kind::small, " set_rows "},
    Meaning{"SUM_ROWS", Kind::small, " sum_rows "},
    Meaning{"CPY", Kind::small,
            " cpy contig_cpy copy dup cont convert_unary convert_unary_cont f32_to_f16 "},
    Meaning{"MUL", Kind::small, " mul "},
    Meaning{"SUB", Kind::small, " sub "},
    Meaning{"DIV", Kind::small, " div "},
    Meaning{"SCALE", Kind::small, " scale "},
    Meaning{"SILU", Kind::small, " silu "},
    Meaning{"GELU", Kind::small, " gelu "},
    Meaning{"RELU", Kind::small, " relu "},
    Meaning{"TANH", Kind::small, " tanh "},
    Meaning{"SIGMOID", Kind::small, " sigmoid "},
    Meaning{"VIEW", Kind::other, " view "},
    Meaning{"", Kind::small,
            " act activate activation axpy xaxpy bcast bias binary exp max normalization rows sqr "
            "sum to unary "},
    Meaning{"", Kind::finishing, " fa "},
    Meaning{"", Kind::tuned,
            " k m s l xs xxs nl norepeat aligned unaligned small medium large acc dp subgroup wave "
            "simd simdgroup int quant half float bfloat fp opt wg coopmat "},
    Meaning{"", Kind::type, " f bf fp i u s mxfp nvfp p wg x d cm hs float nwarp dk dv bs n int "},
    Meaning{"", Kind::quantized, " q iq tq b gs "},
};

// `list` has it with a space on either side.
bool has_word(std::string_view list, std::string_view word) {
  if (word.empty() || holds(word, ' ')) return false;
  for (std::size_t at = list.find(word); at != std::string_view::npos;
       at = list.find(word, at + 1)) {
    if (list[at - 1] == ' ' && list[at + word.size()] == ' ') return true;
  }
  return false;
}

bool means(std::string_view word, Kind kind) {
  return std::ranges::any_of(k_vocabulary, [&](const Meaning& one) {
    return one.kind == kind && has_word(one.words, word);
  });
}

// Null: not known to tell of work.
const Meaning* meaning_of(std::string_view joined) {
  // Types and shapes stand before them: "sgemm", "Conv2DMatMul".
  for (const std::string_view product : {"gemm", "matmul"}) {
    if (!holds(joined, '_') && joined.ends_with(product)) joined = product;
  }
  return first_of(k_vocabulary, [&](const Meaning& one) {
    return one.kind < Kind::finishing && has_word(one.words, joined);
  });
}

// "f16", "bf16", "q4", "iq2", "i64", "p021", "f16acc", "wg512", "x4": letters of a type or size and
// a number.
bool type_or_size(std::string_view word) {
  const std::size_t letters = std::min(word.find_first_of("0123456789"), word.size());
  const std::string_view head = word.substr(0, letters);
  const std::string_view rest = word.substr(letters);
  const auto behind = std::ranges::find_if_not(rest, text::is_digit);
  return !rest.empty() && rest.end() - behind <= 4 &&
         (means(head, Kind::type) || means(head, Kind::quantized));
}

bool variant_word(std::string_view word) {
  return std::ranges::all_of(word, text::is_digit) || type_or_size(word) ||
         means(word, Kind::tuned);
}

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

// A known word or several that follow one another, the longest that are known; else one word.
struct Phrase {
  std::string words;
  const Meaning* meaning = nullptr;  // null: not known
};
std::vector<Phrase> phrases_of(const Words& words) {
  constexpr std::size_t k_most_words = 3;
  std::vector<Phrase> phrases;
  for (std::size_t at = 0, next = 0; at < words.size(); at = next) {
    Phrase phrase{words[at]};
    next = at + 1;
    std::string joined;
    for (std::size_t i = at; i < std::min(words.size(), at + k_most_words); ++i) {
      append(joined, words[i]);
      const Meaning* meaning = meaning_of(joined);
      if (meaning == nullptr) continue;
      phrase = {joined, meaning};
      next = i + 1;
    }
    phrases.push_back(std::move(phrase));
  }
  return phrases;
}

constexpr std::string_view k_product = "MUL_MAT";

// Works, part and size by the words.
void add_meaning(KernelName& name) {
  constexpr std::size_t k_most_small_words = 4;
  bool large = false, small = false;
  for (auto& [words, meaning] : phrases_of(name.words)) {
    large = large || (meaning != nullptr && meaning->kind == Kind::large);
    small = small || (meaning != nullptr && meaning->kind == Kind::small);
    // "lm_head_gemv" says what is multiplied before it says that something is. Other words in front
    // may be work of their own ("quantize_mul").
    const std::string_view work = meaning != nullptr ? meaning->work : "";
    if (!work.empty() && (name.part.empty() || !name.works.empty() || work == k_product)) {
      name.works.emplace_back(work);
    } else {
      append(name.part, words);
    }
  }
  small = small && name.words.size() <= k_most_small_words;
  name.size = large ? Size::large : small ? Size::small : Size::unknown;
  // "mul_mat_vec_id": of experts that another tensor chooses.
  Words parts = text::split(name.part, '_');
  const auto id = std::ranges::find(parts, "id");
  if (id == parts.end() || name.works.empty() || name.works.front() != k_product) return;
  parts.erase(id);
  name.part = text::join(parts, "_");
  name.works.front() += "_ID";
}

// --- the parts of a name -------------------------------------------------------------------------

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

// Where the words of a part stand within more of them.
std::optional<std::ptrdiff_t> place_in(const Words& words, const Words& part) {
  const auto found = std::search(words.begin(), words.end(), part.begin(), part.end());
  if (part.empty() || found == words.end() || part.size() == words.size()) return std::nullopt;
  return found - words.begin();
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
  KernelName one = kernel_name(name);
  std::string work = one.work();
  if (one.works.empty()) one.part.clear();
  return {std::move(work), std::move(one.part), std::move(one.variant), std::move(one.works)};
}

}  // namespace

std::string KernelName::base() const { return text::join(words, "_"); }

std::string KernelName::work() const {
  return works.empty() ? upper(base()) : text::join(works, "_");
}

std::string_view op_of(std::string_view name) {
  const std::string_view word = name.substr(0, name.find(' '));
  const bool capitals = word.size() > 1 && std::ranges::all_of(word, [](char c) {
                          return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
                        });
  return capitals ? word : std::string_view();
}

KernelName kernel_name(std::string_view name) {
  constexpr std::size_t k_longest = 512;
  KernelName made;
  const std::string_view op = op_of(name);
  if (!op.empty() && op.size() < name.size()) {
    made = kernel_name(op);
    append(made.variant, name.substr(op.size() + 1, k_longest));
    return made;
  }
  std::string lowered = text::lower(split_capitals(bare(name.substr(0, k_longest))));
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
  add_meaning(made);
  // Libraries of templates tell it among their arguments: "Kernel2<cutlass_80_s16816gemm_f16>".
  const std::string whole = text::lower(name.substr(0, k_longest));
  for (const std::string_view word : {"gemm", "gemv", "attn"}) {
    if (whole.find(word) != std::string::npos) made.size = Size::large;
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
  for (const auto& [words, meaning] : phrases_of(joined.words)) {
    if (meaning == nullptr || meaning->made_of.empty()) continue;
    std::set<std::string> kinds;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      // All that the part does is among it: "rms_norm_mul" is no "mul".
      const Words works = parts[i].works.empty() ? Words{parts[i].work()} : parts[i].works;
      const bool within = std::ranges::all_of(
          works, [&](const std::string& work) { return has_word(meaning->made_of, work); });
      if (!within) continue;
      found.push_back(i);
      kinds.insert(parts[i].work());
    }
    if (kinds.size() >= meaning->least) return found;
    found.clear();
  }
  return {};
}

bool is_product(const KernelName& name) {
  return std::ranges::any_of(name.works,
                             [](const std::string& work) { return work.starts_with(k_product); });
}

bool large_work(const KernelName& name) { return name.size == Size::large; }

bool small_work(const KernelName& name) { return name.size == Size::small; }

bool is_copy(const KernelName& name) { return name.work() == "CPY"; }

bool finishes_attention(const KernelName& name) {
  return !name.words.empty() && means(name.words.front(), Kind::finishing);
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
  Words words = text::split(name.substr(0, arguments), '_');
  // "dequant_q4_0", "gs_64_b_4": the number belongs to the type.
  const bool number = words.size() > 1 && !words.back().empty() &&
                      std::ranges::all_of(words.back(), text::is_digit);
  if (number) {
    const std::string& before = words[words.size() - 2];
    const std::string letters = before.substr(0, before.find_first_of("0123456789"));
    if (!before.empty() && !means(letters, Kind::quantized)) words.pop_back();
  }
  std::string untuned = text::join(words, "_");
  for (const std::string& one : text::split(name.substr(arguments), ',')) {
    constexpr std::string_view k_off = "false";
    std::string argument = one;
    std::erase_if(argument, [](char c) { return holds(" <>", c); });
    const bool is_number = std::ranges::all_of(argument, text::is_digit);
    if (!is_number && argument != k_off) untuned += ',' + argument;
  }
  return untuned;
}

Role role_of(std::string_view name) {
  const Words names = names_in(name);
  constexpr std::size_t k_most = 64;
  Role all = role_of_one(names.front());
  for (std::size_t i = 1; i < std::min(names.size(), k_most); ++i) {
    const Role one = role_of_one(names[i]);
    all.part.clear();
    all.variant.clear();
    all.works.insert(all.works.end(), one.works.begin(), one.works.end());
    if (!holds(text::split(all.work, '+'), one.work)) all.work += "+" + one.work;
  }
  return all;
}

}  // namespace weir::profile
