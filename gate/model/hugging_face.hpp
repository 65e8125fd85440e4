// Small models as a folder of Hugging Face's form, which transformers and vLLM load: config.json, a
// byte-level tokenizer, and, where asked for, random weights.
//
// The same options give the same bytes on every machine. What a model generates is noise. Pure:
// weights leave through a sink.
#pragma once

#include <string>
#include <vector>

#include "gate/model/make.hpp"

namespace weir::model {
struct TextFile {
  std::string name;  // "config.json", in the model's folder
  std::string text;
};

// Returns config.json, generation_config.json, tokenizer.json and tokenizer_config.json. Token 0 is
// <unk>, so that engines whose logits are all 0 go on to generate. config.json also holds the
// arguments of `weir model make` (k_make_arguments). Code::usage as make_model.
[[nodiscard]] Result<std::vector<TextFile>> make_model_folder(const ModelOptions& options);

// The key of config.json whose value makes this model again: "--hf --arch llama --layers 4 …".
inline constexpr const char* k_make_arguments = "weir_model_make";

// Writes model.safetensors: all weights in bfloat16, whatever options.quantization says.
[[nodiscard]] Result<void> write_safetensors(const ModelOptions& options, const ByteSink& sink);

}  // namespace weir::model
