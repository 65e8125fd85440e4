// Writes and reads an Observed as JSON (weir.observed/1). Keys are the names of the fields. Values
// that are absent, empty or at their default are left out, so that a long trace stays small.
#include "gate/observed/observed.hpp"

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::observed {
namespace {

constexpr auto k_phases = names_in_order<Phase>("unknown", "load", "prefill", "decode", "other");

// A count, at least 0; `T` may be optional.
template <class T>
Within<T> as_count(T& value) {
  return {value, 0, INT64_MAX, "is below 0"};
}

// An index of a step. Steps may come later, so fields() checks at the end that it exists.
Within<std::optional<std::size_t>> as_index(std::optional<std::size_t>& value) {
  return {value, 0, INT64_MAX, "leads nowhere"};
}

unit::MetricField as_metric(unit::Metric& value) { return {value, "\"metric\" is no metric"}; }

Named<Phase> as_phase(Phase& value) { return {value, k_phases, "\"phase\" is none of weir's"}; }

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
  io.optional("engine", context.engine);
  io.optional("engine_build", context.engine_build);
  io.optional("model", context.model);
  io.optional("backend", context.backend);
  io.optional("device", context.device);
  io.optional("command", context.command);
  io.optional("facts", context.facts);
  io.optional("places", context.places);
}

// Writes or reads a row of work: an op or kernel, with its calls, times in seconds, flops and
// bytes.
static void fields(Fields& io, ObservedOp& op) {
  io.optional("op", op.op);
  io.optional("kernel", op.kernel);
  io.optional("type", op.type);
  io.optional("shape", op.shape);
  io.optional("backend", op.backend);
  io.optional("node", op.node);
  io.optional("buffer", op.buffer);
  io.optional("category", op.category);
  io.optional("layer", as_count(op.layer));
  io.optional("phase", as_phase(op.phase));
  io.optional("step", as_index(op.step));
  io.optional("calls", as_count(op.calls));
  io.optional("seconds", RoundedNumber{op.seconds});
  io.optional("least", RoundedNumber{op.min_seconds});
  io.optional("most", RoundedNumber{op.max_seconds});
  io.optional("own_seconds", RoundedNumber{op.seconds_without_nested});
  io.optional("flops", RoundedNumber{op.flops});
  io.optional("bytes", RoundedNumber{op.bytes});
  io.optional("peak_seconds", RoundedNumber{op.seconds_at_peak});
  io.optional("covers_others", op.includes_other_rows);
}

static void fields(Fields& io, ObservedStep& step) {
  io.optional("label", step.label);
  io.optional("phase", as_phase(step.phase));
  io.optional("tokens", as_count(step.tokens));
  io.optional("seconds", RoundedNumber{step.seconds});
  io.optional("labels_left_out", as_count(step.labels_left_out));
}

static void fields(Fields& io, ObservedBuffer& buffer) {
  io.optional("label", buffer.label);
  io.always("buffers", as_count(buffer.buffers));
  io.optional("step", as_index(buffer.step));
  io.optional("dispatches", as_count(buffer.dispatches));
  io.optional("barriers", as_count(buffer.barriers));
  io.optional("syncs", as_count(buffer.syncs));
  io.optional("seconds", RoundedNumber{buffer.seconds});
  io.optional("least", RoundedNumber{buffer.min_seconds});
  io.optional("most", RoundedNumber{buffer.max_seconds});
}

static void fields(Fields& io, ObservedCount& counted) {
  io("metric", as_metric(counted.metric));
  io.always("values", counted.values);
}

static void fields(Fields& io, ObservedTiming& timing) {
  io("metric", as_metric(timing.metric));
  io.optional("samples", timing.samples);
  io.optional("mean", RoundedNumber{timing.mean});
  io.optional("stddev", RoundedNumber{timing.stddev});
}

static void fields(Fields& io, ObservedLatency& latency) {
  io("metric", as_metric(latency.metric));
  io("figure", latency.figure);
  io.optional("percentile", RoundedNumber{latency.percentile});
  io("seconds", RoundedNumber{latency.seconds});
  io.optional("at_most", latency.at_most);
}

static void fields(Fields& io, ObservedCase& entry) {
  io.optional("name", entry.name);
  io.optional("facts", entry.facts);
  io.optional("prompt_tokens", as_count(entry.prompt_tokens));
  io.optional("generated_tokens", as_count(entry.generated_tokens));
  io.optional("depth", as_count(entry.depth));
  io.optional("timings", entry.timings, ".timings[]");
  io.optional("error", entry.error);
  io.optional("latencies", entry.latencies, ".latencies[]");
}

static void fields(Fields& io, ObservedSplit::Input& input) {
  io.always("name", input.name);
  io.always("bytes", as_count(input.bytes));
}

static void fields(Fields& io, ObservedSplit& split) {
  io.always("graph", as_count(split.graph));
  io.always("number", as_count(split.number));
  io.optional("backend", split.backend);
  io.optional("ops", as_count(split.ops));
  io.optional("inputs", split.inputs, " inputs[]");
}

static void fields(Fields& io, ObservedCounter& counter) {
  io.optional("name", counter.name);
  io.optional("track", counter.track);
  io.optional("kind", counter.kind);
  io.optional("points", Points{counter.points});
}

static void fields(Fields& io, ObservedTrack& track) {
  io.optional("process", track.process);
  io.optional("name", track.name);
  io.always("events", as_count(track.events));
  io.always("seconds", RoundedNumber{track.seconds});
}

static void fields(Fields& io, ObservedParts& parts) {
  io.optional("kind", parts.kind);
  io.always("read", as_count(parts.read));
  io.always("unread", as_count(parts.unread));
  io.optional("reasons", parts.reasons);
}

// Complains about rows with a step that does not exist.
template <class Rows>
static void check_steps(Fields& io, const char* key, const Rows& rows, std::size_t steps) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].step || *rows[i].step < steps) continue;
    io.complain(fmt::format("{}[{}] \"step\" leads nowhere", key, i));
  }
}

