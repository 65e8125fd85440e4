// Carries out a plan: the threads, locks, retries and progress of its steps.
#include "gate/run/runner.hpp"

#include <deque>
#include <list>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/run/engine_run.hpp"
#include "gate/run/schedule.hpp"
#include "gate/run/server_run.hpp"
#include "gate/sys/code_file.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

using profile::Ended;
using profile::Pass;
using profile::RunRecord;

// Returns true if `record` completes its step. A first attempt that did not start is retried once.
bool is_last(const RunRecord& record) {
  return record.ended != Ended::not_started || record.attempt > 1;
}

// Returns the locks that a process of the cell needs. `alone`: nothing may run beside it.
std::vector<sys::LockWanted> locks_for(const PreparedCell& cell, bool alone) {
  std::vector<sys::LockWanted> locks = {
      {"cpu", alone && cell.on_cpu ? sys::Share::exclusive : sys::Share::shared}};
  if (cell.cell.device != "cpu") {
    locks.push_back({cell.cell.device, alone ? sys::Share::exclusive : sys::Share::shared});
  }
  return locks;
}

// A file of code that a cell's command names, with its stamp at the start of the run.
struct CodeFile {
  std::string word, path, stamp;
};

// Returns true for a script or a program that another starts. Libraries and compiled kernels may be
// what an engine writes.
bool may_be_started(const std::string& path, const sys::Files& files) {
  constexpr std::string_view k_scripts[] = {"bash", "cjs", "jl", "js", "lua", "mjs",
                                            "pl",   "py",  "rb", "sh", "ts"};
  const std::string name = sys::file_name_of(path);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos) return holds(k_scripts, std::string_view(name).substr(dot + 1));
  return sys::is_program(files, path);
}

// Returns the cell's program, and the scripts and programs that its command names.
std::vector<CodeFile> find_code(const PreparedCell& cell, const sys::Files& files) {
  std::vector<CodeFile> code;
  for (const std::string& word : cell.cell.command) {
    const bool is_first = &word == &cell.cell.command.front();
    std::string path = is_first ? cell.program : sys::join_path(cell.folder, word);
    if (files.kind(path) != sys::Kind::file) continue;
    if (!is_first && !may_be_started(path, files)) continue;
    code.push_back({word, path, files.stamp(path).value_or("")});
  }
  return code;
}

using SharedSteps = std::vector<const Step*>;  // steps that share a start, or a single step

