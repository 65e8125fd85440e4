// Packs a profile into the columns of numbers that the profile page reads.
#include "gate/report/timeline_document.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "gate/base/encode.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

// The largest number up to which JavaScript has all integers: 104 days.
constexpr double k_max_nanoseconds = 9'007'199'254'740'991.0;
constexpr std::size_t k_name_length = 300, k_text_length = 4000;

std::int64_t nanoseconds(double seconds) {
  return static_cast<std::int64_t>(
      std::round(std::clamp(seconds * 1e9, -k_max_nanoseconds / 4, k_max_nanoseconds / 4)));
}

// In the order in which kinds are declared.
constexpr const char* k_kind_names[] = {"cpu",     "device",  "copy", "async",
                                        "backend", "counter", "marks"};

// Whole numbers, seven bits a byte, the low ones first (LEB128); signed ones as 2n or -2n - 1.
class Varints {
 public:
  void add(std::uint64_t value) {
    while (value >= 128) {
      bytes_ += static_cast<char>(value | 128);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  void add_signed(std::int64_t value) {
    add(value < 0 ? (~static_cast<std::uint64_t>(value) << 1) | 1
                  : static_cast<std::uint64_t>(value) << 1);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Returns names and values as arrays of two texts, cut in length.
Json pairs_json(const std::vector<std::pair<std::string, std::string>>& all) {
  Json out = Json::array();
  for (const auto& [name, value] : all) {
    out.push_back(
        Json::array({printable_line(name, k_name_length), printable_line(value, k_text_length)}));
  }
  return out;
}

Json cell_json(const Json& value) {
  if (value.is_string()) return printable_line(value.get<std::string>(), k_text_length);
  return value.is_number() ? value : Json();
}

// Returns a table as JSON: its columns with their units, and its rows.
Json to_json(const PageTable& table) {
  Json columns = Json::array(), rows = Json::array();
  for (const PageTable::Column& column : table.columns) {
    columns.push_back({{"title", printable_line(column.title)}});
    if (column.unit) columns.back()["unit"] = printable_line(*column.unit);
  }
  for (const std::vector<Json>& row : table.rows) {
    rows.push_back(Json::array());
    for (const Json& value : row) rows.back().push_back(cell_json(value));
  }
  return {{"title", printable_line(table.title)},
          {"note", printable_line(table.note)},
          {"columns", std::move(columns)},
          {"rows", std::move(rows)}};
}

template <class All, class Get>
void add_column(Varints& out, const All& all, const Get& get) {
  for (const auto& item : all) out.add(static_cast<std::uint64_t>(get(item)));
}

// Adds each start as the difference from the one before it; the first from `earliest`.
template <class All>
void add_start_deltas(Varints& out, const All& all, std::int64_t earliest) {
  for (const auto& item : all) {
    out.add(static_cast<std::uint64_t>(item.start - earliest));
    earliest = item.start;
  }
}

}  // namespace

std::uint32_t TimelineDocument::process(std::string_view name) {
  processes_.push_back(printable_line(name, k_name_length));
  return static_cast<std::uint32_t>(processes_.size() - 1);
}

std::optional<std::uint32_t> TimelineDocument::track(std::uint32_t process, Kind kind,
                                                     std::string_view name) {
  if (tracks_.size() >= k_max_tracks) {
    ++tracks_left_out_;
    return std::nullopt;
  }
  tracks_.push_back({process, kind, printable_line(name, k_name_length)});
  return static_cast<std::uint32_t>(tracks_.size() - 1);
}

// Returns the number of a name in the document's list, adding it if it is new. Names beyond the
// limit share one.
std::uint32_t TimelineDocument::name_index(std::string_view name) {
  if (const auto* index = look_up(index_by_name_, std::string(name))) return *index;
  if (names_.size() >= k_max_names) {
    ++names_left_out_;
    if (names_.size() == k_max_names) names_.emplace_back("(more names)");
    return static_cast<std::uint32_t>(k_max_names);
  }
  names_.push_back(printable_line(name, k_name_length));
  const auto index = static_cast<std::uint32_t>(names_.size() - 1);
  index_by_name_.emplace(name, index);
  return index;
}

// Returns the number of the detail from 1 on, shared by equal details. 0: there is none.
std::uint32_t TimelineDocument::detail_index(const PageDetail& detail) {
  if (detail.words.empty() && detail.bytes == 0 && !detail.flops) return 0;
  Json json = {{"words", pairs_json(detail.words)}};
  if (detail.bytes != 0) json["bytes"] = detail.bytes;
  if (detail.flops && std::isfinite(*detail.flops)) json["flops"] = *detail.flops;
  const std::string text = script_json(dump_json(json));
  if (const auto* index = look_up(number_by_detail_, text)) return *index;
  if (details_.size() >= k_max_details) {
    ++details_left_out_;
    return 0;
  }
  details_.push_back(text);
  const auto number = static_cast<std::uint32_t>(details_.size());
  number_by_detail_.emplace(text, number);
  return number;
}

// Returns true if an event with these times can be added to `count` others; else counts it as left
// out.
bool TimelineDocument::has_room(std::size_t count, double begin, double end) {
  if (!std::isfinite(begin) || !std::isfinite(end)) {
    ++timeless_;
    return false;
  }
  if (count >= k_max_events) {
    ++left_out_;
    return false;
  }
  return true;
}

void TimelineDocument::event(std::uint32_t track, const observed::Interval& at,
                             std::string_view name, const PageDetail& detail) {
  if (track >= tracks_.size() || !has_room(events_.size(), at.begin, at.end)) return;
  const std::int64_t begin = nanoseconds(at.begin);
  events_.push_back({track, name_index(name), detail_index(detail), begin,
                     std::max(begin, nanoseconds(at.end)) - begin});
}

void TimelineDocument::arrow(std::uint32_t from, double from_time, std::uint32_t to, double to_time,
                             std::string_view name, const PageDetail& detail) {
  const bool tracks_exist = from < tracks_.size() && to < tracks_.size();
  if (!tracks_exist || !has_room(arrows_.size(), from_time, to_time)) return;
  const std::int64_t begin = nanoseconds(from_time);
  arrows_.push_back(
      {from, to, name_index(name), detail_index(detail), begin, nanoseconds(to_time) - begin});
}

void TimelineDocument::counter(std::uint32_t track, std::vector<Point> points) {
  std::erase_if(points, [](const Point& point) {
    return !std::isfinite(point.at) || !std::isfinite(point.value);
  });
  std::ranges::stable_sort(points, {}, &Point::at);
  if (track < tracks_.size()) counters_.push_back({track, std::move(points)});
}

// Returns the earliest time of all events, arrows and counters in nanoseconds; 0 without any.
std::int64_t TimelineDocument::earliest() const {
  std::optional<std::int64_t> out;
  const auto include = [&](std::int64_t time) { out = std::min(out.value_or(time), time); };
  for (const Event& event : events_) include(event.start);
  // The length of an arrow is negative if it ends before it starts.
  for (const Arrow& arrow : arrows_) include(arrow.start + std::min<std::int64_t>(arrow.length, 0));
  for (const Counter& counter : counters_) {
    if (!counter.points.empty()) include(nanoseconds(counter.points.front().at));
  }
  return out.value_or(0);
}

// Returns the warnings of the caller, and one for each kind of thing that was left out.
std::vector<std::string> TimelineDocument::warnings() const {
  std::vector<std::string> out;
  for (const std::string& warning : facts_.warnings)
    out.push_back(printable_line(warning, k_text_length));
  const auto add_if_any = [&](std::size_t count, std::string_view singular, std::string_view what) {
    if (count != 0) out.push_back(fmt::format("{} {}", text::plural(count, singular), what));
  };
  add_if_any(timeless_, "event", "left out: without a time that makes sense");
  add_if_any(left_out_, "event", "left out: more than a page can show");
  add_if_any(tracks_left_out_, "track", "left out, with their events: more than a page can show");
  add_if_any(names_left_out_, "event", "shown as \"(more names)\": too many names for a page");
  add_if_any(details_left_out_, "event", "without details: too many for a page");
  return out;
}

// Returns the JSON head: everything but the events and arrows themselves. `counts`: events of each
// track.
std::string TimelineDocument::metadata_json(const std::vector<std::size_t>& counts,
                                            std::int64_t earliest) const {
  Json json = {{"schema", "weir.profile-page/1"}, {"title", printable_line(facts_.title)}};
  json["facts"] = pairs_json(facts_.facts);
  json["warnings"] = warnings();
  json["processes"] = processes_;
  json["names"] = names_;
  json["arrows"] = arrows_.size();
  json["tracks"] = Json::array();
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    json["tracks"].push_back({{"name", tracks_[i].name},
                              {"kind", k_kind_names[static_cast<std::size_t>(tracks_[i].kind)]},
                              {"process", tracks_[i].process},
                              {"events", counts[i]}});
  }
  json["tables"] = Json::array();
  for (const PageTable& table : facts_.tables) json["tables"].push_back(to_json(table));
  json["counters"] = Json::array();
  for (const Counter& counter : counters_) {
    Json at = Json::array(), value = Json::array();
    for (const Point& point : counter.points) {
      at.push_back(nanoseconds(point.at) - earliest);
      value.push_back(point.value);
    }
    json["counters"].push_back({{"track", counter.track}, {"at", at}, {"value", value}});
  }
  std::string text = script_json(dump_json(json));
  text.pop_back();  // the closing brace: add the details, which are JSON already
  return fmt::format("{},\"details\":[{}]}}", text, fmt::join(details_, ",\n"));
}

// Writes the events of each track as columns (starts, lengths, names, details), then the arrows.
std::string TimelineDocument::html_scripts() const {
  std::vector<Event> events = events_;
  std::ranges::stable_sort(events, [](const Event& a, const Event& b) {
    if (a.track != b.track) return a.track < b.track;
    return a.start != b.start ? a.start < b.start : a.length > b.length;
  });
  const std::int64_t first = earliest();
  std::vector<std::size_t> counts(tracks_.size());
  for (const Event& event : events) ++counts[event.track];
  Varints out;
  std::size_t begin = 0;
  for (const std::size_t count : counts) {
    const std::span part(events.data() + begin, count);
    add_start_deltas(out, part, first);
    add_column(out, part, [](const Event& event) { return event.length; });
    add_column(out, part, [](const Event& event) { return event.name_index; });
    add_column(out, part, [](const Event& event) { return event.detail_index; });
    begin += count;
  }
  std::vector<Arrow> arrows = arrows_;
  std::ranges::stable_sort(arrows, {}, &Arrow::start);
  add_column(out, arrows, [](const Arrow& arrow) { return arrow.from; });
  add_column(out, arrows, [](const Arrow& arrow) { return arrow.to; });
  add_start_deltas(out, arrows, first);
  for (const Arrow& arrow : arrows) out.add_signed(arrow.length);
  add_column(out, arrows, [](const Arrow& arrow) { return arrow.name_index; });
  add_column(out, arrows, [](const Arrow& arrow) { return arrow.detail_index; });
  return fmt::format(
      "<script type=\"application/json\" id=\"weir-profile\">{}</script>\n"
      "<script type=\"text/plain\" id=\"weir-events\">{}</script>",
      metadata_json(counts, first), base64(out.bytes()));
}

Result<std::string> timeline_page(std::string_view page, const TimelineDocument& document) {
  constexpr std::string_view k_place = "{{data}}";
  const std::size_t at = page.find(k_place);
  if (at == std::string_view::npos) {
    return fail(Code::data, "this is no page for a profile: {} is missing in it", k_place);
  }
  return std::string(page).replace(at, k_place.size(), document.html_scripts());
}

}  // namespace weir::report
