// The shapes of a history: runs with their points, verdicts, and acknowledged change points.
//
// Base units, as everywhere (unit/metric.hpp). Absent is absent; an empty text is "not known".
// Names (of projects, cells, metrics, machines, branches …) are any printable UTF-8 of 1 to
// k_longest_name bytes: stored_name() makes one of any bytes. Private names never get here:
// importers put aliases in their place (documents.hpp). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json_fwd.hpp"
#include "gate/base/rational.hpp"
#include "gate/base/result.hpp"
#include "gate/profile/profile.hpp"
#include "gate/unit/metric.hpp"

namespace weir::history {

inline constexpr std::size_t k_longest_name = 512;                   // bytes
inline constexpr std::size_t k_max_points = 100'000;                 // per run
inline constexpr std::size_t k_max_samples = 16'384;                 // per point
inline constexpr std::size_t k_largest_run = std::size_t{24} << 20;  // bytes, as weight() counts
inline constexpr std::size_t k_largest_verdict = std::size_t{16} << 20;  // bytes of its text

// Unit and direction belong to the metric. Foreign metrics (CSV) have none; a name that two
// declarations use differently is two metrics.
struct Metric {
  std::string name;
  std::optional<unit::Kind> kind;
  std::optional<unit::Unit> unit;
  std::optional<unit::Better> better;

  friend bool operator==(const Metric&, const Metric&) = default;
  friend auto operator<=>(const Metric&, const Metric&) = default;
};
// From a metric that weir or a configuration declares.
[[nodiscard]] Metric metric_of(const unit::Metric& metric);
// From a name: weir's own metric of that name, else the name alone.
[[nodiscard]] Metric metric_named(std::string_view name);

// The classes that a number depends on besides the program. When one of them changes along a
// series, that is an event on it.
struct Place {
  std::string device_class, device_name;    // counts depend on the class; the name is for people
  std::string machine_class, machine_name;  // times depend on the class
  std::string engine_build;                 // build of the measured program

  friend bool operator==(const Place&, const Place&) = default;
  friend auto operator<=>(const Place&, const Place&) = default;
};
void fields(Fields& io, Place& place);

// One cell's metric in one run.
struct Point {
  std::string cell;
  Metric metric;
  profile::Nature nature = profile::Nature::sampled;
  std::string source;             // "vulkan", "llama-bench"
  double value = 0;               // `exact` as a number, else the median of `samples`
  std::optional<Rational> exact;  // counts that agreed
  std::vector<double> samples;    // one number a process, in their order; may be empty
  Place place;

  friend bool operator==(const Point&, const Point&) = default;
};

enum class Source { run, verdict, baseline, csv };
[[nodiscard]] std::string_view to_string(Source source);  // "run", "verdict", "baseline", "csv"
[[nodiscard]] std::optional<Source> parse_source(std::string_view text);

struct RunFacts {
  std::string project = "default";
  // Unique within the project, and made from the measurement, so that importing it again finds it:
  // hexadecimal digits as import makes them, any name in a store.
  std::string id;
  Source source = Source::run;
  std::optional<std::string> commit;  // as it was given: 40 or 64 hex digits, or fewer
  std::optional<std::string> branch;
  std::optional<double> commit_time;  // seconds since the epoch
  bool dirty = false;                 // the working tree differed from `commit`
  double time = 0;                    // when it was measured; seconds since the epoch
  // Groups points into series: stays the same when drivers and images change.
  std::string machine;
  std::string weir_version;

  friend bool operator==(const RunFacts&, const RunFacts&) = default;
};

struct Run {
  RunFacts facts;
  std::vector<Point> points;  // at most one a cell and metric

  friend bool operator==(const Run&, const Run&) = default;
};

// A gate's verdict as it was given (weir.verdict/1), so that verdicts can be counted. Several
// verdicts of one run are judgements one after the other.
struct StoredVerdict {
  std::string project = "default";
  std::string id;   // hash_hex of `text`
  std::string run;  // RunFacts::id; "" if the verdict came alone
  std::optional<std::string> commit, branch;
  double time = 0;      // the run's
  double kept_at = 0;   // when the first store took it: orders judgements of one run
  std::string outcome;  // "fail", "pass", …
  std::string text;     // JSON on one line
  // It lacks parts that the verdict before it judged. Not read back from a store.
  bool partial = false;
  bool judged_here = false;  // by the service that stores it; not read back either

  friend bool operator==(const StoredVerdict&, const StoredVerdict&) = default;
};

// States that a change point is known: who said so, when and why.
struct Acknowledgement {
  std::string project = "default";
  std::string cell, metric, machine;
  std::string kind;                   // "step", "drift", "class"
  std::optional<std::string> commit;  // the first changed point's; absent in series without commits
  double time = 0;                    // the first changed point's
  std::string reason, who;
  double acknowledged_at = 0;  // when it was acknowledged

  friend bool operator==(const Acknowledgement&, const Acknowledgement&) = default;
};

// Receives the entries of a history, one at a time. An Error ends the reading; an empty function
// leaves its kind out.
struct EntryHandlers {
  std::function<Result<void>(Run)> run;
  std::function<Result<void>(StoredVerdict)> verdict;
  std::function<Result<void>(Acknowledgement)> acknowledgement;
};

// A point of a series as it is read. The indices are into the History that holds it.
struct SeriesPoint {
  double value = 0;
  std::optional<Rational> exact;
  std::vector<double> samples;
  profile::Nature nature = profile::Nature::sampled;
  std::uint32_t run = 0, place = 0;
};

struct Series {
  std::string project, cell;
  Metric metric;
  std::string machine;
  std::vector<SeriesPoint> points;
};

// Series by project, cell, metric and machine. Their points are in the order of time, until
// put_in_order() (order.hpp) sorts them by their commits.
struct History {
  std::vector<RunFacts> runs;
  std::vector<Place> places;
  std::vector<Series> series;

  [[nodiscard]] const RunFacts& run_of(const SeriesPoint& point) const { return runs[point.run]; }
  [[nodiscard]] const Place& place_of(const SeriesPoint& point) const {
    return places[point.place];
  }
};

// Turns any bytes into a name. Printable UTF-8 stays as it is. Else bytes that cannot be shown read
// "<80>", and "~" with a hash of all bytes follows, so that no two become one. A result that is
// passed in again comes back unchanged.
[[nodiscard]] std::string stored_name(std::string_view bytes);

// The size of a run in bytes, as k_largest_run limits it.
[[nodiscard]] std::size_t weight(const Run& run);

// Checks that it can be stored: names that stored_name() leaves alone and of an allowed length,
// finite numbers, not too many, each cell and metric once. Code::data says what is wrong.
[[nodiscard]] Result<void> check(const Run& run);
[[nodiscard]] Result<void> check(const StoredVerdict& verdict);
[[nodiscard]] Result<void> check(const Acknowledgement& acknowledgement);

// Times as foreign series write them. Pure.

// Parses seconds since the epoch, from Unix seconds ("1795000000", "1795000000.25") or ISO 8601:
// "2026-11-20", "2026-11-20T09:30", "2026-11-20 09:30:15.5Z", "2026-11-20T09:30:15+02:00"; without
// a zone it is UTC. Nothing for anything else, impossible dates included.
[[nodiscard]] std::optional<double> parse_time(std::string_view text);

}  // namespace weir::history
