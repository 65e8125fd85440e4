// Metrics of a program that weir does not know: found in what it printed, or named on the command
// line. Each becomes an entry of `metrics` in weir.yaml. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::config {

// weir knows a metric of this name, or its end declares one (unit/declared_metric.hpp).
struct PrintedMetric {
  std::string name;   // "decode_tokens_per_second"
  std::string regex;  // group 1 is the value
};

// Returns the rates of tokens and times of a token that a text has: "41.2 tok/s", "tokens/s: 41.2",
// "24 ms per token". Lines that name the prompt are its prefill.
[[nodiscard]] std::vector<PrintedMetric> find_printed_metrics(std::string_view text);

// Adds what `text` has besides the work that `metrics` name already.
void add_printed_metrics(std::string_view text, std::vector<PrintedMetric>& metrics);

// Returns numbers with a label on lines that no metric reads: "hits: 12", at most four.
[[nodiscard]] std::vector<std::string> find_unread_numbers(
    std::string_view text, const std::vector<PrintedMetric>& metrics);

// Parses "NAME=REGEX". Fails with Code::usage if NAME says no metric, or if REGEX is none.
[[nodiscard]] Result<PrintedMetric> parse_printed_metric(const std::string& assignment);

}  // namespace weir::config
