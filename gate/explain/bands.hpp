// What counts a token usually are on a GPU, as a hint: neither a limit nor a verdict.
//
// The defaults are those that Agave's handbook gives for decoding on Metal. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/explain/evidence.hpp"

namespace weir::explain {

// Absent: not held against that.
struct Band {
  std::optional<double> low;  // less than this is unusual
  std::optional<double> good_from, good_to;
  std::optional<double> high;  // more than this is unusual

  friend bool operator==(const Band&, const Band&) = default;
};
using Bands = std::map<std::string, Band>;  // by full metric name
[[nodiscard]] const Bands& default_bands();

struct Hint {
  std::string metric;
  double value = 0;
  bool high = false;  // else low
  std::string text;   // one line
};
// Of the later side of a cell on a device.
[[nodiscard]] std::vector<Hint> hints_of(const Evidence& evidence, const Bands& bands);

}  // namespace weir::explain
