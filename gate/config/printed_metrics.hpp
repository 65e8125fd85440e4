// Metrics of a program that weir does not know: found in what it printed, or named on the command
// line. Each becomes an entry of `metrics` in weir.yaml. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::config {

struct PrintedMetric {
  std::string name;    // "decode_tokens_per_second"
  std::string regex;   // group 1 is the value
  std::string unit;    // of the value as printed; "": the metric's own
  std::string better;  // "higher", "lower"; "": weir knows the metric
  std::string kind;    // "time" of a rate without a unit of its own; "": by its unit
};

// Returns the rates of tokens and times of a token that a text has: "41.2 tok/s", "tokens/s: 41.2",
// "24 ms per token". Lines that name the prompt are its prefill.
[[nodiscard]] std::vector<PrintedMetric> find_printed_metrics(std::string_view text);

// Parses "NAME=REGEX". For a metric that weir does not know, the end of the name says unit and
// direction ("load_seconds"). Fails with Code::usage if it does not, or if REGEX is none.
[[nodiscard]] Result<PrintedMetric> parse_printed_metric(const std::string& assignment);

}  // namespace weir::config
