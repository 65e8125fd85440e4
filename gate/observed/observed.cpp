// Observed as JSON (weir.observed/1). Keys are the names of the fields; what is absent, empty or at
// its default is left out, so that a trace of thousands of rows stays small.
#include "gate/observed/observed.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "gate/profile/metric_json.hpp"

namespace weir::observed {
namespace {

constexpr std::string_view k_observed_schema = "weir.observed/1";
constexpr std::array<std::pair<Phase, std::string_view>, 5> k_phases{{
    {Phase::unknown, "unknown"},
    {Phase::load, "load"},
    {Phase::prefill, "prefill"},
    {Phase::decode, "decode"},
    {Phase::other, "other"},
}};

// Writes what is there.
class FieldsOut {
 public:
  FieldsOut& text(const char* key, const std::string& value) {
    if (!value.empty()) json_[key] = value;
    return *this;
  }
  FieldsOut& text(const char* key, const std::optional<std::string>& value) {
    if (value) json_[key] = *value;
    return *this;
  }
  FieldsOut& number(const char* key, const std::optional<double>& value) {
    if (value) json_[key] = profile::number_to_json(*value);
    return *this;
  }
  template <class Whole>
  FieldsOut& whole(const char* key, const std::optional<Whole>& value) {
    if (value) json_[key] = *value;
    return *this;
  }
  FieldsOut& flag(const char* key, bool value) {
    if (value) json_[key] = true;
    return *this;
  }
  FieldsOut& phase(Phase value) {
    if (value != Phase::unknown) json_["phase"] = to_string(value);
    return *this;
  }
  template <class Texts>
  FieldsOut& texts(const char* key, const Texts& values) {
    if (!values.empty()) json_[key] = values;
    return *this;
  }
  template <class Items, class Write>
  FieldsOut& items(const char* key, const Items& values, Write write) {
    if (values.empty()) return *this;
    Json list = Json::array();
    for (const auto& value : values) list.push_back(write(value));
    json_[key] = std::move(list);
    return *this;
  }
  Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

Json context_to_json(const ObservedContext& context) {
  FieldsOut out;
  out.text("engine", context.engine).text("engine_build", context.engine_build);
  out.text("model", context.model).text("backend", context.backend);
  out.text("device", context.device).text("command", context.command);
  return out.texts("facts", context.facts).texts("places", context.places).take();
}

Json op_to_json(const ObservedOp& op) {
  FieldsOut out;
  out.text("op", op.op).text("kernel", op.kernel).text("type", op.type).text("shape", op.shape);
  out.text("backend", op.backend).text("node", op.node).text("category", op.category);
  out.whole("layer", op.layer).phase(op.phase).whole("step", op.step).whole("calls", op.calls);
  out.number("seconds", op.seconds).number("least", op.least).number("most", op.most);
  out.number("own_seconds", op.own_seconds).number("flops", op.flops).number("bytes", op.bytes);
  return out.flag("covers_others", op.covers_others).take();
}

Json step_to_json(const ObservedStep& step) {
  FieldsOut out;
  out.text("label", step.label).phase(step.phase).whole("tokens", step.tokens);
  return out.number("seconds", step.seconds).take();
}

Json buffer_to_json(const ObservedBuffer& buffer) {
  FieldsOut out;
  out.text("label", buffer.label).whole("step", buffer.step);
  out.whole("buffers", std::optional(buffer.buffers)).whole("dispatches", buffer.dispatches);
  out.whole("barriers", buffer.barriers).whole("syncs", buffer.syncs);
  return out.number("seconds", buffer.seconds)
      .number("least", buffer.least)
      .number("most", buffer.most)
      .take();
}

Json count_to_json(const ObservedCount& count) {
  return {{"metric", profile::metric_to_json(count.metric)}, {"values", count.values}};
}

Json timing_to_json(const ObservedTiming& timing) {
  FieldsOut out;
  out.texts("samples", timing.samples).number("mean", timing.mean).number("stddev", timing.stddev);
  Json json = out.take();
  json["metric"] = profile::metric_to_json(timing.metric);
  return json;
}

Json latency_to_json(const ObservedLatency& latency) {
  FieldsOut out;
  out.text("figure", latency.figure).number("percentile", latency.percentile);
  out.number("seconds", std::optional(latency.seconds)).flag("at_most", latency.at_most);
  Json json = out.take();
  json["metric"] = profile::metric_to_json(latency.metric);
  return json;
}

Json case_to_json(const ObservedCase& one) {
  FieldsOut out;
  out.text("name", one.name).texts("facts", one.facts).whole("prompt_tokens", one.prompt_tokens);
  out.whole("generated_tokens", one.generated_tokens).whole("depth", one.depth);
  return out.items("timings", one.timings, timing_to_json).text("error", one.error).take();
}

Json split_to_json(const ObservedSplit& split) {
  FieldsOut out;
  out.whole("graph", std::optional(split.graph)).whole("number", std::optional(split.number));
  out.text("backend", split.backend).whole("ops", split.ops);
  return out
      .items("inputs", split.inputs,
             [](const auto& input) {
               return Json{{"name", input.name}, {"bytes", input.bytes}};
             })
      .take();
}

// A point is its value alone, or [time, value].
Json counter_to_json(const ObservedCounter& counter) {
  FieldsOut out;
  out.text("name", counter.name).text("track", counter.track).text("kind", counter.kind);
  return out
      .items("points", counter.points,
             [](const auto& point) {
               const Json value = profile::number_to_json(point.value);
               return point.at ? Json::array({profile::number_to_json(*point.at), value}) : value;
             })
      .take();
}

Json track_to_json(const ObservedTrack& track) {
  FieldsOut out;
  out.text("process", track.process).text("name", track.name);
  out.whole("events", std::optional(track.events));
  return out.number("seconds", std::optional(track.seconds)).take();
}

}  // namespace

std::optional<double> ObservedTiming::value() const {
  if (samples.empty()) return mean;
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return (sorted[middle - 1] + sorted[middle]) / 2;
}

bool empty(const Observed& observed) {
  Observed bare;
  bare.format = observed.format;
  bare.version = observed.version;
  bare.truncated = observed.truncated;
  bare.warnings = observed.warnings;
  return observed == bare;
}

Json to_json(const Observed& observed) {
  FieldsOut out;
  out.text("schema", std::string(k_observed_schema)).text("format", observed.format);
  out.text("version", observed.version);
  Json context = context_to_json(observed.context);
  out.items("ops", observed.ops, op_to_json).items("steps", observed.steps, step_to_json);
  out.whole("profiled_tokens", observed.profiled_tokens);
  out.items("buffers", observed.buffers, buffer_to_json);
  out.items("counts", observed.counts, count_to_json);
  out.items("timings", observed.timings, timing_to_json);
  out.items("latencies", observed.latencies, latency_to_json);
  out.items("cases", observed.cases, case_to_json).items("splits", observed.splits, split_to_json);
  out.items("counters", observed.counters, counter_to_json);
  out.items("tracks", observed.tracks, track_to_json);
  out.whole("prompt_tokens", observed.prompt_tokens);
  out.whole("cached_tokens", observed.cached_tokens);
  out.whole("generated_tokens", observed.generated_tokens);
  out.texts("errors", observed.errors).flag("truncated", observed.truncated);
  Json json = out.texts("warnings", observed.warnings).take();
  if (!context.empty()) json["context"] = std::move(context);
  return json;
}

std::string_view to_string(Phase phase) {
  for (const auto& [known, name] : k_phases) {
    if (known == phase) return name;
  }
  return "unknown";
}

std::optional<Phase> parse_phase(std::string_view text) {
  for (const auto& [known, name] : k_phases) {
    if (name == text) return known;
  }
  return std::nullopt;
}

}  // namespace weir::observed
