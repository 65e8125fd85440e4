// The engine says what the real llama.cpp says, on the same files.
#include <gmock/gmock.h>

#include "tests/engine/engine_run.hpp"

namespace weir::engine {
namespace tokens_test {

constexpr const char* k_prompts[] = {"1", "1,17,4,99,250", "300,2,300,2,300,2,7,8,9,10,11"};
struct Backend {
  const char* name;
  int tokens;  // few for lavapipe, which computes for a quarter of a second
};
constexpr Backend k_backends[] = {{"cpu", 64}, {"vulkan", 6}};
constexpr int k_generated = 24, k_positions = 3 + k_generated;

// The first lines of a text.
std::string head(const std::string& text, int lines) {
  std::size_t end = 0;
  for (int i = 0; i < lines; ++i) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

struct Named {
  const char* name;
  model::ModelOptions options;
};
const Named k_models[] = {{"first", first_model()}, {"second", second_model()}};

TEST(RealTokens, OfF32AreThoseOfLlamaCpp) {
  const probes::Folder folder;
  for (const Named& model : k_models) {
    const std::string path = write_model(folder, model.name, of_type(model.options, "f32"));
    for (const char* prompt : k_prompts) {
      const std::string expected = run_llama(path, false, prompt, 64).out;
      ASSERT_EQ(std::count(expected.begin(), expected.end(), '\n'), 64);
      for (const Backend& backend : k_backends) {
        for (const Words& switches : {Words{}, Words{"--no-batch"}, Words{"--fused-ffn"}}) {
          Words words{"--backend", backend.name, "--tokens-in",
                      prompt,      "-n",         std::to_string(backend.tokens)};
          words.insert(words.end(), switches.begin(), switches.end());
          EXPECT_EQ(run_engine(path, words).out, head(expected, backend.tokens))
              << model.name << " " << backend.name << " " << prompt << " " << switches.size();
        }
      }
    }
  }
}

std::size_t largest(const std::vector<float>& row) {
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

// llama.cpp's own results differ between CPU and Vulkan: where its first two are further apart than
// that, there is one right answer.
TEST(RealTokens, OfOtherTypesAreThoseOfLlamaCppWhereItAgreesWithItself) {
  const probes::Folder folder;
  for (const Named& model : k_models) {
    for (const char* type : {"f16", "q8_0", "q4_0"}) {
      const std::string name = std::string(model.name) + "-" + type;
      const std::string path = write_model(folder, name, of_type(model.options, type));
      const std::string cpu_file = folder.path() + "/cpu", gpu_file = folder.path() + "/gpu";
      std::string tokens = "1,17,4\n" + run_llama(path, false, "1,17,4", k_generated).out;
      tokens.pop_back();
      std::replace(tokens.begin(), tokens.end(), '\n', ',');
      run_llama(path, false, tokens, 0, cpu_file);
      run_llama(path, true, tokens, 0, gpu_file);
      const auto on_cpu = read_logits(cpu_file, model.options.vocab);
      const auto on_gpu = read_logits(gpu_file, model.options.vocab);
      ASSERT_EQ(std::ssize(on_cpu), k_positions) << name;
      ASSERT_EQ(std::ssize(on_gpu), k_positions) << name;
      for (const auto& [backend, generated] : k_backends) {
        const std::string own_file = folder.path() + "/own";
        run_engine(path, {"--backend", backend, "--tokens-in", tokens, "--logits", own_file});
        const auto own = read_logits(own_file, model.options.vocab);
        ASSERT_EQ(std::ssize(own), k_positions) << name;
        int compared = 0;
        for (std::size_t at = 0; at < own.size(); ++at) {
          float difference = 0;
          for (std::size_t i = 0; i < own[at].size(); ++i) {
            difference = std::max(difference, std::fabs(on_cpu[at][i] - on_gpu[at][i]));
          }
          std::vector<float> sorted = on_cpu[at];
          std::sort(sorted.begin(), sorted.end(), std::greater<>());
          if (sorted[0] - sorted[1] <= difference) continue;
          ++compared;
          EXPECT_EQ(largest(own[at]), largest(on_cpu[at]))
              << name << " " << backend << " at " << at << ": " << sorted[0] - sorted[1] << " > "
              << difference;
        }
        EXPECT_GT(2 * compared, k_positions) << name << ": too few positions have one right answer";
      }
    }
  }
}

}  // namespace tokens_test
}  // namespace weir::engine
