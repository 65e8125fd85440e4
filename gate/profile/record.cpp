// RunRecord as one line of JSON. Keys are the names of the fields; what is absent, empty or at its
// default is left out, so that a journal of thousands of lines stays small.
#include "gate/profile/record.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "gate/profile/metric_json.hpp"

namespace weir::profile {
namespace {

constexpr std::array<std::pair<Ended, std::string_view>, 6> k_endings{{
    {Ended::exited, "exited"},
    {Ended::signaled, "signaled"},
    {Ended::timed_out, "timed_out"},
    {Ended::output_limit, "output_limit"},
    {Ended::not_started, "not_started"},
    {Ended::interrupted, "interrupted"},
}};

template <class T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}
void put(Json& json, const char* key, const std::vector<std::string>& values) {
  if (!values.empty()) json[key] = values;
}
void put(Json& json, const char* key, const std::vector<std::int64_t>& values) {
  if (!values.empty()) json[key] = values;
}
void put(Json& json, const char* key, const std::map<std::string, std::int64_t>& values) {
  if (!values.empty()) json[key] = values;
}

constexpr std::array<std::pair<ServerFigure::Kind, std::string_view>, 3> k_figure_kinds{
    {{ServerFigure::Kind::counter, "counter"},
     {ServerFigure::Kind::gauge, "gauge"},
     {ServerFigure::Kind::mean, "mean"}}};

Json report_to_json(const EngineReport& report) {
  Json json = Json::object();
  if (!report.times.empty()) {
    Json& times = json["times"] = Json::array();
    for (const auto& series : report.times) {
      times.push_back({{"metric", metric_to_json(series.metric)}, {"samples", series.samples}});
    }
  }
  put(json, "counts", report.counts);
  if (!report.count_metrics.empty()) {
    Json& metrics = json["count_metrics"] = Json::array();
    for (const auto& [name, metric] : report.count_metrics) {
      metrics.push_back({{"count", name}, {"metric", metric_to_json(metric)}});
    }
  }
  put(json, "generated_tokens", report.generated_tokens);
  put(json, "prompt_tokens", report.prompt_tokens);
  put(json, "output_digest", report.output_digest);
  put(json, "requests", report.requests);
  if (!report.server.empty()) json["server"] = to_json(report.server);
  put(json, "model", report.model);
  put(json, "engine_build", report.engine_build);
  put(json, "cpu_variant", report.cpu_variant);
  put(json, "device_refuted", report.device_refuted);
  put(json, "warnings", report.warnings);
  return json;
}

Result<EngineReport> report_from_json(const Json& json) {
  EngineReport report;
  JsonReader read(json, "report");
  if (read.has("times")) {
    for (const Json& item : read.array("times")) {
      JsonReader series(item, "report times");
      const auto metric = item.is_object() && item.contains("metric")
                              ? metric_from_json(item["metric"])
                              : std::nullopt;
      if (!metric) series.complain("has a metric that is not known");
      auto samples = numbers_from_json(series, "samples");
      if (auto problem = series.problem()) return tl::unexpected(*problem);
      report.times.push_back({*metric, std::move(samples)});
    }
  }
  report.counts = counts_from_json(read, "counts");
  if (read.has("count_metrics")) {
    for (const Json& item : read.array("count_metrics")) {
      JsonReader declared(item, "report count_metrics");
      const std::string name = declared.string("count");
      const auto metric = item.is_object() && item.contains("metric")
                              ? metric_from_json(item["metric"])
                              : std::nullopt;
      if (!metric) declared.complain("has a metric that is not known");
      if (auto problem = declared.problem()) return tl::unexpected(*problem);
      report.count_metrics[name] = *metric;
    }
  }
  report.generated_tokens = read.optional_integer("generated_tokens");
  report.prompt_tokens = read.optional_integer("prompt_tokens");
  report.output_digest = read.optional_string("output_digest");
  report.requests = read.optional_integer("requests");
  if (read.has("server")) {
    WEIR_TRY(report.server, server_figures_from_json(read.array("server")));
  }
  report.model = read.optional_string("model");
  report.engine_build = read.optional_string("engine_build");
  report.cpu_variant = read.optional_string("cpu_variant");
  report.device_refuted = read.optional_string("device_refuted");
  report.warnings = read.strings("warnings");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return report;
}

void put_work(Json& json, const ProbeCounts& probe) {
  for (const GraphCount& graph : probe.graphs) {
    Json item = {{"rows", graph.rows},
                 {"computed", graph.computed},
                 {"ops", graph.ops},
                 {"cpu_ops", graph.cpu_ops},
                 {"splits", graph.splits}};
    put(item, "sums", graph.sums);
    json["graphs"].push_back(std::move(item));
  }
  for (const OpCount& op : probe.ops) {
    Json item = {{"op", op.op}, {"backend", op.backend}, {"graph", op.graph}, {"count", op.count}};
    if (!op.type.empty()) item["type"] = op.type;
    if (!op.shape.empty()) item["shape"] = op.shape;
    if (op.on_cpu) item["on_cpu"] = true;
    json["ops"].push_back(std::move(item));
  }
  for (const TransferCount& transfer : probe.transfers) {
    json["transfers"].push_back({{"kind", transfer.kind},
                                 {"from", transfer.from},
                                 {"to", transfer.to},
                                 {"calls", transfer.calls},
                                 {"bytes", transfer.bytes}});
  }
}

Result<void> take_work(JsonReader& read, ProbeCounts* probe) {
  if (read.has("graphs")) {
    for (const Json& item : read.array("graphs")) {
      JsonReader graph(item, "probe graph");
      GraphCount out{.rows = graph.integer("rows"),
                     .computed = graph.integer("computed"),
                     .ops = graph.integer("ops"),
                     .cpu_ops = graph.integer("cpu_ops"),
                     .splits = graph.integer("splits"),
                     .sums = counts_from_json(graph, "sums")};
      if (auto problem = graph.problem()) return tl::unexpected(*problem);
      probe->graphs.push_back(std::move(out));
    }
  }
  if (read.has("ops")) {
    for (const Json& item : read.array("ops")) {
      JsonReader op(item, "probe op");
      OpCount out{.op = op.string("op"),
                  .type = op.optional_string("type").value_or(""),
                  .shape = op.optional_string("shape").value_or(""),
                  .backend = op.string("backend"),
                  .on_cpu = op.optional_boolean("on_cpu").value_or(false),
                  .graph = op.integer("graph"),
                  .count = op.integer("count")};
      if (out.graph < 0 || out.graph >= static_cast<std::int64_t>(probe->graphs.size())) {
        op.complain("is of a graph that is not there");
      }
      if (auto problem = op.problem()) return tl::unexpected(*problem);
      probe->ops.push_back(std::move(out));
    }
  }
  if (read.has("transfers")) {
    for (const Json& item : read.array("transfers")) {
      JsonReader transfer(item, "probe transfer");
      TransferCount out{.kind = transfer.string("kind"),
                        .from = transfer.string("from"),
                        .to = transfer.string("to"),
                        .calls = transfer.integer("calls"),
                        .bytes = transfer.integer("bytes")};
      if (auto problem = transfer.problem()) return tl::unexpected(*problem);
      probe->transfers.push_back(std::move(out));
    }
  }
  return {};
}

Json probe_to_json(const ProbeCounts& probe) {
  Json json = {{"probe", probe.probe}};
  if (!probe.devices.empty()) {
    Json& devices = json["devices"] = Json::array();
    for (const DeviceSeen& device : probe.devices) {
      devices.push_back({{"api", device.api},
                         {"name", device.name},
                         {"type", device.type},
                         {"device_class", device.device_class}});
    }
  }
  put(json, "counts", probe.counts);
  put(json, "kernels", probe.kernels);
  if (probe.kernels_named) json["kernels_named"] = true;
  put_work(json, probe);
  put(json, "functions", probe.functions);
  put(json, "warnings", probe.warnings);
  return json;
}

Result<ProbeCounts> probe_from_json(const Json& json) {
  ProbeCounts probe;
  JsonReader read(json, "probe");
  probe.probe = read.string("probe");
  if (read.has("devices")) {
    for (const Json& item : read.array("devices")) {
      JsonReader device(item, "probe device");
      probe.devices.push_back({device.string("api"), device.string("name"), device.string("type"),
                               device.string("device_class")});
      if (auto problem = device.problem()) return tl::unexpected(*problem);
    }
  }
  probe.counts = counts_from_json(read, "counts");
  probe.kernels = counts_from_json(read, "kernels");
  probe.kernels_named = read.optional_boolean("kernels_named").value_or(false);
  WEIR_CHECK(take_work(read, &probe));
  probe.functions = counts_from_json(read, "functions");
  probe.warnings = read.strings("warnings");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return probe;
}

Json asked_to_json(const Asked& asked) {
  return {{"prompt_tokens", asked.prompt_tokens},
          {"tokens", asked.tokens},
          {"repeats", asked.repeats},
          {"depth", asked.depth}};
}

int small_integer(JsonReader& read, const char* key) {
  const auto value = read.optional_integer(key).value_or(0);
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
    read.complain(fmt::format("\"{}\" is out of range", key));
    return 0;
  }
  return static_cast<int>(value);
}

}  // namespace

