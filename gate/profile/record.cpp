// Writes and reads a RunRecord as one line of JSON, under the names of its fields. Absent, empty
// and default values are left out, so that a journal of thousands of lines stays small.
#include "gate/profile/record.hpp"

#include "gate/base/json.hpp"

namespace weir::profile {
namespace {

constexpr auto k_passes = names_in_order<Pass>("timed", "counted");
constexpr auto k_sides = names_in_order<Side>("candidate", "base");
constexpr auto k_endings = names_in_order<Ended>("exited", "signaled", "timed_out", "output_limit",
                                                 "not_started", "interrupted");
constexpr auto k_figure_kinds = names_in_order<ServerFigure::Kind>("counter", "gauge", "mean");

}  // namespace

// A metric that an engine declares for one of its counts.
struct CountMetric {
  std::string count;
  unit::Metric metric;
};

void fields(Fields& io, ServerFigure& figure) {
  io("name", figure.name);
  io("kind", Named{figure.kind, k_figure_kinds, "is neither counter nor gauge nor mean"});
  io("value", Short{figure.value});
}

static void fields(Fields& io, EngineReport::Series& series) {
  io("metric", unit::MetricField{series.metric, "has a metric that is not known"});
  io.always("samples", series.samples);
}

static void fields(Fields& io, CountMetric& count) {
  io("count", count.count);
  io("metric", unit::MetricField{count.metric, "has a metric that is not known"});
}

// Lists the fields of an engine's report.
static void fields(Fields& io, EngineReport& report) {
  io.sparse("times", report.times, "report times");
  io.sparse("counts", report.counts);
  std::vector<CountMetric> count_metrics;
  for (const auto& [name, metric] : report.count_metrics) count_metrics.push_back({name, metric});
  io.sparse("count_metrics", count_metrics, "report count_metrics");
  if (io.reads()) {
    for (CountMetric& count : count_metrics) {
      report.count_metrics[count.count] = std::move(count.metric);
    }
  }
  io.sparse("shares", report.shares);
  io.sparse("uncounted", report.uncounted);
  io.sparse("generated_tokens", report.generated_tokens);
  io.sparse("prompt_tokens", report.prompt_tokens);
  io.sparse("output_digest", report.output_digest);
  io.sparse("requests", report.requests);
  io.sparse("server", report.server, "server's metric");
  io.sparse("likely", report.likely, "likely tokens");
  io.sparse("latencies", report.latencies);
  io.sparse("model", report.model);
  io.sparse("load", report.load);
  io.sparse("engine_build", report.engine_build);
  io.sparse("cpu_variant", report.cpu_variant);
  io.sparse("device_refuted", report.device_refuted);
  io.sparse("warnings", report.warnings);
}

static void fields(Fields& io, ProbedDevice& device) {
  io("api", device.api);
  io("name", device.name);
  io("type", device.type);
  io("device_class", device.device_class);
}

static void fields(Fields& io, GraphCount& graph) {
  io("rows", graph.rows);
  io("computed", graph.computed);
  io("ops", graph.ops);
  io("cpu_ops", graph.cpu_ops);
  io("splits", graph.splits);
  io.sparse("sums", graph.sums);
  io.sparse("fusible", graph.fusible);
}

static void fields(Fields& io, OpCount& op) {
  io("op", op.op);
  io.sparse("type", op.type);
  io.sparse("shape", op.shape);
  io("backend", op.backend);
  io.sparse("on_cpu", op.on_cpu);
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

void fields(Fields& io, CodeFacts& code) {
  io.sparse("source", code.source);
  io.sparse("options", code.options);
  io.sparse("costs", code.costs);
  io.sparse("not_compiled", code.not_compiled);
}

// Lists the fields of a probe's counts. An op must refer to a listed graph.
static void fields(Fields& io, ProbeCounts& probe) {
  io("probe", probe.probe);
  io.sparse("devices", probe.devices, "probe device");
  io.sparse("counts", probe.counts);
  io.sparse("kernels", probe.kernels);
  io.sparse("kernels_named", probe.kernels_named);
  io.sparse("codes", probe.codes);
  io.sparse("code_groups", probe.code_groups);
  io.sparse("code_facts", probe.code_facts, "probe code");
  io.sparse("compiler", probe.compiler);
  io.sparse("graphs", probe.graphs, "probe graph");
  io.sparse("ops", probe.ops, "probe op");
  io.sparse("transfers", probe.transfers, "probe transfer");
  io.sparse("functions", probe.functions);
  io.sparse("warnings", probe.warnings);
  const auto graphs = static_cast<std::int64_t>(probe.graphs.size());
  const bool has_unknown_graph = std::ranges::any_of(
      probe.ops, [&](const OpCount& op) { return op.graph < 0 || op.graph >= graphs; });
  if (io.reads() && has_unknown_graph) {
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
  io.sparse("steal_share", machine.steal_share);
  io.sparse("other_load", machine.other_load);
  io.sparse("major_faults", machine.major_faults);
}

// Lists the fields of a record, and checks those that exclude each other.
void fields(Fields& io, RunRecord& record) {
  io("cell", record.cell);
  io("pass", pass_field(record.pass, "has a pass that is neither timed nor counted"));
  io.sparse("instructions", record.instructions);
  io.sparse("host", record.host);
  io.sparse("twin_fill", record.twin_fill);
  io.check(!(record.instructions || record.host) || record.pass == Pass::counted,
           "counts instructions or system calls in a timed pass");
  io("order", record.order);
  io.unless("side", Named{record.side, k_sides, "has a side that is neither candidate nor base"},
            Side::candidate);
  io.sparse("pair", record.pair);
  io.check(!record.pair || (*record.pair >= 0 && record.pass == Pass::timed),
           "has a pair that no timed process can be of");
  io.sparse("probed", record.probed);
  io.check(!record.probed || record.pass == Pass::timed, "has probes that no timed process has");
  io.sparse("turns", record.turns);
  io.sparse("start", record.start);
  io.sparse("held", record.held);
  io.check(!record.start || (*record.start >= 0 && *record.start <= record.order),
           "has a start that comes after it");
  io("asked", record.parameters, "record asked");
  io.unless("attempt", record.attempt, 1);
  io("started_at", record.started_at);
  io("wall_seconds", record.wall_seconds);
  io("ended", Named{record.ended, k_endings, "does not say how the process ended"});
  io.sparse("exit_code", record.exit_code);
  io.sparse("signal", record.signal);
  io.sparse("cpu_seconds", record.cpu_seconds);
  io.sparse("peak_rss_bytes", record.peak_rss_bytes);
  io.sparse("took", record.system_usage);
  io.sparse("machine", record.machine, "record machine");
  io.sparse("report", record.report);
  io.sparse("probes", record.probes, "probe");
  io.sparse("error", record.error);
  io.sparse("stderr_tail", record.stderr_tail);
  io.sparse("warnings", record.warnings);
}

std::string_view to_string(ServerFigure::Kind kind) { return name_of(k_figure_kinds, kind); }
std::string_view to_string(Pass pass) { return name_of(k_passes, pass); }
std::string_view to_string(Side side) { return name_of(k_sides, side); }
std::string_view to_string(Ended ended) { return name_of(k_endings, ended); }

Named<Pass> pass_field(Pass& pass, std::string complaint) {
  return {pass, k_passes, std::move(complaint)};
}
Named<Side> side_field(Side& side, std::string complaint) {
  return {side, k_sides, std::move(complaint)};
}

}  // namespace weir::profile
