// Kernels changed as a commit would change them (tests/probes/edit_pipelines.cpp): the same names,
// as often, in as many groups. The unmodified llama.cpp on a Radeon that is not here, and the
// reference engine with shaders changed at source, on lavapipe: it checks what it reads back.
#include <cstring>

#include <gmock/gmock.h>

#include "gate/explain/code_changes.hpp"

#include "tests/e2e/llama_bench.hpp"

namespace weir::e2e {
namespace edited_kernels_test {

using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;

using Names = std::set<std::string>;

struct Edit {
  std::string what;        // for EDIT_PIPELINES, or a switch of the engine: "NAME=1"
  std::string difference;  // text about the first kernel that has other code
  // Figures of its kernels that fail by k_cost_limits, by RADV of Mesa 25.0.7 for navi31.
  Names fails{};
  Names kernels{};  // these; none: the one that `what` names
  Names figures{};  // texts about their costs, among others

  [[nodiscard]] bool is_switch() const { return what.find(':') == std::string::npos; }
  [[nodiscard]] Names changed_kernels() const {
    return kernels.empty() ? Names{what.substr(0, what.find(':'))} : kernels;
  }
};

constexpr const char* k_cost_limits = R"(
- {metrics: "estimated_cycles_*", max_increase: 5%}
- {metrics: ["spilled_registers:*", "scratch_bytes:*"], max_increase: 0}
- {metrics: "occupancy:*", max_decrease: 25%}
)";
// The estimate is that of all kernels of a token or prefill.
const Names k_estimate{"estimated_cycles"}, k_occupancy{"estimated_cycles", "occupancy"};

// Numbers in `difference` are those of llama.cpp's shaders in engines/.
const std::vector<Edit> k_edits = {
    {"GGML_VK_DISABLE_COOPMAT=1",
     "cooperative matrix instructions 6 \u2192 0",
     k_estimate,
     {"matmul_f16_aligned_1", "matmul_f16_f32_f16acc_aligned_1"},
     {"registers 84 to 108", "throughput_cycles 5434 to 10126"}},
    {"flash_attn_f32_f16_aligned_cm1: constant 2=128",
     "constant 2 (v_rows): 64 \u2192 128",
     k_occupancy,
     {},
     {"occupancy 18 to 6"}},
    // No more than a quarter of its subgroups.
    {"mul_mat_vec_q4_k_f32_f32: unroll off",
     "loops with DontUnroll 0 \u2192 18, loops with Unroll 18 \u2192 0",
     k_estimate,
     {},
     {"occupancy 32 to 24", "latency_cycles 4702 to 40004"}},
    {"matmul_f16_f32_f16acc_aligned_1: constant 1=128, constant 2=128, constant 4=128, constant "
     "5=64",
     "constant 1 (BM): 64 \u2192 128, constant 2 (BN): 64 \u2192 128, constant 4 (WM): 64 \u2192 "
     "128",
     {"estimated_cycles", "occupancy", "scratch_bytes", "spilled_registers"},
     {},
     {"spilled_registers 0 to 95", "occupancy 12 to 6"}},
    // Constants: 12 are 6 in the first.
    {"matmul_quant_f16_f16acc_aligned_1: constant 3=64", "constant 3 (BK): 32 \u2192 64",
     k_occupancy},
    {"mul_mat_vec_f16_f32_f32: constant 1=8", "constant 1: 2 \u2192 8", k_estimate},
    {"mul_mat_vec_q6_k_f32_f32: constant 0=256", "constant 0: 64 \u2192 256", k_estimate},
    {"soft_max_f32: constant 0=512", "constant 0: 64 \u2192 512", k_estimate},
    {"rms_norm_mul_f32: constant 0=1", "constant 0: 0 \u2192 1"},
    // Requirements of a pipeline on the device; 32 become 16.
    {"mul_mat_vec_f16_f32_f32: subgroup 32", "subgroup size: 64 \u2192 32", k_occupancy},
    // Hints and decorations.
    {"rms_norm_mul_add_f32: unroll off",
     "loops with DontUnroll 0 \u2192 41, loops with Unroll 41 \u2192 0"},
    {"get_rows_f32_f32: unroll on", "loops with Unroll 0 \u2192 2"},
    {"rope_norm_f32: precise", "NoContraction decorations 0 \u2192 21"},
    {"set_rows_f32_f16_i64: undecorate 24", "NonWritable decorations 2 \u2192 0"},
    // Instructions (133 is OpFMul, 129 OpFAdd, 136 OpFDiv, 224 OpControlBarrier), sizes, literals.
    {"mul_mat_vec_q4_k_f32_f32: swap 133 129 4", "OpFAdd 4 \u2192 8, OpFMul 12 \u2192 8"},
    {"geglu_f32: swap 136 133", "OpFDiv 3 \u2192 0, OpFMul 24 \u2192 27"},
    {"fa_split_k_reduce: repeat 224 2", "barriers in the code 5 \u2192 10"},
    // 32 are 16.
    {"rms_norm_mul_f32: shared 16", "bytes of shared memory 2048 \u2192 32768", k_occupancy},
    {"swiglu_f32: local 1024", "local size 512 x 1 x 1 \u2192 1024 x 1 x 1"},
    {"rope_norm_f32_f16: literal 2.0 4.0", "literals gone: 2.0; new: 4.0"},
};

// An edit of tools/engine/shaders: a line, its replacement in a commit, the kernel.
struct SourceEdit {
  const char *file, *from, *to, *kernel, *difference;
};
const SourceEdit k_source_edits[] = {
    {"rms_norm.comp", "squares += x[i] * x[i]", "squares += pow(x[i], 2)", "rms_norm",
     "Fma 1 \u2192 0, OpFAdd 2 \u2192 3, OpLoad 10 \u2192 9, Pow 0 \u2192 1"},
    {"activate.comp", "local_size_x = 64", "local_size_x = 256", "activate",
     "local size 64 x 1 x 1 \u2192 256 x 1 x 1"},
    {"attend.comp", "  memoryBarrierBuffer();\n", "", "attend", "barriers in the code 7 \u2192 6"},
    {"lanes.glsl", "shared_values[k_lanes];", "shared_values[k_lanes * 64];", "choose",
     "bytes of shared memory 256 \u2192 8320"},
    {"rotate.comp", "index % head_pairs", "(index - index / head_pairs * head_pairs)", "rotate",
     "OpIMul 3 \u2192 5, OpISub 0 \u2192 2, OpUDiv 0 \u2192 2, OpUMod 2 \u2192 0"},
};

class EditedKernels : public testing::Test {
 protected:
  void configure(const std::string& engine, const std::string& models, const std::string& backends,
                 const std::string& prompts) {
    spill(scratch_ / "weir.yaml", "version: 1\nengines: {engine: " + engine +
                                      "}\nmodels: " + models + "\nbackends: {" + backends +
                                      "}\nprompts: {" + prompts +
                                      "}\nlimits:\n- {metrics: kernel_code, exact: true}" +
                                      (mesa_.empty() ? "" : k_cost_limits));
    // The layer lists which pipeline has which name.
    const Ended accepted =
        weir(scratch_, {"baseline", "accept", "--counts-only", "--baselines", "base"},
             environment(nullptr));
    ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
    ASSERT_TRUE(fs::exists(scratch_ / "names")) << accepted.err;
  }
  void configure_llama() {
    ASSERT_TRUE(fs::exists(k_root + "/engines/llama.cpp/llama-bench"))
        << "run ci/prepare test first";
    if (const auto mesa = pinned_mesa(); fs::exists(mesa)) mesa_ = mesa;
    const std::string twin = "{device: vulkan, twin: amd-rx-7900-xtx, compile: '" +
                             std::string(mesa_.empty() ? "off" : "radv-navi31") +
                             "', args: [-ngl, '99', -fa, ";
    configure("{command: [" + k_root +
                  "/engines/llama.cpp/llama-bench, -m, '{model}', -p, '{prompt_tokens}', -n, "
                  "'{tokens}', -r, '{repeats}', -o, json], output: llama-bench, probes: [vulkan]}",
              "{tiny-llama: " + k_root + "/models/tiny-llama.gguf, tiny-gemma3: " + k_root +
                  "/models/tiny-gemma3.gguf}",
              "flash: " + twin + "'1']}, plain: " + twin + "'0']}",
              "decode: {prompt_tokens: 0, tokens: 16}, prefill: {prompt_tokens: 64, tokens: 0}");
  }

