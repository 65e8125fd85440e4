#include "gate/model/tokenizer.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace weir::model {
namespace {

// tokenizer.ggml.token_type
constexpr std::int32_t k_normal = 1;
constexpr std::int32_t k_unknown = 2;
constexpr std::int32_t k_control = 3;
constexpr std::int32_t k_byte = 6;

// 0, 1, 2 … as "a", "b" … "z", "aa", "ab" …: distinct whatever the number.
std::string word(std::uint32_t index) {
  std::string letters;
  for (std::uint64_t rest = std::uint64_t{index} + 1; rest > 0; rest = (rest - 1) / 26) {
    letters.push_back(static_cast<char>('a' + (rest - 1) % 26));
  }
  std::reverse(letters.begin(), letters.end());
  return letters;
}

}  // namespace

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
    tokens.push_back(word(i));
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

}  // namespace weir::model
