// Inside of the reader of Chrome traces, for chrome_trace_reader.cpp only: totals of a trace as
// rows by category, name and shape, tracks, and counters. Sizes are limited; events beyond are
// counted. Times are in microseconds until they are handed out. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "gate/adapters/chrome_event.hpp"
#include "gate/adapters/chrome_spans.hpp"
#include "gate/adapters/format.hpp"
#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"

namespace weir::adapters {

constexpr std::size_t k_max_async = 100'000;
constexpr std::size_t k_max_nested = 64;  // open under one id: with all ids 100 MB at the most
constexpr std::size_t k_max_counters = 1000;

inline bool moves_data(std::string_view category) {
  const std::string name = text::lower(category);
  for (const char* part : {"copy", "memcpy", "memset"}) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

// "Vulkan0" of "GPU: Vulkan0".
inline std::string_view backend_name(std::string_view process) {
  for (const std::string_view before : {"GPU: ", "CPU: "}) {
    if (process.starts_with(before)) return process.substr(before.size());
  }
  return "";
}

inline std::string async_key(const ChromeEvent& event) {
  return event_text(event.category).value_or("") + "\n" + event_id(event.id) + event_id(event.id2) +
         "\n" + event_text(event.name).value_or("");
}

// Maps the JSON texts of some values to an index, which makes the second event of a name quick.
// Its size is limited; other texts are looked up by their decoded values. Only hashes of texts are
// kept: keeping and comparing texts would take most of the time of a large trace, as its thousands
// of names come in no order. Among 10 000 names two share a hash in 1 of 10^11 traces. A trace that
// is built to collide only shows two of its own names as one.
class TextIndex {
 public:
  explicit TextIndex(std::size_t most) : most_(most) {}

  // Returns the index of the texts. `look_up` finds it for new texts: it returns the index, and
  // true if it may be kept.
  template <class LookUp>
  std::uint32_t find(std::initializer_list<std::string_view> texts, const LookUp& look_up) {
    std::uint64_t hash = 0;
    for (const std::string_view text : texts) {
      ++hash;  // an absent text counts as well
      if (!text.empty()) hash = hash_number(text, hash);
    }
    if (hash == 0) hash = 1;  // 0 is a free slot
    for (std::size_t at = hash; !slots_.empty(); ++at) {
      const Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.hash == hash) return slot.index;
      if (slot.hash == 0) break;
    }
    const auto [index, keep] = look_up();
    if (keep) add({hash, index});
    return index;
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;  // 0: free
    std::uint32_t index = 0;
  };
  void add(const Slot& slot) {
    if (used_ >= most_) {  // there are many ways to write the same text
      slots_.clear();
      used_ = 0;
    }
    if (2 * used_ >= slots_.size()) {
      std::vector<Slot> old(std::max<std::size_t>(64, 2 * slots_.size()));
      old.swap(slots_);
      for (const Slot& entry : old) {
        if (entry.hash != 0) place(entry);
      }
    }
    place(slot);
    ++used_;
  }
  void place(const Slot& slot) {
    std::size_t at = slot.hash;
    while (slots_[at & (slots_.size() - 1)].hash != 0) ++at;
    slots_[at & (slots_.size() - 1)] = slot;
  }

  std::size_t most_, used_ = 0;
  std::vector<Slot> slots_;  // a power of two of them, at most half used
};

class ChromeTracks {
 public:
  explicit ChromeTracks(std::size_t most) : most_(most), by_json_(2 * most) {}

