// Decides whether a run may be compared with its base, under the rules of a commit (--rules-from
// REF).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/flow/measure.hpp"

namespace weir::flow {

struct BaseCheck {
  std::optional<std::string> problem{};  // why nothing may be compared with the base
  std::vector<std::string> notes{};
};
// Checks the base of a run that --rules-from judges; says nothing of other runs. The base of a run
// by others has to be the merge-base of its commit and REF, REF itself, or the base that the event
// names.
[[nodiscard]] Result<BaseCheck> check_base(const Job& job, const MeasuredRun& measured);

}  // namespace weir::flow