std::string_view to_string(ServerFigure::Kind kind) {
  for (const auto& [known, name] : k_figure_kinds) {
    if (known == kind) return name;
  }
  return "counter";
}

Json to_json(const std::vector<ServerFigure>& figures) {
  Json list = Json::array();
  for (const ServerFigure& figure : figures) {
    list.push_back({{"name", figure.name},
                    {"kind", to_string(figure.kind)},
                    {"value", number_to_json(figure.value)}});
  }
  return list;
}

Result<std::vector<ServerFigure>> server_figures_from_json(const Json& list) {
  std::vector<ServerFigure> figures;
  for (const Json& item : list) {
    JsonReader read(item, "server's metric");
    ServerFigure& figure = figures.emplace_back();
    figure.name = read.string("name");
    const std::string kind = read.string("kind");
    figure.value = read.number("value");
    const auto known = std::find_if(k_figure_kinds.begin(), k_figure_kinds.end(),
                                    [&](const auto& one) { return one.second == kind; });
    if (known == k_figure_kinds.end()) {
      read.complain("is neither counter nor gauge nor mean");
    } else {
      figure.kind = known->first;
    }
    if (auto problem = read.problem()) return tl::unexpected(*problem);
  }
  return figures;
}

std::string_view to_string(Pass pass) { return pass == Pass::timed ? "timed" : "counted"; }

