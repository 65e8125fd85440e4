// Sends the requests of a load in closed, open or held loops, and collects their records.
#include "gate/load/load.hpp"

#include <cmath>
#include <deque>
#include <ranges>

#include "gate/base/text.hpp"
#include "gate/load/request.hpp"
#include "gate/stats/arrivals.hpp"

namespace weir::load {
namespace {

constexpr std::int64_t k_max_concurrent_requests = 1024;
constexpr std::int64_t k_max_requests = 1'000'000;
// Due requests sent in a row before the running ones are served again.
constexpr int k_max_burst_requests = 16;

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

// Fails with Code::usage if the plan's loop (how requests follow each other) has numbers out of
// range.
Result<void> check_loop(const LoadPlan& plan) {
  const auto is_valid_concurrency = [](std::int64_t count) {
    return count >= 1 && count <= k_max_concurrent_requests;
  };
  if (const auto* closed = std::get_if<ClosedLoop>(&plan.loop)) {
    if (!is_valid_concurrency(closed->concurrency)) {
      return fail(Code::usage, "a concurrency of {}: 1 to {} can be had", closed->concurrency,
                  k_max_concurrent_requests);
    }
    return {};
  }
  if (std::holds_alternative<QueuedBurst>(plan.loop)) {
    if (is_valid_concurrency(plan.requests)) return {};
    return fail(Code::usage, "a burst of {} requests: 1 to {} can be had", plan.requests,
                k_max_concurrent_requests);
  }
  if (const auto* recorded = std::get_if<RecordedLoop>(&plan.loop)) {
    if (std::cmp_greater_equal(recorded->arrivals.size(), plan.requests)) return {};
    return fail(Code::usage, "{} arrivals for {} requests", recorded->arrivals.size(),
                plan.requests);
  }
  const auto& open = std::get<OpenLoop>(plan.loop);
  if (!is_positive(open.requests_per_second) || open.requests_per_second > 1e6) {
    return fail(Code::usage, "a rate of {} requests a second", open.requests_per_second);
  }
  if (!is_valid_concurrency(open.max_concurrent)) {
    return fail(Code::usage, "{} requests at once: 1 to {} can be had", open.max_concurrent,
                k_max_concurrent_requests);
  }
  return {};
}

// Fails with Code::usage if the load plan cannot be carried out: API, URL, model, prompts, their
// order, or limits.
Result<void> check(const LoadPlan& plan) {
  const auto* api = adapters::serving::find_api(plan.api);
  if (api == nullptr) {
    const auto names = adapters::serving::api_names();
    return fail(Code::usage, "unknown API \"{}\"{}\n  known here: {}", plan.api,
                text::did_you_mean(plan.api, names), text::join(names));
  }
  if (!plan.url.starts_with("http://") && !plan.url.starts_with("https://")) {
    return fail(Code::usage, "\"{}\" is no URL of a server (http:// or https://)", plan.url);
  }
  if (api->needs_model && plan.model.empty()) {
    return fail(Code::usage, "the API \"{}\" needs the name of a model", plan.api);
  }
  if (plan.prompts.empty()) return fail(Code::usage, "no prompt to send");
  for (const LoadPrompt& prompt : plan.prompts) {
    if (prompt.max_tokens < 1 || prompt.max_tokens > 1'000'000) {
      return fail(Code::usage, "prompt {} asks for {} tokens", prompt.name, prompt.max_tokens);
    }
  }
  for (std::size_t i = 0; i < plan.after.size(); ++i) {
    if (plan.after.size() == plan.prompts.size() && plan.after[i].value_or(0) <= i &&
        plan.after[i] != i) {
      continue;
    }
    return fail(Code::usage, "a prompt that waits for one behind it");
  }
  if (plan.requests < 1 || plan.requests > k_max_requests || plan.warm_up < 0 ||
      plan.warm_up > k_max_requests) {
    return fail(Code::usage, "{} requests after {} to warm up: 1 to {} can be sent", plan.requests,
                plan.warm_up, k_max_requests);
  }
  const LoadLimits& limits = plan.limits;
  for (const double seconds :
       {limits.header_seconds, limits.first_token_seconds, limits.next_token_seconds,
        limits.request_seconds, limits.load_seconds}) {
    if (!is_positive(seconds)) return fail(Code::usage, "a time limit of {} s", seconds);
  }
  if (limits.answer_bytes < 1) return fail(Code::usage, "a limit of no bytes");
  return check_loop(plan);
}

// Returns the base URL with the API's path. "/v1" at the end of the base URL is not repeated.
std::string endpoint_url(std::string url, std::string_view path) {
  while (url.ends_with('/')) url.pop_back();
  if (url.ends_with("/v1") && path.starts_with("/v1/")) path.remove_prefix(3);
  return url.append(path);
}

// Decides when the next request is due.
class Schedule {
 public:
  virtual ~Schedule() = default;
  // Returns the intended start of the next request, on Clock::steady(), while `running` requests
  // run; nothing if one of them must end first.
  [[nodiscard]] virtual std::optional<double> next_start(std::size_t running) const = 0;
  virtual void take_next() = 0;
  virtual void ended(double at) = 0;
};

class ClosedSchedule final : public Schedule {
 public:
  ClosedSchedule(std::int64_t places, double start)
      : free_since_(static_cast<std::size_t>(places), start) {}
  std::optional<double> next_start(std::size_t) const override {
    return free_since_.empty() ? std::nullopt : std::optional(free_since_.front());
  }
  void take_next() override { free_since_.pop_front(); }
  void ended(double at) override { free_since_.push_back(at); }

