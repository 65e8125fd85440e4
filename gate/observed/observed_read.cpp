// weir.observed/1 -> Observed. Everything read is hostile.
#include <cmath>

#include "gate/observed/observed.hpp"
#include "gate/profile/metric_json.hpp"

namespace weir::observed {
namespace {

// Reads the objects of a list one by one and keeps the first complaint of any of them.
class ItemsIn {
 public:
  explicit ItemsIn(JsonReader& read) : read_(read) {}

  template <class T, class Take>
  void into(std::vector<T>& list, const char* key, Take take) {
    if (!read_.has(key)) return;
    std::size_t at = 0;
    for (const Json& item : read_.array(key)) {
      JsonReader one(item, fmt::format("{}[{}]", key, at++));
      list.push_back(take(one));
      if (auto problem = one.problem()) return read_.complain(problem->message);
    }
  }

 private:
  JsonReader& read_;
};

std::string text_in(JsonReader& read, const char* key) {
  return read.optional_string(key).value_or("");
}

Phase phase_in(JsonReader& read) {
  const auto text = read.optional_string("phase");
  if (!text) return Phase::unknown;
  const auto phase = parse_phase(*text);
  if (!phase) read.complain("\"phase\" is none of weir's");
  return phase.value_or(Phase::unknown);
}

std::optional<std::size_t> index_in(JsonReader& read, const char* key, std::size_t size) {
  const auto index = read.optional_integer(key);
  if (!index) return std::nullopt;
  if (*index < 0 || static_cast<std::size_t>(*index) >= size) {
    read.complain(fmt::format("\"{}\" leads nowhere", key));
    return std::nullopt;
  }
  return static_cast<std::size_t>(*index);
}

std::optional<std::int64_t> count_in(JsonReader& read, const char* key) {
  const auto count = read.optional_integer(key);
  if (count && *count < 0) read.complain(fmt::format("\"{}\" is below 0", key));
  return count;
}

unit::Metric metric_in(JsonReader& read, const Json& item) {
  const auto metric = item.is_object() && item.contains("metric")
                          ? profile::metric_from_json(item["metric"])
                          : std::nullopt;
  if (!metric) read.complain("\"metric\" is no metric");
  return metric.value_or(unit::Metric{});
}

ObservedContext context_in(JsonReader& read) {
  ObservedContext context;
  context.engine = read.optional_string("engine");
  context.engine_build = read.optional_string("engine_build");
  context.model = read.optional_string("model");
  context.backend = read.optional_string("backend");
  context.device = read.optional_string("device");
  context.command = read.optional_string("command");
  context.facts = profile::texts_from_json(read, "facts");
  context.places = read.strings("places");
  return context;
}

ObservedOp op_in(JsonReader& read, std::size_t steps) {
  ObservedOp op;
  op.op = text_in(read, "op");
  op.kernel = text_in(read, "kernel");
  op.type = text_in(read, "type");
  op.shape = text_in(read, "shape");
  op.backend = text_in(read, "backend");
  op.node = text_in(read, "node");
  op.category = text_in(read, "category");
  op.layer = count_in(read, "layer");
  op.phase = phase_in(read);
  op.step = index_in(read, "step", steps);
  op.calls = count_in(read, "calls");
  op.seconds = read.optional_number("seconds");
  op.least = read.optional_number("least");
  op.most = read.optional_number("most");
  op.own_seconds = read.optional_number("own_seconds");
  op.flops = read.optional_number("flops");
  op.bytes = read.optional_number("bytes");
  op.covers_others = read.optional_boolean("covers_others").value_or(false);
  return op;
}

ObservedStep step_in(JsonReader& read) {
  ObservedStep step;
  step.label = text_in(read, "label");
  step.phase = phase_in(read);
  step.tokens = count_in(read, "tokens");
  step.seconds = read.optional_number("seconds");
  return step;
}

ObservedBuffer buffer_in(JsonReader& read, std::size_t steps) {
  ObservedBuffer buffer;
  buffer.label = text_in(read, "label");
  buffer.buffers = count_in(read, "buffers").value_or(1);
  buffer.step = index_in(read, "step", steps);
  buffer.dispatches = count_in(read, "dispatches");
  buffer.barriers = count_in(read, "barriers");
  buffer.syncs = count_in(read, "syncs");
  buffer.seconds = read.optional_number("seconds");
  buffer.least = read.optional_number("least");
  buffer.most = read.optional_number("most");
  return buffer;
}

ObservedTiming timing_in(JsonReader& read, const Json& item) {
  ObservedTiming timing;
  timing.metric = metric_in(read, item);
  timing.samples = profile::numbers_from_json(read, "samples");
  timing.mean = read.optional_number("mean");
  timing.stddev = read.optional_number("stddev");
  return timing;
}

void timings_in(JsonReader& read, std::vector<ObservedTiming>& timings) {
  if (!read.has("timings")) return;
  for (const Json& item : read.array("timings")) {
    JsonReader one(item, fmt::format("{}.timings[{}]", read.path(), timings.size()));
    timings.push_back(timing_in(one, item));
    if (auto problem = one.problem()) return read.complain(problem->message);
  }
}

void metrics_in(JsonReader& read, Observed& observed) {
  if (read.has("counts")) {
    for (const Json& item : read.array("counts")) {
      JsonReader one(item, fmt::format("counts[{}]", observed.counts.size()));
      const auto metric = metric_in(one, item);
      observed.counts.push_back({metric, profile::integers_from_json(one, "values")});
      if (auto problem = one.problem()) return read.complain(problem->message);
    }
  }
  timings_in(read, observed.timings);
  if (!read.has("latencies")) return;
  for (const Json& item : read.array("latencies")) {
    JsonReader one(item, fmt::format("latencies[{}]", observed.latencies.size()));
    ObservedLatency latency;
    latency.metric = metric_in(one, item);
    latency.figure = one.string("figure");
    latency.percentile = one.optional_number("percentile");
    latency.seconds = one.number("seconds");
    latency.at_most = one.optional_boolean("at_most").value_or(false);
    observed.latencies.push_back(std::move(latency));
    if (auto problem = one.problem()) return read.complain(problem->message);
  }
}

ObservedCase case_in(JsonReader& read) {
  ObservedCase one;
  one.name = text_in(read, "name");
  one.facts = profile::texts_from_json(read, "facts");
  one.prompt_tokens = count_in(read, "prompt_tokens");
  one.generated_tokens = count_in(read, "generated_tokens");
  one.depth = count_in(read, "depth");
  timings_in(read, one.timings);
  one.error = read.optional_string("error");
  return one;
}

ObservedSplit split_in(JsonReader& read) {
  ObservedSplit split;
  split.graph = static_cast<std::size_t>(count_in(read, "graph").value_or(0));
  split.number = count_in(read, "number").value_or(0);
  split.backend = text_in(read, "backend");
  split.ops = count_in(read, "ops");
  ItemsIn(read).into(split.inputs, "inputs", [](JsonReader& input) {
    return ObservedSplit::Input{text_in(input, "name"), count_in(input, "bytes").value_or(0)};
  });
  return split;
}

ObservedCounter counter_in(JsonReader& read) {
  ObservedCounter counter;
  counter.name = text_in(read, "name");
  counter.track = text_in(read, "track");
  counter.kind = text_in(read, "kind");
  if (!read.has("points")) return counter;
  for (const Json& point : read.array("points")) {
    const bool pair = point.is_array() && point.size() == 2 && point[0].is_number();
    const Json& value = pair ? point[1] : point;
    if (!value.is_number()) {
      read.complain("a point is a number or two");
      return counter;
    }
    counter.points.push_back(
        {pair ? std::optional(point[0].get<double>()) : std::nullopt, value.get<double>()});
  }
  return counter;
}

ObservedTrack track_in(JsonReader& read) {
  ObservedTrack track;
  track.process = text_in(read, "process");
  track.name = text_in(read, "name");
  track.events = count_in(read, "events").value_or(0);
  track.seconds = read.optional_number("seconds").value_or(0);
  return track;
}

}  // namespace

Result<Observed> observed_from_json(const Json& json) {
  JsonReader read(json, "observed");
  if (read.string("schema") != "weir.observed/1") {
    read.complain("this is no weir.observed/1");
  }
  Observed observed;
  observed.format = text_in(read, "format");
  observed.version = read.optional_string("version");
  if (read.has("context")) {
    JsonReader context(read.object("context"), "context");
    observed.context = context_in(context);
    if (auto problem = context.problem()) read.complain(problem->message);
  }
  ItemsIn items(read);
  items.into(observed.steps, "steps", step_in);
  const std::size_t steps = observed.steps.size();
  items.into(observed.ops, "ops", [&](JsonReader& one) { return op_in(one, steps); });
  observed.profiled_tokens = count_in(read, "profiled_tokens");
  items.into(observed.buffers, "buffers", [&](JsonReader& one) { return buffer_in(one, steps); });
  metrics_in(read, observed);
  items.into(observed.cases, "cases", case_in);
  items.into(observed.splits, "splits", split_in);
  items.into(observed.counters, "counters", counter_in);
  items.into(observed.tracks, "tracks", track_in);
  observed.prompt_tokens = count_in(read, "prompt_tokens");
  observed.cached_tokens = count_in(read, "cached_tokens");
  observed.generated_tokens = count_in(read, "generated_tokens");
  observed.errors = read.strings("errors");
  observed.truncated = read.optional_boolean("truncated").value_or(false);
  observed.warnings = read.strings("warnings");
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  return observed;
}

}  // namespace weir::observed
