// Assembles the counted pass: counts over lengths, kernels, and the device that was used.

#include <functional>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/profile/passes.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::profile {
namespace {

// Every probe of a device API counts these, so a 0 is a fact and becomes a metric.
constexpr std::array<std::string_view, 5> k_device_bases{"dispatches", "barriers", "syncs",
                                                         "copies", "submits"};

bool counts_a_device(std::string_view probe) { return unit::find_device_api(probe) != nullptr; }

// Returns true for a probe that only repeats the counts of another probe, as a check.
bool only_repeats_other_probe(std::string_view probe) {
  return std::ranges::any_of(unit::device_apis(), [&](const unit::DeviceApi& api) {
    return !api.check.empty() && api.check == probe;
  });
}

// Returns the probes that saw every counted run, the one of the cell's device first. A probe that
// missed a run gives an error if it is the device's own, else a warning. A role (processes of one
// kind, such as "server") that did not use the device in a run counted 0 there.
std::vector<std::string> find_complete_probes(const CellFacts& facts, const Records& counted_runs,
                                              Profile& profile) {
  std::map<std::string, std::size_t> runs_seen;
  for (const RunRecord* record : counted_runs) {
    for (const ProbeCounts& probe : record->probes) ++runs_seen[probe.probe];
  }
  std::vector<std::string> names;
  for (const auto& [name, runs] : runs_seen) {
    const bool is_own = name == facts.device;
    if (runs == counted_runs.size() || !role_of_probe(name).empty()) {
      names.insert(is_own ? names.begin() : names.end(), name);
    } else {
      const auto line =
          fmt::format("counted: the {} probe saw {} of {} runs", name, runs, counted_runs.size());
      add_once(is_own ? profile.errors : profile.warnings, line);
    }
  }
  return names;
}

bool engine_reports_counts(const Records& counted_runs) {
  return std::ranges::any_of(counted_runs, [](const RunRecord* record) {
    return record->report && !(record->report->counts.empty() && record->report->shares.empty());
  });
}

// Returns true if the probe saw the device get work.
bool saw_work(const std::string& probe, const Records& counted_runs) {
  return std::ranges::any_of(counted_runs, [&](const RunRecord* record) {
    const ProbeCounts& counts = *find_probe(*record, probe);
    return count_of(counts, "dispatches") > 0 || count_of(counts, "submits") > 0;
  });
}

bool saw_graphs(const Records& counted_runs) {
  return std::ranges::any_of(counted_runs, [](const RunRecord* record) {
    return count_of(*find_probe(*record, "ggml"), "graphs") > 0;
  });
}

// Returns the probe that speaks for the cell's device: its own, or the engine's marks if it made
// any; "" if there is none.
std::string choose_device_probe(const CellFacts& facts, const std::vector<std::string>& probes,
                                const Records& counted_runs) {
  if (holds(probes, facts.device)) return facts.device;
  const bool has_marks =
      holds(probes, k_engine_marks) && !find_devices(k_engine_marks, counted_runs).empty();
  return has_marks ? std::string(k_engine_marks) : "";
}

// Returns the base names ("dispatches") of this probe's counts that have a metric, in the order of
// metrics. Other counts of probes, such as polls, are not used.
std::vector<std::string> find_count_bases(const std::string& probe, const Records& counted_runs) {
  std::set<std::string> counted_bases;
  if (probe == "ggml" && !saw_graphs(counted_runs)) return {};  // its zeros would say nothing
  if (counts_a_device(probe)) counted_bases.insert(k_device_bases.begin(), k_device_bases.end());
  for (const RunRecord* record : counted_runs) {
    const ProbeCounts* counts = find_probe(*record, probe);
    if (counts == nullptr) continue;
    for (const auto& [name, count] : counts->counts) counted_bases.insert(name);
  }
  // Probes count more than is gated (waits, polls); only counts with a metric are used.
  std::vector<std::string> bases;
  for (const std::string& base : unit::count_bases()) {
    if (counted_bases.contains(base)) bases.push_back(base);
  }
  return bases;
}

// Adds a warning if two sources of one metric disagree. The second source never becomes a metric.
void cross_check(const Measurement& first, const Measurement& second, Profile& profile) {
  const auto first_value = first.value(), second_value = second.value();
  if (first_value && second_value && *first_value == *second_value) return;
  const auto value_text = [&](const std::optional<double>& value) {
    return value ? unit::show(first.metric, *value) : "nothing";
  };
  add_once(profile.warnings,
           fmt::format("{}: {} counted {}, {} says {}", first.metric.name, first.source,
                       value_text(first_value), second.source, value_text(second_value)));
}

// Returns true if this source may count calls of a library (cuBLAS) as one dispatch each, while the
// probe counts the kernels that the library runs.
bool may_count_library_calls(const Measurement& measurement, const Profile& profile) {
  const std::string& base = measurement.metric.base;
  return (base == "dispatches" || base == "submits" || base == "copies") &&
         std::ranges::any_of(profile.metrics, [](const auto& item) {
           return item.second.metric.base == "cublas_calls" && item.second.value().value_or(0) > 0;
         });
}

// Adds a measurement, or compares it with the one that the profile has, and warns if they differ.
// A probe's count replaces the engine's own.
void add_metric(const Measurement& measurement, Profile& profile) {
  const std::string name = measurement.metric.name;
  const bool nothing_to_check =
      !profile.metrics.contains(name) || may_count_library_calls(measurement, profile);
  if (only_repeats_other_probe(measurement.source) && nothing_to_check) return;
  const auto [entry, is_first] = profile.metrics.try_emplace(name, measurement);
  if (is_first) return;
  const bool replaces_existing =
      counts_from_outside(measurement.source) && !counts_from_outside(entry->second.source);
  Measurement other = measurement;
  if (replaces_existing) std::swap(entry->second, other);
  cross_check(entry->second, other, profile);
}

// Names a measurement after the role of its processes, if its probe has one.
Measurement of_role(Measurement measurement, std::string_view probe) {
  const std::string_view role = role_of_probe(probe);
  if (!role.empty())
    measurement.metric.name = unit::role_metric_name(role, measurement.metric.name);
  return measurement;
}

// Fits each count of one probe over the lengths of the runs (a rate per token and a fixed part),
// and adds them as metrics.
void add_probe_counts(const CellFacts& facts, const std::string& probe, const Records& counted_runs,
                      Profile& profile) {
  for (const std::string& base : find_count_bases(probe, counted_runs)) {
    CountSeries series{base, probe, {}};
    bool is_any_counted = false;
    for (const RunRecord* record : counted_runs) {
      const ProbeCounts* counts = find_probe(*record, probe);
      const std::int64_t count = counts == nullptr ? 0 : count_of(*counts, base);
      series.points.push_back({run_length(*record, facts.sweep), count});
      is_any_counted = is_any_counted || count != 0;
    }
    // A probe of another device that saw nothing does not speak about this one.
    if (!is_any_counted && counts_a_device(probe) && probe != facts.device) continue;
    const Fit fit = fit_counts(series, actual_sweep(facts, counted_runs));
    for (const Measurement& measurement : fit.metrics) {
      add_metric(of_role(measurement, probe), profile);
    }
    if (only_repeats_other_probe(probe)) continue;
    for (const std::string& note : fit.notes) add_once(profile.warnings, note);
  }
}

// Returns the counts of every name in one of the probe's tables.
KernelSeries collect_series(const CellFacts& facts, const std::string& probe,
                            const Records& counted_runs,
                            std::map<std::string, std::int64_t> ProbeCounts::*table) {
  KernelSeries series{run_lengths(counted_runs, facts.sweep), {}};
  for (std::size_t run = 0; run < counted_runs.size(); ++run) {
    for (const auto& [name, count] : find_probe(*counted_runs[run], probe)->*table) {
      add_count(series.counts[name], run, count);
    }
  }
  return series;
}

// Adds how often each kernel runs per token or prefill, unless the profile has kernels.
// Overlapping requests have none: they meet in other batches each time.
void add_kernels(const CellFacts& facts, const std::string& probe, const Records& counted_runs,
                 Profile& profile) {
  if (actual_sweep(facts, counted_runs) == Sweep::overlapping) return;
  const KernelSeries series = collect_series(facts, probe, counted_runs, &ProbeCounts::kernels);
  if (series.counts.empty() || profile.kernels) return;
  const bool has_all_names = std::ranges::all_of(counted_runs, [&](const RunRecord* record) {
    const ProbeCounts& counts = *find_probe(*record, probe);
    return counts.kernels.empty() || counts.kernels_named;
  });
  KernelFit fit = fit_kernels(series, facts.sweep);
  fit.set.has_names = has_all_names && facts.kernels_gated;
  profile.kernels = std::move(fit.set);
  for (const std::string& note : fit.notes) add_once(profile.warnings, note);
}

// Adds the compiled code that the kernels ran, by hash, with its workgroups and the compiler's
// costs. Does nothing unless the kernels have names.
void add_codes(const CellFacts& facts, const std::string& probe, const Records& counted_runs,
               Profile& profile) {
  if (!profile.kernels || !profile.kernels->has_names) return;
  const auto fit_counts_by_code = [&](auto counts_by_code) -> std::optional<KernelSet> {
    const KernelSeries series = collect_series(facts, probe, counted_runs, counts_by_code);
    if (series.counts.empty()) return std::nullopt;
    KernelSet set = fit_kernels(series, facts.sweep).set;
    set.has_names = true;
    return set;
  };
  profile.codes = fit_counts_by_code(&ProbeCounts::codes);
  profile.code_groups = fit_counts_by_code(&ProbeCounts::code_groups);
  if (!profile.codes) return;
  std::set<std::string> used_hashes;
  for (const auto& [key, calls] : profile.codes->counts) used_hashes.insert(hash_of_code(key));
  for (const RunRecord* record : counted_runs) {
    const ProbeCounts& counts = *find_probe(*record, probe);
    if (!profile.compiler.empty() && !counts.compiler.empty() &&
        profile.compiler != counts.compiler) {  // possible in a run that was resumed
      add_once(profile.warnings, fmt::format("kernels were compiled by {}, then by {}, whose "
                                             "figures count",
                                             profile.compiler, counts.compiler));
      for (auto& [hash, code] : profile.code_facts) code.costs.clear();
    }
    for (const auto& [hash, code] : counts.code_facts) {
      if (!used_hashes.contains(hash)) continue;
      // One process may have failed to compile code that another one compiled.
      CodeFacts& facts_of_code = profile.code_facts[hash];
      if (facts_of_code.costs.empty()) facts_of_code = code;
    }
    if (!counts.compiler.empty()) profile.compiler = counts.compiler;
  }
  add_kernel_costs(profile);
}

// Adds functions to those that the profile has.
void add_functions(KernelSet set, Profile& profile) {
  if (profile.functions) set.counts.merge(profile.functions->counts);
  profile.functions = std::move(set);
}

// Adds how often the engine reads a few bytes back from the device, per token or prefill, by name.
// Such reads make it wait.
void add_read_backs(const CellFacts& facts, const std::string& probe, const Records& counted_runs,
                    Profile& profile) {
  const Sweep sweep = actual_sweep(facts, counted_runs);
  const bool counts_reads =
      find_probe(*counted_runs.front(), probe)->counts.contains("small_read_backs");
  if (!counts_reads || sweep == Sweep::none || requests_share_batches(sweep) ||
      collect_lengths(counted_runs, facts.sweep).size() < 2) {
    return;
  }
  add_functions(
      fit_calls(collect_series(facts, probe, counted_runs, &ProbeCounts::functions), facts.sweep),
      profile);
}

// Returns the metric that the engine declares by that name, or else the one that weir knows.
std::optional<unit::Metric> find_count_metric(const EngineReport& report, const std::string& name) {
  const unit::Metric* declared = look_up(report.count_metrics, name);
  return declared != nullptr ? *declared : unit::find_metric(name);
}

// Returns the engine's counters that it cannot count, grouped by reason: "a, b: no counter". Taken
// from the first run that has some; "" if none has.
std::string uncounted_text(const Records& counted_runs) {
  const RunRecord* const* record = find_first(counted_runs, [](const RunRecord* candidate) {
    return candidate->report && !candidate->report->uncounted.empty();
  });
  if (record == nullptr) return "";
  std::map<std::string, std::vector<std::string>> metrics;
  for (const auto& [metric, reason] : (*record)->report->uncounted) {
    metrics[reason].push_back(metric);
  }
  return text::join(collect<std::string>(metrics,
                                         [](const auto& entry) {
                                           return fmt::format("{}: {}", text::join(entry.second),
                                                              entry.first);
                                         }),
                    "; ");
}

// One of the engine's own counters, with a number of each run that reports it.
struct OwnCounter {
  unit::Metric metric;
  std::vector<Rational> counted, timed;
  bool is_share = false;  // a mean over tokens, or a number of a load
};
using OwnCounters = std::map<std::string, OwnCounter>;

// Adds what one run reports to each counter's list `numbers` (counted or timed). Shares are left
// out without `with_shares`, or if nobody declares their metric.
void add_own_numbers(const RunRecord& run, bool with_shares,
                     std::vector<Rational> OwnCounter::*numbers, OwnCounters& counters) {
  const EngineReport& report = *run.report;
  for (const auto& [name, count] : report.counts) {
    OwnCounter& counter = counters[name];
    counter.metric = find_count_metric(report, name)
                         .value_or(unit::custom_metric(name, unit::Kind::count, unit::Unit::count,
                                                       unit::Better::lower));
    (counter.*numbers).emplace_back(count);
  }
  for (const auto& [name, share] : report.shares) {
    const auto metric = find_count_metric(report, name);
    if (!with_shares || !metric) continue;
    OwnCounter& counter = counters[name];
    counter.metric = *metric;
    counter.is_share = true;
    (counter.*numbers).push_back(share);
  }
}

// Collects the counters that the engine reports itself. Shares come from the longest counted runs
// alone; timed runs of servers are left out, as their load differs.
OwnCounters collect_own_counters(const Records& counted_runs, const Records& timed_runs) {
  OwnCounters counters;
  std::int64_t longest = 0;
  for (const RunRecord* run : counted_runs) longest = std::max(longest, run->parameters.tokens);
  for (const RunRecord* run : counted_runs) {
    if (run->report)
      add_own_numbers(*run, run->parameters.tokens == longest, &OwnCounter::counted, counters);
  }
  for (const RunRecord* run : timed_runs) {
    if (run->report && !run->report->requests)
      add_own_numbers(*run, /*with_shares=*/true, &OwnCounter::timed, counters);
  }
  // A counter that no counted run reports is not one of the counted pass.
  std::erase_if(counters, [](const auto& item) { return item.second.counted.empty(); });
  return counters;
}

bool are_all_equal(const std::vector<Rational>& numbers) {
  return std::ranges::adjacent_find(numbers, std::not_equal_to()) == numbers.end();
}

// Returns true if a timed run was asked for the same as some counted run.
bool has_same_request(const Records& counted_runs, const RunRecord& timed_run) {
  const auto request = [](const RunRecord& run) {
    return std::tuple(run.parameters.prompt_tokens, run.parameters.tokens, run.parameters.depth);
  };
  return std::ranges::any_of(counted_runs, [&](const RunRecord* counted_run) {
    return request(*counted_run) == request(timed_run);
  });
}

// Returns "dispatches/token differs between runs of one build: 30 in 5, 90 in 4", at most six
// numbers.
std::string differing_runs_text(const unit::Metric& metric, const std::vector<Rational>& numbers) {
  constexpr std::size_t k_max_numbers = 6;
  std::map<Rational, std::size_t> runs;
  for (const Rational& number : numbers) ++runs[number];
  std::vector<std::string> parts;
  for (const auto& [number, run_count] : runs) {
    if (parts.size() == k_max_numbers) {
      parts.emplace_back("…");
      break;
    }
    parts.push_back(fmt::format("{} in {}", number.str(), run_count));
  }
  return fmt::format("{} differs between runs of one build: {}", unit::display_name(metric),
                     text::join(parts));
}

// Adds the engine's own counters, which are per token or prefill already. They are exact if all
// runs agree, timed runs of the same request too; else samples with a warning.
void add_own_counts(const CellFacts& facts, const Records& counted_runs, const Records& timed_runs,
                    Profile& profile) {
  const bool is_overlapping = actual_sweep(facts, counted_runs) == Sweep::overlapping;
  const bool is_same_request =
      !timed_runs.empty() && has_same_request(counted_runs, *timed_runs.front());
  const bool uses_timed = !requests_share_batches(facts.sweep);
  for (auto& [name, counter] : collect_own_counters(counted_runs, timed_runs)) {
    std::vector<Rational> numbers = counter.counted;
    if (uses_timed && (is_same_request || !are_all_equal(counter.timed)))
      numbers.insert(numbers.end(), counter.timed.begin(), counter.timed.end());
    const bool is_exact = are_all_equal(numbers) && !(counter.is_share && is_overlapping);
    Measurement measurement =
        is_exact ? exact_measurement(counter.metric, facts.engine_source, numbers.front())
                 : varying_measurement(counter.metric, facts.engine_source,
                                       collect<double>(numbers, &Rational::value));
    if (!are_all_equal(numbers) && !is_overlapping) {
      const std::string note = differing_runs_text(counter.metric, numbers);
      measurement.warnings.push_back(note);
      add_once(profile.warnings, note);
    }
    if (!counter.is_share && counter.counted.size() < counted_runs.size()) {
      measurement.warnings.push_back(fmt::format("{}: reported by {} of {} counted runs", name,
                                                 counter.counted.size(), counted_runs.size()));
    }
    // A probe that agrees with the engine saw the counted runs alone.
    Measurement* probed = look_up(profile.metrics, name);
    if (probed != nullptr && !is_exact && are_all_equal(counter.counted) &&
        probed->exact == counter.counted.front()) {
      measurement.source = probed->source;
      *probed = std::move(measurement);
      continue;
    }
    add_metric(measurement, profile);
  }
}

// Sets the class and name of the device that the probes saw. Several devices form a class of their
// own, as their shares of the work depend on all of them.
void set_device(const CellFacts& facts, const Records& counted_runs, Profile& profile) {
  const std::vector<ProbedDevice> devices = find_api_devices(facts.device, counted_runs);
  if (devices.empty()) return;
  const auto classes = collect<std::string>(devices, &ProbedDevice::device_class);
  const auto names = collect<std::string>(devices, &ProbedDevice::name);
  Provenance& provenance = profile.provenance;
  if (devices.size() == 1) {
    provenance.probed_device_class = classes.front();
    provenance.probed_device_name = names.front();
  }
  if (provenance.device_class.empty()) {
    provenance.device_class = classes.size() == 1
                                  ? classes.front()
                                  : fmt::format("{}-multi-{}-{}", facts.device, classes.size(),
                                                short_hash(text::join(classes)));
  }
  if (provenance.device_name.empty()) provenance.device_name = text::join(names, " + ");
}

// Checks that the runs generated different numbers of tokens, over which counts can be fitted.
// Returns false with an error if not; warns if they stopped early or report no tokens.
bool check_lengths(const CellFacts& facts, const Records& counted_runs, Profile& profile) {
  if (!varies_token_count(facts.sweep)) return true;
  std::set<std::int64_t> requested_lengths;
  const std::set<std::int64_t> generated = collect_lengths(counted_runs, facts.sweep);
  bool has_stopped_early = false, has_unreported = false;
  for (const RunRecord* record : counted_runs) {
    const bool reports_tokens = record->report && record->report->generated_tokens.has_value();
    requested_lengths.insert(record->parameters.tokens);
    has_stopped_early = has_stopped_early || (reports_tokens && *record->report->generated_tokens <
                                                                    record->parameters.tokens);
    has_unreported = has_unreported || !reports_tokens;
  }
  if (has_stopped_early && generated.size() < requested_lengths.size()) {
    profile.errors.push_back(fmt::format(
        "counted: asked for {} tokens, generated {}: lengths that do not differ cannot be fitted; "
        "have the engine go on where it would stop (llama.cpp: --ignore-eos; Agave, which stops "
        "after six equal tokens: --repeat-penalty 2)",
        fmt::join(requested_lengths, ", "), fmt::join(generated, ", ")));
    return false;
  }
  if (has_stopped_early) {
    add_once(profile.warnings,
             fmt::format("counted: asked for {} tokens, generated {}; fitted over those generated",
                         fmt::join(requested_lengths, ", "), fmt::join(generated, ", ")));
  }
  if (has_unreported) {
    add_once(profile.warnings,
             "the engine does not report how many tokens it made: counts are fitted over those "
             "asked for");
  }
  return true;
}

}  // namespace

