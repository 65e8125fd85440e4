// weir.calibration/1, and weir.calibrated_cell/1 as it is stored.
#include <limits>

#include "gate/base/json.hpp"
#include "gate/verdict/calibration.hpp"

namespace weir::verdict {
namespace {

using stats::Decision;

constexpr auto k_decisions = std::to_array<Name<Decision>>({{Decision::undecided, "inconclusive"},
                                                            {Decision::pass, "pass"},
                                                            {Decision::fail, "fail"},
                                                            {Decision::unlike, "unlike"}});
constexpr std::string_view k_schema = "weir.calibrated_cell/1";

}  // namespace

static void fields(Fields& io, PairsNeeded& needed) {
  io("mean", needed.mean);
  io("p95", needed.p95);
  io("decided", needed.decided);
}

// What a later gate asks of a stored one: which metrics, limits and how loud.
static void fields(Fields& io, CalibratedMetric& metric) {
  io("metric", unit::MetricField{metric.metric, "\"metric\" should be a metric"});
  io("limit", metric.limit);
  io("amount", metric.amount);
  io("tolerate", metric.tolerated);
  if (io.reads()) metric.noise = std::numeric_limits<double>::infinity();
  io.always("noise", Short{metric.noise});
  if (io.reads()) return;
  io("base_runs", metric.base);
  io("candidate_runs", metric.candidate);
  io.derived("verdict", name_of(k_decisions, metric.decision));
  io("decided_after", metric.decided_after);
  io.object("log_evidence", [&](Fields& of) {
    of("slower", Short{metric.log_slower});
    of("beyond", Short{metric.log_beyond});
    of("within", Short{metric.log_within});
  });
}

static void fields(Fields& io, CalibratedCell& cell) {
  io.derived("schema", k_schema);
  io("cell", cell.cell);
  io("fingerprint", cell.fingerprint);
  io("machine_class", cell.machine_class);
  io("machine_name", cell.machine_name);
  io("date", cell.date);
  io("pairs", cell.pairs);
  io.sparse("error", cell.error);
  if (cell.error) return;
  io("pair_seconds", cell.pair_seconds);
  io.check(cell.pair_seconds >= 0, "\"pair_seconds\" can not be negative");
  const auto needed = [&](Fields& of) {
    for (const auto& [key, pairs] :
         {std::pair("unchanged", &cell.unchanged), {"at_limit", &cell.at_limit}}) {
      of(key, *pairs, fmt::format(" {}", key).c_str());
      of.check(pairs->mean >= 0 && pairs->p95 >= 0, "pairs can not be fewer than none");
    }
  };
  io.object("pairs_needed", needed, " pairs_needed");
  io.derived("most_pairs", cell.most_pairs);
  io("holds", cell.holds);
  io("metrics", cell.metrics, "metrics");
}

static void fields(Fields& io, GateSeconds& seconds) {
  io("mean", seconds.mean);
  io("p95", seconds.p95);
}

Json to_json(const CalibratedCell& cell) { return write_fields(cell); }

Json to_json(const Calibration& calibration) {
  Json json = {{"schema", "weir.calibration/1"},
               {"weir", calibration.weir_version},
               {"date", calibration.date},
               {"config", calibration.config},
               {"base", calibration.base},
               {"two_builds", calibration.two_builds},
               {"budget_seconds", calibration.budget_seconds},
               {"false_alarm", calibration.false_alarm},
               {"timed_metrics", calibration.timed_metrics},
               {"cells", write_fields(calibration.cells)},
               {"replays", calibration.replays},
               {"failed", calibration.failed},
               {"failed_at_most", calibration.failed_at_most},
               {"seconds_needed",
                {{"unchanged", write_fields(calibration.unchanged)},
                 {"at_limit", write_fields(calibration.at_limit)}}},
               {"holds", calibration.holds},
               {"answer", calibration.answer},
               {"notes", calibration.notes}};
  if (calibration.two_builds) json["seen_failed"] = calibration.seen_failed;
  return json;
}

Result<CalibratedCell> calibrated_cell_from_json(const Json& json) {
  if (!json.is_object() || json.value("schema", Json()) != k_schema) {
    return fail(Code::data, "calibration: \"schema\" should be \"{}\"", k_schema);
  }
  return read_fields<CalibratedCell>(json, "calibration");
}

}  // namespace weir::verdict
