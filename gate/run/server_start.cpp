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

// Two threads of its own: one is in Processes::run(), one hands the stop on. Used by one thread.
class ServerProcess {
 public:
  // Is asked about every line as it is printed, ended or not, on another thread.
  using OnLine = std::function<bool(std::string_view line)>;

  // Starts it. A line that `on_line` answers true for makes has_said() true. All must outlive it.
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
    runner_ = std::thread([this] { run(); });
    hander_ = std::thread([this] { hand_on(); });
  }

  // Ends it.
  ~ServerProcess() { (void)end(); }

  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // It ended without being told to, or never began.
  [[nodiscard]] bool is_gone() const { return gone_.load(); }
  [[nodiscard]] bool has_said() const { return said_.load(); }
  // Requested when it is gone, or weir shall stop: what waits for the server waits no longer.
  [[nodiscard]] const sys::Stop& over() const { return over_; }

  // Tells it to end (SIGTERM, after the spec's grace SIGKILL), waits until it and all it started
  // are gone, and answers how that went. Of one that went by itself: how. Once.
  [[nodiscard]] Result<sys::Finished> end() {
    told_ = true;
    end_.request();
    if (runner_.joinable()) runner_.join();
    ended_.request();
    if (hander_.joinable()) hander_.join();
    return std::move(finished_);
  }

 private:
  void run() {
    finished_ = processes_.run(spec_, end_);
    if (!told_) gone_ = true;
    over_.request();
  }

  // Ctrl-C ends the server as it ends engines: the second one at once.
  void hand_on() {
    constexpr int k_step_ms = 50;
    int handed = 0;
    while (!ended_.requested()) {
      pollfd fds[2] = {{handed > 0 ? -1 : stop_.fd(), POLLIN, 0}, {ended_.fd(), POLLIN, 0}};
      const bool blind = fds[1].fd < 0 || (handed == 0 && fds[0].fd < 0);
      (void)poll(fds, 2, handed > 0 || blind ? k_step_ms : -1);
      for (; handed < stop_.times(); ++handed) {
        told_ = true;
        over_.request();
        end_.request();
      }
    }
  }

  void hear(std::string_view piece) {
    constexpr std::size_t k_longest = std::size_t{64} << 10;
    for (const char c : piece) {
      if (said_) return;
      if (c == '\n') {
        if (on_line_(line_)) said_ = true;
        line_.clear();
      } else if (line_.size() < k_longest && c != '\r') {
        line_ += c;
      }
    }
    // A line that is not ended yet may be all that it says.
    if (!said_ && !line_.empty() && on_line_(line_)) said_ = true;
  }

  sys::Processes& processes_;
  sys::ProcessSpec spec_;
  const sys::Stop& stop_;
  OnLine on_line_;
  std::string line_;  // begun and not ended; of the thread in run()
  sys::Stop end_;     // ends the process
  sys::Stop over_;
  sys::Stop ended_;  // ends hand_on()
  std::atomic<bool> told_{false}, gone_{false}, said_{false};
  Result<sys::Finished> finished_;  // when runner_ was joined
  std::thread runner_, hander_;
};

namespace {

constexpr int k_ports_tried = 3;           // another program may take one in between
constexpr double k_grace_seconds = 5;      // from SIGTERM to SIGKILL
constexpr double k_workers_seconds = 1;    // for its processes to end after it
constexpr double k_backstop_seconds = 10;  // the load ends itself before the server is stopped

}  // namespace

std::optional<int> port_of_this_machine(std::string_view url) {
  for (const std::string_view host : {"http://127.0.0.1:", "http://localhost:", "http://[::1]:"}) {
    if (!url.starts_with(host)) continue;
    const std::string_view behind = url.substr(host.size());
    const auto port = text::to_int(behind.substr(0, behind.find('/')));
    if (port) return static_cast<int>(*port);
  }
  return std::nullopt;
}

ServerStart::ServerStart(const Effects& effects, const std::string& folder,
                         const PreparedCell& cell, const Step& step, std::int64_t attempt,
                         double waits, std::int64_t steps)
    : effects_(effects),
      cell_(cell),
      step_(step),
      settings_(*cell.cell.engine->server),
      call_(effects, folder, cell, step, attempt),
      starts_(server_to_start(cell) != nullptr),
      waits_(waits),
      steps_(steps) {}

ServerStart::~ServerStart() { (void)end(); }

bool ServerStart::is_gone() const { return server_ && server_->is_gone(); }

const sys::Stop& ServerStart::over() const { return server_ ? server_->over() : effects_.stop; }

// What can go wrong before anything runs.
std::optional<ServerStart::Failed> ServerStart::prepare() {
  const auto failed = [](std::string why) { return Failed{std::move(why), Ended::not_started}; };
  if (!settings_.ready_line.empty()) {
    auto pattern = config::Pattern::compile("(" + settings_.ready_line + ")");
    if (!pattern) return failed(pattern.error().message);
    ready_line_ = std::move(*pattern);
  }
  if (!settings_.token_env.empty()) {
    auto token = server_token(settings_.token_env,
                              Secret(sys::environment_value(settings_.token_env).value_or("")));
    if (!token) return failed(token.error().message);
    token_ = std::move(*token);
  }
  if (auto attached = call_.attach_probes(); !attached) return failed(attached.error().message);
  return std::nullopt;
}

