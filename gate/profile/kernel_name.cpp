// Reads names of kernels and ops: the work, its part, its size, and the variant.
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
  small,      // work that engines fuse into its neighbours
  other,      // other work
  finishing,  // work that ends what other kernels began
  tuned,      // no work: how it is done
  type,       // letters of a type or size before a number: "f16", "wg512"
  quantized,  // the same, whose name goes on: "q4_0"
};

// A row of the vocabulary: words of names, joined as KernelName::base() joins them, with a space on
// either side.
struct Meaning {
  std::string_view work;  // ggml's op; "" if there is none, or if the word is too common
  Kind kind;
  std::string_view words;
  // Works that it does at once, if its name does not say so. `min_works_present` of them have to be
  // present, because a single common one may be anything.
  std::string_view made_of{};
  std::size_t min_works_present = 1;
};

// Words of ggml and its backends, Agave, MLX, PyTorch, ONNX Runtime, TensorFlow.js and CLBlast.
constexpr std::array k_vocabulary{
    Meaning{"MUL_MAT", Kind::large,
            " mul_mat mul_mv mul_mm mat mv matmul gemv mm addmm qmv qmm dmmv "},
    Meaning{"MUL_MAT", Kind::large, " gemm ", " MUL_MAT ADD ", 2},
    Meaning{"FLASH_ATTN_EXT", Kind::large, " flash_attn fattn xe_fa sdpa attention flash_fwd fmha ",
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
    // Here "norm" is a way to rotate and no norm.
    Meaning{"ROPE", Kind::small, " rope rope_norm rope_neox rope_multi rope_vision "},
    Meaning{"GET_ROWS", Kind::small, " get_rows emb_lookup embedding "},
    Meaning{"SET_ROWS", Kind::small, " set_rows "},
    Meaning{"SUM_ROWS", Kind::small, " sum_rows "},
    Meaning{"CPY", Kind::small,
            " cpy contig_cpy copy direct_copy converting_copy dup cont convert_unary "
            "convert_unary_cont f32_to_f16 "},
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
            " act activate activation axpy xaxpy bcast bias binary exp max "
            "normalization rows sqr sum to unary "},
    Meaning{"", Kind::finishing, " fa "},
    Meaning{"", Kind::tuned,
            " k m s l xs xxs nl norepeat aligned unaligned small medium large acc dp subgroup wave "
            "simd simdgroup int quant half float bfloat fp opt wg coopmat "},
    Meaning{"", Kind::type, " f bf fp i u s mxfp nvfp p wg x d cm hs float nwarp dk dv bs n int "},
    Meaning{"", Kind::quantized, " q iq tq b gs "},
};

