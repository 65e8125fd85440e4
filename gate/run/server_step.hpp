// One cell's load on an engine that serves (server_start.hpp), in parts: up, warm, blocks of the
// load, ended. One alone runs them in a row; several share a start; of a pair both are up, and
// their blocks take turns (server_run.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/adapters/server_metrics.hpp"
#include "gate/profile/record.hpp"
#include "gate/profile/served.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/runner.hpp"
#include "gate/run/server_start.hpp"

namespace weir::run {

// Each part answers false where it gave up: nothing but end() is to be called then. The engine's
// timeout is of the time within them, and of the start that others began; while another server has
// its turn it stands still.
class ServerStep {
 public:
  // `start`, which outlives it, is up already where an earlier step has begun it.
  ServerStep(const Effects& effects, ServerStart& start, const PreparedCell& cell, const Step& step,
             std::int64_t attempt);

  [[nodiscard]] bool begin();    // has it started, and waits until it is up
  [[nodiscard]] bool warm_up();  // and reads what the probes count until then
  // Sends so many requests; `block` counts from 0, and with a rate has arrivals of its own.
  [[nodiscard]] bool serve(std::int64_t requests, std::int64_t block = 0);
  // After the last block. False where it measures nothing all the same.
  bool report();
  // Its record, once the start has ended. Nothing when weir was stopped before it was whole.
  [[nodiscard]] std::optional<profile::RunRecord> end(ServerStart::Place place);

  // The record of one that has reported, before the start has ended.
  [[nodiscard]] profile::RunRecord so_far() const;

  [[nodiscard]] profile::RunRecord& record() { return record_; }

 private:
  // Whose time runs.
  class Turn {
   public:
    explicit Turn(ServerStep& step) : step_(step) { step.since_ = step.effects_.clock.steady(); }
    ~Turn() { step_.used_ += step_.effects_.clock.steady() - step_.since_; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    ServerStep& step_;
  };

  bool give_up(std::string why, profile::Ended ended = profile::Ended::exited);
  [[nodiscard]] double seconds_left() const;  // within a turn
  bool find_prompt();
  // Sends the warm-up, or a block. False where that measures nothing.
  bool drive(std::int64_t requests, std::optional<std::int64_t> block);
  // What it says of itself under `metrics`; nothing, and a warning, where it does not.
  [[nodiscard]] std::optional<adapters::ServerMetrics> ask_metrics();
  void report_metrics();
  bool read_counts(std::vector<profile::ProbeCounts>& counts);
  void make_fit(profile::RunRecord& record) const;  // to be written
  void mask(profile::RunRecord& record) const;

  const Effects& effects_;
  ServerStart& start_;
  const PreparedCell& cell_;
  const Step& step_;
  const config::ServerSettings& settings_;
  bool probed_, whole_ = false;
  profile::RunRecord record_;
  double begun_ = 0, since_ = 0, used_ = 0;
  std::optional<sys::CpuTicks> ticks_, ticks_after_;
  std::string prompt_;
  std::optional<adapters::ServerMetrics> metrics_before_;
  std::unique_ptr<sys::Streams> streams_;
  std::vector<profile::ServedRequest> requests_;
  std::vector<profile::ProbeCounts> before_;
};

}  // namespace weir::run
