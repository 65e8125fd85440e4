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
      {{"llama-bench"}, {{"WEIR_RUNTIME_TWIN", "/tmp/card.twin"}}, true},
      {{"llama-bench"}, {{"WEIR_TWIN", ""}}, false},
      {{"llama-bench"}, {{"WEIR_TWIN_FILL", "7"}}, false},
      {{"env", "WEIR_TWIN=card.twin", "llama-bench"}, {}, true},
      {{"sh", "-c", "A=1 WEIR_RUNTIME_TWIN=card.twin ./llama-bench"}, {}, true},
      {{"env", "WEIR_TWIN_FILL=7", "llama-bench"}, {}, false},
  };
  for (const auto& test_case : cases) {
    const auto variables = [&](const std::string& name) {
      const auto variable = test_case.variables.find(name);
      return variable == test_case.variables.end() ? std::nullopt : std::optional(variable->second);
    };
    EXPECT_EQ(names_twin(test_case.words, variables), test_case.twin) << test_case.words.back();
  }
}

}  // namespace profile_test
}  // namespace weir::flow
