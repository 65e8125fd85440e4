// The requests that one cell sends to its server: a prompt again and again, a burst of different
// lengths, or a workload, at its own moments where the cell has no rate, capacity or concurrency.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/adapters/workload.hpp"
#include "gate/load/load.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/prepare.hpp"

namespace weir::run {

class ServerRequests {
 public:
  // Both outlive it.
  ServerRequests(const PreparedCell& cell, const Step& step) : cell_(cell), step_(step) {}

  // The prompt's text or the workload's requests; before plan().
  [[nodiscard]] Result<void> read_prompt(const sys::Files& files);

  // The next `requests`: the warm-up where there is no block, else a block (from 0; with a rate
  // each has arrivals of its own), all of them held by `queue`, which may be null. A block moves on
  // in the workload, the warm-up does not. The caller adds url, token, limits and what a soak
  // needs. Fails where extra_body is no JSON.
  [[nodiscard]] Result<load::LoadPlan> plan(std::int64_t requests,
                                            std::optional<std::int64_t> block, load::Queue* queue,
                                            std::vector<std::string>& warnings);

 private:
  void plan_workload(bool warm_up, load::LoadPlan& plan, std::vector<std::string>& warnings);

  const PreparedCell& cell_;
  const Step& step_;
  std::string prompt_;
  std::vector<adapters::WorkloadRequest> workload_;
  std::size_t next_ = 0;  // index of the next one to send
};

}  // namespace weir::run
