#include "gate/load/load.hpp"

#include <cmath>
#include <deque>
#include <ranges>

#include "gate/base/text.hpp"
#include "gate/load/request.hpp"
#include "gate/stats/arrivals.hpp"

namespace weir::load {
namespace {

constexpr std::int64_t k_most_at_once = 1024;
constexpr std::int64_t k_most_requests = 1'000'000;
// So many are sent, where they are due, before those under way are looked at again.
constexpr int k_longest_burst = 16;

bool above_zero(double value) { return std::isfinite(value) && value > 0; }

Result<void> check_loop(const LoadPlan& plan) {
  const auto at_once = [](std::int64_t count) { return count >= 1 && count <= k_most_at_once; };
  if (const auto* closed = std::get_if<ClosedLoop>(&plan.loop)) {
    if (!at_once(closed->concurrency)) {
      return fail(Code::usage, "a concurrency of {}: 1 to {} can be had", closed->concurrency,
                  k_most_at_once);
    }
    return {};
  }
  if (std::holds_alternative<HeldBurst>(plan.loop)) {
    if (at_once(plan.requests)) return {};
    return fail(Code::usage, "a burst of {} requests: 1 to {} can be had", plan.requests,
                k_most_at_once);
  }
  if (const auto* recorded = std::get_if<RecordedLoop>(&plan.loop)) {
    if (std::cmp_greater_equal(recorded->arrivals.size(), plan.requests)) return {};
    return fail(Code::usage, "{} arrivals for {} requests", recorded->arrivals.size(),
                plan.requests);
  }
  const auto& open = std::get<OpenLoop>(plan.loop);
  if (!above_zero(open.requests_per_second) || open.requests_per_second > 1e6) {
    return fail(Code::usage, "a rate of {} requests a second", open.requests_per_second);
  }
  if (!at_once(open.most_at_once)) {
    return fail(Code::usage, "{} requests at once: 1 to {} can be had", open.most_at_once,
                k_most_at_once);
  }
  return {};
}

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
  if (plan.requests < 1 || plan.requests > k_most_requests || plan.warm_up < 0 ||
      plan.warm_up > k_most_requests) {
    return fail(Code::usage, "{} requests after {} to warm up: 1 to {} can be sent", plan.requests,
                plan.warm_up, k_most_requests);
  }
  const LoadLimits& limits = plan.limits;
  for (const double seconds :
       {limits.header_seconds, limits.first_token_seconds, limits.next_token_seconds,
        limits.request_seconds, limits.load_seconds}) {
    if (!above_zero(seconds)) return fail(Code::usage, "a time limit of {} s", seconds);
  }
  if (limits.answer_bytes < 1) return fail(Code::usage, "a limit of no bytes");
  return check_loop(plan);
}

// Where a base URL names the API's version already, as OpenAI's does, it is not said twice.
std::string address(std::string url, std::string_view path) {
  while (url.ends_with('/')) url.pop_back();
  if (url.ends_with("/v1") && path.starts_with("/v1/")) path.remove_prefix(3);
  return url.append(path);
}

// When the next request is due, in either loop.
class Schedule {
 public:
  virtual ~Schedule() = default;
  // The intended start of the next one, on Clock::steady(), with `under_way` not over yet; nothing
  // before one of those has ended.
  [[nodiscard]] virtual std::optional<double> next(std::size_t under_way) const = 0;
  virtual void take_next() = 0;
  virtual void ended(double at) = 0;
};

class ClosedSchedule final : public Schedule {
 public:
  ClosedSchedule(std::int64_t places, double start)
      : free_since_(static_cast<std::size_t>(places), start) {}
  std::optional<double> next(std::size_t) const override {
    return free_since_.empty() ? std::nullopt : std::optional(free_since_.front());
  }
  void take_next() override { free_since_.pop_front(); }
  void ended(double at) override { free_since_.push_back(at); }

 private:
  std::deque<double> free_since_;
};

class OpenSchedule final : public Schedule {
 public:
  OpenSchedule(std::vector<double> arrivals, std::int64_t most_at_once, double start)
      : arrivals_(std::move(arrivals)),
        most_(static_cast<std::size_t>(most_at_once)),
        start_(start) {}
  std::optional<double> next(std::size_t under_way) const override {
    if (under_way >= most_ || taken_ == arrivals_.size()) return std::nullopt;
    return start_ + arrivals_[taken_];
  }
  void take_next() override { ++taken_; }
  void ended(double) override {}

