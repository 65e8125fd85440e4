// Runs the steps of cells whose engine is an inference server: one server alone, steps that share a
// start, or both servers of a pair.
#include "gate/run/server_run.hpp"

#include <unistd.h>

#include "gate/adapters/server_metrics.hpp"
#include "gate/base/text.hpp"
#include "gate/load/capacity.hpp"
#include "gate/run/engine_run.hpp"
#include "gate/run/served_report.hpp"
#include "gate/run/server_hold.hpp"
#include "gate/run/server_requests.hpp"
#include "gate/run/server_start.hpp"
#include "gate/run/starts.hpp"

namespace weir::run {

using profile::Ended;
using profile::Pass;
using profile::ProbeCounts;
using profile::RunRecord;

namespace {

constexpr std::int64_t k_max_requests = 1'000'000;

// One cell's load on an inference server, in parts: begin(), warm_up(), serve() once a block,
// report(), end(). Each part returns false if the step failed; then only end() may be called. The
// engine's timeout counts the time within these parts, and that of the start if another step began
// it. It stands still while the other server of a pair has its turn.
class ServerStep {
 public:
  // `start` must outlive the step. It is up already if an earlier step began it.
  ServerStep(const Effects& effects, ServerStart& start, const PreparedCell& cell, const Step& step,
             std::int64_t attempt)
      : effects_(effects),
        start_(start),
        cell_(cell),
        step_(step),
        settings_(*cell.cell.engine->server),
        requests_to_send_(cell, step),
        has_probes_(step.pass == Pass::counted && !cell.probes.empty()),
        record_(begin_record(effects, cell, step, attempt)),
        began_at_(effects.clock.steady()),
        used_seconds_(start.is_up() ? start.up_after() : 0) {}

  // Starts the server, unless it is up, and waits until it answers.
  [[nodiscard]] bool begin() {
    const TurnTimer turn(*this);
    ticks_ = effects_.load.ticks();
    if (auto read = requests_to_send_.read_prompt(effects_.files); !read) {
      return give_up(read.error().message, Ended::not_started);
    }
    if (start_.is_up()) return true;
    auto failure = start_.begin(seconds_left());
    return !failure || give_up(std::move(failure->why), failure->ended);
  }

  // Sends requests that are not measured, then reads the probes' counts as the starting point.
  [[nodiscard]] bool warm_up() {
    const TurnTimer turn(*this);
    streams_ = effects_.connections.streams(effects_.clock);
    if (settings_.warm_up > 0 && !send_requests(settings_.warm_up, std::nullopt)) return false;
    if (!requests_.empty()) {
      profile::ServedRequest& first = requests_.front();
      if (!first.tokens.empty()) start_.answered(profile::measure_latencies(first).first_token);
      likely_tokens_ = std::move(first.likely);
    }
    requests_.clear();
    if (!settings_.metrics.empty()) metrics_before_ = fetch_metrics();
    return !has_probes_ || wait_for_counts(before_);
  }

  // Sends `requests` requests. `block` counts from 0; with a rate, each block has its own arrivals.
  [[nodiscard]] bool serve(std::int64_t requests, std::int64_t block = 0) {
    const TurnTimer turn(*this);
    return send_requests(requests, block);
  }