// Returns the rows of the vocabulary that contain a word, in their order; empty for an unknown
// word. The index is built once, as thousands of names look up all their words.
const std::vector<const Meaning*>& meanings_of(std::string_view word) {
  static const auto k_rows = [] {
    std::map<std::string_view, std::vector<const Meaning*>> rows;
    for (const Meaning& meaning : k_vocabulary) {
      std::string_view rest = meaning.words;
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        if (end > 0) rows[rest.substr(0, end)].push_back(&meaning);
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    return rows;
  }();
  static const std::vector<const Meaning*> k_none;
  const auto entry = k_rows.find(word);
  return entry == k_rows.end() ? k_none : entry->second;
}

// Returns true if `list` contains the word with a space on either side.
bool has_word(std::string_view list, std::string_view word) {
  if (word.empty() || holds(word, ' ')) return false;
  for (std::size_t position = list.find(word); position != std::string_view::npos;
       position = list.find(word, position + 1)) {
    if (list[position - 1] == ' ' && list[position + word.size()] == ' ') return true;
  }
  return false;
}

bool means(std::string_view word, Kind kind) {
  return std::ranges::any_of(meanings_of(word),
                             [&](const Meaning* meaning) { return meaning->kind == kind; });
}

// Returns the work that the words mean; null if it is unknown.
const Meaning* find_meaning(std::string_view joined) {
  // Types and shapes may precede these words: "sgemm", "Conv2DMatMul".
  for (const std::string_view product : {"gemm", "matmul"}) {
    if (!holds(joined, '_') && joined.ends_with(product)) joined = product;
  }
  const Meaning* const* meaning = find_first(
      meanings_of(joined), [](const Meaning* row) { return row->kind < Kind::finishing; });
  return meaning == nullptr ? nullptr : *meaning;
}

// Returns true for letters of a type or size with a number: "f16", "bf16", "q4", "iq2", "i64",
// "p021", "f16acc", "wg512", "x4".
bool is_type_or_size(std::string_view word) {
  const std::size_t letters = std::min(word.find_first_of("0123456789"), word.size());
  const std::string_view prefix = word.substr(0, letters);
  const std::string_view number_and_suffix = word.substr(letters);
  const auto suffix = std::ranges::find_if_not(number_and_suffix, text::is_digit);
  return !number_and_suffix.empty() && number_and_suffix.end() - suffix <= 4 &&
         (means(prefix, Kind::type) || means(prefix, Kind::quantized));
}

bool is_variant_word(std::string_view word) {
  return std::ranges::all_of(word, text::is_digit) || is_type_or_size(word) ||
         means(word, Kind::tuned);
}

void append(std::string& list, std::string_view word) {
  if (!list.empty()) list += '_';
  list += word;
}

std::string to_upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return text;
}

// One word, or several that have a meaning together.
struct Phrase {
  std::string words;
  const Meaning* meaning = nullptr;  // null: unknown
};
// Splits words into phrases: at each place the longest one, of up to three words, that has a
// meaning; else one word.
std::vector<Phrase> split_phrases(const Words& words) {
  constexpr std::size_t k_max_words = 3;
  std::vector<Phrase> phrases;
  for (std::size_t start = 0, next = 0; start < words.size(); start = next) {
    Phrase phrase{words[start]};
    next = start + 1;
    std::string joined;
    for (std::size_t i = start; i < std::min(words.size(), start + k_max_words); ++i) {
      append(joined, words[i]);
      const Meaning* meaning = find_meaning(joined);
      if (meaning == nullptr) continue;
      phrase = {joined, meaning};
      next = i + 1;
    }
    phrases.push_back(std::move(phrase));
  }
  return phrases;
}

constexpr std::string_view k_product = "MUL_MAT";

// Sets what a kernel computes (works, as ops), the remaining words (part), and the size of the
// work, all from the words of its name.
void add_meaning(KernelName& name) {
  constexpr std::size_t k_max_small_words = 4;
  bool is_large = false, is_small = false;
  for (auto& [words, meaning] : split_phrases(name.words)) {
    is_large = is_large || (meaning != nullptr && meaning->kind == Kind::large);
    is_small = is_small || (meaning != nullptr && meaning->kind == Kind::small);
    // "lm_head_gemv" names what is multiplied before the multiplication, so it is a part. Other
    // words in front may be work of their own ("quantize_mul").
    const std::string_view work = meaning != nullptr ? meaning->work : "";
    if (!work.empty() && (name.part.empty() || !name.works.empty() || work == k_product)) {
      name.works.emplace_back(work);
    } else {
      append(name.part, words);
    }
  }
  is_small = is_small && name.words.size() <= k_max_small_words;
  if (is_small) name.size = Size::small;
  if (is_large) name.size = Size::large;
  // "mul_mat_vec_id" multiplies with experts that another tensor chooses.
  Words parts = text::split(name.part, '_');
  const auto id_word = std::ranges::find(parts, "id");
  if (id_word == parts.end() || name.works.empty() || name.works.front() != k_product) return;
  parts.erase(id_word);
  name.part = text::join(parts, "_");
  name.works.front() += "_ID";
}

// --- the parts of a name -------------------------------------------------------------------------

