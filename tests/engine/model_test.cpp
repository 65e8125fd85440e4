// Models that are whole, that are beyond the engine, and that are hostile.
#include "tools/engine/model.hpp"

#include <bit>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/engine/models.hpp"
#include "tools/engine/backend.hpp"

namespace weir::engine {
namespace model_test {

using testing::HasSubstr;

model::GgufTensor& tensor(model::GgufHeader& header, std::string_view name) {
  return *std::find_if(header.tensors.begin(), header.tensors.end(),
                       [&](const auto& tensor) { return tensor.name == name; });
}

void set(model::GgufHeader& header, std::string_view key, const model::GgufValue& value) {
  for (auto& [name, old] : header.metadata) {
    if (name == key) old = value;
  }
}

class Models : public testing::Test {
 protected:
  std::string load_error(const std::string& name, const Change& change) {
    const auto model = load_model(write_model(folder_, name, second_model(), change), 64);
    return model ? "" : model.error().message;
  }
  probes::Folder folder_;
};

TEST_F(Models, AreReadWithTheirSizes) {
  const auto model = load_model(write_model(folder_, "b", second_model()), 64);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->sizes.layers, 3U);
  EXPECT_EQ(model->sizes.queries(), 192U);
  EXPECT_EQ(model->sizes.keys(), 64U);
  EXPECT_EQ(model->sizes.vocabulary, 700U);
  EXPECT_EQ(model->sizes.context, 64U);  // of 4096 that it was trained for
  EXPECT_EQ(model->layers[2].down.columns, 544U);
  EXPECT_EQ(model->frequencies[0], 1.0F);
}

TEST_F(Models, ThatAreBeyondTheEngineSayWhatIsMissingAndWhatWouldDo) {
  const struct {
    const char* name;
    Change change;
    const char* what;
  } cases[] = {
      {"architecture",
       [](auto& header) { set(header, "general.architecture", model::GgufValue::string("phi3")); },
       "architecture \"phi3\" not implemented \xE2\x80\x94 run it with llama.cpp or "},
      {"experts", [](auto& header) { header.tensors[5].name = "blk.0.ffn_gate_inp.weight"; },
       "blk.0.ffn_gate_inp.weight not implemented \xE2\x80\x94 run it with llama.cpp or "},
      // llama.cpp adds them; left out in silence the tokens would be wrong ones.
      {"bias", [](auto& header) { header.tensors[5].name = "blk.2.attn_k.bias"; },
       "blk.2.attn_k.bias not implemented"},
      {"norm", [](auto& header) { header.tensors[5].name = "blk.0.attn_q_norm.weight"; },
       "blk.0.attn_q_norm.weight not implemented"},
  };
  for (const auto& c : cases) EXPECT_THAT(load_error(c.name, c.change), HasSubstr(c.what));
}

// As llama.cpp takes them.
TEST_F(Models, WithoutRopeScalingTurnByTheWholeAngleWhateverItsFactor) {
  const auto turned = [&](const char* name, const std::optional<std::string>& type, float factor) {
    const auto model = load_model(
        write_model(folder_, name, second_model(),
                    [&](model::GgufHeader& header) {
                      if (type) {
                        header.metadata.emplace_back("llama.rope.scaling.type",
                                                     model::GgufValue::string(*type));
                      }
                      header.metadata.emplace_back(
                          "llama.rope.scaling.factor",
                          model::GgufValue::f32_bits(std::bit_cast<std::uint32_t>(factor)));
                    }),
        64);
    EXPECT_TRUE(model) << name;
    return model ? model->frequencies[0] : -1;
  };
  EXPECT_EQ(turned("none", "none", 4), 1.0F);
  EXPECT_EQ(turned("zero", std::nullopt, 0), 1.0F);
  EXPECT_EQ(turned("linear", "linear", 4), 0.25F);
  EXPECT_EQ(turned("unsaid", std::nullopt, 4), 0.25F);
}

TEST_F(Models, WithTypesThatABackendDoesNotKnowStopBeforeAnythingIsComputed) {
  Counts counts;
  const auto load = [&](const char* type) {
    return load_model(write_model(folder_, type, of_type(first_model(), type)), 16);
  };
  const auto q6 = load("q6_k"), bf16 = load("bf16");
  ASSERT_TRUE(q6 && bf16);
  const auto on_cpu = make_cpu_backend(*q6, 1, counts);
  ASSERT_FALSE(on_cpu);
  EXPECT_THAT(on_cpu.error().message,
              HasSubstr("cpu: row look-up in Q6_K (token_embd.weight) not implemented \xE2\x80\x94 "
                        "run it with llama.cpp or convert to Q8_0"));
  EXPECT_TRUE(make_cpu_backend(*bf16, 1, counts));
  const auto on_vulkan = make_vulkan_backend(*bf16, 0, counts);
  ASSERT_FALSE(on_vulkan);
  EXPECT_THAT(on_vulkan.error().message,
              HasSubstr("vulkan: matrix-vector product of BF16 (output.weight) not implemented "
                        "\xE2\x80\x94 use --backend cpu or convert to Q8_0"));
  EXPECT_EQ(counts.tally(), Tally{});
}

TEST_F(Models, ThatAreHostileAreRefused) {
  const auto number = [](const char* key, std::uint32_t value) {
    return [=](model::GgufHeader& header) { set(header, key, model::GgufValue::u32(value)); };
  };
  const struct {
    const char* name;
    Change change;
  } cases[] = {
      {"no-layers", number("llama.block_count", 0)},
      {"more-layers", number("llama.block_count", 4)},
      {"many-layers", number("llama.block_count", 0xffffffff)},
      {"wide", number("llama.embedding_length", 4096)},
      {"heads", number("llama.attention.head_count", 0)},
      {"kv-heads", number("llama.attention.head_count_kv", 4)},
      {"odd-head", number("llama.attention.key_length", 31)},
      {"no-context", number("llama.context_length", 0)},
      {"rope", number("llama.rope.freq_base", 0)},
      {"without-a-tensor",
       [](auto& header) {
         header.tensors.pop_back();
         header.tensors.pop_back();
       }},
      {"turned",
       [](auto& header) {
         auto& dims = tensor(header, "blk.1.ffn_up.weight").dims;
         std::swap(dims[0], dims[1]);
       }},
  };
  for (const auto& c : cases) EXPECT_NE(load_error(c.name, c.change), "") << c.name;
}

// Wherever the file ends: an error, never a read behind it (the address sanitizer looks on).
TEST_F(Models, ThatEndAnywhereAreRefused) {
  auto small = second_model();
  small.layers = 1;
  const std::string path = write_model(folder_, "whole", small);
  const std::string bytes = probes::slurp(path);
  ASSERT_TRUE(load_model(path, 16));
  const std::string cut = folder_.path() + "/cut.gguf";
  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 97) {
    std::ofstream(cut, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(size));
    EXPECT_FALSE(load_model(cut, 16)) << size;
  }
  EXPECT_FALSE(load_model(folder_.path(), 16));  // not a file
  EXPECT_FALSE(load_model(folder_.path() + "/none", 16));
}

TEST(Engine, StartsWhereNoVulkanLoaderIs) {
  const probes::Folder folder;
  const std::string model = write_model(folder, "m", first_model());
  std::ofstream(folder.path() + "/libvulkan.so.1") << "no library";
  const auto run = [&](const char* backend) {
    return probes::run({WEIR_ENGINE, "-m", model, "--backend", backend, "-n", "1"},
                       {{"LD_LIBRARY_PATH", folder.path()}});
  };
  EXPECT_EQ(run("cpu").status, 0);
  const probes::Ran ran = run("vulkan");
  EXPECT_EQ(ran.status, 3);
  EXPECT_EQ(ran.err, "weir-engine: vulkan: no loader (libvulkan.so.1) is installed\n");
}

}  // namespace model_test
}  // namespace weir::engine
