#include "gate/adapters/chrome_totals.hpp"

#include <algorithm>
#include <cmath>

#include "gate/adapters/printed.hpp"
#include "gate/profile/observed_totals.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_most_async = 100'000;
constexpr std::size_t k_most_nested = 64;  // open under one id: with all ids 100 MB at the most
constexpr std::size_t k_most_counters = 1000;
constexpr std::size_t k_longest_seen = 512;  // bytes of texts together that are kept

std::string async_key(const ChromeEvent& event) {
  return event_text(event.category).value_or("") + "\n" + event_id(event.id) + event_id(event.id2) +
         "\n" + event_text(event.name).value_or("");
}

}  // namespace

bool SeenTexts::join(std::initializer_list<std::string_view> texts) {
  key_.clear();
  for (const std::string_view text : texts) {
    if (key_.size() + text.size() >= k_longest_seen) return false;
    key_.append(text).push_back('\0');  // which no JSON holds
  }
  return true;
}

void SeenTexts::add(std::uint32_t index) {
  if (seen_.size() >= most_) seen_.clear();  // there are many ways to write the same
  seen_.emplace(key_, index);
}

std::uint32_t ChromeRows::of(const ChromeEvent& event, std::string_view otherwise,
                             std::string_view always) {
  return seen_.find({otherwise, always, event.category, event.name, event.shape}, [&] {
    std::string category(always);
    if (always.empty()) category = event_text(event.category).value_or("");
    if (category.empty()) category = otherwise;
    return look_up(event, category);
  });
}

