// The counted pass: counts over lengths, kernels, the device that was used.

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/profile/passes.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::profile {
namespace {

// What every probe of a device API counts: 0 is then a fact, and a metric.
constexpr std::array<std::string_view, 5> k_device_bases{"dispatches", "barriers", "syncs",
                                                         "copies", "submits"};

bool of_a_device(std::string_view probe) { return unit::find_device_api(probe) != nullptr; }

// One that counts what another probe does, once more.
bool is_check(std::string_view probe) {
  return std::ranges::any_of(unit::device_apis(), [&](const unit::DeviceApi& api) {
    return !api.check.empty() && api.check == probe;
  });
}

// Names of the probes that saw every counted run, the device's own first. One that missed a run can
// not be fitted; that it did is an error where it is the device's own.
std::vector<std::string> probes_of(const CellFacts& facts, const Records& counted,
                                   Profile& profile) {
  std::map<std::string, std::size_t> seen;
  for (const RunRecord* record : counted) {
    for (const ProbeCounts& probe : record->probes) ++seen[probe.probe];
  }
  std::vector<std::string> names;
  for (const auto& [name, times] : seen) {
    if (times == counted.size()) {
      names.insert(name == facts.device ? names.begin() : names.end(), name);
    } else {
      const auto line =
          fmt::format("counted: the {} probe saw {} of {} runs", name, times, counted.size());
      add_once(name == facts.device ? profile.errors : profile.warnings, line);
    }
  }
  return names;
}

bool reports_counts(const Records& counted) {
  return std::ranges::any_of(counted, [](const RunRecord* record) {
    return record->report && !(record->report->counts.empty() && record->report->shares.empty());
  });
}

// The device that the probe sees was given work.
bool saw_work(const std::string& probe, const Records& counted) {
  return std::ranges::any_of(counted, [&](const RunRecord* record) {
    const ProbeCounts& counts = *find_probe(*record, probe);
    return count_of(counts, "dispatches") > 0 || count_of(counts, "submits") > 0;
  });
}

bool saw_graphs(const Records& counted) {
  return std::ranges::any_of(counted, [](const RunRecord* record) {
    return count_of(*find_probe(*record, "ggml"), "graphs") > 0;
  });
}

// What tells of the cell's device: its own probe, or the engine's marks if it made any.
std::string device_probe(const CellFacts& facts, const std::vector<std::string>& probes,
                         const Records& counted) {
  if (holds(probes, facts.device)) return facts.device;
  const bool marked = holds(probes, k_marks) && !devices_of(k_marks, counted).empty();
  return marked ? std::string(k_marks) : "";
}

std::vector<std::string> bases_of(const std::string& probe, const Records& counted) {
  std::set<std::string> seen;
  if (probe == "ggml" && !saw_graphs(counted)) return {};  // its zeros would say nothing
  if (of_a_device(probe)) seen.insert(k_device_bases.begin(), k_device_bases.end());
  for (const RunRecord* record : counted) {
    for (const auto& [base, count] : find_probe(*record, probe)->counts) seen.insert(base);
  }
  // Probes keep more than is gated (waits, polls): only what has a place among the metrics goes on.
  std::vector<std::string> bases;
  for (const std::string& known : unit::count_bases()) {
    if (seen.contains(known)) bases.push_back(known);
  }
  return bases;
}

// A second source of a number that is known already is a cross-check, never a second metric.
void cross_check(const Measurement& first, const Measurement& second, Profile& profile) {
  const auto one = first.value(), other = second.value();
  if (one && other && *one == *other) return;
  add_once(profile.warnings,
           fmt::format("{}: {} counted {}, {} says {}", first.metric.name, first.source,
                       one ? unit::show(first.metric, *one) : "nothing", second.source,
                       other ? unit::show(second.metric, *other) : "nothing"));
}

// A library's call is one dispatch, to whoever sees it from outside; the kernels that the library
// runs for it are dispatches of their own.
bool counts_otherwise(const Measurement& measured, const Profile& profile) {
  const std::string& base = measured.metric.base;
  return (base == "dispatches" || base == "submits" || base == "copies") &&
         std::ranges::any_of(profile.metrics, [](const auto& item) {
           return item.second.metric.base == "cublas_calls" && item.second.value().value_or(0) > 0;
         });
}

void add_metric(const Measurement& measured, Profile& profile) {
  const std::string name = measured.metric.name;
  const bool unheld = !profile.metrics.contains(name) || counts_otherwise(measured, profile);
  if (is_check(measured.source) && unheld) return;
  const auto [known, is_first] = profile.metrics.try_emplace(name, measured);
  if (!is_first) cross_check(known->second, measured, profile);
}

void add_probe_counts(const CellFacts& facts, const std::string& probe, const Records& counted,
                      Profile& profile) {
  for (const std::string& base : bases_of(probe, counted)) {
    CountSeries series{base, probe, {}};
    bool any = false;
    for (const RunRecord* record : counted) {
      const std::int64_t count = count_of(*find_probe(*record, probe), base);
      series.points.push_back({length_of(*record, facts.sweep), count});
      any = any || count != 0;
    }
    // A probe of another device that saw nothing has nothing to say about this one.
    if (!any && of_a_device(probe) && probe != facts.device) continue;
    const Fit fit = fit_counts(series, sweep_seen(facts, counted));
    for (const Measurement& measured : fit.metrics) add_metric(measured, profile);
    if (is_check(probe)) continue;
    for (const std::string& note : fit.notes) add_once(profile.warnings, note);
  }
}

// What each run counted of every name in one of the probe's tables; 0 where a run did not have it.
KernelSeries series_of(const CellFacts& facts, const std::string& probe, const Records& counted,
                       std::map<std::string, std::int64_t> ProbeCounts::*table) {
  KernelSeries series;
  for (const RunRecord* record : counted) {
    for (const auto& [name, count] : find_probe(*record, probe)->*table) series[name];
  }
  for (auto& [name, points] : series) {
    for (const RunRecord* record : counted) {
      const auto& counts = find_probe(*record, probe)->*table;
      points.push_back({length_of(*record, facts.sweep), look_up(counts, name, 0)});
    }
  }
  return series;
}

void add_kernels(const CellFacts& facts, const std::string& probe, const Records& counted,
                 Profile& profile) {
  // Which kernels run depends on how requests happened to meet in a batch.
  if (sweep_seen(facts, counted) == Sweep::overlapping) return;
  const KernelSeries series = series_of(facts, probe, counted, &ProbeCounts::kernels);
  if (series.empty() || profile.kernels) return;
  const bool named = std::ranges::all_of(counted, [&](const RunRecord* record) {
    const ProbeCounts& counts = *find_probe(*record, probe);
    return counts.kernels.empty() || counts.kernels_named;
  });
  KernelFit fit = fit_kernels(series, facts.sweep);
  fit.set.named = named && facts.kernels_gated;
  profile.kernels = std::move(fit.set);
  for (const std::string& note : fit.notes) add_once(profile.warnings, note);
}

// What code the kernels ran. That groups grow with the context is no doubt about anything.
void add_codes(const CellFacts& facts, const std::string& probe, const Records& counted,
               Profile& profile) {
  if (!profile.kernels || !profile.kernels->named) return;
  const auto fitted = [&](auto table) -> std::optional<KernelSet> {
    const KernelSeries series = series_of(facts, probe, counted, table);
    if (series.empty()) return std::nullopt;
    KernelSet set = fit_kernels(series, facts.sweep).set;
    set.named = true;
    return set;
  };
  profile.codes = fitted(&ProbeCounts::codes);
  profile.code_groups = fitted(&ProbeCounts::code_groups);
  if (!profile.codes) return;
  std::set<std::string> used;
  for (const auto& [key, calls] : profile.codes->counts) used.insert(hash_of_code(key));
  for (const RunRecord* record : counted) {
    const ProbeCounts& counts = *find_probe(*record, probe);
    if (!profile.compiler.empty() && !counts.compiler.empty() &&
        profile.compiler != counts.compiler) {  // of a run that was resumed
      add_once(profile.warnings, fmt::format("kernels were compiled by {}, then by {}, whose "
                                             "figures count",
                                             profile.compiler, counts.compiler));
      for (auto& [hash, code] : profile.code_facts) code.costs.clear();
    }
    for (const auto& [hash, code] : counts.code_facts) {
      if (!used.contains(hash)) continue;
      // One process may have failed to compile what another one did.
      CodeFacts& known = profile.code_facts[hash];
      if (known.costs.empty()) known = code;
    }
    if (!counts.compiler.empty()) profile.compiler = counts.compiler;
  }
  add_kernel_costs(profile);
}

// What the engine declares or weir knows by that name.
std::optional<unit::Metric> metric_named(const EngineReport& report, const std::string& name) {
  const unit::Metric* declared = look_up(report.count_metrics, name);
  return declared != nullptr ? *declared : unit::find_metric(name);
}

// The engine's own counters that are not counted, those with one reason together, as the first run
// that has some gives it; "" where there are none.
std::string uncounted_text(const Records& counted) {
  const RunRecord* const* record = first_of(
      counted, [](const RunRecord* one) { return one->report && !one->report->uncounted.empty(); });
  if (record == nullptr) return "";
  std::map<std::string, std::vector<std::string>> metrics;
  for (const auto& [metric, reason] : (*record)->report->uncounted) {
    metrics[reason].push_back(metric);
  }
  return text::join(
      collect<std::string>(
          metrics,
          [](const auto& one) { return fmt::format("{}: {}", text::join(one.second), one.first); }),
      "; ");
}

// The engine's own counters: already per token or per prefill, so all runs should say the same.
void add_own_counts(const CellFacts& facts, const Records& counted, Profile& profile) {
  std::map<std::string, std::pair<unit::Metric, std::vector<std::int64_t>>> seen;
  for (const RunRecord* record : counted) {
    if (!record->report) continue;
    for (const auto& [name, count] : record->report->counts) {
      auto& [metric, counts] = seen[name];
      metric = metric_named(*record->report, name)
                   .value_or(unit::custom_metric(name, unit::Kind::count, unit::Unit::count,
                                                 unit::Better::lower));
      counts.push_back(count);
    }
  }
  for (auto& [name, entry] : seen) {
    auto& [metric, counts] = entry;
    const auto [low, high] = std::ranges::minmax_element(counts);
    Measurement measured =
        *low == *high ? exact_measurement(metric, facts.times_source, counts.front())
                      : varying_measurement(metric, facts.times_source,
                                            std::vector<double>(counts.begin(), counts.end()));
    if (*low != *high) {
      const auto note =
          fmt::format("{}: {} runs disagree ({} to {})", name, counts.size(), *low, *high);
      measured.warnings.push_back(note);
      add_once(profile.warnings, note);
    }
    if (counts.size() < counted.size()) {
      measured.warnings.push_back(fmt::format("{}: reported by {} of {} counted runs", name,
                                              counts.size(), counted.size()));
    }
    add_metric(measured, profile);
  }
}

// Counts that are shares, of what an engine printed for each token or a server counted of each
// load. Runs of several lengths differ: the longest are taken.
void add_shares(const CellFacts& facts, const Records& counted, Profile& profile) {
  std::int64_t longest = 0;
  for (const RunRecord* record : counted) longest = std::max(longest, record->asked.tokens);
  std::map<std::string, std::pair<std::optional<unit::Metric>, std::vector<Rational>>> seen;
  for (const RunRecord* record : counted) {
    if (!record->report || record->asked.tokens < longest) continue;
    for (const auto& [name, share] : record->report->shares) {
      auto& [metric, shares] = seen[name];
      metric = metric_named(*record->report, name);
      shares.push_back(share);
    }
  }
  for (const auto& [name, entry] : seen) {
    const auto& [metric, shares] = entry;
    if (!metric) continue;
    const bool same = std::ranges::adjacent_find(shares, std::not_equal_to<>()) == shares.end();
    const auto values =
        collect<double>(shares, [](const Rational& share) { return share.value(); });
    add_metric(same && sweep_seen(facts, counted) != Sweep::overlapping
                   ? exact_measurement(*metric, facts.times_source, shares.front())
                   : varying_measurement(*metric, facts.times_source, values),
               profile);
  }
}

void set_device(const CellFacts& facts, const Records& counted, Profile& profile) {
  const std::vector<DeviceSeen> devices = devices_of_api(facts.device, counted);
  if (devices.empty()) return;
  const auto classes = collect<std::string>(devices, &DeviceSeen::device_class);
  const auto names = collect<std::string>(devices, &DeviceSeen::name);
  Provenance& from = profile.provenance;
  if (devices.size() == 1) {
    from.seen_class = classes.front();
    from.seen_name = names.front();
  }
  if (from.device_class.empty()) {
    // Work spread over unlike devices depends on all of them, which needs a class of its own.
    from.device_class = classes.size() == 1
                            ? classes.front()
                            : fmt::format("{}-multi-{}-{}", facts.device, classes.size(),
                                          short_hash(text::join(classes)));
  }
  if (from.device_name.empty()) from.device_name = text::join(names, " + ");
}

// Counts of a pass in which the engine stopped early are a line only while the lengths differ.
bool lengths_hold(const CellFacts& facts, const Records& counted, Profile& profile) {
  if (!over_tokens(facts.sweep)) return true;
  std::set<std::int64_t> asked;
  const std::set<std::int64_t> generated = lengths_of(counted, facts.sweep);
  bool fewer = false, unsaid = false;
  for (const RunRecord* record : counted) {
    const bool said = record->report && record->report->generated_tokens.has_value();
    asked.insert(record->asked.tokens);
    fewer = fewer || (said && *record->report->generated_tokens < record->asked.tokens);
    unsaid = unsaid || !said;
  }
  if (fewer && generated.size() < asked.size()) {
    profile.errors.push_back(fmt::format(
        "counted: asked for {} tokens, generated {}: lengths that do not differ cannot be fitted; "
        "have the engine go on where it would stop (llama.cpp: --ignore-eos; Agave, which stops "
        "after six equal tokens: --repeat-penalty 2)",
        fmt::join(asked, ", "), fmt::join(generated, ", ")));
    return false;
  }
  if (fewer) {
    add_once(profile.warnings,
             fmt::format("counted: asked for {} tokens, generated {}; fitted over those generated",
                         fmt::join(asked, ", "), fmt::join(generated, ", ")));
  }
  if (unsaid) {
    add_once(profile.warnings,
             "the engine does not report how many tokens it made: counts are fitted over those "
             "asked for");
  }
  return true;
}

}  // namespace

const ProbeCounts* find_probe(const RunRecord& record, std::string_view name) {
  return first_of(record.probes, [&](const ProbeCounts& probe) { return probe.probe == name; });
}

std::int64_t count_of(const ProbeCounts& probe, const std::string& base) {
  return look_up(probe.counts, base, 0);
}

std::vector<DeviceSeen> devices_of(std::string_view probe, const Records& counted) {
  std::vector<DeviceSeen> devices;
  for (const RunRecord* record : counted) {
    const ProbeCounts* counts = find_probe(*record, probe);
    if (counts == nullptr) continue;
    for (const DeviceSeen& device : counts->devices) {
      const bool known =
          std::ranges::count(devices, device.device_class, &DeviceSeen::device_class) > 0;
      if (!known) devices.push_back(device);
    }
  }
  std::ranges::sort(devices, {}, &DeviceSeen::device_class);
  return devices;
}

std::vector<DeviceSeen> devices_of_api(std::string_view api, const Records& counted) {
  std::vector<DeviceSeen> devices = devices_of(api, counted);
  // Of a processor the class is known already, and by more than a name.
  if (!devices.empty() || api == "cpu") return devices;
  devices = devices_of(k_marks, counted);
  std::erase_if(devices, [&](const DeviceSeen& device) { return device.api != api; });
  return devices;
}

bool has_counts(const Profile& profile) {
  return std::ranges::any_of(profile.metrics, [](const auto& item) {
    return item.second.metric.kind == unit::Kind::count;
  });
}

std::int64_t length_of(const RunRecord& record, Sweep sweep) {
  const std::int64_t tokens = record.asked.tokens, repeats = record.asked.repeats;
  const auto generated = record.report ? record.report->generated_tokens : std::nullopt;
  const bool of_tokens = over_tokens(sweep) || (sweep == Sweep::none && tokens > 0);
  const std::int64_t length = shares_batches(sweep) ? generated.value_or(tokens) * repeats
                              : of_tokens           ? generated.value_or(tokens)
                                                    : repeats;
  return std::max<std::int64_t>(1, length);
}

Sweep sweep_seen(const CellFacts& facts, const Records& counted) {
  const bool all_held = std::ranges::all_of(
      counted, [](const RunRecord* record) { return record->held.has_value(); });
  return facts.sweep == Sweep::held && !all_held ? Sweep::overlapping : facts.sweep;
}

std::set<std::int64_t> lengths_of(const Records& counted, Sweep sweep) {
  std::set<std::int64_t> lengths;
  for (const RunRecord* record : counted) lengths.insert(length_of(*record, sweep));
  return lengths;
}

void add_counted(const CellFacts& facts, const Records& counted, Profile& profile) {
  for (const RunRecord* record : counted) {
    for (const ProbeCounts& probe : record->probes) {
      for (const std::string& warning : probe.warnings) {
        // Some say already which probe it was, and in which process.
        const std::string who = probe.probe + " probe";
        add_once(profile.warnings,
                 warning.starts_with(who) ? warning : fmt::format("{}: {}", who, warning));
      }
    }
  }
  const std::size_t errors_before = profile.errors.size();
  const std::vector<std::string> probes = probes_of(facts, counted, profile);
  if (!lengths_hold(facts, counted, profile) || profile.errors.size() > errors_before) return;
  set_device(facts, counted, profile);
  for (const std::string& probe : probes) {
    if (of_a_device(probe) && reports_counts(counted) && !saw_work(probe, counted)) {
      add_once(profile.warnings,
               fmt::format("the {} probe saw no work: the engine's own counters are taken", probe));
      continue;
    }
    add_probe_counts(facts, probe, counted, profile);
    if (of_a_device(probe) || probe == k_marks) add_kernels(facts, probe, counted, profile);
    if (of_a_device(probe) && !profile.codes) add_codes(facts, probe, counted, profile);
  }
  add_own_counts(facts, counted, profile);
  add_shares(facts, counted, profile);
  // No probe was expected to count, and the engine did so itself.
  if (has_counts(profile)) profile.counts_skipped.reset();
  const bool device_probed = std::ranges::any_of(probes, of_a_device);
  if (!device_probed) add_op_kernels(facts, counted, profile);
  add_graph_ops(facts, counted, profile);
  check_graphs(facts, counted, profile);
  place(facts, device_probe(facts, probes, counted), counted, profile);

  if (holds(probes, "ggml") && !saw_graphs(counted)) {
    const std::string why =
        "the ggml probe saw no graph: the engine does not load ggml as a library of its own";
    // On the CPU nothing else counts. An engine that has ggml inside it is no fault of the run; if
    // a baseline holds counts, their absence is still an error there.
    if (facts.device == "cpu" && !has_counts(profile)) profile.counts_skipped = why;
    add_once(profile.warnings, why);
  }
  if (holds(probes, k_marks) && devices_of(k_marks, counted).empty()) {
    add_once(profile.warnings,
             "the engine marked nothing: it is not linked with weir's instrument library, or marks "
             "no work");
  }
  const std::string uncounted = uncounted_text(counted);
  const bool is_error = !has_counts(profile) && !profile.counts_skipped &&
                        profile.placement.state != Placement::State::refuted;
  if (is_error) {
    profile.errors.push_back(fmt::format(
        "counted: nothing was counted: no probe saw the engine open {} and {}", facts.device,
        uncounted.empty() ? "it reports no counts of its own. See weir doctor."
                          : fmt::format("its own counts are of no use: {}", uncounted)));
  } else if (!uncounted.empty()) {
    add_once(profile.warnings, "not counted: " + uncounted);
  }
}

// Instructions of a cell's CPU work, and the functions that took them: processes of their own
// within the counted pass.
void add_instructions(const CellFacts& facts, const Records& counted, Profile& profile) {
  constexpr const char* k_base = "instructions";
  const auto& first = counted.front()->probes;
  const std::string source = first.empty() ? "" : first.front().probe;
  CountSeries series{k_base, source, {}};
  for (const RunRecord* record : counted) {
    const ProbeCounts* probe = find_probe(*record, source);
    if (probe == nullptr) {
      profile.errors.push_back("instructions: not every process was counted, or not the same way");
      return;
    }
    for (const std::string& warning : probe->warnings) {
      add_once(profile.warnings, fmt::format("instructions: {}", warning));
    }
    series.points.push_back({length_of(*record, facts.sweep), count_of(*probe, k_base)});
  }
  Fit fit = fit_counts(series, facts.sweep);
  for (Measurement& measured : fit.metrics) {
    // An engine's own count of that name is another's: this one stands.
    profile.metrics.insert_or_assign(measured.metric.name, std::move(measured));
  }
  if (facts.sweep == Sweep::none || lengths_of(counted, facts.sweep).size() < 2) return;
  const KernelSeries functions = series_of(facts, source, counted, &ProbeCounts::functions);
  if (!functions.empty()) profile.functions = fit_functions(functions, facts.sweep);
}

void add_host(const CellFacts& facts, const Records& counted, Profile& profile) {
  const std::string source = "host";
  const auto sees = [&](const RunRecord* record) { return find_probe(*record, source) != nullptr; };
  if (!std::ranges::all_of(counted, sees)) {
    profile.errors.emplace_back("system calls: not every process was counted");
    return;
  }
  const auto threads = [&](const RunRecord* record) {
    return count_of(*find_probe(*record, source), "threads_peak");
  };
  const bool alone = std::ranges::all_of(counted, [&](auto* one) { return threads(one) == 1; });
  for (const std::string& base : unit::count_bases()) {
    if (!find_probe(*counted.front(), source)->counts.contains(base)) continue;
    CountSeries series{base, source, {}};
    for (const RunRecord* record : counted) {
      series.points.push_back(
          {length_of(*record, facts.sweep), count_of(*find_probe(*record, source), base)});
    }
    // How threads meet, what a heap looked like and how long something takes is in the others.
    const bool steady = base == "threads_peak" || base == "allowed_cpus" ||
                        base == "system_calls" || base == "opened_files" || base == "read_bytes" ||
                        base == "mapped_file_bytes" || (alone && base.starts_with("futex_"));
    Fit fit = steady ? fit_counts(series, facts.sweep) : fit_sampled(series, facts.sweep);
    for (Measurement& measured : fit.metrics) add_metric(measured, profile);
    for (const std::string& note : fit.notes) add_once(profile.warnings, note);
  }
  const KernelSeries calls = series_of(facts, source, counted, &ProbeCounts::functions);
  if (facts.sweep == Sweep::none || lengths_of(counted, facts.sweep).size() < 2) return;
  KernelSet set = fit_calls(calls, facts.sweep);
  if (profile.functions) set.counts.merge(profile.functions->counts);
  profile.functions = std::move(set);
}

}  // namespace weir::profile
