#include "gate/base/json.hpp"

#include <cmath>

namespace weir {
namespace {

// Checked before parsing, so that no recursion anywhere sees deeper input and nothing is made of
// more values.
std::optional<Error> over_limit(std::string_view text, const JsonLimits& limits) {
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
      if (++depth > limits.depth) {
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

const Json& empty_array() {
  static const Json k_empty = Json::array();
  return k_empty;
}

const Json& empty_object() {
  static const Json k_empty = Json::object();
  return k_empty;
}

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return fail(Code::data, "JSON of {} bytes is over the limit of {}", text.size(), limits.bytes);
  }
  if (auto problem = over_limit(text, limits)) return tl::unexpected(*std::move(problem));
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

JsonReader::JsonReader(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {
  if (!json.is_object()) {
    complain("should be an object");
    json_ = &empty_object();
  }
}

void JsonReader::complain(std::string message) {
  if (!problem_) problem_ = Error{Code::data, fmt::format("{} {}", path_, message)};
}

std::optional<Error> JsonReader::problem() const { return problem_; }

const Json* JsonReader::find(const char* key, bool required) {
  const auto found = json_->find(key);
  if (found == json_->end() || found->is_null()) {
    if (required) complain(fmt::format("lacks \"{}\"", key));
    return nullptr;
  }
  return &*found;
}

bool JsonReader::has(const char* key) const {
  const auto found = json_->find(key);
  return found != json_->end() && !found->is_null();
}

std::optional<std::string> JsonReader::optional_string(const char* key) {
  const Json* found = find(key, false);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) {
    complain(fmt::format("\"{}\" should be a string", key));
    return std::nullopt;
  }
  return found->get<std::string>();
}

std::optional<double> JsonReader::optional_number(const char* key) {
  const Json* found = find(key, false);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number() || !std::isfinite(found->get<double>())) {
    complain(fmt::format("\"{}\" should be a finite number", key));
    return std::nullopt;
  }
  return found->get<double>();
}

std::optional<std::int64_t> JsonReader::optional_integer(const char* key) {
  const Json* found = find(key, false);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number_integer() ||
      (found->is_number_unsigned() &&
       found->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))) {
    complain(fmt::format("\"{}\" should be a whole number", key));
    return std::nullopt;
  }
  return found->get<std::int64_t>();
}

std::optional<bool> JsonReader::optional_boolean(const char* key) {
  const Json* found = find(key, false);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean()) {
    complain(fmt::format("\"{}\" should be true or false", key));
    return std::nullopt;
  }
  return found->get<bool>();
}

std::string JsonReader::string(const char* key) {
  find(key, true);
  return optional_string(key).value_or("");
}

double JsonReader::number(const char* key) {
  find(key, true);
  return optional_number(key).value_or(0);
}

std::int64_t JsonReader::integer(const char* key) {
  find(key, true);
  return optional_integer(key).value_or(0);
}

bool JsonReader::boolean(const char* key) {
  find(key, true);
  return optional_boolean(key).value_or(false);
}

const Json& JsonReader::array(const char* key) {
  const Json* found = find(key, true);
  if (found == nullptr) return empty_array();
  if (!found->is_array()) {
    complain(fmt::format("\"{}\" should be a list", key));
    return empty_array();
  }
  return *found;
}

const Json& JsonReader::object(const char* key) {
  const Json* found = find(key, true);
  if (found == nullptr) return empty_object();
  if (!found->is_object()) {
    complain(fmt::format("\"{}\" should be an object", key));
    return empty_object();
  }
  return *found;
}

std::vector<std::string> JsonReader::strings(const char* key) {
  std::vector<std::string> values;
  if (!has(key)) return values;
  for (const Json& item : array(key)) {
    if (item.is_string()) {
      values.push_back(item.get<std::string>());
    } else {
      complain(fmt::format("\"{}\" should hold strings only", key));
    }
  }
  return values;
}

}  // namespace weir
