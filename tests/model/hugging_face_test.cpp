// Tests of models in Hugging Face's form. That transformers loads them:
// tests/e2e/torch_twins_test.cpp.
#include "gate/model/hugging_face.hpp"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"

namespace weir::model {
namespace hugging_face_test {

ModelOptions small_model(std::string_view architecture) {
  ModelOptions options = default_model(architecture).value_or(ModelOptions{});
  options.layers = 2;
  return options;
}

std::map<std::string, Json> folder_of(const ModelOptions& options) {
  const auto files = make_model_folder(options);
  EXPECT_TRUE(files) << files.error().message;
  std::map<std::string, Json> parsed;
  for (const TextFile& file : files.value_or(std::vector<TextFile>{})) {
    parsed[file.name] = parse_json(file.text).value_or(Json());
  }
  return parsed;
}

std::string weights_of(const ModelOptions& options) {
  std::string bytes;
  const auto written = write_safetensors(options, [&](std::string_view part) -> Result<void> {
    bytes += part;
    return {};
  });
  EXPECT_TRUE(written) << written.error().message;
  return bytes;
}

// The header of a .safetensors file: its length in 8 bytes, then JSON.
Json header_of(const std::string& bytes) {
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes.at(i));
  return parse_json(bytes.substr(8, length)).value_or(Json());
}

// Keys as config.json of the published models has them.
TEST(ModelFolder, DescribesEachArchitectureAsItsClassReadsIt) {
  const struct {
    const char *architecture, *class_name, *type, *own_key;
  } cases[] = {{"llama", "LlamaForCausalLM", "llama", "hidden_act"},
               {"qwen3", "Qwen3ForCausalLM", "qwen3", "hidden_act"},
               {"qwen3moe", "Qwen3MoeForCausalLM", "qwen3_moe", "moe_intermediate_size"},
               {"gemma3", "Gemma3ForCausalLM", "gemma3_text", "query_pre_attn_scalar"}};
  for (const auto& [architecture, class_name, type, own_key] : cases) {
    const Json config = folder_of(small_model(architecture))["config.json"];
    EXPECT_EQ(config["architectures"][0], class_name);
    EXPECT_EQ(config["model_type"], type);
    EXPECT_TRUE(config.contains(own_key)) << architecture;
    EXPECT_EQ(config["num_hidden_layers"], 2) << architecture;
    EXPECT_EQ(config["num_key_value_heads"], 2) << architecture;
  }
  ModelOptions mixture = small_model("llama");
  mixture.experts = 8;
  mixture.experts_used = 2;
  EXPECT_EQ(folder_of(mixture)["config.json"]["architectures"][0], "MixtralForCausalLM");
}

TEST(ModelFolder, NamesTheOptionsThatMakeItAgain) {
  const Json config = folder_of(small_model("qwen3moe"))["config.json"];
  EXPECT_EQ(config[k_make_arguments],
            "--hf --arch qwen3moe --layers 2 --embedding 256 --ff 768 --heads 4 --kv-heads 2 "
            "--head-dim 64 --vocab 512 --context 4096 --experts 8 --experts-used 2");
}

TEST(ModelFolder, GivesEachIdATokenOfItsOwnAndEachByteOne) {
  const Json tokenizer = folder_of(small_model("llama"))["tokenizer.json"];
  const Json& vocabulary = tokenizer["model"]["vocab"];
  std::set<int> ids;
  for (const auto& [token, id] : vocabulary.items()) ids.insert(id.get<int>());
  EXPECT_EQ(vocabulary.size(), 512U);
  EXPECT_EQ(ids.size(), 512U);
  EXPECT_EQ(*ids.rbegin(), 511);
  // As GPT-2's vocabulary has them: "Ġ" is the space, "Ċ" the line's end, "Ń" the byte 0xAD.
  for (const char* byte : {"A", "é", "Ġ", "Ċ", "Ń"}) EXPECT_TRUE(vocabulary.contains(byte)) << byte;
}

// Weights as the models' cards count them; tied embeddings are there once.
TEST(ModelFolder, HoldsTheWeightsOfAPublishedModelUnderItsNames) {
  ModelOptions options = model_like("mixtral-8x7b").value_or(ModelOptions{});
  options.layers = 1;
  options.embedding = options.feed_forward = options.vocab = 320;
  const Json header = header_of(weights_of(options));
  EXPECT_EQ(header["model.layers.0.block_sparse_moe.gate.weight"]["shape"], Json({8, 320}));
  EXPECT_EQ(header["model.layers.0.self_attn.k_proj.weight"]["shape"], Json({8 * 128, 320}));
  EXPECT_TRUE(header.contains("model.layers.0.block_sparse_moe.experts.7.w3.weight"));
  EXPECT_TRUE(header.contains("model.layers.0.post_attention_layernorm.weight"));
  EXPECT_TRUE(header.contains("lm_head.weight"));
  EXPECT_FALSE(header_of(weights_of(small_model("gemma3"))).contains("lm_head.weight"));
}

TEST(ModelFolder, LaysWeightsOutOneAfterAnother) {
  const std::string bytes = weights_of(small_model("llama"));
  const Json header = header_of(bytes);
  std::map<std::uint64_t, std::uint64_t> parts;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const Json& offsets = tensor["data_offsets"];
    parts[offsets[0].get<std::uint64_t>()] = offsets[1].get<std::uint64_t>();
    EXPECT_EQ(tensor["dtype"], "BF16");
  }
  std::uint64_t end = 0;
  for (const auto& [begin, stop] : parts) {
    EXPECT_EQ(begin, end);
    end = stop;
  }
  const std::size_t text = bytes.size() - 8 - end;
  EXPECT_EQ(text % 8, 0U);
  EXPECT_EQ(bytes.substr(8 + text).size(), end);
}

TEST(ModelFolder, WritesTheSameBytesOnEveryMachine) {
  EXPECT_EQ(short_hash(weights_of(small_model("llama"))), "fbb45a89adbf");
}

TEST(ModelFolder, SaysWhichOptionIsWrong) {
  ModelOptions options;
  options.vocab = 100;
  const auto files = make_model_folder(options);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, Code::usage);
}

}  // namespace hugging_face_test
}  // namespace weir::model