const ProbeCounts* find_probe(const RunRecord& record, std::string_view name) {
  return find_first(record.probes, [&](const ProbeCounts& probe) { return probe.probe == name; });
}

std::int64_t count_of(const ProbeCounts& probe, const std::string& base) {
  return look_up(probe.counts, base, 0);
}

// Returns the devices that a probe saw, each device class once, sorted by class.
std::vector<ProbedDevice> find_devices(std::string_view probe, const Records& counted_runs) {
  std::vector<ProbedDevice> devices;
  std::set<std::string_view> classes;
  for (const RunRecord* record : counted_runs) {
    const ProbeCounts* counts = find_probe(*record, probe);
    if (counts == nullptr) continue;
    for (const ProbedDevice& device : counts->devices) {
      if (classes.insert(device.device_class).second) devices.push_back(device);
    }
  }
  std::ranges::sort(devices, {}, &ProbedDevice::device_class);
  return devices;
}

std::vector<ProbedDevice> find_api_devices(std::string_view api, const Records& counted_runs) {
  std::vector<ProbedDevice> devices = find_devices(api, counted_runs);
  // The class of a CPU is known already, by more than a name.
  if (!devices.empty() || api == "cpu") return devices;
  devices = find_devices(k_engine_marks, counted_runs);
  std::erase_if(devices, [&](const ProbedDevice& device) { return device.api != api; });
  return devices;
}

