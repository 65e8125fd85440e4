// One profile as columns of numbers, for the page that shows it (gate/web/src/profile).
//
// docs/reference/profile-page.md has the format, "weir.profile-page/1": a JSON head (names, tracks,
// facts) and the events as varints in base64, about 11 bytes an event. Times are given in seconds
// and kept in nanoseconds from the earliest. Texts may be hostile: they are cut in length and made
// fit to show here, and what would end the page's data is written by its code. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"
#include "gate/observed/timeline.hpp"

namespace weir::report {

// A table of the page. Columns with a unit hold numbers in that base unit ("" for counts).
struct PageTable {
  struct Column {
    std::string title;
    std::optional<std::string> unit{};
  };
  std::string title, note;
  std::vector<Column> columns;
  std::vector<std::vector<Json>> rows{};  // strings, numbers, or null for an unknown value
};

// Facts, warnings and tables around a timeline. The caller hides what is private.
struct PageFacts {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // "machine": "…", in order
  std::vector<std::string> warnings;
  std::vector<PageTable> tables;
};

// Details of an event or an arrow besides its name and time.
struct PageDetail {
  std::vector<std::pair<std::string, std::string>> words;
  std::uint64_t bytes = 0;      // moved; 0: none or unknown
  std::optional<double> flops;  // in one call
};

class TimelineDocument {
 public:
  // `marks`: an engine's own marks of work that another track has.
  enum class Kind { cpu, device, copy, async, backend, counter, marks };
  // Anything beyond these is counted and left out with a warning, so that a browser can open the
  // page.
  static constexpr std::size_t k_max_events = 4'000'000;
  static constexpr std::size_t k_max_names = 200'000;
  static constexpr std::size_t k_max_details = 200'000;
  static constexpr std::size_t k_max_tracks = 2'000;

  struct Point {
    double at = 0, value = 0;  // seconds; value >= 0
  };

  explicit TimelineDocument(PageFacts facts) : facts_(std::move(facts)) {}

  std::uint32_t process(std::string_view name);
  // Adds a track; tracks are shown in the order of these calls. Returns nothing if there are too
  // many.
  std::optional<std::uint32_t> track(std::uint32_t process, Kind kind, std::string_view name);
  // Adds an event. Events of a track should not overlap, unless one contains the other; others are
  // drawn below. Times that are not finite are left out.
  void event(std::uint32_t track, const observed::Interval& at, std::string_view name,
             const PageDetail& detail = {});
  // Adds an arrow from a track at a time to another track; `to_time` may be the earlier one.
  void arrow(std::uint32_t from, double from_time, std::uint32_t to, double to_time,
             std::string_view name, const PageDetail& detail = {});
  // Adds the points of a track of kind counter.
  void counter(std::uint32_t track, std::vector<Point> points);
  void warn(std::string warning) { facts_.warnings.push_back(std::move(warning)); }
  void table(PageTable table) { facts_.tables.push_back(std::move(table)); }

  [[nodiscard]] std::size_t events() const { return events_.size(); }

  // Returns the two script elements that hold the document, safe to stand in a page.
  [[nodiscard]] std::string html_scripts() const;

 private:
  struct Event {
    std::uint32_t track, name_index, detail_index;
    std::int64_t start, length;  // nanoseconds, from any time
  };
  struct Arrow {
    std::uint32_t from, to, name_index, detail_index;
    std::int64_t start, length;
  };
  struct Track {
    std::uint32_t process;
    Kind kind;
    std::string name;
  };
  struct Counter {
    std::uint32_t track;
    std::vector<Point> points;
  };
  bool has_room(std::size_t count, double begin, double end);
  std::uint32_t name_index(std::string_view name);
  std::uint32_t detail_index(const PageDetail& detail);
  [[nodiscard]] std::int64_t earliest() const;
  [[nodiscard]] std::string metadata_json(const std::vector<std::size_t>& counts,
                                          std::int64_t earliest) const;
  [[nodiscard]] std::vector<std::string> warnings() const;

  PageFacts facts_;
  std::vector<std::string> processes_;
  std::vector<Track> tracks_;
  std::vector<Event> events_;
  std::vector<Arrow> arrows_;
  std::vector<Counter> counters_;
  std::vector<std::string> names_, details_;  // details are JSON
  std::unordered_map<std::string, std::uint32_t> index_by_name_, number_by_detail_;
  std::size_t left_out_ = 0, timeless_ = 0;  // events and arrows
  std::size_t tracks_left_out_ = 0, names_left_out_ = 0, details_left_out_ = 0;
};

// Puts the document into gate/web's profile.html in place of "{{data}}". Fails with Code::data if
// that is missing.
[[nodiscard]] Result<std::string> timeline_page(std::string_view page,
                                                const TimelineDocument& document);

}  // namespace weir::report
