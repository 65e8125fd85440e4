
#include "gate/profile/assemble.hpp"

#include <array>
#include <cmath>

#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace {

struct Passes {
  Records timed, counted, instructions, host, cost;
};

Passes split(std::string_view cell, Side side, std::span<const RunRecord> records) {
  Passes passes;
  for (const RunRecord* record : last_attempts(cell, records)) {
    if (record->side != side) continue;
    const bool measures =
        record->probed || !record->pair || (*record->pair > 0 && !error_of(*record));
    if (!measures) continue;
    Records& pass = record->probed                ? passes.cost
                    : record->pass == Pass::timed ? passes.timed
                    : record->instructions        ? passes.instructions
                    : record->host                ? passes.host
                                                  : passes.counted;
    pass.push_back(record);
  }
  return passes;
}

constexpr int k_abort = 6;  // SIGABRT

// The process crashed on a twin, which did not refuse it memory.
bool may_be_of_twin(const CellFacts& facts, const RunRecord& record) {
  if (!facts.twin) return false;
  // SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV as Linux numbers them.
  constexpr std::array k_crashes{4, 5, k_abort, 7, 8, 11};
  constexpr int k_signals = 128;  // shells and containers add it
  const int signal = record.ended == Ended::signaled ? record.signal : record.exit_code - k_signals;
  const ProbeCounts* probe = find_probe(record, facts.device);
  return holds(k_crashes, signal) && (probe == nullptr || count_of(*probe, "out_of_memory") == 0);
}

// "timed: 3 of 10 runs: exit 139 (SIGSEGV)", one line for each different error. The engine's last
// words are those of the profile's first error; later errors end with the last line of their own.
bool add_errors(const CellFacts& facts, const Records& records, std::string_view pass,
                Profile& profile) {
  struct Seen {
    std::string error, stderr_tail;
    std::size_t times = 0;
  };
  std::vector<Seen> seen;
  for (const RunRecord* record : records) {
    auto error = error_of(*record);
    if (!error) continue;
    if (may_be_of_twin(facts, *record)) {
      *error +=
          "; the device twin may be why: it computes nothing, and an engine that takes a result "
          "for an index can crash";
    }
    profile.engine_ended |= record->ended == Ended::signaled ||
                            (record->ended == Ended::exited && record->exit_code != 0);
    auto* known = first_of(seen, [&](const Seen& one) { return one.error == *error; });
    if (known == nullptr) known = &seen.emplace_back(Seen{*error, {}});
    if (known->stderr_tail.empty()) known->stderr_tail = record->stderr_tail;
    ++known->times;
  }
  for (auto& [error, stderr_tail, times] : seen) {
    if (profile.errors.empty()) {
      profile.stderr_tail = stderr_tail;
    } else if (const auto words = text::lines(stderr_tail); !words.empty()) {
      error += ": " + text::printable(words.back());
    }
    profile.errors.push_back(
        records.size() == 1 ? fmt::format("{}: {}", pass, error)
        : times == records.size()
            ? fmt::format("{}: all {} runs: {}", pass, times, error)
            : fmt::format("{}: {} of {} runs: {}", pass, times, records.size(), error));
  }
  return !seen.empty();
}

// What add_errors() put between the pass and the error, in other words; "" where it put nothing
// there.
std::string share_of_runs(std::string_view text) {
  const auto words = text::split(text, ' ');
  const auto is_number = [&](std::size_t at) { return text::to_int(words[at]).has_value(); };
  if (words.size() == 2 && words[0] == "all" && is_number(1)) return "all";
  return words.size() == 3 && words[1] == "of" && is_number(0) && is_number(2) ? "some" : "";
}

// A model that a twin has too little memory for is the engine's error, and a number as well: where
// every process was refused memory and ended for it, not by a time-out or a crash.
void add_fits(const CellFacts& facts, const Records& counted, Profile& profile) {
  const bool refused = std::ranges::all_of(counted, [&](const RunRecord* record) {
    const ProbeCounts* probe = find_probe(*record, facts.device);
    const bool ended = record->ended == Ended::exited ||
                       (record->ended == Ended::signaled && record->signal == k_abort);
    return ended && error_of(*record) && probe != nullptr && count_of(*probe, "out_of_memory") > 0;
  });
  if (!facts.twin || counted.empty() || !refused) return;
  profile.metrics[std::string(unit::k_fits)] =
      exact_measurement(*unit::find_metric(unit::k_fits), facts.device, 0);
}

