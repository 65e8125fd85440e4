// Assembles the records of a cell into its profile.
#include "gate/profile/assemble.hpp"

#include <array>
#include <cmath>

#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/profile/passes.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::profile {
namespace {

// Lines of one cell: each new one is compared with all of them, and nobody reads more.
constexpr std::size_t k_max_lines = 200;
constexpr const char* k_more_lines = "more lines like these are left out";

// Returns true if a line may be added; notes once that some are left out.
bool has_room(std::vector<std::string>& lines) {
  if (lines.size() < k_max_lines) return true;
  if (lines.size() == k_max_lines) lines.emplace_back(k_more_lines);
  return false;
}

struct Passes {
  Records timed, counted, instructions, host, python, cost;

  Records& counted_by(Counts counts) {
    switch (counts) {
      case Counts::instructions:
        return instructions;
      case Counts::system_calls:
        return host;
      case Counts::python:
        return python;
      case Counts::device:
        break;
    }
    return counted;
  }
};

// Sorts a cell's runs of one side into passes: timed, counted, and those that show what probes
// cost. Warm-ups, and failed runs of pairs, measure nothing.
Passes split_passes(std::string_view cell, Side side, std::span<const RunRecord> records) {
  Passes passes;
  for (const RunRecord* record : last_attempts(cell, records)) {
    if (record->side != side) continue;
    const bool measures =
        record->with_probes || !record->pair || (*record->pair > 0 && !find_error(*record));
    if (!measures) continue;
    if (record->with_probes) {
      passes.cost.push_back(record);
    } else if (record->pass == Pass::timed) {
      passes.timed.push_back(record);
    } else {
      passes.counted_by(record->counts).push_back(record);
    }
  }
  return passes;
}

constexpr int k_abort = 6;  // SIGABRT

// Returns true if the process crashed on a device twin, but not because the twin refused it memory.
bool may_be_caused_by_twin(const CellFacts& facts, const RunRecord& record) {
  if (!facts.twin) return false;
  // SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV as Linux numbers them.
  constexpr std::array k_crashes{4, 5, k_abort, 7, 8, 11};
  constexpr int k_signals = 128;  // shells and containers add it to a signal
  const int signal = record.ended == Ended::signaled ? record.signal : record.exit_code - k_signals;
  const ProbeCounts* probe = find_probe(record, facts.device);
  return holds(k_crashes, signal) && (probe == nullptr || count_of(*probe, "out_of_memory") == 0);
}

// Returns the advice for a device that nobody found before the start; "" if there is none.
std::string missing_device_cure(const CellFacts& facts) {
  return facts.device_present ? "" : facts.device_cure;
}

// Adds a line for each different error: "timed: 3 of 10 runs: exit 139 (SIGSEGV)". The first error
// keeps the engine's last output, later ones its last line. Returns true if there was any.
bool add_errors(const CellFacts& facts, const Records& records, std::string_view pass,
                Profile& profile) {
  struct Failure {
    std::string stderr_tail;
    std::size_t run_count = 0;
  };
  Grouped<std::string, Failure> failures;  // by their error
  for (const RunRecord* record : records) {
    auto error = find_error(*record);
    if (!error) continue;
    if (may_be_caused_by_twin(facts, *record)) {
      *error +=
          "; the device twin may be why: it computes nothing, and an engine that takes a result "
          "for an index can crash";
    }
    profile.engine_ended |= record->ended == Ended::signaled ||
                            (record->ended == Ended::exited && record->exit_code != 0);
    Failure& failure = failures.find_or_add(*error, *error);
    if (failure.stderr_tail.empty()) failure.stderr_tail = record->stderr_tail;
    ++failure.run_count;
  }
  for (const auto& [reason, failure] : failures.all) {
    if (!has_room(profile.errors)) break;
    const auto& [stderr_tail, run_count] = failure;
    std::string error = reason;
    if (profile.errors.empty()) {
      profile.stderr_tail = stderr_tail;
      if (profile.engine_ended) error += text::prefix_if_any(". ", missing_device_cure(facts));
    } else if (const auto last_lines = text::lines(stderr_tail); !last_lines.empty()) {
      error += ": " + text::printable(last_lines.back());
    }
    std::string runs = fmt::format("{} of {} runs: ", run_count, records.size());
    if (run_count == records.size()) runs = fmt::format("all {} runs: ", run_count);
    if (records.size() == 1) runs.clear();
    profile.errors.push_back(fmt::format("{}: {}{}", pass, runs, error));
  }
  return !failures.all.empty();
}

// Parses the part that add_errors() puts between the pass and the error: "all" of the runs or
// "some"; "" if there is none.
std::string parse_share_of_runs(std::string_view text) {
  const auto words = text::split(text, ' ');
  const auto is_number = [&](std::size_t at) { return text::to_int(words[at]).has_value(); };
  if (words.size() == 2 && words[0] == "all" && is_number(1)) return "all";
  const bool some = words.size() == 3 && words[1] == "of" && is_number(0) && is_number(2);
  return some ? "some" : "";
}

// Adds the metric "fits" with 0 if the model does not fit into the memory of a twin (simulated
// GPU). Every run was refused memory and ended by itself: a time-out or crash does not count.
void add_memory_verdict(const CellFacts& facts, const Records& counted, Profile& profile) {
  const bool is_refused_in_all = std::ranges::all_of(counted, [&](const RunRecord* record) {
    const ProbeCounts* probe = find_probe(*record, facts.device);
    const bool ended_itself = record->ended == Ended::exited ||
                              (record->ended == Ended::signaled && record->signal == k_abort);
    return ended_itself && find_error(*record) && probe != nullptr &&
           count_of(*probe, "out_of_memory") > 0;
  });
  if (!facts.twin || counted.empty() || !is_refused_in_all) return;
  profile.metrics[std::string(unit::k_fits)] =
      exact_measurement(*unit::find_metric(unit::k_fits), facts.device, 0);
}

// Returns a fact that all runs should agree on, from the first run that reports it; warns if they
// disagree.
template <class T>
std::optional<T> agree_on(const Records& records, std::string_view label,
                          std::optional<T> EngineReport::*fact, Profile& profile) {
  std::optional<T> result;
  for (const RunRecord* record : records) {
    if (!record->report) continue;
    const std::optional<T>& value = (*record->report).*fact;
    if (!value) continue;
    if (result && *result != *value) {
      add_once(profile.warnings,
               fmt::format("runs disagree about the {}: {} and {}", label, *result, *value));
    }
    if (!result) result = value;
  }
  return result;
}

// Returns the longest runs of the counted pass. Their output depends on the length alone, so it is
// the same with or without a timed pass.
Records longest_runs(Records counted) {
  const auto size = [](const RunRecord* record) {
    return std::pair(record->parameters.tokens, record->parameters.repeats);
  };
  if (counted.empty()) return counted;
  const auto largest = size(*std::ranges::max_element(counted, {}, size));
  std::erase_if(counted, [&](const RunRecord* run) { return size(run) != largest; });
  return counted;
}

// Returns the median of a number that runs report; nothing if none does. Adds an error if a run is
// far from it, as that run did other work.
std::optional<double> agree_on_mean(const Records& records, std::string_view label,
                                    std::optional<double> EngineReport::*fact, Profile& profile) {
  std::vector<double> values;
  for (const RunRecord* record : records) {
    if (record->report && (*record->report).*fact) values.push_back(*((*record->report).*fact));
  }
  if (values.empty()) return std::nullopt;
  const auto median = stats::median(values);
  for (const double value : values) {
    if (is_same_mean(value, *median)) continue;
    add_once(profile.errors,
             fmt::format("timed: runs of other work: {:.4g} and {:.4g} {}", *median, value, label));
  }
  return median;
}

// Sets how many values of each metric the runs print, by the first run that prints any; warns if
// runs disagree.
void set_printed_values(const Records& runs, Profile& profile) {
  auto& values_of_metric = profile.work.printed_values;
  for (const RunRecord* record : runs) {
    if (!record->report) continue;
    for (const auto& [name, count] : record->report->printed_values) {
      const auto [first, is_first] = values_of_metric.try_emplace(name, count);
      if (is_first || first->second == count) continue;
      add_once(profile.warnings,
               fmt::format("runs disagree about how many values of {} they print: {} and {}", name,
                           first->second, count));
    }
  }
}

// Sets the work that must be the same on both sides of a comparison: tokens, output, model and
// load. Runs that disagree give a warning, or an error for the load.
void set_work(const Records& records, Profile& profile) {
  using Report = EngineReport;
  WorkDone& work = profile.work;
  work.generated_tokens =
      agree_on(records, "number of tokens generated", &Report::generated_tokens, profile);
  work.prompt_tokens =
      agree_on(records, "number of prompt tokens", &Report::prompt_tokens, profile);
  work.output_digest = agree_on(records, "output", &Report::output_digest, profile);
  work.model = agree_on(records, "model", &Report::model, profile);
  const std::size_t warning_count = profile.warnings.size();
  work.load = agree_on(records, "load", &Report::load, profile);
  // Figures of different loads have no median.
  for (; profile.warnings.size() > warning_count; profile.warnings.pop_back()) {
    profile.errors.push_back("timed: " + profile.warnings.back());
  }
  work.prompt_tokens_per_request = agree_on_mean(records, "prompt tokens a request",
                                                 &Report::prompt_tokens_per_request, profile);
  work.generated_tokens_per_request = agree_on_mean(records, "generated tokens a request",
                                                    &Report::generated_tokens_per_request, profile);
  for (const RunRecord* record : records) {
    if (record->report && work.likely.empty()) work.likely = record->report->likely;
  }
}

// Sets the engine's build, and the device class: the CPU's variant, or "vulkan-unseen" for a
// device that no probe saw.
void set_origin(const CellFacts& facts, const Records& records, Profile& profile) {
  Provenance& provenance = profile.provenance;
  const auto build = agree_on(records, "engine's build", &EngineReport::engine_build, profile);
  if (build) provenance.engine_build = build;
  const auto variant = agree_on(records, "CPU variant", &EngineReport::cpu_variant, profile);
  if (facts.device == "cpu" && variant && valid_name(*variant)) {
    provenance.device_class = "cpu-" + *variant;
  }
  // If no probe saw the device, its counts must not be compared with those of a device that was
  // seen.
  if (provenance.device_class.empty() && !profile.metrics.empty()) {
    provenance.device_class = facts.device + "-unseen";
    if (provenance.device_name.empty()) {
      provenance.device_name = facts.device + " (not seen by a probe)";
    }
  }
}

// Returns the best rate of a process's repeats; nothing if it failed.
std::optional<double> best_rate(const RunRecord& record, std::string_view name) {
  if (find_error(record) || !record.report) return std::nullopt;
  for (const auto& series : record.report->times) {
    if (series.metric.name != name || series.samples.empty()) continue;
    const double best = std::ranges::max(series.samples);
    return best > 0 ? std::optional(best) : std::nullopt;
  }
  return std::nullopt;
}

// Sets what probes cost, as a share of the speed: the median over pairs of runs with and without
// probes. Pairs that differ too much only give a warning.
void set_profiling_cost(const Records& cost, Profile& profile) {
  constexpr double k_max_interval_width = 0.1;
  Records with_probes, without_probes;
  if (cost.empty()) return;
  for (const RunRecord* record : cost) {
    Records& group = *record->with_probes ? with_probes : without_probes;
    group.push_back(record);
  }
  for (const char* name : {"decode_tokens_per_second", "prefill_tokens_per_second"}) {
    std::vector<double> costs;
    for (std::size_t i = 0; i < std::min(with_probes.size(), without_probes.size()); ++i) {
      const auto with_rate = best_rate(*with_probes[i], name),
                 without_rate = best_rate(*without_probes[i], name);
      if (with_rate && without_rate) costs.push_back(1 - *with_rate / *without_rate);
    }
    if (costs.empty()) continue;
    std::ranges::sort(costs);
    // `low` and `high` contain the median in 9 of 10 cases (sign test), from 5 pairs on.
    std::size_t skipped = 0;
    double miss_probability = std::pow(0.5, costs.size()), term = miss_probability;
    while (2 * miss_probability <= 0.1) {
      ++skipped;
      term *= static_cast<double>(costs.size() - skipped + 1) / static_cast<double>(skipped);
      miss_probability += term;
    }
    skipped = std::max<std::size_t>(skipped, 1) - 1;
    const double low = costs[skipped], high = costs[costs.size() - 1 - skipped];
    if (low > 0 || high - low <= k_max_interval_width) {
      profile.profiling_cost = stats::median(costs);
    } else {
      profile.warnings.push_back(
          fmt::format("profiling cost: {} pairs put it between {:.0f} % and {:.0f} %: this machine "
                      "is too noisy to measure it",
                      costs.size(), 100 * low, 100 * high));
    }
    return;
  }
  std::optional<std::string> failed;
  for (const RunRecord* process : cost) {
    if (!failed) failed = find_error(*process);
  }
  profile.warnings.push_back("profiling cost: no pair of processes ended well" +
                             (failed ? ": " + text::first_line(*failed) : ""));
}

// Returns how many graphs computed how many tokens, by the probe that sees graphs.
std::map<std::int64_t, std::int64_t> collect_batches(const RunRecord& record) {
  std::map<std::int64_t, std::int64_t> batches;
  for (const ProbeCounts& probe : record.probes) {
    for (const GraphCount& graph : probe.graphs) {
      if (graph.rows > 0 && graph.computed > 0) add_capped(batches[graph.rows], graph.computed);
    }
  }
  return batches;
}

}  // namespace

