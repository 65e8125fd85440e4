// Gating what arrives: what the service asks of whoever put it together (gate/app).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "gate/base/result.hpp"
#include "gate/profile/profile.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::serve {

// Where an upload says that it belongs. Its project is what its token may upload to.
struct Arrival {
  std::string project;
  std::optional<std::string> commit;
  std::optional<std::int64_t> pull_request;
};

// Called by several threads at once.
class Judge {
 public:
  virtual ~Judge() = default;
  // Nothing where this project is not gated here. An Error is told to the uploader as a warning:
  // what was measured is kept all the same. Its message says no place of this machine.
  [[nodiscard]] virtual Result<std::optional<verdict::GateVerdict>> judge(
      const Arrival& arrival, std::span<const profile::Profile> profiles) = 0;
};

// Says elsewhere what became of it. Called when the upload is on the disk; returns at once.
class Announcer {
 public:
  virtual ~Announcer() = default;
  virtual void announce(const Arrival& arrival, verdict::GateVerdict verdict) = 0;
};

}  // namespace weir::serve
