// Which counted processes may run side by side: as many as there are cores, as long as their memory
// is there, one at a time on a device with memory of its own, and one at a port that a url names.
// Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "gate/run/plan.hpp"

namespace weir::run {

// How requests that overlap meet in batches is a matter of time: what else runs would be in their
// counts.
[[nodiscard]] bool counts_alone(const PreparedCell& cell);

class Admission {
 public:
  explicit Admission(std::int64_t cores) : cores_(cores < 1 ? 1 : cores) {}

  // `available`: bytes that the machine can give now; absent: not known, then one at a time is run.
  // An engine that fits nowhere is run alone: it may fit all the same, and if not, it says so.
  // `alone`: nothing may run beside it (counts_alone()).
  [[nodiscard]] bool admits(const PreparedCell& cell, std::optional<std::int64_t> available,
                            bool alone = false) const;
  void started(const PreparedCell& cell, bool alone = false);
  void ended(const PreparedCell& cell, std::optional<std::int64_t> peak_rss_bytes);

  // What one process of the cell will need: 1.2 x the biggest seen, else 1.5 x the model + 256 MiB.
  [[nodiscard]] std::int64_t estimate(const PreparedCell& cell) const;

 private:
  std::int64_t cores_;
  std::int64_t running_ = 0;
  bool alone_ = false;         // the one that runs wants nothing beside it
  std::int64_t promised_ = 0;  // the estimates of all that run
  std::multiset<std::string> devices_, urls_;
  std::map<std::string, std::int64_t> peaks_;       // by cell name
  std::multimap<std::string, std::int64_t> given_;  // by cell name: what was promised
};

}  // namespace weir::run
