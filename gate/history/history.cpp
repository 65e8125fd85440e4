// Checks entries of a history, and makes names and times fit to be stored.
#include "gate/history/history.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

namespace weir::history {

namespace {

constexpr std::size_t k_hash_digits = 12;
constexpr std::size_t k_longest_reason = 4'096;
// Seconds since the epoch between the years 0 and 9999: the range of ISO 8601.
constexpr double k_first_time = -62'167'219'200.0, k_last_time = 253'402'300'800.0;

constexpr auto k_sources = names_in_order<Source>("run", "verdict", "baseline", "csv");

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f; });
}

// Returns true for one character that can be shown on a line.
bool is_printable(std::string_view character) {
  return character.size() == 1 ? is_plain(character) : text::printable(character) == character;
}

// The number of bytes of a character in UTF-8, by its first one.
std::size_t utf8_size(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xE0) return 2;
  return first < 0xF0 ? 3 : 4;
}

// The number of bytes of the first character of `text`; 0 if it cannot be shown.
std::size_t printable_bytes(std::string_view text) {
  const std::size_t size = utf8_size(static_cast<unsigned char>(text.front()));
  return size <= text.size() && is_printable(text.substr(0, size)) ? size : 0;
}

// Returns true for a printable name of an allowed length.
bool is_name(std::string_view name) {
  if (name.empty() || name.size() > k_longest_name) return false;
  if (is_plain(name)) return true;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t size = printable_bytes(name.substr(at));
    if (size == 0) return false;
    at += size;
  }
  return true;
}

Result<void> check_name(std::string_view what, std::string_view name) {
  if (is_name(name)) return {};
  return fail(Code::data, "{} is not a printable name of 1 to {} bytes: \"{}\"", what,
              k_longest_name, text::printable(name.substr(0, 80)));
}

// Checks a text that may be empty (not known).
Result<void> check_text(std::string_view what, std::string_view text) {
  return text.empty() ? Result<void>{} : check_name(what, text);
}

Result<void> check_optional(std::string_view what, const std::optional<std::string>& text) {
  return text ? check_name(what, *text) : Result<void>{};
}

Result<void> check_time(std::string_view what, double time) {
  if (time >= k_first_time && time < k_last_time) return {};
  return fail(Code::data, "{} is not in the years 0 to 9999: {} s since 1970", what, time);
}

// Fails if a point cannot be stored: a name is too long, a number is not finite, or it has too many
// samples.
Result<void> check_point(const Point& point) {
  WEIR_CHECK(check_name("a cell", point.cell));
  WEIR_CHECK(check_name("a metric", point.metric.name));
  WEIR_CHECK(check_text("a source", point.source));
  const Place& place = point.place;
  for (const std::string* text : {&place.device_class, &place.device_name, &place.machine_class,
                                  &place.machine_name, &place.engine_build}) {
    WEIR_CHECK(check_text("a class, device, machine or build", *text));
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!finite(point.value) || !std::ranges::all_of(point.samples, finite)) {
    return fail(Code::data, "{} {}: a number is not finite", point.cell, point.metric.name);
  }
  if (point.exact && point.exact->value() != point.value) {
    return fail(Code::data, "{} {}: {} is not {}", point.cell, point.metric.name, point.value,
                point.exact->str());
  }
  if (point.samples.size() > k_max_samples) {
    return fail(Code::data, "{} {}: {} samples; at most {} are kept", point.cell, point.metric.name,
                point.samples.size(), k_max_samples);
  }
  return {};
}

// Fails if a cell and metric occur twice.
Result<void> check_unique(const Run& run) {
  std::vector<const Point*> points;
  points.reserve(run.points.size());
  for (const Point& point : run.points) points.push_back(&point);
  const auto key = [](const Point* point) { return std::tie(point->cell, point->metric); };
  std::ranges::sort(points, {}, key);
  const auto twice = std::ranges::adjacent_find(points, {}, key);
  if (twice == points.end()) return {};
  return fail(Code::data, "{} {} is there twice", (*twice)->cell, (*twice)->metric.name);
}

