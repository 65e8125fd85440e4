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

constexpr std::size_t k_most_facts = 64;

void add_facts(const Observed& observed, PageFacts& page) {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto& context = observed.context;
  const auto say = [&](const char* name, const std::optional<std::string>& value) {
    if (!value.value_or("").empty()) facts.emplace_back(name, *value);
  };
  say("engine", context.engine);
  say("build", context.engine_build);
  say("model", context.model);
  say("backend", context.backend);
  say("device", context.device);
  say("command", context.command);
  const auto tokens = [&](const char* name, const std::optional<std::int64_t>& value) {
    if (value) facts.emplace_back(name, fmt::format("{}", *value));
  };
  tokens("tokens of the prompt", observed.prompt_tokens);
  tokens("of those from a cache", observed.cached_tokens);
  tokens("tokens generated", observed.generated_tokens);
  for (const auto& [name, value] : context.facts) {
    if (facts.size() >= k_most_facts) break;
    facts.emplace_back(name, value);
  }
  facts.emplace_back("format", observed.version
                                   ? fmt::format("{} {}", observed.format, *observed.version)
                                   : observed.format);
  page.facts.insert(page.facts.begin(), facts.begin(), facts.end());
  for (const std::string& error : observed.errors) page.warnings.push_back("error: " + error);
  page.warnings.insert(page.warnings.end(), observed.warnings.begin(), observed.warnings.end());
}

// What most of a track's time is, by the categories that tracers use.
Kind kind_of(std::string_view category) {
  const std::string name = text::lower(category);
  const auto any = [&](std::initializer_list<const char*> parts) {
    return std::ranges::any_of(parts, [&](auto part) { return name.find(part) != name.npos; });
  };
  if (any({"memcpy", "memset", "copy"})) return Kind::copy;
  return any({"kernel", "gpu", "device"}) ? Kind::device : Kind::cpu;
}

// Spans that overlap lie on a track beside that of their thread.
using TrackKey = std::pair<std::uint16_t, bool>;

std::map<TrackKey, Kind> kinds_of(const ObservedMoments& moments) {
  std::map<TrackKey, std::map<Kind, std::size_t>> votes;
  for (const ObservedMoments::Span& span : moments.spans) {
    const bool named = span.row < moments.rows.size();
    if (!named || span.track >= moments.tracks.size()) continue;
    ++votes[{span.track, span.async}][kind_of(moments.rows[span.row].category)];
  }
  std::map<TrackKey, Kind> kinds;
  for (const auto& [track, of] : votes) {
    const auto most = std::ranges::max_element(of, {}, [](const auto& one) { return one.second; });
    kinds[track] = track.second ? Kind::async : most->first;
  }
  return kinds;
}

class Tracks {
 public:
  Tracks(const Hiding& hiding, TimelineDocument& page) : hiding_(hiding), page_(page) {}

  void add(const ObservedMoments& moments, const std::vector<observed::ObservedCounter>& counters) {
    std::map<TrackKey, std::optional<std::uint32_t>> tracks;
    for (const auto& [key, kind] : kinds_of(moments)) {
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
    // A page's times are from the earliest on.
    const double first = earliest(moments, counters);
    for (const ObservedMoments::Span& span : moments.spans) {
      const auto track = tracks.find({span.track, span.async});
      if (track == tracks.end() || !track->second || span.row >= names.size()) continue;
      const double at = span.at - first;
      page_.event(*track->second, {at, at + span.length}, names[span.row], details[span.row]);
    }
    if (moments.left_out != 0) {
      page_.warn(
          fmt::format("{} left out: more than a page can show", plural(moments.left_out, "event")));
    }
    for (const auto& counter : counters) add_counter(counter, moments.origin + first);
  }

 private:
  std::uint32_t process(const std::string& name) {
    const auto [at, fresh] = processes_.try_emplace(name);
    if (fresh) at->second = page_.process(name);
    return at->second;
  }

  static double earliest(const ObservedMoments& moments,
                         const std::vector<observed::ObservedCounter>& counters) {
    std::optional<double> first;
    const auto see = [&](double at) { first = std::min(first.value_or(at), at); };
    for (const ObservedMoments::Span& span : moments.spans) see(span.at);
    for (const auto& counter : counters) {
      for (const auto& point : counter.points) {
        if (point.at) see(*point.at - moments.origin);
      }
    }
    return first.value_or(0);
  }

  // A counter that was once below 0 cannot be drawn; the trace itself has it.
  void add_counter(const observed::ObservedCounter& counter, double first) {
    std::vector<TimelineDocument::Point> points;
    bool drawn = true;
    for (const auto& point : counter.points) {
      if (point.at) points.push_back({*point.at - first, point.value});
      drawn = drawn && point.value >= 0;
    }
    if (points.empty() || !drawn) {
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

TimelineDocument observed_page(const Observed& observed, const ObservedMoments* moments,
                               PageFacts around, const ObservedPageOptions& options) {
  const Observed shown = without_private(observed, options.privacy);
  add_facts(shown, around);
  const bool drawn = moments != nullptr && !moments->spans.empty();
  auto tables = observed_tables(shown, options.by, !drawn);
  around.tables.insert(around.tables.end(), std::make_move_iterator(tables.begin()),
                       std::make_move_iterator(tables.end()));
  TimelineDocument page(std::move(around));
  const Hiding hiding(observed.context.places, options.privacy);
  if (drawn) Tracks(hiding, page).add(*moments, shown.counters);
  return page;
}

}  // namespace weir::report
