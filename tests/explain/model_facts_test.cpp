// Families of layers in headers of models.
#include "gate/explain/model_facts.hpp"

#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace model_facts_test {

using test::header;

std::vector<std::string> patterns(const ModelFacts& facts) {
  std::vector<std::string> list;
  for (const LayerFamily& family : facts.families) {
    list.push_back(family.pattern + " x " + std::to_string(family.layers.size()));
  }
  return list;
}

TEST(ModelFacts, NameFamiliesByTheShortestPatternThatTellsTheirLayersApart) {
  const ModelFacts facts = test::qwen();
  EXPECT_EQ(facts.layers, 24);
  // "ssm_" covers five tensors of the 16 layers. Of the other 8, "attn_k" covers two; "attn_q_"
  // covers one, and "attn_q" also begins attn_qkv.
  EXPECT_EQ(patterns(facts), (std::vector<std::string>{"blk.*.ssm_* x 16", "blk.*.attn_k* x 8"}));
  EXPECT_EQ(facts.families.front().layers.front(), 0);
  EXPECT_EQ(facts.families.back().layers.front(), 2);
}

TEST(ModelFacts, HaveNoFamilyWhereAllLayersAreAlike) {
  const ModelFacts facts =
      model_facts(header({"blk.0.attn_q.weight", "blk.1.attn_q.weight", "output.weight"}));
  EXPECT_EQ(facts.layers, 2);
  EXPECT_TRUE(facts.families.empty());
}

TEST(ModelFacts, TakeASingleTensorByItsName) {
  const ModelFacts facts = model_facts(
      header({"blk.0.attn_q.weight", "blk.1.attn_q.weight", "blk.1.attn_q_norm.weight"}));
  EXPECT_EQ(patterns(facts), (std::vector<std::string>{"blk.*.attn_q_* x 1"}));
}

// Header of the first of two files, with four of eight layers; only layer 0 has ssm_a.
model::GgufHeader half_a_model() {
  auto half = header({"blk.0.ssm_a", "blk.0.ffn_up", "blk.1.ffn_up", "blk.2.ffn_up"});
  half.metadata.emplace_back("test.expert_used_count", model::GgufValue::u32(2));
  return half;
}

TEST(ModelFacts, OfOneFileOfSeveralAreWhatItsMetadataSays) {
  auto half = half_a_model();
  half.metadata.emplace_back("split.count", model::GgufValue::u32(2));
  EXPECT_EQ(model_facts(half).layers, 0) << "the second file says no number of layers";
  EXPECT_TRUE(model_facts(half).families.empty());
  half.metadata.emplace_back("test.block_count", model::GgufValue::u32(8));
  const ModelFacts facts = model_facts(half);
  EXPECT_EQ(facts.layers, 8);
  EXPECT_EQ(facts.experts_used, 2);
  EXPECT_TRUE(facts.families.empty()) << "the other files' layers may have ssm_a too";
}

TEST(ModelFacts, BelieveNoFamilyWhereLayersAreMissing) {
  auto half = half_a_model();
  EXPECT_EQ(patterns(model_facts(half)), (std::vector<std::string>{"blk.*.ssm_* x 1"}));
  half.metadata.emplace_back("test.block_count", model::GgufValue::u32(8));
  EXPECT_EQ(model_facts(half).layers, 8);
  EXPECT_TRUE(model_facts(half).families.empty());
  half.metadata.back() = {"test.block_count", model::GgufValue::u32(1'000'000)};
  EXPECT_EQ(model_facts(half).layers, 3) << "no model has a million layers";
}

// The header has as many tensors as the reader accepts. A comparison of every prefix with all names
// would take hours and hit the test's time limit.
TEST(ModelFacts, AreSoonToldOfAsManyNamesAsAHeaderMayHave) {
  std::vector<std::string> names = {"blk.0.all", "blk.1.all"};
  for (int i = 0; i < 262'142; ++i) {
    names.push_back("blk.0._______________________________________________" + std::to_string(i));
  }
  const ModelFacts facts = model_facts(header(names));
  EXPECT_EQ(facts.layers, 2);
  EXPECT_EQ(patterns(facts), (std::vector<std::string>{"blk.*._* x 1"}));
}

TEST(ModelFacts, AreNotTakenInByHostileNames) {
  std::vector<std::string> names = {"blk.-1.x",
                                    "blk.99999999.x",
                                    "blk..x",
                                    "blk.1",
                                    "blk.0.",
                                    "blk.2.\x1b[31mred",
                                    "blk.3." + std::string(1000, 'a')};
  const ModelFacts facts = model_facts(header(names));
  EXPECT_EQ(facts.layers, 1) << "layer 2 alone has a name that can be shown";
  for (const LayerFamily& family : facts.families) {
    EXPECT_EQ(family.pattern.find('\x1b'), std::string::npos);
  }
}

TEST(ModelFacts, StopAtALimitOfFamilies) {
  std::vector<std::string> names;
  for (int i = 0; i < 2000; ++i) {
    names.push_back("blk." + std::to_string(i) + ".own" + std::to_string(i));
  }
  const ModelFacts facts = model_facts(header(names));
  EXPECT_EQ(facts.layers, 2000);
  EXPECT_LE(facts.families.size(), k_max_families);
}

TEST(ModelFactsFromConfig, ReadLayerTypes) {
  const auto facts = model_facts_from_config(
      R"({"model_type": "qwen3_next", "num_hidden_layers": 4, "num_experts": 512,
          "num_experts_per_tok": 10,
          "layer_types": ["linear_attention", "linear_attention", "linear_attention",
                          "full_attention"]})");
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->architecture, "qwen3_next");
  EXPECT_EQ(patterns(*facts),
            (std::vector<std::string>{"linear_attention x 3", "full_attention x 1"}));
  EXPECT_EQ(facts->experts_used, 10);
}

TEST(ModelFactsFromConfig, ReadWhatOtherModelsSay) {
  struct Case {
    const char* config;
    std::vector<std::string> want;
  };
  const Case cases[] = {
      {R"({"num_hidden_layers": 8, "full_attention_interval": 4})",
       {"linear attention x 6", "full attention x 2"}},
      {R"({"text_config": {"num_hidden_layers": 12, "sliding_window_pattern": 6}})",
       {"a sliding window x 10", "full attention x 2"}},
      {R"({"num_hidden_layers": 8, "attn_layer_period": 8, "attn_layer_offset": 4})",
       {"state space x 7", "attention x 1"}},
      {R"({"num_hidden_layers": 27, "first_k_dense_replace": 1})",
       {"experts x 26", "a dense FFN x 1"}},
      {R"({"num_hidden_layers": 5, "hybrid_override_pattern": "M-M*-"})",
       {"- x 2", "M x 2", "* x 1"}},
      {R"({"n_layer": 12})", {}},
  };
  for (const Case& entry : cases) {
    const auto facts = model_facts_from_config(entry.config);
    ASSERT_TRUE(facts) << entry.config << ": " << facts.error().message;
    EXPECT_EQ(patterns(*facts), entry.want) << entry.config;
  }
}

TEST(ModelFactsFromConfig, RefuseWhatTellsNoLayers) {
  for (const char* text :
       {"", "[]", "{}", "{\"num_hidden_layers\": 0}", "{\"num_hidden_layers\": 1e9}",
        "{\"num_hidden_layers\": \"24\"}", "{\"num_hidden_layers\": 18446744073709551615}"}) {
    EXPECT_FALSE(model_facts_from_config(text)) << text;
  }
}

}  // namespace model_facts_test
}  // namespace weir::explain
