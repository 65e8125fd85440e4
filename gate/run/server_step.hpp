// One start of an engine that serves, in parts: up, warm, blocks of its load, ended. One alone runs
// them in a row; of a pair both are up, and their blocks take turns (server_run.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/adapters/server_metrics.hpp"
#include "gate/base/secret.hpp"
#include "gate/config/pattern.hpp"
#include "gate/profile/record.hpp"
#include "gate/profile/served.hpp"
#include "gate/run/in_container.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/runner.hpp"
#include "gate/run/server_process.hpp"
#include "gate/run/step_record.hpp"

namespace weir::run {

// Each part answers false where it gave up: nothing but end() is to be called then. The engine's
// timeout is of the time within them; while another server has its turn it stands still.
class ServerStep {
 public:
  // `waits`: seconds that it may have to be up beyond its own timeout.
  ServerStep(const Effects& effects, const std::string& folder, const PreparedCell& cell,
             const Step& step, std::int64_t attempt, double waits = 0);
  ~ServerStep() { (void)end_process(); }  // of one that nobody asks any more
  ServerStep(const ServerStep&) = delete;
  ServerStep& operator=(const ServerStep&) = delete;

  // Fails with Code::io when its place can not be made.
  [[nodiscard]] Result<void> make_place() { return place_.make(); }
  [[nodiscard]] bool begin();    // starts it, and waits until it is up
  [[nodiscard]] bool warm_up();  // and reads what the probes count until then
  // Sends so many requests; `block` counts from 0, and with a rate has arrivals of its own.
  [[nodiscard]] bool serve(std::int64_t requests, std::int64_t block = 0);
  void report();  // after the last block
  // Ends it. Nothing when weir was stopped meanwhile.
  [[nodiscard]] Result<std::optional<profile::RunRecord>> end();

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
  bool prepare();
  bool bring_up();
  void fill_urls(const std::string& port);
  bool start(const std::string& port);
  [[nodiscard]] bool in_container() const { return container_of(cell_) != nullptr; }
  // Ends the process, and what its container's runtime left.
  [[nodiscard]] Result<sys::Finished> stop();
  [[nodiscard]] const sys::Stop& over() const { return server_ ? server_->over() : effects_.stop; }
  bool wait_until_up();
  bool answers(sys::Http& http, std::string& last) const;
  // Sends the warm-up, or a block. False where that measures nothing.
  bool drive(std::int64_t requests, std::optional<std::int64_t> block);
  // What it says of itself under `metrics`; nothing, and a warning, where it does not.
  [[nodiscard]] std::optional<adapters::ServerMetrics> ask_metrics();
  void report_metrics();
  // A GET of the server; the token goes nowhere else.
  [[nodiscard]] sys::HttpRequest get(const std::string& url) const;
  [[nodiscard]] std::string place_of(const std::string& path_or_url, const std::string& port) const;
  bool read_counts(std::vector<profile::ProbeCounts>& counts);
  [[nodiscard]] Result<void> end_process();
  void say_how_it_went(const sys::Finished& finished);

  const Effects& effects_;
  const PreparedCell& cell_;
  const Step& step_;
  const config::ServerSettings& settings_;
  WorkPlace place_;
  bool starts_, probed_;
  double waits_;
  profile::RunRecord record_;
  double begun_ = 0, since_ = 0, used_ = 0, up_after_ = 0;
  std::optional<sys::CpuTicks> ticks_;
  std::optional<config::Pattern> ready_line_;
  std::string prompt_, url_, ready_url_, metrics_url_;
  Secret token_;
  std::optional<adapters::ServerMetrics> metrics_before_;
  config::Environment probe_env_;
  sys::ProcessSpec spec_;
  CarriedPlace carried_;
  std::string container_name_;
  std::unique_ptr<sys::Streams> streams_;
  std::vector<profile::ServedRequest> requests_;
  std::vector<profile::ProbeCounts> before_;
  std::unique_ptr<ServerProcess> server_;  // last: it hears lines through the others
};

}  // namespace weir::run