bool has_counts(const Profile& profile) {
  return std::ranges::any_of(profile.metrics, [](const auto& item) {
    return item.second.metric.kind == unit::Kind::count;
  });
}

// Returns the number that counts are fitted over: tokens, tokens of all repeats, or repeats.
std::int64_t run_length(const RunRecord& record, Sweep sweep) {
  const std::int64_t tokens = record.parameters.tokens, repeats = record.parameters.repeats;
  const auto generated = record.report ? record.report->generated_tokens : std::nullopt;
  const bool by_tokens = varies_token_count(sweep) || (sweep == Sweep::none && tokens > 0);
  std::int64_t length = repeats;
  if (by_tokens) length = generated.value_or(tokens);
  if (requests_share_batches(sweep)) length = generated.value_or(tokens) * repeats;
  return std::max<std::int64_t>(1, length);
}

RunLengths run_lengths(const Records& counted_runs, Sweep sweep) {
  return RunLengths(collect<std::int64_t>(
      counted_runs, [&](const RunRecord* record) { return run_length(*record, sweep); }));
}

Sweep actual_sweep(const CellFacts& facts, const Records& counted_runs) {
  const bool all_held = std::ranges::all_of(
      counted_runs, [](const RunRecord* record) { return record->held.has_value(); });
  return facts.sweep == Sweep::burst && !all_held ? Sweep::overlapping : facts.sweep;
}

