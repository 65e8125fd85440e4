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
#include "gate/sys/process.hpp"

namespace weir::run {

// Seconds that the cell may keep a server busy, its start included: a soak goes on for its own
// time, and of a capacity each rate has the engine's timeout.
[[nodiscard]] double longest_step_seconds(const config::Cell& cell);

class ServerProcess;  // of server_start.cpp: a server while it runs

inline constexpr double k_ask_again = 0.02;  // seconds, from one look at a server to the next

class ServerStart {
 public:
  struct Failed {
    std::string why;
    profile::Ended ended = profile::Ended::exited;
  };

  // Of the cell's command in this step. `waits`: seconds that it may have to be up beyond the
  // engine's timeout; `steps`: so many cells' words go into the limit on what it prints.
  ServerStart(const Effects& effects, const std::string& folder, const PreparedCell& cell,
              const Step& step, std::int64_t attempt, double waits = 0, std::int64_t steps = 1);

  ~ServerStart();  // of one that nobody asks any more
  ServerStart(const ServerStart&) = delete;
  ServerStart& operator=(const ServerStart&) = delete;

  // Fails with Code::io when its place cannot be made.
  [[nodiscard]] Result<void> make_place() { return call_.make_place(); }
  // Starts it, and waits until it is up: `seconds` at most.
  [[nodiscard]] std::optional<Failed> begin(double seconds);

  [[nodiscard]] bool is_up() const { return is_up_; }
  [[nodiscard]] bool is_ours() const { return starts_; }  // no url of one that runs already
  [[nodiscard]] bool is_gone() const;
  // Requested when it is gone, or weir shall stop.
  [[nodiscard]] const sys::Stop& over() const;
  [[nodiscard]] double up_after() const { return up_after_; }  // seconds from start to up
  // Of the first request that it was sent, to warm up: seconds until its first token.
  [[nodiscard]] const std::optional<double>& cold_first_token() const { return cold_first_token_; }
  void answered(double first_token_seconds) {
    if (!cold_first_token_) cold_first_token_ = first_token_seconds;
  }
  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] const std::string& metrics_url() const { return metrics_url_; }
  [[nodiscard]] std::string probe_folder() const { return call_.probes(); }
  [[nodiscard]] const Secret& token() const { return token_; }
  // A GET of the server; the token goes nowhere else.
  [[nodiscard]] sys::HttpRequest get(const std::string& url) const;

  // Nothing of the server is left then. Fails as Processes::run().
  [[nodiscard]] Result<void> end();
  // What the record of one of its steps has to say of the process, once that has ended: `shared`
  // where it had several. How it ended is a matter of the last.
  enum class Place { alone, shared, last_of_shared };
  void tell(profile::RunRecord& record, Place place) const;

 private:
  [[nodiscard]] std::optional<Failed> prepare();
  void fill_urls(const std::string& port);
  [[nodiscard]] std::optional<Failed> start(const std::string& port);
  // Ends the process, and what its container's runtime left.
  [[nodiscard]] Result<sys::Finished> stop();
  [[nodiscard]] std::optional<Failed> wait_until_up(double deadline);
  bool answers(sys::Http& http, std::string& last) const;
  [[nodiscard]] std::string place_of(const std::string& path_or_url, const std::string& port) const;

  const Effects& effects_;
  const PreparedCell& cell_;
  const Step& step_;
  const config::ServerSettings& settings_;
  EngineCall call_;
  bool starts_, is_up_ = false;
  double waits_, up_after_ = 0;
  std::optional<double> cold_first_token_;
  std::int64_t steps_;
  std::optional<config::Pattern> ready_line_;
  std::string url_, ready_url_, metrics_url_;
  Secret token_;
  std::string left_;  // what could not be ended of it: a warning
  bool was_gone_ = false;
  std::optional<sys::Finished> finished_;
  std::unique_ptr<ServerProcess> server_;  // last: it hears lines through the others
};

// Of http://127.0.0.1:8080, with or without a path; nothing of other machines' addresses.
[[nodiscard]] std::optional<int> port_of_this_machine(std::string_view url);

}  // namespace weir::run
