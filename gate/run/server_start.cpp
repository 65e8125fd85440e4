#include "gate/run/server_start.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/run/engine_run.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/server_token.hpp"
#include "gate/run/starts.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/pause.hpp"
#include "gate/sys/port.hpp"

namespace weir::run {

using profile::Ended;
using profile::Pass;
using profile::RunRecord;

namespace {

constexpr int k_ports_tried = 3;           // another program may take one in between
constexpr double k_grace_seconds = 5;      // from SIGTERM to SIGKILL
constexpr double k_workers_seconds = 1;    // for its processes to end after it
constexpr double k_backstop_seconds = 10;  // the load ends itself before the server is stopped

// Of http://127.0.0.1:8080, with or without a path; nothing of other machines' addresses.
std::optional<int> port_of_this_machine(std::string_view url) {
  for (const std::string_view host : {"http://127.0.0.1:", "http://localhost:", "http://[::1]:"}) {
    if (!url.starts_with(host)) continue;
    const std::string_view behind = url.substr(host.size());
    const auto port = text::to_int(behind.substr(0, behind.find('/')));
    if (port) return static_cast<int>(*port);
  }
  return std::nullopt;
}

}  // namespace

ServerStart::ServerStart(const Effects& effects, const std::string& folder,
                         const PreparedCell& cell, const Step& step, std::int64_t attempt,
                         double waits, std::int64_t steps)
    : effects_(effects),
      cell_(cell),
      step_(step),
      settings_(*cell.cell.engine->server),
      place_(effects.files,
             sys::join_path(folder, fmt::format("tmp/{:07}-{}", step.order, attempt))),
      starts_(server_to_start(cell) != nullptr),
      waits_(waits),
      steps_(steps) {}

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
  const bool probed = step_.pass == Pass::counted && !cell_.probes.empty();
  carried_ = {place_.path(), place_.out(), probed ? place_.probes() : std::string()};
  if (!probed) return std::nullopt;
  // An image has an environment of its own: what weir.yaml sets in it is all that is known.
  const config::Environment own = in_container()
                                      ? line_of(cell_, step_, place_.out(), place_.probes()).env
                                      : config::Environment();
  auto attached =
      effects_.probing.attach(cell_.probes, place_.probes(), in_container() ? &own : nullptr);
  if (!attached) {
    return failed("the probes could not be attached: " + attached.error().message);
  }
  probe_env_ = std::move(*attached);
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
        starts_ && named && !effects_.speaking.is_free(*named)) {
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
    if (!is_gone() || tried == k_ports_tried || effects_.speaking.is_free(port)) {
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

std::optional<ServerStart::Failed> ServerStart::start(const std::string& port) {
  config::CommandLine line =
      line_of(cell_, step_, place_.out(),
              step_.pass == Pass::counted ? place_.probes() : std::string(), port);
  spec_ = {};
  spec_.argv = std::move(line.argv);
  spec_.settle_seconds = k_workers_seconds;
  if (in_container()) {
    // What it shall be reached at: the port that weir picked, or the one that its url names.
    const auto named = port_of_this_machine(url_);
    carried_.port = named ? std::to_string(*named) : std::string();
    container_name_ =
        "weir-" + short_hash(fmt::format("{} {} {}", place_.path(), port, effects_.clock.now()));
    auto put =
        put_in_container(effects_, cell_, carried_, container_name_, line.env, probe_env_, spec_);
    if (!put) return Failed{put.error().message, Ended::not_started};
  } else {
    spec_.env = merge_environment(sys::own_environment(), line.env, probe_env_);
  }
  spec_.folder = cell_.folder;
  spec_.timeout_seconds = cell_.cell.engine->timeout_seconds + waits_ + k_backstop_seconds;
  spec_.output_limit = static_cast<std::uint64_t>(cell_.cell.engine->output_limit) *
                       static_cast<std::uint64_t>(steps_);
  spec_.kill_grace_seconds = k_grace_seconds;
  spec_.whole_output = false;
  ServerProcess::OnLine on_line;
  if (ready_line_) {
    on_line = [this](std::string_view said) { return ready_line_->first_group(said).has_value(); };
  }
  server_ =
      std::make_unique<ServerProcess>(effects_.processes, spec_, effects_.stop, std::move(on_line));
  return std::nullopt;
}

Result<sys::Finished> ServerStart::stop() {
  auto finished = server_->end();
  server_.reset();
  if (in_container() && may_have_left(cell_, finished)) {
    left_ = end_container(effects_, cell_, carried_, container_name_);
  }
  return finished;
}

std::optional<ServerStart::Failed> ServerStart::wait_until_up(double deadline) {
  const auto http = effects_.speaking.http();
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
  take_over(record, *finished_);
  if (in_container()) leave_out_runtimes_own(record);
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
    std::string how = failure_of(*finished_, spec_).value_or("it exited with code 0");
    if (in_container()) how = failure_in_container(cell_, *finished_, std::move(how));
    record.report.reset();
    record.probes.clear();
    record.error = record.ended == Ended::not_started
                       ? how
                       : fmt::format("{}: {}", record.error.value_or("the server ended"), how);
  } else if (finished_->signal == SIGKILL) {
    record.warnings.push_back(fmt::format(
        "the server did not end within {:g} s of SIGTERM and was killed", k_grace_seconds));
  } else if (finished_->signal != 0 && finished_->signal != SIGTERM) {
    record.warnings.push_back(
        fmt::format("the server {} when it was told to end", signal_words(finished_->signal)));
  }
  if (record.error) record.stderr_tail = last_lines(finished_->err + finished_->out);
}

}  // namespace weir::run
