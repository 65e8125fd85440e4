// Calibrations of cells, stored for later gates of the same machine class in
// <cache>/calibration/<machine class>/<16 hex digits>.json, one for each cell and fingerprint. The
// cache is source::default_cache_folder(); a CI system with a fresh machine for every job has to
// keep it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "gate/flow/measure.hpp"
#include "gate/verdict/calibration.hpp"

namespace weir::flow {
class Calibrations {
 public:
  // Uses the user's cache; without one, finds and stores nothing.
  explicit Calibrations(sys::Files& files);

  // Returns the calibration of a cell; nothing if there is none or it cannot be read. It only
  // informs people: no verdict depends on it.
  [[nodiscard]] std::optional<verdict::CalibratedCell> find(
      const profile::CellKey& cell, const profile::Provenance& provenance) const;
  // Stores a calibration and returns its file. Fails without a cache.
  [[nodiscard]] Result<std::string> keep(const verdict::CalibratedCell& cell);

 private:
  sys::Files& files_;
  std::string folder_;
};

// Returns by cell name how many pairs the limits typically take on this machine, for cells that
// were calibrated with these limits.
[[nodiscard]] std::map<std::string, double> calibrated_pairs(
    const Calibrations& calibrations, const std::vector<run::PreparedCell>& cells,
    const config::Settings& settings);

// Adds notes to a verdict: for each cell with judged times how many pairs its limits take, and one
// for the cells that nobody calibrated.
void add_calibration_notes(const MeasuredRun& measured, const Calibrations& calibrations,
                           verdict::GateVerdict& verdict);

// weir calibrate: gates the configured cells against themselves (without counts), then replays the
// measured pairs. The answer: can this machine decide these limits?
struct CalibrateOptions {
  std::optional<std::string> against, budget, resume;
  std::vector<std::string> trailing_arguments;  // after "--"
  std::int64_t pairs = 40;
  std::int64_t replays = 1000;
};
[[nodiscard]] Result<Answer> calibrate(const Job& job, const CalibrateOptions& options);

}  // namespace weir::flow