 private:
  std::vector<double> arrivals_;
  std::size_t most_;
  double start_;
  std::size_t taken_ = 0;
};

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
    for (const LoadPrompt& prompt : plan.prompts) posts_.push_back(post_of(prompt));
    if (!plan.after.empty()) turns_.resize(plan.prompts.size());
  }

  Load go() {
    if (plan_.warm_up > 0) {
      ClosedSchedule one_by_one(1, clock_.steady());
      run(one_by_one, plan_.warm_up, true);
    }
    const double start = clock_.steady();
    if (const auto* closed = std::get_if<ClosedLoop>(&plan_.loop)) {
      ClosedSchedule schedule(closed->concurrency, start);
      load_.not_sent = run(schedule, plan_.requests, false);
    } else if (const auto* burst = std::get_if<HeldBurst>(&plan_.loop)) {
      load_.not_sent = run_held(*burst->queue);
    } else if (const auto* recorded = std::get_if<RecordedLoop>(&plan_.loop)) {
      OpenSchedule schedule(recorded->arrivals, k_most_at_once, start);
      load_.not_sent = run(schedule, plan_.requests, false);
    } else {
      const auto& open = std::get<OpenLoop>(plan_.loop);
      OpenSchedule schedule(
          stats::poisson_arrivals(open.requests_per_second,
                                  static_cast<std::size_t>(plan_.requests), open.seed),
          open.most_at_once, start);
      load_.not_sent = run(schedule, plan_.requests, false);
    }
    return std::move(load_);
  }

 private:
  struct UnderWay {
    std::unique_ptr<Request> request;
    sys::Streams::Id id = 0;
    std::size_t place = 0;               // in load_.requests
    std::optional<std::size_t> which{};  // of turns_
  };

  [[nodiscard]] sys::StreamRequest post_of(const LoadPrompt& prompt) const {
    adapters::serving::Ask ask;
    ask.model = plan_.model;
    ask.prompt = prompt.text;
    ask.max_tokens = prompt.max_tokens;
    ask.seed = plan_.seed;
    ask.own_fields = plan_.own_fields;
    ask.to_full_length = plan_.to_full_length;
    ask.cached_prompts = plan_.cached_prompts;
    ask.more = plan_.more;
    sys::StreamRequest post;
    post.url = address(plan_.url, api_.path);
    post.headers = {{"Content-Type", "application/json"},
                    {"Accept", std::string(api_.content_type)}};
    if (!plan_.token.empty()) post.authorization = Secret("Bearer " + plan_.token.reveal());
    post.body = adapters::serving::body_of(api_, ask);
    return post;
  }

  struct Turn {
    bool is_sent = false;
    std::optional<double> over_at{};
  };
  // A prompt that may be sent, and since when.
  struct Next {
    std::size_t which = 0;
    double since = 0;
  };
  // Of those that wait for no other the first; nothing while all others wait.
  [[nodiscard]] std::optional<Next> next_prompt(std::int64_t number, bool warm_up) {
    if (plan_.after.empty() || warm_up) {
      return Next{static_cast<std::size_t>(number) % plan_.prompts.size()};
    }
    const auto is_sent = [](const Turn& turn) { return turn.is_sent; };
    if (std::ranges::all_of(turns_ | std::views::drop(first_), is_sent)) {  // all of them again
      turns_.assign(plan_.prompts.size(), {});
      for (UnderWay& one : under_way_) one.which.reset();
      first_ = 0;
    }
    while (turns_[first_].is_sent) ++first_;
    for (std::size_t i = first_; i < turns_.size(); ++i) {
      if (turns_[i].is_sent) continue;
      if (!plan_.after[i]) return Next{i};
      if (const auto over = turns_[*plan_.after[i]].over_at) return Next{i, *over};
    }
    return std::nullopt;
  }

  void send(std::int64_t number, double intended, bool warm_up) {
    send(number, static_cast<std::size_t>(number) % plan_.prompts.size(), intended, warm_up);
  }
  void send(std::int64_t number, std::size_t which, double intended, bool warm_up) {
    profile::ServedRequest begun;
    begun.number = number;
    begun.prompt = plan_.prompts[which].name;
    begun.asked_tokens = plan_.prompts[which].max_tokens;
    begun.warm_up = warm_up;
    begun.intended = intended - zero_;
    begun.sent = clock_.steady() - zero_;
    UnderWay one;
    one.request = std::make_unique<Request>(api_, limits_, zero_, std::move(begun));
    one.place = load_.requests.size();
    if (!warm_up && which < turns_.size()) {
      turns_[which].is_sent = true;
      one.which = which;
    }
    load_.requests.emplace_back();
    one.id = streams_.post(posts_[which], *one.request);
    under_way_.push_back(std::move(one));
  }

  // How long nothing has to be done unless something comes.
  [[nodiscard]] double next_moment(const std::optional<double>& due) const {
    double until = last_;
    if (due) until = std::min(until, *due);
    for (const UnderWay& one : under_way_) until = std::min(until, one.request->deadline());
    if (plan_.each_second) until = std::min(until, next_second_);
    return until;
  }

  void end_overdue() {
    const double now = clock_.steady();
    for (UnderWay& one : under_way_) {
      if (one.request->is_over() || one.request->deadline() > now) continue;
      streams_.drop(one.id);
      one.request->give_up(now);
    }
  }

  void take_over(Schedule& schedule) {
    for (UnderWay& one : under_way_) {
      if (!one.request->is_over()) continue;
      load_.requests[one.place] = one.request->take();
      if (one.which) turns_[*one.which].over_at = one.request->over_at();
      schedule.ended(one.request->over_at());
    }
    std::erase_if(under_way_, [](const UnderWay& one) { return one.request->is_over(); });
  }

  // Whether weir shall go on; else what is under way is ended.
  bool goes_on(Schedule& schedule) {
    load_.interrupted = load_.interrupted || stop_.requested();
    const double now = clock_.steady();
    load_.out_of_time = load_.out_of_time || now >= last_;
    if (!load_.interrupted && !load_.out_of_time) return true;
    for (UnderWay& one : under_way_) {
      streams_.drop(one.id);
      one.request->interrupt(
          now, load_.interrupted ? "weir was stopped" : "the load as a whole ran out of time");
    }
    take_over(schedule);
    return false;
  }

  // Waits until the server has taken in all that was sent. False: it has not within its time, or
  // something has ended meanwhile, which no held request does.
  bool wait_until_queued(Queue& queue, Schedule& schedule) {
    constexpr double k_look_again = 0.0005;
    const double until = clock_.steady() + plan_.limits.queue_seconds;
    const auto sent = static_cast<std::int64_t>(under_way_.size());
    while (goes_on(schedule) && clock_.steady() < until) {
      if (streams_.has_sent(under_way_.back().id) && queue.has_taken(sent)) return true;
      streams_.wait(clock_.steady() + k_look_again, stop_);
      end_overdue();
      take_over(schedule);
      if (static_cast<std::int64_t>(under_way_.size()) < sent) return false;
    }
    return false;
  }

  // As run().
  std::int64_t run_held(Queue& queue) {
    ClosedSchedule schedule(plan_.requests, clock_.steady());
    std::int64_t sent = 0;
    // They wait for each other on purpose.
    limits_.header_seconds = limits_.first_token_seconds = limits_.next_token_seconds =
        limits_.request_seconds = limits_.load_seconds;
    bool held = queue.hold();
    while (held && sent < plan_.requests) {
      schedule.take_next();
      send(sent++, clock_.steady(), false);
      held = wait_until_queued(queue, schedule);
    }
    queue.let_go();
    if (!held) {
      load_.not_held = queue.why();
      limits_ = plan_.limits;
    }
    return run(schedule, plan_.requests, false, sent);
  }

  void call_each_second() {
    const double now = clock_.steady();
    if (!plan_.each_second || now < next_second_) return;
    plan_.each_second();
    next_second_ = now + 1;
  }

  // Answers how many were not sent; `sent` are already.
  std::int64_t run(Schedule& schedule, std::int64_t requests, bool warm_up, std::int64_t sent = 0) {
    const double begun = clock_.steady();
    const auto may_send = [&] {
      return sent < requests &&
             (warm_up || !plan_.send_seconds || clock_.steady() < begun + *plan_.send_seconds);
    };
    while (goes_on(schedule) && (may_send() || !under_way_.empty())) {
      for (int burst = 0; burst < k_longest_burst && may_send(); ++burst) {
        const auto due = schedule.next(under_way_.size());
        if (!due || *due > clock_.steady()) break;
        const auto next = next_prompt(sent, warm_up);
        if (!next) break;
        schedule.take_next();
        send(sent++, next->which, std::max(*due, next->since), warm_up);
      }
      const bool is_ready = may_send() && next_prompt(sent, warm_up);
      const auto due = is_ready ? schedule.next(under_way_.size()) : std::nullopt;
      streams_.wait(next_moment(due), stop_);
      call_each_second();
      end_overdue();
      take_over(schedule);
    }
    const bool by_time = plan_.send_seconds && !warm_up && goes_on(schedule);
    return by_time ? 0 : requests - sent;
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
  std::size_t first_ = 0;                  // of those before it all are sent
  std::vector<UnderWay> under_way_;
  Load load_;
};

}  // namespace

Result<Load> drive(const LoadPlan& plan, sys::Streams& streams, const sys::Clock& clock,
                   const sys::Stop& stop) {
  WEIR_CHECK(check(plan));
  return Driver(plan, streams, clock, stop).go();
}

}  // namespace weir::load