std::set<std::int64_t> collect_lengths(const Records& counted_runs, Sweep sweep) {
  std::set<std::int64_t> lengths;
  for (const RunRecord* record : counted_runs) lengths.insert(run_length(*record, sweep));
  return lengths;
}

// Adds the counts of all probes and of the engine, the kernels, the device and the placement.
void add_counted(const CellFacts& facts, const Records& counted_runs, const Records& timed_runs,
                 bool is_counted_otherwise, Profile& profile) {
  for (const RunRecord* record : counted_runs) {
    for (const ProbeCounts& probe : record->probes) {
      for (const std::string& warning : probe.warnings) {
        // Some warnings already name the probe and the process.
        const std::string prefix = probe.probe + " probe";
        add_once(profile.warnings,
                 warning.starts_with(prefix) ? warning : fmt::format("{}: {}", prefix, warning));
      }
    }
  }
  const std::size_t errors_before = profile.errors.size();
  const std::vector<std::string> probes = find_complete_probes(facts, counted_runs, profile);
  if (!check_lengths(facts, counted_runs, profile) || profile.errors.size() > errors_before) return;
  set_device(facts, counted_runs, profile);
  for (const std::string& probe : probes) {
    if (counts_a_device(probe) && engine_reports_counts(counted_runs) &&
        !saw_work(probe, counted_runs)) {
      add_once(profile.warnings,
               fmt::format("the {} probe saw no work: the engine's own counters are taken", probe));
      continue;
    }
    add_probe_counts(facts, probe, counted_runs, profile);
    if (counts_a_device(probe) || probe == k_engine_marks)
      add_kernels(facts, probe, counted_runs, profile);
    if (counts_a_device(probe) && !profile.codes) add_codes(facts, probe, counted_runs, profile);
    if (probe == facts.device) add_read_backs(facts, probe, counted_runs, profile);
  }
  add_own_counts(facts, counted_runs, timed_runs, profile);
  // The engine counted by itself although no probe was expected to.
  if (has_counts(profile)) profile.counts_skip_reason.reset();
  const bool device_probed = std::ranges::any_of(probes, counts_a_device);
  if (!device_probed) add_op_kernels(facts, counted_runs, profile);
  add_graph_ops(facts, counted_runs, profile);
  check_graphs(facts, counted_runs, profile);
  set_placement(facts, choose_device_probe(facts, probes, counted_runs), counted_runs, profile);

  if (holds(probes, "ggml") && !saw_graphs(counted_runs)) {
    const std::string reason =
        "the ggml probe saw no graph: the engine does not load ggml as a library of its own";
    // On the CPU nothing else counts. An engine with ggml built in is no fault of the run; if a
    // baseline has counts, their absence is an error there.
    if (facts.device == "cpu" && !has_counts(profile)) profile.counts_skip_reason = reason;
    add_once(profile.warnings, reason);
  }
  if (holds(probes, k_engine_marks) && find_devices(k_engine_marks, counted_runs).empty()) {
    add_once(profile.warnings,
             "the engine marked nothing: it is not linked with weir's instrument library, or marks "
             "no work");
  }
  const std::string uncounted = uncounted_text(counted_runs);
  const bool is_error = !has_counts(profile) && !profile.counts_skip_reason &&
                        profile.placement.state != Placement::State::ran_elsewhere;
  if (is_error && is_counted_otherwise && facts.device == "cpu") {
    // Its system calls or instructions are judged. Counts that a baseline has are missed there.
    add_once(profile.warnings, "not counted: the engine reports no counts of its own");
  } else if (is_error) {
    profile.errors.push_back(fmt::format(
        "counted: nothing was counted: no probe saw the engine open {} and {}", facts.device,
        uncounted.empty() ? "it reports no counts of its own. See weir doctor."
                          : fmt::format("its own counts are of no use: {}", uncounted)));
  } else if (!uncounted.empty()) {
    add_once(profile.warnings, "not counted: " + uncounted);
  }
}

