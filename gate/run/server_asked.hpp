// What one cell asks of its server: a prompt again and again, or the requests of a workload, in the
// order and at the moments that the cell says. Reads the prompt's file; all else is pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/adapters/workload.hpp"
#include "gate/load/load.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/prepare.hpp"

namespace weir::run {

class ServerAsked {
 public:
  // Both outlive it.
  ServerAsked(const PreparedCell& cell, const Step& step) : cell_(cell), step_(step) {}

  // Before anything else.
  [[nodiscard]] Result<void> find(const sys::Files& files);

  // The next `requests`: the warm-up where there is no block, else a block (from 0; with a rate
  // each has arrivals of its own), all of them held by `queue` where there is one. Where the server
  // is, and how long it may take, are the caller's to say.
  [[nodiscard]] Result<load::LoadPlan> plan(std::int64_t requests,
                                            std::optional<std::int64_t> block, load::Queue* queue,
                                            std::vector<std::string>& warnings);

 private:
  void take_workload(bool warm_up, load::LoadPlan& plan, std::vector<std::string>& warnings);

  const PreparedCell& cell_;
  const Step& step_;
  std::string prompt_;
  std::vector<adapters::WorkloadRequest> workload_;
  std::size_t next_ = 0;  // of those, to be sent
};

}  // namespace weir::run
