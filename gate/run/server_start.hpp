// One start of an engine that serves: its place, its port, up, and its end. What is asked of it
// meanwhile are steps (server_run.cpp), of one cell or of several.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gate/base/result.hpp"
#include "gate/base/secret.hpp"
#include "gate/config/pattern.hpp"
#include "gate/profile/record.hpp"
#include "gate/run/engine_call.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/runner.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/perf_watch.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/resting.hpp"

namespace weir::run {

// Seconds that the cell may keep a server busy, including its start. A soak has its own duration;
// with a capacity, each rate has the engine's timeout.
[[nodiscard]] double longest_step_seconds(const config::Cell& cell);

// Performance events that a server held while it was stopped, as sys::PerfWatch has it.
struct PerfEvents {
  bool are_held = false, have_counted = false;
};

class ServerProcess;  // a running server; defined in server_start.cpp

inline constexpr double k_poll_seconds = 0.02;  // seconds between two checks of a server

class ServerStart {
 public:
  struct Failure {
    std::string why;
    profile::Ended ended = profile::Ended::exited;
  };

  // Starts the cell's command in this step. `extra_seconds`: seconds that the server may have to be
  // up beyond the engine's timeout. `steps`: number of steps whose output counts toward the limit
  // on what it prints.
  ServerStart(const Effects& effects, const std::string& folder, const PreparedCell& cell,
              const Step& step, std::int64_t attempt, double extra_seconds = 0,
              std::int64_t steps = 1);

  ~ServerStart();  // ends the server
  ServerStart(const ServerStart&) = delete;
  ServerStart& operator=(const ServerStart&) = delete;

  // Creates the server's folder. Fails with Code::io.
  [[nodiscard]] Result<void> make_place() { return call_.make_place(); }
  // Starts the server and waits at most `seconds` until it is up.
  [[nodiscard]] std::optional<Failure> begin(double seconds);

  [[nodiscard]] bool is_up() const { return is_up_; }
  [[nodiscard]] bool is_ours() const { return is_ours_; }  // false for a url of a running server
  [[nodiscard]] bool is_gone() const;
  // Requested when the server is gone, or weir shall stop.
  [[nodiscard]] const sys::Stop& end_or_stop() const;
  [[nodiscard]] double up_after() const { return up_after_; }  // seconds from start to up
  // Seconds from sending the first warm-up request to its first token.
  [[nodiscard]] const std::optional<double>& cold_first_token() const { return cold_first_token_; }
  void answered(double first_token_seconds) {
    if (!cold_first_token_) cold_first_token_ = first_token_seconds;
  }
  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] const std::string& metrics_url() const { return metrics_url_; }
  [[nodiscard]] std::string probe_folder() const { return call_.probes(); }
  [[nodiscard]] const Secret& token() const { return token_; }
  // A GET request for the server. Only the server's own url gets the token.
  [[nodiscard]] sys::HttpRequest get(const std::string& url) const;

  // As EngineCall::read_inputs().
  void read_inputs() { call_.read_inputs(); }

  // Stops the server's processes, or lets them go on, where the system can do that (Linux).
  void set_stopped(bool is_stopped);
  // Returns the first change of them while they were stopped.
  [[nodiscard]] sys::StoppedTree::Change change_while_stopped() const;
  [[nodiscard]] PerfEvents perf_events_while_stopped() const;
  // Ends the server; nothing of it is left then. Fails as Processes::run().
  [[nodiscard]] Result<void> end();
  // Adds the process's figures to the record of one of its steps, once the process has ended. With
  // several steps (`shared`), only the last record tells how it ended.
  enum class Place { alone, shared, last_of_shared };
  void fill_process_facts(profile::RunRecord& record, Place place) const;

 private:
  [[nodiscard]] std::optional<Failure> prepare();
  void fill_urls(const std::string& port);
  [[nodiscard]] std::optional<Failure> start(const std::string& port);
  // Ends the process and what its container's runtime left.
  [[nodiscard]] Result<sys::Finished> stop();
  [[nodiscard]] std::optional<Failure> wait_until_up(double deadline);
  bool answers(sys::Http& http, std::string& last) const;
  bool is_ready(sys::Http& http, std::string& last) const;
  [[nodiscard]] std::string fill_url(const std::string& path_or_url, const std::string& port) const;

  const Effects& effects_;
  const PreparedCell& cell_;
  const Step& step_;
  const config::ServerSettings& settings_;
  EngineCall call_;
  bool is_ours_, is_up_ = false;
  double extra_seconds_, up_after_ = 0;
  std::optional<double> cold_first_token_;
  std::int64_t step_count_;
  std::optional<config::Pattern> ready_line_;
  std::string url_, ready_url_, metrics_url_;
  Secret token_;
  std::string leftover_warning_;  // warning about processes that could not be ended; "" if none
  bool was_gone_ = false;
  std::optional<sys::Finished> finished_;
  std::unique_ptr<ServerProcess> server_;  // last, because its thread uses the others
};

// The port in a url like http://127.0.0.1:8080/path; nothing for other machines' addresses.
[[nodiscard]] std::optional<int> port_of_this_machine(std::string_view url);

}  // namespace weir::run