  // Fills the record's report from all requests, after the last block. Returns false if the
  // measurement is invalid: too many different outputs, or counts that cannot be had.
  bool report() {
    const TurnTimer turn(*this);
    const auto max_different = settings_.max_different_outputs;
    const std::int64_t different = different_outputs(requests_);
    if (max_different && different > *max_different) {
      return give_up(fmt::format(
          "{} of {} requests were answered otherwise than most of them (max_different_outputs: {})",
          different, requests_.size(), *max_different));
    }
    record_.report = served_report(cell_, requests_);
    record_.report->likely = std::move(likely_tokens_);
    if (is_soak()) add_drifts(requests_, memory_, *record_.report);
    if (step_.pass == Pass::timed) add_latencies(requests_, *record_.report);
    report_capacity();
    if (settings_.max_divergence && record_.report->likely.empty()) {
      record_.report->warnings.emplace_back("the server tells no probabilities of tokens");
    }
    report_metrics();
    if (start_.is_ours()) {
      if (const auto cold = start_.cold_first_token()) {
        record_.report->times.push_back(
            {*unit::find_metric("cold_time_to_first_token_seconds"), {*cold}});
      }
      record_.report->times.push_back({*unit::find_metric("load_seconds"), {start_.up_after()}});
    }
    // Counts would be divided by the number of tokens.
    if (has_probes_ && profile::requests_share_batches(cell_.cell.sweep) &&
        !record_.report->generated_tokens) {
      return give_up(
          "requests generated different numbers of tokens: there are no counts per token");
    }
    if (has_probes_) {
      std::vector<ProbeCounts> after;
      if (!wait_for_counts(after)) return false;
      auto counted = profile::counts_between(before_, after);
      if (!counted) return give_up(counted.error().message);
      record_.probes = std::move(*counted);
      add_code(effects_, cell_, start_.probe_folder(), record_.probes, record_.warnings);
    }
    ticks_after_ = effects_.load.ticks();
    record_.wall_seconds = effects_.clock.steady() - began_at_;
    is_complete_ = true;
    return true;
  }

  // Makes the step a failure, for a reason outside of it.
  void invalidate(std::string why) {
    if (!record_.error) (void)give_up(std::move(why));
    record_.report.reset();
    record_.probes.clear();
  }

  // Returns the record, once the start has ended. Returns nothing if weir was stopped before the
  // step was complete.
  [[nodiscard]] std::optional<profile::RunRecord> end(ServerStart::Place place) {
    if (!is_complete_) record_.wall_seconds = effects_.clock.steady() - began_at_;
    start_.fill_process_facts(record_, place);
    // A step of a shared start that was complete before the stop stays measured.
    if (effects_.stop.requested() && (!is_complete_ || place != ServerStart::Place::shared)) {
      return std::nullopt;
    }
    if (!ticks_after_) ticks_after_ = effects_.load.ticks();
    finish_record(record_);
    return std::move(record_);
  }

  // Returns the record of a step that has reported, before the start has ended.
  [[nodiscard]] profile::RunRecord record_so_far() const {
    RunRecord record = record_;
    finish_record(record);
    return record;
  }

  [[nodiscard]] profile::RunRecord& record() { return record_; }

 private:
  // Adds the time of its scope to what the step has used of the engine's timeout.
  class TurnTimer {
   public:
    explicit TurnTimer(ServerStep& step) : step_(step) {
      step.turn_began_ = step.effects_.clock.steady();
    }
    ~TurnTimer() { step_.used_seconds_ += step_.effects_.clock.steady() - step_.turn_began_; }
    TurnTimer(const TurnTimer&) = delete;
    TurnTimer& operator=(const TurnTimer&) = delete;

   private:
    ServerStep& step_;
  };

  [[nodiscard]] bool holds_requests() const {
    return has_probes_ && cell_.cell.sweep == profile::Sweep::burst;
  }

  // True for a timed run with a fixed duration, outside a pair.
  [[nodiscard]] bool is_soak() const {
    return cell_.cell.duration_seconds && step_.pass == Pass::timed && !step_.pair;
  }
  void note_memory() {
    const double now = effects_.clock.steady();
    if (const auto bytes = sys::resident_bytes_below(getpid())) {
      memory_.push_back({now, static_cast<double>(*bytes)});
    }
  }

  // Returns true if the limit of a timed run allows the requests that failed so far.
  [[nodiscard]] bool may_have_failed() const {
    const auto failed = std::ranges::count_if(requests_, [](const profile::ServedRequest& request) {
      return request.failure.has_value();
    });
    return step_.pass == Pass::timed &&
           cell_.cell.wanted_load.allows_failed(
               failed, std::max<std::int64_t>(cell_.cell.requests, std::ssize(requests_)));
  }

  bool give_up(std::string why, profile::Ended ended = profile::Ended::exited) {
    record_.ended = ended;
    record_.error = std::move(why);
    return false;
  }