std::optional<ServerStart::Failed> ServerStart::begin(double seconds) {
  const double deadline = effects_.clock.steady() + seconds;
  if (auto failed = prepare()) return failed;
  for (int tried = 1;; ++tried) {
    int port = 0;
    if (starts_) {
      const auto found = sys::free_port();
      if (!found) return Failed{found.error().message, Ended::not_started};
      port = *found;
    }
    fill_urls(std::to_string(port));
    if (const auto named = port_of_this_machine(url_);
        starts_ && named && !effects_.connections.is_free(*named)) {
      if (*named == port && tried < k_ports_tried) continue;
      return Failed{fmt::format("something listens at {} already, and would be asked in place of "
                                "the server that weir starts: end it, or write {{port}}",
                                url_),
                    Ended::not_started};
    }
    const double started = effects_.clock.steady();
    auto failed = starts_ ? start(std::to_string(port)) : std::nullopt;
    if (!failed) failed = wait_until_up(deadline);
    if (!failed) {
      up_after_ = effects_.clock.steady() - started;
      is_up_ = true;
      return std::nullopt;
    }
    if (!is_gone() || tried == k_ports_tried || effects_.connections.is_free(port)) {
      return failed;
    }
    // Somebody else has the port by now: that is no fault of the server's.
    (void)stop();
  }
}

void ServerStart::fill_urls(const std::string& port) {
  url_ = place_of(settings_.url.empty() ? "http://127.0.0.1:{port}" : settings_.url, port);
  ready_url_ = place_of(settings_.ready_url, port);
  metrics_url_ = place_of(settings_.metrics, port);
}

std::string ServerStart::place_of(const std::string& path_or_url, const std::string& port) const {
  const std::string place = config::substitute(path_or_url, [&](std::string_view) { return port; });
  return place.starts_with('/') ? url_ + place : place;
}

double longest_step_seconds(const config::Cell& cell) {
  constexpr double k_most_rates = 24;  // the two ends, bisection between them, ten near its end
  return cell.engine->timeout_seconds * (cell.capacity ? k_most_rates : 1) +
         cell.duration_seconds.value_or(0);
}

std::optional<ServerStart::Failed> ServerStart::start(const std::string& port) {
  // What a container shall be reached at: the port that weir picked, or the one that its url names.
  const auto named = port_of_this_machine(url_);
  auto prepared = call_.prepare(port, named ? std::to_string(*named) : std::string());
  if (!prepared) return Failed{prepared.error().message, Ended::not_started};
  sys::ProcessSpec& spec = call_.spec;
  spec.settle_seconds = std::max(spec.settle_seconds, k_workers_seconds);
  spec.timeout_seconds = longest_step_seconds(cell_.cell) + waits_ + k_backstop_seconds;
  spec.output_limit = static_cast<std::uint64_t>(cell_.cell.engine->output_limit) *
                      static_cast<std::uint64_t>(steps_);
  spec.kill_grace_seconds = std::max(spec.kill_grace_seconds, k_grace_seconds);  // srun's is longer
  spec.whole_output = false;
  ServerProcess::OnLine on_line;
  if (ready_line_) {
    on_line = [this](std::string_view said) { return ready_line_->first_group(said).has_value(); };
  }
  server_ =
      std::make_unique<ServerProcess>(effects_.processes, spec, effects_.stop, std::move(on_line));
  return std::nullopt;
}

Result<sys::Finished> ServerStart::stop() {
  auto finished = server_->end();
  server_.reset();
  left_ = call_.end_rest(finished);
  return finished;
}

std::optional<ServerStart::Failed> ServerStart::wait_until_up(double deadline) {
  const auto http = effects_.connections.http();
  deadline = std::min(deadline, effects_.clock.steady() + settings_.ready_seconds);
  std::string last = "nothing was answered";
  for (;;) {
    if (effects_.stop.requested()) return Failed{"interrupted", Ended::interrupted};
    if (is_gone()) return Failed{"the server ended before it was up"};
    if (ready_line_ ? server_ && server_->has_said() : answers(*http, last)) return std::nullopt;
    if (effects_.clock.steady() >= deadline) break;
    (void)sys::RealPause().wait(k_ask_again, over());
  }
  const std::string sign =
      ready_line_ ? fmt::format("it printed no line that matches \"{}\"", settings_.ready_line)
                  : fmt::format("{}: {}", ready_url_, last);
  return Failed{fmt::format("the server was not up within {}: {}",
                            unit::show_duration(settings_.ready_seconds), sign),
                Ended::timed_out};
}

bool ServerStart::answers(sys::Http& http, std::string& last) const {
  constexpr double k_connect = 1, k_answer = 5;
  const auto answer = http.send(
      get(ready_url_),
      {.connect_seconds = k_connect, .total_seconds = k_answer, .body_bytes = 1 << 20}, over());
  if (!answer) {
    last = answer.error().message;
    return false;
  }
  last = fmt::format("HTTP {}", answer->status);
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

void ServerStart::tell(RunRecord& record, Place place) const {
  if (!left_.empty()) record.warnings.push_back(left_);
  if (!finished_) return;
  const Ended told = record.ended;
  const double seconds = record.wall_seconds;
  const std::size_t warnings = record.warnings.size();
  call_.take_over(record, *finished_);
  if (place != Place::alone) {
    // Those of the process are of all its steps; its peak is what each of them needs room for.
    record.wall_seconds = seconds;
    record.cpu_seconds.reset();
    record.machine.major_faults.reset();
  }
  if (place == Place::shared || !was_gone_) {
    record.ended = told;
    record.exit_code = record.signal = 0;
  }
  if (place == Place::shared) {
    record.warnings.resize(warnings);
  } else if (was_gone_) {
    // By itself, which no server shall.
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
        fmt::format("the server {} when it was told to end", signal_words(finished_->signal)));
  }
  if (record.error) record.stderr_tail = last_lines(finished_->err + finished_->out);
}

}  // namespace weir::run
