#include "gate/run/runner.hpp"

#include <deque>
#include <list>

#include "gate/run/engine_run.hpp"
#include "gate/run/schedule.hpp"
#include "gate/run/server_run.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

using profile::Ended;
using profile::Pass;
using profile::RunRecord;

// A step is done with its last attempt: the first one that did not start is tried once more.
bool is_last(const RunRecord& record) {
  return record.ended != Ended::not_started || record.attempt > 1;
}

std::vector<sys::LockWanted> locks_for(const PreparedCell& cell, bool alone) {
  std::vector<sys::LockWanted> wanted = {
      {"cpu", alone && cell.on_cpu ? sys::Share::exclusive : sys::Share::shared}};
  if (cell.cell.device != "cpu") {
    wanted.push_back({cell.cell.device, alone ? sys::Share::exclusive : sys::Share::shared});
  }
  return wanted;
}

using Sitting = std::vector<const Step*>;  // steps that share a start, or one step

// One call of Runner::run.
class Work {
 public:
  Work(const Effects& effects, std::int64_t cores, const Plan& plan, Journal& journal,
       Sequel* sequel)
      : effects_(effects),
        cores_(std::max<std::int64_t>(1, cores)),
        plan_(plan),
        journal_(journal),
        sequel_(sequel),
        steps_(plan.steps.begin(), plan.steps.end()),
        folder_(sys::absolute(journal.folder())),
        starts_(starts_of(plan)),
        tally_(plan, cores_),
        admission_(cores_),
        next_attempt_(plan.steps.size(), 1),
        done_(plan.steps.size(), false) {
    for (const Step& step : journal.added_earlier()) add(step);
  }

  Result<std::vector<RunRecord>> run() {
    // What a run that was killed has left; the journal's lock says that nobody else is in there.
    (void)effects_.files.remove_tree(sys::join_path(folder_, "tmp"));
    go_on_from(journal_.earlier());
    count();
    time();
    while (sequel_ != nullptr && !stopped()) {
      const Result<bool> more = go_on();
      if (!more) problem_ = more.error();
      if (!more.value_or(false)) break;
      count();
      time();
    }
    if (!problem_ && effects_.stop.requested()) interrupted();
    effects_.progress.finish();
    (void)effects_.files.remove_tree(sys::join_path(folder_, "tmp"));
    if (problem_) return tl::unexpected(std::move(*problem_));
    std::ranges::sort(records_, {},
                      [](const RunRecord& one) { return std::pair(one.order, one.attempt); });
    return std::move(records_);
  }

 private:
  void add(const Step& step) {
    starts_.push_back(steps_.size());  // pairs, and what else was added, share none
    steps_.push_back(step);
    tally_.add(step);
    next_attempt_.push_back(1);
    done_.push_back(false);
  }

  // Asks what comes next and writes it down. False when the run is over.
  Result<bool> go_on() {
    const std::span<const RunRecord> all(records_);
    WEIR_TRY(auto next, sequel_->next(all.subspan(told_)));
    told_ = records_.size();
    WEIR_CHECK(add_all(next.steps));
    if (next.steps.empty()) return false;
    seconds_left_ = next.seconds_left;
    return true;
  }

  // Writes down what the plan did not have, and adds it.
  Result<void> add_all(std::vector<Step>& steps) {
    auto order = static_cast<std::int64_t>(steps_.size());
    for (Step& step : steps) step.order = order++;
    WEIR_CHECK(journal_.declare(steps));
    for (const Step& step : steps) add(step);
    return {};
  }

  void go_on_from(const std::vector<RunRecord>& earlier) {
    std::set<std::int64_t> ended;
    for (const RunRecord& record : earlier) {
      if (is_last(record)) ended.insert(record.order);
    }
    for (const RunRecord& record : earlier) {
      const auto order = static_cast<std::size_t>(record.order);
      if (order >= done_.size()) continue;
      // A pair that was cut between its records is measured again as a whole, beside each other:
      // of one order and attempt the journal's reader takes the later record.
      const Step* other = record.pair.value_or(0) > 0 ? other_side(steps_[order]) : nullptr;
      if (other != nullptr && !ended.contains(other->order)) {
        next_attempt_[order] = record.attempt;
        continue;
      }
      records_.push_back(record);
      next_attempt_[order] = record.attempt + 1;
      if (!is_last(record) || done_[order]) continue;
      done_[order] = true;
      tally_.note(steps_[order], record);
    }
  }

