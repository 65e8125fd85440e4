#include "gate/adapters/chrome_trace_reader.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "gate/adapters/chrome_spans.hpp"
#include "gate/adapters/readers.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_most_async = 100'000;
constexpr std::size_t k_most_counters = 1000;

// A number, also where it is written as a text (rocprof).
std::optional<double> number_or_text(const Json& event, const char* key) {
  if (const auto value = json_number(event, key)) return value;
  const auto found = event.find(key);
  if (found == event.end() || !found->is_string()) return std::nullopt;
  return text::to_double(found->get_ref<const std::string&>());
}

// Ids of processes, threads and spans are numbers or texts.
std::string id_text(const Json& event, const char* key) {
  const auto found = event.find(key);
  if (found == event.end() || found->is_null()) return "";
  return found->is_string() ? shown_text(found->get_ref<const std::string&>(), 100)
                            : dump_json(*found).substr(0, 100);
}

}  // namespace

class ChromeTraceReader::Reading {
 public:
  explicit Reading(const ChromeTraceLimits& limits)
      : limits_(limits),
        spans_(limits.window, [this](const NestedSpans::Ended& ended) { take_ended(ended); }),
        pieces_({"traceEvents"},
                {[this](std::string_view, const Json& event) { take_event(event); },
                 [this](const Json& members) { take_members(members); }}) {}

  void feed(std::string_view chunk) { pieces_.feed(chunk); }
  Result<profile::Observed> finish();

 private:
  struct Row {
    profile::ObservedOp op;
    std::int64_t with_bytes = 0;
    double bytes = 0;
  };
  struct TrackName {
    std::string pid, tid, name;
  };
  struct Series {
    profile::ObservedCounter counter;
    std::string pid;
    std::size_t every = 1, seen = 0;
  };

  void take_event(const Json& event);
  void take_members(const Json& members);
  void take_metadata(const Json& event);
  void take_whole(const Json& event, double at);
  void take_async(const Json& event, char phase, double at);
  void take_counter(const Json& event, double at);
  void take_ended(const NestedSpans::Ended& ended);
  std::uint32_t row_of(const Json& event, std::string_view category);
  std::uint32_t track_of(const Json& event);
  void add_time(Row& row, double micros);
  void add_bytes(Row& row, const Json& event);
  void add_rows(profile::Observed& observed);
  void add_tracks(profile::Observed& observed);
  void add_doubts(profile::Observed& observed);

  ChromeTraceLimits limits_;
  NestedSpans spans_;
  JsonPieces pieces_;
  std::vector<Row> rows_;
  std::map<std::tuple<std::string, std::string, std::string>, std::uint32_t> row_index_;
  std::vector<TrackName> tracks_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> track_index_;
  std::map<std::string, std::string> process_names_;
  std::map<std::string, std::vector<std::pair<double, std::uint32_t>>> async_;
  std::map<std::string, Series> counters_;
  profile::ObservedContext context_;
  std::optional<std::string> version_;
  std::size_t events_ = 0, unread_ = 0, unfinished_ = 0, async_lost_ = 0, names_lost_ = 0;
};

std::uint32_t ChromeTraceReader::Reading::row_of(const Json& event, std::string_view category) {
  const auto name = json_text(event, "name").value_or("(no name)");
  std::string shape;
  const auto args = event.find("args");
  if (args != event.end() && args->is_object()) shape = json_text(*args, "shape").value_or("");
  auto key = std::make_tuple(std::string(category), name, shape);
  const auto found = row_index_.find(key);
  if (found != row_index_.end()) return found->second;
  if (rows_.size() >= limits_.names) {
    ++names_lost_;
    key = {"", "(other names)", ""};
    const auto rest = row_index_.find(key);
    if (rest != row_index_.end()) return rest->second;
  }
  Row row;
  row.op.op = std::get<1>(key);
  row.op.category = std::get<0>(key);
  row.op.shape = std::get<2>(key);
  row.op.layer = profile::layer_of_node(row.op.op);
  row.op.calls = 0;
  if (category == "kernel") row.op.kernel = row.op.op;
  rows_.push_back(std::move(row));
  const auto index = static_cast<std::uint32_t>(rows_.size() - 1);
  row_index_.emplace(std::move(key), index);
  return index;
}