  std::uint16_t track_number(const ChromeEvent& event) {
    return static_cast<std::uint16_t>(
        by_json_.find({event.pid, event.tid}, [&] { return std::pair(find_or_add(event), true); }));
  }
  // An event of phase M.
  void read_metadata(const ChromeEvent& event) {
    const auto what = event_text(event.name);
    const auto name = event_text(event.args_name);
    if (!what || !name) return;
    if (*what == "process_name" && process_names_.size() < most_) {
      process_names_[event_id(event.pid)] = *name;
      has_backends_ = has_backends_ || !backend_name(*name).empty();
    } else if (*what == "thread_name") {
      tracks_[track_number(event)].name = *name;
    }
  }
  [[nodiscard]] std::string process(const std::string& pid) const {
    return look_up(process_names_, pid, "process " + pid);
  }
  // ggml's profiler has a process a backend, named before its events: "GPU: Vulkan0", "CPU: CPU".
  [[nodiscard]] bool has_backends() const { return has_backends_; }
  // The backend's name; "" if the process is no backend.
  [[nodiscard]] std::string backend(const std::string& pid) const {
    return std::string(backend_name(look_up(process_names_, pid, "")));
  }
  // Returns all tracks by their numbers.
  [[nodiscard]] std::vector<observed::ObservedMoments::Track> names() const {
    std::vector<observed::ObservedMoments::Track> names;
    for (const Track& track : tracks_) {
      names.push_back({process(track.pid), track.name.empty() ? track.tid : track.name});
    }
    return names;
  }
  // Returns all tracks with the totals of their spans.
  [[nodiscard]] std::vector<ObservedTrack> take(const NestedSpans& spans) const {
    std::vector<ObservedTrack> tracks;
    const auto all = names();
    for (const NestedSpans::Track& nested : spans.tracks()) {
      if (nested.events == 0) continue;
      const auto& [process, name] = all[nested.number];
      tracks.push_back({process, name, nested.events, nested.length / 1e6});
    }
    return tracks;
  }

 private:
  struct Track {
    std::string pid, tid, name;
  };
  std::uint32_t find_or_add(const ChromeEvent& event) {
    auto key = std::make_pair(event_id(event.pid), event_id(event.tid));
    if (const auto* existing = look_up(index_, key)) return *existing;
    if (tracks_.size() >= most_) return static_cast<std::uint32_t>(most_ - 1);
    tracks_.push_back({key.first, key.second, ""});
    const auto index = static_cast<std::uint32_t>(tracks_.size() - 1);
    index_.emplace(std::move(key), index);
    return index;
  }

  std::size_t most_;
  TextIndex by_json_;
  std::vector<Track> tracks_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> index_;
  std::map<std::string, std::string> process_names_;
  bool has_backends_ = false;
};

class ChromeRows {
 public:
  explicit ChromeRows(std::size_t most) : most_(most), by_json_(2 * most), by_text_(most + 1) {}