  [[nodiscard]] bool stopped() const { return problem_ || effects_.stop.requested(); }
  [[nodiscard]] bool wanted(const Step& step) const {
    return !done_[static_cast<std::size_t>(step.order)] && !tally_.given_up(step);
  }

  // Those steps of a pass that are to be run, together where they share a start.
  [[nodiscard]] std::list<Sitting> sittings(Pass pass) const {
    std::list<Sitting> all;
    std::map<std::size_t, Sitting*> by_start;
    for (const Step& step : steps_) {
      if (step.pass != pass || !wanted(step)) continue;
      Sitting*& sitting = by_start[starts_[static_cast<std::size_t>(step.order)]];
      if (sitting == nullptr) sitting = &all.emplace_back();
      sitting->push_back(&step);
    }
    return all;
  }

  void count() {
    count_once();
    while (!stopped()) {
      auto more = runs_of_unheld();
      if (more.empty()) return;
      if (auto written = add_all(more); !written) return give_up(std::move(written).error());
      count_once();
    }
  }

  // A server that nothing held back is counted as often as those whose requests meet as it happens.
  std::vector<Step> runs_of_unheld() {
    std::vector<Step> more;
    const auto key = [](const Step& step) { return std::pair(step.cell, step.side); };
    const auto counts = [](const Step& step) {
      return step.pass == Pass::counted && !step.bare() && step.twin_fill == 0;
    };
    for (const RunRecord& record : records_) {
      const Step& step = steps_[static_cast<std::size_t>(record.order)];
      if (!counts(step) || record.error || record.held ||
          plan_.cell_of(step).cell.sweep != profile::Sweep::held ||
          !unheld_.insert(key(step)).second) {
        continue;
      }
      const auto there = std::ranges::count_if(
          steps_, [&](const Step& one) { return counts(one) && key(one) == key(step); });
      for (auto i = there; i < plan_.overlapping_processes; ++i) more.push_back(step);
    }
    return more;
  }

  void count_once() {
    pending_ = sittings(Pass::counted);
    const auto workers = std::min<std::size_t>(static_cast<std::size_t>(cores_), pending_.size());
    std::vector<std::thread> threads;
    // The last of them is this thread.
    for (std::size_t i = 1; i < workers; ++i) threads.emplace_back([this] { count_some(); });
    if (workers > 0) count_some();
    for (std::thread& thread : threads) thread.join();
  }

  void count_some() {
    std::unique_lock hold(mutex_);
    while (!stopped()) {
      const Sitting sitting = take_startable();
      if (sitting.empty()) {
        if (pending_.empty()) return;
        // Something runs (alone, anything is admitted); its end tells. A stop does too: it ends
        // whatever runs.
        changed_.wait(hold);
        continue;
      }
      const PreparedCell& cell = plan_.cell_of(*sitting.front());
      admission_.started(cell, counts_alone(sitting));
      show(*sitting.front());
      hold.unlock();
      const auto peak = carry_out(sitting);
      hold.lock();
      admission_.ended(cell, peak);
      changed_.notify_all();
    }
    changed_.notify_all();
  }

  // None where nothing may start now. REQUIRES: mutex_ is held.
  Sitting take_startable() {
    for (Sitting& sitting : pending_) leave_unwanted(sitting);
    pending_.remove_if([](const Sitting& sitting) { return sitting.empty(); });
    if (pending_.empty()) return {};
    const auto available = effects_.load.memory_available();
    for (auto place = pending_.begin(); place != pending_.end(); ++place) {
      if (!admission_.admits(plan_.cell_of(*place->front()), available, counts_alone(*place)))
        continue;
      Sitting sitting = std::move(*place);
      pending_.erase(place);
      return sitting;
    }
    return {};
  }

  [[nodiscard]] bool counts_alone(const Sitting& sitting) const {
    return std::ranges::any_of(sitting, [this](const Step* step) {
      return run::counts_alone(plan_.cell_of(*step)) || unheld_.contains({step->cell, step->side});
    });
  }

