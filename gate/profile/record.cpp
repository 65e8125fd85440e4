// Writes and reads a RunRecord as one line of JSON, under the names of its fields. Absent, empty
// and default values are left out, so that a journal of thousands of lines stays small.
#include "gate/profile/record.hpp"

#include "gate/base/json.hpp"

namespace weir::profile {
namespace {

// More than any probe writes. A part is looked for among all others of its record.
constexpr std::size_t k_max_parts = 256, k_max_ops = 16'384;

constexpr auto k_passes = names_in_order<Pass>("timed", "counted");
constexpr auto k_counts =
    names_in_order<Counts>("device", "instructions", "system_calls", "python");
constexpr auto k_sides = names_in_order<Side>("candidate", "base");
constexpr auto k_endings = names_in_order<Ended>("exited", "signaled", "timed_out", "output_limit",
                                                 "not_started", "interrupted");
constexpr auto k_figure_kinds = names_in_order<ServerFigure::Kind>("counter", "gauge", "mean");

}  // namespace

void check_texts(Fields& io, std::size_t most, std::initializer_list<const std::string*> texts) {
  for (const std::string* text : texts) {
    io.check(text->size() <= most, fmt::format("has a text of more than {} bytes", most));
  }
}

void check_texts(Fields& io, std::size_t most,
                 std::initializer_list<const std::optional<std::string>*> texts) {
  for (const std::optional<std::string>* text : texts) {
    if (*text) check_texts(io, most, {&**text});
  }
}

// A metric that an engine declares for one of its counts.
struct CountMetric {
  std::string count;
  unit::Metric metric;
};

void fields(Fields& io, ServerFigure& figure) {
  io("name", figure.name);
  io("kind", Named{figure.kind, k_figure_kinds, "is neither counter nor gauge nor mean"});
  io("value", RoundedNumber{figure.value});
}

// Reads or writes what an engine reports of one run: times, counts, tokens and output. Texts that
// are too long are refused.
static void fields(Fields& io, EngineReport::Series& series) {
  io("metric", unit::MetricField{series.metric, "has a metric that is not known"});
  io.always("samples", series.samples);
}

static void fields(Fields& io, CountMetric& count) {
  io("count", count.count);
  io("metric", unit::MetricField{count.metric, "has a metric that is not known"});
}

// Reads or writes an engine's report, whichever `io` does.
static void fields(Fields& io, EngineReport& report) {
  io.optional("times", report.times, "report times");
  io.optional("counts", report.counts);
  std::vector<CountMetric> count_metrics;
  for (const auto& [name, metric] : report.count_metrics) count_metrics.push_back({name, metric});
  io.optional("count_metrics", count_metrics, "report count_metrics");
  if (io.is_reading()) {
    for (CountMetric& count : count_metrics) {
      report.count_metrics[count.count] = std::move(count.metric);
    }
  }
  io.optional("shares", report.shares);
  io.optional("uncounted", report.uncounted);
  io.optional("printed_values", report.printed_values);
  io.optional("generated_tokens", report.generated_tokens);
  io.optional("prompt_tokens", report.prompt_tokens);
  io.optional("output_digest", report.output_digest);
  io.optional("requests", report.requests);
  io.optional("server", report.server, "server's metric");
  io.optional("likely", report.likely, "likely tokens");
  io.optional("latencies", report.latencies);
  io.optional("model", report.model);
  io.optional("load", report.load);
  io.optional("prompt_tokens_per_request", RoundedNumber{report.prompt_tokens_per_request});
  io.optional("generated_tokens_per_request", RoundedNumber{report.generated_tokens_per_request});
  io.optional("engine_build", report.engine_build);
  io.optional("cpu_variant", report.cpu_variant);
  io.optional("device_refuted", report.device_refuted);
  io.optional("warnings", report.warnings);
  check_texts(io, k_long_text,
              {&report.output_digest, &report.model, &report.load, &report.engine_build,
               &report.cpu_variant, &report.device_refuted});
}

static void fields(Fields& io, ProbedDevice& device) {
  io("api", device.api);
  io("name", device.name);
  io("type", device.type);
  io("device_class", device.device_class);
  check_texts(io, k_short_text, {&device.api, &device.name, &device.type, &device.device_class});
}

static void fields(Fields& io, GraphCount& graph) {
  io("rows", graph.rows);
  io("computed", graph.computed);
  io("ops", graph.ops);
  io("cpu_ops", graph.cpu_ops);
  io("splits", graph.splits);
  io.optional("sums", graph.sums);
  io.optional("fusible", graph.fusible);
}

static void fields(Fields& io, OpCount& op) {
  io("op", op.op);
  io.optional("type", op.type);
  io.optional("shape", op.shape);
  io("backend", op.backend);
  io.optional("on_cpu", op.on_cpu);
  io.optional("api", op.api);
  io("graph", op.graph);
  io("count", op.count);
}

static void fields(Fields& io, TransferCount& transfer) {
  io("kind", transfer.kind);
  io("from", transfer.from);
  io("to", transfer.to);
  io("calls", transfer.calls);
  io("bytes", transfer.bytes);
}

// Reads or writes the facts of a kernel's compiled code: its source, options and costs. Too many
// of them are refused.
void fields(Fields& io, CodeFacts& code) {
  // Many kernels may have one code, and each of them lists what differs in it.
  constexpr std::size_t k_max_options = 128;
  io.optional("source", code.source);
  io.limit_items("options", k_max_options, "has too many options");
  io.optional("options", code.options);
  io.limit_items("costs", k_max_options, "has too many costs");
  io.optional("costs", code.costs);
  io.optional("not_compiled", code.not_compiled);
  check_texts(io, k_long_text, {&code.source, &code.not_compiled});
  for (const auto& [option, value] : code.options) check_texts(io, k_long_text, {&option, &value});
}

// Reads or writes what a probe counted in one run. An op must refer to a listed graph.
static void fields(Fields& io, ProbeCounts& probe) {
  io("probe", probe.probe);
  io.limit_items("devices", k_max_parts, "has a probe of too many devices");
  io.optional("devices", probe.devices, "probe device");
  io.optional("counts", probe.counts);
  io.optional("kernels", probe.kernels);
  io.optional("kernels_named", probe.kernels_named);
  io.optional("codes", probe.codes);
  io.optional("code_groups", probe.code_groups);
  io.optional("code_facts", probe.code_facts, "probe code");
  io.optional("compiler", probe.compiler);
  io.optional("graphs", probe.graphs, "probe graph");
  io.limit_items("ops", k_max_ops, "has a probe of too many ops");
  io.optional("ops", probe.ops, "probe op");
  io.optional("transfers", probe.transfers, "probe transfer");
  io.optional("functions", probe.functions);
  io.optional("warnings", probe.warnings);
  check_texts(io, k_short_text, {&probe.probe, &probe.compiler});
  const auto graphs = static_cast<std::int64_t>(probe.graphs.size());
  const bool has_unknown_graph = std::ranges::any_of(
      probe.ops, [&](const OpCount& op) { return op.graph < 0 || op.graph >= graphs; });
  if (io.is_reading() && has_unknown_graph) {
    io.refuse({Code::data, "probe op is of a graph that is not there"});
  }
}

static void fields(Fields& io, RunParameters& parameters) {
  io.always("prompt_tokens", parameters.prompt_tokens);
  io.always("tokens", parameters.tokens);
  io.always("repeats", parameters.repeats);
  io.always("depth", parameters.depth);
}

static void fields(Fields& io, SystemUsage& usage) {
  io("voluntary_switches", usage.voluntary_switches);
  io("involuntary_switches", usage.involuntary_switches);
  io("minor_faults", usage.minor_faults);
  io("major_faults", usage.major_faults);
}

static void fields(Fields& io, MachineState& machine) {
  io.optional("steal_share", machine.steal_share);
  io.optional("other_load", machine.other_load);
  io.optional("major_faults", machine.major_faults);
}

// Reads or writes the record of one run (a process of the engine), and checks fields that exclude
// each other.
void fields(Fields& io, RunRecord& record) {
  io("cell", record.cell);
  io("pass", pass_field(record.pass, "has a pass that is neither timed nor counted"));
  io.unless("counts", counts_field(record.counts, "counts something unknown"), Counts::device);
  io.optional("twin_fill", record.twin_fill);
  io.check(record.counts == Counts::device || record.pass == Pass::counted,
           "counts instructions, system calls or calls of Python in a timed pass");
  io("order", record.order);
  io.unless("side", Named{record.side, k_sides, "has a side that is neither candidate nor base"},
            Side::candidate);
  io.optional("pair", record.pair);
  io.check(!record.pair || (*record.pair >= 0 && record.pass == Pass::timed),
           "has a pair that no timed process can be of");
  io.optional("probed", record.with_probes);
  io.check(!record.with_probes || record.pass == Pass::timed,
           "has probes that no timed process has");
  io.optional("turns", record.turns);
  io.optional("start", record.start);
  io.optional("held", record.held);
  io.check(!record.start || (*record.start >= 0 && *record.start <= record.order),
           "has a start that comes after it");
  io("asked", record.parameters, "record asked");
  io.unless("attempt", record.attempt, 1);
  io("started_at", record.started_at);
  io("wall_seconds", record.wall_seconds);
  io("ended", Named{record.ended, k_endings, "does not say how the process ended"});
  io.optional("exit_code", record.exit_code);
  io.optional("signal", record.signal);
  io.optional("cpu_seconds", record.cpu_seconds);
  io.optional("peak_rss_bytes", record.peak_rss_bytes);
  io.optional("peak_rss_bound", record.peak_rss_bound);
  io.optional("took", record.system_usage);
  io.optional("machine", record.machine, "record machine");
  io.optional("report", record.report);
  io.limit_items("probes", k_max_parts, "has too many probes");
  io.optional("probes", record.probes, "probe");
  io.optional("error", record.error);
  io.optional("stderr_tail", record.stderr_tail);
  io.optional("warnings", record.warnings);
}

std::string_view to_string(ServerFigure::Kind kind) { return name_of(k_figure_kinds, kind); }
std::string_view to_string(Pass pass) { return name_of(k_passes, pass); }
std::string_view to_string(Side side) { return name_of(k_sides, side); }
std::string_view to_string(Ended ended) { return name_of(k_endings, ended); }

Named<Pass> pass_field(Pass& pass, std::string complaint) {
  return {pass, k_passes, std::move(complaint)};
}
Named<Counts> counts_field(Counts& counts, std::string complaint) {
  return {counts, k_counts, std::move(complaint)};
}
Named<Side> side_field(Side& side, std::string complaint) {
  return {side, k_sides, std::move(complaint)};
}

}  // namespace weir::profile
