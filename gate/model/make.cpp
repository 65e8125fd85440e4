// Makes small models with random weights.
#include "gate/model/make.hpp"

#include <algorithm>
#include <array>

#include "gate/base/find.hpp"
#include "gate/base/names.hpp"
#include "gate/base/text.hpp"

namespace weir::model {
namespace {

constexpr std::uint32_t k_one = 0x3f800000;           // 1.0f
constexpr std::uint32_t k_norm_epsilon = 0x358637bd;  // 1e-6f
constexpr std::uint32_t k_ten_thousand = 0x461c4000;  // 10000.0f
constexpr std::uint32_t k_million = 0x49742400;       // 1000000.0f
constexpr std::uint32_t k_max_layers = 1024;
constexpr std::uint32_t k_max_dimension = 1U << 20;

struct Mix {
  std::string_view name;
  TensorType matrices;
  TensorType sensitive;
};
constexpr std::array<Mix, 3> k_mixes{{{"q3_k_m", TensorType::q3_k, TensorType::q5_k},
                                      {"q4_k_m", TensorType::q4_k, TensorType::q6_k},
                                      {"q5_k_m", TensorType::q5_k, TensorType::q6_k}}};

// Types that files hold weight matrices in.
constexpr TensorType k_single_types[] = {
    TensorType::f32,  TensorType::f16,    TensorType::bf16,   TensorType::q4_0,
    TensorType::q4_1, TensorType::q5_0,   TensorType::q5_1,   TensorType::q8_0,
    TensorType::q2_k, TensorType::q3_k,   TensorType::q4_k,   TensorType::q5_k,
    TensorType::q6_k, TensorType::iq4_nl, TensorType::iq4_xs, TensorType::mxfp4};

// Returns general.file_type, which engines only show ("Q4_K - Medium"); nothing for the rest.
std::optional<std::uint32_t> file_type(const Quantization& quantization) {
  constexpr Name<std::uint32_t> k_numbers[] = {
      {0, "f32"},     {1, "f16"},   {2, "q4_0"},    {3, "q4_1"},    {7, "q8_0"},    {8, "q5_0"},
      {9, "q5_1"},    {10, "q2_k"}, {12, "q3_k_m"}, {14, "q4_k"},   {15, "q4_k_m"}, {16, "q5_k"},
      {17, "q5_k_m"}, {18, "q6_k"}, {25, "iq4_nl"}, {30, "iq4_xs"}, {32, "bf16"}};
  return value_of<std::uint32_t>(k_numbers, quantization.name);
}

bool is_qwen(const ModelOptions& options) { return options.architecture.starts_with("qwen"); }
bool is_qwen_mixture(const ModelOptions& options) { return options.architecture == "qwen3moe"; }

// Collects tensors under the names that all architectures share.
class Builder {
 public:
  Builder(const ModelOptions& options, GgufHeader& header) : options_(options), header_(header) {}

  void norm(std::string name, std::uint64_t length) {
    header_.tensors.push_back(
        {std::move(name), {length}, static_cast<std::uint32_t>(TensorType::f32), 0});
  }
  // `sensitive`: give it the more precise type of a mix.
  void matrix(std::string name, std::vector<std::uint64_t> dims, bool sensitive = false) {
    const Quantization& types = options_.quantization;
    const auto type = static_cast<std::uint32_t>(sensitive ? types.sensitive : types.matrices);
    header_.tensors.push_back({std::move(name), std::move(dims), type, 0});
  }

  // Adds the tensors of one layer.
  void layer(std::uint32_t index) {
    const auto name = [&](std::string_view part) {
      return fmt::format("blk.{}.{}.weight", index, part);
    };
    const bool gemma = options_.architecture == "gemma3";
    // Sensitive matrices: the first and last eighth of the layers and every third between, as in
    // llama.cpp's mixes.
    const std::uint32_t eighth = options_.layers / 8;
    const bool sensitive =
        index < eighth || index >= 7 * options_.layers / 8 || (index - eighth) % 3 == 2;
    const std::uint64_t embd = options_.embedding;
    const std::uint64_t ff = options_.feed_forward;
    const std::uint64_t dim = options_.head_dim;
    const std::uint64_t query = dim * options_.heads;
    const std::uint64_t kv = dim * options_.kv_heads;

    norm(name("attn_norm"), embd);
    matrix(name("attn_q"), {embd, query});
    matrix(name("attn_k"), {embd, kv});
    matrix(name("attn_v"), {embd, kv}, sensitive);
    matrix(name("attn_output"), {query, embd});
    if (gemma || is_qwen(options_)) {
      norm(name("attn_q_norm"), dim);
      norm(name("attn_k_norm"), dim);
    }
    if (gemma) norm(name("post_attention_norm"), embd);
    norm(name("ffn_norm"), embd);
    if (options_.experts > 0) {
      const std::uint64_t experts = options_.experts;
      norm(name("ffn_gate_inp"), embd);
      header_.tensors.back().dims.push_back(experts);  // the router stays F32, too
      matrix(name("ffn_gate_exps"), {embd, ff, experts});
      matrix(name("ffn_up_exps"), {embd, ff, experts});
      matrix(name("ffn_down_exps"), {ff, embd, experts}, sensitive);
    } else {
      matrix(name("ffn_gate"), {embd, ff});
      matrix(name("ffn_up"), {embd, ff});
      matrix(name("ffn_down"), {ff, embd}, sensitive);
    }
    if (gemma) norm(name("post_ffw_norm"), embd);
  }

