// Recordings of the real llama.cpp, and what weir replay makes of them.
#pragma once

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {

inline const std::string k_engines = WEIR_SOURCE_DIR "/engines/llama.cpp";
inline const std::string k_bench = k_engines + "/llama-bench";

inline std::vector<std::string> recording_arguments(const std::string& model,
                                                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"replay",
                                 "--record",
                                 "ops.json",
                                 "--",
                                 k_bench,
                                 "-m",
                                 WEIR_SOURCE_DIR "/models/" + model + ".gguf",
                                 "-p",
                                 "0",
                                 "-n",
                                 "8",
                                 "-r",
                                 "1",
                                 "-t",
                                 "1",
                                 "-ngl",
                                 "0",
                                 "-o",
                                 "json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline Json document(const fs::path& path) {
  const auto json = parse_json(slurp(path));
  EXPECT_TRUE(json) << path;
  return json ? *json : Json::object();
}

// "ADD" is "Vulkan0 ADD" where it was computed there.
inline std::map<std::string, int> count_calls_by_place(const Json& observed) {
  std::map<std::string, int> out;
  for (const Json& op : observed.value("ops", Json::array())) {
    out[op.at("backend").get<std::string>() + " " + op.at("op").get<std::string>()] +=
        op.at("calls").get<int>();
  }
  return out;
}

// Calls of each op in a document that has rows.
inline std::map<std::string, int> count_calls(const Json& observed) {
  std::map<std::string, int> out;
  for (const Json& op : observed.value("ops", Json::array())) {
    out[op.at("op").get<std::string>()] += op.at("calls").get<int>();
    EXPECT_GT(op.at("seconds").get<double>(), 0) << op.dump();
  }
  return out;
}

class Replayed : public testing::Test {
 protected:
  Scratch scratch;
  void record(const std::string& model, const std::vector<std::string>& more = {}) {
    const Ended ended = weir(scratch, recording_arguments(model, more), k_cpu_only);
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_THAT(ended.out, testing::HasSubstr("recorded ops.json"));
  }
  void record_on_vulkan() {
    auto words = recording_arguments("tiny-llama");
    *(std::find(words.begin(), words.end(), "-ngl") + 1) = "99";
    const Ended ended = weir(scratch, words, k_lavapipe);
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
  }
  Ended replay(std::vector<std::string> more = {},
               const std::map<std::string, std::string>& environment = k_lavapipe) {
    std::vector<std::string> words{"replay", "ops.json", "--seconds", "0.002"};
    words.insert(words.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "--engine") == more.end()) {
      words.insert(words.end(), {"--engine", k_engines});
    }
    return weir(scratch, words, environment);
  }
  // ggml leaves devices that are CPUs out unless they are asked for.
  inline static const std::map<std::string, std::string> k_lavapipe{
      {"GGML_VK_VISIBLE_DEVICES", "0"}};
  // Without a device llama.cpp puts nothing elsewhere.
  inline static const std::map<std::string, std::string> k_cpu_only{
      {"GGML_VK_VISIBLE_DEVICES", ""}};
};

// Ops of tiny-llama, as tests/probes/ggml_llama_test.cpp has them from another tool: four layers.
inline const std::map<std::string, int> k_step{
    {"ADD", 8},      {"FLASH_ATTN_EXT", 4}, {"GET_ROWS", 3}, {"MUL_MAT", 29}, {"MUL", 9},
    {"RMS_NORM", 9}, {"ROPE", 8},           {"SET_ROWS", 8}, {"SWIGLU", 4}};

}  // namespace weir::e2e