// Writes or reads an Observed, all that a profile shows. Rows must not refer to steps that do not
// exist.
void fields(Fields& io, Observed& observed) {
  io.schema("weir.observed/1", "this is not weir.observed/1");
  io.optional("format", observed.format);
  io.optional("version", observed.version);
  io.optional("context", observed.context, " context");
  io.optional("steps", observed.steps, " steps[]");
  io.optional("ops", observed.ops, " ops[]");
  io.optional("cpu_calls", observed.cpu_calls, " cpu_calls[]");
  io.optional("profiled_tokens", as_count(observed.profiled_tokens));
  io.optional("buffers", observed.buffers, " buffers[]");
  io.optional("counts", observed.counts, " counts[]");
  io.optional("timings", observed.timings, ".timings[]");
  io.optional("latencies", observed.latencies, " latencies[]");
  io.optional("cases", observed.cases, " cases[]");
  io.optional("case_settings", observed.case_settings);
  io.optional("splits", observed.splits, " splits[]");
  io.optional("counters", observed.counters, " counters[]");
  io.optional("tracks", observed.tracks, " tracks[]");
  io.optional("prompt_tokens", as_count(observed.prompt_tokens));
  io.optional("cached_tokens", as_count(observed.cached_tokens));
  io.optional("generated_tokens", as_count(observed.generated_tokens));
  io.optional("errors", observed.errors);
  io.optional("parts", observed.parts, " parts[]");
  io.optional("truncated", observed.truncated);
  io.optional("warnings", observed.warnings);
  if (!io.is_reading()) return;
  check_steps(io, "ops", observed.ops, observed.steps.size());
  check_steps(io, "cpu_calls", observed.cpu_calls, observed.steps.size());
  check_steps(io, "buffers", observed.buffers, observed.steps.size());
}

std::optional<double> ObservedTiming::value() const {
  return samples.empty() ? mean : stats::median(samples);
}

std::string unread_warning(const ObservedParts& parts) {
  if (parts.unread == 0) return "";
  return fmt::format("{} of {} {} not read: {}", parts.unread, parts.read + parts.unread,
                     parts.kind, text::join(parts.reasons, "; "));
}

bool empty(const Observed& observed) {
  Observed bare;
  bare.format = observed.format;
  bare.version = observed.version;
  bare.truncated = observed.truncated;
  bare.warnings = observed.warnings;
  bare.parts = observed.parts;
  return observed == bare;
}

std::string_view to_string(Phase phase) { return name_of(k_phases, phase); }

}  // namespace weir::observed