 private:
  const ModelOptions& options_;
  GgufHeader& header_;
};

// Fails with Code::usage if the options of a model to make are out of range or do not fit together.
Result<void> check_options(const ModelOptions& options) {
  const auto architectures = model_architectures();
  if (!holds(architectures, options.architecture)) {
    return fail(Code::usage, "unknown architecture \"{}\"{}\n  known here: {}",
                text::printable(options.architecture),
                text::did_you_mean(options.architecture, architectures), text::join(architectures));
  }
  const struct {
    std::string_view name;
    std::uint32_t size, min_size, max_size;
  } sizes[] = {{"embedding", options.embedding, 1, k_max_dimension},
               {"feed-forward", options.feed_forward, 1, k_max_dimension},
               {"heads", options.heads, 1, k_max_dimension},
               {"kv-heads", options.kv_heads, 1, k_max_dimension},
               {"head-dim", options.head_dim, 1, k_max_dimension},
               {"context", options.context, 1, k_max_dimension},
               {"layers", options.layers, 1, k_max_layers},
               {"vocab", options.vocab, k_min_vocab, k_max_dimension}};
  for (const auto& [name, size, min_size, max_size] : sizes) {
    if (size < min_size || size > max_size) {
      return fail(Code::usage, "{} is {}: it must lie between {} and {}", name, size, min_size,
                  max_size);
    }
  }
  if (options.heads % options.kv_heads != 0) {
    return fail(Code::usage, "heads ({}) is no multiple of kv-heads ({})", options.heads,
                options.kv_heads);
  }
  if (options.head_dim % 2 != 0) {
    return fail(Code::usage, "head-dim is {}: rotary embedding needs an even one",
                options.head_dim);
  }
  if (options.experts != 0 && options.architecture != "llama" && !is_qwen_mixture(options)) {
    return fail(Code::usage, "experts are made for the architectures llama and qwen3moe alone");
  }
  if (options.experts == 0 && is_qwen_mixture(options)) {
    return fail(Code::usage, "the architecture qwen3moe is one of experts: say how many");
  }
  if (options.experts > 256 || (options.experts != 0 && (options.experts_used == 0 ||
                                                         options.experts_used > options.experts))) {
    return fail(Code::usage, "experts-used ({}) must lie between 1 and experts ({}, at most 256)",
                options.experts_used, options.experts);
  }
  return {};
}

// tokenizer.ggml.token_type
constexpr std::int32_t k_normal = 1;
constexpr std::int32_t k_unknown = 2;
constexpr std::int32_t k_control = 3;
constexpr std::int32_t k_byte = 6;

// Returns 0, 1, 2 … as "a", "b" … "z", "aa", "ab" …: a distinct word for each number.
std::string letters_for(std::uint32_t index) {
  std::string letters;
  for (std::uint64_t rest = std::uint64_t{index} + 1; rest > 0; rest = (rest - 1) / 26) {
    letters.push_back(static_cast<char>('a' + (rest - 1) % 26));
  }
  std::ranges::reverse(letters);
  return letters;
}

// Adds the smallest tokenizer that engines accept: SentencePiece ("llama") with byte tokens, so
// that any text can be encoded. REQUIRES: vocab >= k_min_vocab.
void add_tokenizer(std::uint32_t vocab, GgufHeader& header) {
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types{k_unknown, k_control, k_control};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    tokens.push_back(fmt::format("<0x{:02X}>", byte));
    types.push_back(k_byte);
  }
  tokens.emplace_back("\xe2\x96\x81");  // U+2581, SentencePiece's space
  types.push_back(k_normal);
  for (std::uint32_t i = 0; tokens.size() < vocab; ++i) {
    tokens.push_back(letters_for(i));
    types.push_back(k_normal);
  }
  // Longer pieces come later and score lower; whole numbers are exact as floats.
  std::vector<float> scores(tokens.size(), 0.0F);
  for (std::size_t i = 260; i < scores.size(); ++i) scores[i] = 260.0F - static_cast<float>(i);

