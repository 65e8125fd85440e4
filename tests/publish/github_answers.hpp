// Reads requests and writes answers for the tests' own GitHub; used by github_store*.cpp only.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/publish/github_store.hpp"

namespace weir::tests {

inline constexpr std::size_t k_max_characters = 65'536;  // in a comment

inline StoreAnswer refuse(int status, const std::string& message, const Json& errors = Json()) {
  Json body = {{"message", message}, {"documentation_url", "https://docs.github.com/rest"}};
  if (!errors.is_null()) body["errors"] = errors;
  return {.status = status, .body = body};
}
inline StoreAnswer not_found() { return refuse(404, "Not Found"); }
inline StoreAnswer invalid(const std::string& resource, const std::string& field,
                           const std::string& message) {
  return refuse(
      422, "Validation Failed",
      Json::array(
          {{{"resource", resource}, {"field", field}, {"code", "custom"}, {"message", message}}}));
}

inline std::int64_t number(const std::string& text, std::int64_t otherwise) {
  std::int64_t value = otherwise;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

inline std::string query(const StoreRequest& request, const std::string& name) {
  const auto match = request.query.find(name);
  return match == request.query.end() ? "" : match->second;
}

// Returns one page of a list, as `per_page` (30, at most 100) and `page` request.
inline StoreAnswer make_page(const StoreRequest& request, const std::vector<Json>& all,
                             const char* wrapped_as = nullptr) {
  const auto per_page = std::clamp<std::int64_t>(number(query(request, "per_page"), 30), 1, 100);
  const auto page = std::max<std::int64_t>(number(query(request, "page"), 1), 1);
  const auto total = static_cast<std::int64_t>(all.size());
  Json items = Json::array();
  for (std::int64_t i = (page - 1) * per_page; i < std::min(page * per_page, total); ++i) {
    items.push_back(all[static_cast<std::size_t>(i)]);
  }
  StoreAnswer answer{.body = items};
  if (wrapped_as != nullptr) answer.body = {{"total_count", total}, {wrapped_as, items}};
  answer.last_page = (total + per_page - 1) / per_page;
  if (page < answer.last_page) answer.next_page = page + 1;
  return answer;
}

inline std::size_t characters(const std::string& utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

inline std::string text_of(const Json& json, const char* key) {
  const auto match = json.find(key);
  return match != json.end() && match->is_string() ? match->get<std::string>() : "";
}

template <std::size_t N>
bool is_one_of(const std::string& word, const std::array<const char*, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == w; });
}

}  // namespace weir::tests
