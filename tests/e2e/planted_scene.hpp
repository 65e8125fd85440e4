// The reference engine with faults planted (docs/reference/engine.md), and a matrix of cells that
// see it with and without its own marks.
#pragma once

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {

inline constexpr int k_layers = 6;

// The configuration that all matrices here share; `engines` are lines of weir.yaml.
inline std::string planted_config(const std::string& engines) {
  return "version: 1\nengines:\n" + engines +
         "models: {tiny: tiny.gguf}\n"
         "backends:\n"
         "  cpu: {args: [--backend, cpu]}\n"
         "  vulkan: {args: [--backend, vulkan], env: {VK_LOADER_DRIVERS_SELECT: \"*lvp*\"}}\n"
         "prompts: {decode: {prompt_tokens: 0, tokens: 8}}\n";
}

// Lines of an engine: `program` with the arguments that weir fills in. Of one whose own report is
// not read, weir knows what probes say and nothing else.
inline std::string planted_engine(const std::string& name, const std::string& program,
                                  const std::string& probes, const std::string& more = "") {
  const std::string output =
      probes.find("instrument") != std::string::npos
          ? "weir-observed"
          : "generic\n    metrics: {decode_tokens_per_second: {pointer: /timings/0/samples/0}}";
  return "  " + name + ":\n    command: [" + program +
         ", -m, \"{model}\", -p, \"{prompt_tokens}\", -n, \"{tokens}\", -r, \"{repeats}\", -t, "
         "\"2\", --json, \"{args}\"]\n    output: " +
         output + "\n    probes: [" + probes +
         "]\n    counted_env: {LP_NUM_THREADS: \"1\"}\n    cpu_ops_allowed: {GET_ROWS: one row}\n" +
         more;
}

// A model of k_layers layers, small enough that lavapipe computes a token in a moment.
inline void make_tiny_model(const Scratch& scratch, const std::string& file) {
  const Ended ended = weir(scratch, {"model", "make", file, "--layers", std::to_string(k_layers),
                                     "--quantization", "q8_0", "--embedding", "64", "--ff", "64"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
}

}  // namespace weir::e2e