// One fact that all runs should agree on; the first that was reported stands.
template <class T>
std::optional<T> agreed(const Records& records, std::string_view what,
                        std::optional<T> EngineReport::*fact, Profile& profile) {
  std::optional<T> found;
  for (const RunRecord* record : records) {
    if (!record->report) continue;
    const std::optional<T>& value = (*record->report).*fact;
    if (!value) continue;
    if (found && *found != *value) {
      add_once(profile.warnings,
               fmt::format("runs disagree about the {}: {} and {}", what, *found, *value));
    }
    if (!found) found = value;
  }
  return found;
}

// The longest runs of the counted pass: what they generate depends on the length alone, with or
// without a timed pass beside them.
Records longest(Records counted) {
  const auto size = [](const RunRecord* one) {
    return std::pair(one->asked.tokens, one->asked.repeats);
  };
  if (counted.empty()) return counted;
  const auto most = size(*std::ranges::max_element(counted, {}, size));
  std::erase_if(counted, [&](const RunRecord* one) { return size(one) != most; });
  return counted;
}

void set_work(const Records& records, Profile& profile) {
  using Report = EngineReport;
  WorkDone& work = profile.work;
  work.generated_tokens =
      agreed(records, "number of tokens generated", &Report::generated_tokens, profile);
  work.prompt_tokens = agreed(records, "number of prompt tokens", &Report::prompt_tokens, profile);
  work.output_digest = agreed(records, "output", &Report::output_digest, profile);
  work.model = agreed(records, "model", &Report::model, profile);
  work.load = agreed(records, "load", &Report::load, profile);
  for (const RunRecord* record : records) {
    if (record->report && work.likely.empty()) work.likely = record->report->likely;
  }
}

void set_origin(const CellFacts& facts, const Records& all, Profile& profile) {
  Provenance& from = profile.provenance;
  const auto build = agreed(all, "engine's build", &EngineReport::engine_build, profile);
  if (build) from.engine_build = build;
  const auto variant = agreed(all, "CPU variant", &EngineReport::cpu_variant, profile);
  if (facts.device == "cpu" && variant && valid_name(*variant)) {
    from.device_class = "cpu-" + *variant;
  }
  // No probe looked at the device: its counts are kept apart from those of devices that were seen.
  if (from.device_class.empty() && !profile.metrics.empty()) {
    from.device_class = facts.device + "-unseen";
    if (from.device_name.empty()) from.device_name = facts.device + " (not seen by a probe)";
  }
}

// The best of a process's repeats; nothing where it failed.
std::optional<double> best_rate(const RunRecord& record, std::string_view name) {
  if (error_of(record) || !record.report) return std::nullopt;
  for (const auto& series : record.report->times) {
    if (series.metric.name != name || series.samples.empty()) continue;
    const double best = std::ranges::max(series.samples);
    return best > 0 ? std::optional(best) : std::nullopt;
  }
  return std::nullopt;
}

