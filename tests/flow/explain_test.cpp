// Explanations of cells in a flow.
#include "gate/flow/explain.hpp"

#include <gtest/gtest.h>

namespace weir::flow {
namespace explain_test {

TEST(AllowedOps, AreThoseOfTheCellsOwnEngineThatItsBackendMatches) {
  config::Settings settings;
  for (const char* name : {"llama.cpp", "agave"}) {
    config::EngineSettings engine;
    engine.name = name;
    if (engine.name == "llama.cpp") {
      engine.cpu_ops_allowed = {{"GET_ROWS", "one look-up"},
                                {"MUL_MAT", "half", "", {.backend = "half"}}};
    }
    settings.engines.push_back(engine);
  }
  const auto allowed_ops = [&](const std::string& engine_and_backend) {
    return allowed_cpu_ops(settings, *profile::CellKey::parse(engine_and_backend + "/decode"));
  };
  using Ops = std::set<std::string>;
  EXPECT_EQ(allowed_ops("llama.cpp/tiny/vulkan"), Ops{"GET_ROWS"});
  EXPECT_EQ(allowed_ops("llama.cpp/tiny/half"), (Ops{"GET_ROWS", "MUL_MAT"}));
  EXPECT_EQ(allowed_ops("agave/tiny/vulkan"), Ops{}) << "none is allowed";
  EXPECT_EQ(allowed_ops("engine-1/tiny/vulkan"), std::nullopt) << "an alias tells nothing";
}

}  // namespace explain_test
}  // namespace weir::flow