  // The folder into which ci/mesa installs it.
  static fs::path pinned_mesa() {
    const auto value = [](const char* name) {
      const char* text = std::getenv(name);
      return fs::path(text == nullptr ? "" : text);
    };
    fs::path cache = value("WEIR_CACHE");
    if (cache.empty() && !value("XDG_CACHE_HOME").empty()) cache = value("XDG_CACHE_HOME") / "weir";
    if (cache.empty()) cache = value("HOME") / ".cache/weir";
    return cache / "mesa/25.0.7";
  }

  [[nodiscard]] std::map<std::string, std::string> environment(const Edit* edit) const {
    std::map<std::string, std::string> env;
    env["WEIR_CACHE"] = (scratch_ / "cache").string();
    if (!mesa_.empty()) env["WEIR_MESA"] = mesa_.string();
    env["XDG_DATA_HOME"] = WEIR_EDIT_LAYER;  // folder in which the loader looks for implicit layers
    env["EDIT_PIPELINES_ENABLE"] = "1";
    env["EDIT_PIPELINES_NAMES"] = (scratch_ / "names").string();
    if (edit == nullptr) return env;
    env["EDIT_PIPELINES"] = edit->is_switch() ? "-" : edit->what;  // "-": names are not listed
    const std::size_t at = edit->what.find('=');
    if (edit->is_switch()) env[edit->what.substr(0, at)] = edit->what.substr(at + 1);
    return env;
  }

