#include "gate/publish/answers.hpp"

#include <algorithm>

#include "gate/base/text.hpp"

namespace weir::publish {

const Json& below(const Json& json, const char* key) {
  static const Json k_nothing;
  if (!json.is_object()) return k_nothing;
  const auto found = json.find(key);
  return found == json.end() ? k_nothing : *found;
}

std::string text_in(const Json& json, const char* key) {
  const Json& value = below(json, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::int64_t number_in(const Json& json, const char* key) {
  const Json& value = below(json, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

std::string link_in(const Json& json, const char* key) {
  std::string link = text_in(json, key);
  const bool web = link.rfind("https://", 0) == 0 || link.rfind("http://", 0) == 0;
  const bool plain =
      std::all_of(link.begin(), link.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return web && plain && link.size() < 2000 ? link : "";
}

std::string refusal(const ApiResponse& answer) {
  std::string words = text::printable(text_in(answer.body, "message").substr(0, 300));
  std::replace(words.begin(), words.end(), '\n', ' ');
  return words.empty() ? fmt::format("HTTP {}", answer.status)
                       : fmt::format("HTTP {}, {}", answer.status, words);
}

std::string as_written(std::string_view body) {
  std::string out(body);
  std::erase(out, '\r');
  return std::string(text::trim(out));
}

}  // namespace weir::publish
