// Turns verdicts, profiles and stored baselines into runs of a history.
#include "gate/history/documents.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/unit/device_api.hpp"
#include "gate/verdict/judging.hpp"
#include "gate/verdict/removed.hpp"

namespace weir::history {

namespace {

// A text as a stored name; "" stays "" (not known).
std::string stored_or_empty(const std::string& text) {
  return text.empty() ? "" : stored_name(text);
}

Place make_place(const profile::Provenance& from) {
  return {stored_or_empty(from.device_class), stored_or_empty(from.device_name),
          stored_or_empty(from.machine_class), stored_or_empty(from.machine_name),
          stored_or_empty(from.engine_build.value_or(""))};
}

// Returns a point of the history with the numbers of `measured`; nullopt if it has no finite value.
// At most `k_max_samples` samples are kept.
std::optional<Point> make_point(const std::string& cell, const profile::Measurement& measured,
                                const Place& place) {
  const std::optional<double> value = measured.value();
  if (!value || !std::isfinite(*value)) return std::nullopt;
  Point point{cell,
              metric_of(measured.metric),
              measured.nature,
              stored_or_empty(measured.source),
              *value,
              measured.exact,
              {},
              place};
  point.metric.name = stored_name(point.metric.name);
  for (const double sample : measured.samples) {
    if (std::isfinite(sample) && point.samples.size() < k_max_samples) {
      point.samples.push_back(sample);
    }
  }
  return point;
}

// The device without the version of its driver: "vulkan-10005-0".
std::string device_name(const std::string& device_class) {
  const std::string device = unit::device_without_version(device_class);
  return device.empty() ? device_class : device;
}

// Returns the stored runs (sessions) of a machine class in `change.after` that `change.before`
// lacks. Equal ones count as often as they occur.
std::vector<const baseline::Session*> find_new_sessions(const BaselineChange& change,
                                                        const std::string& machine_class) {
  const auto* before = change.before ? look_up(change.before->sessions, machine_class) : nullptr;
  auto old_sessions = before == nullptr ? std::vector<baseline::Session>() : *before;
  std::vector<const baseline::Session*> new_sessions;
  for (const baseline::Session& session : change.after.sessions.at(machine_class)) {
    const auto same = std::ranges::find_if(old_sessions, [&](const baseline::Session& old) {
      return old.engine_build == session.engine_build && old.samples == session.samples;
    });
    if (same == old_sessions.end()) {
      new_sessions.push_back(&session);
    } else {
      old_sessions.erase(same);
    }
  }
  return new_sessions;
}

// Adds the samples of all new stored runs (sessions) of a machine class to `run`, together: a
// commit has one point a metric.
void add_sessions(const BaselineChange& change, const std::string& machine_class, Run& run) {
  Place place;
  place.machine_class = stored_or_empty(machine_class);
  std::map<std::string, std::vector<double>> samples;
  for (const baseline::Session* session : find_new_sessions(change, machine_class)) {
    place.engine_build = stored_or_empty(session->engine_build);
    for (const auto& [metric, values] : session->samples) {
      samples[metric].insert(samples[metric].end(), values.begin(), values.end());
    }
  }
  for (auto& [name, values] : samples) {
    profile::Measurement measured;
    measured.metric.name = name;
    measured.samples = std::move(values);
    if (auto point = make_point(stored_name(change.after.cell), measured, place)) {
      point->metric = metric_named(stored_name(name));
      run.points.push_back(std::move(*point));
    }
  }
}

std::optional<std::string> stored_or_nothing(const std::optional<std::string>& text) {
  return text && !text->empty() ? std::optional(stored_name(*text)) : std::nullopt;
}

// Returns the time at the beginning of a run folder's name: "20261120-093015".
std::optional<double> parse_time_in_name(std::string_view run) {
  const std::string_view name = run.substr(run.find_last_of('/') + 1);
  if (name.size() < 15 || name[8] != '-') return std::nullopt;
  return parse_time(fmt::format("{}-{}-{}T{}:{}:{}Z", name.substr(0, 4), name.substr(4, 2),
                                name.substr(6, 2), name.substr(9, 2), name.substr(11, 2),
                                name.substr(13, 2)));
}

// Returns the facts of a run, except its id and version. Its time is the sender's, else the
// document's (`time`), else the commit's, else the default. Fails if there is none.
Result<RunFacts> make_facts(const SenderFacts& sender, std::optional<std::string> commit,
                            std::optional<double> time, const TimeContext& time_context) {
  RunFacts facts;
  facts.project = sender.project;
  facts.commit = stored_or_nothing(sender.commit ? sender.commit : std::move(commit));
  facts.branch = stored_or_nothing(sender.branch);
  if (facts.commit && time_context.time_of_commit) {
    facts.commit_time = time_context.time_of_commit(*facts.commit);
  }
  if (sender.time) time = sender.time;
  if (!time) time = facts.commit_time;
  if (!time) time = time_context.default_time;
  if (!time) return fail(Code::usage, "it has no time of measurement: name one with --time");
  facts.time = *time;
  if (sender.machine) facts.machine = stored_name(*sender.machine);
  return facts;
}

constexpr std::size_t k_max_missing_listed = 5;
constexpr std::size_t k_max_verdict_values = 500'000;  // of its JSON

}  // namespace

std::string series_machine(std::string_view machine_name) {
  const std::size_t comma = machine_name.rfind(',');
  if (comma == std::string_view::npos) return stored_or_empty(std::string(machine_name));
  return stored_name(text::trim(machine_name.substr(0, comma)));
}

Run make_run(RunFacts facts, std::span<const profile::Profile> profiles) {
  Run run{std::move(facts), {}};
  for (const profile::Profile& profile : profiles) {
    const Place place = make_place(profile.provenance);
    const std::string cell = stored_name(profile.cell.str());
    for (const auto& [name, measured] : profile.metrics) {
      if (auto point = make_point(cell, measured, place)) run.points.push_back(std::move(*point));
    }
  }
  return run;
}

// Returns a run with the numbers of a verdict: a point for each metric of each cell, without
// samples.
Run make_run(RunFacts facts, const verdict::GateVerdict& verdict) {
  Run run{std::move(facts), {}};
  for (const verdict::CellVerdict& cell : verdict.cells) {
    const Place place{stored_or_empty(cell.device_class), stored_or_empty(cell.device_name),
                      stored_or_empty(cell.machine_class), stored_or_empty(cell.machine_name), ""};
    for (const verdict::Judgement& metric : cell.metrics()) {
      profile::Measurement measured;
      measured.metric = metric.metric;
      measured.nature = metric.nature;
      measured.source = metric.source;
      if (metric.current_text) measured.exact = Rational::parse(*metric.current_text);
      const bool exact = metric.nature == profile::Nature::exact && metric.current &&
                         *metric.current == std::floor(*metric.current) &&
                         std::fabs(*metric.current) < 1e15;
      if (!measured.exact && exact) {
        measured.exact = Rational(static_cast<std::int64_t>(*metric.current));
      }
      if (!measured.exact && metric.current) measured.samples = {*metric.current};
      if (auto point = make_point(stored_name(cell.cell.str()), measured, place)) {
        point->samples.clear();  // the value is a median, no sample
        run.points.push_back(std::move(*point));
      }
    }
  }
  return run;
}

StoredVerdict stored_verdict(const RunFacts& facts, const std::string& run,
                             const verdict::GateVerdict& verdict, double kept_at) {
  std::string text = dump_json(write_fields(verdict));
  return {facts.project,  hash_hex(text), run,     facts.commit,
          facts.branch,   facts.time,     kept_at, std::string(verdict::to_string(verdict.verdict)),
          std::move(text)};
}

Result<verdict::GateVerdict> verdict_of(const StoredVerdict& stored) {
  return parse_json(stored.text, {.values = k_max_verdict_values})
      .and_then(reading<verdict::GateVerdict>("verdict"));
}

// Returns the parts that a verdict judged: cells, and "CELL: METRIC". Empty if the verdict cannot
// be read.
std::set<std::string> judged_parts(const StoredVerdict& verdict) {
  std::set<std::string> parts;
  const auto gate = verdict_of(verdict);
  if (!gate) return parts;
  for (const verdict::CellVerdict& cell : gate->cells) {
    const auto add = [&](verdict::Outcome outcome, const std::string& part) {
      if (!verdict::is_judged(outcome)) return;
      parts.insert(cell.cell.str());
      if (!part.empty()) parts.insert(cell.cell.str() + ": " + part);
    };
    // A removed cell fails because it was not measured, an edited one is an error: that judged
    // nothing of it.
    const auto is_unjudged = [](const auto& judgement) {
      return judgement.metric.name == verdict::k_cell_metric &&
             (judgement.current || judgement.verdict == verdict::Outcome::error);
    };
    if (std::ranges::any_of(cell.judgements, is_unjudged)) continue;
    add(cell.verdict, "");
    for (const verdict::Judgement& judgement : cell.judgements)
      add(judgement.verdict, judgement.metric.name);
  }
  return parts;
}

// Marks a verdict as not judged if it lacks parts that are in `before`, and returns why. Nullopt if
// it lacks none.
std::optional<std::string> note_missing_parts(const std::set<std::string>& before,
                                              StoredVerdict& verdict) {
  std::vector<std::string> missing;
  std::ranges::set_difference(before, judged_parts(verdict), std::back_inserter(missing));
  if (missing.empty()) return std::nullopt;
  verdict.partial = true;
  const std::size_t all = missing.size();
  missing.resize(std::min(all, k_max_missing_listed));
  std::string why = "judged before, and not in this one: " + text::printable(text::join(missing));
  if (all > missing.size()) why += fmt::format(" and {} more", all - missing.size());
  if (auto gate = verdict_of(verdict)) {
    verdict::mark_unjudged(*gate, why);
    verdict.outcome = verdict::to_string(gate->verdict);
    verdict.text = dump_json(write_fields(*gate));
    verdict.id = hash_hex(verdict.text);
  } else {
    verdict.outcome = verdict::to_string(verdict::Outcome::error);
  }
  return why;
}

// Returns the runs that a commit's changes of baselines stand for: one of counts for each device
// class, one of new times for each machine class.
std::vector<Run> make_baseline_runs(const RunFacts& facts,
                                    std::span<const BaselineChange> changes) {
  // By "counts\nDEVICE CLASS" or "times\nMACHINE CLASS".
  std::map<std::string, Run> runs_by_class;
  const auto find_or_add_run = [&](const std::string& kind, const std::string& name) -> Run& {
    const auto [entry, is_new] = runs_by_class.try_emplace(kind + "\n" + name);
    Run& run = entry->second;
    if (!is_new) return run;
    run.facts = facts;
    run.facts.source = Source::baseline;
    if (run.facts.machine.empty()) {
      run.facts.machine = stored_or_empty(kind == "counts" ? device_name(name) : name);
    }
    run.facts.id =
        hash_hex(fmt::format("baseline\n{}\n{}\n{}", facts.commit.value_or(""), kind, name));
    return run;
  };
  for (const BaselineChange& change : changes) {
    const baseline::Baseline& after = change.after;
    const Place place{stored_or_empty(after.device_class), stored_or_empty(after.device_name), "",
                      "", ""};
    for (const auto& [name, measured] : after.counts) {
      if (auto point = make_point(stored_name(after.cell), measured, place)) {
        find_or_add_run("counts", after.device_class).points.push_back(std::move(*point));
      }
    }
    for (const auto& [machine_class, sessions] : after.sessions) {
      Run new_samples;
      add_sessions(change, machine_class, new_samples);
      if (new_samples.points.empty()) continue;
      Run& run = find_or_add_run("times", machine_class);
      for (Point& point : new_samples.points) {
        point.place.device_class = place.device_class;
        point.place.device_name = place.device_name;
        run.points.push_back(std::move(point));
      }
    }
  }
  std::vector<Run> runs;
  for (auto& [name, run] : runs_by_class) {
    if (!run.points.empty()) runs.push_back(std::move(run));
  }
  return runs;
}

// Reads the profiles (measured cells) of a weir.profiles/1 document. Fails if there are too many or
// one is malformed.
Result<std::vector<profile::Profile>> profiles_from_json(const Json& json) {
  JsonReader read(json, "profiles");
  if (read.string("schema") != k_profiles_schema) {
    return fail(Code::data, "its schema is not \"{}\"", k_profiles_schema);
  }
  const Json& items = read.array("profiles");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (items.size() > k_max_profiles) {
    return fail(Code::data, "more than {} profiles", k_max_profiles);
  }
  std::vector<profile::Profile> profiles;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto item = read_fields<profile::Profile>(items[i], "profile");
    if (!item) {
      return tl::unexpected(add_prefix(fmt::format("profiles[{}]", i), std::move(item).error()));
    }
    profiles.push_back(*std::move(item));
  }
  return profiles;
}

