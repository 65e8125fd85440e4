// Settings from text for the tests of this folder.
#pragma once

#include <string>
#include <string_view>

#include "gate/config/matrix.hpp"

namespace weir::config {

inline Supported test_context() {
  Supported context{"2026-11-20",
                    {"llama-bench", "generic"},
                    {"vulkan", "ggml"},
                    std::vector<std::string>{"amd-rx-7900-xtx", "intel-arc-a770"},
                    {"chat", "completions", "llama", "ollama"}};
  context.sent["llama"] = {{"prompt", "n_predict", "seed", "stream", "cache_prompt"}, {}};
  context.sent["completions"] = {{"seed", "stream_options.include_usage"}, {"ignore_eos"}};
  return context;
}

inline Result<Settings> parse_text(std::string_view yaml) {
  return parse_settings(yaml, "weir.yaml", test_context());
}

// The message of parsing, or else of expanding; "" when both go well.
inline std::string config_error(std::string_view yaml) {
  const auto settings = parse_text(yaml);
  if (!settings) return settings.error().message;
  const auto matrix = expand(*settings);
  return matrix ? "" : matrix.error().message;
}

// Two lines an engine, so that sections of a test begin at a known line: 9.
inline constexpr std::string_view k_head =
    "version: 1\n"
    "engines:\n"
    "  llama.cpp: {command: [llama-bench, -m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}',\n"
    "              -r, '{repeats}', -d, '{depth}'], output: llama-bench, probes: [vulkan]}\n"
    "  agave: {command: [agave, '{model}', -n, '{tokens}', '{args}', '{prompt}'],\n"
    "          output: generic, metrics: {syncs_per_token: {regex: '(\\d+) syncs'}}}\n"
    "models: {tiny: tiny.gguf}\n"
    "backends: {cpu: {args: [-ngl, 0]}, vulkan: {args: [-ngl, 99], env: {SHOWN: 0}}}\n";

inline std::string with_head(std::string_view rest) { return std::string(k_head) += rest; }

// Both sections that have to be there; what follows begins at line 10.
inline std::string config_with(std::string_view rest) {
  return with_head("prompts: {decode: {tokens: 32}, hello: {text: Hello, tokens: 8}}\n") +=
         std::string(rest);
}

// The names of a matrix's cells, or the message of what is wrong.
inline std::vector<std::string> cell_names(const Result<Settings>& settings) {
  if (!settings) return {settings.error().message};
  const auto matrix = expand(*settings);
  if (!matrix) return {matrix.error().message};
  std::vector<std::string> names;
  for (const Cell& cell : matrix->cells) names.push_back(cell.key.str());
  return names;
}

}  // namespace weir::config
