// Makes the page of what an engine or a profiler reported: facts, tables, tracks and counters.
#include "gate/report/observed_page.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/hiding.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/observed_tables.hpp"
#include "gate/report/timeline_document.hpp"

namespace weir::report {
namespace {

using observed::Observed;
using observed::ObservedMoments;
using Kind = TimelineDocument::Kind;

constexpr std::size_t k_max_facts = 64;

// Adds engine, model, device, command, token counts and format to the facts, and errors to the
// warnings.
void add_facts(const Observed& observed, PageFacts& page) {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto& context = observed.context;
  const auto add_if_known = [&](const char* name, const std::optional<std::string>& value) {
    if (!value.value_or("").empty()) facts.emplace_back(name, *value);
  };
  add_if_known("engine", context.engine);
  add_if_known("build", context.engine_build);
  add_if_known("model", context.model);
  add_if_known("backend", context.backend);
  add_if_known("device", context.device);
  add_if_known("command", context.command);
  const auto add_count_if_known = [&](const char* name, const std::optional<std::int64_t>& value) {
    if (value) facts.emplace_back(name, fmt::format("{}", *value));
  };
  add_count_if_known("tokens of the prompt", observed.prompt_tokens);
  add_count_if_known("of those from a cache", observed.cached_tokens);
  add_count_if_known("tokens generated", observed.generated_tokens);
  for (const auto& [name, value] : context.facts) {
    if (facts.size() >= k_max_facts) break;
    facts.emplace_back(name, value);
  }
  facts.emplace_back("format", observed.version
                                   ? fmt::format("{} {}", observed.format, *observed.version)
                                   : observed.format);
  page.facts.insert(page.facts.begin(), facts.begin(), facts.end());
  for (const std::string& error : observed.errors) page.warnings.push_back("error: " + error);
  page.warnings.insert(page.warnings.end(), observed.warnings.begin(), observed.warnings.end());
}

// Returns the kind of track for a category, by the words that tracers use.
Kind track_kind(std::string_view category) {
  const std::string name = text::lower(category);
  const auto any = [&](std::initializer_list<const char*> parts) {
    return std::ranges::any_of(parts, [&](auto part) { return name.find(part) != name.npos; });
  };
  if (any({"memcpy", "memset", "copy"})) return Kind::copy;
  return any({"kernel", "gpu", "device"}) ? Kind::device : Kind::cpu;
}

// A track of the document, and true for its overlapping spans, which get a track of their own.
using TrackKey = std::pair<std::uint16_t, bool>;

// Returns the kind of each track: async for overlapping spans, else the kind of most of its spans.
std::map<TrackKey, Kind> track_kinds(const ObservedMoments& moments) {
  std::map<TrackKey, std::map<Kind, std::size_t>> votes;
  for (const ObservedMoments::Span& span : moments.spans) {
    if (span.row >= moments.rows.size() || span.track >= moments.tracks.size()) continue;
    ++votes[{span.track, span.async}][track_kind(moments.rows[span.row].category)];
  }
  std::map<TrackKey, Kind> kinds;
  for (const auto& [track, counts] : votes) {
    const auto most_frequent =
        std::ranges::max_element(counts, {}, [](const auto& vote) { return vote.second; });
    kinds[track] = track.second ? Kind::async : most_frequent->first;
  }
  return kinds;
}

// Adds tracks, events and counters to the page, with private names hidden.
class Tracks {
 public:
  Tracks(const Hiding& hiding, TimelineDocument& page) : hiding_(hiding), page_(page) {}

  void add(const ObservedMoments& moments, const std::vector<observed::ObservedCounter>& counters) {
    std::map<TrackKey, std::optional<std::uint32_t>> tracks;
    for (const auto& [key, kind] : track_kinds(moments)) {
      const ObservedMoments::Track& track = moments.tracks[key.first];
      const std::string name = hiding_.words(track.name);
      tracks[key] = page_.track(process(hiding_.process(track.process)), kind,
                                key.second ? name + ", overlapping" : name);
    }
    std::vector<std::string> names;
    std::vector<PageDetail> details;
    for (const ObservedMoments::Row& row : moments.rows) {
      names.push_back(hiding_.name(row.name, row.category));
      PageDetail detail;
      if (!row.category.empty()) detail.words.emplace_back("category", hiding_.name(row.category));
      if (!row.shape.empty())
        detail.words.emplace_back("shape", hiding_.name(row.shape, row.category));
      details.push_back(std::move(detail));
    }
    // Times of the page start at the earliest.
    const double first = earliest(moments, counters);
    for (const ObservedMoments::Span& span : moments.spans) {
      const auto track = tracks.find({span.track, span.async});
      if (track == tracks.end() || !track->second || span.row >= names.size()) continue;
      const double at = span.at - first;
      page_.event(*track->second, {at, at + span.length}, names[span.row], details[span.row]);
    }
    if (moments.left_out != 0) {
      page_.warn(fmt::format("{} left out: more than a page can show",
                             text::plural(moments.left_out, "event")));
    }
    for (const auto& counter : counters) add_counter(counter, moments.origin + first);
  }

 private:
  std::uint32_t process(const std::string& name) {
    const auto [entry, is_new] = processes_.try_emplace(name);
    if (is_new) entry->second = page_.process(name);
    return entry->second;
  }

  // Returns the earliest time of spans and counters, in seconds from the origin of `moments`.
  static double earliest(const ObservedMoments& moments,
                         const std::vector<observed::ObservedCounter>& counters) {
    std::optional<double> first;
    const auto include = [&](double at) { first = std::min(first.value_or(at), at); };
    for (const ObservedMoments::Span& span : moments.spans) include(span.at);
    for (const auto& counter : counters) {
      for (const auto& point : counter.points) {
        if (point.at) include(*point.at - moments.origin);
      }
    }
    return first.value_or(0);
  }

  // Adds a counter. One with values below 0 can't be drawn, so a warning names it.
  void add_counter(const observed::ObservedCounter& counter, double first) {
    std::vector<TimelineDocument::Point> points;
    bool can_draw = true;
    for (const auto& point : counter.points) {
      if (point.at) points.push_back({*point.at - first, point.value});
      if (point.value < 0) can_draw = false;
    }
    if (points.empty() || !can_draw) {
      page_.warn(fmt::format("counter {}: not drawn, as some values are below 0 or have no time",
                             counter.name));
      return;
    }
    const auto track = page_.track(process(counter.track), Kind::counter, counter.name);
    if (track) page_.counter(*track, std::move(points));
  }

  const Hiding& hiding_;
  TimelineDocument& page_;
  std::map<std::string, std::uint32_t> processes_;
};

}  // namespace

// Makes the page of a measurement by others: facts, tables, and tracks over time if there are
// moments.
TimelineDocument observed_page(const Observed& observed, const ObservedMoments* moments,
                               PageFacts facts, const ObservedPageOptions& options) {
  const Observed shown = without_private(observed, options.privacy);
  add_facts(shown, facts);
  const bool has_tracks = moments != nullptr && !moments->spans.empty();
  auto tables = observed_tables(shown, options.by, /*counters=*/!has_tracks);
  facts.tables.insert(facts.tables.end(), std::make_move_iterator(tables.begin()),
                      std::make_move_iterator(tables.end()));
  TimelineDocument page(std::move(facts));
  const Hiding hiding(observed.context.places, options.privacy);
  if (has_tracks) Tracks(hiding, page).add(*moments, shown.counters);
  return page;
}

}  // namespace weir::report