  const auto put = [&](std::string_view key, GgufValue value) {
    header.metadata.emplace_back(fmt::format("tokenizer.ggml.{}", key), std::move(value));
  };
  put("model", GgufValue::string("llama"));
  put("tokens", GgufValue::strings(tokens));
  put("scores", GgufValue::f32s(scores));
  put("token_type", GgufValue::i32s(types));
  put("bos_token_id", GgufValue::u32(1));
  put("eos_token_id", GgufValue::u32(2));
  put("unknown_token_id", GgufValue::u32(0));
  put("add_bos_token", GgufValue::boolean(true));
  put("add_space_prefix", GgufValue::boolean(true));
}

// Adds all metadata of a model with these options: architecture, sizes, rotary embedding, experts,
// tokenizer.
void add_metadata(const ModelOptions& options, GgufHeader& header) {
  const auto put = [&](std::string key, GgufValue value) {
    header.metadata.emplace_back(std::move(key), std::move(value));
  };
  const auto put_for_architecture = [&](std::string_view key, GgufValue value) {
    put(fmt::format("{}.{}", options.architecture, key), std::move(value));
  };
  const bool is_gemma = options.architecture == "gemma3";
  put("general.architecture", GgufValue::string(options.architecture));
  put("general.name",
      GgufValue::string(fmt::format("weir {} {}x{} {}", options.architecture, options.layers,
                                    options.embedding, options.quantization.name)));
  put("general.quantization_version", GgufValue::u32(2));
  if (const auto number = file_type(options.quantization)) {
    put("general.file_type", GgufValue::u32(*number));
  }
  put_for_architecture("vocab_size", GgufValue::u32(options.vocab));
  put_for_architecture("context_length", GgufValue::u32(options.context));
  put_for_architecture("embedding_length", GgufValue::u32(options.embedding));
  put_for_architecture("block_count", GgufValue::u32(options.layers));
  put_for_architecture("feed_forward_length", GgufValue::u32(options.feed_forward));
  put_for_architecture("attention.head_count", GgufValue::u32(options.heads));
  put_for_architecture("attention.head_count_kv", GgufValue::u32(options.kv_heads));
  put_for_architecture("attention.key_length", GgufValue::u32(options.head_dim));
  put_for_architecture("attention.value_length", GgufValue::u32(options.head_dim));
  put_for_architecture("attention.layer_norm_rms_epsilon", GgufValue::f32_bits(k_norm_epsilon));
  put_for_architecture("rope.dimension_count", GgufValue::u32(options.head_dim));
  put_for_architecture(
      "rope.freq_base",
      GgufValue::f32_bits(is_gemma || is_qwen(options) ? k_million : k_ten_thousand));
  if (is_gemma) {
    put_for_architecture("attention.sliding_window", GgufValue::u32(k_gemma_window));
    put_for_architecture("rope.scaling.type", GgufValue::string("linear"));
    put_for_architecture("rope.scaling.factor", GgufValue::f32_bits(k_one));
  }
  if (options.experts > 0) {
    put_for_architecture("expert_count", GgufValue::u32(options.experts));
    put_for_architecture("expert_used_count", GgufValue::u32(options.experts_used));
    if (is_qwen_mixture(options)) {
      put_for_architecture("expert_feed_forward_length", GgufValue::u32(options.feed_forward));
    }
  }
  add_tokenizer(options.vocab, header);
}

}  // namespace

std::vector<std::string> quantization_names() {
  std::vector<std::string> names;
  for (const TensorType type : k_single_types)
    names.push_back(text::lower(tensor_type_info(type).name));
  for (const Mix& mix : k_mixes) names.emplace_back(mix.name);
  return names;
}

