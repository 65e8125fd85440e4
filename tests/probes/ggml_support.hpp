// Shared by the tests of the ggml probe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/probes/support.hpp"

namespace weir::probes {

inline const std::string k_ggml_probe = WEIR_BINARY_DIR "/lib/weir/probes/libweir_ggml.so";

// A program with the probe in it.
struct Probed {
  Ran ran;
  std::vector<ProbeFile> files;
  profile::ProbeCounts counts;

  explicit Probed(const std::vector<std::string>& argv,
                  std::map<std::string, std::string> env = {}) {
    const Folder folder;
    env["WEIR_PROBE_DIR"] = folder.path();
    env["LD_PRELOAD"] = k_ggml_probe;
    ran = run(argv, env);
    files = probe_files(folder.path());
    counts = merge("ggml", files);
  }
};

}  // namespace weir::probes
