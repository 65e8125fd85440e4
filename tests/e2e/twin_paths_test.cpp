// The path that the pinned llama.cpp takes on each twin is the one that its source's conditions
// (llama_rules.hpp) make of the description.
#include <atomic>
#include <mutex>
#include <regex>
#include <thread>

#include <gmock/gmock.h>

#include "tests/e2e/llama_bench.hpp"
#include "tests/e2e/llama_rules.hpp"

namespace weir::e2e {
namespace twin_paths_test {

using Architecture = EngineView::Architecture;

probes::Twin description(const std::string& name) {
  auto twin = probes::read_twin(slurp(WEIR_SOURCE_DIR "/configs/devices/" + name + ".json"));
  EXPECT_TRUE(twin) << twin.error().message;
  return twin ? std::move(*twin) : probes::Twin{};
}

// Facts about the cards, not taken from the descriptions: generation, compute units (as vendors
// count them; 0 if the engine has no way to ask), and the engine's treatment of the generation.
struct Card {
  const char* name;
  Architecture architecture;
  std::uint32_t cores;
  bool fp16, integer_dot, coopmat, coopmat_flash, coopmat2;
};
constexpr Card k_cards[] = {
    // 16-bit storage, but no 16-bit arithmetic before Vega; dot products came with Vega 20.
    {"amd-rx-580", Architecture::gcn, 36, false, false, false, false, false},
    // Matrix instructions came with RDNA 3.
    {"amd-rx-6900-xt", Architecture::rdna2, 80, true, true, false, false, false},
    {"amd-rx-7900-xtx", Architecture::rdna3, 96, true, true, true, true, false},
    // Alchemist has matrix engines, which the backend leaves alone: slower there.
    {"intel-arc-a770", Architecture::xe1, 32, true, true, false, false, false},
    // Matrices of 8 x 16 x 16: not the shape that flash attention is written for.
    {"intel-arc-b580", Architecture::xe2, 20, true, true, true, false, false},
    {"nvidia-rtx-2080", Architecture::turing, 46, true, true, true, true, true},
    {"nvidia-rtx-3090", Architecture::other, 82, true, true, true, true, true},
    {"nvidia-rtx-4090", Architecture::other, 128, true, true, true, true, true},
    {"nvidia-rtx-5090", Architecture::other, 170, true, true, true, true, true},
    // Packed dot products that these say they have are not accelerated, or not signed.
    {"apple-m2-moltenvk", Architecture::other, 0, true, false, false, false, false},
    {"qualcomm-adreno-750", Architecture::other, 0, true, false, false, false, false},
    {"arm-mali-g720", Architecture::other, 0, true, false, false, false, false},
};

TEST(TwinPaths, StartFromWhatTheEngineSeesOfEachCard) {
  ASSERT_EQ(std::size(k_cards), shipped_twins().size()) << "a card is missing in the table";
  for (const Card& card : k_cards) {
    const EngineView view = engine_view(description(card.name));
    EXPECT_EQ(view.architecture, card.architecture) << card.name;
    EXPECT_EQ(view.cores, card.cores) << card.name;
    EXPECT_EQ(view.fp16, card.fp16) << card.name;
    EXPECT_EQ(view.integer_dot, card.integer_dot) << card.name;
    EXPECT_EQ(view.coopmat, card.coopmat) << card.name;
    EXPECT_EQ(view.coopmat_flash, card.coopmat_flash) << card.name;
    EXPECT_EQ(view.coopmat2, card.coopmat2) << card.name;
  }
}

struct Question {
  std::string model, path;
  std::uint32_t prompt;  // 0: decode
};

// Both reference models and one whose rows are long; a prefill that fits the middle tile of matrix
// products, and one that asks for the large one.
std::vector<Question> questions(const Scratch& scratch) {
  const std::string wide = scratch / "wide.gguf";
  std::vector<std::string> make{"model", "make", wide};
  for (const std::string& option : wide_model_options()) make.push_back(option);
  EXPECT_EQ(weir(scratch, make).exit_code, 0);
  std::vector<Question> out;
  for (const std::uint32_t prompt : {0U, 64U, 128U}) {
    for (const char* model : {"tiny-llama", "tiny-gemma3"}) out.push_back({model, model, prompt});
    out.push_back({"wide", wide, prompt});
  }
  return out;
}

std::set<std::string> kernel_names(const Counted& counted) {
  std::set<std::string> names;
  for (const auto& [name, count] : counted.vulkan.kernels) names.insert(name);
  return names;
}

// Hands each number below `count` to one of two threads.
void on_two_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::thread second_thread(loop);
  loop();
  second_thread.join();
}

// With and without the variables that take a feature away, each of which makes other conditions
// decide.
class TwinPathsWithout : public testing::TestWithParam<const char*> {};

TEST_P(TwinPathsWithout, AreThoseThatTheEnginesSourceHasForEachCard) {
  ASSERT_TRUE(fs::exists(WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench"))
      << "run ci/prepare test first";
  const std::string off = GetParam();  // "": nothing
  const Scratch scratch;
  const std::vector<Question> all_questions = questions(scratch);
  std::map<std::string, sys::EnvironmentList> environments;
  std::map<std::string, probes::Twin> twins;
  for (const Card& card : k_cards) {
    environments[card.name] = on_twin(scratch, card.name);
    if (!off.empty()) environments[card.name].emplace_back("GGML_VK_DISABLE_" + off, "1");
    twins[card.name] = description(card.name);
  }
  std::mutex lock;
  std::map<std::string, std::set<std::set<std::string>>> undecided;  // by model and prompt
  on_two_threads(std::size(k_cards) * all_questions.size(), [&](std::size_t i) {
    const std::string card = k_cards[i / all_questions.size()].name;
    const Question& question = all_questions[i % all_questions.size()];
    const std::string where =
        card + " / " + question.model + " / " + std::to_string(question.prompt);
    Bench what{question.path, {}, environments[card]};
    what.words = {"-p", std::to_string(question.prompt), "-n", question.prompt == 0 ? "2" : "0"};
    const Benched ran = bench(what, scratch / std::to_string(i));
    const Counted counted = counted_in(scratch / std::to_string(i));

    const std::lock_guard<std::mutex> guard(lock);
    ASSERT_TRUE(ran.well) << where;
    const auto printed = parse_json(ran.out);
    ASSERT_TRUE(printed && printed->is_array() && printed->size() == 1) << where << ran.out;
    const Json* name = twins[card].value("VkPhysicalDeviceProperties", "deviceName");
    ASSERT_NE(name, nullptr) << where;
    EXPECT_EQ((*printed)[0]["gpu_info"], *name) << where;
    ASSERT_EQ(counted.vulkan.devices.size(), 1U) << where;
    EXPECT_TRUE(counted.vulkan.kernels_named) << where;
    EXPECT_EQ(counted.vulkan.warnings, std::vector<std::string>()) << where;

    std::set<std::string> remaining = kernel_names(counted);
    for (const Decision& decision : decisions(engine_view(twins[card], {"GGML_VK_DISABLE_" + off}),
                                              {question.model, question.prompt})) {
      std::set<std::string> taken;
      const std::regex kernels(decision.kernels);
      for (const std::string& kernel : remaining) {
        if (std::regex_match(kernel, kernels)) taken.insert(kernel);
      }
      EXPECT_EQ(taken, decision.chosen) << where << ": " << decision.what;
      for (const std::string& kernel : taken) remaining.erase(kernel);
    }
    // Unfused where the fused one is not taken; in a prefill in the layers before the last, too.
    remaining.erase("add_f32_f32_f32_norepeat");
    undecided[question.model + std::to_string(question.prompt)].insert(remaining);
  });
  // An op that no rule mentions is the same on all cards.
  EXPECT_EQ(undecided.size(), all_questions.size());
  for (const auto& [question, kernels] : undecided) {
    EXPECT_EQ(kernels.size(), 1U) << question << ": " << testing::PrintToString(kernels);
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, TwinPathsWithout,
                         testing::Values("", "COOPMAT", "COOPMAT2", "INTEGER_DOT_PRODUCT", "F16"),
                         [](const auto& test) {
                           const std::string off = test.param;
                           return off.empty() ? "Nothing" : off;
                         });

}  // namespace twin_paths_test
}  // namespace weir::e2e
