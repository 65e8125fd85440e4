// The built weir-engine and the real llama.cpp (llama_greedy.cpp), as programs.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/engine/models.hpp"

namespace weir::engine {

using Words = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

inline const std::string k_greedy = WEIR_ENGINES "/llama.cpp/llama-greedy";
inline const Environment k_lavapipe{{"GGML_VK_VISIBLE_DEVICES", "0"},
                                    {"VK_LOADER_DRIVERS_SELECT", "*lvp*"},
                                    {"LP_NUM_THREADS", "1"}};

inline probes::Ran run_engine(const std::string& model, const Words& words, Environment env = {}) {
  Words argv{WEIR_ENGINE, "-m", model};
  argv.insert(argv.end(), words.begin(), words.end());
  env.insert(k_lavapipe.begin(), k_lavapipe.end());
  probes::Ran ran = probes::run(argv, env);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return ran;
}

// `on_gpu`: all layers on Vulkan, else none.
inline probes::Ran run_llama(const std::string& model, bool on_gpu, const std::string& prompt,
                             int tokens, const std::string& logits = "") {
  Words argv{k_greedy, model, on_gpu ? "99" : "0", prompt, std::to_string(tokens)};
  if (!logits.empty()) argv.push_back(logits);
  probes::Ran ran = probes::run(argv, k_lavapipe);
  EXPECT_EQ(ran.status, 0) << k_greedy << " (ci/llama.cpp makes it): " << ran.err;
  return ran;
}

// A row of logits for each position.
inline std::vector<std::vector<float>> read_logits(const std::string& file,
                                                   std::size_t vocabulary) {
  const std::string bytes = probes::slurp(file);
  std::vector<std::vector<float>> rows(bytes.size() / sizeof(float) / vocabulary);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].resize(vocabulary);
    std::memcpy(rows[i].data(), bytes.data() + i * vocabulary * sizeof(float),
                vocabulary * sizeof(float));
  }
  return rows;
}

}  // namespace weir::engine
