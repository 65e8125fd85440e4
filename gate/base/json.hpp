// JSON at weir's borders, over nlohmann_json: limits on the way in, one shape on the way out.
#pragma once

#include <cstddef>

#include <nlohmann/json.hpp>

#include "gate/base/fields.hpp"

namespace weir {

struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t depth = 64;
  // Objects, arrays and what stands in them, about: many small ones need far more memory than text.
  std::size_t values = SIZE_MAX;
};

// Parses hostile text. Fails with Code::data naming the byte where it goes wrong, also when a limit
// is passed. Duplicate keys: the last one wins. NaN and Infinity are not JSON.
[[nodiscard]] Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

// Returns true for text that a JSON parser accepts, whatever its depth. Builds nothing in memory.
[[nodiscard]] bool is_json(std::string_view text);

// indent < 0: one line. Invalid UTF-8 in strings is replaced, never thrown on.
[[nodiscard]] std::string dump_json(const Json& json, int indent = -1);

// A whole number is a number, another one the string "133/2".
[[nodiscard]] Json rational_to_json(const Rational& value);
[[nodiscard]] std::optional<Rational> rational_from_json(const Json& json);
// A value whose JSON should read as people write it: 65, not 65.0. Whole numbers up to 2^53.
[[nodiscard]] Json number_to_json(double value);
// null when absent.
[[nodiscard]] Json optional_to_json(const std::optional<double>& value);
template <class T>
[[nodiscard]] Json optional_to_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// Parts of what came from elsewhere, which may be anything: null where `json` is no object or has
// no such part; in place of anything but a list an empty one.
[[nodiscard]] const Json& member_or_null(const Json& json, const char* key);
[[nodiscard]] const Json& list_or_empty(const Json& json, const char* key);

// Reads an object whose fields are in no list of their own (fields.hpp).
//   JsonReader read(json, "cells[3]");
//   auto name = read.string("cell");            // required
//   auto low = read.optional_number("low");     // absent or null: nothing
//   if (auto problem = read.problem()) return tl::unexpected(*problem);
class JsonReader : public Fields {
 public:
  using Fields::Fields;

  std::string string(const char* key) { return required<std::string>(key); }
  double number(const char* key) { return required<double>(key); }  // finite
  std::int64_t integer(const char* key) { return required<std::int64_t>(key); }
  const Json& array(const char* key);
  const Json& object(const char* key);
  std::optional<std::string> optional_string(const char* key) { return present<std::string>(key); }
  std::optional<double> optional_number(const char* key) { return present<double>(key); }
  std::optional<std::int64_t> optional_integer(const char* key) {
    return present<std::int64_t>(key);
  }
  std::optional<bool> optional_boolean(const char* key) { return present<bool>(key); }
  // A missing key is an empty list.
  std::vector<std::string> strings(const char* key) {
    return present<std::vector<std::string>>(key).value_or(std::vector<std::string>());
  }

 private:
  // The field if its type is that of `empty`, else `empty`.
  const Json& required_of_type(const char* key, const Json& empty, const char* complaint);
  template <class T>
  T required(const char* key) {
    T value{};
    (*this)(key, value);
    return value;
  }
  template <class T>
  std::optional<T> present(const char* key) {
    std::optional<T> value;
    always(key, value);
    return value;
  }
};

}  // namespace weir