std::string_view to_string(Side side) { return side == Side::base ? "base" : "candidate"; }

std::string_view to_string(Ended ended) {
  for (const auto& [known, name] : k_endings) {
    if (known == ended) return name;
  }
  return "exited";
}

Json to_json(const RunRecord& record) {
  Json json = {{"cell", record.cell},
               {"pass", to_string(record.pass)},
               {"order", record.order},
               {"asked", asked_to_json(record.asked)},
               {"started_at", record.started_at},
               {"wall_seconds", record.wall_seconds},
               {"ended", to_string(record.ended)}};
  if (record.instructions) json["instructions"] = true;
  if (record.twin_fill != 0) json["twin_fill"] = record.twin_fill;
  if (record.side != Side::candidate) json["side"] = to_string(record.side);
  put(json, "pair", record.pair);
  put(json, "turns", record.turns);
  put(json, "start", record.start);
  if (record.attempt != 1) json["attempt"] = record.attempt;
  if (record.exit_code != 0) json["exit_code"] = record.exit_code;
  if (record.signal != 0) json["signal"] = record.signal;
  put(json, "cpu_seconds", record.cpu_seconds);
  put(json, "peak_rss_bytes", record.peak_rss_bytes);
  Json machine = Json::object();
  put(machine, "steal_share", record.machine.steal_share);
  put(machine, "other_load", record.machine.other_load);
  put(machine, "major_faults", record.machine.major_faults);
  if (!machine.empty()) json["machine"] = std::move(machine);
  if (record.report) json["report"] = report_to_json(*record.report);
  if (!record.probes.empty()) {
    Json& probes = json["probes"] = Json::array();
    for (const ProbeCounts& probe : record.probes) probes.push_back(probe_to_json(probe));
  }
  put(json, "error", record.error);
  if (!record.stderr_tail.empty()) json["stderr_tail"] = record.stderr_tail;
  put(json, "warnings", record.warnings);
  return json;
}