  // Seconds left of the engine's timeout. Call it within a turn.
  [[nodiscard]] double seconds_left() const {
    return cell_.cell.engine->timeout_seconds + cell_.cell.duration_seconds.value_or(0) -
           used_seconds_ - (effects_.clock.steady() - turn_began_);
  }

  // Sends the warm-up (no `block`) or a block of the load. Returns false if the step failed.
  bool send_requests(std::int64_t requests, std::optional<std::int64_t> block) {
    std::optional<ServerHold> queue;
    if (block && holds_requests()) {
      queue.emplace(effects_.files, start_.probe_folder(), start_.url(), start_.end_or_stop());
      if (!queue->can_hold()) {
        if (cell_.cell.must_be_held) return give_up(std::string(k_hold_unsupported));
        record_.warnings.emplace_back(
            "no probe in the server can hold back what it computes: requests are counted as they "
            "happen to meet, in several runs");
        queue.reset();
        requests = cell_.cell.requests;
        record_.parameters.repeats = requests;
      }
    }
    auto plan_result =
        requests_to_send_.plan(requests, block, queue ? &*queue : nullptr, record_.warnings);
    if (!plan_result) return give_up(plan_result.error().message);
    load::LoadPlan& plan = *plan_result;
    plan.url = start_.url();
    plan.token = start_.token();
    if (block && is_soak()) {
      if (!std::holds_alternative<load::RecordedLoop>(plan.loop)) plan.requests = k_max_requests;
      plan.send_seconds = cell_.cell.duration_seconds;
      plan.each_second = [this] { note_memory(); };
    }
    plan.limits.load_seconds = std::max(seconds_left(), 0.1);
    if (block && cell_.cell.capacity && step_.pass == Pass::timed && !step_.pair) {
      return find_capacity(std::move(plan));
    }
    auto load = load::drive(plan, *streams_, effects_.clock, start_.end_or_stop());
    if (!load) return give_up(load.error().message);
    if (load->hold_failure && !start_.is_gone()) {
      return give_up(fmt::format(
          "the requests could not be queued before the server began: {}\n"
          "  write \"hold: none\" at the prompt to count requests as they happen to meet",
          *load->hold_failure));
    }
    if (queue) record_.held = requests;
    const auto failures = served_failures(load->requests);
    profile::append_block(requests_, std::move(load->requests));
    if (!failures && load->not_sent == 0) return true;
    if (block && load->not_sent == 0 && !start_.is_gone() && may_have_failed()) return true;
    // The connections of a dying server break before its process ends.
    constexpr double k_until_noticed = 0.5;
    if (start_.is_ours()) (void)sys::RealPause().wait(k_until_noticed, start_.end_or_stop());
    const std::string in = block ? "" : "warm-up: ";
    if (start_.is_gone()) return give_up(in + "the server ended while it served");
    if (load->out_of_time) {
      return give_up(fmt::format("{}the requests were not answered within {}{}", in,
                                 unit::show_duration(cell_.cell.engine->timeout_seconds),
                                 timeout_hint(*cell_.cell.engine)),
                     Ended::timed_out);
    }
    return give_up(in + failures.value_or("not all requests were sent"));
  }

  // Searches the highest rate at which requests still meet the objectives, and keeps the requests
  // of the last rate tried. Returns false if the step failed.
  bool find_capacity(load::LoadPlan load) {
    load::CapacityPlan plan;
    plan.load = std::move(load);
    plan.objectives = settings_.objectives;
    std::tie(plan.lowest, plan.highest) = *cell_.cell.capacity;
    auto capacity = load::find_capacity(plan, *streams_, effects_.clock, start_.end_or_stop());
    if (start_.is_gone()) return give_up("the server ended while it served");
    if (!capacity) return give_up(capacity.error().message);
    if (capacity->below_lowest) {
      return give_up(fmt::format(
          "at {:.3g} requests/s, the lowest rate, {:.3g} % of the requests miss the slo: "
          "give capacity a lower \"low\"",
          plan.lowest, 100 * capacity->tried.front().missed));
    }
    requests_ = std::move(capacity->last.requests);
    capacity_ = std::move(*capacity);
    return true;
  }

