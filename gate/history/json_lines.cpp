// Writes and reads a history as JSON lines.
#include "gate/history/json_lines.hpp"

#include <algorithm>
#include <map>

#include "gate/base/json.hpp"

namespace weir::history {
namespace {

constexpr std::size_t k_longest_line = std::size_t{128} << 20, k_line_depth = 8;
constexpr std::size_t k_max_places = 100'000;

// A value that is written as a word of a list; it may be optional.
template <class T, class Parse>
struct WordField {
  T& value;
  Parse parse;
  void put(Json& slot) const {
    if constexpr (requires { value.has_value(); }) {
      slot = to_string(*value);
    } else {
      slot = to_string(value);
    }
  }
  void take(const Json& json, Fields& io, const char* key) const {
    std::string word;
    io.take(json, key, word);
    const auto parsed = parse(word);
    if (!parsed) return io.complain_about(key, "has a value that is not known");
    value = *parsed;
  }
};
template <class T, class Parse>
WordField(T&, Parse) -> WordField<T, Parse>;

}  // namespace

// Reads or writes a point as JSON, as `io` is set. An exact number takes the place of the value.
static void fields(Fields& io, Metric& metric) {
  io("name", metric.name);
  io.optional("kind", WordField{metric.kind, unit::parse_kind});
  io.optional("unit", WordField{metric.unit, unit::parse_unit});
  io.optional("better", WordField{metric.better, unit::parse_better});
}

// A metric: its name alone if weir knows the rest.
struct MetricField {
  Metric& value;
  void put(Json& slot) const {
    slot = value == metric_named(value.name) ? Json(value.name) : write_fields(value);
  }
  void take(const Json& json, Fields& io, const char*) const {
    if (json.is_string()) {
      value = metric_named(json.get_ref<const std::string&>());
      return;
    }
    Fields metric_fields(json, "metric", io);
    fields(metric_fields, value);
  }
};

void fields(Fields& io, Place& place) {
  io.optional("device_class", place.device_class);
  io.optional("device_name", place.device_name);
  io.optional("machine_class", place.machine_class);
  io.optional("machine_name", place.machine_name);
  io.optional("engine_build", place.engine_build);
}

// A point as a line has it, with the number of its place in the run's list.
struct PlacedPoint {
  Point point;
  std::int64_t place = 0;
};

// Writes or reads a point. An exact number takes the place of the value.
static void fields(Fields& io, PlacedPoint& placed) {
  Point& point = placed.point;
  io("cell", point.cell);
  io("metric", MetricField{point.metric});
  io.always("nature", WordField{point.nature, profile::parse_nature});
  io("place", placed.place);
  io.optional("source", point.source);
  io.optional("exact", point.exact);
  if (point.exact) {
    if (io.is_reading()) point.value = point.exact->value();
  } else {
    io("value", RoundedNumber{point.value});
  }
  io.optional("samples", RoundedNumber{point.samples});
}

// Moves the points into the run, each with its place.
static void place_points(Fields& io, Run& run, std::vector<PlacedPoint> points,
                         const std::vector<Place>& places) {
  for (PlacedPoint& placed : points) {
    if (placed.place < 0 || static_cast<std::size_t>(placed.place) >= places.size()) {
      return io.refuse({Code::data, "point \"place\" is not one of the run's places"});
    }
    placed.point.place = places[static_cast<std::size_t>(placed.place)];
    run.points.push_back(std::move(placed.point));
  }
}

// Writes or reads a run. Its places are listed once, and points refer to them by number.
static void fields(Fields& io, Run& run) {
  RunFacts& facts = run.facts;
  io("project", facts.project);
  io("id", facts.id);
  io.always("source", WordField{facts.source, parse_source});
  io("time", RoundedNumber{facts.time});
  io.optional("commit", facts.commit);
  io.optional("branch", facts.branch);
  io.optional("commit_time", RoundedNumber{facts.commit_time});
  io.optional("dirty", facts.dirty);
  io.optional("machine", facts.machine);
  io.optional("weir_version", facts.weir_version);
  std::vector<PlacedPoint> points;
  std::vector<Place> places;
  if (!io.is_reading()) {
    std::map<Place, std::size_t> numbers;
    for (const Point& point : run.points) {
      const auto [entry, is_new] = numbers.try_emplace(point.place, places.size());
      if (is_new) places.push_back(point.place);
      points.push_back({point, static_cast<std::int64_t>(entry->second)});
    }
  }
  io.limit_items("places", k_max_places, fmt::format("has more than {} places", k_max_places));
  io.limit_items("points", k_max_points, fmt::format("has more than {} points", k_max_points));
  io("places", places, "place");
  io("points", points, "point");
  if (io.is_reading()) place_points(io, run, std::move(points), places);
}

static void fields(Fields& io, StoredVerdict& verdict) {
  io("project", verdict.project);
  io("id", verdict.id);
  io.optional("run", verdict.run);
  io.optional("commit", verdict.commit);
  io.optional("branch", verdict.branch);
  io("time", RoundedNumber{verdict.time});
  io("kept_at", RoundedNumber{verdict.kept_at});
  io("outcome", verdict.outcome);
  io("text", verdict.text);
}

// Writes or reads an acknowledgement.
static void fields(Fields& io, Acknowledgement& acknowledgement) {
  io("project", acknowledgement.project);
  io("cell", acknowledgement.cell);
  io("metric", acknowledgement.metric);
  io.optional("machine", acknowledgement.machine);
  io("kind", acknowledgement.kind);
  io.optional("commit", acknowledgement.commit);
  io("time", RoundedNumber{acknowledgement.time});
  io.optional("reason", acknowledgement.reason);
  io.optional("who", acknowledgement.who);
  io("at", RoundedNumber{acknowledgement.acknowledged_at});
}

namespace {

// Checks an entry that was read, and passes it to its handler if there is one.
template <class Value>
Result<void> check_and_pass(Result<Value> entry,
                            const std::function<Result<void>(Value)>& handler) {
  if (!entry) return tl::unexpected(std::move(entry).error());
  WEIR_CHECK(check(*entry));
  if (!handler) return {};
  return handler(*std::move(entry));
}

// Reads one line of a history and passes its entry to the handler of its type. If `first`, the line
// must be the schema.
Result<void> read_line(std::string_view line, bool is_first, const EntryHandlers& handlers,
                       std::size_t max_values) {
  WEIR_TRY(const Json json, parse_json(line, {k_longest_line, k_line_depth, max_values}));
  JsonReader read(json, "line");
  if (const auto schema = read.optional_string("schema")) {
    if (*schema == k_lines_schema) return {};
    return fail(Code::data, "its schema is \"{}\", not \"{}\"", *schema, k_lines_schema);
  }
  if (is_first) return fail(Code::data, "the first line should be {}", first_line());
  const std::string type = read.string("type");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (type == "run") return check_and_pass(read_fields<Run>(json, "run"), handlers.run);
  if (type == "verdict")
    return check_and_pass(read_fields<StoredVerdict>(json, "verdict"), handlers.verdict);
  if (type == "acknowledgement")
    return check_and_pass(read_fields<Acknowledgement>(json, "acknowledgement"),
                          handlers.acknowledgement);
  return fail(Code::data, "\"type\" is \"{}\", which this weir does not know", type);
}

}  // namespace

std::string first_line() { return dump_json({{"schema", k_lines_schema}}); }

template <class T>
static std::string line(const char* type, const T& value) {
  Json json = write_fields(value);
  json["type"] = type;
  return dump_json(json);
}

std::string line_of(const Run& run) { return line("run", run); }
std::string line_of(const StoredVerdict& verdict) { return line("verdict", verdict); }
std::string line_of(const Acknowledgement& acknowledgement) {
  return line("acknowledgement", acknowledgement);
}

// Reads all lines of a history and passes each entry to its handler. Skips empty lines; fails at
// the first bad one.
Result<void> read_lines(std::string_view text, const EntryHandlers& handlers,
                        std::size_t max_values) {
  std::size_t number = 0;
  bool is_first = true;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    WEIR_CHECK(read_line(line, is_first, handlers, max_values)
                   .map_error(with_prefix(fmt::format("line {}", number))));
    is_first = false;
  }
  if (is_first) return fail(Code::data, "an empty file: the first line should be {}", first_line());
  return {};
}

}  // namespace weir::history
