// Files of this repository that a test holds equal to what comes out.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace weir::tests {

// Compares with a file of the repository, "docs/reference/metrics.md". What differs is written
// beside it as .got-NAME. WEIR_UPDATE_GOLDENS=1 accepts it.
inline void expect_file(const std::filesystem::path& name, const std::string& got) {
  namespace fs = std::filesystem;
  const fs::path golden = fs::path(WEIR_SOURCE_DIR) / name;
  const fs::path beside = golden.parent_path() / (".got-" + golden.filename().string());
  const char* update = std::getenv("WEIR_UPDATE_GOLDENS");
  if (update != nullptr && *update == '1') std::ofstream(golden, std::ios::binary) << got;
  std::ifstream in(golden, std::ios::binary);
  if (std::string(std::istreambuf_iterator<char>(in), {}) == got) {
    fs::remove(beside);
    return;
  }
  std::ofstream(beside, std::ios::binary) << got;
  ADD_FAILURE() << name.string() << " differs; what came out is in " << beside.filename().string()
                << " beside it.\nTo accept it: WEIR_UPDATE_GOLDENS=1, with this test.\n--- got\n"
                << got.substr(0, 4000);
}

}  // namespace weir::tests