std::uint32_t ChromeTraceReader::Reading::track_of(const Json& event) {
  auto key = std::make_pair(id_text(event, "pid"), id_text(event, "tid"));
  const auto found = track_index_.find(key);
  if (found != track_index_.end()) return found->second;
  if (tracks_.size() >= limits_.tracks) return static_cast<std::uint32_t>(limits_.tracks - 1);
  tracks_.push_back({key.first, key.second, ""});
  const auto index = static_cast<std::uint32_t>(tracks_.size() - 1);
  track_index_.emplace(std::move(key), index);
  return index;
}

void ChromeTraceReader::Reading::add_time(Row& row, double micros) {
  row.op.seconds = row.op.seconds.value_or(0) + micros;
  row.op.least = std::min(row.op.least.value_or(micros), micros);
  row.op.most = std::max(row.op.most.value_or(micros), micros);
}

void ChromeTraceReader::Reading::add_bytes(Row& row, const Json& event) {
  const auto args = event.find("args");
  if (args == event.end() || !args->is_object()) return;
  const auto bytes = number_or_text(*args, "bytes");
  if (!bytes || *bytes < 0 || !std::isfinite(*bytes)) return;
  row.bytes += *bytes;
  ++row.with_bytes;
}

void ChromeTraceReader::Reading::take_event(const Json& event) {
  if (!event.is_object() || event.empty()) return;  // rocprof ends its list with {}
  const auto phase = json_text(event, "ph");
  if (!phase || phase->size() != 1) {
    ++unread_;
    return;
  }
  const char kind = (*phase)[0];
  if (kind == 'M') return take_metadata(event);
  const auto at = number_or_text(event, "ts");
  if (!at || std::fabs(*at) > 1e18) {
    ++unread_;
    return;
  }
  ++events_;
  // In microseconds, until the end.
  const std::string category = json_text(event, "cat").value_or("");
  if (kind == 'X') {
    take_whole(event, *at);
  } else if (kind == 'B') {
    const std::uint32_t row = row_of(event, category);
    rows_[row].op.calls = *rows_[row].op.calls + 1;
    add_bytes(rows_[row], event);
    spans_.add({*at, 0, row, track_of(event), 0, NestedSpans::Event::Kind::begin});
  } else if (kind == 'E') {
    spans_.add({*at, 0, 0, track_of(event), 0, NestedSpans::Event::Kind::end});
  } else if (kind == 'C') {
    take_counter(event, *at);
  } else if (kind == 'i' || kind == 'I' || kind == 'n') {
    Row& row = rows_[row_of(event, category.empty() ? "instant" : category)];
    row.op.calls = *row.op.calls + 1;
  } else if (kind == 'b' || kind == 'e' || kind == 'S' || kind == 'F') {
    take_async(event, kind, *at);
  }  // flows, objects, clocks and samples say nothing of time taken
}

void ChromeTraceReader::Reading::take_whole(const Json& event, double at) {
  const std::uint32_t index = row_of(event, json_text(event, "cat").value_or(""));
  Row& row = rows_[index];
  row.op.calls = *row.op.calls + 1;
  add_bytes(row, event);
  const auto length = number_or_text(event, "dur");
  if (!length || *length < 0 || *length > 1e18) {
    ++unfinished_;
    return;
  }
  add_time(row, *length);
  spans_.add({at, *length, index, track_of(event), 0, NestedSpans::Event::Kind::whole});
}