// Parses a quantization: one type for all matrices ("q8_0"), or a mix that gives sensitive ones
// more bits ("q4_k_m").
Result<Quantization> parse_quantization(std::string_view name) {
  const std::string wanted = text::lower(name);
  for (const Mix& mix : k_mixes) {
    if (mix.name == wanted) return Quantization{wanted, mix.matrices, mix.sensitive};
  }
  for (const TensorType type : k_single_types) {
    if (text::lower(tensor_type_info(type).name) == wanted) return Quantization{wanted, type, type};
  }
  const auto names = quantization_names();
  return fail(Code::usage, "unknown quantization \"{}\"{}\n  known here: {}", text::printable(name),
              text::did_you_mean(wanted, names), text::join(names));
}

std::vector<std::string> model_architectures() { return {"llama", "gemma3", "qwen3", "qwen3moe"}; }

Result<ModelOptions> default_model(std::string_view architecture) {
  ModelOptions options;
  options.architecture = architecture;
  if (architecture == "gemma3") options.layers = 6;  // one period: five local layers, one global
  if (is_qwen_mixture(options)) {
    options.experts = 8;
    options.experts_used = 2;
  }
  WEIR_CHECK(check_options(options));
  return options;
}

namespace {

// From the models' own config.json: the options in their order, but for quantization and seed.
const std::pair<std::string_view, ModelOptions> k_published[] = {
    {"llama-3.1-8b", {"llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072, 0, 0}},
    {"llama-3.3-70b", {"llama", 80, 8192, 28672, 64, 8, 128, 128256, 131072, 0, 0}},
    {"mixtral-8x7b", {"llama", 32, 4096, 14336, 32, 8, 128, 32000, 32768, 8, 2}},
    {"qwen3-8b", {"qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 40960, 0, 0}},
    {"qwen3-30b-a3b", {"qwen3moe", 48, 2048, 768, 32, 4, 128, 151936, 40960, 128, 8}},
    {"gemma-3-4b", {"gemma3", 34, 2560, 10240, 8, 4, 256, 262144, 131072, 0, 0}},
    {"gemma-3-27b", {"gemma3", 62, 5376, 21504, 32, 16, 128, 262144, 131072, 0, 0}},
};

}  // namespace

std::vector<std::string> published_models() {
  return collect<std::string>(k_published, [](const auto& entry) { return entry.first; });
}

Result<ModelOptions> model_like(std::string_view name) {
  const auto* match =
      find_first(k_published, [&](const auto& entry) { return entry.first == name; });
  if (match == nullptr) {
    return fail(Code::usage, "no model is called \"{}\"{}\n  known here: {}", text::printable(name),
                text::did_you_mean(name, published_models()), text::join(published_models()));
  }
  ModelOptions options = match->second;
  WEIR_TRY(options.quantization, parse_quantization("q4_k_m"));
  return options;
}

// Counts the layers, tensors, parameters and bytes of a model from its header.
Result<ModelSummary> summarize(const GgufHeader& header) {
  ModelSummary summary;
  summary.architecture = header.architecture();
  summary.layers = header.own_number("block_count").value_or(0);
  summary.tensors = header.tensors.size();
  for (const GgufTensor& tensor : header.tensors) {
    std::uint64_t values = 1;
    for (const std::uint64_t dim : tensor.dims) values *= dim;
    summary.parameters += values;
  }
  WEIR_TRY(summary.bytes, gguf_file_bytes(header));
  summary.header_hash = header.hash;
  return summary;
}

// Makes the header of a model with random weights: its metadata, and the names and sizes of its
// tensors. Fails if sizes are no whole blocks of the quantization.
Result<GgufHeader> make_model(const ModelOptions& options) {
  WEIR_CHECK(check_options(options));
  GgufHeader header;
  add_metadata(options, header);
  Builder builder(options, header);
  const bool output_is_embedding =
      options.architecture == "gemma3";  // the embedding serves as output
  builder.matrix("token_embd.weight", {options.embedding, options.vocab},
                 /*sensitive=*/output_is_embedding);
  for (std::uint32_t i = 0; i < options.layers; ++i) builder.layer(i);
  builder.norm("output_norm.weight", options.embedding);
  if (!output_is_embedding) {
    builder.matrix("output.weight", {options.embedding, options.vocab}, /*sensitive=*/true);
  }
  const auto encoded = encode_gguf_header(header);
  if (!encoded) {
    return fail(Code::usage, "{}\n  choose sizes that quantization {} divides, or another one",
                encoded.error().message, options.quantization.name);
  }
  return header;
}

Result<ModelSummary> write_model(const ModelOptions& options, const ByteSink& sink) {
  WEIR_TRY(GgufHeader header, make_model(options));
  WEIR_CHECK(write_random_gguf(header, options.seed, sink));
  return summarize(header);
}

}  // namespace weir::model