  // The result of a gate: the kernels whose code changed, and the costs that fail. Everything else
  // in it must pass.
  struct GateChanges {
    std::map<std::string, std::vector<std::string>> kernels;
    Names costs;  // "occupancy"
    Names kernels_of_costs;
    Names figures;  // "occupancy 18 to 6"

    [[nodiscard]] Names names() const {
      Names keys;
      for (const auto& [kernel, differences] : kernels) keys.insert(kernel);
      return keys;
    }
  };
  GateChanges run_gate(const Edit& edit, int exit_code) {
    const Ended ended =
        weir(scratch_, {"gate", "--counts-only", "--json", "-", "--baselines", "base"},
             environment(&edit));
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    EXPECT_THAT(ended.err, testing::Not(HasSubstr("edit_pipelines:")));
    GateChanges changes;
    const Json verdict = json_of(ended);
    for (const Json& cell : verdict["cells"]) {
      std::size_t compiled = 0;
      for (const Json& metric : cell["judgements"]) {
        const auto name = metric["subject"].get<std::string>();
        if (name == "kernels" || name == "kernel_code") continue;  // below
        const std::size_t at = name.find(':');
        const bool sum = name.starts_with("estimated_cycles_");
        if (sum || at != std::string::npos) {
          ++compiled;
          if (metric["verdict"] == "fail") {
            changes.costs.insert(sum ? "estimated_cycles" : name.substr(0, at));
            if (!sum) changes.kernels_of_costs.insert(name.substr(at + 1));
          }
          // A switch can make the engine choose a kernel that the base does not have.
          EXPECT_THAT(metric["verdict"], testing::AnyOf("pass", "fail", "new")) << metric;
          continue;
        }
        EXPECT_THAT(metric["verdict"], testing::AnyOf("pass", "info")) << cell["cell"] << metric;
      }
      EXPECT_EQ(compiled > 20, !mesa_.empty()) << cell["cell"];
      Json code = Json::array();
      for (const Json& judged : cell["judgements"]) {
        if (judged.contains("code")) code = judged["code"];
      }
      for (const Json& entry : code) {
        EXPECT_FALSE(entry.contains("groups_now")) << entry;
        changes.kernels[entry["kernel"].get<std::string>()] =
            entry.value("differences", std::vector<std::string>{});
        for (const Json& cost : entry.value("costs", Json::array())) {
          changes.figures.insert(cost["cost"].get<std::string>() + " " + cost["before"].dump() +
                                 " to " + cost["now"].dump());
        }
      }
    }
    return changes;
  }

