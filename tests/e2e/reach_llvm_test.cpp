// weir reach with what a coverage build of clang's says of a small engine. Needs clang and llvm,
// which ci/setup all installs.
#include <gmock/gmock.h>

#include "tests/e2e/reach_scene.hpp"

namespace weir::e2e {
namespace reach_llvm_test {

TEST_F(ReachOfAnEngine, TakesWhatLlvmCovPrints) {
  run_shell(
      "mkdir weir-llvm && cd weir-llvm && clang++ -fprofile-instr-generate -fcoverage-mapping -O0 "
      "-o engine ../main.cpp ../src/*.cpp && ./engine m 4 sparse > out && "
      "llvm-profdata merge -o engine.profdata default.profraw && "
      "llvm-cov export -format=text -instr-profile engine.profdata engine > ../coverage.json");
  const Ended recorded =
      weir_here({"reach", "--record", "--cell", k_sparse, "--coverage", "coverage.json"});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  for (const char* name : {"dense", "sparse", "unused"}) {
    write_work(name, 2);
    commit(name);
    const Ended ended = weir_here({"reach", "--diff", "HEAD~1", "--cell", k_sparse, "--json", "-"});
    EXPECT_EQ(json_of(ended)["cells"][0]["reached"], name == std::string("sparse")) << ended.out;
  }
}

}  // namespace reach_llvm_test
}  // namespace weir::e2e