// Returns what one of PyTorch's general kernels computes: "add" of "elementwise_kernel<add, bf16>";
// "" of other names.
std::string_view functor_of(std::string_view name) {
  const std::size_t open = name.find('<');
  const std::string_view function = name.substr(0, open);
  if (open == std::string_view::npos ||
      !(function.ends_with("elementwise_kernel") || function == "reduce_kernel")) {
    return "";
  }
  const std::string_view arguments = name.substr(open + 1);
  const std::string_view functor = arguments.substr(0, arguments.find_first_of(",>"));
  return arguments.substr(functor.size()).starts_with(',') ? functor : "";
}

// Returns the function's own name, without types, namespaces and common prefixes: "mul_mv" of
// "void ns::kernel_mul_mv<float, 4>(int)".
std::string_view strip_name(std::string_view name) {
  if (const std::string_view functor = functor_of(name); !functor.empty()) return functor;
  if (const std::size_t cut = name.find_first_of("<("); cut != std::string_view::npos && cut > 0) {
    name = name.substr(0, cut);
  }
  if (const std::size_t colons = name.rfind("::"); colons != std::string_view::npos) {
    name = name.substr(colons + 2);
  }
  if (const std::size_t space = name.rfind(' '); space != std::string_view::npos) {
    name = name.substr(space + 1);
  }
  for (const std::string_view prefix : {"kernel_", "ggml_cuda_", "ggml_", "k_"}) {
    if (name.starts_with(prefix) && name.size() > prefix.size()) name = name.substr(prefix.size());
  }
  return name;
}

// Puts an underscore before each capital in "MatMulPackedProgram", except in MatMul.
std::string split_capitals(std::string_view name) {
  std::string words;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool begins_word =
        i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z' && name[i] >= 'A' && name[i] <= 'Z';
    if (begins_word && !(name.substr(i).starts_with("Mul") && words.ends_with("Mat"))) words += '_';
    words += name[i];
  }
  return words;
}

// Returns the position of the words of a part within more words; nothing if they are not there or
// are all of them.
std::optional<std::ptrdiff_t> find_phrase(const Words& words, const Words& part) {
  const auto position = std::search(words.begin(), words.end(), part.begin(), part.end());
  if (part.empty() || position == words.end() || part.size() == words.size()) return std::nullopt;
  return position - words.begin();
}

// Splits a name of work that a profiler timed together, "rope_norm_f32, set_rows_f32 x 2", into
// single names. A name with arguments stays whole.
Words split_names(std::string_view name) {
  constexpr std::string_view k_between = ", ";
  const bool lists_ops = !op_of(name.substr(0, name.find(k_between))).empty();
  // A comma then separates arguments.
  const bool has_arguments = !lists_ops && name.find_first_of("<(") != std::string_view::npos;
  if (name.size() > 4096 || has_arguments) return {std::string(name)};
  Words names;
  while (true) {
    const std::size_t end = name.find(k_between);
    std::string_view entry = name.substr(0, end);
    if (const std::size_t multiplier = entry.rfind(" x "); multiplier != std::string_view::npos) {
      entry = entry.substr(0, multiplier);
    }
    // "q(64,1,4,1)" among the shapes of an op is not a name.
    const std::string_view op = op_of(entry);
    if (!lists_ops || !op.empty()) names.emplace_back(lists_ops ? op : entry);
    if (end == std::string_view::npos) return names;
    name.remove_prefix(end + k_between.size());
  }
}

Role single_role(std::string_view name) {
  KernelName parsed = kernel_name(name);
  std::string work = parsed.work();
  if (parsed.works.empty()) parsed.part.clear();
  return {std::move(work), std::move(parsed.part), std::move(parsed.variant),
          std::move(parsed.works)};
}

}  // namespace

std::string KernelName::base() const { return text::join(words, "_"); }

std::string KernelName::work() const {
  return works.empty() ? to_upper(base()) : text::join(works, "_");
}