// Adds the CPU instructions per token or prefill, and the functions that took them. They were
// counted in runs of their own.
void add_instructions(const CellFacts& facts, const Records& counted_runs, Profile& profile) {
  constexpr const char* k_base = "instructions";
  const auto& first = counted_runs.front()->probes;
  const std::string source = first.empty() ? "" : first.front().probe;
  CountSeries series{k_base, source, {}};
  for (const RunRecord* record : counted_runs) {
    const ProbeCounts* probe = find_probe(*record, source);
    if (probe == nullptr) {
      profile.errors.push_back("instructions: not every process was counted, or not the same way");
      return;
    }
    for (const std::string& warning : probe->warnings) {
      add_once(profile.warnings, fmt::format("instructions: {}", warning));
    }
    series.points.push_back({run_length(*record, facts.sweep), count_of(*probe, k_base)});
  }
  Fit fit = fit_counts(series, facts.sweep);
  for (Measurement& measurement : fit.metrics) {
    // Replaces an engine's own count of that name.
    profile.metrics.insert_or_assign(measurement.metric.name, std::move(measurement));
  }
  if (facts.sweep == Sweep::none || collect_lengths(counted_runs, facts.sweep).size() < 2) return;
  const KernelSeries functions =
      collect_series(facts, source, counted_runs, &ProbeCounts::functions);
  if (!functions.counts.empty()) add_functions(fit_functions(functions, facts.sweep), profile);
}