  void leave_unwanted(Sitting& sitting) const {
    std::erase_if(sitting, [this](const Step* step) { return !wanted(*step); });
  }

  void time() {
    for (Sitting& sitting : sittings(Pass::timed)) {
      if (stopped()) break;
      leave_unwanted(sitting);
      if (sitting.empty()) continue;
      const Step& step = *sitting.front();
      show(step);
      if (const Step* other = beside(step)) {
        carry_out_pair(std::min(step.order, other->order), std::max(step.order, other->order));
      } else {
        (void)carry_out(sitting);
      }
    }
  }

  // The other side's step of the same pair, where both servers are up at the same time.
  [[nodiscard]] const Step* other_side(const Step& step) const {
    if (!step.pair || !serves_in_turns(plan_.cells[step.cell])) return nullptr;
    for (const std::int64_t order : {step.order + 1, step.order - 1}) {
      if (order < 0 || order >= static_cast<std::int64_t>(steps_.size())) continue;
      const Step& other = steps_[static_cast<std::size_t>(order)];
      if (other.cell == step.cell && other.pair == step.pair && other.side != step.side) {
        return &other;
      }
    }
    return nullptr;
  }

  // A warm-up that failed runs again by itself.
  [[nodiscard]] const Step* beside(const Step& step) const {
    const Step* other = other_side(step);
    return other != nullptr && wanted(*other) ? other : nullptr;
  }