  // Adds the capacity that was found, and how certain it is.
  void report_capacity() {
    if (!capacity_) return;
    record_.report->times.push_back(
        {*unit::find_metric("capacity_requests_per_second"), {capacity_->rate}});
    record_.report->warnings.push_back(
        capacity_->above_highest
            ? fmt::format("the slo holds at {:.3g} requests/s, the highest rate that was tried",
                          capacity_->rate)
            : fmt::format("capacity: {:.4g} requests/s (95 % interval {:.4g} … {:.4g}), found with "
                          "{} rates",
                          capacity_->rate, capacity_->low, capacity_->high,
                          capacity_->tried.size()));
  }

  // Reads the server's own metrics endpoint. Returns nothing, and adds a warning, if it fails.
  [[nodiscard]] std::optional<adapters::ServerMetrics> fetch_metrics() {
    constexpr double k_connect = 1, k_answer = 5;
    const auto answer = effects_.connections.http()->send(start_.get(start_.metrics_url()),
                                                          {.connect_seconds = k_connect,
                                                           .total_seconds = k_answer,
                                                           .body_bytes = std::size_t{4} << 20},
                                                          start_.end_or_stop());
    if (answer && answer->status == 200) return adapters::read_server_metrics(answer->body);
    const std::string why =
        answer ? fmt::format("HTTP {}", answer->status) : answer.error().message;
    const std::string warning = fmt::format("the server's own metrics could not be read: {}", why);
    if (record_.warnings.empty() || record_.warnings.back() != warning) {
      record_.warnings.push_back(warning);
    }
    return std::nullopt;
  }

  // Adds what the server's own metrics counted between the warm-up and now.
  void report_metrics() {
    if (!metrics_before_) return;
    constexpr int k_readings = 20;
    for (int reading = 1;; ++reading) {
      const auto after = fetch_metrics();
      if (!after) return;
      auto figures = adapters::between(*metrics_before_, *after);
      // A server may count a request a moment after sending its last token.
      if (reading < k_readings && !token_counts_agree(figures, requests_) &&
          sys::RealPause().wait(k_poll_seconds, start_.end_or_stop())) {
        continue;
      }
      if (after->left_out > 0) {
        record_.warnings.push_back(
            fmt::format("the server has {} metrics more than are kept of it", after->left_out));
      }
      return add_server_figures(std::move(figures), requests_, cell_.cell.allows_cached_prompts,
                                *record_.report);
    }
  }

  // Reads the probes' counts until two readings agree: work that the server still does for an
  // answered request belongs to that request. Returns false if they cannot be read.
  bool wait_for_counts(std::vector<profile::ProbeCounts>& counts) {
    constexpr int k_readings = 100;
    for (int reading = 0; reading < k_readings; ++reading) {
      auto reading_now = effects_.probing.collect(cell_.probes, start_.probe_folder(),
                                                  cell_.cell.engine->processes);
      if (!reading_now) {
        return give_up("what the probes counted could not be read: " + reading_now.error().message);
      }
      for (auto& probe : *reading_now) probes::name_kernels(cell_.shaders, probe);
      const bool rests = reading > 0 && *reading_now == counts;
      counts = std::move(*reading_now);
      if (rests || !sys::RealPause().wait(k_poll_seconds, start_.end_or_stop())) return true;
    }
    record_.warnings.emplace_back(
        "the server's counts do not rest between requests: what it does by itself is in them");
    return true;
  }

  // Adds what is only computed at the end, and makes the record's text safe to store.
  void finish_record(profile::RunRecord& record) const {
    if (ticks_ && ticks_after_)
      record.machine.steal_share = sys::steal_share(*ticks_, *ticks_after_);
    if (record.error) record.error = text::printable(*record.error);
    if (!start_.token().empty()) mask(record);
  }

