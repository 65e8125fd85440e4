// The command line in process.
#pragma once

#include <vector>

#include "gate/app/program.hpp"

#include "tests/flow/fake_world.hpp"

namespace weir::app {

// Its exit code.
inline int run(tests::FakeWorld& world, std::vector<const char*> words) {
  words.insert(words.begin(), "weir");
  return Program(world.world).run(static_cast<int>(words.size()), words.data());
}

}  // namespace weir::app
