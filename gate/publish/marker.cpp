#include "gate/publish/marker.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

namespace weir::publish {
namespace {

constexpr std::size_t k_longest_name = 64;
constexpr std::string_view k_before = "<!-- ", k_behind = " -->";

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool fit_for_name(char c) { return letter_or_digit(c) || c == '.' || c == '_' || c == '-'; }

bool is_name(std::string_view name) {
  // "--" could end the comment that hides the marker.
  return !name.empty() && name.size() <= k_longest_name && letter_or_digit(name.front()) &&
         std::all_of(name.begin(), name.end(), fit_for_name) &&
         name.find("--") == std::string_view::npos;
}

// "key=DIGITS" off the front of `text`.
std::optional<std::int64_t> take_number(std::string_view& text, std::string_view key) {
  if (text.substr(0, key.size()) != key) return std::nullopt;
  text.remove_prefix(key.size());
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto value = text::to_int(text.substr(0, end));
  text.remove_prefix(end);
  if (!value) return std::nullopt;
  return *value;
}

}  // namespace

bool newer(const RunNumber& there, const RunNumber& ours) { return ours.known() && ours < there; }

std::string gate_name(std::string_view wanted) {
  if (wanted.empty()) return std::string(k_default_gate);
  if (is_name(wanted)) return std::string(wanted);
  std::string name;
  for (const char c : wanted.substr(0, k_longest_name)) {
    const char fit = fit_for_name(c) ? c : '-';
    if (fit != '-' || (!name.empty() && name.back() != '-')) name += fit;
  }
  const std::size_t first =
      std::min(static_cast<std::size_t>(std::find_if(name.begin(), name.end(), letter_or_digit) -
                                        name.begin()),
               name.size());
  name = name.substr(first, 48);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return fmt::format("{}-{}", name.empty() ? "gate" : name, short_hash(wanted));
}

std::string Marker::text() const {
  return fmt::format("weir:gate={} run={} attempt={}", gate, run.id, run.attempt);
}

std::string Marker::hidden() const { return fmt::format("{}{}{}", k_before, text(), k_behind); }

std::optional<Marker> parse_marker(std::string_view text) {
  constexpr std::string_view k_start = "weir:gate=";
  if (text.substr(0, k_start.size()) != k_start) return std::nullopt;
  text.remove_prefix(k_start.size());
  const std::size_t end = text.find(' ');
  if (end == std::string_view::npos || !is_name(text.substr(0, end))) return std::nullopt;
  Marker marker{std::string(text.substr(0, end)), {}};
  text.remove_prefix(end);
  const auto id = take_number(text, " run=");
  const auto attempt = id ? take_number(text, " attempt=") : std::nullopt;
  if (!attempt || !text.empty()) return std::nullopt;
  marker.run = {*id, *attempt};
  return marker;
}

std::optional<Marker> marker_of(std::string_view body) {
  std::string_view line = body.substr(0, body.find_first_of("\r\n"));
  if (line.size() < k_before.size() + k_behind.size() ||
      line.substr(0, k_before.size()) != k_before ||
      line.substr(line.size() - k_behind.size()) != k_behind) {
    return std::nullopt;
  }
  line.remove_prefix(k_before.size());
  line.remove_suffix(k_behind.size());
  return parse_marker(line);
}

}  // namespace weir::publish