// The state of one call of Runner::run().
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
        starts_(group_starts(plan)),
        tally_(plan, cores_),
        admission_(cores_),
        next_attempt_(plan.steps.size(), 1),
        done_(plan.steps.size(), false) {
    for (const Step& step : journal.added_earlier()) add(step);
  }

  // Runs every step that has no record yet, then what the sequel adds. Returns all records, sorted
  // by order and attempt.
  Result<std::vector<RunRecord>> run() {
    // A killed run may have left files here; the journal's lock says that nobody else uses them.
    (void)effects_.files.remove_tree(sys::join_path(folder_, "tmp"));
    for (const PreparedCell& cell : plan_.cells) code_.push_back(find_code(cell, effects_.files));
    for (const PreparedCell& cell : plan_.base_cells)
      code_.push_back(find_code(cell, effects_.files));
    resume_from(journal_.earlier());
    run_counted();
    run_timed();
    while (sequel_ != nullptr && !is_stopped()) {
      const Result<bool> more = add_next_steps();
      if (!more) problem_ = more.error();
      if (!more.value_or(false)) break;
      run_counted();
      run_timed();
    }
    if (!problem_ && effects_.stop.requested()) report_interruption();
    effects_.progress.finish();
    (void)effects_.files.remove_tree(sys::join_path(folder_, "tmp"));
    if (problem_) return tl::unexpected(std::move(*problem_));
    std::ranges::sort(records_, {}, [](const RunRecord& record) {
      return std::pair(record.order, record.attempt);
    });
    return std::move(records_);
  }

 private:
  void add(const Step& step) {
    starts_.push_back(steps_.size());  // added steps share no start
    steps_.push_back(step);
    tally_.add(step);
    next_attempt_.push_back(1);
    done_.push_back(false);
  }

  // Asks the sequel for more steps and adds them. Returns false when the run is over.
  Result<bool> add_next_steps() {
    const std::span<const RunRecord> all(records_);
    WEIR_TRY(auto next, sequel_->next(all.subspan(reported_)));
    reported_ = records_.size();
    WEIR_CHECK(declare_and_add(next.steps));
    if (next.steps.empty()) return false;
    seconds_left_ = next.seconds_left;
    return true;
  }

  // Numbers steps that the plan did not have, writes them to the journal and adds them.
  Result<void> declare_and_add(std::vector<Step>& steps) {
    auto order = static_cast<std::int64_t>(steps_.size());
    for (Step& step : steps) {
      step.order = order;
      ++order;
    }
    WEIR_CHECK(journal_.declare(steps));
    for (const Step& step : steps) add(step);
    return {};
  }

  // Takes over the records of an interrupted run, so that their steps are not run again.
  void resume_from(const std::vector<RunRecord>& earlier) {
    std::set<std::int64_t> ended_orders;
    for (const RunRecord& record : earlier) {
      if (is_last(record)) ended_orders.insert(record.order);
    }
    for (const RunRecord& record : earlier) {
      const auto order = static_cast<std::size_t>(record.order);
      if (order >= done_.size()) continue;
      // If only one process of a pair has ended, both are measured again, to run at the same time.
      // The journal's reader keeps the later record of the same order and attempt.
      const Step* partner = record.pair.value_or(0) > 0 ? other_step(steps_[order]) : nullptr;
      if (partner != nullptr && !ended_orders.contains(partner->order)) {
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

  [[nodiscard]] bool is_stopped() const { return problem_ || effects_.stop.requested(); }
  [[nodiscard]] bool is_wanted(const Step& step) const {
    return !done_[static_cast<std::size_t>(step.order)] && !tally_.given_up(step);
  }

  // Returns the steps of a pass that are still to run, grouped by the start they share.
  [[nodiscard]] std::list<SharedSteps> wanted_steps(Pass pass) const {
    std::list<SharedSteps> groups;
    std::map<std::size_t, SharedSteps*> by_start;
    for (const Step& step : steps_) {
      if (step.pass != pass || !is_wanted(step)) continue;
      SharedSteps*& shared = by_start[starts_[static_cast<std::size_t>(step.order)]];
      if (shared == nullptr) shared = &groups.emplace_back();
      shared->push_back(&step);
    }
    return groups;
  }

  void run_counted() {
    run_pending_counted();
    while (!is_stopped()) {
      auto added = steps_for_unheld();
      if (added.empty()) return;
      if (auto written = declare_and_add(added); !written)
        return set_problem(std::move(written).error());
      run_pending_counted();
    }
  }

  // Returns more counted steps for cells whose requests no probe could hold back. They are run as
  // often as cells whose requests overlap by plan.
  std::vector<Step> steps_for_unheld() {
    std::vector<Step> more;
    const auto key = [](const Step& step) { return std::pair(step.cell, step.side); };
    const auto counts = [](const Step& step) {
      return step.pass == Pass::counted && !step.is_counted_apart() && step.twin_fill == 0;
    };
    for (const RunRecord& record : records_) {
      const Step& step = steps_[static_cast<std::size_t>(record.order)];
      if (!counts(step) || record.error || record.held ||
          plan_.cell_of(step).cell.sweep != profile::Sweep::burst ||
          !unheld_cells_.insert(key(step)).second) {
        continue;
      }
      const auto planned = std::ranges::count_if(
          steps_, [&](const Step& other) { return counts(other) && key(other) == key(step); });
      for (auto i = planned; i < plan_.overlapping_processes; ++i) more.push_back(step);
    }
    return more;
  }

  void run_pending_counted() {
    pending_ = wanted_steps(Pass::counted);
    const auto workers = std::min<std::size_t>(static_cast<std::size_t>(cores_), pending_.size());
    std::vector<std::thread> threads;
    // The last of them is this thread.
    for (std::size_t i = 1; i < workers; ++i) threads.emplace_back([this] { count_until_done(); });
    if (workers > 0) count_until_done();
    for (std::thread& thread : threads) thread.join();
  }

  // Runs counted steps until none is pending; several threads do so side by side.
  void count_until_done() {
    std::unique_lock hold(mutex_);
    while (!is_stopped()) {
      const SharedSteps shared = pop_admitted();
      if (shared.empty()) {
        if (pending_.empty()) return;
        // Something still runs, because an idle machine admits anything. We are woken when it ends;
        // a stop ends it too.
        changed_.wait(hold);
        continue;
      }
      const PreparedCell& cell = plan_.cell_of(*shared.front());
      admission_.started(cell, counts_alone(shared));
      show(*shared.front());
      hold.unlock();
      const auto peak = run_shared(shared);
      hold.lock();
      admission_.ended(cell, peak);
      changed_.notify_all();
    }
    changed_.notify_all();
  }

  // Removes and returns the first steps that may start now, or none. REQUIRES: mutex_ is held.
  SharedSteps pop_admitted() {
    for (SharedSteps& shared : pending_) drop_unwanted(shared);
    pending_.remove_if([](const SharedSteps& shared) { return shared.empty(); });
    if (pending_.empty()) return {};
    const auto available = effects_.load.memory_available();
    for (auto place = pending_.begin(); place != pending_.end(); ++place) {
      if (!admission_.admits(plan_.cell_of(*place->front()), available, counts_alone(*place)))
        continue;
      SharedSteps shared = std::move(*place);
      pending_.erase(place);
      return shared;
    }
    return {};
  }

  [[nodiscard]] bool counts_alone(const SharedSteps& shared) const {
    return std::ranges::any_of(shared, [this](const Step* step) {
      return run::counts_alone(plan_.cell_of(*step)) ||
             unheld_cells_.contains({step->cell, step->side});
    });
  }

  // Removes the steps that have a record or are given up.
  void drop_unwanted(SharedSteps& shared) const {
    std::erase_if(shared, [this](const Step* step) { return !is_wanted(*step); });
  }

  // Runs the timed steps, one at a time.
  void run_timed() {
    for (SharedSteps& shared : wanted_steps(Pass::timed)) {
      if (is_stopped()) break;
      drop_unwanted(shared);
      if (shared.empty()) continue;
      const Step& step = *shared.front();
      show(step);
      if (const Step* partner = pair_partner(step)) {
        run_pair(std::min(step.order, partner->order), std::max(step.order, partner->order));
      } else {
        (void)run_shared(shared);
      }
    }
  }

  // Returns the step of the other side of the same pair if both servers are up at the same time,
  // else null.
  [[nodiscard]] const Step* other_step(const Step& step) const {
    if (!step.pair || !takes_turns(plan_.cells[step.cell])) return nullptr;
    for (const std::int64_t order : {step.order + 1, step.order - 1}) {
      if (order < 0 || order >= static_cast<std::int64_t>(steps_.size())) continue;
      const Step& other = steps_[static_cast<std::size_t>(order)];
      if (other.cell == step.cell && other.pair == step.pair && other.side != step.side) {
        return &other;
      }
    }
    return nullptr;
  }

  // Returns the other step of the pair if it still has to run; a warm-up is retried by itself.
  [[nodiscard]] const Step* pair_partner(const Step& step) const {
    const Step* other = other_step(step);
    return other != nullptr && is_wanted(*other) ? other : nullptr;
  }

  // Runs both servers of a pair at the same time, and once more if one did not start.
  void run_pair(std::int64_t first, std::int64_t second) {
    const std::array<const Step*, 2> steps{&steps_[static_cast<std::size_t>(first)],
                                           &steps_[static_cast<std::size_t>(second)]};
    std::array<ServerSlot, 2> slots;
    std::int64_t attempt = 1;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      const Step& step = *steps.at(slot);
      slots.at(slot) = {&plan_.cell_of(step), &step, 1};
      const auto next = next_attempt_[static_cast<std::size_t>(step.order)];
      if (is_wanted(step)) attempt = std::max(attempt, next);
    }
    auto lock = acquire(*slots[0].cell, /*alone=*/true);
    for (bool again = lock.has_value(); again && !is_stopped(); ++attempt) {
      for (ServerSlot& slot : slots) slot.attempt = attempt;
      auto records = run_server_pair(effects_, folder_, slots);
      if (!records) return set_problem(std::move(records).error());
      again = false;
      for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        auto& record = records->at(slot);
        if (!record || !is_wanted(*steps.at(slot))) continue;
        again = again || !is_last(*record);
        if (!store(*steps.at(slot), std::move(*record))) return;
      }
    }
  }

  // Takes the locks for a process of the cell. Returns nothing, and ends the run, if that fails.
  std::optional<std::unique_ptr<sys::Held>> acquire(const PreparedCell& cell, bool alone) {
    auto lock =
        effects_.locks.acquire(locks_for(cell, alone), effects_.stop,
                               [this](const std::string& line) { effects_.progress.say(line); });
    if (lock) return std::move(*lock);
    set_problem(std::move(lock).error());
    return std::nullopt;
  }

  // Runs steps that share a start, each once more if it did not start. Returns their peak memory in
  // bytes.
  std::optional<std::int64_t> run_shared(SharedSteps shared) {
    const bool alone = shared.front()->pass == Pass::timed || counts_alone(shared);
    const auto lock = acquire(plan_.cell_of(*shared.front()), alone);
    if (!lock) return std::nullopt;
    std::optional<std::int64_t> peak;
    while (!shared.empty()) {
      auto records = run(shared);
      if (!records) {
        set_problem(std::move(records).error());
        return std::nullopt;
      }
      if (records->empty()) return std::nullopt;  // weir was stopped
      for (std::size_t i = 0; i < records->size(); ++i) {
        RunRecord& record = (*records)[i];
        const Step& step = *shared[i];
        if (record.peak_rss_bytes) peak = std::max(peak.value_or(0), *record.peak_rss_bytes);
        if (!is_last(record)) ++next_attempt_[static_cast<std::size_t>(step.order)];
        if (!store(step, std::move(record))) return peak;
      }
      if (effects_.stop.requested()) return peak;
      const std::lock_guard hold(mutex_);
      drop_unwanted(shared);
    }
    return peak;
  }

  // Runs one process. Returns one record, or one for each step that a shared server served.
  Result<std::vector<RunRecord>> run(const SharedSteps& shared) {
    const Step& step = *shared.front();
    const auto attempt = [this](const Step& each) {
      return next_attempt_[static_cast<std::size_t>(each.order)];
    };
    if (shared.size() == 1) {
      WEIR_TRY(auto record,
               run_engine(effects_, folder_, plan_.cell_of(step), step, attempt(step)));
      std::vector<RunRecord> records;
      if (record) records.push_back(std::move(*record));
      return records;
    }
    std::vector<ServerSlot> slots;
    for (const Step* member : shared) {
      slots.push_back({&plan_.cell_of(*member), member, attempt(*member)});
    }
    ServedEvents events;
    events.on_begin = [this](const Step& begun) {
      const std::lock_guard hold(mutex_);
      show(begun);
    };
    // The step is done only when its server has ended. A record of the same order and attempt
    // replaces this one then.
    events.on_measured = [this](const RunRecord& record) {
      if (auto written = journal_.append(record); !written) set_problem(std::move(written).error());
    };
    return run_on_one_server(effects_, folder_, slots, events);
  }

  // Returns an error if a file of code of the step's cell is not what it was at the start.
  [[nodiscard]] std::optional<std::string> describe_changed_code(const Step& step) const {
    const std::size_t place =
        step.cell + (step.side == profile::Side::base ? plan_.cells.size() : 0);
    for (const CodeFile& file : code_[place]) {
      if (effects_.files.stamp(file.path).value_or("") == file.stamp) continue;
      return fmt::format("{} was changed while it was measured: run it again",
                         text::printable(file.word));
    }
    return std::nullopt;
  }

  // Writes the record to the journal, then counts it. Returns false if it could not be written.
  bool store(const Step& step, RunRecord record) {
    const std::lock_guard hold(mutex_);
    const bool last = is_last(record);
    if (!record.error) record.error = describe_changed_code(step);
    if (last && !tally_.given_up(step) && tally_.would_give_up(step, record)) {
      const std::int64_t others = tally_.open(step) - 1;
      // Some of them may run already, side by side.
      if (others > 0) {
        record.warnings.push_back(
            fmt::format("no further {} process of this cell is started: {}", to_string(record.pass),
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

  void set_problem(Error error) {
    const std::lock_guard hold(mutex_);
    // A stop is reported at the end, with the number of runs done.
    if (!problem_ && error.code != Code::interrupted) problem_ = std::move(error);
  }

  // Sets the problem of a run that was stopped, with the number of runs done.
  void report_interruption() {
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
  std::vector<std::vector<CodeFile>> code_;  // of the plan's cells, then of its base_cells
  std::deque<Step> steps_;                   // by order; those of the plan, then those added
  std::string folder_;
  std::vector<std::size_t> starts_;  // by order, as starts_of()
  std::mutex mutex_;                 // guards all below while counted steps run
  std::condition_variable changed_;
  Tally tally_;
  Admission admission_;
  std::list<SharedSteps> pending_;
  std::set<std::pair<std::size_t, profile::Side>>
      unheld_cells_;                        // no probe could hold their requests back
  std::vector<std::int64_t> next_attempt_;  // by order
  std::vector<bool> done_;                  // by order
  std::vector<RunRecord> records_;
  std::size_t reported_ = 0;  // number of records_ that the sequel has seen
  std::optional<double> seconds_left_;
  std::optional<Error> problem_;
};

}  // namespace

Result<std::vector<RunRecord>> Runner::run(const Plan& plan, Journal& journal, Sequel* sequel) {
  return Work(effects_, cores_, plan, journal, sequel).run();
}

}  // namespace weir::run
