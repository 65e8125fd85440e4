// Tests of making small models.
#include "gate/model/make.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "gate/base/hash.hpp"

namespace weir::model {
namespace make_test {

std::string model_bytes(const ModelOptions& options) {
  std::string file;
  const auto written = write_model(options, [&](std::string_view bytes) -> Result<void> {
    file += bytes;
    return {};
  });
  EXPECT_TRUE(written) << written.error().message;
  EXPECT_EQ(written.value_or(ModelSummary{}).bytes, file.size());
  return file;
}

ModelOptions reference(std::string_view architecture, std::string_view quantization) {
  ModelOptions options = default_model(architecture).value_or(ModelOptions{});
  options.quantization = parse_quantization(quantization).value_or(Quantization{});
  return options;
}

// Baselines are stored for these models: their bytes must never change, on no machine. A change
// here needs new baselines, and a line in the change log.
TEST(ModelMake, WritesTheSameBytesOnEveryMachine) {
  const struct {
    const char* architecture;
    const char* quantization;
    std::size_t bytes;
    const char* hash;
  } cases[] = {
      {"llama", "f16", 6838560, "71a018cdd9acf49ae0964cdcfbeceec9"},
      {"llama", "q4_k_m", 2091808, "776c565a4d01d6afd1ce3d70d8b7f418"},
      {"gemma3", "f16", 9744160, "79069a1587df488723513d89996ffa86"},
      {"gemma3", "q4_k_m", 2924832, "3971d4ee5aa4e60e7c8fad46ab86562f"},
  };
  for (const auto& [architecture, quantization, bytes, hash] : cases) {
    const std::string file = model_bytes(reference(architecture, quantization));
    EXPECT_EQ(file.size(), bytes) << architecture << " " << quantization;
    EXPECT_EQ(hash_hex(file), hash) << architecture << " " << quantization;
  }
}

// One hash over every type's data: a type that no reference model has is pinned as well.
TEST(ModelMake, PinsTheDataOfEveryQuantization) {
  const std::map<std::string, std::string> pinned{
      {"bf16", "32dd0775bf0f"},   {"f16", "03d374ffe7fe"},    {"f32", "b7cef1230ae0"},
      {"iq4_nl", "283c4eaf2204"}, {"iq4_xs", "4289e48ed745"}, {"mxfp4", "ca9de897eabb"},
      {"q2_k", "ed27a18b6e2d"},   {"q3_k", "61713adb4aaa"},   {"q3_k_m", "703d58717d9f"},
      {"q4_0", "b3326722c81f"},   {"q4_1", "00d360a26909"},   {"q4_k", "266bcad8b52f"},
      {"q4_k_m", "630a46481656"}, {"q5_0", "78a0e4cb7b12"},   {"q5_1", "dee182c16f32"},
      {"q5_k", "95aa517a6d8a"},   {"q5_k_m", "4a710bc6f483"}, {"q6_k", "64410d374bb6"},
      {"q8_0", "f210449638ff"}};
  std::map<std::string, std::string> got;
  for (const std::string& name : quantization_names()) {
    ModelOptions options = reference("llama", name);
    options.layers = 1;
    got[name] = short_hash(model_bytes(options));
  }
  EXPECT_EQ(got, pinned);
}

TEST(ModelMake, PutsTensorTypesWhereTheMixSaysSo) {
  const auto header = make_model(reference("llama", "q4_k_m"));
  ASSERT_TRUE(header);
  std::map<std::string, std::uint32_t> types;
  for (const GgufTensor& tensor : header->tensors) types[tensor.name] = tensor.type;
  const auto type = [&](const char* name) { return static_cast<TensorType>(types.at(name)); };
  EXPECT_EQ(type("output.weight"), TensorType::q6_k);
  EXPECT_EQ(type("token_embd.weight"), TensorType::q4_k);
  EXPECT_EQ(type("blk.0.attn_v.weight"), TensorType::q4_k);
  EXPECT_EQ(type("blk.2.attn_v.weight"), TensorType::q6_k);    // every third layer
  EXPECT_EQ(type("blk.3.ffn_down.weight"), TensorType::q6_k);  // the last eighth
  EXPECT_EQ(type("blk.3.ffn_up.weight"), TensorType::q4_k);
  EXPECT_EQ(type("blk.0.attn_norm.weight"), TensorType::f32);
}

TEST(ModelMake, GivesAnotherModelForAnotherSeedWithTheSameHeader) {
  ModelOptions options = reference("llama", "f16");
  options.layers = 1;
  const std::string first = model_bytes(options);
  options.seed = 2;
  const std::string second = model_bytes(options);
  const auto header = make_model(options);
  ASSERT_TRUE(header);
  const std::size_t start = header->data_start;
  EXPECT_EQ(first.substr(0, start), second.substr(0, start));
  EXPECT_NE(first.substr(start, 4096), second.substr(start, 4096));
}

TEST(ModelMake, MakesMixturesOfExperts) {
  ModelOptions options = reference("llama", "q4_k_m");
  options.experts = 8;
  options.experts_used = 2;
  const auto header = make_model(options);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->find_own("expert_count")->to_unsigned(), 8U);
  const auto experts =
      std::find_if(header->tensors.begin(), header->tensors.end(),
                   [](const auto& tensor) { return tensor.name == "blk.1.ffn_up_exps.weight"; });
  ASSERT_NE(experts, header->tensors.end());
  EXPECT_EQ(experts->dims, (std::vector<std::uint64_t>{256, 768, 8}));
}

// Weights as the models' cards count them, without what sees images.
TEST(ModelMake, KnowsTheSizesOfPublishedModels) {
  const std::map<std::string, double> weights = {
      {"llama-3.1-8b", 8.030e9}, {"llama-3.3-70b", 70.554e9}, {"mixtral-8x7b", 46.703e9},
      {"qwen3-8b", 8.191e9},     {"qwen3-30b-a3b", 30.532e9}, {"gemma-3-4b", 3.880e9},
      {"gemma-3-27b", 27.009e9},
  };
  for (const std::string& name : published_models()) {
    const auto options = model_like(name);
    ASSERT_TRUE(options) << name;
    auto header = make_model(*options);
    ASSERT_TRUE(header) << name << header.error().message;
    const auto summary = summarize(*header);
    ASSERT_TRUE(summary) << name;
    EXPECT_NEAR(static_cast<double>(summary->parameters), weights.at(name),
                0.005 * weights.at(name))
        << name;
  }
  EXPECT_FALSE(model_like("llama-9"));
}

TEST(ModelMake, SaysWhichOptionIsWrong) {
  const auto make_error = [](auto change) {
    ModelOptions options;
    change(options);
    const auto result = make_model(options);
    if (result) return std::string("made");
    EXPECT_EQ(result.error().code, Code::usage);
    return result.error().message;
  };
  const struct {
    std::string message;
    std::string_view part;
  } cases[] = {
      {make_error([](auto& o) { o.architecture = "lama"; }), "did you mean \"llama\"?"},
      {make_error([](auto& o) { o.layers = 0; }), "layers is 0"},
      {make_error([](auto& o) { o.embedding = 1U << 30; }), "embedding is 1073741824"},
      {make_error([](auto& o) { o.kv_heads = 3; }), "heads (4) is no multiple of kv-heads (3)"},
      {make_error([](auto& o) { o.head_dim = 33; }), "head-dim is 33"},
      {make_error([](auto& o) { o.vocab = 100; }), "vocab is 100: it must lie between 320"},
      {make_error([](auto& o) { o.experts = 4; }), "experts-used (0)"},
      {make_error([](auto& o) {
         o.embedding = 192;
         o.quantization = {"q4_k", TensorType::q4_k, TensorType::q4_k};
       }),
       "tensor token_embd.weight: a row of 192 values is not a whole number of Q4_K blocks of 256"},
  };
  for (const auto& [message, part] : cases) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " / " << message;
  }
  const auto unknown = parse_quantization("q4_km");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("did you mean \"q4_k\"?"), std::string::npos)
      << unknown.error().message;
  EXPECT_FALSE(default_model("gpt5"));
}

TEST(ModelMake, StopsWhereTheSinkFails) {
  int calls = 0;
  const auto written = write_model({}, [&](std::string_view) -> Result<void> {
    if (++calls == 3) return fail(Code::io, "disk full");
    return {};
  });
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "disk full");
  EXPECT_EQ(calls, 3);
}

}  // namespace make_test
}  // namespace weir::model