// What probes cost: the median over pairs of processes of the same command, with them and without.
// Pairs that lie too far apart say nothing.
void set_profiling_cost(const Records& cost, Profile& profile) {
  constexpr double k_widest = 0.1;
  Records with, without;
  if (cost.empty()) return;
  for (const RunRecord* record : cost) (*record->probed ? with : without).push_back(record);
  for (const char* name : {"decode_tokens_per_second", "prefill_tokens_per_second"}) {
    std::vector<double> costs;
    for (std::size_t i = 0; i < std::min(with.size(), without.size()); ++i) {
      const auto on = best_rate(*with[i], name), off = best_rate(*without[i], name);
      if (on && off) costs.push_back(1 - *on / *off);
    }
    if (costs.empty()) continue;
    std::ranges::sort(costs);
    // From 5 pairs on the median lies between these two in 9 of 10 cases at least (sign test).
    std::size_t outside = 0;
    double below = std::pow(0.5, costs.size()), term = below;
    while (2 * below <= 0.1) {
      ++outside;
      term *= static_cast<double>(costs.size() - outside + 1) / static_cast<double>(outside);
      below += term;
    }
    outside = std::max<std::size_t>(outside, 1) - 1;
    const double low = costs[outside], high = costs[costs.size() - 1 - outside];
    if (low > 0 || high - low <= k_widest) {
      profile.profiling_cost = median_of(costs);
    } else {
      profile.warnings.push_back(
          fmt::format("profiling cost: {} pairs put it between {:.0f} % and {:.0f} %: this machine "
                      "is too noisy to measure it",
                      costs.size(), 100 * low, 100 * high));
    }
    return;
  }
  std::optional<std::string> failed;
  for (const RunRecord* one : cost) failed = failed ? failed : error_of(*one);
  profile.warnings.push_back("profiling cost: no pair of processes ended well" +
                             (failed ? ": " + text::first_line(*failed) : ""));
}

// By the probe that sees what each graph computes.
std::map<std::int64_t, std::int64_t> batches_of(const RunRecord& record) {
  std::map<std::int64_t, std::int64_t> batches;
  for (const ProbeCounts& probe : record.probes) {
    for (const GraphCount& graph : probe.graphs) {
      if (graph.rows > 0 && graph.computed > 0) add_capped(batches[graph.rows], graph.computed);
    }
  }
  return batches;
}

}  // namespace

Records last_attempts(std::string_view cell, std::span<const RunRecord> records) {
  Records mine;
  for (const RunRecord& record : records) {
    if (record.cell == cell) mine.push_back(&record);
  }
  std::ranges::stable_sort(
      mine, {}, [](const RunRecord* one) { return std::pair(one->order, one->attempt); });
  Records last;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const bool retried = i + 1 < mine.size() && mine[i + 1]->order == mine[i]->order &&
                         mine[i + 1]->attempt > mine[i]->attempt;
    if (!retried) last.push_back(mine[i]);
  }
  return last;
}

std::optional<std::string> error_of(const RunRecord& record) {
  if (record.error) return record.error;
  if (record.ended != Ended::exited)
    return fmt::format("the engine was {}", to_string(record.ended));
  if (record.pass == Pass::timed && !record.report) return "the engine reported nothing";
  const auto generated = record.report ? record.report->generated_tokens : std::nullopt;
  if (record.pass == Pass::timed && generated && *generated < record.asked.tokens) {
    return fmt::format("asked for {} tokens, {} were generated", record.asked.tokens, *generated);
  }
  return std::nullopt;
}

std::string without_run_numbers(std::string_view errors) {
  constexpr std::string_view k_start = ": ", k_end = " runs: ";
  std::vector<std::string> lines = text::split(errors, '\n');
  for (std::string& line : lines) {
    const std::size_t colon = line.find(k_start), end = line.find(k_end);
    if (end == std::string::npos || colon >= end) continue;
    const std::size_t start = colon + k_start.size();
    const std::string share = share_of_runs(line.substr(start, end - start));
    if (share.empty()) continue;
    line.replace(start, end + k_end.size() - start, share == "all" ? "" : "some runs: ");
  }
  return text::join(lines, "\n");
}

void add_once(std::vector<std::string>& lines, const std::string& line) {
  if (!holds(lines, line)) lines.push_back(line);
}

// What each process says with figures of its own is told once.
void add_alike_once(std::vector<std::string>& lines, const std::string& line) {
  const auto without_numbers = [](std::string text) {
    std::erase_if(text, [](char c) { return text::is_digit(c) || c == '.'; });
    return text;
  };
  const std::string bare = without_numbers(line);
  if (std::ranges::none_of(
          lines, [&](const std::string& known) { return without_numbers(known) == bare; })) {
    lines.push_back(line);
  }
}

