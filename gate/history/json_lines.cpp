#include "gate/history/json_lines.hpp"

#include <algorithm>
#include <map>

#include "gate/profile/metric_json.hpp"

namespace weir::history {
namespace {

constexpr JsonLimits k_line_limits{std::size_t{128} << 20, 8};
constexpr std::size_t k_most_places = 100'000;

Json metric_json(const Metric& metric) {
  if (metric == metric_named(metric.name)) return metric.name;
  Json json{{"name", metric.name}};
  if (metric.kind) json["kind"] = unit::to_string(*metric.kind);
  if (metric.unit) json["unit"] = unit::to_string(*metric.unit);
  if (metric.better) json["better"] = unit::to_string(*metric.better);
  return json;
}

// A word of a list that may be missing, but not be another.
template <class Value, class Parse>
std::optional<Value> known_word(JsonReader& read, const char* key, Parse parse) {
  const auto word = read.optional_string(key);
  if (!word) return std::nullopt;
  const std::optional<Value> value = parse(*word);
  if (!value) read.complain(fmt::format("\"{}\" has a value that is not known", key));
  return value;
}

Result<Metric> metric_from(const Json& json) {
  if (json.is_string()) return metric_named(json.get_ref<const std::string&>());
  JsonReader read(json, "metric");
  Metric metric;
  metric.name = read.string("name");
  metric.kind = known_word<unit::Kind>(read, "kind", unit::parse_kind);
  metric.unit = known_word<unit::Unit>(read, "unit", unit::parse_unit);
  metric.better = known_word<unit::Better>(read, "better", unit::parse_better);
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return metric;
}

void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}
void put(Json& json, const char* key, const std::optional<std::string>& text) {
  if (text) json[key] = *text;
}

Json place_json(const Place& place) {
  Json json = Json::object();
  put(json, "device_class", place.device_class);
  put(json, "device_name", place.device_name);
  put(json, "machine_class", place.machine_class);
  put(json, "machine_name", place.machine_name);
  put(json, "engine_build", place.engine_build);
  return json;
}

Result<Place> place_from(const Json& json) {
  JsonReader read(json, "place");
  const auto text = [&](const char* key) { return read.optional_string(key).value_or(""); };
  Place place{text("device_class"), text("device_name"), text("machine_class"),
              text("machine_name"), text("engine_build")};
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return place;
}

Json point_json(const Point& point, std::size_t place) {
  Json json{{"cell", point.cell},
            {"metric", metric_json(point.metric)},
            {"nature", profile::to_string(point.nature)},
            {"place", place}};
  put(json, "source", point.source);
  if (point.exact) {
    json["exact"] = profile::rational_to_json(*point.exact);
  } else {
    json["value"] = profile::number_to_json(point.value + 0.0);
  }
  if (!point.samples.empty()) {
    Json& samples = json["samples"] = Json::array();
    for (const double sample : point.samples) {
      samples.push_back(profile::number_to_json(sample + 0.0));
    }
  }
  return json;
}

Result<Point> point_from(const Json& json, const std::vector<Place>& places) {
  JsonReader read(json, "point");
  Point point;
  point.cell = read.string("cell");
  point.source = read.optional_string("source").value_or("");
  const auto nature = known_word<profile::Nature>(read, "nature", profile::parse_nature);
  point.nature = nature.value_or(profile::Nature::sampled);
  const std::int64_t place = read.integer("place");
  if (place < 0 || static_cast<std::size_t>(place) >= places.size()) {
    read.complain("\"place\" is not one of the run's places");
  } else {
    point.place = places[static_cast<std::size_t>(place)];
  }
  point.samples = profile::numbers_from_json(read, "samples");
  if (read.has("exact")) {
    point.exact = profile::rational_from_json(json["exact"]);
    if (!point.exact) read.complain("\"exact\" should be a whole number, or text like \"133/2\"");
    point.value = point.exact ? point.exact->value() : 0;
  } else {
    point.value = read.number("value");
  }
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (!json.contains("metric")) return fail(Code::data, "point: \"metric\" is missing");
  WEIR_TRY(point.metric, metric_from(json["metric"]));
  return point;
}

Result<Run> run_from(const Json& json) {
  JsonReader read(json, "run");
  Run run;
  RunFacts& facts = run.facts;
  facts.project = read.string("project");
  facts.id = read.string("id");
  const auto source = known_word<Source>(read, "source", parse_source);
  facts.source = source.value_or(Source::run);
  facts.commit = read.optional_string("commit");
  facts.branch = read.optional_string("branch");
  facts.commit_time = read.optional_number("commit_time");
  facts.dirty = read.optional_boolean("dirty").value_or(false);
  facts.time = read.number("time");
  facts.machine = read.optional_string("machine").value_or("");
  facts.weir_version = read.optional_string("weir_version").value_or("");
  const Json& places_json = read.array("places");
  const Json& points = read.array("points");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (places_json.size() > k_most_places || points.size() > k_most_points) {
    return fail(Code::data, "run: {} points in {} places; at most {} are kept", points.size(),
                places_json.size(), k_most_points);
  }
  std::vector<Place> places;
  for (const Json& one : places_json) {
    WEIR_TRY(Place place, place_from(one));
    places.push_back(std::move(place));
  }
  for (const Json& one : points) {
    WEIR_TRY(Point point, point_from(one, places));
    run.points.push_back(std::move(point));
  }
  return run;
}

Result<StoredVerdict> verdict_from(const Json& json) {
  JsonReader read(json, "verdict");
  StoredVerdict verdict;
  verdict.project = read.string("project");
  verdict.id = read.string("id");
  verdict.run = read.optional_string("run").value_or("");
  verdict.commit = read.optional_string("commit");
  verdict.branch = read.optional_string("branch");
  verdict.time = read.number("time");
  verdict.kept_at = read.number("kept_at");
  verdict.outcome = read.string("outcome");
  verdict.text = read.string("text");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return verdict;
}

Result<Acknowledgement> acknowledgement_from(const Json& json) {
  JsonReader read(json, "acknowledgement");
  Acknowledgement one;
  one.project = read.string("project");
  one.cell = read.string("cell");
  one.metric = read.string("metric");
  one.machine = read.optional_string("machine").value_or("");
  one.kind = read.string("kind");
  one.commit = read.optional_string("commit");
  one.time = read.number("time");
  one.reason = read.optional_string("reason").value_or("");
  one.who = read.optional_string("who").value_or("");
  one.at = read.number("at");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return one;
}

Result<Look> look_from(const Json& json) {
  JsonReader read(json, "look");
  Look look;
  look.project = read.string("project");
  look.cell = read.string("cell");
  look.metric = read.string("metric");
  look.machine = read.optional_string("machine").value_or("");
  look.points = read.integer("points");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return look;
}

template <class Value>
Result<void> checked(Result<Value> read, const std::function<Result<void>(Value)>& take) {
  if (!read) return tl::unexpected(std::move(read).error());
  WEIR_CHECK(check(*read));
  return take ? take(*std::move(read)) : Result<void>{};
}

Result<void> read_line(std::string_view line, bool first, const TakeLines& take) {
  WEIR_TRY(const Json json, parse_json(line, k_line_limits));
  JsonReader read(json, "line");
  if (const auto schema = read.optional_string("schema")) {
    if (*schema == k_lines_schema) return {};
    return fail(Code::data, "its schema is \"{}\", not \"{}\"", *schema, k_lines_schema);
  }
  if (first) return fail(Code::data, "the first line should be {}", first_line());
  const std::string type = read.string("type");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (type == "run") return checked(run_from(json), take.run);
  if (type == "verdict") return checked(verdict_from(json), take.verdict);
  if (type == "acknowledgement") return checked(acknowledgement_from(json), take.acknowledgement);
  if (type == "look") return checked(look_from(json), take.look);
  return fail(Code::data, "\"type\" is \"{}\", which this weir does not know", type);
}

}  // namespace