// Makes a batch to store from a verdict: the verdict itself, and a run with its numbers.
Result<Batch> make_batch(const verdict::GateVerdict& verdict, const SenderFacts& sender,
                         const TimeContext& time_context) {
  WEIR_TRY(RunFacts facts, make_facts(sender, verdict.commit,
                                      parse_time_in_name(verdict.run.value_or("")), time_context));
  facts.source = Source::verdict;
  for (const verdict::CellVerdict& cell : verdict.cells) {
    if (facts.machine.empty()) facts.machine = series_machine(cell.machine_name);
  }
  facts.weir_version = stored_or_nothing(verdict.weir_version).value_or("");
  facts.id = hash_hex(fmt::format("verdict\n{}", dump_json(write_fields(verdict))));
  Batch batch;
  batch.verdicts.push_back(stored_verdict(facts, facts.id, verdict, time_context.now));
  batch.runs.push_back(make_run(std::move(facts), verdict));
  return batch;
}

// Makes a batch to store from these profiles: one run with a point for each metric of each cell.
Result<Batch> make_batch(const std::vector<profile::Profile>& profiles, const SenderFacts& sender,
                         const TimeContext& time_context) {
  WEIR_TRY(RunFacts facts, make_facts(sender, std::nullopt, std::nullopt, time_context));
  facts.source = Source::run;
  std::string text = "profiles\n";
  for (const profile::Profile& item : profiles) {
    if (facts.machine.empty()) facts.machine = series_machine(item.provenance.machine_name);
    text += dump_json(write_fields(item)) + "\n";
  }
  // Two measurements of the same counts are the same document. The sender's facts keep them apart,
  // except for a time that was not sent.
  text += fmt::format("{}\n{}\n{}\n{}", facts.commit.value_or(""), facts.branch.value_or(""),
                      facts.machine, sender.time ? fmt::format("{}", *sender.time) : "");
  facts.id = hash_hex(text);
  Batch batch;
  batch.runs.push_back(make_run(std::move(facts), profiles));
  return batch;
}

}  // namespace weir::history
