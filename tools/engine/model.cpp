// Reads a llama model's sizes, tensors and RoPE frequencies from a GGUF file, and refuses what the
// engine does not know.
#include "tools/engine/model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "gate/base/text.hpp"
#include "gate/model/gguf.hpp"

#include "tools/engine/missing.hpp"

namespace weir::engine {
namespace {

using model::GgufHeader;
using model::GgufTensor;

constexpr std::uint64_t k_max_size = std::uint64_t{1} << 24;  // limit of each size
constexpr const char* k_use_llama_cpp = "run it with llama.cpp";

// Finds tensors by name, and checks their shape and that they lie within the file.
class Tensors {
 public:
  Tensors(const GgufHeader& header, std::span<const std::byte> file)
      : header_(header), file_(file) {
    for (const GgufTensor& tensor : header.tensors) by_name_[tensor.name] = &tensor;
  }

  [[nodiscard]] bool has(const std::string& name) const { return by_name_.contains(name); }

  [[nodiscard]] Result<Tensor> get(const std::string& name, std::uint32_t columns,
                                   std::uint32_t rows) const {
    const auto match = by_name_.find(name);
    if (match == by_name_.end()) return fail(Code::data, "the tensor {} is not there", name);
    const GgufTensor& entry = *match->second;
    const std::vector<std::uint64_t> expected =
        rows == 1 ? std::vector<std::uint64_t>{columns} : std::vector<std::uint64_t>{columns, rows};
    if (entry.dims != expected) {
      return fail(Code::data, "{} is not {} x {} as the sizes ask for", name, columns, rows);
    }
    const auto* info = model::find_tensor_type(entry.type);
    if (info == nullptr) return fail(Code::data, "{} has the unknown type {}", name, entry.type);
    WEIR_TRY(const std::uint64_t size, model::tensor_bytes(*info, entry.dims));
    const std::uint64_t room = file_.size() - std::min(file_.size(), header_.data_start);
    if (entry.offset > room || size > room - entry.offset) {
      return fail(Code::data, "{} lies beyond the end of the file", name);
    }
    if (entry.offset % 4 != 0 || header_.data_start % 4 != 0) {
      return fail(Code::data, "{} does not begin at a multiple of 4 bytes", name);
    }
    return Tensor{name, info->type,  columns,
                  rows, size / rows, file_.subspan(header_.data_start + entry.offset, size)};
  }

