#include "gate/profile/metric_json.hpp"

#include <algorithm>
#include <cmath>

namespace weir::profile {
namespace {

constexpr std::size_t k_longest_metric_name = 128;

bool fit_to_name(const std::string& name) {
  return !name.empty() && name.size() <= k_longest_metric_name &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

Json metric_to_json(const unit::Metric& metric) {
  if (unit::find_metric(metric.name) == metric) return metric.name;
  return {{"name", metric.name},
          {"kind", unit::to_string(metric.kind)},
          {"unit", unit::to_string(metric.unit)},
          {"better", unit::to_string(metric.better)}};
}

std::optional<unit::Metric> metric_from_json(const Json& json) {
  if (json.is_string()) return unit::find_metric(json.get<std::string>());
  if (!json.is_object()) return std::nullopt;
  JsonReader read(json, "metric");
  const std::string name = read.string("name");
  const auto kind = unit::parse_kind(read.string("kind"));
  const auto unit = unit::parse_unit(read.string("unit"));
  const auto better = unit::parse_better(read.string("better"));
  if (read.problem() || !fit_to_name(name) || !kind || !unit || !better) return std::nullopt;
  return unit::custom_metric(name, *kind, *unit, *better);
}

Json rational_to_json(const Rational& value) {
  if (value.whole()) return value.numerator();
  return value.str();
}

std::optional<Rational> rational_from_json(const Json& json) {
  if (json.is_string()) return Rational::parse(json.get_ref<const std::string&>());
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() &&
      json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  return Rational(json.get<std::int64_t>());
}

Json number_to_json(double value) {
  constexpr double k_exact = 9007199254740992.0;  // 2^53
  if (value == std::floor(value) && std::fabs(value) <= k_exact) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

Json optional_to_json(const std::optional<double>& value) {
  return value ? number_to_json(*value) : Json();
}
Json optional_to_json(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json();
}
Json optional_to_json(const std::optional<std::string>& value) {
  return value ? Json(*value) : Json();
}

std::map<std::string, std::int64_t> counts_from_json(JsonReader& read, const char* key) {
  std::map<std::string, std::int64_t> counts;
  if (!read.has(key)) return counts;
  for (const auto& [name, value] : read.object(key).items()) {
    const auto number = rational_from_json(value);
    if (!number || !number->whole() || value.is_string()) {
      read.complain(fmt::format("\"{}\" should hold whole numbers only", key));
      return counts;
    }
    counts[name] = number->numerator();
  }
  return counts;
}

std::map<std::string, Rational> rationals_from_json(JsonReader& read, const char* key) {
  std::map<std::string, Rational> counts;
  if (!read.has(key)) return counts;
  for (const auto& [name, value] : read.object(key).items()) {
    const auto number = rational_from_json(value);
    if (!number) {
      read.complain(
          fmt::format("\"{}\" should hold whole numbers, or fractions as \"133/2\"", key));
      return counts;
    }
    counts[name] = *number;
  }
  return counts;
}

std::map<std::string, std::string> texts_from_json(JsonReader& read, const char* key) {
  std::map<std::string, std::string> texts;
  if (!read.has(key)) return texts;
  for (const auto& [name, value] : read.object(key).items()) {
    if (!value.is_string()) {
      read.complain(fmt::format("\"{}\" should hold strings only", key));
      return texts;
    }
    texts[name] = value.get<std::string>();
  }
  return texts;
}

std::vector<double> numbers_from_json(JsonReader& read, const char* key) {
  std::vector<double> numbers;
  if (!read.has(key)) return numbers;
  for (const Json& value : read.array(key)) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      read.complain(fmt::format("\"{}\" should hold finite numbers only", key));
      return numbers;
    }
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

std::vector<std::int64_t> integers_from_json(JsonReader& read, const char* key) {
  std::vector<std::int64_t> numbers;
  if (!read.has(key)) return numbers;
  for (const Json& value : read.array(key)) {
    const auto number = rational_from_json(value);
    if (!number || !number->whole() || value.is_string()) {
      read.complain(fmt::format("\"{}\" should hold whole numbers only", key));
      return numbers;
    }
    numbers.push_back(number->numerator());
  }
  return numbers;
}

}  // namespace weir::profile