// Returns the records of a cell's runs by `order`. A run that was retried has its last attempt
// alone.
Records last_attempts(std::string_view cell, std::span<const RunRecord> records) {
  Records cell_records;
  for (const RunRecord& record : records) {
    if (record.cell == cell) cell_records.push_back(&record);
  }
  std::ranges::stable_sort(
      cell_records, {}, [](const RunRecord* run) { return std::pair(run->order, run->attempt); });
  Records last;
  for (std::size_t i = 0; i < cell_records.size(); ++i) {
    const bool was_retried = i + 1 < cell_records.size() &&
                             cell_records[i + 1]->order == cell_records[i]->order &&
                             cell_records[i + 1]->attempt > cell_records[i]->attempt;
    if (!was_retried) last.push_back(cell_records[i]);
  }
  return last;
}

// Returns why a run measures nothing: its error, its exit, or too few generated tokens. Nothing if
// it measures.
std::optional<std::string> find_error(const RunRecord& record) {
  if (record.error) return record.error;
  if (record.ended != Ended::exited) {
    return fmt::format("the engine was {}", to_string(record.ended));
  }
  if (record.pass == Pass::timed && !record.report) return "the engine reported nothing";
  const auto generated = record.report ? record.report->generated_tokens : std::nullopt;
  if (record.pass == Pass::timed && generated && *generated < record.parameters.tokens) {
    return fmt::format(
        "asked for {0} tokens, {1} were generated: make the engine go on after the end of the text "
        "(ignore_eos), give it a longer context, or write tokens: {1} in the prompt",
        record.parameters.tokens, *generated);
  }
  return std::nullopt;
}

