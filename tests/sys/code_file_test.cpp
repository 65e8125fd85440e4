// Tests which files are code by their names.
#include "gate/sys/code_file.hpp"

#include <gtest/gtest.h>

namespace weir::sys {
namespace code_file_test {

TEST(Modules, AreKnownByTheirEndings) {
  for (const char* path : {"a/x.py", "a/x.pyc", "x.PL", "a/x.zip", "x.whl", "x.pyz", "x.spv",
                           "x.ptx", "a.b/x.mjs", "x.metallib"})
    EXPECT_TRUE(is_module(path)) << path;
  for (const char* path : {"a/x", "x.gguf", "a.py/x", "x.json", "x.so.1", "x.zip/y", ""})
    EXPECT_FALSE(is_module(path)) << path;
}

// An archive that a command names may be its input.
TEST(Modules, OfArchivesAreNoCodeByName) {
  EXPECT_TRUE(is_code_suffix("py"));
  EXPECT_FALSE(is_code_suffix("zip"));
  EXPECT_FALSE(is_code_suffix(""));
}

}  // namespace code_file_test
}  // namespace weir::sys
