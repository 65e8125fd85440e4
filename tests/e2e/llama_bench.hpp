// The pinned llama-bench with both probes, on lavapipe or on twins.
#pragma once

#include "gate/probes/read/read.hpp"
#include "gate/probes/read/twins.hpp"
#include "gate/sys/process.hpp"

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {

inline const std::string k_probes = WEIR_BINARY_DIR "/lib/weir/probes";

// Everything that both probes tell of one run.
struct Counted {
  profile::ProbeCounts vulkan, ggml;
  friend bool operator==(const Counted&, const Counted&) = default;
};

inline Counted counted_in(const fs::path& folder) {
  std::vector<probes::ProbeFile> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    auto file = probes::read_probe_file(slurp(entry.path()));
    if (file) files.push_back(std::move(*file));
  }
  Counted out{probes::merge("vulkan", files), probes::merge("ggml", files)};
  out.vulkan.counts.erase("polls");  // how often a fence was asked too early is time, not work
  return out;
}

struct Bench {
  std::string model;               // a name in models/, or a path
  std::vector<std::string> words;  // "-p", "0", "-n", "2", …
  sys::EnvironmentList env;        // device, and other variables
  double timeout_seconds = 300;
  std::vector<std::string> starter{};  // words before the command line
};

// One run with the probes writing into `folder`, which is made: how it ended, as a gtest assertion
// would say it, and what it printed.
struct Benched {
  testing::AssertionResult well = testing::AssertionFailure();
  std::string out, err;
  std::int64_t peak_rss_bytes = 0;  // 0: not known
};

inline Benched bench(const Bench& what, const fs::path& folder) {
  static sys::RealProcesses processes;
  static const sys::Stop k_stop;
  const bool is_path = what.model.find('/') != std::string::npos;
  sys::ProcessSpec spec;
  spec.argv = what.starter;
  spec.argv.insert(spec.argv.end(),
                   {WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench", "-m",
                    is_path ? what.model : WEIR_SOURCE_DIR "/models/" + what.model + ".gguf", "-r",
                    "1", "-o", "json"});
  spec.argv.insert(spec.argv.end(), what.words.begin(), what.words.end());
  const auto given = [&](const char* word) {
    return std::find(what.words.begin(), what.words.end(), word) != what.words.end();
  };
  if (!given("-ngl")) spec.argv.insert(spec.argv.end(), {"-ngl", "99"});
  spec.env = {{"WEIR_PROBE_DIR", folder.string()},
              {"LD_PRELOAD", k_probes + "/libweir_ggml.so"},
              {"VK_LAYER_PATH", k_probes},
              {"VK_INSTANCE_LAYERS", "VK_LAYER_WEIR_probe"},
              {"GGML_VK_DEBUG_MARKERS", "1"}};
  spec.env.insert(spec.env.end(), what.env.begin(), what.env.end());
  spec.timeout_seconds = what.timeout_seconds;
  fs::create_directories(folder);
  auto finished = processes.run(spec, k_stop);
  Benched out;
  if (!finished) {
    out.well = testing::AssertionFailure() << finished.error().message;
    return out;
  }
  out.out = std::move(finished->out);
  out.err = std::move(finished->err);
  out.peak_rss_bytes = finished->peak_rss_bytes.value_or(0);
  if (finished->ended == sys::HowEnded::exited && finished->exit_code == 0) {
    out.well = testing::AssertionSuccess();
  } else {
    out.well = testing::AssertionFailure()
               << "llama-bench did not end well: " << out.err << finished->start_error;
  }
  return out;
}

// lavapipe, which ggml leaves out unless it is asked for by number.
inline sys::EnvironmentList on_lavapipe() {
  return {{"GGML_VK_VISIBLE_DEVICES", "0"},
          {"VK_LOADER_DRIVERS_SELECT", "*lvp*"},
          {"LP_NUM_THREADS", "1"}};
}

// The device of a description: a name that comes with weir, or a file. The test's own environment
// must not choose among devices.
inline sys::EnvironmentList on_twin(const Scratch& scratch, const std::string& name_or_file) {
  const std::string name = fs::path(name_or_file).filename().string() + ".twin";
  const Ended ended = weir(scratch, {"device", "compile", name_or_file, "--output", name});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  sys::EnvironmentList env;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find('=');
    if (at != std::string::npos) env.emplace_back(line.substr(0, at), line.substr(at + 1));
  }
  EXPECT_FALSE(env.empty()) << ended.out;
  return env;
}

// A twin of lavapipe: the same device to the engine, and nothing is computed.
inline const sys::EnvironmentList& on_twin_of_lavapipe() {
  static const sys::EnvironmentList k_env = [] {
    static const Scratch k_scratch;
    const sys::EnvironmentList real = on_lavapipe();
    const Ended recorded = weir(k_scratch, {"device", "record", "--output", "lavapipe.json"},
                                {real.begin(), real.end()});
    EXPECT_EQ(recorded.exit_code, 0) << recorded.err;
    sys::EnvironmentList twin = on_twin(k_scratch, k_scratch / "lavapipe.json");
    twin.emplace_back("GGML_VK_VISIBLE_DEVICES", "0");  // a device of type CPU here, too
    return twin;
  }();
  return k_env;
}

// The Vulkan twins that come with weir.
inline std::vector<std::string> shipped_twins() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(WEIR_SOURCE_DIR "/configs/devices")) {
    if (entry.path().extension() != ".json") continue;
    const auto twin = probes::read_twin(slurp(entry.path()));
    if (twin && twin->has_vulkan()) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace weir::e2e