// Removes the numbers of runs from error lines, so that equal errors compare equal: "timed: 3 of
// 10 runs: exit 1" becomes "timed: some runs: exit 1".
std::string without_run_numbers(std::string_view errors) {
  constexpr std::string_view k_start = ": ", k_end = " runs: ";
  std::vector<std::string> lines = text::split(errors, '\n');
  for (std::string& line : lines) {
    const std::size_t colon = line.find(k_start), end = line.find(k_end);
    if (end == std::string::npos || colon >= end) continue;
    const std::size_t start = colon + k_start.size();
    const std::string share = parse_share_of_runs(line.substr(start, end - start));
    if (share.empty()) continue;
    line.replace(start, end + k_end.size() - start, share == "all" ? "" : "some runs: ");
  }
  return text::join(lines, "\n");
}

void add_once(std::vector<std::string>& lines, const std::string& line) {
  if (!holds(lines, line) && has_room(lines)) lines.push_back(line);
}

// Adds a line unless another one differs from it in digits alone, or there are too many lines.
void add_similar_once(std::vector<std::string>& lines, const std::string& line) {
  if (!has_room(lines)) return;
  const auto without_numbers = [](std::string text) {
    std::erase_if(text, [](char c) { return text::is_digit(c) || c == '.'; });
    return text;
  };
  const std::string line_text = without_numbers(line);
  if (std::ranges::none_of(
          lines, [&](const std::string& other) { return without_numbers(other) == line_text; })) {
    lines.push_back(line);
  }
}

