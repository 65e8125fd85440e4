// What weir baseline accept stores: counted now, taken from a run, or from a downloaded one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gate/config/veil.hpp"
#include "gate/flow/job.hpp"
#include "gate/profile/profile.hpp"
#include "gate/sys/files.hpp"

namespace weir::flow {
struct AcceptOptions {
  std::string run;
  std::vector<std::string> metrics;
  std::optional<std::string> baselines_ref, artifact;
  std::optional<std::int64_t> allowances;  // of this pull request
  std::string allowances_ref = "perf-baselines";
};

// weir baseline accept: what was measured becomes the baseline.
[[nodiscard]] Result<Answer> accept(const Job& job, const AcceptOptions& options);

}  // namespace weir::flow