// Adds the counts of a probe that has runs of its own, each fitted by `fit_series`, and its calls
// by name. Returns false if it missed a run.
bool add_own_pass(const CellFacts& facts, const std::string& source, const Records& counted_runs,
                  const std::function<Fit(CountSeries)>& fit_series, Profile& profile) {
  const auto has_probe = [&](const RunRecord* record) {
    return find_probe(*record, source) != nullptr;
  };
  if (!std::ranges::all_of(counted_runs, has_probe)) return false;
  for (const std::string& base : unit::count_bases()) {
    if (!find_probe(*counted_runs.front(), source)->counts.contains(base)) continue;
    CountSeries series{base, source, {}};
    for (const RunRecord* record : counted_runs) {
      series.points.push_back(
          {run_length(*record, facts.sweep), count_of(*find_probe(*record, source), base)});
    }
    Fit fit = fit_series(std::move(series));
    for (Measurement& measurement : fit.metrics) add_metric(measurement, profile);
    for (const std::string& note : fit.notes) add_once(profile.warnings, note);
  }
  const KernelSeries calls = collect_series(facts, source, counted_runs, &ProbeCounts::functions);
  const std::set<std::int64_t> lengths = collect_lengths(counted_runs, facts.sweep);
  const bool has_no_length = facts.sweep == Sweep::none && lengths == std::set<std::int64_t>{1};
  const bool has_lengths = facts.sweep != Sweep::none && lengths.size() > 1;
  if (has_no_length || has_lengths) add_functions(fit_calls(calls, facts.sweep), profile);
  return true;
}