// Returns the leading word if it is in capitals; else "".
std::string_view op_of(std::string_view name) {
  const std::string_view word = name.substr(0, name.find(' '));
  const bool capitals = word.size() > 1 && std::ranges::all_of(word, [](char c) {
                          return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
                        });
  return capitals ? word : std::string_view();
}

// Splits a kernel's or op's name into words of work, and its variant: what follows from the first
// word of a type, size or tuning on.
KernelName kernel_name(std::string_view name) {
  constexpr std::size_t k_max_name_length = 512;
  KernelName result;
  const std::string_view op = op_of(name);
  if (!op.empty() && op.size() < name.size()) {
    result = kernel_name(op);
    append(result.variant, name.substr(op.size() + 1, k_max_name_length));
    return result;
  }
  std::string lowered = text::lower(split_capitals(strip_name(name.substr(0, k_max_name_length))));
  std::ranges::replace_if(
      lowered, [](char c) { return holds("-. /", c); }, '_');
  for (std::string& word : text::split(lowered, '_')) {
    if (word.empty()) continue;
    // In "split_k" the letter is a dimension; elsewhere it belongs to a type.
    const std::string previous = result.words.empty() ? "" : result.words.back();
    const bool split_k = word == "k" && previous == "split";
    // In "f32_to_f16" the type says what the kernel does.
    const bool is_target_type = previous == "to";
    if (!result.variant.empty() ||
        (!result.words.empty() && !split_k && !is_target_type && is_variant_word(word))) {
      append(result.variant, word);
    } else {
      result.words.push_back(std::move(word));
    }
  }
  add_meaning(result);
  // Templates of libraries name it among their arguments: "Kernel2<cutlass_80_s16816gemm_f16>".
  const std::string full_name = text::lower(name.substr(0, k_max_name_length));
  for (const std::string_view word : {"gemm", "gemv", "attn"}) {
    if (full_name.find(word) != std::string::npos) result.size = Size::large;
  }
  return result;
}

bool same_work(const KernelName& a, const KernelName& b) {
  return !a.words.empty() && a.words == b.words;
}

// Returns the indices of two or more `parts` that the joined name combines: their words lie in it
// without overlap, or the vocabulary lists them for one of its words. Empty if there are none.
std::vector<std::size_t> find_fused_parts(const KernelName& joined,
                                          const std::vector<KernelName>& parts) {
  std::map<std::ptrdiff_t, std::size_t> part_at_position;
  std::vector<bool> is_used(joined.words.size(), false);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto position = find_phrase(joined.words, parts[i].words);
    if (!position) continue;
    const auto begin = is_used.begin() + *position, end = begin + std::ssize(parts[i].words);
    if (std::find(begin, end, true) != end) continue;
    std::fill(begin, end, true);
    part_at_position[*position] = i;
  }
  std::vector<std::size_t> result;
  if (part_at_position.size() >= 2) {
    for (const auto& [position, part] : part_at_position) result.push_back(part);
    return result;
  }
  for (const auto& [words, meaning] : split_phrases(joined.words)) {
    if (meaning == nullptr || meaning->made_of.empty()) continue;
    std::set<std::string> kinds;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      // Every work of the part must be among them: "rms_norm_mul" is no "mul".
      const Words works = parts[i].works.empty() ? Words{parts[i].work()} : parts[i].works;
      const bool is_contained = std::ranges::all_of(
          works, [&](const std::string& work) { return has_word(meaning->made_of, work); });
      if (!is_contained) continue;
      result.push_back(i);
      kinds.insert(parts[i].work());
    }
    if (kinds.size() >= meaning->min_works_present) return result;
    result.clear();
  }
  return {};
}

bool is_matmul(const KernelName& name) {
  return std::ranges::any_of(name.works,
                             [](const std::string& work) { return work.starts_with(k_product); });
}

bool is_large_work(const KernelName& name) { return name.size == Size::large; }

