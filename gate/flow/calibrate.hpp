// What `weir calibrate` found of cells, kept for later gates of the same machine class:
// <cache>/calibration/<machine class>/<16 hex digits>.json, one a cell and fingerprint. The cache
// is source::default_cache_folder(); a CI system that gives every job a fresh machine has to keep
// that folder.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "gate/flow/measure.hpp"
#include "gate/verdict/calibration.hpp"

namespace weir::flow {
class Calibrations {
 public:
  // Of the user's cache; knows and keeps nothing where there is none.
  explicit Calibrations(sys::Files& files);

  // Nothing where none was made, or where it cannot be read: it is only told, never judged by.
  [[nodiscard]] std::optional<verdict::CalibratedCell> of(
      const profile::CellKey& cell, const profile::Provenance& provenance) const;
  // Fails where there is no cache. The answer is the file.
  [[nodiscard]] Result<std::string> keep(const verdict::CalibratedCell& cell);

 private:
  sys::Files& files_;
  std::string folder_;
};

// By cell name: pairs that the limits of each cell typically take on this machine, of those that
// were calibrated for these limits.
[[nodiscard]] std::map<std::string, double> calibrated_pairs(
    const Calibrations& calibrations, const std::vector<run::PreparedCell>& cells,
    const config::Settings& settings);

// Notes of a verdict: for each cell with times that were judged what its limits take, and once how
// many cells nobody calibrated.
void tell_calibration(const Measured& measured, const Calibrations& calibrations,
                      verdict::GateVerdict& verdict);

// weir calibrate: the configured cells against themselves, through the whole gate but its counts;
// then replays of what was measured. Can this machine hold these limits?
struct CalibrateOptions {
  std::optional<std::string> against, budget, resume;
  std::vector<std::string> words;  // after "--"
  std::int64_t pairs = 40;
  std::int64_t replays = 1000;
};
[[nodiscard]] Result<Answer> calibrate(const Job& asked, const CalibrateOptions& options);

}  // namespace weir::flow
