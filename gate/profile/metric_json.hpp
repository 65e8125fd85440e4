// Metrics, exact numbers and counted sets in JSON: shared by records, profiles, baselines and
// verdicts. Pure; everything read is hostile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gate/base/json.hpp"
#include "gate/base/rational.hpp"
#include "gate/unit/metric.hpp"

namespace weir::profile {

// A metric that weir knows is its name; one declared in a config is an object that says what it is:
// {"name", "kind", "unit", "better"}.
[[nodiscard]] Json metric_to_json(const unit::Metric& metric);
// Nothing when it is neither. Names are 1 to 128 printable characters without spaces.
[[nodiscard]] std::optional<unit::Metric> metric_from_json(const Json& json);

// A whole number is a number, another one the string "133/2".
[[nodiscard]] Json rational_to_json(const Rational& value);
[[nodiscard]] std::optional<Rational> rational_from_json(const Json& json);

// A value whose JSON should read as people write it: 65, not 65.0. Whole numbers up to 2^53.
[[nodiscard]] Json number_to_json(double value);
// null when absent.
[[nodiscard]] Json optional_to_json(const std::optional<double>& value);
[[nodiscard]] Json optional_to_json(const std::optional<std::int64_t>& value);
[[nodiscard]] Json optional_to_json(const std::optional<std::string>& value);

// Reads {"name": 12, …}; the first complaint goes to `read`. A missing key is an empty map.
[[nodiscard]] std::map<std::string, std::int64_t> counts_from_json(JsonReader& read,
                                                                   const char* key);
[[nodiscard]] std::map<std::string, Rational> rationals_from_json(JsonReader& read,
                                                                  const char* key);
[[nodiscard]] std::map<std::string, std::string> texts_from_json(JsonReader& read, const char* key);
// A list of finite numbers, or of whole ones. A missing key is an empty list.
[[nodiscard]] std::vector<double> numbers_from_json(JsonReader& read, const char* key);
[[nodiscard]] std::vector<std::int64_t> integers_from_json(JsonReader& read, const char* key);

}  // namespace weir::profile
