// Pairs up timed processes of base and candidate.
#include "gate/profile/paired.hpp"

#include "gate/base/find.hpp"
#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace {

constexpr std::size_t k_max_crashes = 2;   // by one side
constexpr std::size_t k_max_timeouts = 3;  // by one side, none by the other
constexpr std::size_t k_max_timeouts_in_all = 6;
constexpr std::size_t k_max_numbers = 100'000;  // of pairs, over all metrics of a cell

// The two processes of a pair; null if one has not run.
struct RecordPair {
  const RunRecord* base = nullptr;
  const RunRecord* candidate = nullptr;
  [[nodiscard]] bool is_complete() const { return base != nullptr && candidate != nullptr; }
};

struct Failures {
  Records crashes, timeouts;
};

std::string_view program_name(Side side) {
  return side == Side::base ? "the base program" : "the candidate";
}

using BySide = std::map<Side, Failures>;

// Records a failed process of a pair, with a warning. It counts as infinitely slow; time-outs and
// crashes are kept apart.
void note_failure(const RunRecord& record, BySide& failures, PairedRuns& runs) {
  const auto error = find_error(record);
  if (!error) return;
  Failures& side_failures = failures[record.side];
  if (record.ended == Ended::timed_out) {
    side_failures.timeouts.push_back(&record);
  } else {
    side_failures.crashes.push_back(&record);
  }
  const bool is_warm_up = *record.pair == 0;
  add_once(runs.warnings,
           fmt::format("{} of {} counts as infinitely slow: {}",
                       is_warm_up ? "a warm-up" : fmt::format("pair {}", *record.pair),
                       program_name(record.side), text::first_line(*error)));
}

// Sets the error of failed processes, in place of the warnings that give the same reason.
void set_error(PairedRuns& runs, std::string_view how, const RunRecord& record) {
  const std::string reason = fmt::format(": {}", text::first_line(find_error(record).value_or("")));
  std::erase_if(runs.warnings, [&](const std::string& line) { return line.ends_with(reason); });
  runs.error = fmt::format("timed: {}: {}", how, find_error(record).value_or(""));
  runs.stderr_tail = record.stderr_tail;
}

// Sets an error if a side crashed or timed out too often. Time-outs on one side alone are an error
// sooner than on both.
void check_failures(BySide& failures, PairedRuns& runs) {
  for (const Side side : {Side::base, Side::candidate}) {
    const Side other_side = side == Side::base ? Side::candidate : Side::base;
    const Failures &failures_of_side = failures[side], &failures_of_other = failures[other_side];
    if (failures_of_side.crashes.size() >= k_max_crashes) {
      return set_error(runs,
                       fmt::format("{} failed in {} of its processes", program_name(side),
                                   failures_of_side.crashes.size()),
                       *failures_of_side.crashes.back());
    }
    if (failures_of_side.timeouts.size() >= k_max_timeouts && failures_of_other.timeouts.empty()) {
      return set_error(runs,
                       fmt::format("{} timed out {} times, {} never", program_name(side),
                                   failures_of_side.timeouts.size(), program_name(other_side)),
                       *failures_of_side.timeouts.back());
    }
  }

  const Records &candidate_timeouts = failures[Side::candidate].timeouts,
                &base_timeouts = failures[Side::base].timeouts;
  if (candidate_timeouts.size() + base_timeouts.size() >= k_max_timeouts_in_all) {
    set_error(runs,
              fmt::format("both programs time out ({} and {} times)", candidate_timeouts.size(),
                          base_timeouts.size()),
              *candidate_timeouts.back());
  }
}

using Numbers = std::map<std::string, ProcessNumber>;

Numbers read_numbers(const CellFacts& facts, const RunRecord* record) {
  Numbers numbers;
  if (record == nullptr || find_error(*record)) return numbers;
  for (ProcessNumber& number : process_numbers(*record, facts.engine_source)) {
    numbers.emplace(number.metric.name, std::move(number));
  }
  return numbers;
}

// Gives a process that is too small to tell its peak memory the bound of that, if the other process
// of the pair has one to compare with.
void add_memory_bound(const Numbers& other, const RunRecord& record, Numbers& numbers) {
  const ProcessNumber* memory = look_up(other, "peak_rss_bytes");
  if (memory == nullptr || !record.peak_rss_bound) return;
  ProcessNumber bound = *memory;
  bound.value = static_cast<double>(*record.peak_rss_bound);
  numbers.emplace(bound.metric.name, std::move(bound));
}