  // Returns the row of an event. `fallback` is the category of an event without one;
  // `category_for_all` replaces every category. `backends` is set if the trace's processes are
  // backends.
  std::uint32_t row_number(const ChromeEvent& event, std::string_view fallback = "",
                           std::string_view category_for_all = "",
                           const ChromeTracks* backends = nullptr) {
    const std::string_view of_pid = backends != nullptr ? event.pid : std::string_view();
    const auto row = by_json_.find(
        {fallback, category_for_all, event.category, event.name, event.shape, of_pid}, [&] {
          std::string category(category_for_all);
          if (category_for_all.empty()) category = event_text(event.category).value_or("");
          if (category.empty()) category = fallback;
          return find_or_add(event, category,
                             backends != nullptr ? backends->backend(event_id(event.pid)) : "");
        });
    __builtin_prefetch(&sums_[row], 1);  // thousands of them, in no order: on its way until needed
    return row;
  }
  void add_call(std::uint32_t row) { ++sums_[row].calls; }
  void add_time(std::uint32_t row, double micros) {
    Sums& sums = sums_[row];
    sums.seconds += micros;
    sums.least = std::min(sums.least, micros);
    sums.most = std::max(sums.most, micros);
  }
  void add_own(std::uint32_t row, double micros) {
    sums_[row].own += micros;
    sums_[row].has_own = true;
  }
  // Adds the bytes of an event that copies or sets memory. For other events "bytes" may be any
  // size: ggml's is that of the result only, which is no traffic.
  void add_bytes(std::uint32_t row, const ChromeEvent& event) {
    if (!sums_[row].moves) return;
    const auto bytes = event_number(event.bytes);
    if (!bytes || *bytes < 0) return;
    sums_[row].bytes += *bytes;
    ++sums_[row].with_bytes;
  }
  void includes_other_rows(std::uint32_t row) { ops_[row].includes_other_rows = true; }
  [[nodiscard]] const std::vector<ObservedOp>& ops() const { return ops_; }  // until then
  // Number of events in the row "(other names)".
  [[nodiscard]] std::size_t lost() const { return lost_; }
  // Returns the rows, most time first. May be called once.
  [[nodiscard]] std::vector<ObservedOp> take() {
    for (std::size_t row = 0; row < ops_.size(); ++row) {
      ObservedOp& op = ops_[row];
      const Sums& sums = sums_[row];
      op.calls = sums.calls;
      if (sums.least <= sums.most) {
        op.seconds = sums.seconds / 1e6;
        op.min_seconds = sums.least / 1e6;
        op.max_seconds = sums.most / 1e6;
      }
      if (sums.has_own) op.seconds_without_nested = sums.own / 1e6;
      if (sums.with_bytes > 0 && sums.with_bytes == sums.calls) {
        op.bytes = sums.bytes / static_cast<double>(sums.with_bytes);
      }
    }
    // Sort places rather than rows, which are large.
    std::vector<std::uint32_t> places(ops_.size());
    std::iota(places.begin(), places.end(), 0U);
    std::ranges::stable_sort(places, std::greater{},
                             [&](std::uint32_t place) { return ops_[place].seconds.value_or(-1); });
    std::vector<ObservedOp> sorted;
    sorted.reserve(ops_.size());
    for (const std::uint32_t place : places) sorted.push_back(std::move(ops_[place]));
    ops_.clear();
    return sorted;
  }

 private:
  // The numbers that every event changes, one cache line per row.
  struct alignas(64) Sums {
    std::int64_t calls = 0, with_bytes = 0;
    double bytes = 0, seconds = 0, own = 0;
    double least = std::numeric_limits<double>::infinity(), most = -least;  // so while none
    bool has_own = false, moves = false;
  };
  // Returns the event's row, and false if it is the row of other names.
  std::pair<std::uint32_t, bool> find_or_add(const ChromeEvent& event, std::string_view category,
                                             std::string backend) {
    ObservedOp op;
    op.op = event_text(event.name).value_or("(no name)");
    op.category = category;
    op.shape = event_text(event.shape).value_or("");
    op.backend = std::move(backend);
    bool own = true;
    const std::uint32_t row = by_text_.find({op.category, op.op, op.shape, op.backend}, [&] {
      own = ops_.size() < most_;
      return std::pair(own ? add(std::move(op)) : other_names(), own);
    });
    lost_ += own ? 0 : 1;
    return {row, own};
  }
  std::uint32_t other_names() {
    if (!other_names_) {
      ObservedOp op;
      op.op = "(other names)";
      other_names_ = add(std::move(op));
    }
    return *other_names_;
  }
  std::uint32_t add(ObservedOp op) {
    op.layer = observed::layer_of_node(op.op);
    if (op.category == "kernel") op.kernel = op.op;
    sums_.emplace_back();
    sums_.back().moves = moves_data(op.category);
    ops_.push_back(std::move(op));
    return static_cast<std::uint32_t>(ops_.size() - 1);
  }

  std::size_t most_;
  TextIndex by_json_,
      by_text_;  // by their JSON, and by what that says: one name may be written in many ways
  std::vector<ObservedOp> ops_;
  std::vector<Sums> sums_;  // by row
  std::optional<std::uint32_t> other_names_;
  std::size_t lost_ = 0;
};

class ChromeCounters {
 public:
  explicit ChromeCounters(std::size_t most_points) : most_points_(most_points) {}

