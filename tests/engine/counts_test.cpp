// The engine's own counts are those that reach the driver: counted by weir's layer, and by a second
// layer that shares no code with it.
#include <gmock/gmock.h>

#include "gate/base/json.hpp"
#include "gate/observed/observed.hpp"

#include "tests/engine/engine_run.hpp"
#include "tests/probes/independent_count.hpp"

namespace weir::engine {
namespace counts_test {

using Totals = std::map<std::string, std::int64_t>;

constexpr const char* k_counts[] = {"dispatches", "barriers", "copies", "submits", "syncs"};

observed::Observed observed(const probes::Ran& ran) {
  auto json = parse_json(ran.out);
  EXPECT_TRUE(json) << ran.out;
  if (!json) return {};
  auto observed = read_fields<observed::Observed>(*json, "observed");
  EXPECT_TRUE(observed) << ran.out;
  return observed.value_or(observed::Observed{});
}

Totals own_totals(const observed::Observed& observed) {
  Totals totals;
  for (const auto& counter : observed.counters) {
    totals[counter.name] = static_cast<std::int64_t>(counter.points.at(0).value);
  }
  return totals;
}

std::vector<std::int64_t> values(const observed::Observed& observed, std::string_view metric) {
  for (const auto& count : observed.counts) {
    if (count.metric.name == metric) return count.values;
  }
  return {};
}

struct Counted {
  Totals own, weir, independent;
  std::map<std::string, std::int64_t> own_kernels, weir_kernels;
  observed::Observed observed;
};

Counted count(const std::string& model, Words words) {
  const probes::Folder folder;
  words.insert(words.end(), {"--backend", "vulkan", "--json"});
  const probes::Ran ran = run_engine(
      model, words,
      {{"WEIR_PROBE_DIR", folder.path()},
       {"WEIR_INDEPENDENT_COUNTS", folder.path() + ".independent"},
       {"VK_LAYER_PATH", WEIR_BINARY_DIR "/lib/weir/probes:" WEIR_INDEPENDENT_LAYER},
       {"VK_INSTANCE_LAYERS", std::string("VK_LAYER_WEIR_probe:") + probes::k_independent_layer}});
  Counted counted;
  counted.observed = observed(ran);
  counted.own = own_totals(counted.observed);
  for (const auto& op : counted.observed.ops) {
    if (!op.kernel.empty()) counted.own_kernels[op.kernel] = op.calls.value_or(0);
  }
  const auto counts = probes::merge("vulkan", probes::probe_files(folder.path()));
  counted.weir = {counts.counts.begin(), counts.counts.end()};
  counted.weir_kernels = {counts.kernels.begin(), counts.kernels.end()};
  counted.independent = probes::independent_counts(folder.path() + ".independent");
  std::filesystem::remove(folder.path() + ".independent");
  return counted;
}

TEST(RealCounts, AreThoseSeenFromOutsideInEveryConfiguration) {
  const probes::Folder folder;
  const std::vector<Words> configurations{
      {},
      {"--no-batch"},
      {"--fused-ffn"},
      {"--no-batch", "--fused-ffn", "--shares"},
      {"--inject", "cpu-split"},
      {"--inject", "op-on-cpu", "--no-batch"},
      {"--inject", "unbatched-qkv"},
      {"--inject", "lost-fusion", "--fused-ffn"},
      {"--inject", "extra-barriers", "--fused-ffn"},
      {"--inject", "extra-copy", "--shares"},
      {"--inject", "slow-kernel"},
      {"--inject", "cpu-split,op-on-cpu,unbatched-qkv,extra-barriers,extra-copy,slow-kernel"},
  };
  for (const char* type : {"f32", "f16", "q8_0", "q4_0"}) {
    const std::string path = write_model(folder, type, of_type(second_model(), type));
    for (const Words& configuration : configurations) {
      // Only the fused products have a kernel for each type.
      const bool typed = configuration.empty() || configuration == Words{"--fused-ffn"};
      if (!typed && std::string("q8_0") != type) continue;
      // A prompt of 70 is computed in two batches.
      const char* prompt = configuration.empty() && !std::strcmp(type, "q8_0") ? "70" : "3";
      for (const Words& work : {Words{"-n", "4"}, Words{"-p", prompt, "-n", "2", "-r", "2"}}) {
        Words words = configuration;
        words.insert(words.end(), work.begin(), work.end());
        const Counted counted = count(path, words);
        for (const char* name : k_counts) {
          const auto own = counted.own.find(name);
          ASSERT_NE(own, counted.own.end()) << name;
          EXPECT_EQ(own->second, counted.weir.at(name)) << type << " " << words.size() << name;
          EXPECT_EQ(own->second, counted.independent.at(name))
              << type << " " << words.size() << name;
        }
        EXPECT_EQ(counted.own_kernels, counted.weir_kernels) << type << " " << words.size();
      }
    }
  }
}

// By hand from decoder.cpp, for three layers: 9 ops each, 3 at the end; without batching, query,
// key and value are three ops and gate and up two; fused, gate, up and activation are one. A
// barrier behind each, and one behind the row of the embedding. What faults add, from faults.cpp: a
// copy to the host or back has a barrier of its own, and a wait a submit.
TEST(RealCounts, PerTokenFollowFromTheForwardPass) {
  const probes::Folder folder;
  const std::string path = write_model(folder, "b", of_type(second_model(), "q8_0"));
  const struct {
    Words words;
    std::int64_t dispatches;
    std::int64_t more_barriers = 0, more_copies = 0, more_waits = 0, more_cpu_ops = 0;
  } cases[] = {
      {{}, 3 * 9 + 3},
      {{"--no-batch"}, 3 * 12 + 3},
      {{"--fused-ffn"}, 3 * 8 + 3},
      {{"--no-batch", "--fused-ffn"}, 3 * 10 + 3},
      {{"--inject", "cpu-split"}, 3 * 9 + 3, 2 * 3, 2 * 3, 3},     // query there and back
      {{"--inject", "op-on-cpu"}, 3 * 8 + 3, 3 * 3, 3 * 3, 3, 3},  // gate and up there, gate back
      {{"--inject", "unbatched-qkv"}, 3 * 11 + 3},                 // three products are three ops
      {{"--inject", "lost-fusion", "--fused-ffn"}, 3 * 9 + 3},     // as without the switch
      {{"--inject", "extra-barriers"}, 3 * 9 + 3, 3 * 9 + 2 + 1 + 1},  // ops, and the embedding
      {{"--inject", "extra-copy"}, 3 * 9 + 3, 1, 1},
      {{"--inject", "slow-kernel"}, 3 * 9 + 3},
  };
  for (const auto& c : cases) {
    Words words = c.words;
    words.insert(words.end(), {"-n", "4"});
    const auto observed = count(path, words).observed;
    SCOPED_TRACE(testing::PrintToString(c.words));
    const auto each = [](std::int64_t value) { return std::vector<std::int64_t>(3, value); };
    EXPECT_EQ(values(observed, "dispatches_per_token"), each(c.dispatches));
    EXPECT_EQ(values(observed, "barriers_per_token"), each(c.dispatches + 1 + c.more_barriers));
    EXPECT_EQ(values(observed, "copies_per_token"), each(1 + c.more_copies));
    EXPECT_EQ(values(observed, "submits_per_token"), each(1 + c.more_waits));
    EXPECT_EQ(values(observed, "syncs_per_token"), each(1 + c.more_waits));
    EXPECT_EQ(values(observed, "cpu_ops_per_token"), each(1 + c.more_cpu_ops));  // GET_ROWS
  }
}

std::map<std::string, std::int64_t> cpu_ops(const observed::Observed& observed) {
  std::map<std::string, std::int64_t> ops;
  for (const auto& op : observed.ops) {
    if (op.kernel.empty()) ops[op.op] = op.calls.value_or(0);
  }
  return ops;
}

TEST(RealCounts, SmallSoftmaxesAreOpsOfTheCpuAndLargeOnesAreNot) {
  const probes::Folder folder;
  const auto of_vocabulary = [](std::uint32_t size) {
    return [size](model::GgufHeader& header) {
      for (auto& [key, value] : header.metadata) {
        if (key == "tokenizer.ggml.tokens") {
          value = model::GgufValue::strings(std::vector<std::string>(size, "a"));
        } else if (key == "llama.vocab_size") {
          value = model::GgufValue::u32(size);
        }
      }
      for (auto& tensor : header.tensors) {
        if (tensor.name == "token_embd.weight" || tensor.name == "output.weight") {
          tensor.dims[1] = size;
        }
      }
    };
  };
  for (const std::uint32_t size : {127U, 128U}) {
    const std::string path =
        write_model(folder, "v", of_type(second_model(), "f32"), of_vocabulary(size));
    const Words words{"-n", "3", "--shares"};
    const auto observed = count(path, words).observed;
    std::map<std::string, std::int64_t> expected{{"GET_ROWS", 3}};
    if (size < 128) expected["SOFT_MAX"] = 3;
    EXPECT_EQ(cpu_ops(observed), expected) << size;
  }
}

}  // namespace counts_test
}  // namespace weir::engine
