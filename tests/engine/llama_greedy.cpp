// Greedy decoding by the real llama.cpp, token by token: what the reference engine is held to.
//
//   llama-greedy MODEL LAYERS_ON_GPU PROMPT TOKENS [LOGITS]
//
// PROMPT is a list of token ids, "1,17,4"; printed are TOKENS ids, one a line. LOGITS is a file
// that takes the logits of each position from the first of the prompt on, as 32-bit floats, a row
// for each. With TOKENS 0 the prompt alone is evaluated: that is how tokens are given beforehand.
//
// The cache holds 32-bit floats and attention is not fused, as in the reference engine: what is
// left to differ is the order of sums. Tokens go in one at a time, so that a GPU multiplies
// matrices with vectors. Built by ci/llama.cpp (llama-greedy), against its headers and libraries.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "llama.h"

namespace {

std::vector<llama_token> parse_ids(const char* text) {
  std::vector<llama_token> ids;
  for (char* end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end) {
    ids.push_back(static_cast<llama_token>(std::strtol(text, &end, 10)));
    if (end == text) return {};
  }
  return ids;
}

int give_up(const char* why) {
  std::fprintf(stderr, "llama-greedy: %s\n", why);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return give_up("MODEL LAYERS_ON_GPU PROMPT TOKENS [LOGITS]");
  std::vector<llama_token> ids = parse_ids(argv[3]);
  const std::size_t prompt = ids.size(), tokens = std::strtoul(argv[4], nullptr, 10);
  if (prompt == 0) return give_up("PROMPT is a list of token ids");

  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all();
  llama_model_params of_model = llama_model_default_params();
  of_model.n_gpu_layers = std::atoi(argv[2]);
  // Without layers on a GPU it must not see one: ggml sends large products there all the same.
  ggml_backend_dev_t none[] = {nullptr};
  if (of_model.n_gpu_layers == 0) of_model.devices = none;
  llama_model* model = llama_model_load_from_file(argv[1], of_model);
  if (model == nullptr) return give_up("the model cannot be loaded");

  llama_context_params of_context = llama_context_default_params();
  of_context.n_ctx = static_cast<std::uint32_t>(prompt + tokens + 1);
  of_context.n_threads = of_context.n_threads_batch = 1;
  of_context.type_k = of_context.type_v = GGML_TYPE_F32;
  of_context.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  llama_context* context = llama_init_from_model(model, of_context);
  if (context == nullptr) return give_up("no context can be made");

  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  std::FILE* logits_file = argc > 5 ? std::fopen(argv[5], "wb") : nullptr;
  if (argc > 5 && logits_file == nullptr) return give_up("LOGITS cannot be written");
  // The last token that is printed is not evaluated.
  const std::size_t evaluated = prompt + (tokens > 0 ? tokens - 1 : 0);
  for (std::size_t at = 0; at < evaluated; ++at) {
    if (llama_decode(context, llama_batch_get_one(&ids[at], 1)) != 0)
      return give_up("decoding failed");
    const float* logits = llama_get_logits_ith(context, -1);
    if (logits_file != nullptr)
      std::fwrite(logits, sizeof(float), static_cast<std::size_t>(vocabulary), logits_file);
    if (at + 1 < prompt || tokens == 0) continue;
    ids.push_back(static_cast<llama_token>(std::max_element(logits, logits + vocabulary) - logits));
    std::printf("%d\n", ids.back());
  }
  if (logits_file != nullptr && std::fclose(logits_file) != 0)
    return give_up("LOGITS cannot be written");
  llama_free(context);
  llama_model_free(model);
  return 0;
}