 private:
  std::deque<double> free_since_;
};

class OpenSchedule final : public Schedule {
 public:
  OpenSchedule(std::vector<double> arrivals, std::int64_t max_concurrent, double start)
      : arrivals_(std::move(arrivals)),
        max_running_(static_cast<std::size_t>(max_concurrent)),
        start_(start) {}
  std::optional<double> next_start(std::size_t running) const override {
    if (running >= max_running_ || sent_ == arrivals_.size()) return std::nullopt;
    return start_ + arrivals_[sent_];
  }
  void take_next() override { ++sent_; }
  void ended(double) override {}

 private:
  std::vector<double> arrivals_;
  std::size_t max_running_;
  double start_;
  std::size_t sent_ = 0;
};

// Carries out one plan. run_plan() may be called once.
class Driver {
 public:
  Driver(const LoadPlan& plan, sys::Streams& streams, const sys::Clock& clock,
         const sys::Stop& stop)
      : plan_(plan),
        limits_(plan.limits),
        api_(*adapters::serving::find_api(plan.api)),
        streams_(streams),
        clock_(clock),
        stop_(stop),
        zero_(clock.steady()),
        last_(zero_ + plan.limits.load_seconds) {
    for (const LoadPrompt& prompt : plan.prompts) posts_.push_back(make_post(prompt));
    if (!plan.after.empty()) turns_.resize(plan.prompts.size());
  }

  Load run_plan() {
    if (plan_.warm_up > 0) {
      ClosedSchedule one_by_one(1, clock_.steady());
      run(one_by_one, plan_.warm_up, /*warm_up=*/true);
    }
    const double start = clock_.steady();
    if (const auto* closed = std::get_if<ClosedLoop>(&plan_.loop)) {
      ClosedSchedule schedule(closed->concurrency, start);
      load_.not_sent = run(schedule, plan_.requests, /*warm_up=*/false);
    } else if (const auto* burst = std::get_if<QueuedBurst>(&plan_.loop)) {
      load_.not_sent = run_queued_burst(*burst->queue);
    } else if (const auto* recorded = std::get_if<RecordedLoop>(&plan_.loop)) {
      OpenSchedule schedule(recorded->arrivals, k_max_concurrent_requests, start);
      load_.not_sent = run(schedule, plan_.requests, /*warm_up=*/false);
    } else {
      const auto& open = std::get<OpenLoop>(plan_.loop);
      OpenSchedule schedule(
          stats::poisson_arrivals(open.requests_per_second,
                                  static_cast<std::size_t>(plan_.requests), open.seed),
          open.max_concurrent, start);
      load_.not_sent = run(schedule, plan_.requests, /*warm_up=*/false);
    }
    return std::move(load_);
  }

 private:
  struct RunningRequest {
    std::unique_ptr<Request> request;
    sys::Streams::Id id = 0;
    std::size_t place = 0;                      // in load_.requests
    std::optional<std::size_t> prompt_index{};  // in turns_
  };

