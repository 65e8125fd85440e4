// Any engine: values found by regular expressions or JSON pointers that the config names.
#pragma once

#include "gate/adapters/adapter.hpp"

namespace weir::adapters {

// Regular expressions look at one line at a time (the first 64 KiB of it, colours removed) of
// standard output and, where nothing is found there, of standard error. Pointers look into each
// JSON document among the lines, in the same order.
//
// Fails with Code::data when nothing at all is found, a value is no number, a time is not above 0,
// a count is not whole, or a value that this pass is for is missing: times in a timed pass, counts
// in a counted one.
[[nodiscard]] Result<profile::EngineReport> read_generic(const Output& output);

}  // namespace weir::adapters