Profile assemble(const CellFacts& facts, std::span<const RunRecord> records, Side side) {
  Profile profile;
  profile.cell = facts.cell;
  profile.device = facts.device;
  profile.provenance = facts.provenance;
  profile.counts_skip_reason = facts.counts_skip_reason;
  profile.instructions_skip_reason = facts.instructions_skip_reason;
  profile.host_skip_reason = facts.host_skip_reason;

  Passes passes = split_passes(facts.cell.str(), side, records);
  if (passes.timed.empty() && passes.counted.empty() && passes.instructions.empty() &&
      passes.host.empty() && passes.python.empty()) {
    if (!facts.counts_skip_reason) profile.errors.emplace_back(k_no_record);
    return profile;
  }
  for (const Records* pass :
       {&passes.counted, &passes.instructions, &passes.host, &passes.python, &passes.timed}) {
    for (const RunRecord* record : *pass) {
      for (const std::string& warning : record->warnings) add_once(profile.warnings, warning);
      if (!record->report) continue;
      for (const std::string& warning : record->report->warnings) {
        add_similar_once(profile.warnings, warning);
      }
    }
  }
  add_memory_verdict(facts, passes.counted, profile);
  const bool counted_well = !add_errors(facts, passes.counted, "counted", profile) &&
                            !passes.counted.empty() &&
                            check_twin_counts(facts, passes.counted, profile);
  const bool instructions_well = !add_errors(facts, passes.instructions, "instructions", profile) &&
                                 !passes.instructions.empty();
  const bool host_well =
      !add_errors(facts, passes.host, "system calls", profile) && !passes.host.empty();
  const bool python_well =
      !add_errors(facts, passes.python, "Python's calls", profile) && !passes.python.empty();
  const bool timed_well =
      !add_errors(facts, passes.timed, "timed", profile) && !passes.timed.empty();
  // Valgrind reports other CPU features than the machine has, and an engine may choose code by
  // them. So these processes describe the engine only if no others do.
  const bool instructions_alone = instructions_well && passes.counted.empty();
  const bool host_alone = host_well && passes.counted.empty() && !instructions_alone;
  const bool python_alone =
      python_well && passes.counted.empty() && !instructions_alone && !host_alone;
  Records good_records;
  for (const auto& [well, pass] : {std::pair(counted_well, &passes.counted),
                                   {instructions_alone, &passes.instructions},
                                   {host_alone, &passes.host},
                                   {python_alone, &passes.python},
                                   {timed_well, &passes.timed}}) {
    if (well) good_records.insert(good_records.end(), pass->begin(), pass->end());
  }
  const RunRecord* const* refuted =
      find_first(std::as_const(good_records), [&](const RunRecord* record) {
        return facts.device != "cpu" && record->report && record->report->device_refuted;
      });
  if (refuted != nullptr) {
    reject_placement(profile, *(*refuted)->report->device_refuted +
                                  text::prefix_if_any(". ", missing_device_cure(facts)));
  }
  if (timed_well) {
    profile.timed_runs = static_cast<std::int64_t>(passes.timed.size());
    std::string durations;
    for (const RunRecord* record : passes.timed) {
      durations += fmt::format("{} ", record->wall_seconds);
    }
    profile.provenance.timed_run = short_hash(durations);
    if (const auto& last = passes.timed.back()->report) {
      profile.requests = last->requests;
      profile.server = last->server;
      profile.latencies = last->latencies;
    }
    add_timed(facts, passes.timed, profile);
  }
  if (counted_well) {
    profile.counted_runs = static_cast<std::int64_t>(passes.counted.size());
    add_counted(facts, passes.counted, timed_well ? passes.timed : Records(),
                instructions_well || host_well || python_well, profile);
    if (requests_share_batches(facts.sweep))
      profile.batches = collect_batches(*passes.counted.back());
    std::set<std::int64_t> lengths;
    for (const RunRecord* record : passes.counted) {
      lengths.insert(facts.sweep == Sweep::repeats ? record->parameters.repeats
                                                   : record->parameters.tokens);
    }
    profile.provenance.lengths.assign(lengths.begin(), lengths.end());
  }
  if (instructions_well) {
    // Otherwise counted_runs already holds the runs of the other counts.
    if (instructions_alone) {
      profile.counted_runs = static_cast<std::int64_t>(passes.instructions.size());
    }
    add_instructions(facts, passes.instructions, profile);
  }
  if (host_well) {
    if (host_alone) profile.counted_runs = static_cast<std::int64_t>(passes.host.size());
    add_host(facts, passes.host, profile);
  }
  if (python_well) {
    if (python_alone) profile.counted_runs = static_cast<std::int64_t>(passes.python.size());
    add_python(facts, passes.python, profile);
  }
  Records work_records;
  if (counted_well) {
    work_records = longest_runs(passes.counted);
  } else if (instructions_alone) {
    work_records = longest_runs(passes.instructions);
  } else if (host_alone) {
    work_records = longest_runs(passes.host);
  } else if (python_alone) {
    work_records = longest_runs(passes.python);
  } else if (timed_well) {
    work_records = passes.timed;
  }
  if (counted_well || timed_well)
    set_printed_values(counted_well ? work_records : passes.timed, profile);
  set_work(work_records, profile);
  drop_twin_results(facts, profile);
  for (const std::string& doubt : cross_checks(profile)) add_once(profile.warnings, doubt);
  set_origin(facts, good_records, profile);
  set_profiling_cost(passes.cost, profile);
  return profile;
}

