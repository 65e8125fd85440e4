// The sample engine (engine.c) under the library, run as weir would run it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/probes/read/locate.hpp"
#include "gate/sys/files.hpp"

#include "tests/probes/support.hpp"

namespace weir::probes {

inline constexpr const char* k_marks_probe = "instrument";

// The environment that counts into `folder`.
inline std::map<std::string, std::string> counting(const std::string& folder,
                                                   std::map<std::string, std::string> more = {}) {
  const sys::RealFiles files;
  auto env = environment_for(k_marks_probe, {"/nowhere", ""}, folder, files,
                             [](std::string_view) { return std::nullopt; });
  EXPECT_TRUE(env);
  more.merge(*env);
  return more;
}

inline profile::ProbeCounts counts_in(const std::string& folder) {
  const sys::RealFiles files;
  auto counts = collect(files, folder, k_marks_probe);
  EXPECT_TRUE(counts) << (counts ? "" : counts.error().message);
  return counts ? *counts : profile::ProbeCounts{};
}

}  // namespace weir::probes