 private:
  const GgufHeader& header_;
  std::span<const std::byte> file_;
  std::map<std::string, const GgufTensor*, std::less<>> by_name_;
};

// Reads the size under `key` of the model's own keys: 1 to k_max_size.
Result<std::uint32_t> read_size(const GgufHeader& header, std::string_view key,
                                std::optional<std::uint64_t> fallback = {}) {
  const auto* entry = header.find_own(key);
  const auto value = entry != nullptr ? entry->to_unsigned() : fallback;
  if (!value || *value == 0 || *value > k_max_size) {
    return fail(Code::data, "its {} is {}", key, value ? "beyond any model's" : "not said");
  }
  return static_cast<std::uint32_t>(*value);
}

float read_number(const GgufHeader& header, std::string_view key, double fallback) {
  auto number = static_cast<float>(fallback);
  const auto* entry = header.find_own(key);
  if (entry != nullptr && entry->to_unsigned()) return static_cast<float>(*entry->to_unsigned());
  if (entry != nullptr && entry->type() == model::GgufType::f32) {
    std::memcpy(&number, entry->bytes().data(), sizeof number);
  }
  return number;
}

// Reads the sizes of a llama model from its header, and checks that they fit together.
Result<Sizes> read_sizes(const GgufHeader& header) {
  Sizes sizes;
  WEIR_TRY(sizes.layers, read_size(header, "block_count"));
  WEIR_TRY(sizes.embedding, read_size(header, "embedding_length"));
  WEIR_TRY(sizes.feed_forward, read_size(header, "feed_forward_length"));
  WEIR_TRY(sizes.heads, read_size(header, "attention.head_count"));
  WEIR_TRY(sizes.kv_heads, read_size(header, "attention.head_count_kv", sizes.heads));
  WEIR_TRY(sizes.head, read_size(header, "attention.key_length", sizes.embedding / sizes.heads));
  WEIR_TRY(sizes.context, read_size(header, "context_length"));
  sizes.epsilon = read_number(header, "attention.layer_norm_rms_epsilon", 1e-5);
  if (sizes.heads % sizes.kv_heads != 0) {
    return fail(Code::data, "{} heads are no multiple of {} key and value heads", sizes.heads,
                sizes.kv_heads);
  }
  if (sizes.head % 2 != 0 || sizes.layers > 4096 || sizes.heads > 4096 || sizes.head > 4096) {
    return fail(Code::data, "its sizes are beyond any llama model's");
  }
  return sizes;
}

// Returns true if the engine uses the tensor of that name, as in "blk.0.attn_q.weight".
bool is_used(std::string_view name) {
  constexpr std::array k_of_model{"token_embd.weight", "output_norm.weight", "output.weight",
                                  "rope_freqs.weight"};
  constexpr std::array k_of_layer{"attn_norm", "attn_q",   "attn_k", "attn_v",  "attn_output",
                                  "ffn_norm",  "ffn_gate", "ffn_up", "ffn_down"};
  if (std::find(k_of_model.begin(), k_of_model.end(), name) != k_of_model.end()) return true;
  if (!name.starts_with("blk.")) return false;
  const std::size_t dot = name.find('.', 4);
  if (dot == std::string_view::npos) return false;
  const std::string_view rest = name.substr(dot + 1);
  return std::any_of(k_of_layer.begin(), k_of_layer.end(), [&](std::string_view matrix) {
    return rest.starts_with(matrix) && rest.substr(matrix.size()) == ".weight";
  });
}

// Fails for models with parts that this engine does not compute: better no answer than a wrong one.
Result<void> refuse_unsupported(const GgufHeader& header, const Sizes& sizes) {
  if (header.architecture() != "llama") {
    return missing_kernel("engine", fmt::format("architecture \"{}\"", header.architecture()),
                          k_use_llama_cpp, "take a llama model");
  }
  // Biases, experts and norms of heads would be left out in silence.
  for (const GgufTensor& tensor : header.tensors) {
    if (is_used(tensor.name)) continue;
    return missing_kernel("engine", text::printable(tensor.name), k_use_llama_cpp,
                          "take a model without it");
  }
  const auto* scaling = header.find_own("rope.scaling.type");
  const std::string scaling_type = scaling != nullptr ? scaling->to_string().value_or("") : "none";
  if (scaling_type != "none" && scaling_type != "linear") {
    return missing_kernel("engine", fmt::format("rope scaling \"{}\"", scaling_type),
                          k_use_llama_cpp, "take a model without it");
  }
  const auto* rope_dimensions = header.find_own("rope.dimension_count");
  if (rope_dimensions != nullptr && rope_dimensions->to_unsigned() != sizes.head) {
    return missing_kernel("engine", "rope over a part of a head", "take a model without it",
                          k_use_llama_cpp);
  }
  const auto* value_length = header.find_own("attention.value_length");
  if (value_length != nullptr && value_length->to_unsigned() != sizes.head) {
    return missing_kernel("engine", "values of another length than keys", k_use_llama_cpp,
                          "take a model without them");
  }
  return {};
}

// Returns how far rotary embedding (RoPE) turns each pair of a head's values by position, in
// radians. It is base^(-2i/head), scaled as the file says.
Result<std::vector<float>> read_frequencies(const GgufHeader& header, const Tensors& tensors,
                                            const Sizes& sizes) {
  const float base = read_number(header, "rope.freq_base", 10000);
  // As llama.cpp reads them: a type that says "none" wins over a factor, and a factor of 0 is none.
  const auto* scaling = header.find_own("rope.scaling.type");
  const bool is_unscaled = scaling != nullptr && scaling->to_string() == "none";
  const float factor = is_unscaled ? 1 : read_number(header, "rope.scaling.factor", 1);
  const float scale = factor == 0 ? 1 : 1 / factor;
  if (!(base > 0) || !std::isfinite(scale)) return fail(Code::data, "its rope base is not sound");
  std::vector<float> frequencies(sizes.head / 2);
  std::vector<float> factors(sizes.head / 2, 1);
  if (tensors.has("rope_freqs.weight")) {
    WEIR_TRY(const Tensor tensor, tensors.get("rope_freqs.weight", sizes.head / 2, 1));
    if (tensor.type != model::TensorType::f32) return fail(Code::data, "rope_freqs is not F32");
    unpack_row(tensor, 0, factors);
  }
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / sizes.head;
    frequencies[i] =
        static_cast<float>(std::pow(static_cast<double>(base), exponent)) * scale / factors[i];
  }
  return frequencies;
}

// Finds the tensors of layer `index`, and checks their sizes.
Result<Layer> read_layer(const Tensors& tensors, const Sizes& sizes, std::uint32_t index) {
  const auto get = [&](const char* name, std::uint32_t columns, std::uint32_t rows) {
    return tensors.get(fmt::format("blk.{}.{}.weight", index, name), columns, rows);
  };
  Layer layer;
  WEIR_TRY(layer.attention_norm, get("attn_norm", sizes.embedding, 1));
  WEIR_TRY(layer.query, get("attn_q", sizes.embedding, sizes.queries()));
  WEIR_TRY(layer.key, get("attn_k", sizes.embedding, sizes.keys()));
  WEIR_TRY(layer.value, get("attn_v", sizes.embedding, sizes.keys()));
  WEIR_TRY(layer.output, get("attn_output", sizes.queries(), sizes.embedding));
  WEIR_TRY(layer.ffn_norm, get("ffn_norm", sizes.embedding, 1));
  WEIR_TRY(layer.gate, get("ffn_gate", sizes.embedding, sizes.feed_forward));
  WEIR_TRY(layer.up, get("ffn_up", sizes.embedding, sizes.feed_forward));
  WEIR_TRY(layer.down, get("ffn_down", sizes.feed_forward, sizes.embedding));
  return layer;
}

Result<GgufHeader> read_header(std::span<const std::byte> file) {
  return model::load_gguf([&](std::uint64_t bytes) -> Result<std::string> {
    const std::size_t size = std::min<std::uint64_t>(bytes, file.size());
    return std::string(reinterpret_cast<const char*>(file.data()), size);
  });
}

// Reads a llama model: its sizes, all tensors, and the first token. `context` is the most positions
// that are needed.
Result<Model> read_model(MappedFile file, std::uint32_t context) {
  WEIR_TRY(const GgufHeader header, read_header(file.bytes()));
  const Tensors tensors(header, file.bytes());
  Model model;
  if (header.architecture() == "llama") {
    WEIR_TRY(model.sizes, read_sizes(header));
  }
  WEIR_CHECK(refuse_unsupported(header, model.sizes));
  Sizes& sizes = model.sizes;
  sizes.context = std::min(sizes.context, context);
  const auto* words = header.find("tokenizer.ggml.tokens");
  WEIR_TRY(sizes.vocabulary,
           read_size(header, "vocab_size",
                     words != nullptr ? std::optional(words->count()) : std::nullopt));
  WEIR_TRY(model.frequencies, read_frequencies(header, tensors, sizes));
  WEIR_TRY(model.embedding, tensors.get("token_embd.weight", sizes.embedding, sizes.vocabulary));
  WEIR_TRY(model.output_norm, tensors.get("output_norm.weight", sizes.embedding, 1));
  model.output = model.embedding;  // one matrix for both, where the file has no second
  if (tensors.has("output.weight")) {
    WEIR_TRY(model.output, tensors.get("output.weight", sizes.embedding, sizes.vocabulary));
  }
  for (std::uint32_t i = 0; i < sizes.layers; ++i) {
    WEIR_TRY(Layer layer, read_layer(tensors, sizes, i));
    model.layers.push_back(std::move(layer));
  }
  const auto* first = header.find("tokenizer.ggml.bos_token_id");
  const auto id = first != nullptr ? first->to_unsigned().value_or(0) : 0;
  model.first_token = id < sizes.vocabulary ? static_cast<std::uint32_t>(id) : 0;
  model.description = fmt::format("llama, {} layers, {}", sizes.layers,
                                  model::tensor_type_info(model.layers[0].query.type).name);
  model.file = std::move(file);
  return model;
}

}  // namespace

Result<Model> load_model(const std::string& path, std::uint32_t context) {
  WEIR_TRY(MappedFile file, MappedFile::open(path));
  return read_model(std::move(file), context).map_error([&](Error error) {
    return add_prefix(path, std::move(error));
  });
}

}  // namespace weir::engine