std::optional<double> find_number(const Numbers& numbers, const std::string& name) {
  const ProcessNumber* number = look_up(numbers, name);
  return number == nullptr ? std::nullopt : std::optional(number->value);
}

// Returns how many tokens a process was asked for, at least 1.
double requested_tokens(const RunRecord& record) {
  const RunParameters& parameters = record.parameters;
  const std::int64_t tokens = parameters.tokens > 0 ? parameters.tokens : parameters.prompt_tokens;
  return static_cast<double>(std::max<std::int64_t>(1, tokens * parameters.repeats));
}

// Returns what each process that measured something states of its work.
template <class T>
std::vector<T> stated_facts(const Records& runs, T EngineReport::*fact) {
  std::vector<T> stated;
  for (const RunRecord* run : runs) {
    if (run->report && !find_error(*run)) stated.push_back((*run->report).*fact);
  }
  return stated;
}

// The processes of both sides that are in pairs, without warm-ups.
struct SideRuns {
  Records base, candidate;
};

// Sets a fact of the work (tokens, model) on both sides, if all runs of the base agree on it. The
// candidate's is the first that differs; with `must_agree` its runs have to agree too.
void set_fact(const SideRuns& sides, auto EngineReport::*fact, auto WorkDone::*work,
              bool must_agree, PairedRuns& runs) {
  const auto base_facts = stated_facts(sides.base, fact),
             candidate_facts = stated_facts(sides.candidate, fact);
  const auto are_equal = [](const auto& stated) {
    return std::ranges::adjacent_find(stated, std::not_equal_to()) == stated.end();
  };
  if (base_facts.empty() || candidate_facts.empty() || !are_equal(base_facts)) return;
  if (must_agree && !are_equal(candidate_facts)) return;
  const auto* first_other =
      find_first(candidate_facts, [&](const auto& value) { return value != base_facts[0]; });
  runs.base_work.*work = base_facts[0];
  runs.candidate_work.*work = first_other == nullptr ? base_facts[0] : *first_other;
}

// Sets how many values of each metric all runs of the base print. The candidate's number is the
// first that differs, or absent if that run printed none.
void set_printed_values(const SideRuns& sides, PairedRuns& runs) {
  using Printed = std::map<std::string, std::int64_t>;
  const auto base_printed = stated_facts(sides.base, &EngineReport::printed_values),
             candidate_printed = stated_facts(sides.candidate, &EngineReport::printed_values);
  if (base_printed.empty() || candidate_printed.empty()) return;
  for (const auto& [name, count] : base_printed.front()) {
    const auto is_other = [&](const Printed& printed) {
      const std::int64_t* other = look_up(printed, name);
      return other == nullptr || *other != count;
    };
    if (std::ranges::any_of(base_printed, is_other)) continue;
    runs.base_work.printed_values[name] = count;
    const Printed* first_other = find_first(candidate_printed, is_other);
    const Printed& stated = first_other == nullptr ? base_printed.front() : *first_other;
    if (const std::int64_t* number = look_up(stated, name))
      runs.candidate_work.printed_values[name] = *number;
  }
  // A form that only the candidate prints.
  for (const Printed& printed : candidate_printed) {
    for (const auto& [name, count] : printed) {
      const auto has_name = [&](const Printed& other) { return other.contains(name); };
      if (name != printed_metric(name) && std::ranges::none_of(base_printed, has_name))
        runs.candidate_work.printed_values[name] = count;
    }
  }
}

// The likely tokens of the first run that reports some.
Likely first_likely(const Records& runs) {
  const RunRecord* const* run = find_first(runs, [](const RunRecord* record) {
    return record->report && !record->report->likely.empty();
  });
  return run == nullptr ? Likely() : (*run)->report->likely;
}

void set_work(const SideRuns& sides, PairedRuns& runs) {
  set_fact(sides, &EngineReport::generated_tokens, &WorkDone::generated_tokens, false, runs);
  set_fact(sides, &EngineReport::prompt_tokens, &WorkDone::prompt_tokens, false, runs);
  set_fact(sides, &EngineReport::output_digest, &WorkDone::output_digest, true, runs);
  set_printed_values(sides, runs);
  runs.base_work.likely = first_likely(sides.base);
  runs.candidate_work.likely = first_likely(sides.candidate);
}

NumberPair pair_numbers(const RecordPair& pair, const Numbers& base, const Numbers& candidate,
                        const std::string& name) {
  return {find_number(base, name), find_number(candidate, name),
          pair.base->order < pair.candidate->order};
}

}  // namespace

