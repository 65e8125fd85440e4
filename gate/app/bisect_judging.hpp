// What a gate's verdict beside the good commit says of the commit that was tried. Pure.
#pragma once

#include <string>

#include "gate/source/bisection.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::app {

struct Judged {
  source::Tried tried = source::Tried::skipped;
  std::string reason;    // why bad or skipped, one line
  bool nothing = false;  // skipped because no limit of these cells can be judged
};
// A failed cell: bad, whatever the others say. An error, or a time that is not decided: skipped.
[[nodiscard]] Judged judged_step(const verdict::GateVerdict& verdict);

}  // namespace weir::app