  // Removes the server's token from all text of the record: a server may repeat it in messages.
  void mask(profile::RunRecord& record) const {
    Masker masker;
    masker.add(start_.token());
    const auto mask = [&](std::string& text) { text = masker.mask_with_parts(text); };
    if (record.error) mask(*record.error);
    mask(record.stderr_tail);
    for (std::string& warning : record.warnings) mask(warning);
    if (!record.report) return;
    if (record.report->engine_build) mask(*record.report->engine_build);
    for (std::string& warning : record.report->warnings) mask(warning);
    for (profile::ServerFigure& figure : record.report->server) mask(figure.name);
  }

  const Effects& effects_;
  ServerStart& start_;
  const PreparedCell& cell_;
  const Step& step_;
  const config::ServerSettings& settings_;
  ServerRequests requests_to_send_;
  bool has_probes_, is_complete_ = false;
  profile::RunRecord record_;
  double began_at_ = 0, turn_began_ = 0, used_seconds_ = 0;
  std::optional<sys::CpuTicks> ticks_, ticks_after_;
  std::optional<adapters::ServerMetrics> metrics_before_;
  std::unique_ptr<sys::Streams> streams_;
  std::vector<profile::ServedRequest> requests_;
  profile::Likely likely_tokens_;  // from the warm-up's first answer
  std::vector<profile::ProbeCounts> before_;
  std::optional<load::Capacity> capacity_;
  std::vector<stats::Point> memory_;  // during a soak, by the clock's time
};

}  // namespace

Result<std::optional<RunRecord>> run_server(const Effects& effects, const std::string& folder,
                                            const ServerSlot& slot) {
  WEIR_TRY(auto records, run_on_one_server(effects, folder, std::span(&slot, 1), {}));
  if (records.empty()) return std::nullopt;
  return std::move(records.front());
}

// Runs the steps one after another on one server, until one fails, then ends the server. Returns
// the records of the steps that began.
Result<std::vector<RunRecord>> run_on_one_server(const Effects& effects, const std::string& folder,
                                                 std::span<const ServerSlot> slots,
                                                 const ServedEvents& events) {
  const ServerSlot& first_slot = slots.front();
  // The server must stay up for the later cells too; a soak among them takes its own time.
  double later_seconds = 0;
  for (const ServerSlot& slot : slots.subspan(1))
    later_seconds += longest_step_seconds(slot.cell->cell);
  ServerStart start(effects, folder, *first_slot.cell, *first_slot.step, first_slot.attempt,
                    later_seconds, static_cast<std::int64_t>(slots.size()));
  WEIR_CHECK(start.make_place());
  std::vector<std::unique_ptr<ServerStep>> steps;
  for (const ServerSlot& slot : slots) {
    if (!steps.empty() && (start.is_gone() || effects.stop.requested())) break;
    if (events.on_begin) events.on_begin(*slot.step);
    ServerStep& step = *steps.emplace_back(
        std::make_unique<ServerStep>(effects, start, *slot.cell, *slot.step, slot.attempt));
    if (slots.size() > 1) step.record().start = first_slot.step->order;
    if (!step.begin() || !step.warm_up() || !step.serve(slot.step->parameters.repeats) ||
        !step.report()) {
      break;
    }
    if (&slot != &slots.back() && events.on_measured) events.on_measured(step.record_so_far());
  }
  WEIR_CHECK(start.end());
  using Place = ServerStart::Place;
  std::vector<RunRecord> records;
  for (const auto& step : steps) {
    Place place = step == steps.back() ? Place::last_of_shared : Place::shared;
    if (slots.size() == 1) place = Place::alone;
    auto record = step->end(place);
    if (record) records.push_back(std::move(*record));
  }
  return records;
}

bool takes_turns(const PreparedCell& cell) {
  const config::ServerSettings* server = server_to_start(cell);
  return server != nullptr && server->blocks > 0 && !cell.cell.engine->exclusive &&
         only_address(cell).empty();
}

std::vector<std::int64_t> split_into_blocks(const PreparedCell& cell, std::int64_t requests) {
  const std::int64_t at_once =
      cell.cell.rate ? 1 : std::max<std::int64_t>(1, cell.cell.concurrency);
  const std::int64_t count =
      std::clamp<std::int64_t>(requests / at_once, 1, cell.cell.engine->server->blocks);
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < count; ++i) {
    sizes.push_back(requests * (i + 1) / count - requests * i / count);
  }
  return sizes;
}

