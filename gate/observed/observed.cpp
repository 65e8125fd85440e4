// Writes and reads an Observed as JSON (weir.observed/1). Keys are the names of the fields. Values
// that are absent, empty or at their default are left out, so that a long trace stays small.
#include "gate/observed/observed.hpp"

#include "gate/base/json.hpp"
#include "gate/profile/profile.hpp"

namespace weir::observed {
namespace {

constexpr auto k_phases = names_in_order<Phase>("unknown", "load", "prefill", "decode", "other");

// A count, at least 0; `T` may be optional.
template <class T>
Within<T> count(T& value) {
  return {value, 0, INT64_MAX, "is below 0"};
}

// An index of a step. Steps may come later, so fields() checks at the end that it exists.
Within<std::optional<std::size_t>> index(std::optional<std::size_t>& value) {
  return {value, 0, INT64_MAX, "leads nowhere"};
}

unit::MetricField metric(unit::Metric& value) { return {value, "\"metric\" is no metric"}; }

Named<Phase> phase(Phase& value) { return {value, k_phases, "\"phase\" is none of weir's"}; }

// Points of a counter: each is its value alone, or [time, value].
struct Points {
  std::vector<ObservedCounter::Point>& value;
  void put(Json& slot) const {
    slot = Json::array();
    for (const auto& point : value) {
      const Json number = number_to_json(point.value);
      slot.push_back(point.at ? Json::array({number_to_json(*point.at), number}) : number);
    }
  }
  void take(const Json& json, Fields& io, const char* key) const {
    if (!json.is_array()) return io.complain_about(key, "should be a list");
    for (const Json& point : json) {
      const bool pair = point.is_array() && point.size() == 2 && point[0].is_number();
      const Json& number = pair ? point[1] : point;
      if (!number.is_number()) return io.complain("a point is a number or two");
      value.push_back(
          {pair ? std::optional(point[0].get<double>()) : std::nullopt, number.get<double>()});
    }
  }
};

}  // namespace

static void fields(Fields& io, ObservedContext& context) {
  io.sparse("engine", context.engine);
  io.sparse("engine_build", context.engine_build);
  io.sparse("model", context.model);
  io.sparse("backend", context.backend);
  io.sparse("device", context.device);
  io.sparse("command", context.command);
  io.sparse("facts", context.facts);
  io.sparse("places", context.places);
}

// Writes or reads a row of work.
static void fields(Fields& io, ObservedOp& op) {
  io.sparse("op", op.op);
  io.sparse("kernel", op.kernel);
  io.sparse("type", op.type);
  io.sparse("shape", op.shape);
  io.sparse("backend", op.backend);
  io.sparse("node", op.node);
  io.sparse("buffer", op.buffer);
  io.sparse("category", op.category);
  io.sparse("layer", count(op.layer));
  io.sparse("phase", phase(op.phase));
  io.sparse("step", index(op.step));
  io.sparse("calls", count(op.calls));
  io.sparse("seconds", Short{op.seconds});
  io.sparse("least", Short{op.least});
  io.sparse("most", Short{op.most});
  io.sparse("own_seconds", Short{op.own_seconds});
  io.sparse("flops", Short{op.flops});
  io.sparse("bytes", Short{op.bytes});
  io.sparse("peak_seconds", Short{op.peak_seconds});
  io.sparse("covers_others", op.covers_others);
}

static void fields(Fields& io, ObservedStep& step) {
  io.sparse("label", step.label);
  io.sparse("phase", phase(step.phase));
  io.sparse("tokens", count(step.tokens));
  io.sparse("seconds", Short{step.seconds});
  io.sparse("labels_left_out", count(step.labels_left_out));
}

static void fields(Fields& io, ObservedBuffer& buffer) {
  io.sparse("label", buffer.label);
  io.always("buffers", count(buffer.buffers));
  io.sparse("step", index(buffer.step));
  io.sparse("dispatches", count(buffer.dispatches));
  io.sparse("barriers", count(buffer.barriers));
  io.sparse("syncs", count(buffer.syncs));
  io.sparse("seconds", Short{buffer.seconds});
  io.sparse("least", Short{buffer.least});
  io.sparse("most", Short{buffer.most});
}

static void fields(Fields& io, ObservedCount& counted) {
  io("metric", metric(counted.metric));
  io.always("values", counted.values);
}

static void fields(Fields& io, ObservedTiming& timing) {
  io("metric", metric(timing.metric));
  io.sparse("samples", timing.samples);
  io.sparse("mean", Short{timing.mean});
  io.sparse("stddev", Short{timing.stddev});
}

static void fields(Fields& io, ObservedLatency& latency) {
  io("metric", metric(latency.metric));
  io("figure", latency.figure);
  io.sparse("percentile", Short{latency.percentile});
  io("seconds", Short{latency.seconds});
  io.sparse("at_most", latency.at_most);
}

static void fields(Fields& io, ObservedCase& entry) {
  io.sparse("name", entry.name);
  io.sparse("facts", entry.facts);
  io.sparse("prompt_tokens", count(entry.prompt_tokens));
  io.sparse("generated_tokens", count(entry.generated_tokens));
  io.sparse("depth", count(entry.depth));
  io.sparse("timings", entry.timings, ".timings[]");
  io.sparse("error", entry.error);
}

static void fields(Fields& io, ObservedSplit::Input& input) {
  io.always("name", input.name);
  io.always("bytes", count(input.bytes));
}

static void fields(Fields& io, ObservedSplit& split) {
  io.always("graph", count(split.graph));
  io.always("number", count(split.number));
  io.sparse("backend", split.backend);
  io.sparse("ops", count(split.ops));
  io.sparse("inputs", split.inputs, " inputs[]");
}

static void fields(Fields& io, ObservedCounter& counter) {
  io.sparse("name", counter.name);
  io.sparse("track", counter.track);
  io.sparse("kind", counter.kind);
  io.sparse("points", Points{counter.points});
}

static void fields(Fields& io, ObservedTrack& track) {
  io.sparse("process", track.process);
  io.sparse("name", track.name);
  io.always("events", count(track.events));
  io.always("seconds", Short{track.seconds});
}

// Complains about rows with a step that does not exist.
template <class Rows>
static void check_steps(Fields& io, const char* key, const Rows& rows, std::size_t steps) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].step || *rows[i].step < steps) continue;
    io.complain(fmt::format("{}[{}] \"step\" leads nowhere", key, i));
  }
}