// The number in two digits at `at`.
int two_digits(std::string_view text, std::size_t at) {
  return (text[at] - '0') * 10 + (text[at + 1] - '0');
}

// Returns the seconds that a time zone is ahead of UTC: "", "Z", "+02", "+0200", "+02:00". Nullopt
// for other texts.
std::optional<int> parse_zone(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") return 0;
  if (text[0] != '+' && text[0] != '-') return std::nullopt;
  const int sign = text[0] == '+' ? 1 : -1;
  text.remove_prefix(1);
  if (!text::has_form(text, "00") && !text::has_form(text, "0000") &&
      !text::has_form(text, "00:00")) {
    return std::nullopt;
  }
  const int hours = two_digits(text, 0);
  const int minutes = text.size() > 2 ? two_digits(text, text.size() - 2) : 0;
  if (hours > 23 || minutes > 59) return std::nullopt;
  return sign * (hours * 3600 + minutes * 60);
}

// Parses "2026-11-20", with a time of day and a zone if these follow, to Unix seconds. Nullopt if
// it is malformed.
std::optional<double> parse_iso(std::string_view text) {
  if (!text::has_form(text.substr(0, 10), "0000-00-00")) return std::nullopt;
  const std::chrono::year_month_day date{
      std::chrono::year(two_digits(text, 0) * 100 + two_digits(text, 2)),
      std::chrono::month(static_cast<unsigned>(two_digits(text, 5))),
      std::chrono::day(static_cast<unsigned>(two_digits(text, 8)))};
  if (!date.ok()) return std::nullopt;
  const double midnight =
      static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count()) * 86'400;
  text.remove_prefix(10);
  if (text.empty()) return midnight;
  if ((text[0] != 'T' && text[0] != 't' && text[0] != ' ') ||
      !text::has_form(text.substr(1, 5), "00:00")) {
    return std::nullopt;
  }
  const int hour = two_digits(text, 1), minute = two_digits(text, 4);
  int second = 0;
  double fraction = 0;
  text.remove_prefix(6);
  if (text::has_form(text.substr(0, 3), ":00")) {
    second = two_digits(text, 1);
    text.remove_prefix(3);
    if (text.starts_with('.') || text.starts_with(',')) {
      const std::size_t end = std::min(text.find_first_not_of("0123456789", 1), text.size());
      if (end == 1) return std::nullopt;
      fraction = text::to_double("0." + std::string(text.substr(1, end - 1))).value_or(0);
      text.remove_prefix(end);
    }
  }
  const auto zone = parse_zone(text);
  if (!zone || hour > 23 || minute > 59 || second > 60) return std::nullopt;  // 60: a leap second
  return midnight + (hour * 3600 + minute * 60 + (second + fraction)) - *zone;
}

}  // namespace

Metric metric_of(const unit::Metric& metric) {
  return {metric.name, metric.kind, metric.unit, metric.better};
}

Metric metric_named(std::string_view name) {
  if (const auto metric = unit::find_metric(name)) return metric_of(*metric);
  return {std::string(name), std::nullopt, std::nullopt, std::nullopt};
}

std::string_view to_string(Source source) { return name_of(k_sources, source); }

std::optional<Source> parse_source(std::string_view text) { return value_of(k_sources, text); }

// Returns a printable name for any bytes: bad bytes as "<80>", then "~" and a hash. A valid name
// stays as it is; the result is never longer than a name may be.
std::string stored_name(std::string_view bytes) {
  if (is_name(bytes)) return std::string(bytes);
  constexpr std::size_t k_max_prefix_bytes = k_longest_name - k_hash_digits - 1;
  std::string result;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = printable_bytes(bytes.substr(at));
    const std::string part = size > 0
                                 ? std::string(bytes.substr(at, size))
                                 : fmt::format("<{:02x}>", static_cast<unsigned char>(bytes[at]));
    if (result.size() + part.size() > k_max_prefix_bytes) break;
    result += part;
    at += size > 0 ? size : 1;
  }
  return result + "~" + short_hash(bytes, k_hash_digits);
}

