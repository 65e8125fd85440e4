#include "gate/report/hiding.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "gate/base/text.hpp"

namespace weir::report {
namespace {

bool part_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// A model's file name is no place by itself: it is what the profile is of.
bool model_file(std::string_view name) {
  return name.ends_with(".gguf") || name.ends_with(".safetensors");
}

void replace_place(std::string& text, std::string_view place, std::string_view instead) {
  const bool path = place.find_first_of("/\\") != place.npos;
  for (std::size_t at = 0; (at = text.find(place, at)) != text.npos;) {
    const std::size_t end = at + place.size();
    // "gpu" may be a host, and is no part of "gpu_memcpy".
    const bool inner =
        (at > 0 && part_of_word(text[at - 1])) || (end < text.size() && part_of_word(text[end]));
    if (!path && inner) {
      ++at;
      continue;
    }
    text.replace(at, place.size(), instead);
    at += instead.size();
  }
}

// "python run.py --api-key k", "TOKEN=k python run.py".
bool like_command(std::string_view text) {
  const std::size_t name = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  if (name != text.npos && name > 0 && text[name] == '=') return true;
  for (std::size_t at = 0; (at = text.find(" -", at)) != text.npos; ++at) {
    const std::string_view rest = text.substr(at + 2);
    if (!rest.empty() && rest.front() != ' ' && rest.front() != '>') return true;
  }
  return false;
}

void hide(std::optional<std::string>& text, const Hiding& hiding) {
  if (text) text = hiding.words(*text);
}

void hide(std::vector<std::string>& texts, const Hiding& hiding) {
  for (std::string& text : texts) text = hiding.words(text);
}

void hide(std::map<std::string, std::string>& facts, const Hiding& hiding) {
  std::map<std::string, std::string> kept;
  for (const auto& [name, value] : facts) {
    if (!hiding.fact_is_private(name, value)) kept.emplace(hiding.words(name), hiding.words(value));
  }
  facts = std::move(kept);
}

void hide_metrics(std::vector<observed::ObservedTiming>& timings, const Hiding& hiding) {
  for (auto& timing : timings) {
    if (!unit::find_metric(timing.metric.name))
      timing.metric.name = hiding.name(timing.metric.name);
  }
}

void hide_rows(observed::Observed& observed, const Hiding& hiding) {
  for (auto& op : observed.ops) {
    for (std::string* text : {&op.op, &op.kernel, &op.type, &op.shape, &op.node}) {
      *text = hiding.name(*text, op.category);
    }
    op.category = hiding.name(op.category);
    op.backend = hiding.words(op.backend);
  }
  for (auto& step : observed.steps) step.label = hiding.words(step.label);
  for (auto& buffer : observed.buffers) buffer.label = hiding.words(buffer.label);
  for (auto& split : observed.splits) {
    split.backend = hiding.words(split.backend);
    for (auto& input : split.inputs) input.name = hiding.name(input.name);
  }
  for (auto& counter : observed.counters) {
    counter.name = hiding.words(counter.name);
    counter.track = hiding.process(counter.track);
  }
  for (auto& track : observed.tracks) {
    track.process = hiding.process(track.process);
    track.name = hiding.words(track.name);
  }
}

}  // namespace

Hiding::Hiding(std::vector<std::string> places, Private privacy) : privacy_(privacy) {
  std::sort(places.begin(), places.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });  // the whole first
  for (std::string& place : places) {
    while (place.size() > 1 && place.ends_with('/')) place.pop_back();
    const std::size_t slash = place.find_last_of("/\\");
    const std::string_view last =
        slash == place.npos ? place : std::string_view(place).substr(slash + 1);
    const bool named = model_file(last);
    if (place.empty() || (slash == place.npos && named)) continue;
    places_.emplace_back(place, named || slash != place.npos ? std::string(last) : "(hidden)");
  }
}

std::string Hiding::name(std::string_view text, std::string_view category) const {
  if (category == "python_function") return words(text);
  std::string out(text);
  if (privacy_ == Private::shown) return out;
  for (const auto& [place, instead] : places_) replace_place(out, place, instead);
  return without_places(out, Paths::certain);
}

std::string Hiding::words(std::string_view text) const {
  std::string out(text);
  if (privacy_ == Private::shown) return out;
  for (const auto& [place, instead] : places_) replace_place(out, place, instead);
  return without_places(out);
}

std::string Hiding::process(std::string_view text) const {
  return like_command(text) ? command(text) : words(text);
}

std::string Hiding::command(std::string_view line) const {
  return words(shown_command_line(line, privacy_));
}

bool Hiding::fact_is_private(std::string_view fact, std::string_view value) const {
  const bool number = text::to_double(value).has_value();
  if (names_secret(fact, number)) return true;
  if (privacy_ == Private::shown || number) return false;  // how many tokens: nobody's secret
  const std::string name = text::lower(fact);
  for (const char* part : {"prompt", "content", "user", "host", "token", "message", "input",
                           "question", "cwd", "home", "mail"}) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

observed::Observed without_private(observed::Observed observed, Private privacy) {
  auto& context = observed.context;
  const Hiding hiding(context.places, privacy);
  if (privacy == Private::hidden) context.places.clear();
  for (auto* text : {&context.engine, &context.engine_build, &context.model, &context.backend,
                     &context.device}) {
    hide(*text, hiding);
  }
  if (context.command) context.command = hiding.command(*context.command);
  hide(context.facts, hiding);
  hide_rows(observed, hiding);
  hide_metrics(observed.timings, hiding);
  for (auto& count : observed.counts) {
    if (!unit::find_metric(count.metric.name)) count.metric.name = hiding.name(count.metric.name);
  }
  for (auto& latency : observed.latencies) {
    if (!unit::find_metric(latency.metric.name))
      latency.metric.name = hiding.name(latency.metric.name);
  }
  for (auto& one : observed.cases) {
    one.name = hiding.words(one.name);
    hide(one.facts, hiding);
    hide_metrics(one.timings, hiding);
    hide(one.error, hiding);
  }
  hide(observed.errors, hiding);
  hide(observed.warnings, hiding);
  return observed;
}

}  // namespace weir::report
