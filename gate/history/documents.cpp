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

// Of what may be unknown.
std::string kept_text(const std::string& text) { return text.empty() ? "" : stored_name(text); }

Place place_of(const profile::Provenance& from) {
  return {kept_text(from.device_class), kept_text(from.device_name), kept_text(from.machine_class),
          kept_text(from.machine_name), kept_text(from.engine_build.value_or(""))};
}

std::optional<Point> point_of(const std::string& cell, const profile::Measurement& measured,
                              const Place& place) {
  const std::optional<double> value = measured.value();
  if (!value || !std::isfinite(*value)) return std::nullopt;
  Point point{cell,
              metric_of(measured.metric),
              measured.nature,
              kept_text(measured.source),
              *value,
              measured.exact,
              {},
              place};
  point.metric.name = stored_name(point.metric.name);
  for (const double sample : measured.samples) {
    if (std::isfinite(sample) && point.samples.size() < k_most_samples) {
      point.samples.push_back(sample);
    }
  }
  return point;
}

std::string device_of(const std::string& device_class) {
  const std::string device = unit::device_without_version(device_class);
  return device.empty() ? device_class : device;
}

// Sessions of `after` that `before` has not: one and the same twice is two.
std::vector<const baseline::Session*> fresh_sessions(const BaselineChange& change,
                                                     const std::string& machine_class) {
  const auto* before = change.before ? look_up(change.before->sessions, machine_class) : nullptr;
  auto known = before == nullptr ? std::vector<baseline::Session>() : *before;
  std::vector<const baseline::Session*> fresh;
  for (const baseline::Session& one : change.after.sessions.at(machine_class)) {
    const auto same = std::ranges::find_if(known, [&](const baseline::Session& two) {
      return two.engine_build == one.engine_build && two.samples == one.samples;
    });
    if (same == known.end()) {
      fresh.push_back(&one);
    } else {
      known.erase(same);
    }
  }
  return fresh;
}

// Samples of all sessions that are new: a commit has one point a metric.
void add_sessions(const BaselineChange& change, const std::string& machine_class, Run& run) {
  Place place{"", "", kept_text(machine_class), "", ""};
  std::map<std::string, std::vector<double>> samples;
  for (const baseline::Session* one : fresh_sessions(change, machine_class)) {
    place.engine_build = kept_text(one->engine_build);
    for (const auto& [metric, values] : one->samples) {
      samples[metric].insert(samples[metric].end(), values.begin(), values.end());
    }
  }
  for (auto& [name, values] : samples) {
    profile::Measurement measured;
    measured.metric.name = name;
    measured.samples = std::move(values);
    if (auto point = point_of(stored_name(change.after.cell), measured, place)) {
      point->metric = metric_named(stored_name(name));
      run.points.push_back(std::move(*point));
    }
  }
}

std::optional<std::string> kept_or_nothing(const std::optional<std::string>& text) {
  return text && !text->empty() ? std::optional(stored_name(*text)) : std::nullopt;
}

// The folders of runs begin with their time: "20261120-093015".
std::optional<double> time_in_name(std::string_view run) {
  const std::string_view name = run.substr(run.find_last_of('/') + 1);
  if (name.size() < 15 || name[8] != '-') return std::nullopt;
  return parse_time(fmt::format("{}-{}-{}T{}:{}:{}Z", name.substr(0, 4), name.substr(4, 2),
                                name.substr(6, 2), name.substr(9, 2), name.substr(11, 2),
                                name.substr(13, 2)));
}

// All but the id, the machine and the version. `time`: as the document says.
Result<RunFacts> facts_of(const GivenFacts& given, std::optional<std::string> commit,
                          std::optional<double> time, const Around& around) {
  RunFacts facts;
  facts.project = given.project;
  facts.commit = kept_or_nothing(given.commit ? given.commit : std::move(commit));
  facts.branch = kept_or_nothing(given.branch);
  if (facts.commit && around.time_of_commit) {
    facts.commit_time = around.time_of_commit(*facts.commit);
  }
  if (given.time) time = given.time;
  if (!time) time = facts.commit_time;
  if (!time) time = around.otherwise;
  if (!time) return fail(Code::usage, "it has no time of measurement: name one with --time");
  facts.time = *time;
  if (given.machine) facts.machine = stored_name(*given.machine);
  return facts;
}

