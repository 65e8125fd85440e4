// Baseline -> weir.baseline/1, and its place on disk.
//
//   "counts":        exact counts by metric name, 65 or "133/2"
//   "nearly_exact":  counts that do not quite repeat, {"median", "repeatability"}
//   "sources":       count -> who counted it; by base name ("dispatches") where all its scopes
//   agree "metrics":       what metrics declared in a config are, {"kind", "unit", "better"}
//   "sessions":      machine class -> timed sessions, oldest first; the only part that depends on
//   the
//                    machine and on the engine's build
#include "gate/base/text.hpp"

#include <algorithm>

#include "gate/baseline/baseline.hpp"
#include "gate/baseline/format.hpp"
#include "gate/profile/metric_json.hpp"

namespace weir::baseline {
namespace {

Json sources_to_json(const Baseline& baseline) {
  std::map<std::string, std::vector<const profile::Measurement*>> by_base;
  for (const auto& [name, measured] : baseline.counts) {
    by_base[measured.metric.base].push_back(&measured);
  }
  Json sources = Json::object();
  for (const auto& [base, measurements] : by_base) {
    const std::string& source = measurements.front()->source;
    const bool agree =
        std::all_of(measurements.begin(), measurements.end(),
                    [&source](const auto* measured) { return measured->source == source; });
    if (agree) {
      sources[base] = source;
      continue;
    }
    for (const auto* measured : measurements) sources[measured->metric.name] = measured->source;
  }
  return sources;
}

Json sessions_to_json(const Baseline& baseline) {
  Json machines = Json::object();
  for (const auto& [machine, sessions] : baseline.sessions) {
    Json list = Json::array();
    for (const Session& session : sessions) {
      Json one = {{"engine_build", session.engine_build}, {"samples", session.samples}};
      if (session.reference) {
        one["reference"] = {{"cell", session.reference->cell},
                            {"fingerprint", session.reference->fingerprint},
                            {"engine_build", session.reference->engine_build},
                            {"metric", session.reference->metric},
                            {"rates", session.reference->rates}};
      }
      list.push_back(std::move(one));
    }
    if (!list.empty()) machines[machine] = std::move(list);
  }
  return machines;
}

}  // namespace

bool valid_class(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= k_longest_class && name.front() != '.' &&
         name.front() != '-' && std::all_of(name.begin(), name.end(), fits);
}

std::string to_text(const Baseline& baseline) {
  Json counts = Json::object(), nearly = Json::object(), metrics = Json::object();
  for (const auto& [name, measured] : baseline.counts) {
    if (!unit::find_metric(name)) {
      metrics[name] = {{"kind", unit::to_string(measured.metric.kind)},
                       {"unit", unit::to_string(measured.metric.unit)},
                       {"better", unit::to_string(measured.metric.better)}};
    }
    if (measured.exact) {
      counts[name] = profile::rational_to_json(*measured.exact);
    } else if (const auto middle = measured.value()) {
      nearly[name] = {{"median", profile::number_to_json(*middle)},
                      {"repeatability", measured.repeatability.value_or(0)}};
    }
  }
  Json json = {{"schema", k_schema},
               {"cell", baseline.cell},
               {"fingerprint", baseline.fingerprint},
               {"fingerprint_parts", baseline.fingerprint_parts},
               {"device_class", baseline.device_class},
               {"device_name", baseline.device_name},
               {"lengths", baseline.lengths},
               {"counts", std::move(counts)},
               {"placement", profile::to_json(baseline.placement)},
               {"work", profile::to_json(baseline.work)}};
  if (!nearly.empty()) json["nearly_exact"] = std::move(nearly);
  if (!metrics.empty()) json["metrics"] = std::move(metrics);
  if (!baseline.counts.empty()) json["sources"] = sources_to_json(baseline);
  if (baseline.kernels) json["kernels"] = profile::to_json(*baseline.kernels);
  if (baseline.functions) json["functions"] = profile::to_json(*baseline.functions);
  Json sessions = sessions_to_json(baseline);
  if (!sessions.empty()) json["sessions"] = std::move(sessions);
  return dump_json(json, 1) + "\n";
}

Result<std::string> path_of(const profile::CellKey& cell, std::string_view device_class) {
  // str() of a key that was put together by hand may hold anything: only its parsed form is a path.
  WEIR_TRY(const auto key, profile::CellKey::parse(cell.str()));
  if (!valid_class(device_class)) {
    return fail(Code::data, "{}: \"{}\" is not a device class that can name a file", key.str(),
                text::printable(device_class.substr(0, 2 * k_longest_class)));
  }
  return fmt::format("{}/{}.json", key.str(), device_class);
}

}  // namespace weir::baseline
