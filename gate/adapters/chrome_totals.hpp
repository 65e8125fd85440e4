// Inside of the reader of Chrome traces, for chrome_trace_reader.cpp alone: what a trace adds up
// to, rows by category, name and shape, tracks, counters. Bounded; what goes beyond is counted.
// Times are in microseconds until they are handed out. Pure.
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

constexpr std::size_t k_most_async = 100'000;
constexpr std::size_t k_most_nested = 64;  // open under one id: with all ids 100 MB at the most
constexpr std::size_t k_most_counters = 1000;

inline bool moves_data(std::string_view category) {
  const std::string name = text::lower(category);
  for (const char* part : {"copy", "memcpy", "memset"}) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

// "Vulkan0" of "GPU: Vulkan0".
inline std::string_view backend_of(std::string_view process) {
  for (const std::string_view before : {"GPU: ", "CPU: "}) {
    if (process.starts_with(before)) return process.substr(before.size());
  }
  return "";
}

inline std::string async_key(const ChromeEvent& event) {
  return event_text(event.category).value_or("") + "\n" + event_id(event.id) + event_id(event.id2) +
         "\n" + event_text(event.name).value_or("");
}

// From the JSON text of some values to an index: what makes the second event of a name quick.
// Bounded; what it does not hold is looked up by what the values say. Texts are known by their
// hash alone: keeping and comparing them takes most of the time of a large trace, as its thousands
// of names come in no order. Among 50 000 names two share one by chance in 1 of 10^10 traces, and
// a trace that was made so shows two of its own names as one.
class SeenTexts {
 public:
  explicit SeenTexts(std::size_t most) : most_(most) {}

  // `look_up` answers with the index, and whether it may be kept, where the texts were not seen.
  template <class LookUp>
  std::uint32_t find(std::initializer_list<std::string_view> texts, const LookUp& look_up) {
    std::uint64_t hash = 0;
    for (const std::string_view text : texts) {
      ++hash;  // an absent one tells as well
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
    if (used_ >= most_) {  // there are many ways to write the same
      slots_.clear();
      used_ = 0;
    }
    if (2 * used_ >= slots_.size()) {
      std::vector<Slot> old(std::max<std::size_t>(64, 2 * slots_.size()));
      old.swap(slots_);
      for (const Slot& known : old) {
        if (known.hash != 0) place(known);
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
  explicit ChromeTracks(std::size_t most) : most_(most), seen_(2 * most) {}

  std::uint16_t of(const ChromeEvent& event) {
    return static_cast<std::uint16_t>(
        seen_.find({event.pid, event.tid}, [&] { return std::pair(index_of(event), true); }));
  }
  // An event of phase M.
  void take_metadata(const ChromeEvent& event) {
    const auto what = event_text(event.name);
    const auto name = event_text(event.args_name);
    if (!what || !name) return;
    if (*what == "process_name" && process_names_.size() < most_) {
      process_names_[event_id(event.pid)] = *name;
      has_backends_ = has_backends_ || !backend_of(*name).empty();
    } else if (*what == "thread_name") {
      tracks_[of(event)].name = *name;
    }
  }
  [[nodiscard]] std::string process(const std::string& pid) const {
    return look_up(process_names_, pid, "process " + pid);
  }
  // ggml's profiler has a process a backend, named before its events: "GPU: Vulkan0", "CPU: CPU".
  [[nodiscard]] bool has_backends() const { return has_backends_; }
  // "" where it is none
  [[nodiscard]] std::string backend(const std::string& pid) const {
    return std::string(backend_of(look_up(process_names_, pid, "")));
  }
  // All of them, by their numbers.
  [[nodiscard]] std::vector<observed::ObservedMoments::Track> names() const {
    std::vector<observed::ObservedMoments::Track> names;
    for (const Track& track : tracks_) {
      names.push_back({process(track.pid), track.name.empty() ? track.tid : track.name});
    }
    return names;
  }
  // With what the spans of each added up to.
  [[nodiscard]] std::vector<ObservedTrack> take(const NestedSpans& spans) const {
    std::vector<ObservedTrack> tracks;
    const auto all = names();
    for (const NestedSpans::Track& seen : spans.tracks()) {
      if (seen.events == 0) continue;
      const auto& [process, name] = all[seen.number];
      tracks.push_back({process, name, seen.events, seen.length / 1e6});
    }
    return tracks;
  }

 private:
  struct Track {
    std::string pid, tid, name;
  };
  std::uint32_t index_of(const ChromeEvent& event) {
    auto key = std::make_pair(event_id(event.pid), event_id(event.tid));
    if (const auto* known = look_up(index_, key)) return *known;
    if (tracks_.size() >= most_) return static_cast<std::uint32_t>(most_ - 1);
    tracks_.push_back({key.first, key.second, ""});
    const auto index = static_cast<std::uint32_t>(tracks_.size() - 1);
    index_.emplace(std::move(key), index);
    return index;
  }

  std::size_t most_;
  SeenTexts seen_;
  std::vector<Track> tracks_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> index_;
  std::map<std::string, std::string> process_names_;
  bool has_backends_ = false;
};

class ChromeRows {
 public:
  explicit ChromeRows(std::size_t most) : most_(most), seen_(2 * most), said_(most + 1) {}

  // The row of an event; `otherwise` is the category where it has none, or `always` that of all.
  // `backends`: where the trace's processes are backends, those.
  std::uint32_t of(const ChromeEvent& event, std::string_view otherwise = "",
                   std::string_view always = "", const ChromeTracks* backends = nullptr) {
    const std::string_view of_pid = backends != nullptr ? event.pid : std::string_view();
    const auto row =
        seen_.find({otherwise, always, event.category, event.name, event.shape, of_pid}, [&] {
          std::string category(always);
          if (always.empty()) category = event_text(event.category).value_or("");
          if (category.empty()) category = otherwise;
          return index_of(event, category,
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
  // Of what copies or sets memory. Of anything else "bytes" may be any size of it: ggml's is that
  // of the result alone, which is no traffic.
  void add_bytes(std::uint32_t row, const ChromeEvent& event) {
    if (!sums_[row].moves) return;
    const auto bytes = event_number(event.bytes);
    if (!bytes || *bytes < 0) return;
    sums_[row].bytes += *bytes;
    ++sums_[row].with_bytes;
  }
  void covers_others(std::uint32_t row) { ops_[row].covers_others = true; }
  [[nodiscard]] const std::vector<ObservedOp>& ops() const { return ops_; }  // until then
  // Events whose names are among "(other names)".
  [[nodiscard]] std::size_t lost() const { return lost_; }
  // Most time first; once.
  [[nodiscard]] std::vector<ObservedOp> take() {
    for (std::size_t row = 0; row < ops_.size(); ++row) {
      ObservedOp& op = ops_[row];
      const Sums& sums = sums_[row];
      op.calls = sums.calls;
      if (sums.least <= sums.most) {
        op.seconds = sums.seconds / 1e6;
        op.least = sums.least / 1e6;
        op.most = sums.most / 1e6;
      }
      if (sums.has_own) op.own_seconds = sums.own / 1e6;
      if (sums.with_bytes > 0 && sums.with_bytes == sums.calls) {
        op.bytes = sums.bytes / static_cast<double>(sums.with_bytes);
      }
    }
    // Their places are sorted, not the rows: those are large.
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
  // What every event adds to, apart from what is said once: one line of the cache a row.
  struct alignas(64) Sums {
    std::int64_t calls = 0, with_bytes = 0;
    double bytes = 0, seconds = 0, own = 0;
    double least = std::numeric_limits<double>::infinity(), most = -least;  // so while none
    bool has_own = false, moves = false;
  };
  // Whether it is the event's own row, not that of other names.
  std::pair<std::uint32_t, bool> index_of(const ChromeEvent& event, std::string_view category,
                                          std::string backend) {
    ObservedOp op;
    op.op = event_text(event.name).value_or("(no name)");
    op.category = category;
    op.shape = event_text(event.shape).value_or("");
    op.backend = std::move(backend);
    bool own = true;
    const std::uint32_t row = said_.find({op.category, op.op, op.shape, op.backend}, [&] {
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
  SeenTexts seen_,
      said_;  // by their JSON, and by what that says: one name may be written in many ways
  std::vector<ObservedOp> ops_;
  std::vector<Sums> sums_;  // of each of them
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
      Series* kept = value ? series_of(event, number) : nullptr;
      if (kept == nullptr || kept->seen++ % kept->every != 0) continue;
      auto& points = kept->counter.points;
      points.push_back({at / 1e6, *value});
      if (points.size() <= most_points_) continue;
      std::size_t left = 0;
      for (std::size_t i = 0; i < points.size(); i += 2) points[left++] = points[i];
      points.resize(left);
      kept->every *= 2;
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
    std::size_t every = 1, seen = 0;
  };
  // Of a number of an event; nothing where there are too many series.
  Series* series_of(const ChromeEvent& event, const ChromeEvent::Number& number) {
    const std::string_view several = event.args > 1 ? "several" : "";
    const std::uint32_t index = seen_.find({event.pid, event.name, number.key, several}, [&] {
      const std::uint32_t found = index_of(event, number);
      return std::pair(found, found < series_.size());
    });
    return index < series_.size() ? &series_[index] : nullptr;
  }
  std::uint32_t index_of(const ChromeEvent& event, const ChromeEvent::Number& number) {
    const std::string name = event_text(event.name).value_or("(no name)");
    std::string label = name;
    const std::string series = event_text(number.key).value_or("");
    if (event.args > 1 || series != name) label += "." + shown_text(series, 100);
    const std::string pid = event_id(event.pid);
    const std::string key = pid + "\n" + label;
    if (const auto* known = look_up(index_, key)) return *known;
    const auto next = static_cast<std::uint32_t>(series_.size());
    if (next >= k_most_counters) return next;
    series_.push_back({{label, "", "counter", {}}, pid});
    index_.emplace(key, next);
    return next;
  }

  std::size_t most_points_;
  std::vector<Series> series_;
  std::map<std::string, std::uint32_t> index_;
  SeenTexts seen_{10'000};
};

// Spans that begin and end anywhere.
class ChromeAsync {
 public:
  void begin(const ChromeEvent& event, double at, ChromeRows& rows) {
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
  // The row of what ended, and when it began.
  std::optional<std::pair<double, std::uint32_t>> end(const ChromeEvent& event, double at,
                                                      ChromeRows& rows) {
    const auto found = open_.find(async_key(event));
    if (found == open_.end()) {
      ++lost_;
      return std::nullopt;
    }
    const auto [begin, row] = found->second.back();
    rows.add_time(row, std::max(0.0, at - begin));
    // Spans of that kind overlap others by design: they are no part of any sum.
    rows.covers_others(row);
    found->second.pop_back();
    if (found->second.empty()) open_.erase(found);
    return std::pair(begin, row);
  }
  // Begins and ends that found no other.
  [[nodiscard]] std::size_t alone() const { return lost_ + open_.size(); }

 private:
  std::map<std::string, std::vector<std::pair<double, std::uint32_t>>> open_;
  std::size_t lost_ = 0;
};

}  // namespace weir::adapters