// A span that begins and ends anywhere: id, category and (of the older form) name tell which.
void ChromeTraceReader::Reading::take_async(const Json& event, char phase, double at) {
  std::string key = json_text(event, "cat").value_or("") + "\n" + id_text(event, "id") +
                    id_text(event, "id2") + "\n" + json_text(event, "name").value_or("");
  if (phase == 'b' || phase == 'S') {
    if (async_.size() >= k_most_async) {
      ++async_lost_;
      return;
    }
    const std::uint32_t row = row_of(event, "async");
    rows_[row].op.calls = *rows_[row].op.calls + 1;
    auto& open = async_[std::move(key)];
    if (open.size() < 1000) open.emplace_back(at, row);
    return;
  }
  const auto found = async_.find(key);
  if (found == async_.end()) {
    ++async_lost_;
    return;
  }
  const auto [begin, row] = found->second.back();
  add_time(rows_[row], std::max(0.0, at - begin));
  // Spans of that kind overlap others by design: they are no part of any sum.
  rows_[row].op.covers_others = true;
  found->second.pop_back();
  if (found->second.empty()) async_.erase(found);
}

void ChromeTraceReader::Reading::take_counter(const Json& event, double at) {
  const auto args = event.find("args");
  if (args == event.end() || !args->is_object()) return;
  const std::string name = json_text(event, "name").value_or("(no name)");
  const std::string pid = id_text(event, "pid");
  for (const auto& [series, value] : args->items()) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) continue;
    std::string label = name;
    if (args->size() > 1 || series != name) label += "." + shown_text(series, 100);
    const std::string key = pid + "\n" + label;
    auto found = counters_.find(key);
    if (found == counters_.end()) {
      if (counters_.size() >= k_most_counters) continue;
      found = counters_.emplace(key, Series{{label, "", "counter", {}}, pid}).first;
    }
    Series& kept = found->second;
    auto& points = kept.counter.points;
    if (kept.seen++ % kept.every != 0) continue;
    points.push_back({at / 1e6, value.get<double>()});
    if (points.size() <= limits_.points) continue;
    std::size_t left = 0;
    for (std::size_t i = 0; i < points.size(); i += 2) points[left++] = points[i];
    points.resize(left);
    kept.every *= 2;
  }
}

void ChromeTraceReader::Reading::take_metadata(const Json& event) {
  const auto args = event.find("args");
  if (args == event.end() || !args->is_object()) return;
  const auto what = json_text(event, "name");
  const auto name = json_text(*args, "name");
  if (!what || !name) return;
  if (*what == "process_name" && process_names_.size() < limits_.tracks) {
    process_names_[id_text(event, "pid")] = *name;
  } else if (*what == "thread_name") {
    tracks_[track_of(event)].name = *name;
  }
}

void ChromeTraceReader::Reading::take_members(const Json& members) {
  if (const auto version = members.find("schemaVersion");
      version != members.end() && version->is_number()) {
    version_ = dump_json(*version);
  }
  const auto devices = members.find("deviceProperties");
  if (devices != members.end() && devices->is_array() && !devices->empty() &&
      devices->front().is_object()) {
    context_.device = json_text(devices->front(), "name");
  }
  for (const auto& [key, value] : members.items()) {
    if (context_.facts.size() >= 64) break;
    if (!value.is_string() && !value.is_number()) continue;
    context_.facts[shown_text(key, 100)] =
        value.is_string() ? shown_text(value.get_ref<const std::string&>()) : dump_json(value);
  }
  if (const auto name = json_text(members, "traceName")) context_.places.push_back(*name);
}

void ChromeTraceReader::Reading::take_ended(const NestedSpans::Ended& ended) {
  Row& row = rows_[ended.row];
  if (ended.from_begin) add_time(row, ended.length);
  row.op.own_seconds = row.op.own_seconds.value_or(0) + ended.own;
}

