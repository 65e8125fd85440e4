#include "gate/app/calibrations.hpp"

#include <algorithm>
#include <set>

#include "gate/base/hash.hpp"
#include "gate/source/base.hpp"
#include "gate/sys/paths.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::app {
namespace {

constexpr std::uint64_t k_largest_calibration = std::uint64_t{1} << 20;

bool judged_a_time(const verdict::CellVerdict& cell) {
  using verdict::Outcome;
  return std::any_of(cell.metrics.begin(), cell.metrics.end(), [](const auto& metric) {
    return metric.metric.kind != unit::Kind::count && metric.limit.mode == verdict::Mode::gate &&
           (metric.limit.max_drop || metric.limit.max_increase) &&
           (metric.verdict == Outcome::pass || metric.verdict == Outcome::fail ||
            metric.verdict == Outcome::improved || metric.verdict == Outcome::inconclusive);
  });
}

}  // namespace

Calibrations::Calibrations(sys::Files& files) : files_(files) {
  if (const auto cache = source::default_cache_folder()) {
    folder_ = sys::join_path(*cache, "calibration");
  }
}

std::string Calibrations::path_of(const profile::CellKey& cell, const std::string& machine_class,
                                  const std::string& fingerprint) const {
  const std::string name = short_hash(cell.str() + "\n" + fingerprint, 16) + ".json";
  return sys::join_path(folder_, machine_class + "/" + name);
}

std::optional<verdict::CalibratedCell> Calibrations::of(
    const profile::CellKey& cell, const profile::Provenance& provenance) const {
  if (folder_.empty() || provenance.machine_class.empty()) return std::nullopt;
  const auto text = files_.read(path_of(cell, provenance.machine_class, provenance.fingerprint),
                                k_largest_calibration);
  if (!text) return std::nullopt;
  const auto json = parse_json(*text);
  if (!json) return std::nullopt;
  auto read = verdict::calibrated_cell_from_json(*json);
  if (!read || read->cell != cell || read->fingerprint != provenance.fingerprint ||
      read->machine_class != provenance.machine_class) {
    return std::nullopt;
  }
  return std::move(*read);
}

Result<std::string> Calibrations::keep(const verdict::CalibratedCell& cell) {
  if (folder_.empty())
    return fail(Code::config, "no place for a cache: set WEIR_CACHE to a folder");
  const std::string path = path_of(cell.cell, cell.machine_class, cell.fingerprint);
  WEIR_CHECK(files_.make_dirs(sys::folder_of(path)));
  WEIR_CHECK(files_.write_atomic(path, dump_json(verdict::to_json(cell), 1) + "\n"));
  return path;
}

std::map<std::string, double> calibrated_pairs(const Calibrations& calibrations,
                                               const std::vector<run::PreparedCell>& cells,
                                               const config::Settings& settings) {
  std::map<std::string, double> pairs;
  for (const run::PreparedCell& cell : cells) {
    const auto known = calibrations.of(cell.cell.key, cell.facts.provenance);
    if (known && verdict::still_holds(*known, settings.limits)) {
      pairs[cell.cell.key.str()] = known->typical_pairs();
    }
  }
  return pairs;
}

void tell_calibration(const Measured& measured, const Calibrations& calibrations,
                      verdict::GateVerdict& verdict) {
  std::vector<profile::CellKey> keys;
  for (const profile::Profile& profile : measured.profiles) keys.push_back(profile.cell);
  std::set<std::string> lines;
  for (const verdict::DepthGroup& group : verdict::depth_groups(keys))
    lines.insert(group.fit.str());
  std::size_t timed = 0, unknown = 0;
  for (std::size_t i = 0; i < verdict.cells.size() && i < measured.profiles.size(); ++i) {
    // A line over depths is made of cells that are calibrated, and is not itself.
    if (!judged_a_time(verdict.cells[i])) continue;
    if (lines.contains(verdict.cells[i].cell.str())) continue;
    ++timed;
    const profile::Profile& profile = measured.profiles[i];
    const auto known = calibrations.of(profile.cell, profile.provenance);
    if (known && verdict::still_holds(*known, measured.settings->limits)) {
      verdict.cells[i].notes.push_back(verdict::words(*known));
    } else {
      ++unknown;
    }
  }
  if (unknown == 0) return;
  const std::string which =
      unknown == timed ? std::string("these limits on times were")
                       : fmt::format("the limits on times of {} of {} cells were", unknown, timed);
  verdict.notes.push_back(which + " never calibrated on this machine: weir calibrate");
}

}  // namespace weir::app
