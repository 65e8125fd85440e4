// Instructions of the unmodified llama.cpp under valgrind: what no probe of ops or dispatches sees.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace instructions_test {

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_installed = k_root + "/engines/llama.cpp";

// Backends of the CPU for several of them lie beside the engine; valgrind offers AVX2 and less.
constexpr const char* k_backend = "libggml-cpu-haswell.so";
constexpr const char* k_plain_backend = "libggml-cpu-x64.so";

class Instructions : public testing::Test {
 protected:
  // The engine without Vulkan, whose libraries are most of what valgrind would have to load.
  void SetUp() override {
    ASSERT_TRUE(fs::exists(k_installed + "/llama-bench"))
        << "run ci/prepare test first: it gets llama.cpp and the models";
    fs::create_directories(scratch_ / "engine");
    for (const auto& entry : fs::directory_iterator(k_installed)) {
      const std::string name = entry.path().filename();
      if (name.starts_with('.') || name.starts_with("libggml-cpu") || name == "libggml-vulkan.so") {
        continue;
      }
      // Copied: ggml looks for its backends where the program's file lies.
      fs::copy_file(fs::canonical(entry.path()), scratch_ / "engine" / name);
    }
    use_backend(k_backend);
    // 4 tokens: counted at 4, 12 and 20 (docs/explanation/counting.md).
    spill(scratch_ / "weir.yaml",
          "version: 1\n"
          "engines:\n"
          "  llama.cpp:\n"
          "    command: [./engine/llama-bench, -m, '{model}', -p, '{prompt_tokens}', -n, "
          "'{tokens}',\n"
          "              -r, '{repeats}', -t, '{threads}', -o, json]\n"
          "    output: llama-bench\n"
          "    probes: [ggml, instructions]\n"
          "    instructions: valgrind\n"
          "models: {tiny: " +
              k_root +
              "/models/tiny-llama.gguf}\n"
              "backends: {cpu: {args: [-ngl, '0', -dev, none]}}\n"
              "prompts: {decode: {prompt_tokens: 0, tokens: 4}}\n");
  }

  void use_backend(const std::string& name) {
    fs::copy_file(fs::canonical(k_installed + "/" + name), scratch_ / "engine" / k_backend,
                  fs::copy_options::overwrite_existing);
  }

  Json gate(int exit_code) {
    const Ended ended = weir(scratch_, {"gate", "--counts-only", "--json", "-"});
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    return cell_of(json_of(ended), "llama.cpp/tiny/cpu/decode");
  }

  Scratch scratch_;
};

TEST_F(Instructions, OfABuildThatLostItsVectorInstructionsFailAndNameTheFunctions) {
  const Ended accepted = weir(scratch_, {"baseline", "accept", "--counts-only"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_THAT(accepted.out, testing::HasSubstr(" counts, "));
  const Json same = gate(0);
  EXPECT_EQ(metric_of(same, "instructions_per_token")["verdict"], "pass") << same.dump(1);
  EXPECT_EQ(same["functions"], Json::array());

  // The backend as it is without the compiler's -mavx2, in the place of the other: the same ops.
  use_backend(k_plain_backend);
  const Json slower = gate(1);
  EXPECT_EQ(metric_of(slower, "kernels")["verdict"], "pass") << "ops alone do not tell";
  const Json metric = metric_of(slower, "instructions_per_token");
  EXPECT_EQ(metric["verdict"], "fail");
  EXPECT_EQ(metric["nature"], "nearly exact");
  EXPECT_EQ(metric["source"], "valgrind");
  EXPECT_GT(metric["change"].get<double>(), 0.5) << "vectors of 8 numbers became ones of 4 at most";
  const auto named = [&](const std::string& function) {
    return std::any_of(slower["functions"].begin(), slower["functions"].end(),
                       [&](const Json& entry) { return entry["name"] == function; });
  };
  EXPECT_TRUE(named("ggml_vec_dot_f16")) << slower["functions"].dump(1);
}

}  // namespace instructions_test
}  // namespace weir::e2e