Profile assemble(const CellFacts& facts, std::span<const RunRecord> records, Side side) {
  Profile profile;
  profile.cell = facts.cell;
  profile.device = facts.device;
  profile.provenance = facts.provenance;
  profile.counts_skipped = facts.counts_skipped;
  profile.instructions_skipped = facts.instructions_skipped;
  profile.host_skipped = facts.host_skipped;

  Passes passes = split(facts.cell.str(), side, records);
  if (passes.timed.empty() && passes.counted.empty() && passes.instructions.empty() &&
      passes.host.empty()) {
    if (!facts.counts_skipped) profile.errors.emplace_back(k_no_record);
    return profile;
  }
  for (const Records* pass : {&passes.counted, &passes.instructions, &passes.host, &passes.timed}) {
    for (const RunRecord* record : *pass) {
      for (const std::string& warning : record->warnings) add_once(profile.warnings, warning);
      if (!record->report) continue;
      for (const std::string& warning : record->report->warnings) {
        add_alike_once(profile.warnings, warning);
      }
    }
  }
  add_fits(facts, passes.counted, profile);
  const bool counted_well = !add_errors(facts, passes.counted, "counted", profile) &&
                            !passes.counted.empty() &&
                            holds_on_twin(facts, passes.counted, profile);
  const bool instructions_well = !add_errors(facts, passes.instructions, "instructions", profile) &&
                                 !passes.instructions.empty();
  const bool host_well =
      !add_errors(facts, passes.host, "system calls", profile) && !passes.host.empty();
  const bool timed_well =
      !add_errors(facts, passes.timed, "timed", profile) && !passes.timed.empty();
  // Valgrind offers other features of the processor than it has, which an engine may choose its
  // code by: such a process speaks for the engine where no other does.
  const bool instructions_alone = instructions_well && passes.counted.empty();
  const bool host_alone = host_well && passes.counted.empty() && !instructions_alone;
  Records good;
  for (const auto& [well, pass] : {std::pair(counted_well, &passes.counted),
                                   {instructions_alone, &passes.instructions},
                                   {host_alone, &passes.host},
                                   {timed_well, &passes.timed}}) {
    if (well) good.insert(good.end(), pass->begin(), pass->end());
  }
  const RunRecord* const* refuted = first_of(std::as_const(good), [&](const RunRecord* record) {
    return facts.device != "cpu" && record->report && record->report->device_refuted;
  });
  if (refuted != nullptr) refute(profile, *(*refuted)->report->device_refuted);
  if (timed_well) {
    profile.timed_runs = static_cast<std::int64_t>(passes.timed.size());
    if (const auto& last = passes.timed.back()->report) {
      profile.requests = last->requests;
      profile.server = last->server;
      profile.latencies = last->latencies;
    }
    add_timed(facts, passes.timed, profile);
  }
  if (counted_well) {
    profile.counted_runs = static_cast<std::int64_t>(passes.counted.size());
    add_counted(facts, passes.counted, profile);
    if (shares_batches(facts.sweep)) profile.batches = batches_of(*passes.counted.back());
    std::set<std::int64_t> lengths;
    for (const RunRecord* record : passes.counted) {
      lengths.insert(facts.sweep == Sweep::repeats ? record->asked.repeats : record->asked.tokens);
    }
    profile.provenance.lengths.assign(lengths.begin(), lengths.end());
  }
  if (instructions_well) {
    // How often the other counts were seen, where there are any.
    if (instructions_alone) {
      profile.counted_runs = static_cast<std::int64_t>(passes.instructions.size());
    }
    add_instructions(facts, passes.instructions, profile);
  }
  if (host_well) {
    if (host_alone) profile.counted_runs = static_cast<std::int64_t>(passes.host.size());
    add_host(facts, passes.host, profile);
  }
  set_work(counted_well         ? longest(passes.counted)
           : instructions_alone ? longest(passes.instructions)
           : host_alone         ? longest(passes.host)
           : timed_well         ? passes.timed
                                : Records{},
           profile);
  leave_out_results(facts, profile);
  for (const std::string& doubt : cross_checks(profile)) add_once(profile.warnings, doubt);
  set_origin(facts, good, profile);
  set_profiling_cost(passes.cost, profile);
  return profile;
}

