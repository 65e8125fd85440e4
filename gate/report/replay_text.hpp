// What weir replay found, as text. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "gate/observed/observed.hpp"
#include "gate/observed/replayed.hpp"
#include "gate/profile/profile.hpp"

namespace weir::report {

struct ReplayStyle {
  int width = 80;
  std::size_t most_rows = 20;
  bool whole = true;  // all ops of the step were asked for: their sum is held against it
};

[[nodiscard]] std::string replay_text(const profile::Replay& replay,
                                      const profile::ReplayStep& step,
                                      const observed::Replayed& replayed, const ReplayStyle& style);

// What was recorded: "3 kinds of steps; 1 token: 65 ops (12 different), 3.94 ms".
[[nodiscard]] std::string recording_text(const profile::Replay& replay, int width);

}  // namespace weir::report