// Returns a warning if the launches of kernels by name do not add up to the count of dispatches.
// Empty if they do, or if the two count different things.
std::vector<std::string> cross_checks(const Profile& profile, const std::string& side) {
  if (!profile.kernels || profile.kernels->runs_disagree || profile.device == "cpu") return {};
  const unit::Metric metric =
      unit::count_metric("dispatches", profile.kernels->scope, profile.kernels->length);
  const Measurement* counted = look_up(profile.metrics, metric.name);
  if (counted == nullptr || !counted->exact) return {};
  // If the engine counts dispatches itself, kernels are ops of its graph, and several may be one
  // dispatch.
  if (!counted->source.empty() && counted->source != profile.device) return {};
  const auto sum = profile.kernels->sum();
  if (!sum || *sum == *counted->exact || profile.kernels->counts.empty()) return {};
  std::string warning = fmt::format("kernels by name add up to {}, dispatches were counted {}",
                                    sum->str(), counted->exact->str());
  if (!side.empty()) warning = fmt::format("{}: {}", side, warning);
  return {warning};
}

RecordsByCell::RecordsByCell(std::vector<RunRecord> records) : records_(std::move(records)) {
  std::ranges::stable_sort(records_, {}, &RunRecord::cell);
}

std::span<const RunRecord> RecordsByCell::find(const CellKey& cell) const {
  const auto range = std::ranges::equal_range(records_, cell.str(), {}, &RunRecord::cell);
  return {range.begin(), range.end()};
}