bool is_small_work(const KernelName& name) { return name.size == Size::small; }

bool is_copy(const KernelName& name) { return name.work() == "CPY"; }

bool finishes_attention(const KernelName& name) {
  return !name.words.empty() && means(name.words.front(), Kind::finishing);
}

// Returns true or false if the kernel's name tells whether it multiplies by matrix cores (tensor
// cores, WMMA, MFMA), else nothing.
std::optional<bool> uses_matrix_cores(std::string_view name) {
  struct Row {
    std::string_view words;
    bool uses;
  };
  // ggml-cuda's kernels, and marks in names of cuBLAS and CUTLASS.
  constexpr std::array k_rows{Row{"flash_attn_ext_f16", true},
                              Row{"mul_mat_f<", true},
                              Row{"mul_mat_f_ids", true},
                              Row{"wmma", true},
                              Row{"tensorop", true},
                              Row{"mfma", true},
                              Row{"flash_attn_tile", false},
                              Row{"flash_attn_ext_vec", false},
                              Row{"flash_attn_vec", false},
                              Row{"mul_mat_vec", false},
                              Row{"simt", false}};
  const Row* row = find_first(k_rows, [&](const Row& candidate) {
    return name.find(candidate.words) != std::string_view::npos;
  });
  return row == nullptr ? std::nullopt : std::optional(row->uses);
}

bool adds_up_tiles(std::string_view name) {
  return name.find("stream_k_fixup") != std::string_view::npos;
}

std::string stable_name(std::string_view name) {
  constexpr std::string_view k_tiles = "sml";
  std::string result(name);
  if (!name.starts_with("matmul_") || name[name.size() - 2] != '_') return result;
  const std::size_t tile = k_tiles.find(name.back());
  if (tile != std::string_view::npos) result.back() = static_cast<char>('0' + tile);
  return result;
}

// Returns a kernel's name without what only says how work is cut up: numbers of tiles, and
// switches that are off.
std::string untuned_name(std::string_view name) {
  // The number is a tile, which depends on shape and device.
  if (name.starts_with("matmul_")) return stable_name(name);
  const std::size_t arguments = std::min(name.find('<'), name.size());
  Words words = text::split(name.substr(0, arguments), '_');
  // In "dequant_q4_0" and "gs_64_b_4" the number belongs to the type.
  const bool ends_with_number = words.size() > 1 && !words.back().empty() &&
                                std::ranges::all_of(words.back(), text::is_digit);
  if (ends_with_number) {
    const std::string& previous = words[words.size() - 2];
    const std::string letters = previous.substr(0, previous.find_first_of("0123456789"));
    if (!previous.empty() && !means(letters, Kind::quantized)) words.pop_back();
  }
  std::string result = text::join(words, "_");
  for (const std::string& piece : text::split(name.substr(arguments), ',')) {
    constexpr std::string_view k_off = "false";
    std::string argument = piece;
    std::erase_if(argument, [](char c) { return holds(" <>", c); });
    const bool is_number = std::ranges::all_of(argument, text::is_digit);
    if (!is_number && argument != k_off) result += ',' + argument;
  }
  return result;
}

// Returns the work that a kernel or op does, by its name. A name of several that were timed
// together, "rope_norm_f32, set_rows_f32 x 2", gives "ROPE+SET_ROWS" without part and variant.
Role parse_role(std::string_view name) {
  const Words names = split_names(name);
  constexpr std::size_t k_max_names = 64;
  Role role = single_role(names.front());
  for (std::size_t i = 1; i < std::min(names.size(), k_max_names); ++i) {
    const Role next = single_role(names[i]);
    role.part.clear();
    role.variant.clear();
    role.works.insert(role.works.end(), next.works.begin(), next.works.end());
    if (!holds(text::split(role.work, '+'), next.work)) role.work += "+" + next.work;
  }
  return role;
}

}  // namespace weir::profile