// Writes or reads all of an Observed; rows must not refer to steps that do not exist.
void fields(Fields& io, Observed& observed) {
  io.schema("weir.observed/1", "this is not weir.observed/1");
  io.sparse("format", observed.format);
  io.sparse("version", observed.version);
  io.sparse("context", observed.context, " context");
  io.sparse("steps", observed.steps, " steps[]");
  io.sparse("ops", observed.ops, " ops[]");
  io.sparse("cpu_calls", observed.cpu_calls, " cpu_calls[]");
  io.sparse("profiled_tokens", count(observed.profiled_tokens));
  io.sparse("buffers", observed.buffers, " buffers[]");
  io.sparse("counts", observed.counts, " counts[]");
  io.sparse("timings", observed.timings, ".timings[]");
  io.sparse("latencies", observed.latencies, " latencies[]");
  io.sparse("cases", observed.cases, " cases[]");
  io.sparse("splits", observed.splits, " splits[]");
  io.sparse("counters", observed.counters, " counters[]");
  io.sparse("tracks", observed.tracks, " tracks[]");
  io.sparse("prompt_tokens", count(observed.prompt_tokens));
  io.sparse("cached_tokens", count(observed.cached_tokens));
  io.sparse("generated_tokens", count(observed.generated_tokens));
  io.sparse("errors", observed.errors);
  io.sparse("truncated", observed.truncated);
  io.sparse("warnings", observed.warnings);
  if (!io.reads()) return;
  check_steps(io, "ops", observed.ops, observed.steps.size());
  check_steps(io, "cpu_calls", observed.cpu_calls, observed.steps.size());
  check_steps(io, "buffers", observed.buffers, observed.steps.size());
}

std::optional<double> ObservedTiming::value() const {
  return samples.empty() ? mean : profile::median_of(samples);
}

bool empty(const Observed& observed) {
  Observed bare;
  bare.format = observed.format;
  bare.version = observed.version;
  bare.truncated = observed.truncated;
  bare.warnings = observed.warnings;
  return observed == bare;
}

std::string_view to_string(Phase phase) { return name_of(k_phases, phase); }

}  // namespace weir::observed