  Scratch scratch_;
  fs::path mesa_;  // "": nothing is compiled
};

TEST_F(EditedKernels, OfTheRealLlamaAreNamedWithWhatIsOtherInThemAndFailByWhatTheyCost) {
  ASSERT_NO_FATAL_FAILURE(configure_llama());
  const GateChanges nothing = run_gate({"nobody: precise", ""}, 0);
  EXPECT_THAT(nothing.kernels, testing::IsEmpty());
  EXPECT_THAT(nothing.costs, testing::IsEmpty());
  ASSERT_EQ(k_edits.size(), 20U);
  for (const Edit& edit : k_edits) {
    SCOPED_TRACE(edit.what);
    const Names expected = edit.changed_kernels();
    const GateChanges changes = run_gate(edit, 1);
    ASSERT_EQ(changes.names(), expected);
    const auto& differences = changes.kernels.at(*expected.begin());
    ASSERT_FALSE(differences.empty());
    EXPECT_THAT(differences.front(), testing::StartsWith(edit.difference));
    if (mesa_.empty()) continue;
    EXPECT_EQ(changes.costs, edit.fails);
    EXPECT_THAT(changes.figures, testing::IsSupersetOf(edit.figures));
    const bool of_single_kernels = edit.fails.contains("occupancy");
    EXPECT_EQ(changes.kernels_of_costs, of_single_kernels ? expected : Names());
  }
  if (mesa_.empty()) GTEST_SKIP() << "costs were not judged: run ci/mesa, which gets the compiler";
}

TEST_F(EditedKernels, OfTheReferenceEngineAreNamedByChangesOfTheirSource) {
  const Ended ended = weir(scratch_, {"model", "make", "tiny.gguf", "--quantization", "f16"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  ASSERT_NO_FATAL_FAILURE(
      configure("{command: [" WEIR_BINARY_DIR
                "/weir-engine, -m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, "
                "'{repeats}', --json, '{args}'], output: weir-observed, probes: [vulkan]}",
                "{tiny: tiny.gguf}",
                "vulkan: {args: [--backend, vulkan], env: {VK_LOADER_DRIVERS_SELECT: '*lvp*'}}",
                "decode: {prompt_tokens: 0, tokens: 4}"));
  for (const SourceEdit& edit : k_source_edits) {
    SCOPED_TRACE(edit.to);
    const fs::path shaders = scratch_ / "shaders";
    fs::remove_all(shaders);
    fs::copy(k_root + "/tools/engine/shaders", shaders);
    std::string text = slurp(shaders / edit.file);
    const std::size_t at = text.find(edit.from);
    ASSERT_NE(at, std::string::npos);
    spill(shaders / edit.file, text.replace(at, std::strlen(edit.from), edit.to));
    std::vector<std::uint32_t> words[2];
    for (const bool changed : {false, true}) {
      const std::string source = changed ? shaders.string() : k_root + "/tools/engine/shaders";
      static sys::RealProcesses processes;
      sys::ProcessSpec spec;
      spec.argv = {WEIR_GLSLC, "-O", "-o", (scratch_ / "code.spv").string(),
                   source + "/" + edit.kernel + ".comp"};
      const auto compiled = processes.run(spec, sys::Stop());
      ASSERT_TRUE(compiled && compiled->exit_code == 0) << (compiled ? compiled->err : "");
      const std::string bytes = slurp(scratch_ / "code.spv");
      words[changed ? 1 : 0].resize(bytes.size() / 4);
      std::memcpy(words[changed ? 1 : 0].data(), bytes.data(), bytes.size());
    }
    const std::string what =
        std::string(edit.kernel) + ": code " + (scratch_ / "code.spv").string();
    EXPECT_EQ(run_gate({what, ""}, 1).names(), Names{edit.kernel});
    EXPECT_THAT(explain::code_changes(explain::KernelCode{words[0]}, {words[1]}).headline,
                testing::StartsWith(edit.difference));
  }
}

}  // namespace edited_kernels_test
}  // namespace weir::e2e
