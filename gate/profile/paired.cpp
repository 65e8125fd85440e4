#include "gate/profile/paired.hpp"

#include "gate/base/find.hpp"
#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace {

constexpr std::size_t k_most_crashes = 2;   // of one side
constexpr std::size_t k_most_timeouts = 3;  // of one side, none of the other
constexpr std::size_t k_most_timeouts_in_all = 6;

struct Two {
  const RunRecord* base = nullptr;
  const RunRecord* candidate = nullptr;
  [[nodiscard]] bool whole() const { return base != nullptr && candidate != nullptr; }
};

struct Failures {
  Records crashes, timeouts;
};

std::string_view program(Side side) {
  return side == Side::base ? "the base program" : "the candidate";
}

using BySide = std::map<Side, Failures>;

void note_failure(const RunRecord& record, BySide& failures, PairedRuns& runs) {
  const auto error = error_of(record);
  if (!error) return;
  Failures& mine = failures[record.side];
  (record.ended == Ended::timed_out ? mine.timeouts : mine.crashes).push_back(&record);
  add_once(runs.warnings,
           fmt::format("{} counts as infinitely slow: {} {}",
                       *record.pair == 0 ? "a warm-up" : fmt::format("pair {}", *record.pair),
                       program(record.side), *error));
}

void set_error(PairedRuns& runs, std::string_view how, const RunRecord& record) {
  runs.error = fmt::format("timed: {}: {}", how, error_of(record).value_or(""));
  runs.stderr_tail = record.stderr_tail;
}

void judge_failures(BySide& failures, PairedRuns& runs) {
  for (const Side side : {Side::base, Side::candidate}) {
    const Side beside = side == Side::base ? Side::candidate : Side::base;
    const Failures &mine = failures[side], &other = failures[beside];
    if (mine.crashes.size() >= k_most_crashes) {
      return set_error(
          runs, fmt::format("{} failed in {} of its processes", program(side), mine.crashes.size()),
          *mine.crashes.back());
    }
    if (mine.timeouts.size() >= k_most_timeouts && other.timeouts.empty()) {
      return set_error(runs,
                       fmt::format("{} timed out {} times, {} never", program(side),
                                   mine.timeouts.size(), program(beside)),
                       *mine.timeouts.back());
    }
  }
  // None of one side alone: that would be three.
  const Records &candidate = failures[Side::candidate].timeouts,
                &base = failures[Side::base].timeouts;
  if (candidate.size() + base.size() >= k_most_timeouts_in_all) {
    set_error(
        runs,
        fmt::format("both programs time out ({} and {} times)", candidate.size(), base.size()),
        *candidate.back());
  }
}

using Numbers = std::map<std::string, ProcessNumber>;

Numbers numbers_of(const CellFacts& facts, const RunRecord* record) {
  Numbers numbers;
  if (record == nullptr || error_of(*record)) return numbers;
  for (ProcessNumber& number : process_numbers(*record, facts.times_source)) {
    numbers.emplace(number.metric.name, std::move(number));
  }
  return numbers;
}

std::optional<double> find(const Numbers& numbers, const std::string& name) {
  const ProcessNumber* found = look_up(numbers, name);
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

double tokens_asked(const RunRecord& record) {
  const Asked& asked = record.asked;
  const std::int64_t tokens = asked.tokens > 0 ? asked.tokens : asked.prompt_tokens;
  return static_cast<double>(std::max<std::int64_t>(1, tokens * asked.repeats));
}

NumberPair pair_of(const Two& two, const Numbers& base, const Numbers& candidate,
                   const std::string& name) {
  return {find(base, name), find(candidate, name), two.base->order < two.candidate->order};
}

}  // namespace

double wall_seconds_of(std::span<const RunRecord* const> records) {
  double sum = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<double, double>> beside;
  for (const RunRecord* record : records) {
    if (record->turns.empty()) {
      sum += record->wall_seconds;
      continue;
    }
    const double end = record->started_at + record->wall_seconds;
    const auto [span, first] =
        beside.try_emplace({record->pair.value_or(0), record->attempt}, record->started_at, end);
    if (first) continue;
    // One that was kept by an earlier, killed run was not up beside this one.
    if (record->started_at > span->second.second || end < span->second.first) {
      sum += record->wall_seconds;
      continue;
    }
    span->second.first = std::min(span->second.first, record->started_at);
    span->second.second = std::max(span->second.second, end);
  }
  for (const auto& [pair, span] : beside) sum += span.second - span.first;
  return sum;
}

PairedRuns paired_runs(const CellFacts& facts, std::span<const RunRecord> records) {
  PairedRuns runs;
  std::map<std::int64_t, Two> by_number;
  BySide failures;
  std::map<Side, int> warm_ups;
  Records all, base_runs, candidate_runs;
  for (const RunRecord* record : last_attempts(facts.cell.str(), records)) {
    if (!record->pair) continue;
    Two& two = by_number[*record->pair];
    if (record->side == Side::base) {
      two.base = record;
    } else {
      two.candidate = record;
    }
    if (*record->pair == 0) ++warm_ups[record->side];
    all.push_back(record);
    note_failure(*record, failures, runs);
    if (*record->pair <= 0) continue;
    Records& runs_of_side = record->side == Side::base ? base_runs : candidate_runs;
    runs_of_side.push_back(record);
  }
  runs.seconds = wall_seconds_of(all);
  judge_failures(failures, runs);
  for (const auto& [side, mine] :
       {std::pair(Side::base, &base_runs), std::pair(Side::candidate, &candidate_runs)}) {
    if (auto note = explain_outliers(program(side), *mine)) runs.notes.push_back(std::move(*note));
  }
  const auto warm = by_number.find(0);
  if (warm == by_number.end() || !warm->second.whole()) return runs;
  runs.warm = true;
  for (const RunRecord* record : {warm->second.base, warm->second.candidate}) {
    if (!error_of(*record)) continue;
    runs.warm_up_failed.push_back(record->side);
    if (!runs.error && warm_ups[record->side] > 1) {
      set_error(runs, fmt::format("{} failed in its warm-up, twice", program(record->side)),
                *record);
    }
  }
  for (const auto& [number, two] : by_number) {  // the warm-up first
    if (!two.whole()) continue;
    const Numbers base = numbers_of(facts, two.base);
    const Numbers candidate = numbers_of(facts, two.candidate);
    if (number == 0) {
      for (const auto& [name, of] : candidate) {
        if (!base.contains(name)) continue;
        runs.metrics.push_back({of.metric, of.source, pair_of(two, base, candidate, name), {}});
        if (of.metric.kind == unit::Kind::usage && of.metric.unit == unit::Unit::count) {
          runs.metrics.back().added = tokens_asked(*two.base);
        }
      }
      continue;
    }
    ++runs.pairs;
    for (PairedMetric& metric : runs.metrics) {
      metric.pairs.push_back(pair_of(two, base, candidate, metric.metric.name));
    }
  }
  return runs;
}

}  // namespace weir::profile