// Assembles every cell; a cell that is unavailable gets that reason as its only error.
std::vector<Profile> assemble_all(const std::vector<CellFacts>& cells,
                                  const std::map<std::string, std::string>& unavailable,
                                  const RecordsByCell& records) {
  std::vector<Profile> profiles;
  for (const CellFacts& facts : cells) {
    const std::string name = facts.cell.str();
    profiles.push_back(assemble(facts, records.find(facts.cell)));
    if (const auto* error = look_up(unavailable, name)) profiles.back().errors = {*error};
  }
  return profiles;
}

namespace {

bool is_rate(const Measurement& measurement) {
  return measurement.metric.kind == unit::Kind::time &&
         measurement.metric.better == unit::Better::higher && !measurement.samples.empty();
}

// Returns the decode rate, else the prefill rate, else the first rate; null if there is none.
const Measurement* find_rate_measurement(const Profile& profile) {
  for (const char* name : {"decode_tokens_per_second", "prefill_tokens_per_second"}) {
    const Measurement* rate = look_up(profile.metrics, name);
    if (rate != nullptr && is_rate(*rate)) return rate;
  }
  for (const auto& [name, measurement] : profile.metrics) {
    if (is_rate(measurement)) return &measurement;
  }
  return nullptr;
}

}  // namespace

