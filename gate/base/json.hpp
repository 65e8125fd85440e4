// JSON at weir's borders, over nlohmann_json: limits on the way in, one shape on the way out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "gate/base/result.hpp"

namespace weir {

using Json = nlohmann::json;  // object keys are sorted

struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t depth = 64;
  // Objects, arrays and what stands in them, about: many small ones need far more memory than text.
  std::size_t values = SIZE_MAX;
};

// Parses hostile text. Fails with Code::data naming the byte where it goes wrong, also when a limit
// is passed. Duplicate keys: the last one wins. NaN and Infinity are not JSON.
[[nodiscard]] Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

// indent < 0: one line. Invalid UTF-8 in strings is replaced, never thrown on.
[[nodiscard]] std::string dump_json(const Json& json, int indent = -1);

// Reads fields of one object, collecting the first complaint; the path stands in the message.
//   JsonReader read(json, "cells[3]");
//   auto name = read.string("cell");            // required
//   auto low = read.optional_number("low");     // absent or null: nothing
//   if (auto problem = read.problem()) return tl::unexpected(*problem);
class JsonReader {
 public:
  JsonReader(const Json& json, std::string path);

  [[nodiscard]] bool has(const char* key) const;  // present and not null
  std::string string(const char* key);
  double number(const char* key);  // finite
  std::int64_t integer(const char* key);
  bool boolean(const char* key);
  const Json& array(const char* key);
  const Json& object(const char* key);
  std::optional<std::string> optional_string(const char* key);
  std::optional<double> optional_number(const char* key);
  std::optional<std::int64_t> optional_integer(const char* key);
  std::optional<bool> optional_boolean(const char* key);
  // A missing key is an empty list.
  std::vector<std::string> strings(const char* key);

  void complain(std::string message);  // keeps the first
  [[nodiscard]] std::optional<Error> problem() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const Json* find(const char* key, bool required);
  const Json* json_;
  std::string path_;
  std::optional<Error> problem_;
};

}  // namespace weir