  // Returns the HTTP request for a prompt.
  [[nodiscard]] sys::StreamRequest make_post(const LoadPrompt& prompt) const {
    adapters::serving::ServingRequest ask;
    ask.model = plan_.model;
    ask.prompt = prompt.text;
    ask.max_tokens = prompt.max_tokens;
    ask.seed = plan_.seed;
    ask.sends_extra_fields = plan_.sends_extra_fields;
    ask.ignores_eos = plan_.ignores_eos;
    ask.allows_cached_prompts = plan_.allows_cached_prompts;
    ask.extra_members = plan_.extra_members;
    sys::StreamRequest post;
    post.url = endpoint_url(plan_.url, api_.path);
    post.headers = {{"Content-Type", "application/json"},
                    {"Accept", std::string(api_.content_type)}};
    if (!plan_.token.empty()) post.authorization = Secret("Bearer " + plan_.token.reveal());
    post.body = adapters::serving::make_body(api_, ask);
    return post;
  }

  // State of a prompt that may be a turn of a conversation.
  struct Turn {
    bool is_sent = false;
    std::optional<double> over_at{};
  };
  // A prompt that may be sent, and the moment since which it may be.
  struct NextPrompt {
    std::size_t prompt_index = 0;
    double since = 0;
  };
  // Returns the first prompt that need not wait for another's answer; nothing while all wait.
  // After the last prompt it begins again with the first.
  [[nodiscard]] std::optional<NextPrompt> next_prompt(std::int64_t number, bool warm_up) {
    if (plan_.after.empty() || warm_up) {
      return NextPrompt{static_cast<std::size_t>(number) % plan_.prompts.size()};
    }
    const auto is_sent = [](const Turn& turn) { return turn.is_sent; };
    if (std::ranges::all_of(turns_ | std::views::drop(first_), is_sent)) {
      turns_.assign(plan_.prompts.size(), {});
      for (RunningRequest& running : running_) running.prompt_index.reset();
      first_ = 0;
    }
    while (turns_[first_].is_sent) ++first_;
    for (std::size_t i = first_; i < turns_.size(); ++i) {
      if (turns_[i].is_sent) continue;
      if (!plan_.after[i]) return NextPrompt{i};
      if (const auto over = turns_[*plan_.after[i]].over_at) return NextPrompt{i, *over};
    }
    return std::nullopt;
  }

  void send(std::int64_t number, double intended, bool warm_up) {
    send(number, static_cast<std::size_t>(number) % plan_.prompts.size(), intended, warm_up);
  }
  // Posts a prompt as request `number`, due at `intended` (Clock::steady()).
  void send(std::int64_t number, std::size_t prompt_index, double intended, bool warm_up) {
    profile::ServedRequest begun;
    begun.number = number;
    begun.prompt = plan_.prompts[prompt_index].name;
    begun.asked_tokens = plan_.prompts[prompt_index].max_tokens;
    begun.warm_up = warm_up;
    begun.scheduled = intended - zero_;
    begun.sent = clock_.steady() - zero_;
    RunningRequest running;
    running.request = std::make_unique<Request>(api_, limits_, zero_, std::move(begun));
    running.place = load_.requests.size();
    if (!warm_up && prompt_index < turns_.size()) {
      turns_[prompt_index].is_sent = true;
      running.prompt_index = prompt_index;
    }
    load_.requests.emplace_back();
    running.id = streams_.post(posts_[prompt_index], *running.request);
    running_.push_back(std::move(running));
  }

  // Returns the moment at which something must be done even if no data comes.
  [[nodiscard]] double next_moment(const std::optional<double>& due) const {
    double until = last_;
    if (due) until = std::min(until, *due);
    for (const RunningRequest& running : running_)
      until = std::min(until, running.request->deadline());
    if (plan_.each_second) until = std::min(until, next_second_);
    return until;
  }

  // Ends requests whose deadline has passed.
  void give_up_overdue() {
    const double now = clock_.steady();
    for (RunningRequest& running : running_) {
      if (running.request->is_over() || running.request->deadline() > now) continue;
      streams_.drop(running.id);
      running.request->give_up(now);
    }
  }

  // Moves the records of finished requests into load_ and frees their places in the schedule.
  void collect_finished(Schedule& schedule) {
    for (RunningRequest& running : running_) {
      if (!running.request->is_over()) continue;
      load_.requests[running.place] = running.request->take();
      if (running.prompt_index) turns_[*running.prompt_index].over_at = running.request->over_at();
      schedule.ended(running.request->over_at());
    }
    std::erase_if(running_, [](const RunningRequest& entry) { return entry.request->is_over(); });
  }