void ChromeTraceReader::Reading::add_rows(profile::Observed& observed) {
  for (Row& row : rows_) {
    for (auto* time : {&row.op.seconds, &row.op.least, &row.op.most, &row.op.own_seconds}) {
      if (*time) **time /= 1e6;
    }
    if (row.with_bytes > 0 && row.with_bytes == row.op.calls) {
      row.op.bytes = row.bytes / static_cast<double>(row.with_bytes);
    }
    observed.ops.push_back(std::move(row.op));
  }
  std::stable_sort(observed.ops.begin(), observed.ops.end(),
                   [](const profile::ObservedOp& a, const profile::ObservedOp& b) {
                     return a.seconds.value_or(-1) > b.seconds.value_or(-1);
                   });
}

void ChromeTraceReader::Reading::add_tracks(profile::Observed& observed) {
  const auto process = [&](const std::string& pid) {
    const auto found = process_names_.find(pid);
    return found == process_names_.end() ? fmt::format("process {}", pid) : found->second;
  };
  const auto& seen = spans_.tracks();
  for (std::size_t i = 0; i < tracks_.size() && i < seen.size(); ++i) {
    if (seen[i].events == 0) continue;
    const TrackName& track = tracks_[i];
    observed.tracks.push_back({process(track.pid), track.name.empty() ? track.tid : track.name,
                               seen[i].events, seen[i].length / 1e6});
  }
  for (auto& [key, series] : counters_) {
    series.counter.track = process(series.pid);
    observed.counters.push_back(std::move(series.counter));
  }
}

void ChromeTraceReader::Reading::add_doubts(profile::Observed& observed) {
  const auto doubt = [&](std::size_t count, const char* what) {
    if (count > 0) add_warning(observed, fmt::format("{} {}", count, what));
  };
  doubt(unread_, "events have no phase or no time and were left out");
  doubt(unfinished_, "events have no duration: they were not finished");
  doubt(spans_.unbalanced() + async_lost_ + async_.size(),
        "begins and ends do not go together: their time is not known");
  doubt(spans_.disordered(),
        "events are too far out of order: own times around them are not right");
  doubt(names_lost_, "events have names beyond the most that are kept: \"(other names)\"");
  const JsonPieceLosses& losses = pieces_.losses();
  doubt(losses.broken, "parts are no JSON and were left out");
  doubt(losses.too_long, "parts are too long or too deep and were left out");
}

Result<profile::Observed> ChromeTraceReader::Reading::finish() {
  pieces_.finish();
  spans_.finish();
  profile::Observed observed;
  observed.format = "chrome-trace";
  observed.version = version_;
  observed.context = std::move(context_);
  if (events_ == 0) return nothing_found("chrome-trace");
  add_rows(observed);
  add_tracks(observed);
  if (pieces_.losses().cut) mark_truncated(observed);
  add_doubts(observed);
  return observed;
}

ChromeTraceReader::ChromeTraceReader(const ChromeTraceLimits& limits)
    : reading_(std::make_unique<Reading>(limits)) {}
ChromeTraceReader::~ChromeTraceReader() = default;
ChromeTraceReader::ChromeTraceReader(ChromeTraceReader&&) noexcept = default;
ChromeTraceReader& ChromeTraceReader::operator=(ChromeTraceReader&&) noexcept = default;

void ChromeTraceReader::feed(std::string_view chunk) { reading_->feed(chunk); }

Result<profile::Observed> ChromeTraceReader::finish() { return reading_->finish(); }

namespace chrome {

int recognises(const Printed& printed) {
  if (printed.holds("\"traceEvents\"")) return 85;
  const std::string_view text = text::trim(printed.document().out);
  const bool list = text.starts_with('[') && printed.holds("\"ph\"");
  return list && printed.holds("\"ts\"") ? 60 : 0;
}

Result<profile::Observed> read(const Printed& printed) {
  ChromeTraceReader reader;
  reader.feed(printed.document().out);
  return reader.finish();
}

}  // namespace chrome

}  // namespace weir::adapters