namespace {

// Returns the slot, 0 or 1, of each turn of a pair: 0 1 1 0 0 1 1 0 … Each slot goes first equally
// often, so drift of the machine affects both alike.
std::vector<std::size_t> turn_order(std::size_t blocks) {
  std::vector<std::size_t> turns;
  for (std::size_t i = 0; i < blocks; ++i) {
    turns.push_back(i % 2);
    turns.push_back(1 - i % 2);
  }
  return turns;
}

// Returns why a pair compares nothing after what happened to the server that was stopped meanwhile;
// nullopt if nothing did. `side` is whose server that is.
std::optional<std::string> explain_outside_change(sys::StoppedTree::Change change,
                                                  profile::Side side) {
  const std::string_view stopped_owner =
      side == profile::Side::base ? "the base's" : "the candidate's";
  const std::string_view measured_owner =
      side == profile::Side::base ? "the candidate's" : "the base's";
  switch (change) {
    case sys::StoppedTree::Change::none:
      break;
    case sys::StoppedTree::Change::ran:
      return fmt::format(
          "{} server, or what it started, ran while {} was measured: weir stops it (SIGSTOP) in "
          "that time, and something woke it (SIGCONT)",
          stopped_owner, measured_owner);
    case sys::StoppedTree::Change::settings:
      return fmt::format(
          "the processors, priority or limits of {} server were changed from outside, while {} was "
          "measured",
          stopped_owner, measured_owner);
  }
  return std::nullopt;
}

// Returns true if the candidate's events may have slowed the base's server: those that counted
// while the candidate was stopped, or any if the base has none.
bool may_slow_base(const PerfEvents& candidate, const PerfEvents& base) {
  return (candidate.are_held && !base.are_held) || (candidate.have_counted && !base.have_counted);
}

// Runs both servers of a pair: starts and warms up both, then sends their blocks in turns. While
// one starts or has its turn, the other one is stopped: an idle server could keep the machine busy.
class ServerPair {
 public:
  ServerPair(const Effects& effects, std::span<const ServerSlot, 2> slots)
      : effects_(effects),
        slots_(slots),
        blocks_(split_into_blocks(*slots[0].cell, slots[0].step->parameters.repeats)),
        turns_(turn_order(blocks_.size())) {}

  // Runs the pair. If a server does not start at its first attempt, only its record is returned.
  Result<PairRecords> run(const std::string& folder) {
    for (const std::size_t slot : k_slots) WEIR_CHECK(make(folder, slot));
    for (const std::size_t slot : k_slots) {
      WEIR_CHECK(stop_all_but(slot));
      if (servers_.at(slot)->begin()) continue;
      WEIR_CHECK(end(slot));
      const auto& record = records_.at(slot);
      const bool retries =
          slots_[slot].attempt == 1 && record && record->ended == profile::Ended::not_started;
      if (!retries) continue;
      records_.at(1 - slot).reset();  // the other server may have ended already
      return records_;
    }
    for (const std::size_t slot : k_slots) {
      if (!servers_.at(slot)) continue;
      WEIR_CHECK(stop_all_but(slot));
      if (!servers_.at(slot)->warm_up()) WEIR_CHECK(end(slot));
    }
    WEIR_CHECK(serve());
    for (const auto& start : starts_) {
      if (start) start->set_stopped(false);
    }
    for (const std::size_t slot : k_slots) {
      if (servers_.at(slot) && is_serving_.at(slot)) (void)servers_.at(slot)->report();
    }
    check_stopped();
    for (const std::size_t slot : k_slots) {
      if (servers_.at(slot)) WEIR_CHECK(end(slot));
    }
    return effects_.stop.requested() ? PairRecords{} : std::move(records_);
  }

