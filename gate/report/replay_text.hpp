// The result of `weir replay` as text. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "gate/observed/observed.hpp"
#include "gate/observed/replayed.hpp"
#include "gate/profile/profile.hpp"

namespace weir::report {

struct ReplayStyle {
  int width = 80;
  std::size_t max_rows = 20;
  bool is_whole_step =
      true;  // all ops of the step were replayed: their sum is compared with the step
};

[[nodiscard]] std::string replay_text(const profile::Replay& replay,
                                      const profile::ReplayStep& step,
                                      const observed::Replayed& replayed, const ReplayStyle& style);

// Lists the recorded kinds of steps with tokens, graphs, ops and median time.
[[nodiscard]] std::string recording_text(const profile::Replay& replay, int width);

}  // namespace weir::report