  // Returns false, and ends all running requests, if weir was stopped or the load's time is up.
  bool check_stop(Schedule& schedule) {
    load_.interrupted = load_.interrupted || stop_.requested();
    const double now = clock_.steady();
    load_.out_of_time = load_.out_of_time || now >= last_;
    if (!load_.interrupted && !load_.out_of_time) return true;
    for (RunningRequest& running : running_) {
      streams_.drop(running.id);
      running.request->interrupt(
          now, load_.interrupted ? "weir was stopped" : "the load as a whole ran out of time");
    }
    collect_finished(schedule);
    return false;
  }

  // Waits until the server has queued all requests that were sent. Returns false on a timeout, or
  // if a request ended meanwhile, which no held one does.
  bool wait_until_queued(Queue& queue, Schedule& schedule) {
    constexpr double k_look_again = 0.0005;
    const double until = clock_.steady() + plan_.limits.queue_seconds;
    const auto sent = static_cast<std::int64_t>(running_.size());
    while (check_stop(schedule) && clock_.steady() < until) {
      if (streams_.has_sent(running_.back().id) && queue.has_queued(sent)) return true;
      streams_.wait(clock_.steady() + k_look_again, stop_);
      give_up_overdue();
      collect_finished(schedule);
      if (static_cast<std::int64_t>(running_.size()) < sent) return false;
    }
    return false;
  }

  // Sends all requests while the queue holds the server back, then lets it go. Returns the number
  // of requests that were not sent.
  std::int64_t run_queued_burst(Queue& queue) {
    ClosedSchedule schedule(plan_.requests, clock_.steady());
    std::int64_t sent = 0;
    // Held requests wait for each other on purpose, so only the load's limit applies.
    limits_.header_seconds = limits_.load_seconds;
    limits_.first_token_seconds = limits_.load_seconds;
    limits_.next_token_seconds = limits_.load_seconds;
    limits_.request_seconds = limits_.load_seconds;
    bool is_held = queue.hold();
    while (is_held && sent < plan_.requests) {
      schedule.take_next();
      send(sent, clock_.steady(), /*warm_up=*/false);
      ++sent;
      is_held = wait_until_queued(queue, schedule);
    }
    queue.release();
    if (!is_held) {
      load_.hold_failure = queue.why();
      limits_ = plan_.limits;
    }
    return run(schedule, plan_.requests, /*warm_up=*/false, sent);
  }

  void call_each_second() {
    const double now = clock_.steady();
    if (!plan_.each_second || now < next_second_) return;
    plan_.each_second();
    next_second_ = now + 1;
  }

  // Sends requests as the schedule says and waits for all of them. `sent` were sent already.
  // Returns the number of requests that were not sent.
  std::int64_t run(Schedule& schedule, std::int64_t requests, bool warm_up, std::int64_t sent = 0) {
    const double begun = clock_.steady();
    const auto may_send = [&] {
      return sent < requests &&
             (warm_up || !plan_.send_seconds || clock_.steady() < begun + *plan_.send_seconds);
    };
    while (check_stop(schedule) && (may_send() || !running_.empty())) {
      for (int burst = 0; burst < k_max_burst_requests && may_send(); ++burst) {
        const auto due = schedule.next_start(running_.size());
        if (!due || *due > clock_.steady()) break;
        const auto prompt = next_prompt(sent, warm_up);
        if (!prompt) break;
        schedule.take_next();
        send(sent, prompt->prompt_index, std::max(*due, prompt->since), warm_up);
        ++sent;
      }
      const bool is_ready = may_send() && next_prompt(sent, warm_up);
      const auto due = is_ready ? schedule.next_start(running_.size()) : std::nullopt;
      streams_.wait(next_moment(due), stop_);
      call_each_second();
      give_up_overdue();
      collect_finished(schedule);
    }
    const bool ended_by_time = plan_.send_seconds && !warm_up && check_stop(schedule);
    return ended_by_time ? 0 : requests - sent;
  }

  const LoadPlan& plan_;
  LoadLimits limits_;
  const adapters::serving::Api& api_;
  sys::Streams& streams_;
  const sys::Clock& clock_;
  const sys::Stop& stop_;
  double zero_, last_, next_second_ = 0;
  std::vector<sys::StreamRequest> posts_;  // by prompt
  std::vector<Turn> turns_;                // by prompt, where some wait for others
  std::size_t first_ = 0;                  // all turns before it are sent
  std::vector<RunningRequest> running_;
  Load load_;
};

}  // namespace

Result<Load> drive(const LoadPlan& plan, sys::Streams& streams, const sys::Clock& clock,
                   const sys::Stop& stop) {
  WEIR_CHECK(check(plan));
  return Driver(plan, streams, clock, stop).run_plan();
}

}  // namespace weir::load