std::string first_line() { return dump_json({{"schema", k_lines_schema}}); }

std::string line_of(const Run& run) {
  const RunFacts& facts = run.facts;
  Json json{{"type", "run"},
            {"project", facts.project},
            {"id", facts.id},
            {"source", to_string(facts.source)},
            {"time", profile::number_to_json(facts.time + 0.0)},
            {"points", Json::array()},
            {"places", Json::array()}};
  put(json, "commit", facts.commit);
  put(json, "branch", facts.branch);
  if (facts.commit_time) json["commit_time"] = profile::number_to_json(*facts.commit_time + 0.0);
  if (facts.dirty) json["dirty"] = true;
  put(json, "machine", facts.machine);
  put(json, "weir_version", facts.weir_version);
  std::map<Place, std::size_t> places;
  for (const Point& point : run.points) {
    const auto [at, fresh] = places.try_emplace(point.place, places.size());
    if (fresh) json["places"].push_back(place_json(point.place));
    json["points"].push_back(point_json(point, at->second));
  }
  return dump_json(json);
}

std::string line_of(const StoredVerdict& verdict) {
  Json json{{"type", "verdict"},
            {"project", verdict.project},
            {"id", verdict.id},
            {"time", profile::number_to_json(verdict.time + 0.0)},
            {"kept_at", profile::number_to_json(verdict.kept_at + 0.0)},
            {"outcome", verdict.outcome},
            {"text", verdict.text}};
  put(json, "run", verdict.run);
  put(json, "commit", verdict.commit);
  put(json, "branch", verdict.branch);
  return dump_json(json);
}

std::string line_of(const Acknowledgement& one) {
  Json json{{"type", "acknowledgement"},
            {"project", one.project},
            {"cell", one.cell},
            {"metric", one.metric},
            {"kind", one.kind},
            {"time", profile::number_to_json(one.time + 0.0)},
            {"at", profile::number_to_json(one.at + 0.0)}};
  put(json, "machine", one.machine);
  put(json, "commit", one.commit);
  put(json, "reason", one.reason);
  put(json, "who", one.who);
  return dump_json(json);
}

std::string line_of(const Look& look) {
  Json json{{"type", "look"},
            {"project", look.project},
            {"cell", look.cell},
            {"metric", look.metric},
            {"points", look.points}};
  put(json, "machine", look.machine);
  return dump_json(json);
}

Result<void> read_lines(std::string_view text, const TakeLines& take) {
  std::size_t number = 0;
  bool first = true;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    const std::string_view line = text.substr(from, to - from);
    from = to + 1;
    ++number;
    if (line.empty()) continue;
    WEIR_CHECK(read_line(line, first, take).map_error([&](Error error) {
      return with_context(fmt::format("line {}", number), std::move(error));
    }));
    first = false;
  }
  return first ? Result<void>(
                     fail(Code::data, "an empty file: the first line should be {}", first_line()))
               : Result<void>{};
}

}  // namespace weir::history
