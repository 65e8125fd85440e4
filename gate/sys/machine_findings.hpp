// What a machine's facts mean for the times measured on it, and what to do about each. Pure.
//
// Counts do not depend on any of this.
#pragma once

#include <string>
#include <vector>

#include "gate/sys/machine_health.hpp"

namespace weir::sys {

enum class Weight {
  worse,  // makes times worse or less steady right now
  note,   // may, in time or with other programs
};

struct HealthFinding {
  std::string subject;  // "governor": lower case, kept: the id in JSON
  Weight weight = Weight::note;
  std::string what;  // one sentence without a full stop
  std::string cure;  // one sentence without a full stop; never empty
};

struct HealthReport {
  std::vector<HealthFinding> findings;  // the heaviest first, else in a fixed order
  std::vector<std::string> fine;        // subjects with nothing to say
  std::vector<std::string> unknown;     // subjects that this machine does not tell about
};
[[nodiscard]] HealthReport judge_health(const MachineHealth& health);

}  // namespace weir::sys
