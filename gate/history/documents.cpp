#include "gate/history/documents.hpp"

#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/history/import_run.hpp"
#include "gate/history/iso_time.hpp"

namespace weir::history {
namespace {

std::optional<std::string> kept_or_nothing(const std::optional<std::string>& text) {
  return text && !text->empty() ? std::optional(kept_name(*text)) : std::nullopt;
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
  if (!time) return fail(Code::usage, "nothing in it says when it was measured: --time does");
  facts.time = *time;
  if (given.machine) facts.machine = kept_name(*given.machine);
  return facts;
}

}  // namespace

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
    auto one = profile::profile_from_json(items[i]);
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
  facts.id = hash_hex(fmt::format("verdict\n{}", dump_json(verdict::to_json(verdict))));
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
    text += dump_json(profile::to_json(one)) + "\n";
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