constexpr std::size_t k_most_missing_named = 5;

}  // namespace

std::string machine_of(std::string_view machine_name) {
  const std::size_t comma = machine_name.rfind(',');
  if (comma == std::string_view::npos) return kept_text(std::string(machine_name));
  return stored_name(text::trim(machine_name.substr(0, comma)));
}

Run run_of(RunFacts facts, std::span<const profile::Profile> profiles) {
  Run run{std::move(facts), {}};
  for (const profile::Profile& profile : profiles) {
    const Place place = place_of(profile.provenance);
    const std::string cell = stored_name(profile.cell.str());
    for (const auto& [name, measured] : profile.metrics) {
      if (auto point = point_of(cell, measured, place)) run.points.push_back(std::move(*point));
    }
  }
  return run;
}

Run run_of(RunFacts facts, const verdict::GateVerdict& verdict) {
  Run run{std::move(facts), {}};
  for (const verdict::CellVerdict& cell : verdict.cells) {
    const Place place{kept_text(cell.device_class), kept_text(cell.device_name),
                      kept_text(cell.machine_class), kept_text(cell.machine_name), ""};
    for (const verdict::Judgement& one : cell.metrics()) {
      profile::Measurement measured;
      measured.metric = one.metric;
      measured.nature = one.nature;
      measured.source = one.source;
      if (one.current_text) measured.exact = Rational::parse(*one.current_text);
      const bool exact = one.nature == profile::Nature::exact && one.current &&
                         *one.current == std::floor(*one.current) && std::fabs(*one.current) < 1e15;
      if (!measured.exact && exact) {
        measured.exact = Rational(static_cast<std::int64_t>(*one.current));
      }
      if (!measured.exact && one.current) measured.samples = {*one.current};
      if (auto point = point_of(stored_name(cell.cell.str()), measured, place)) {
        point->samples.clear();  // it is a middle, no sample
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
  return parse_json(stored.text).and_then(reading<verdict::GateVerdict>("verdict"));
}

std::set<std::string> judged_parts(const StoredVerdict& verdict) {
  std::set<std::string> parts;
  const auto gate = verdict_of(verdict);
  if (!gate) return parts;
  for (const verdict::CellVerdict& cell : gate->cells) {
    const auto add = [&](verdict::Outcome outcome, const std::string& part) {
      if (!verdict::judges(outcome)) return;
      parts.insert(cell.cell.str());
      if (!part.empty()) parts.insert(cell.cell.str() + ": " + part);
    };
    const auto is_gone = [](const auto& one) { return one.metric.name == verdict::k_cell_metric; };
    if (std::ranges::any_of(cell.judgements, is_gone))
      continue;  // it failed since it was not there
    add(cell.verdict, "");
    for (const verdict::Judgement& one : cell.judgements) add(one.verdict, one.metric.name);
  }
  return parts;
}

std::optional<std::string> miss_parts(const std::set<std::string>& before, StoredVerdict& verdict) {
  std::vector<std::string> missing;
  std::ranges::set_difference(before, judged_parts(verdict), std::back_inserter(missing));
  if (missing.empty()) return std::nullopt;
  verdict.partial = true;
  const std::size_t all = missing.size();
  missing.resize(std::min(all, k_most_missing_named));
  std::string why = "judged before, and not in this one: " + text::printable(text::join(missing));
  if (all > missing.size()) why += fmt::format(" and {} more", all - missing.size());
  if (auto gate = verdict_of(verdict)) {
    verdict::leave_unjudged(*gate, why);
    verdict.outcome = verdict::to_string(gate->verdict);
    verdict.text = dump_json(write_fields(*gate));
    verdict.id = hash_hex(verdict.text);
  } else {
    verdict.outcome = verdict::to_string(verdict::Outcome::error);
  }
  return why;
}

std::vector<Run> runs_of(const RunFacts& facts, std::span<const BaselineChange> changes) {
  std::map<std::string, Run> by_machine;  // "counts\n…" or "times\n…" and what it goes by
  const auto run_at = [&](const std::string& kind, const std::string& what) -> Run& {
    const auto [at, fresh] = by_machine.try_emplace(kind + "\n" + what);
    RunFacts& own = at->second.facts;
    if (fresh) {
      own = facts;
      own.source = Source::baseline;
      if (own.machine.empty()) own.machine = kept_text(kind == "counts" ? device_of(what) : what);
      own.id = hash_hex(fmt::format("baseline\n{}\n{}\n{}", facts.commit.value_or(""), kind, what));
    }
    return at->second;
  };
  for (const BaselineChange& change : changes) {
    const baseline::Baseline& after = change.after;
    const Place place{kept_text(after.device_class), kept_text(after.device_name), "", "", ""};
    for (const auto& [name, measured] : after.counts) {
      if (auto point = point_of(stored_name(after.cell), measured, place)) {
        run_at("counts", after.device_class).points.push_back(std::move(*point));
      }
    }
    for (const auto& [machine_class, sessions] : after.sessions) {
      Run run;
      add_sessions(change, machine_class, run);
      if (run.points.empty()) continue;
      Run& into = run_at("times", machine_class);
      for (Point& point : run.points) {
        point.place.device_class = place.device_class;
        point.place.device_name = place.device_name;
        into.points.push_back(std::move(point));
      }
    }
  }
  std::vector<Run> runs;
  for (auto& [what, run] : by_machine) {
    if (!run.points.empty()) runs.push_back(std::move(run));
  }
  return runs;
}

Result<std::vector<profile::Profile>> profiles_from_json(const Json& json) {
  JsonReader read(json, "profiles");
  if (read.string("schema") != k_profiles_schema) {
    return fail(Code::data, "its schema is not \"{}\"", k_profiles_schema);
  }
  const Json& items = read.array("profiles");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (items.size() > k_most_profiles) {
    return fail(Code::data, "more than {} profiles", k_most_profiles);
  }
  std::vector<profile::Profile> profiles;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto one = read_fields<profile::Profile>(items[i], "profile");
    if (!one) {
      return tl::unexpected(with_context(fmt::format("profiles[{}]", i), std::move(one).error()));
    }
    profiles.push_back(*std::move(one));
  }
  return profiles;
}

Result<Batch> batch_of(const verdict::GateVerdict& verdict, const GivenFacts& given,
                       const Around& around) {
  WEIR_TRY(RunFacts facts,
           facts_of(given, verdict.commit, time_in_name(verdict.run.value_or("")), around));
  facts.source = Source::verdict;
  for (const verdict::CellVerdict& cell : verdict.cells) {
    if (facts.machine.empty()) facts.machine = machine_of(cell.machine_name);
  }
  facts.weir_version = kept_or_nothing(verdict.weir_version).value_or("");
  facts.id = hash_hex(fmt::format("verdict\n{}", dump_json(write_fields(verdict))));
  Batch batch;
  batch.verdicts.push_back(stored_verdict(facts, facts.id, verdict, around.now));
  batch.runs.push_back(run_of(std::move(facts), verdict));
  return batch;
}

Result<Batch> batch_of(const std::vector<profile::Profile>& profiles, const GivenFacts& given,
                       const Around& around) {
  WEIR_TRY(RunFacts facts, facts_of(given, std::nullopt, std::nullopt, around));
  facts.source = Source::run;
  std::string text = "profiles\n";
  for (const profile::Profile& one : profiles) {
    if (facts.machine.empty()) facts.machine = machine_of(one.provenance.machine_name);
    text += dump_json(write_fields(one)) + "\n";
  }
  // Two measurements of the same counts are the same document: what was said of them tells them
  // apart, but for the time that was not said.
  text += fmt::format("{}\n{}\n{}\n{}", facts.commit.value_or(""), facts.branch.value_or(""),
                      facts.machine, given.time ? fmt::format("{}", *given.time) : "");
  facts.id = hash_hex(text);
  Batch batch;
  batch.runs.push_back(run_of(std::move(facts), profiles));
  return batch;
}

}  // namespace weir::history
