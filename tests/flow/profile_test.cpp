// weir profile of a program.
#include "gate/flow/profile.hpp"

#include <map>

#include <gtest/gtest.h>

namespace weir::flow {
namespace profile_test {

// `env $(weir device compile CARD --output card.twin) weir profile -- PROGRAM`, or the same after
// "--".
TEST(ProfiledProgram, RunsOnATwinWhereItsEnvironmentNamesOne) {
  const struct {
    std::vector<std::string> words;
    std::map<std::string, std::string> variables;
    bool twin;
  } cases[] = {
      {{"llama-bench", "-n", "2"}, {{"PATH", "/bin"}}, false},
      {{"llama-bench"}, {{"WEIR_TWIN", "/tmp/card.twin"}}, true},
      {{"llama-bench"}, {{"WEIR_CUDA_TWIN", "/tmp/card.twin"}}, true},
      {{"llama-bench"}, {{"WEIR_TWIN", ""}}, false},
      {{"llama-bench"}, {{"WEIR_TWIN_FILL", "7"}}, false},
      {{"env", "WEIR_TWIN=card.twin", "llama-bench"}, {}, true},
      {{"sh", "-c", "A=1 WEIR_CUDA_TWIN=card.twin ./llama-bench"}, {}, true},
      {{"env", "WEIR_TWIN_FILL=7", "llama-bench"}, {}, false},
  };
  for (const auto& one : cases) {
    const auto variables = [&](const std::string& name) {
      const auto found = one.variables.find(name);
      return found == one.variables.end() ? std::nullopt : std::optional(found->second);
    };
    EXPECT_EQ(names_twin(one.words, variables), one.twin) << one.words.back();
  }
}

}  // namespace profile_test
}  // namespace weir::flow