// Gives each timed profile the rates of the reference workload, `reference`, which show how fast
// the machine was. Does nothing if that cell did not run or reported no rate.
void set_reference_rates(std::span<Profile> profiles, std::string_view reference) {
  const Profile* reference_profile =
      find_first(profiles, [&](const Profile& profile) { return profile.cell.str() == reference; });
  if (reference_profile == nullptr) return;
  const Measurement* rate = find_rate_measurement(*reference_profile);
  if (rate == nullptr) return;
  const Reference result{std::string(reference), reference_profile->provenance.fingerprint,
                         reference_profile->provenance.engine_build.value_or(""), rate->metric.name,
                         rate->samples};
  for (Profile& profile : profiles) {
    if (profile.timed_runs > 0) profile.reference = result;
  }
}

// Reads or writes where a profile comes from: fingerprint (a hash of what was measured), device
// and machine. Texts that are too long are refused.
static void provenance_fields(Fields& io, Provenance& provenance) {
  constexpr std::size_t k_max_parts = 256;
  io("fingerprint", provenance.fingerprint);
  io.limit_items("fingerprint_parts", k_max_parts, "has a fingerprint of too many parts");
  io("fingerprint_parts", provenance.fingerprint_parts);
  io.optional("preset", provenance.preset);
  io("device_class", provenance.device_class);
  io("device_name", provenance.device_name);
  io("machine_class", provenance.machine_class);
  io("machine_name", provenance.machine_name);
  io("lengths", provenance.lengths);
  io.optional("engine_build", provenance.engine_build);
  check_texts(io, k_long_text,
              {&provenance.fingerprint, &provenance.preset, &provenance.device_class,
               &provenance.device_name, &provenance.machine_class, &provenance.machine_name});
  check_texts(io, k_long_text, {&provenance.engine_build});
  for (const auto& [name, hash] : provenance.fingerprint_parts) {
    check_texts(io, k_short_text, {&name});
  }
}

// Reads or writes what a run knows of a benchmark cell before it measures, for the run's journal.
// Texts that are too long are refused.
void fields(Fields& io, CellFacts& facts) {
  static constexpr auto k_sweeps =
      names_in_order<Sweep>("tokens", "repeats", "none", "overlapping", "held", "request");
  io("cell", facts.cell);
  io("device", facts.device);
  io("sweep", Named{facts.sweep, k_sweeps, "has a sweep that is not known"});
  io("counts_reported_per_token", facts.counts_reported_per_token);
  io("kernels_gated", facts.kernels_gated);
  io("times_source", facts.engine_source);
  io.always("cpu_ops_allowed", facts.cpu_ops_allowed);
  io.optional("cpu_ops_when", facts.cpu_ops_when);
  io.object(
      "provenance", [&](Fields& from) { provenance_fields(from, facts.provenance); },
      facts.cell.str().c_str());
  io.optional("counts_skipped", facts.counts_skip_reason);
  io.optional("instructions_skipped", facts.instructions_skip_reason);
  io.optional("host_skipped", facts.host_skip_reason);
  io.optional("twin", facts.twin);
  io.optional("device_present", facts.device_present);
  io.optional("device_cure", facts.device_cure);
  check_texts(io, k_short_text, {&facts.device, &facts.engine_source});
  check_texts(io, k_short_text, {&facts.twin});
  check_texts(io, k_long_text,
              {&facts.counts_skip_reason, &facts.instructions_skip_reason, &facts.host_skip_reason,
               &facts.device_present});
  check_texts(io, k_long_text, {&facts.device_cure});
  // Each op that ran on the CPU is compared with all conditions of its name.
  constexpr std::size_t k_max_conditions = 64;
  for (const auto& [op, conditions] : facts.cpu_ops_when) {
    io.check(conditions.size() <= k_max_conditions, "has too many conditions of one op");
    for (const std::string& condition : conditions) {
      check_texts(io, k_short_text, {&condition});
    }
  }
}

}  // namespace weir::profile
