#include "gate/flow/explain.hpp"

#include <gtest/gtest.h>

namespace weir::flow {
namespace {

TEST(AllowedOps, AreThoseOfTheCellsOwnEngine) {
  config::Settings settings;
  for (const char* name : {"llama.cpp", "agave"}) {
    config::EngineSettings engine;
    engine.name = name;
    if (engine.name == "llama.cpp") engine.cpu_ops_allowed["GET_ROWS"] = "one look-up";
    settings.engines.push_back(engine);
  }
  EXPECT_EQ(allowed_ops_of(settings, "llama.cpp"), std::set<std::string>{"GET_ROWS"});
  EXPECT_EQ(allowed_ops_of(settings, "agave"), std::set<std::string>{}) << "none is allowed";
  EXPECT_EQ(allowed_ops_of(settings, "engine-1"), std::nullopt) << "an alias tells nothing";
}

}  // namespace
}  // namespace weir::flow