std::pair<std::uint32_t, bool> ChromeRows::look_up(const ChromeEvent& event,
                                                   std::string_view category) {
  auto key = std::make_tuple(std::string(category), event_text(event.name).value_or("(no name)"),
                             event_text(event.shape).value_or(""));
  const auto found = index_.find(key);
  if (found != index_.end()) return {found->second, true};
  const bool own = rows_.size() < most_;
  if (!own) {
    ++lost_;
    key = {"", "(other names)", ""};
    const auto rest = index_.find(key);
    if (rest != index_.end()) return {rest->second, false};
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
  index_.emplace(std::move(key), index);
  return {index, own};
}

void ChromeRows::add_call(std::uint32_t row) { rows_[row].op.calls = *rows_[row].op.calls + 1; }

void ChromeRows::add_time(std::uint32_t row, double micros) {
  profile::ObservedOp& op = rows_[row].op;
  op.seconds = op.seconds.value_or(0) + micros;
  op.least = std::min(op.least.value_or(micros), micros);
  op.most = std::max(op.most.value_or(micros), micros);
}

void ChromeRows::add_own(std::uint32_t row, double micros) {
  profile::ObservedOp& op = rows_[row].op;
  op.own_seconds = op.own_seconds.value_or(0) + micros;
}

void ChromeRows::add_bytes(std::uint32_t row, const ChromeEvent& event) {
  const auto bytes = event_number(event.bytes);
  if (!bytes || *bytes < 0) return;
  rows_[row].bytes += *bytes;
  ++rows_[row].with_bytes;
}

std::vector<profile::ObservedOp> ChromeRows::take() {
  std::vector<profile::ObservedOp> ops;
  for (Row& row : rows_) {
    for (auto* time : {&row.op.seconds, &row.op.least, &row.op.most, &row.op.own_seconds}) {
      if (*time) **time /= 1e6;
    }
    if (row.with_bytes > 0 && row.with_bytes == row.op.calls) {
      row.op.bytes = row.bytes / static_cast<double>(row.with_bytes);
    }
    ops.push_back(std::move(row.op));
  }
  std::stable_sort(ops.begin(), ops.end(),
                   [](const profile::ObservedOp& a, const profile::ObservedOp& b) {
                     return a.seconds.value_or(-1) > b.seconds.value_or(-1);
                   });
  return ops;
}

std::uint16_t ChromeTracks::of(const ChromeEvent& event) {
  return static_cast<std::uint16_t>(
      seen_.find({event.pid, event.tid}, [&] { return std::pair(look_up(event), true); }));
}

std::uint32_t ChromeTracks::look_up(const ChromeEvent& event) {
  auto key = std::make_pair(event_id(event.pid), event_id(event.tid));
  const auto found = index_.find(key);
  if (found != index_.end()) return found->second;
  if (tracks_.size() >= most_) return static_cast<std::uint32_t>(most_ - 1);
  tracks_.push_back({key.first, key.second, ""});
  const auto index = static_cast<std::uint32_t>(tracks_.size() - 1);
  index_.emplace(std::move(key), index);
  return index;
}

void ChromeTracks::take_metadata(const ChromeEvent& event) {
  const auto what = event_text(event.name);
  const auto name = event_text(event.args_name);
  if (!what || !name) return;
  if (*what == "process_name" && process_names_.size() < most_) {
    process_names_[event_id(event.pid)] = *name;
  } else if (*what == "thread_name") {
    tracks_[of(event)].name = *name;
  }
}

std::string ChromeTracks::process(const std::string& pid) const {
  const auto found = process_names_.find(pid);
  return found == process_names_.end() ? fmt::format("process {}", pid) : found->second;
}

std::vector<profile::ObservedTrack> ChromeTracks::take(const NestedSpans& spans) const {
  std::vector<profile::ObservedTrack> tracks;
  const auto& seen = spans.tracks();
  for (std::size_t i = 0; i < tracks_.size() && i < seen.size(); ++i) {
    if (seen[i].events == 0) continue;
    const Track& track = tracks_[i];
    tracks.push_back({process(track.pid), track.name.empty() ? track.tid : track.name,
                      seen[i].events, seen[i].length / 1e6});
  }
  return tracks;
}

void ChromeCounters::add(const ChromeEvent& event, double at) {
  if (event.numbers.empty()) return;
  const std::string name = event_text(event.name).value_or("(no name)");
  const std::string pid = event_id(event.pid);
  for (const ChromeEvent::Number& number : event.numbers) {
    const auto value = event_number(number.value);
    if (!value) continue;
    std::string label = name;
    const std::string series = event_text(number.key).value_or("");
    if (event.args > 1 || series != name) label += "." + shown_text(series, 100);
    const std::string key = pid + "\n" + label;
    auto found = series_.find(key);
    if (found == series_.end()) {
      if (series_.size() >= k_most_counters) continue;
      found = series_.emplace(key, Series{{label, "", "counter", {}}, pid}).first;
    }
    Series& kept = found->second;
    auto& points = kept.counter.points;
    if (kept.seen++ % kept.every != 0) continue;
    points.push_back({at / 1e6, *value});
    if (points.size() <= most_points_) continue;
    std::size_t left = 0;
    for (std::size_t i = 0; i < points.size(); i += 2) points[left++] = points[i];
    points.resize(left);
    kept.every *= 2;
  }
}

std::vector<profile::ObservedCounter> ChromeCounters::take(const ChromeTracks& tracks) {
  std::vector<profile::ObservedCounter> counters;
  for (auto& [key, series] : series_) {
    series.counter.track = tracks.process(series.pid);
    counters.push_back(std::move(series.counter));
  }
  return counters;
}

void ChromeAsync::begin(const ChromeEvent& event, double at, ChromeRows& rows) {
  if (open_.size() >= k_most_async) {
    ++lost_;
    return;
  }
  const std::uint32_t row = rows.of(event, "", "async");
  rows.add_call(row);
  auto& open = open_[async_key(event)];
  if (open.size() < k_most_nested) {
    open.emplace_back(at, row);
  } else {
    ++lost_;
  }
}

void ChromeAsync::end(const ChromeEvent& event, double at, ChromeRows& rows) {
  const auto found = open_.find(async_key(event));
  if (found == open_.end()) {
    ++lost_;
    return;
  }
  const auto [begin, row] = found->second.back();
  rows.add_time(row, std::max(0.0, at - begin));
  // Spans of that kind overlap others by design: they are no part of any sum.
  rows.covers_others(row);
  found->second.pop_back();
  if (found->second.empty()) open_.erase(found);
}

}  // namespace weir::adapters