Result<RunRecord> record_from_json(const Json& json) {
  RunRecord record;
  JsonReader read(json, "record");
  record.cell = read.string("cell");
  const std::string pass = read.string("pass");
  if (pass == to_string(Pass::counted)) {
    record.pass = Pass::counted;
  } else if (pass != to_string(Pass::timed)) {
    read.complain("has a pass that is neither timed nor counted");
  }
  record.instructions = read.optional_boolean("instructions").value_or(false);
  record.twin_fill = read.optional_integer("twin_fill").value_or(0);
  if (record.instructions && record.pass != Pass::counted) {
    read.complain("counts instructions in a timed pass");
  }
  record.order = read.integer("order");
  const std::string side = read.optional_string("side").value_or("candidate");
  if (side == to_string(Side::base)) {
    record.side = Side::base;
  } else if (side != to_string(Side::candidate)) {
    read.complain("has a side that is neither candidate nor base");
  }
  record.pair = read.optional_integer("pair");
  if (record.pair && (*record.pair < 0 || record.pass != Pass::timed)) {
    read.complain("has a pair that no timed process can be of");
  }
  record.turns = integers_from_json(read, "turns");
  record.start = read.optional_integer("start");
  if (record.start && (*record.start < 0 || *record.start > record.order)) {
    read.complain("has a start that comes after it");
  }
  JsonReader asked(read.object("asked"), "record asked");
  record.asked.prompt_tokens = asked.optional_integer("prompt_tokens").value_or(0);
  record.asked.tokens = asked.optional_integer("tokens").value_or(0);
  record.asked.repeats = asked.optional_integer("repeats").value_or(1);
  record.asked.depth = asked.optional_integer("depth").value_or(0);
  record.attempt = read.optional_integer("attempt").value_or(1);
  record.started_at = read.number("started_at");
  record.wall_seconds = read.number("wall_seconds");
  const std::string ended = read.string("ended");
  bool known = false;
  for (const auto& [ending, name] : k_endings) {
    if (name == ended) {
      record.ended = ending;
      known = true;
    }
  }
  if (!known) read.complain("does not say how the process ended");
  record.exit_code = small_integer(read, "exit_code");
  record.signal = small_integer(read, "signal");
  record.cpu_seconds = read.optional_number("cpu_seconds");
  record.peak_rss_bytes = read.optional_integer("peak_rss_bytes");
  if (read.has("machine")) {
    JsonReader machine(read.object("machine"), "record machine");
    record.machine.steal_share = machine.optional_number("steal_share");
    record.machine.other_load = machine.optional_number("other_load");
    record.machine.major_faults = machine.optional_integer("major_faults");
    if (auto problem = machine.problem()) return tl::unexpected(*problem);
  }
  if (read.has("report")) {
    WEIR_TRY(record.report, report_from_json(read.object("report")));
  }
  if (read.has("probes")) {
    for (const Json& item : read.array("probes")) {
      WEIR_TRY(auto probe, probe_from_json(item));
      record.probes.push_back(std::move(probe));
    }
  }
  record.error = read.optional_string("error");
  record.stderr_tail = read.optional_string("stderr_tail").value_or("");
  record.warnings = read.strings("warnings");
  if (auto problem = asked.problem()) return tl::unexpected(*problem);
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return record;
}

}  // namespace weir::profile