 private:
  static constexpr std::array<std::size_t, 2> k_slots{0, 1};

  // Creates the start and the step of a slot, and its place on disk.
  Result<void> make(const std::string& folder, std::size_t slot) {
    const ServerSlot& mine = slots_[slot];
    const double waits = slots_[1 - slot].cell->cell.engine->timeout_seconds;
    starts_.at(slot) = std::make_unique<ServerStart>(effects_, folder, *mine.cell, *mine.step,
                                                     mine.attempt, waits);
    ServerStart* start = starts_.at(slot).get();
    servers_.at(slot) =
        std::make_unique<ServerStep>(effects_, *start, *mine.cell, *mine.step, mine.attempt);
    ServerStep* server = servers_.at(slot).get();
    for (std::size_t turn = 0; turn < turns_.size(); ++turn) {
      if (turns_[turn] == slot) server->record().turns.push_back(static_cast<std::int64_t>(turn));
    }
    return start->make_place();
  }

  // Sends all blocks in turns. A server that failed is skipped; the other one goes on.
  Result<void> serve() {
    std::array<std::size_t, 2> served{};
    for (const std::size_t slot : turns_) {
      const std::size_t block = served.at(slot)++;
      if (!servers_.at(slot) || !is_serving_.at(slot)) continue;
      WEIR_CHECK(stop_all_but(slot));
      is_serving_.at(slot) =
          servers_.at(slot)->serve(blocks_[block], static_cast<std::int64_t>(block));
    }
    return {};
  }

  // Stops the other server, and lets this one go on. Undoes what the other one may have done to the
  // cache of files in its turn. Fails if it changed files of the base.
  Result<void> stop_all_but(std::size_t slot) {
    if (starts_.at(1 - slot)) starts_.at(1 - slot)->set_stopped(true);
    WEIR_CHECK(check_before_process(effects_));
    starts_.at(slot)->read_inputs();
    starts_.at(slot)->set_stopped(false);
    return {};
  }

  // Invalidates the candidate's step if a server was not left alone while it was stopped: such a
  // pair must not count against the base.
  void check_stopped() {
    const std::size_t candidate = slots_[0].step->side == profile::Side::candidate ? 0 : 1;
    const auto invalidate = [&](std::string why) {
      if (servers_.at(candidate)) servers_.at(candidate)->invalidate(std::move(why));
    };
    std::array<PerfEvents, 2> events;
    for (const std::size_t slot : k_slots) {
      if (!starts_.at(slot)) continue;
      events.at(slot) = starts_.at(slot)->perf_events_while_stopped();
      auto problem =
          explain_outside_change(starts_.at(slot)->change_while_stopped(), slots_[slot].step->side);
      if (problem) invalidate(std::move(*problem));
    }
    if (may_slow_base(events.at(candidate), events.at(1 - candidate))) {
      invalidate(
          "the candidate's server holds performance events (perf_event_open) that the base's does "
          "not, or that count the work of other processes: they can slow the base's server down "
          "while it is measured");
    }
  }

  // Ends the server of a slot and stores its record.
  Result<void> end(std::size_t slot) {
    WEIR_CHECK(starts_.at(slot)->end());
    records_.at(slot) = servers_.at(slot)->end(ServerStart::Place::alone);
    servers_.at(slot).reset();
    starts_.at(slot).reset();
    return {};
  }

  const Effects& effects_;
  std::span<const ServerSlot, 2> slots_;
  std::vector<std::int64_t> blocks_;
  std::vector<std::size_t> turns_;
  std::array<bool, 2> is_serving_{true, true};
  PairRecords records_;
  // The servers that have not ended.
  std::array<std::unique_ptr<ServerStart>, 2> starts_;
  std::array<std::unique_ptr<ServerStep>, 2> servers_;
};

}  // namespace

Result<PairRecords> run_server_pair(const Effects& effects, const std::string& folder,
                                    std::span<const ServerSlot, 2> slots) {
  return ServerPair(effects, slots).run(folder);
}

}  // namespace weir::run