std::size_t weight(const Run& run) {
  constexpr std::size_t k_run = 512, k_point = 128, k_sample = 20;
  std::size_t sum = k_run;
  for (const Point& point : run.points) {
    const Place& place = point.place;
    sum += k_point + point.cell.size() + point.metric.name.size() + point.source.size() +
           place.device_class.size() + place.device_name.size() + place.machine_class.size() +
           place.machine_name.size() + place.engine_build.size() + k_sample * point.samples.size();
  }
  return sum;
}

// Fails if a run cannot be stored: a name or time is malformed, it is too large, or a point comes
// twice.
Result<void> check(const Run& run) {
  const RunFacts& facts = run.facts;
  WEIR_CHECK(check_name("a project", facts.project));
  WEIR_CHECK(check_name("a run's id", facts.id));
  WEIR_CHECK(check_optional("a commit", facts.commit));
  WEIR_CHECK(check_optional("a branch", facts.branch));
  WEIR_CHECK(check_text("a machine", facts.machine));
  WEIR_CHECK(check_text("a version", facts.weir_version));
  WEIR_CHECK(check_time("a run's time", facts.time));
  if (facts.commit_time) WEIR_CHECK(check_time("a commit's time", *facts.commit_time));
  if (run.points.size() > k_max_points) {
    return fail(Code::data, "{} points in one run; at most {} are kept", run.points.size(),
                k_max_points);
  }
  if (const std::size_t bytes = weight(run); bytes > k_largest_run) {
    return fail(Code::data, "a run of {} MiB; at most {} are kept", bytes >> 20,
                k_largest_run >> 20);
  }
  for (const Point& point : run.points) WEIR_CHECK(check_point(point));
  return check_unique(run);
}

// Fails if a verdict cannot be stored. Its id must be the hash of its text, which is one line.
Result<void> check(const StoredVerdict& verdict) {
  WEIR_CHECK(check_name("a project", verdict.project));
  WEIR_CHECK(check_name("a verdict's id", verdict.id));
  WEIR_CHECK(check_text("a run's id", verdict.run));
  WEIR_CHECK(check_optional("a commit", verdict.commit));
  WEIR_CHECK(check_optional("a branch", verdict.branch));
  WEIR_CHECK(check_name("an outcome", verdict.outcome));
  WEIR_CHECK(check_time("a verdict's time", verdict.time));
  WEIR_CHECK(check_time("a verdict's time", verdict.kept_at));
  if (verdict.text.empty() || verdict.text.size() > k_largest_verdict) {
    return fail(Code::data, "a verdict of {} bytes; 1 to {} MiB are kept", verdict.text.size(),
                k_largest_verdict >> 20);
  }
  if (verdict.text.find_first_of(std::string_view("\n\0", 2)) != std::string::npos ||
      hash_hex(verdict.text) != verdict.id) {
    return fail(Code::data, "a verdict's text is not the one line that its id was made from");
  }
  return {};
}

// Fails if an acknowledgement cannot be stored: a name, time or reason is too long or not
// printable.
Result<void> check(const Acknowledgement& acknowledgement) {
  WEIR_CHECK(check_name("a project", acknowledgement.project));
  WEIR_CHECK(check_name("a cell", acknowledgement.cell));
  WEIR_CHECK(check_name("a metric", acknowledgement.metric));
  WEIR_CHECK(check_text("a machine", acknowledgement.machine));
  WEIR_CHECK(check_name("a kind of change", acknowledgement.kind));
  WEIR_CHECK(check_optional("a commit", acknowledgement.commit));
  WEIR_CHECK(check_text("a name", acknowledgement.who));
  WEIR_CHECK(check_time("a change's time", acknowledgement.time));
  WEIR_CHECK(check_time("a time", acknowledgement.acknowledged_at));
  if (acknowledgement.reason.size() > k_longest_reason ||
      text::printable(acknowledgement.reason) != acknowledgement.reason) {
    return fail(Code::data, "a reason of at most {} bytes that can be shown is kept",
                k_longest_reason);
  }
  return {};
}

std::optional<double> parse_time(std::string_view text) {
  text = text::trim(text);
  if (const auto seconds = text::to_double(text)) return seconds;
  return parse_iso(text);
}

}  // namespace weir::history
