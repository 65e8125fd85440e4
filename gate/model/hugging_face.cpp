// Writes the files of a model as transformers and vLLM load it.
#include "gate/model/hugging_face.hpp"

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/model/gguf_encoding.hpp"

namespace weir::model {
namespace {

constexpr std::uint32_t k_begin_token = 1;
constexpr std::uint32_t k_end_token = 2;
constexpr std::uint32_t k_gemma_period = 6;  // five layers of sliding attention, one of full

bool is_gemma(const ModelOptions& options) { return options.architecture == "gemma3"; }
bool is_mixtral(const ModelOptions& options) {
  return options.architecture == "llama" && options.experts > 0;
}

// Adds what config.json says of an architecture alone: its class, and its own keys.
void add_architecture(const ModelOptions& options, Json& config) {
  const auto set_class = [&](const char* name, const char* type) {
    config["architectures"] = {name};
    config["model_type"] = type;
  };
  if (is_gemma(options)) {
    set_class("Gemma3ForCausalLM", "gemma3_text");
    config["hidden_activation"] = "gelu_pytorch_tanh";
    config["query_pre_attn_scalar"] = options.head_dim;
    config["sliding_window"] = k_gemma_window;
    config["sliding_window_pattern"] = k_gemma_period;
    config["rope_local_base_freq"] = 10000.0;
    return;
  }
  config["hidden_act"] = "silu";
  if (is_mixtral(options)) {
    set_class("MixtralForCausalLM", "mixtral");
    config["num_local_experts"] = options.experts;
    config["num_experts_per_tok"] = options.experts_used;
  } else if (options.architecture == "qwen3moe") {
    set_class("Qwen3MoeForCausalLM", "qwen3_moe");
    config["num_experts"] = options.experts;
    config["num_experts_per_tok"] = options.experts_used;
    config["moe_intermediate_size"] = options.feed_forward;
    config["norm_topk_prob"] = true;
  } else if (options.architecture == "qwen3") {
    set_class("Qwen3ForCausalLM", "qwen3");
  } else {
    set_class("LlamaForCausalLM", "llama");
  }
}

// Returns the arguments of `weir model make` that give this model again.
std::string make_arguments(const ModelOptions& options) {
  std::string arguments = fmt::format(
      "--hf --arch {} --layers {} --embedding {} --ff {} --heads {} --kv-heads {} --head-dim {} "
      "--vocab {} --context {}",
      options.architecture, options.layers, options.embedding, options.feed_forward, options.heads,
      options.kv_heads, options.head_dim, options.vocab, options.context);
  if (options.experts > 0) {
    arguments +=
        fmt::format(" --experts {} --experts-used {}", options.experts, options.experts_used);
  }
  return arguments;
}

// Returns config.json, also with the arguments that make this model again.
Json make_config(const ModelOptions& options) {
  const bool is_llama = options.architecture == "llama";
  Json config = {{"vocab_size", options.vocab},
                 {"hidden_size", options.embedding},
                 {"intermediate_size", options.feed_forward},
                 {"num_hidden_layers", options.layers},
                 {"num_attention_heads", options.heads},
                 {"num_key_value_heads", options.kv_heads},
                 {"head_dim", options.head_dim},
                 {"max_position_embeddings", options.context},
                 {"rms_norm_eps", 1e-6},
                 {"rope_theta", is_llama ? 10000.0 : 1000000.0},
                 {"tie_word_embeddings", is_gemma(options)},
                 {"torch_dtype", "bfloat16"},
                 {"bos_token_id", k_begin_token},
                 {"eos_token_id", k_end_token},
                 {k_make_arguments, make_arguments(options)}};
  add_architecture(options, config);
  return config;
}

// Returns a character in UTF-8. REQUIRES: code < 0x800.
std::string utf8(std::uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// Returns the character that stands for a byte in byte-level BPE: printable bytes of Latin-1 are
// themselves, the others are U+0100, U+0101 … in their order (GPT-2's encoder.py).
std::string byte_token(std::uint32_t byte) {
  const auto is_itself = [](std::uint32_t value) {
    return (value >= 0x21 && value <= 0x7e) || (value >= 0xa1 && value <= 0xac) ||
           (value >= 0xae && value <= 0xff);
  };
  if (is_itself(byte)) return utf8(byte);
  std::uint32_t others = 0;
  for (std::uint32_t value = 0; value < byte; ++value) {
    if (!is_itself(value)) ++others;
  }
  return utf8(0x100 + others);
}

// Returns tokenizer.json: three special tokens, 256 bytes, and words up to the vocabulary's size
// that no text is split into, as there are no merges.
Json make_tokenizer(const ModelOptions& options) {
  Json vocabulary = Json::object();
  Json special = Json::array();
  const char* const k_special[] = {"<unk>", "<s>", "</s>"};
  for (const char* token : k_special) {
    special.push_back({{"id", vocabulary.size()},
                       {"content", token},
                       {"special", true},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false}});
    vocabulary[token] = vocabulary.size();
  }
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    vocabulary[byte_token(byte)] = vocabulary.size();
  }
  for (std::size_t id = vocabulary.size(); id < options.vocab; ++id) {
    vocabulary[fmt::format("<{}>", id)] = id;
  }
  const Json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", special},
          {"normalizer", nullptr},
          {"pre_tokenizer", bytes},
          {"post_processor", nullptr},
          {"decoder", bytes},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", "<unk>"},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", vocabulary},
            {"merges", Json::array()}}}};
}

Json make_tokenizer_config(const ModelOptions& options) {
  return {{"tokenizer_class", "PreTrainedTokenizerFast"},
          {"unk_token", "<unk>"},
          {"bos_token", "<s>"},
          {"eos_token", "</s>"},
          {"model_max_length", options.context},
          {"clean_up_tokenization_spaces", false},
          {"chat_template", "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"}};
}