// Adds system calls, threads and other counts of the host, which were taken in runs of their own.
// Counts that depend on scheduling become samples.
void add_host(const CellFacts& facts, const Records& counted_runs, Profile& profile) {
  const std::string source = "host";
  const bool single_threaded = std::ranges::all_of(counted_runs, [&](const RunRecord* record) {
    const ProbeCounts* counts = find_probe(*record, source);
    return counts != nullptr && count_of(*counts, "threads_peak") == 1;
  });

  const auto is_steady = [&](const std::string& base) {
    constexpr std::string_view k_steady[] = {"threads_peak", "allowed_cpus", "system_calls",
                                             "opened_files", "read_bytes",   "mapped_file_bytes"};
    return holds(k_steady, base) || (single_threaded && base.starts_with("futex_"));
  };
  const auto fit = [&](const CountSeries& series) {
    return is_steady(series.base) ? fit_counts(series, facts.sweep)
                                  : fit_sampled(series, facts.sweep);
  };
  if (!add_own_pass(facts, source, counted_runs, fit, profile))
    profile.errors.emplace_back("system calls: not every process was counted");
}

// Adds calls of Python's functions. Those of other threads depend on how threads meet, and those
// within imports on addresses.
void add_python(const CellFacts& facts, const Records& counted_runs, Profile& profile) {
  const auto fit = [&](const CountSeries& series) {
    const std::string& base = series.base;
    if (base == "python_thread_calls") return fit_sampled(series, facts.sweep);
    if (base == "import_calls") return fit_imports(series, facts.sweep);
    const bool is_of_all = base == "host_calls";
    return is_of_all || base == "costly_thread_calls"
               ? fit_unsteady(series, facts.sweep, /*takes_near_lines=*/is_of_all)
               : fit_counts(series, facts.sweep);
  };
  if (!add_own_pass(facts, k_python, counted_runs, fit, profile))
    profile.errors.emplace_back("Python's calls: not every process was counted");
}

}  // namespace weir::profile
