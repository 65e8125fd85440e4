// Starts an inference server, waits until it is up, and ends it.
#include "gate/run/server_start.hpp"

#include <csignal>

#include <poll.h>

#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/run/starts.hpp"

namespace weir::run {

using profile::Ended;
using profile::Pass;
using profile::RunRecord;

// A server process with two threads: one is in Processes::run(), one forwards the stop. Its methods
// are called by one thread.
class ServerProcess {
 public:
  using Change = sys::StoppedTree::Change;
  // Called for each line as it is printed, complete or not, on another thread.
  using OnLine = std::function<bool(std::string_view line)>;

  // Starts the server. has_printed_ready_line() becomes true with the first line for which
  // `on_line` returns true. All arguments must outlive the object.
  ServerProcess(sys::Processes& processes, sys::ProcessSpec spec, const sys::Stop& stop,
                OnLine on_line = nullptr)
      : processes_(processes),
        spec_(std::move(spec)),
        stop_(stop),
        on_line_(std::move(on_line)),
        finished_(fail(Code::internal, "the server was never started")) {
    if (on_line_) {
      spec_.heard = [this](std::string_view piece) { hear(piece); };
    }
    spec_.started = [this](std::int64_t supervisor) { supervisor_ = supervisor; };
    runner_ = std::thread([this] { run(); });
    stop_forwarder_ = std::thread([this] { forward_stop(); });
  }

  // Ends the server.
  ~ServerProcess() { (void)end(); }

  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // True if the server ended by itself, or never began.
  [[nodiscard]] bool is_gone() const { return is_gone_.load(); }
  [[nodiscard]] bool has_printed_ready_line() const { return has_said_.load(); }
  // Requested when the server is gone or weir shall stop, so that nobody waits for it any longer.
  [[nodiscard]] const sys::Stop& end_or_stop() const { return over_; }

  // Stops the server and all that it started, so that they use nothing of the machine, or lets them
  // go on. A server that is watched is traced, and goes on.
  void set_stopped(bool is_stopped) {
    const std::int64_t supervisor = supervisor_.load();
    if (supervisor == 0 || spec_.watched) return;
    if (is_stopped) {
      const auto stopped = sys::stop_descendants(supervisor);
      stopped_.insert(stopped_.end(), stopped.begin(), stopped.end());
      if (!tree_) tree_.emplace(supervisor);
      if (!perf_watch_) perf_watch_.emplace(supervisor);
      return;
    }
    if (tree_ && change_ == Change::none && !is_gone()) change_ = tree_->find_change();
    tree_.reset();
    if (perf_watch_) {
      perf_events_.are_held = perf_events_.are_held || perf_watch_->has_events();
      perf_events_.have_counted = perf_events_.have_counted || perf_watch_->has_counted();
    }
    perf_watch_.reset();
    sys::continue_processes(std::exchange(stopped_, {}));
  }
  [[nodiscard]] Change change_while_stopped() const { return change_; }
  [[nodiscard]] PerfEvents perf_events_while_stopped() const { return perf_events_; }

  // Ends the server (SIGTERM, after the spec's grace period SIGKILL), waits until it and all its
  // children are gone, and returns how it ended. Call it once.
  [[nodiscard]] Result<sys::Finished> end() {
    set_stopped(false);
    is_ending_ = true;
    end_request_.request();
    if (runner_.joinable()) runner_.join();
    forwarding_end_.request();
    if (stop_forwarder_.joinable()) stop_forwarder_.join();
    return std::move(finished_);
  }

 private:
  void run() {
    finished_ = processes_.run(spec_, end_request_);
    supervisor_ = 0;
    if (!is_ending_) is_gone_ = true;
    over_.request();
  }

  // Forwards stop requests to the server, as they are to engines; a second one ends it at once.
  void forward_stop() {
    constexpr int k_step_ms = 50;
    int forwarded = 0;
    while (!forwarding_end_.requested()) {
      pollfd fds[2] = {{forwarded > 0 ? -1 : stop_.fd(), POLLIN, 0},
                       {forwarding_end_.fd(), POLLIN, 0}};
      const bool blind = fds[1].fd < 0 || (forwarded == 0 && fds[0].fd < 0);
      (void)poll(fds, 2, forwarded > 0 || blind ? k_step_ms : -1);
      for (; forwarded < stop_.times(); ++forwarded) {
        is_ending_ = true;
        over_.request();
        end_request_.request();
      }
    }
  }

