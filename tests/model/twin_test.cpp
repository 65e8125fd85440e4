// Tests of shrunken models.
#include "gate/model/twin.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::model {
namespace twin_test {

using Dims = std::vector<std::uint64_t>;

// The sizes of an 8B model (32 layers, 4096, 14336, 32 and 8 heads, 128256 tokens).
ModelOptions large() {
  ModelOptions options;
  options.layers = 32;
  options.embedding = 4096;
  options.feed_forward = 14336;
  options.heads = 32;
  options.kv_heads = 8;
  options.head_dim = 128;
  options.vocab = 128256;
  options.quantization = parse_quantization("q4_k_m").value_or(Quantization{});
  return options;
}

GgufHeader make_header(const ModelOptions& options) {
  auto header = make_model(options);
  EXPECT_TRUE(header) << header.error().message;
  return header.value_or(GgufHeader{});
}

Twin make_twin(const GgufHeader& source, const TwinOptions& options = {}) {
  auto twin = shrink_model(source, options);
  EXPECT_TRUE(twin) << twin.error().message;
  return twin.value_or(Twin{});
}

Dims dims(const GgufHeader& header, std::string_view name) {
  for (const GgufTensor& tensor : header.tensors) {
    if (tensor.name == name) return tensor.dims;
  }
  return {};
}

std::uint64_t number(const GgufHeader& header, std::string_view key) {
  const GgufValue* value = header.find_own(key);
  return value == nullptr ? 0 : value->to_unsigned().value_or(0);
}

TEST(ModelTwin, ShrinksAllSizesTogether) {
  const GgufHeader source = make_header(large());
  const Twin twin = make_twin(source, {.target_bytes = 1ULL << 30});
  const GgufHeader& small = twin.header;
  // 32 heads for 8 is a ratio of 4; one key head of 128 then asks for 4 x 128 = 512.
  EXPECT_EQ(number(small, "embedding_length"), 512U);
  EXPECT_EQ(number(small, "attention.head_count"), 4U);
  EXPECT_EQ(number(small, "attention.head_count_kv"), 1U);
  EXPECT_EQ(number(small, "attention.key_length"), 128U);
  EXPECT_EQ(number(small, "feed_forward_length"), 256U);  // 14336 is a multiple of 256, so is this
  EXPECT_EQ(number(small, "block_count"), 32U);
  EXPECT_EQ(dims(small, "token_embd.weight"), (Dims{512, number(small, "vocab_size")}));
  EXPECT_EQ(dims(small, "blk.31.attn_q.weight"), (Dims{512, 512}));
  EXPECT_EQ(dims(small, "blk.31.attn_k.weight"), (Dims{512, 128}));
  EXPECT_EQ(dims(small, "blk.31.ffn_down.weight"), (Dims{256, 512}));
  EXPECT_TRUE(twin.warnings.empty()) << twin.warnings.front();
}

TEST(ModelTwin, KeepsTensorsTypesAndEverythingElseOfTheHeader) {
  const GgufHeader source = make_header(large());
  const GgufHeader small = make_twin(source).header;
  ASSERT_EQ(small.tensors.size(), source.tensors.size());
  for (std::size_t i = 0; i < source.tensors.size(); ++i) {
    EXPECT_EQ(small.tensors[i].name, source.tensors[i].name);
    EXPECT_EQ(small.tensors[i].type, source.tensors[i].type);
  }
  ASSERT_EQ(small.metadata.size(), source.metadata.size());
  for (std::size_t i = 0; i < source.metadata.size(); ++i) {
    EXPECT_EQ(small.metadata[i].first, source.metadata[i].first);
    EXPECT_EQ(small.metadata[i].second.type(), source.metadata[i].second.type());
  }
}

TEST(ModelTwin, HalvesTheHeadDimensionOnlyWhereTheTwinIsTooLarge) {
  const GgufHeader source = make_header(large());
  const Twin twin = make_twin(source);  // 16 MiB asked for; 512 wide it would be 22
  EXPECT_EQ(number(twin.header, "attention.key_length"), 64U);
  EXPECT_EQ(number(twin.header, "rope.dimension_count"), 64U);
  EXPECT_EQ(number(twin.header, "attention.head_count_kv"), 1U);
  EXPECT_EQ(number(twin.header, "attention.head_count"), 4U);
  EXPECT_EQ(number(twin.header, "embedding_length"), 256U);  // 4 x 64
  ASSERT_EQ(twin.warnings.size(), 1U);
  EXPECT_NE(twin.warnings[0].find("head dimension 128 became"), std::string::npos);
}

TEST(ModelTwin, KeepsWholePeriodsOfLayers) {
  ModelOptions options = default_model("gemma3").value_or(ModelOptions{});
  options.layers = 62;
  options.embedding = 5376;
  options.heads = 32;
  options.kv_heads = 16;
  options.head_dim = 128;
  options.feed_forward = 21504;
  GgufHeader source = make_header(options);
  const std::string key = "gemma3.attention.sliding_window_pattern";
  source.metadata.emplace_back(key, GgufValue::u32(6));
  const Twin twin = make_twin(source, {.layers = 8});
  EXPECT_EQ(number(twin.header, "block_count"), 12U);
  EXPECT_TRUE(dims(twin.header, "blk.12.attn_q.weight").empty());
  EXPECT_FALSE(dims(twin.header, "blk.11.attn_q.weight").empty());
  // 32 heads of 128 are not the embedding here: that shrinks by itself.
  EXPECT_EQ(number(twin.header, "embedding_length"), 256U);
  EXPECT_EQ(dims(twin.header, "blk.0.attn_q.weight"), (Dims{256, 256}));
  EXPECT_NE(twin.warnings[0].find("12 layers kept in place of 8"), std::string::npos);

  std::vector<std::int32_t> pattern(62, 1);  // the other way to write it: one value a layer
  source.metadata.back().second = GgufValue::i32s(pattern);
  const Twin listed = make_twin(source, {.layers = 12});
  EXPECT_EQ(listed.header.find(key)->count(), 12U);
}

TEST(ModelTwin, KeepsExpertsAndTheirNumber) {
  ModelOptions options = large();
  options.experts = 8;  // as many as there are key heads
  options.experts_used = 2;
  const GgufHeader small = make_twin(make_header(options)).header;
  EXPECT_EQ(number(small, "expert_count"), 8U);
  EXPECT_EQ(dims(small, "blk.0.ffn_gate_inp.weight"), (Dims{number(small, "embedding_length"), 8}));
  EXPECT_EQ(dims(small, "blk.0.ffn_down_exps.weight"),
            (Dims{256, number(small, "embedding_length"), 8}));
}

TEST(ModelTwin, ShrinksTheTokenizerAroundItsSpecialTokens) {
  GgufHeader source = make_header(large());
  for (auto& [key, value] : source.metadata) {
    if (key == "tokenizer.ggml.eos_token_id") value = GgufValue::u32(128009);
  }
  source.metadata.emplace_back("tokenizer.ggml.merges", GgufValue::strings(std::vector<std::string>{
                                                            "a b", "zzz q", "a zzzz", "a"}));
  const GgufHeader small = make_twin(source, {.vocab = 1000}).header;
  const auto tokens = small.find("tokenizer.ggml.tokens")->to_string_list();
  ASSERT_TRUE(tokens);
  // 128256 = 256 x 501: at most 1000 that are a multiple of 256 and not of 512 are 768.
  EXPECT_EQ(tokens->size(), 768U);
  EXPECT_EQ(number(small, "vocab_size"), 768U);
  EXPECT_EQ(dims(small, "output.weight").at(1), 768U);
  const auto names = source.find("tokenizer.ggml.tokens")->to_string_list();
  const auto eos = small.find("tokenizer.ggml.eos_token_id")->to_unsigned();
  ASSERT_TRUE(eos && names);
  EXPECT_EQ((*tokens)[*eos], (*names)[128009]);
  EXPECT_EQ(small.find("tokenizer.ggml.scores")->count(), 768U);
  EXPECT_EQ(small.find("tokenizer.ggml.token_type")->count(), 768U);
  EXPECT_EQ(small.find("tokenizer.ggml.merges")->to_string_list(),
            (std::vector<std::string>{"a b"}));  // "zzz" and "zzzz" are gone

  EXPECT_EQ(make_twin(source, {.vocab = 0}).header.find("tokenizer.ggml.tokens")->count(), 128256U);
}

TEST(ModelTwin, KeepsWhatItDoesNotKnowAndSaysSo) {
  GgufHeader source = make_header(large());
  source.tensors.push_back({"blk.0.mystery.weight", {4096, 777}, 1, 0});
  const Twin twin = make_twin(source, {.target_bytes = 1ULL << 30});
  EXPECT_EQ(dims(twin.header, "blk.0.mystery.weight"), (Dims{512, 777}));
  ASSERT_EQ(twin.warnings.size(), 1U);
  EXPECT_EQ(twin.warnings[0], "size 777 of *.mystery.weight is kept: not recognized");
}

TEST(ModelTwin, IsATwinOfItself) {
  const GgufHeader once = make_twin(make_header(large())).header;
  const GgufHeader twice = make_twin(once).header;
  EXPECT_EQ(twice.tensors, once.tensors);
}

// Found by fuzzing: one try for each of 200 million heads would not end in a test's time.
TEST(ModelTwin, DoesNotTryEveryNumberOfHeadsThatAHeaderClaims) {
  GgufHeader source = make_header({});
  for (auto& [key, value] : source.metadata) {
    if (key.find("head_count") != std::string::npos) value = GgufValue::u32(200000000);
  }
  const Twin twin = make_twin(source);
  EXPECT_EQ(dims(twin.header, "output_norm.weight"), dims(twin.header, "blk.0.ffn_norm.weight"));
}

TEST(ModelTwin, RefusesWhatItCanNotShrink) {
  const GgufHeader good = make_header({});
  const auto shrink_error = [&](auto change) {
    GgufHeader source = good;
    change(source);
    const auto twin = shrink_model(source, {});
    return twin ? std::string("made") : twin.error().message;
  };
  const auto set = [](GgufHeader& header, std::string_view key, std::uint32_t number) {
    for (auto& [name, value] : header.metadata) {
      if (name == key) value = GgufValue::u32(number);
    }
  };
  const struct {
    std::string message;
    std::string_view part;
  } cases[] = {
      {shrink_error([](auto& h) { h.metadata.emplace_back("split.count", GgufValue::u32(2)); }),
       "merge them first"},
      {shrink_error([](auto& h) { h.tensors.clear(); }), "no tensors"},
      {shrink_error([](auto& h) { h.tensors[0].type = 77; }), "type 77 is not known"},
      {shrink_error([&](auto& h) { set(h, "llama.embedding_length", 0); }), "sizes to shrink"},
      {shrink_error([&](auto& h) { set(h, "llama.block_count", 4000000000U); }), "absurd"},
      {shrink_error([](auto& h) { h.tensors[0].dims[1] = 1ULL << 40; }), "absurd"},
  };
  for (const auto& [message, part] : cases) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " / " << message;
  }
}

}  // namespace twin_test
}  // namespace weir::model