// Adds up the wall time of processes, in seconds. Servers of one pair that were up together count
// from the first start to the last end.
double total_wall_seconds(std::span<const RunRecord* const> records) {
  struct Span {
    double begin, end;
  };
  double sum = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, Span> spans;  // by pair and attempt
  for (const RunRecord* record : records) {
    if (record->turns.empty()) {
      sum += record->wall_seconds;
      continue;
    }
    const double end = record->started_at + record->wall_seconds;
    const auto [entry, is_new] = spans.try_emplace({record->pair.value_or(0), record->attempt},
                                                   Span{.begin = record->started_at, .end = end});
    if (is_new) continue;
    Span& span = entry->second;
    // A record from before a killed run may not overlap this one.
    if (record->started_at > span.end || end < span.begin) {
      sum += record->wall_seconds;
      continue;
    }
    span.begin = std::min(span.begin, record->started_at);
    span.end = std::max(span.end, end);
  }
  for (const auto& [pair, span] : spans) sum += span.end - span.begin;
  return sum;
}

// Collects pairs with their numbers and failures. Metrics come from the warm-ups, the pairs fill
// them.
PairedRuns paired_runs(const CellFacts& facts, std::span<const RunRecord> records) {
  PairedRuns runs;
  std::map<std::int64_t, RecordPair> by_number;
  BySide failures;
  std::map<Side, int> warm_ups;
  Records all;
  SideRuns sides;
  for (const RunRecord* record : last_attempts(facts.cell.str(), records)) {
    if (!record->pair) continue;
    RecordPair& pair = by_number[*record->pair];
    if (record->side == Side::base) {
      pair.base = record;
    } else {
      pair.candidate = record;
    }
    if (*record->pair == 0) ++warm_ups[record->side];
    all.push_back(record);
    note_failure(*record, failures, runs);
    if (*record->pair <= 0) continue;
    Records& runs_of_side = record->side == Side::base ? sides.base : sides.candidate;
    runs_of_side.push_back(record);
  }
  runs.seconds = total_wall_seconds(all);
  check_failures(failures, runs);
  for (const auto& [side, side_runs] :
       {std::pair(Side::base, &sides.base), std::pair(Side::candidate, &sides.candidate)}) {
    if (auto note = explain_outliers(program_name(side), *side_runs)) {
      runs.notes.push_back(std::move(*note));
    }
  }
  set_work(sides, runs);
  const auto warm_up = by_number.find(0);
  if (warm_up == by_number.end() || !warm_up->second.is_complete()) return runs;
  runs.warm = true;
  for (const RunRecord* record : {warm_up->second.base, warm_up->second.candidate}) {
    if (!find_error(*record)) continue;
    runs.warm_up_failed.push_back(record->side);
    if (!runs.error && warm_ups[record->side] > 1) {
      set_error(runs, fmt::format("{} failed in its warm-up, twice", program_name(record->side)),
                *record);
    }
  }
  const std::size_t most_pairs = by_number.size() - 1;
  for (const auto& [number, pair] : by_number) {  // the warm-up first
    if (!pair.is_complete()) continue;
    Numbers base = read_numbers(facts, pair.base);
    Numbers candidate = read_numbers(facts, pair.candidate);
    add_memory_bound(candidate, *pair.base, base);
    add_memory_bound(base, *pair.candidate, candidate);
    if (number == 0) {
      const bool is_measured = !find_error(*pair.candidate);
      for (const auto& [name, base_number] : base) {
        const ProcessNumber* number_of_both = look_up(candidate, name);
        const ProcessNumber& reported = number_of_both == nullptr ? base_number : *number_of_both;
        PairedMetric metric{
            reported.metric, reported.source, pair_numbers(pair, base, candidate, name), {}};
        if (number_of_both == nullptr) {
          if (is_measured) runs.missing.push_back(std::move(metric));
          continue;
        }
        if (metric.metric.kind == unit::Kind::usage && metric.metric.unit == unit::Unit::count)
          metric.added = requested_tokens(*pair.base);
        runs.metrics.push_back(std::move(metric));
      }
      // Each metric has a number in each pair, and one that a process did not report counts too.
      if (runs.metrics.size() * most_pairs <= k_max_numbers) continue;
      runs.error = fmt::format("timed: {} metrics in {} pairs are more than {} numbers",
                               runs.metrics.size(), most_pairs, k_max_numbers);
      runs.metrics.clear();
      continue;
    }
    ++runs.pairs;
    for (PairedMetric& metric : runs.metrics) {
      metric.pairs.push_back(pair_numbers(pair, base, candidate, metric.metric.name));
    }
  }
  return runs;
}

}  // namespace weir::profile
