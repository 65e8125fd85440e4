#include "gate/run/server_step.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/load/load.hpp"
#include "gate/profile/between.hpp"
#include "gate/run/engine_run.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/served_report.hpp"
#include "gate/run/server_token.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/pause.hpp"
#include "gate/sys/port.hpp"

namespace weir::run {

using profile::Ended;
using profile::Pass;
using profile::ProbeCounts;
using profile::RunRecord;

namespace {

constexpr std::uint64_t k_largest_text = std::uint64_t{16} << 20;
constexpr int k_ports_tried = 3;           // another program may take one in between
constexpr double k_ask_again = 0.02;       // seconds, whether it is up
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

ServerStep::ServerStep(const Effects& effects, const std::string& folder, const PreparedCell& cell,
                       const Step& step, std::int64_t attempt, double waits)
    : effects_(effects),
      cell_(cell),
      step_(step),
      settings_(*cell.cell.engine->server),
      place_(effects.files,
             sys::join_path(folder, fmt::format("tmp/{:07}-{}", step.order, attempt))),
      starts_(!cell.cell.engine->command.empty()),
      probed_(step.pass == Pass::counted && !cell.probes.empty()),
      waits_(waits),
      record_(begin_record(effects, cell, step, attempt)) {}

bool ServerStep::begin() {
  begun_ = effects_.clock.steady();
  const Turn turn(*this);
  ticks_ = effects_.load.ticks();
  return prepare() && bring_up();
}

bool ServerStep::warm_up() {
  const Turn turn(*this);
  streams_ = effects_.speaking.streams(effects_.clock);
  if (settings_.warm_up > 0 && !drive(settings_.warm_up, std::nullopt)) return false;
  requests_.clear();
  if (!settings_.metrics.empty()) metrics_before_ = ask_metrics();
  return !probed_ || read_counts(before_);
}

bool ServerStep::serve(std::int64_t requests, std::int64_t block) {
  const Turn turn(*this);
  return drive(requests, block);
}

void ServerStep::report() {
  const Turn turn(*this);
  const auto most = settings_.most_different_outputs;
  if (const std::int64_t different = different_outputs(requests_); most && different > *most) {
    give_up(
        fmt::format("{} of {} requests were answered otherwise than most of them "
                    "(max_different_outputs: {})",
                    different, requests_.size(), *most));
    return;
  }
  record_.report = served_report(cell_, requests_);
  report_metrics();
  if (starts_) {
    record_.report->times.push_back({*unit::find_metric("load_seconds"), {up_after_}});
  }
  // What counts would be divided by.
  if (probed_ && cell_.cell.sweep == profile::Sweep::overlapping &&
      !record_.report->generated_tokens) {
    give_up("requests generated different numbers of tokens: there are no counts per token");
    return;
  }
  std::vector<ProbeCounts> after;
  if (!probed_ || !read_counts(after)) return;
  auto counted = profile::counts_between(before_, after);
  if (counted) {
    record_.probes = std::move(*counted);
  } else {
    give_up(counted.error().message);
  }
}

Result<std::optional<RunRecord>> ServerStep::end() {
  WEIR_CHECK(end_process());
  if (effects_.stop.requested()) return std::nullopt;
  const auto after = effects_.load.ticks();
  if (ticks_ && after) record_.machine.steal_share = sys::steal_share(*ticks_, *after);
  if (record_.error) record_.error = text::printable(*record_.error);
  if (!token_.empty()) {
    // A server may say in its words what it was asked with.
    Masker masker;
    masker.add(token_);
    const auto mask = [&](std::string& text) { text = masker.mask_with_parts(text); };
    if (record_.error) mask(*record_.error);
    mask(record_.stderr_tail);
    for (std::string& warning : record_.warnings) mask(warning);
    if (record_.report) {
      if (record_.report->engine_build) mask(*record_.report->engine_build);
      for (std::string& warning : record_.report->warnings) mask(warning);
      for (profile::ServerFigure& figure : record_.report->server) mask(figure.name);
    }
  }
  return std::move(record_);
}

bool ServerStep::give_up(std::string why, Ended ended) {
  record_.ended = ended;
  record_.error = std::move(why);
  return false;
}

double ServerStep::seconds_left() const {
  return cell_.cell.engine->timeout_seconds - used_ - (effects_.clock.steady() - since_);
}

// What can go wrong before anything runs.
bool ServerStep::prepare() {
  if (!settings_.ready_line.empty()) {
    auto pattern = config::Pattern::compile("(" + settings_.ready_line + ")");
    if (!pattern) return give_up(pattern.error().message, Ended::not_started);
    ready_line_ = std::move(*pattern);
  }
  if (cell_.cell.text) {
    prompt_ = *cell_.cell.text;
  } else if (cell_.cell.prompt_file) {
    auto text = effects_.files.read(cell_.prompt_file, k_largest_text);
    if (!text) return give_up(text.error().message, Ended::not_started);
    prompt_ = std::move(*text);
  } else {
    prompt_ = made_up_prompt(step_.asked.prompt_tokens);
  }
  if (!settings_.token_env.empty()) {
    auto token = server_token(settings_.token_env,
                              Secret(sys::environment_value(settings_.token_env).value_or("")));
    if (!token) return give_up(token.error().message, Ended::not_started);
    token_ = std::move(*token);
  }
  carried_ = {place_.path(), place_.out(), probed_ ? place_.probes() : std::string()};
  if (!probed_) return true;
  // An image has an environment of its own: what weir.yaml sets in it is all that is known.
  const config::Environment own = in_container()
                                      ? line_of(cell_, step_, place_.out(), place_.probes()).env
                                      : config::Environment();
  auto attached =
      effects_.probing.attach(cell_.probes, place_.probes(), in_container() ? &own : nullptr);
  if (!attached) {
    return give_up("the probes could not be attached: " + attached.error().message,
                   Ended::not_started);
  }
  probe_env_ = std::move(*attached);
  return true;
}

bool ServerStep::bring_up() {
  for (int tried = 1;; ++tried) {
    int port = 0;
    if (starts_) {
      const auto found = sys::free_port();
      if (!found) return give_up(found.error().message, Ended::not_started);
      port = *found;
    }
    fill_urls(std::to_string(port));
    if (const auto named = port_of_this_machine(url_);
        starts_ && named && !effects_.speaking.is_free(*named)) {
      if (*named == port && tried < k_ports_tried) continue;
      return give_up(fmt::format("something listens at {} already, and would be asked in place of "
                                 "the server that weir starts: end it, or write {{port}}",
                                 url_),
                     Ended::not_started);
    }
    const double started = effects_.clock.steady();
    if (starts_ && !start(std::to_string(port))) return false;
    if (wait_until_up()) {
      up_after_ = effects_.clock.steady() - started;
      return true;
    }
    const bool gone = server_ && server_->is_gone();
    if (!gone || tried == k_ports_tried || effects_.speaking.is_free(port)) return false;
    // Somebody else has the port by now: that is no fault of the server's.
    record_.error.reset();
    record_.ended = Ended::exited;
    (void)stop();
  }
}

void ServerStep::fill_urls(const std::string& port) {
  url_ = place_of(settings_.url.empty() ? "http://127.0.0.1:{port}" : settings_.url, port);
  ready_url_ = place_of(settings_.ready_url, port);
  metrics_url_ = place_of(settings_.metrics, port);
}

std::string ServerStep::place_of(const std::string& path_or_url, const std::string& port) const {
  const std::string place = config::substitute(path_or_url, [&](std::string_view) { return port; });
  return place.starts_with('/') ? url_ + place : place;
}

bool ServerStep::start(const std::string& port) {
  config::CommandLine line =
      line_of(cell_, step_, place_.out(),
              step_.pass == Pass::counted ? place_.probes() : std::string(), port);
  spec_ = {};
  spec_.argv = std::move(line.argv);
  spec_.settle_seconds = k_workers_seconds;
  if (in_container()) {
    carried_.port = port;
    container_name_ =
        "weir-" + short_hash(fmt::format("{} {} {}", place_.path(), port, effects_.clock.now()));
    auto put =
        put_in_container(effects_, cell_, carried_, container_name_, line.env, probe_env_, spec_);
    if (!put) return give_up(put.error().message, Ended::not_started);
  } else {
    spec_.env = merge_environment(sys::own_environment(), line.env, probe_env_);
  }
  spec_.folder = cell_.folder;
  spec_.timeout_seconds = cell_.cell.engine->timeout_seconds + waits_ + k_backstop_seconds;
  spec_.output_limit = static_cast<std::uint64_t>(cell_.cell.engine->output_limit);
  spec_.kill_grace_seconds = k_grace_seconds;
  spec_.whole_output = false;
  ServerProcess::OnLine on_line;
  if (ready_line_) {
    on_line = [this](std::string_view said) { return ready_line_->first_group(said).has_value(); };
  }
  server_ =
      std::make_unique<ServerProcess>(effects_.processes, spec_, effects_.stop, std::move(on_line));
  return true;
}

Result<sys::Finished> ServerStep::stop() {
  auto finished = server_->end();
  server_.reset();
  if (in_container() && may_have_left(cell_, finished)) {
    std::string left = end_container(effects_, cell_, carried_, container_name_);
    if (!left.empty()) record_.warnings.push_back(std::move(left));
  }
  return finished;
}

bool ServerStep::wait_until_up() {
  const auto http = effects_.speaking.http();
  const double deadline =
      effects_.clock.steady() + std::min(settings_.ready_seconds, seconds_left());
  std::string last = "nothing was answered";
  for (;;) {
    if (effects_.stop.requested()) return false;
    if (server_ && server_->is_gone()) return give_up("the server ended before it was up");
    if (ready_line_ ? server_ && server_->has_said() : answers(*http, last)) return true;
    if (effects_.clock.steady() >= deadline) break;
    (void)sys::RealPause().wait(k_ask_again, over());
  }
  const std::string sign =
      ready_line_ ? fmt::format("it printed no line that matches \"{}\"", settings_.ready_line)
                  : fmt::format("{}: {}", ready_url_, last);
  return give_up(fmt::format("the server was not up within {}: {}",
                             unit::show_duration(settings_.ready_seconds), sign),
                 Ended::timed_out);
}

bool ServerStep::answers(sys::Http& http, std::string& last) const {
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

// Sends the warm-up, or the load. False where that measures nothing.
bool ServerStep::drive(std::int64_t requests, std::optional<std::int64_t> block) {
  load::LoadPlan plan;
  plan.url = url_;
  plan.api = settings_.api;
  plan.model = settings_.model_name;
  plan.prompts = {{cell_.cell.key.prompt, prompt_, step_.asked.tokens}};
  plan.seed = cell_.cell.seed;
  plan.own_fields = settings_.own_fields;
  plan.token = token_;
  if (!settings_.extra_body.empty()) {
    auto more = parse_json(settings_.extra_body);
    if (!more) return give_up(more.error().message);
    plan.more = std::move(*more);
  }
  plan.requests = requests;
  const bool warm_up = !block;
  if (block && cell_.cell.rate) {
    plan.loop =
        load::OpenLoop{*cell_.cell.rate, static_cast<std::uint64_t>(cell_.cell.seed + *block)};
  } else {
    plan.loop = load::ClosedLoop{warm_up ? 1 : cell_.cell.concurrency};
  }
  plan.limits.load_seconds = std::max(seconds_left(), 0.1);
  auto load = load::drive(plan, *streams_, effects_.clock, over());
  if (!load) return give_up(load.error().message);
  const auto failures = served_failures(load->requests);
  profile::append_block(requests_, std::move(load->requests));
  if (!failures && load->not_sent == 0) return true;
  // A server that dies takes its connections along first.
  constexpr double k_until_seen = 0.5;
  if (server_) (void)sys::RealPause().wait(k_until_seen, over());
  const std::string in = warm_up ? "warm-up: " : "";
  if (server_ && server_->is_gone()) return give_up(in + "the server ended while it served");
  if (load->out_of_time) {
    return give_up(fmt::format("{}the requests were not answered within {} (timeout)", in,
                               unit::show_duration(cell_.cell.engine->timeout_seconds)),
                   Ended::timed_out);
  }
  return give_up(in + failures.value_or("not all requests were sent"));
}

// Ends the server, and says of it what the record has to say. Fails as Processes::run().
Result<void> ServerStep::end_process() {
  if (!server_) {
    record_.wall_seconds = effects_.clock.steady() - begun_;
    return {};
  }
  const bool gone = server_->is_gone();
  WEIR_TRY(const sys::Finished finished, stop());
  const Ended told = record_.ended;
  take_over(record_, finished);
  if (in_container()) leave_out_runtimes_own(record_);
  if (gone) {
    say_how_it_went(finished);
  } else {
    record_.ended = told;
    record_.exit_code = record_.signal = 0;
    if (finished.signal == SIGKILL) {
      record_.warnings.push_back(fmt::format(
          "the server did not end within {:g} s of SIGTERM and was killed", k_grace_seconds));
    } else if (finished.signal != 0 && finished.signal != SIGTERM) {
      record_.warnings.push_back(
          fmt::format("the server {} when it was told to end", signal_words(finished.signal)));
    }
  }
  if (record_.error) record_.stderr_tail = last_lines(finished.err + finished.out);
  return {};
}

// Of one that ended by itself, which no server shall.
void ServerStep::say_how_it_went(const sys::Finished& finished) {
  std::string how = failure_of(finished, spec_).value_or("it exited with code 0");
  if (in_container()) how = failure_in_container(cell_, finished, std::move(how));
  record_.report.reset();
  record_.probes.clear();
  record_.error = record_.ended == Ended::not_started
                      ? how
                      : fmt::format("{}: {}", record_.error.value_or("the server ended"), how);
}

}  // namespace weir::run