struct TensorName {
  std::string_view gguf;
  std::string_view folder;  // the name in Hugging Face's form
};

// Tensors of a layer whose names all architectures share.
constexpr TensorName k_layer_names[] = {{"attn_norm", "input_layernorm"},
                                        {"attn_q", "self_attn.q_proj"},
                                        {"attn_k", "self_attn.k_proj"},
                                        {"attn_v", "self_attn.v_proj"},
                                        {"attn_output", "self_attn.o_proj"},
                                        {"attn_q_norm", "self_attn.q_norm"},
                                        {"attn_k_norm", "self_attn.k_norm"},
                                        {"post_attention_norm", "post_attention_layernorm"},
                                        {"post_ffw_norm", "post_feedforward_layernorm"},
                                        {"ffn_gate", "mlp.gate_proj"},
                                        {"ffn_up", "mlp.up_proj"},
                                        {"ffn_down", "mlp.down_proj"}};
constexpr TensorName k_outer_names[] = {{"token_embd.weight", "model.embed_tokens.weight"},
                                        {"output_norm.weight", "model.norm.weight"},
                                        {"output.weight", "lm_head.weight"}};
// Matrices of an expert.
constexpr TensorName k_mixtral_names[] = {
    {"ffn_gate_exps", "w1"}, {"ffn_up_exps", "w3"}, {"ffn_down_exps", "w2"}};
constexpr TensorName k_qwen_names[] = {
    {"ffn_gate_exps", "gate_proj"}, {"ffn_up_exps", "up_proj"}, {"ffn_down_exps", "down_proj"}};

std::optional<std::string_view> folder_name(std::span<const TensorName> names,
                                            std::string_view gguf) {
  const auto* match = find_first(names, [&](const TensorName& name) { return name.gguf == gguf; });
  if (match == nullptr) return std::nullopt;
  return match->folder;
}

// Adds a GGUF model's tensor under its name of the folder; one of experts becomes one an expert.
void add_tensor(const ModelOptions& options, const GgufTensor& tensor,
                std::vector<GgufTensor>& tensors) {
  const auto add = [&](std::string name, std::vector<std::uint64_t> dims) {
    tensors.push_back(
        {std::move(name), std::move(dims), static_cast<std::uint32_t>(TensorType::bf16), 0});
  };
  if (const auto name = folder_name(k_outer_names, tensor.name)) {
    return add(std::string(*name), tensor.dims);
  }
  const auto parts = text::split(tensor.name, '.');  // "blk.0.attn_q.weight"
  const std::string layer = "model.layers." + parts[1];
  const std::string& part = parts[2];
  const std::string mixture = layer + (is_mixtral(options) ? ".block_sparse_moe" : ".mlp");
  if (const auto name = folder_name(k_layer_names, part)) {
    return add(fmt::format("{}.{}.weight", layer, *name), tensor.dims);
  }
  if (part == "ffn_norm") {
    const char* const norm =
        is_gemma(options) ? "pre_feedforward_layernorm" : "post_attention_layernorm";
    return add(fmt::format("{}.{}.weight", layer, norm), tensor.dims);
  }
  if (part == "ffn_gate_inp") return add(mixture + ".gate.weight", tensor.dims);
  const auto name = folder_name(
      is_mixtral(options) ? std::span<const TensorName>(k_mixtral_names) : k_qwen_names, part);
  for (std::uint32_t expert = 0; expert < options.experts; ++expert) {
    add(fmt::format("{}.experts.{}.{}.weight", mixture, expert, name.value_or(part)),
        {tensor.dims[0], tensor.dims[1]});
  }
}

// Lists the model's weights in the order of the file, under Hugging Face's names.
Result<std::vector<GgufTensor>> list_tensors(ModelOptions options) {
  WEIR_TRY_SET(options.quantization, parse_quantization("bf16"));
  WEIR_TRY(const GgufHeader header, make_model(options));
  std::vector<GgufTensor> tensors;
  for (const GgufTensor& tensor : header.tensors) add_tensor(options, tensor, tensors);
  return tensors;
}

}  // namespace

// Returns all files of the model's folder but its weights. Fails with Code::usage if the options
// make no model.
Result<std::vector<TextFile>> make_model_folder(const ModelOptions& options) {
  WEIR_CHECK(list_tensors(options));  // checks the options
  const Json generation = {{"bos_token_id", k_begin_token}, {"eos_token_id", k_end_token}};
  std::vector<TextFile> files;
  const auto add = [&](const char* name, const Json& json) {
    files.push_back({name, dump_json(json, 2) + "\n"});
  };
  add("config.json", make_config(options));
  add("generation_config.json", generation);
  add("tokenizer.json", make_tokenizer(options));
  add("tokenizer_config.json", make_tokenizer_config(options));
  return files;
}

// Writes model.safetensors: the header's length, the header, and random weights in bfloat16.
Result<void> write_safetensors(const ModelOptions& options, const ByteSink& sink) {
  WEIR_TRY(const std::vector<GgufTensor> tensors, list_tensors(options));
  const TensorTypeInfo& type = tensor_type_info(TensorType::bf16);
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    WEIR_TRY(const std::uint64_t bytes, tensor_bytes(type, tensor.dims));
    const std::vector<std::uint64_t> shape(tensor.dims.rbegin(), tensor.dims.rend());
    header[tensor.name] = {
        {"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = dump_json(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // data begins at a multiple of 8
  std::string head;
  encode<std::uint64_t>(head, text.size());
  WEIR_CHECK(sink(head + text));
  for (const GgufTensor& tensor : tensors) {
    WEIR_CHECK(write_random_tensor(tensor, options.seed, sink));
  }
  return {};
}

}  // namespace weir::model
