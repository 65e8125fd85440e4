// Parses JSON within limits, and reads values out of it.
#include "gate/base/json.hpp"

#include <cmath>

namespace weir {

// Returns an error if the text has too many values or nests too deeply. Checked before parsing, so
// that hostile input can exhaust neither stack nor memory.
static std::optional<Error> check_limits(std::string_view text, const JsonLimits& limits) {
  std::size_t depth = 0, values = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
      if (depth > limits.depth) {
        return Error{Code::data,
                     fmt::format("JSON nests deeper than {} at byte {}", limits.depth, i)};
      }
      ++values;
    } else if (c == ',') {
      ++values;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
    if (values > limits.values) {
      return Error{Code::data,
                   fmt::format("JSON has more than {} values at byte {}", limits.values, i)};
    }
  }
  return std::nullopt;
}

bool is_json(std::string_view text) { return Json::accept(text); }

// Parses JSON; fails if it is malformed or over a limit (bytes, depth, values).
Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return fail(Code::data, "JSON of {} bytes is over the limit of {}", text.size(), limits.bytes);
  }
  if (auto problem = check_limits(text, limits)) return tl::unexpected(*std::move(problem));
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return fail(Code::data, "not valid JSON at byte {} of {}", error.byte, text.size());
  } catch (const Json::exception& error) {
    return fail(Code::data, "not valid JSON: {}", error.what());
  }
}

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json rational_to_json(const Rational& value) {
  return value.is_integer() ? Json(value.numerator()) : Json(value.str());
}

std::optional<Rational> rational_from_json(const Json& json) {
  if (json.is_string()) return Rational::parse(json.get_ref<const std::string&>());
  const bool too_large = json.is_number_unsigned() &&
                         json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  if (!json.is_number_integer() || too_large) return std::nullopt;
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

const Json& JsonReader::required_of_type(const char* key, const Json& empty,
                                         const char* complaint) {
  const Json* field = find(key);
  if (field != nullptr && field->type() == empty.type()) return *field;
  if (field == nullptr) {
    complain_missing(key);
  } else {
    complain_about(key, complaint);
  }
  return empty;
}

const Json& JsonReader::array(const char* key) {
  static const Json k_empty = Json::array();
  return required_of_type(key, k_empty, "should be a list");
}

const Json& JsonReader::object(const char* key) {
  static const Json k_empty = Json::object();
  return required_of_type(key, k_empty, "should be an object");
}

const Json& member_or_null(const Json& json, const char* key) {
  static const Json k_nothing;
  if (!json.is_object()) return k_nothing;
  const auto field = json.find(key);
  return field == json.end() ? k_nothing : *field;
}

const Json& list_or_empty(const Json& json, const char* key) {
  static const Json k_empty = Json::array();
  const Json& value = member_or_null(json, key);
  return value.is_array() ? value : k_empty;
}

}  // namespace weir
