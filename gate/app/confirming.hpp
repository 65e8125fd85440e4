// --confirm: a drop that stored samples suggest is looked at in pairs beside a base program before
// it fails. These pairs are a run of their own, inside the folder of the run that raised them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/app/session.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::app {

struct ConfirmOptions {
  std::optional<std::string> ref;  // --confirm REF
  bool off = false;                // --no-confirm
  bool read_only = false;          // --from: pairs that were run then, and no others
};

// What pairs of the suspected cells gave, or why there are none (one line; empty where nothing is
// to be said).
struct Pairs {
  std::optional<Measured> measured;
  std::string why_not;
};

// `first` is the run whose stored verdict is `verdict`. Takes gate.budget at most. Fails with
// Code::interrupted alone: whatever else goes wrong leaves the stored verdict as it is, and says
// so.
[[nodiscard]] Result<Pairs> pairs_of_suspected(const CommonOptions& options,
                                               const ConfirmOptions& confirm, const Measured& first,
                                               const verdict::GateVerdict& verdict,
                                               sys::Files& files);

}  // namespace weir::app
