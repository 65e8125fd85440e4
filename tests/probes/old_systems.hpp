// Engines run on older systems than the one that built a probe: what a probe's library may need.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/probes/support.hpp"

namespace weir::probes {

inline constexpr const char* k_libc_and_libdl = "\\[(libc\\.so|libdl\\.so|ld-linux)";
inline constexpr const char* k_libc_alone = "\\[(libc\\.so|ld-linux)";

// Expects that `library` needs nothing but what `allowed` (a regular expression) matches, and no
// symbol newer than glibc 2.28. The functions that it exports.
inline std::vector<std::string> expect_loads_on_old_systems(const std::string& library,
                                                            const char* allowed) {
  std::vector<std::string> exported;
  const Ran needed = run({"readelf", "-d", library}, {});
  EXPECT_EQ(needed.status, 0) << needed.err;
  for (const std::string& line : text::lines(needed.out)) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    EXPECT_THAT(line, testing::ContainsRegex(allowed)) << line;
  }
  const Ran symbols = run({"objdump", "-T", library}, {});
  EXPECT_EQ(symbols.status, 0) << symbols.err;
  int versions = 0;
  for (const std::string& line : text::lines(symbols.out)) {
    const std::size_t at = line.find("GLIBC_2.");
    if (at != std::string::npos) {
      ++versions;
      EXPECT_LE(std::atoi(line.c_str() + at + 8), 28) << line;
    } else if (line.find(".text") != std::string::npos) {
      exported.push_back(line.substr(line.rfind(' ') + 1));
    }
  }
  EXPECT_GT(versions, 0);
  return exported;
}

}  // namespace weir::probes