  // An event of phase C.
  void add(const ChromeEvent& event, double at) {
    for (const ChromeEvent::Number& number : event.numbers) {
      const auto value = event_number(number.value);
      Series* series = value ? find_series(event, number) : nullptr;
      if (series == nullptr) continue;
      const bool is_kept = series->events % series->every == 0;
      ++series->events;
      if (!is_kept) continue;
      auto& points = series->counter.points;
      points.push_back({at / 1e6, *value});
      if (points.size() <= most_points_) continue;
      std::size_t kept_count = 0;
      for (std::size_t i = 0; i < points.size(); i += 2) {
        points[kept_count] = points[i];
        ++kept_count;
      }
      points.resize(kept_count);
      series->every *= 2;
    }
  }
  // once
  [[nodiscard]] std::vector<ObservedCounter> take(const ChromeTracks& tracks) {
    std::vector<ObservedCounter> counters;
    for (const auto& [key, index] : index_) {
      Series& series = series_[index];
      series.counter.track = tracks.process(series.pid);
      counters.push_back(std::move(series.counter));
    }
    return counters;
  }

 private:
  struct Series {
    ObservedCounter counter;
    std::string pid;
    std::size_t every = 1, events = 0;  // every so many events one is kept
  };
  // Returns the series of a number of an event; null if there are too many series.
  Series* find_series(const ChromeEvent& event, const ChromeEvent::Number& number) {
    const std::string_view several = event.args > 1 ? "several" : "";
    const std::uint32_t index = by_json_.find({event.pid, event.name, number.key, several}, [&] {
      const std::uint32_t position = find_or_add(event, number);
      return std::pair(position, position < series_.size());
    });
    return index < series_.size() ? &series_[index] : nullptr;
  }
  std::uint32_t find_or_add(const ChromeEvent& event, const ChromeEvent::Number& number) {
    const std::string name = event_text(event.name).value_or("(no name)");
    std::string label = name;
    const std::string series = event_text(number.key).value_or("");
    if (event.args > 1 || series != name) label += "." + display_text(series, 100);
    const std::string pid = event_id(event.pid);
    const std::string key = pid + "\n" + label;
    if (const auto* existing = look_up(index_, key)) return *existing;
    const auto next = static_cast<std::uint32_t>(series_.size());
    if (next >= k_max_counters) return next;
    series_.push_back({{label, "", "counter", {}}, pid});
    index_.emplace(key, next);
    return next;
  }

  std::size_t most_points_;
  std::vector<Series> series_;
  std::map<std::string, std::uint32_t> index_;
  TextIndex by_json_{10'000};
};

// Spans that begin and end anywhere.
class ChromeAsync {
 public:
  void begin(const ChromeEvent& event, double at, ChromeRows& rows) {
    if (open_.size() >= k_max_async) {
      ++lost_;
      return;
    }
    const std::uint32_t row = rows.row_number(event, "", "async");
    rows.add_call(row);
    auto& open = open_[async_key(event)];
    if (open.size() < k_max_nested) {
      open.emplace_back(at, row);
    } else {
      ++lost_;
    }
  }
  // Returns the begin and the row of the span that ended; nothing if none was open.
  std::optional<std::pair<double, std::uint32_t>> end(const ChromeEvent& event, double at,
                                                      ChromeRows& rows) {
    const auto match = open_.find(async_key(event));
    if (match == open_.end()) {
      ++lost_;
      return std::nullopt;
    }
    const auto [begin, row] = match->second.back();
    rows.add_time(row, std::max(0.0, at - begin));
    // Such spans overlap others by design, so they are no part of any sum.
    rows.includes_other_rows(row);
    match->second.pop_back();
    if (match->second.empty()) open_.erase(match);
    return std::pair(begin, row);
  }
  // Number of begins and ends without a partner.
  [[nodiscard]] std::size_t unmatched() const { return lost_ + open_.size(); }

 private:
  std::map<std::string, std::vector<std::pair<double, std::uint32_t>>> open_;
  std::size_t lost_ = 0;
};

}  // namespace weir::adapters
