// Memory and pipelines of the real llama.cpp, changed as a commit would change them: kernels are
// the same, as often.
#include <gmock/gmock.h>

#include "tests/e2e/llama_bench.hpp"

namespace weir::e2e {
namespace edited_memory_test {

using testing::HasSubstr;

struct Change {
  const char* what;
  std::map<std::string, std::string> env;
  std::string fails;     // the metric
  std::string headline;  // headline of the first finding
};

class EditedMemory : public testing::Test {
 protected:
  void accept(const std::string& engine, const std::string& api, const std::string& twin) {
    const std::string root = WEIR_SOURCE_DIR;
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines: {llama.cpp: {command: [" + root + "/engines/" + engine +
              "/llama-bench, -m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, "
              "'{repeats}', -o, json], output: llama-bench, probes: [" +
              api +
              ", ggml], cpu_ops_allowed: {GET_ROWS: {why: "
              "test}}}}\nmodels: {tiny: " +
              root + "/models/tiny-llama.gguf}\nbackends: {gpu: {device: " + api + ", twin: " +
              twin + ", args: [-ngl, '99']}}\nprompts: {decode: {prompt_tokens: 0, tokens: 16}}\n");
    const Ended accepted =
        weir(scratch_, {"baseline", "accept", "--counts-only", "--baselines", "base"}, {});
    ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  }

  // Runs a gate with an environment that changes the engine, and returns its result.
  Json gated(const std::map<std::string, std::string>& env, int exit_code) {
    const Ended ended =
        weir(scratch_, {"gate", "--counts-only", "--json", "-", "--baselines", "base"}, env);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    return json_of(ended)["cells"][0];
  }

  void expect(const Change& change) {
    SCOPED_TRACE(change.what);
    const Json cell = gated(change.env, 1);
    std::set<std::string> failed;
    for (const Json& metric : cell["judgements"]) {
      const auto name = metric["subject"].get<std::string>();
      if (metric["verdict"] == "fail") failed.insert(name);
      // Nothing that a gate knew of before tells it.
      for (const char* count : {"dispatches", "barriers", "syncs", "submits", "copies"}) {
        if (name == count + std::string("_per_token")) {
          EXPECT_EQ(metric["verdict"], "pass") << name;
        }
      }
    }
    EXPECT_THAT(failed, testing::Contains(change.fails));
    ASSERT_FALSE(cell["findings"].empty());
    EXPECT_THAT(cell["findings"][0]["text"].get<std::string>(), HasSubstr(change.headline));
  }

  Scratch scratch_;
};

const std::string k_layer_folder = WEIR_EDIT_LAYER;  // the loader finds implicit layers there
const Change k_longer_context = {"a cache twice as long",
                                 {{"LD_PRELOAD", WEIR_LONGER_CONTEXT}},
                                 "device_memory_peak_bytes",
                                 "The KV cache takes more memory."};

TEST_F(EditedMemory, OfVulkanIsRedWithItsCause) {
  ASSERT_NO_FATAL_FAILURE(accept("llama.cpp", "vulkan", "amd-rx-7900-xtx, compile: off"));
  const auto submits = [](const char* what) {
    return std::map<std::string, std::string>{{"XDG_DATA_HOME", k_layer_folder},
                                              {"EDIT_PIPELINES_ENABLE", "1"},
                                              {"EDIT_PIPELINES", "-"},
                                              {"EDIT_SUBMITS", what}};
  };
  gated(submits("-"), 0);
  expect({"an allocation before each submission", submits("allocate"), "allocations_per_token",
          "Devices are asked for memory more often a token."});
  // Ten submissions a token, and some at the start.
  expect({"a pipeline at token 10", submits("pipeline 104"), "pipelines_at_12",
          "A pipeline is made between token 8 and 12: it waits until they are compiled."});
  expect(k_longer_context);
}

TEST_F(EditedMemory, OfCudaIsRedWithItsCause) {
  ASSERT_NO_FATAL_FAILURE(accept("llama.cpp-cuda12", "cuda", "nvidia-rtx-4090"));
  gated({}, 0);
  expect(k_longer_context);
}

}  // namespace edited_memory_test
}  // namespace weir::e2e