std::vector<std::string> cross_checks(const Profile& profile, const std::string& side) {
  if (!profile.kernels || profile.kernels->varies || profile.device == "cpu") return {};
  const unit::Metric metric =
      unit::count_metric("dispatches", profile.kernels->scope, profile.kernels->length);
  const Measurement* counted = look_up(profile.metrics, metric.name);
  if (counted == nullptr || !counted->exact) return {};
  // Beside an engine's own count of dispatches, kernels are ops of its graph: several may be one.
  if (!counted->source.empty() && counted->source != profile.device) return {};
  const auto sum = profile.kernels->sum();
  if (!sum || *sum == *counted->exact || profile.kernels->counts.empty()) return {};
  return {fmt::format("{}kernels by name add up to {}, dispatches were counted {}",
                      side.empty() ? "" : side + ": ", sum->str(), counted->exact->str())};
}

std::vector<Profile> assemble_all(const std::vector<CellFacts>& cells,
                                  const std::map<std::string, std::string>& unavailable,
                                  const std::vector<RunRecord>& records) {
  std::map<std::string, std::vector<RunRecord>> by_cell;
  for (const RunRecord& record : records) by_cell[record.cell].push_back(record);
  std::vector<Profile> profiles;
  for (const CellFacts& facts : cells) {
    const std::string name = facts.cell.str();
    profiles.push_back(assemble(facts, by_cell[name]));
    if (const auto* why = look_up(unavailable, name)) profiles.back().errors = {*why};
  }
  return profiles;
}

namespace {

bool is_rate(const Measurement& measured) {
  return measured.metric.kind == unit::Kind::time &&
         measured.metric.better == unit::Better::higher && !measured.samples.empty();
}

const Measurement* rate_of(const Profile& profile) {
  for (const char* name : {"decode_tokens_per_second", "prefill_tokens_per_second"}) {
    const Measurement* found = look_up(profile.metrics, name);
    if (found != nullptr && is_rate(*found)) return found;
  }
  for (const auto& [name, measured] : profile.metrics) {
    if (is_rate(measured)) return &measured;
  }
  return nullptr;
}

}  // namespace

void take_reference(std::span<Profile> profiles, std::string_view reference) {
  const Profile* found =
      first_of(profiles, [&](const Profile& profile) { return profile.cell.str() == reference; });
  if (found == nullptr) return;
  const Measurement* rate = rate_of(*found);
  if (rate == nullptr) return;
  const Reference taken{std::string(reference), found->provenance.fingerprint,
                        found->provenance.engine_build.value_or(""), rate->metric.name,
                        rate->samples};
  for (Profile& profile : profiles) {
    if (profile.timed_runs > 0) profile.reference = taken;
  }
}

// Without what only a run can tell.
static void provenance_fields(Fields& io, Provenance& from) {
  io("fingerprint", from.fingerprint);
  io("fingerprint_parts", from.fingerprint_parts);
  io.sparse("preset", from.preset);
  io("device_class", from.device_class);
  io("device_name", from.device_name);
  io("machine_class", from.machine_class);
  io("machine_name", from.machine_name);
  io("lengths", from.lengths);
  io.sparse("engine_build", from.engine_build);
}

void fields(Fields& io, CellFacts& facts) {
  static constexpr auto k_sweeps =
      names_in_order<Sweep>("tokens", "repeats", "none", "overlapping", "held", "request");
  io("cell", facts.cell);
  io("device", facts.device);
  io("sweep", Named{facts.sweep, k_sweeps, "has a sweep that is not known"});
  io("counts_reported_per_token", facts.counts_reported_per_token);
  io("kernels_gated", facts.kernels_gated);
  io("times_source", facts.times_source);
  io.always("cpu_ops_allowed", facts.cpu_ops_allowed);
  io.sparse("cpu_ops_when", facts.cpu_ops_when);
  io.object(
      "provenance", [&](Fields& from) { provenance_fields(from, facts.provenance); },
      facts.cell.str().c_str());
  io.sparse("counts_skipped", facts.counts_skipped);
  io.sparse("instructions_skipped", facts.instructions_skipped);
  io.sparse("host_skipped", facts.host_skipped);
  io.sparse("twin", facts.twin);
  io.sparse("device_present", facts.device_present);
  io.sparse("device_cure", facts.device_cure);
}

}  // namespace weir::profile