  // Splits output into lines and passes them to on_line_ until one matches.
  void hear(std::string_view piece) {
    constexpr std::size_t k_max_line_bytes = std::size_t{64} << 10;
    for (const char c : piece) {
      if (has_said_) return;
      if (c == '\n') {
        if (on_line_(line_)) has_said_ = true;
        line_.clear();
      } else if (line_.size() < k_max_line_bytes && c != '\r') {
        line_ += c;
      }
    }
    // An incomplete line may be all that the server prints.
    if (!has_said_ && !line_.empty() && on_line_(line_)) has_said_ = true;
  }

  sys::Processes& processes_;
  sys::ProcessSpec spec_;
  const sys::Stop& stop_;
  OnLine on_line_;
  std::string line_;       // the incomplete line; used by the thread in run()
  sys::Stop end_request_;  // ends the process
  sys::Stop over_;
  sys::Stop forwarding_end_;  // ends forward_stop()
  std::atomic<bool> is_ending_{false}, is_gone_{false}, has_said_{false};
  std::atomic<std::int64_t> supervisor_{0};  // 0: there is none
  std::vector<std::int64_t> stopped_;        // by set_stopped()
  std::optional<sys::StoppedTree> tree_;     // while they are
  Change change_ = Change::none;
  std::optional<sys::PerfWatch> perf_watch_;  // while they are
  PerfEvents perf_events_;
  Result<sys::Finished> finished_;  // valid once runner_ is joined
  std::thread runner_, stop_forwarder_;
};

namespace {

constexpr int k_ports_tried = 3;             // another program may take a port in between
constexpr double k_grace_seconds = 5;        // from SIGTERM to SIGKILL
constexpr double k_workers_seconds = 1;      // for the server's processes to end after it
constexpr double k_backstop_seconds = 10;    // the load ends by itself before the server is stopped
constexpr const char* k_health = "/health";  // the path that `ready` has by default

}  // namespace

std::optional<int> port_of_this_machine(std::string_view url) {
  for (const std::string_view host : {"http://127.0.0.1:", "http://localhost:", "http://[::1]:"}) {
    if (!url.starts_with(host)) continue;
    const std::string_view rest = url.substr(host.size());
    const auto port = text::to_int(rest.substr(0, rest.find('/')));
    if (port) return static_cast<int>(*port);
  }
  return std::nullopt;
}

ServerStart::ServerStart(const Effects& effects, const std::string& folder,
                         const PreparedCell& cell, const Step& step, std::int64_t attempt,
                         double extra_seconds, std::int64_t steps)
    : effects_(effects),
      cell_(cell),
      step_(step),
      settings_(*cell.cell.engine->server),
      call_(effects, folder, cell, step, attempt),
      is_ours_(server_to_start(cell) != nullptr),
      extra_seconds_(extra_seconds),
      step_count_(steps) {}

ServerStart::~ServerStart() { (void)end(); }

void ServerStart::set_stopped(bool is_stopped) {
  if (server_) server_->set_stopped(is_stopped);
}

sys::StoppedTree::Change ServerStart::change_while_stopped() const {
  return server_ ? server_->change_while_stopped() : sys::StoppedTree::Change::none;
}

PerfEvents ServerStart::perf_events_while_stopped() const {
  return server_ ? server_->perf_events_while_stopped() : PerfEvents{};
}

bool ServerStart::is_gone() const { return server_ && server_->is_gone(); }

const sys::Stop& ServerStart::end_or_stop() const {
  return server_ ? server_->end_or_stop() : effects_.stop;
}

// Compiles the ready line's pattern, reads the token and attaches the probes. Returns the first
// failure; nullopt if all went well.
std::optional<ServerStart::Failure> ServerStart::prepare() {
  const auto start_failure = [](std::string why) {
    return Failure{std::move(why), Ended::not_started};
  };
  if (!settings_.ready_line.empty()) {
    auto pattern = config::Pattern::compile("(" + settings_.ready_line + ")");
    if (!pattern) return start_failure(pattern.error().message);
    ready_line_ = std::move(*pattern);
  }
  if (!settings_.token_env.empty()) {
    auto token = check_server_token(
        settings_.token_env, Secret(sys::environment_value(settings_.token_env).value_or("")));
    if (!token) return start_failure(token.error().message);
    token_ = std::move(*token);
  }
  if (auto attached = call_.attach_probes(); !attached)
    return start_failure(attached.error().message);
  return std::nullopt;
}

// Starts the server and waits at most `seconds` until it is up; one that weir did not start only
// has to answer. Tries other ports if another program takes the chosen one. Returns the failure;
// nullopt if it is up.
std::optional<ServerStart::Failure> ServerStart::begin(double seconds) {
  const double deadline = effects_.clock.steady() + seconds;
  if (auto failure = prepare()) return failure;
  for (int attempt = 1;; ++attempt) {
    int port = 0;
    if (is_ours_) {
      const auto free_port = sys::free_port();
      if (!free_port) return Failure{free_port.error().message, Ended::not_started};
      port = *free_port;
    }
    fill_urls(std::to_string(port));
    if (const auto url_port = port_of_this_machine(url_);
        is_ours_ && url_port && !effects_.connections.is_free(*url_port)) {
      if (*url_port == port && attempt < k_ports_tried) continue;
      return Failure{fmt::format("something listens at {} already, and would be asked in place of "
                                 "the server that weir starts: end it, or write {{port}}",
                                 url_),
                     Ended::not_started};
    }
    const double started_at = effects_.clock.steady();
    auto failure = is_ours_ ? start(std::to_string(port)) : std::nullopt;
    if (!failure) failure = wait_until_up(deadline);
    if (!failure) {
      up_after_ = effects_.clock.steady() - started_at;
      is_up_ = true;
      return std::nullopt;
    }
    if (!is_gone() || attempt == k_ports_tried || effects_.connections.is_free(port)) {
      return failure;
    }
    // Another program has taken the port meanwhile; try again with another one.
    (void)stop();
  }
}

void ServerStart::fill_urls(const std::string& port) {
  url_ = fill_url(settings_.url.empty() ? "http://127.0.0.1:{port}" : settings_.url, port);
  ready_url_ = fill_url(settings_.ready_url, port);
  metrics_url_ = fill_url(settings_.metrics, port);
}

// Replaces {port}, and prefixes a path with the server's url.
std::string ServerStart::fill_url(const std::string& path_or_url, const std::string& port) const {
  const std::string place = config::substitute(path_or_url, [&](std::string_view) { return port; });
  return place.starts_with('/') ? url_ + place : place;
}

double longest_step_seconds(const config::Cell& cell) {
  constexpr double k_max_rates = 24;  // the two ends, bisection between them, ten near its end
  return cell.engine->timeout_seconds * (cell.capacity ? k_max_rates : 1) +
         cell.duration_seconds.value_or(0);
}

// Starts the server's process with this port; does not wait until it is up. Returns the failure, if
// there is one.
std::optional<ServerStart::Failure> ServerStart::start(const std::string& port) {
  // The port at which a container has to be reachable: that of the url, or the one weir picked.
  const auto url_port = port_of_this_machine(url_);
  auto prepared = call_.prepare(port, url_port ? std::to_string(*url_port) : std::string());
  if (!prepared) return Failure{prepared.error().message, Ended::not_started};
  sys::ProcessSpec& spec = call_.spec;
  spec.settle_seconds = std::max(spec.settle_seconds, k_workers_seconds);
  spec.timeout_seconds = longest_step_seconds(cell_.cell) + extra_seconds_ + k_backstop_seconds;
  spec.output_limit = static_cast<std::uint64_t>(cell_.cell.engine->output_limit) *
                      static_cast<std::uint64_t>(step_count_);
  spec.kill_grace_seconds = std::max(spec.kill_grace_seconds, k_grace_seconds);  // srun's is longer
  spec.whole_output = false;
  ServerProcess::OnLine on_line;
  if (ready_line_) {
    on_line = [this](std::string_view line) { return ready_line_->first_group(line).has_value(); };
  }
  server_ =
      std::make_unique<ServerProcess>(effects_.processes, spec, effects_.stop, std::move(on_line));
  return std::nullopt;
}

Result<sys::Finished> ServerStart::stop() {
  auto finished = server_->end();
  server_.reset();
  leftover_warning_ = call_.end_leftovers(finished);
  return finished;
}

// Returns true if the server has printed its ready line or answers. `last` becomes the last answer.
bool ServerStart::is_ready(sys::Http& http, std::string& last) const {
  if (ready_line_) return server_ && server_->has_printed_ready_line();
  return answers(http, last);
}

// Waits for the ready line or a successful answer, until `deadline` in steady seconds. Returns the
// failure; nullopt if the server is up.
std::optional<ServerStart::Failure> ServerStart::wait_until_up(double deadline) {
  constexpr double k_quiet_seconds = 10;  // many servers are up by then
  const auto http = effects_.connections.http();
  const double begun_at = effects_.clock.steady();
  deadline = std::min(deadline, begun_at + settings_.ready_seconds);
  std::string last_outcome = "nothing was answered";
  const auto sign = [&] {
    return ready_line_ ? fmt::format("it printed no line that matches \"{}\"", settings_.ready_line)
                       : fmt::format("{}: {}", ready_url_, last_outcome);
  };
  bool is_quiet = true;
  for (;;) {
    if (effects_.stop.requested()) return Failure{"interrupted", Ended::interrupted};
    if (is_gone()) return Failure{"the server ended before it was up"};
    if (is_ready(*http, last_outcome)) return std::nullopt;
    const double now = effects_.clock.steady();
    if (now >= deadline) break;
    if (is_quiet && now - begun_at >= k_quiet_seconds) {
      effects_.progress.say(fmt::format("waiting up to {} for the server of {}: {}",
                                        unit::show_duration(deadline - begun_at),
                                        cell_.cell.key.str(), sign()));
      is_quiet = false;
    }
    (void)sys::RealPause().wait(k_poll_seconds, end_or_stop());
  }
  return Failure{fmt::format("the server was not up within {}: {}",
                             unit::show_duration(settings_.ready_seconds), sign()),
                 Ended::timed_out};
}

// Asks the ready url once, and where nobody serves /health, the list of models that servers with
// OpenAI's API have. Returns true on a 2xx status; `outcome` describes what came.
bool ServerStart::answers(sys::Http& http, std::string& outcome) const {
  constexpr double k_connect_seconds = 1, k_answer_seconds = 5;
  constexpr std::int64_t k_not_found = 404;
  constexpr const char* k_models = "/v1/models";
  const auto ask = [&](const std::string& url) {
    return http.send(get(url),
                     {.connect_seconds = k_connect_seconds,
                      .total_seconds = k_answer_seconds,
                      .body_bytes = 1 << 20},
                     end_or_stop());
  };
  auto answer = ask(ready_url_);
  std::string missing;
  if (answer && answer->status == k_not_found && settings_.ready_url == k_health) {
    missing = fmt::format("HTTP 404, and {}: ", k_models);
    answer = ask(url_ + k_models);
  }
  if (!answer) {
    outcome = missing + answer.error().message;
    return false;
  }
  outcome = fmt::format("{}HTTP {}{}", missing, answer->status,
                        answer->status == k_not_found
                            ? ": it answers, but not there; set `ready:` to another path"
                            : "");
  return answer->status / 100 == 2;
}

sys::HttpRequest ServerStart::get(const std::string& url) const {
  sys::HttpRequest request;
  request.url = url;
  if (!token_.empty() && url.starts_with(url_ + "/")) {
    request.authorization = Secret("Bearer " + token_.reveal());
  }
  return request;
}

Result<void> ServerStart::end() {
  is_up_ = false;
  if (!server_) return {};
  was_gone_ = server_->is_gone();
  WEIR_TRY(finished_, stop());
  return {};
}

// Adds to a record how the server's process ended. If several steps shared the process, a record
// gets only what holds for its step.
void ServerStart::fill_process_facts(RunRecord& record, Place place) const {
  if (!leftover_warning_.empty()) record.warnings.push_back(leftover_warning_);
  if (!finished_) return;
  const Ended ended_before = record.ended;
  const double step_seconds = record.wall_seconds;
  const std::size_t warning_count = record.warnings.size();
  call_.copy_outcome(record, *finished_);
  if (place != Place::alone) {
    // The process's time and faults belong to all its steps; each step needs room for its peak.
    record.wall_seconds = step_seconds;
    record.cpu_seconds.reset();
    record.machine.major_faults.reset();
  }
  if (place == Place::shared || !was_gone_) {
    record.ended = ended_before;
    record.exit_code = 0;
    record.signal = 0;
  }
  if (auto why = call_.wrong_code_reason(*finished_)) {
    record.report.reset();
    record.probes.clear();
    record.error = std::move(why);
  }
  if (place == Place::shared) {
    record.warnings.resize(warning_count);
  } else if (was_gone_) {
    // It ended by itself, which no server should do.
    const std::string how = call_.failure(*finished_).value_or("it exited with code 0");
    record.report.reset();
    record.probes.clear();
    record.error = record.ended == Ended::not_started
                       ? how
                       : fmt::format("{}: {}", record.error.value_or("the server ended"), how);
  } else if (finished_->signal == SIGKILL) {
    record.warnings.push_back(
        fmt::format("the server did not end within {:g} s of SIGTERM and was killed",
                    call_.spec.kill_grace_seconds));
  } else if (finished_->signal != 0 && finished_->signal != SIGTERM) {
    record.warnings.push_back(
        fmt::format("the server {} when it was told to end", describe_signal(finished_->signal)));
  }
  if (record.error) record.stderr_tail = last_lines(finished_->err + finished_->out);
}

}  // namespace weir::run