  void carry_out_pair(std::int64_t first, std::int64_t second) {
    const std::array<const Step*, 2> steps{&steps_[static_cast<std::size_t>(first)],
                                           &steps_[static_cast<std::size_t>(second)]};
    std::array<ServerSlot, 2> slots;
    std::int64_t attempt = 1;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      const Step& step = *steps.at(slot);
      slots.at(slot) = {&plan_.cell_of(step), &step, 1};
      const auto next = next_attempt_[static_cast<std::size_t>(step.order)];
      if (wanted(step)) attempt = std::max(attempt, next);
    }
    auto held = acquire(*slots[0].cell, true);
    for (bool again = held.has_value(); again && !stopped(); ++attempt) {
      for (ServerSlot& slot : slots) slot.attempt = attempt;
      auto records = run_server_pair(effects_, folder_, slots);
      if (!records) return give_up(std::move(records).error());
      again = false;
      for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        auto& record = records->at(slot);
        if (!record || !wanted(*steps.at(slot))) continue;
        again = again || !is_last(*record);
        if (!keep(*steps.at(slot), std::move(*record))) return;
      }
    }
  }

  // Nothing where they were not to be had, which ends the run.
  std::optional<std::unique_ptr<sys::Held>> acquire(const PreparedCell& cell, bool alone) {
    auto held =
        effects_.locks.acquire(locks_for(cell, alone), effects_.stop,
                               [this](const std::string& line) { effects_.progress.say(line); });
    if (held) return std::move(*held);
    give_up(std::move(held).error());
    return std::nullopt;
  }

  // Runs what shares a start, each step once more if it did not start. Answers its peak memory.
  std::optional<std::int64_t> carry_out(Sitting sitting) {
    const bool alone = sitting.front()->pass == Pass::timed || counts_alone(sitting);
    const auto held = acquire(plan_.cell_of(*sitting.front()), alone);
    if (!held) return std::nullopt;
    std::optional<std::int64_t> peak;
    while (!sitting.empty()) {
      auto records = run(sitting);
      if (!records) {
        give_up(std::move(records).error());
        return std::nullopt;
      }
      if (records->empty()) return std::nullopt;  // stopped
      for (std::size_t i = 0; i < records->size(); ++i) {
        RunRecord& record = (*records)[i];
        const Step& step = *sitting[i];
        if (record.peak_rss_bytes) peak = std::max(peak.value_or(0), *record.peak_rss_bytes);
        if (!is_last(record)) ++next_attempt_[static_cast<std::size_t>(step.order)];
        if (!keep(step, std::move(record))) return peak;
      }
      if (effects_.stop.requested()) return peak;
      const std::lock_guard hold(mutex_);
      leave_unwanted(sitting);
    }
    return peak;
  }

  // One process: one record, or as many as one start of a server served.
  Result<std::vector<RunRecord>> run(const Sitting& sitting) {
    const Step& step = *sitting.front();
    const auto attempt = [this](const Step& of) {
      return next_attempt_[static_cast<std::size_t>(of.order)];
    };
    if (sitting.size() == 1) {
      WEIR_TRY(auto record,
               run_engine(effects_, folder_, plan_.cell_of(step), step, attempt(step)));
      std::vector<RunRecord> one;
      if (record) one.push_back(std::move(*record));
      return one;
    }
    std::vector<ServerSlot> slots;
    for (const Step* each : sitting) {
      slots.push_back({&plan_.cell_of(*each), each, attempt(*each)});
    }
    ServedSoFar told;
    told.begins = [this](const Step& begun) {
      const std::lock_guard hold(mutex_);
      show(begun);
    };
    // It counts once its server has ended, when all is known of it: a record of the same order and
    // attempt takes its place then.
    told.whole = [this](const RunRecord& record) {
      if (auto written = journal_.append(record); !written) give_up(std::move(written).error());
    };
    return run_on_one_server(effects_, folder_, slots, told);
  }

  // Writes the record down, then lets it count. False when it could not be written.
  bool keep(const Step& step, RunRecord record) {
    const std::lock_guard hold(mutex_);
    const bool last = is_last(record);
    if (last && !tally_.given_up(step) && tally_.would_give_up(step, record)) {
      const std::int64_t others = tally_.open(step) - 1;
      if (others > 0) {
        record.warnings.push_back(
            fmt::format("{} more {} {} of this cell left out: {}", others, to_string(record.pass),
                        others == 1 ? "run" : "runs",
                        record.ended == Ended::timed_out ? "this one timed out" : "two failed"));
      }
    }
    if (auto written = journal_.append(record); !written) {
      if (!problem_) problem_ = written.error();
      return false;
    }
    if (last) {
      done_[static_cast<std::size_t>(step.order)] = true;
      tally_.note(step, record);
      if (record.error) {
        effects_.progress.say(
            fmt::format("{}  {}: {}", record.cell, to_string(record.pass), *record.error));
      }
    }
    records_.push_back(std::move(record));
    return true;
  }

  void give_up(Error error) {
    const std::lock_guard hold(mutex_);
    // A stop is told at the end, with how far it has come.
    if (!problem_ && error.code != Code::interrupted) problem_ = std::move(error);
  }

  void interrupted() {
    const std::int64_t done = tally_.done(Pass::counted) + tally_.done(Pass::timed);
    problem_ =
        Error{Code::interrupted,
              fmt::format("interrupted after {} of {} engine runs; what was measured is in {}",
                          done, steps_.size(), journal_.folder())};
  }

  void show(const Step& step) {
    ProgressState state;
    state.pass = step.pass;
    state.done = tally_.done(step.pass);
    state.total = tally_.total(step.pass);
    state.cell = plan_.cells[step.cell].cell.key.str();
    state.seconds_left = step.pair ? seconds_left_ : tally_.seconds_left();
    state.pair = step.pair;
    effects_.progress.show(state);
  }

  Effects effects_;
  std::int64_t cores_;
  const Plan& plan_;
  Journal& journal_;
  Sequel* sequel_;
  std::deque<Step> steps_;  // by order; those of the plan, then those added
  std::string folder_;
  std::vector<std::size_t> starts_;  // by order, as starts_of()
  std::mutex mutex_;                 // all below while counted steps run
  std::condition_variable changed_;
  Tally tally_;
  Admission admission_;
  std::list<Sitting> pending_;
  std::set<std::pair<std::size_t, profile::Side>> unheld_;  // cells that nothing could hold back
  std::vector<std::int64_t> next_attempt_;                  // by order
  std::vector<bool> done_;                                  // by order
  std::vector<RunRecord> records_;
  std::size_t told_ = 0;  // of records_, to the sequel
  std::optional<double> seconds_left_;
  std::optional<Error> problem_;
};

}  // namespace

Result<std::vector<RunRecord>> Runner::run(const Plan& plan, Journal& journal, Sequel* sequel) {
  return Work(effects_, cores_, plan, journal, sequel).run();
}

}  // namespace weir::run
