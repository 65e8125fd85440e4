// Small models with random weights, the same bytes on every machine: real models for an engine to
// run without a download.
//
// They load in llama.cpp and take the code path of the architecture and tensor types asked for.
// What they generate is noise. Pure: bytes leave through a sink.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/model/gguf.hpp"
#include "gate/model/tensor_type.hpp"

namespace weir::model {
// Types of the weight matrices; norms and biases are always F32.
struct Quantization {
  std::string name = "f16";
  TensorType matrices = TensorType::f16;
  // Type of the output matrix (or the token embedding that serves as output) and of the more
  // sensitive half of the attn_v and ffn_down matrices, as in llama.cpp's "_M" mixes.
  TensorType sensitive = TensorType::f16;

  friend bool operator==(const Quantization&, const Quantization&) = default;
};

// "f32" "f16" "bf16" "q8_0" "q4_k" … (one type for all matrices), or the mixes "q3_k_m" "q4_k_m"
// "q5_k_m" (Q4_K and Q6_K tensors for "q4_k_m"). Ignores case. Code::usage otherwise.
[[nodiscard]] Result<Quantization> parse_quantization(std::string_view name);
[[nodiscard]] std::vector<std::string> quantization_names();  // all that it takes

// Smallest vocabulary: three special tokens, 256 bytes, the space and the letters.
inline constexpr std::uint32_t k_min_vocab = 320;
// Tokens that a layer of sliding attention sees in gemma3.
inline constexpr std::uint32_t k_gemma_window = 512;

struct ModelOptions {
  std::string architecture = "llama";  // or "gemma3", "qwen3", "qwen3moe"
  std::uint32_t layers = 4;
  std::uint32_t embedding = 256;
  std::uint32_t feed_forward = 768;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_dim = 64;
  std::uint32_t vocab = 512;     // at least k_min_vocab
  std::uint32_t context = 4096;  // trained context length in the header
  std::uint32_t experts = 0;     // llama and qwen3moe: mixture of experts when not 0
  std::uint32_t experts_used = 0;
  Quantization quantization{};
  std::uint64_t seed = 1;
};

[[nodiscard]] std::vector<std::string> model_architectures();
// Sizes of published models, by the names that they go by ("llama-3.1-8b"), as their configurations
// state them; weights in Q4_K_M. Code::usage otherwise.
[[nodiscard]] Result<ModelOptions> model_like(std::string_view name);
[[nodiscard]] std::vector<std::string> published_models();
// The reference model of that architecture; Code::usage when it is not one that weir can make.
[[nodiscard]] Result<ModelOptions> default_model(std::string_view architecture);

struct ModelSummary {
  std::string architecture;
  std::uint64_t layers = 0;
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;  // weights
  std::uint64_t bytes = 0;       // size of the file
  std::string header_hash;
  std::vector<std::string> warnings;
};
// REQUIRES: the header was laid out by encode_gguf_header.
[[nodiscard]] Result<ModelSummary> summarize(const GgufHeader& header);

// The header alone, laid out. Code::usage when the options do not fit together (rows that are not
// whole blocks of the quantization, heads that are no multiple of kv_heads, sizes of 0 or absurd).
[[nodiscard]] Result<GgufHeader> make_model(const ModelOptions& options);
// Header and weights.
[[nodiscard]] Result<ModelSummary> write_model(const ModelOptions& options, const ByteSink& sink);

}  // namespace weir::model
