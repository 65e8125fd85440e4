// Joins the runs of all shards into the text of one run.
#include "gate/run/merge.hpp"

#include <limits>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

constexpr std::size_t k_max_cells = 100'000;
constexpr std::size_t k_max_shards = 4096;

struct Shard : ShardRun {
  ShardFacts facts;
};

tl::unexpected<Error> mismatch_error(const ShardRun& shard, const ShardRun& other,
                                     std::string_view what) {
  return fail(Code::usage, "{} and {} were measured with another {}: they are no shards of one run",
              shard.name, other.name, what);
}

// Fails if two shards (parts of a run, from several machines) are not of one run. Plan, weir,
// configuration, base, limits and commit must match.
Result<void> check_same_run(const Shard& shard, const Shard& other) {
  const RunHeader &run_header = shard.run.header, &other_header = other.run.header;
  const ShardFacts &facts = shard.facts, &other_facts = other.facts;
  if (facts.plan != other_facts.plan || facts.cells != other_facts.cells ||
      facts.shards != other_facts.shards) {
    return mismatch_error(shard, other, "plan");
  }
  if (run_header.weir_version != other_header.weir_version)
    return mismatch_error(shard, other, "version of weir");
  if (run_header.config_text != other_header.config_text)
    return mismatch_error(shard, other, "configuration");
  const bool has_base = !run_header.base_cells.empty();
  const bool other_has_base = !other_header.base_cells.empty();
  if (has_base != other_has_base) return mismatch_error(shard, other, "base");
  const auto limits = [](const RunHeader& header) {
    return look_up(header.identity, "limits", "");
  };
  if (limits(run_header) != limits(other_header))
    return mismatch_error(shard, other, "set of limits");
  constexpr std::pair<const char*, const char*> k_extra[] = {{"counts_only", "set of limits"},
                                                             {"rules", "set of limits"},
                                                             {"waivers", "set of limits"},
                                                             {"against", "base"},
                                                             {"source", "commit"},
                                                             {"uncommitted", "commit"}};
  for (const auto& [key, part] : k_extra) {
    Json value = run_header.extra.value(key, Json()),
         other_value = other_header.extra.value(key, Json());
    // The notes on how each machine got the base may differ.
    for (Json* json : {&value, &other_value}) {
      if (!json->is_object()) continue;
      json->erase("notes");
      json->erase("today");
    }
    if (value != other_value) return mismatch_error(shard, other, part);
  }
  return {};
}

// Fails if two shards ran different builds of an engine, of the base or of the candidate.
Result<void> check_builds(const std::vector<Shard>& shards) {
  struct Build {
    std::string name;
    const ShardRun* shard;
  };
  std::map<std::string, Build> first_builds;  // by side and engine
  for (const ShardRun& shard : shards) {
    for (const profile::RunRecord& record : shard.run.records) {
      if (!record.report || !record.report->engine_build) continue;
      const std::string engine = std::string(profile::to_string(record.side)) + " " +
                                 record.cell.substr(0, record.cell.find('/'));
      const std::string& build = *record.report->engine_build;
      const Build& first = first_builds.try_emplace(engine, Build{build, &shard}).first->second;
      if (first.name == build) continue;
      return fail(Code::usage, "{} ran {} of {}, {} ran {}: they are no shards of one run",
                  first.shard->name, text::printable(first.name), text::printable(engine),
                  shard.name, text::printable(build));
    }
  }
  return {};
}

// Returns the run's folder; `name` is that folder or the journal in it.
std::string run_folder(const std::string& name) {
  return sys::file_name_of(name) == k_journal_name ? sys::folder_of(name) : name;
}

// Joins the names of cells, the first five and the number of others.
std::string short_list(std::vector<std::string> cells) {
  constexpr std::size_t k_max_cells_listed = 5;
  if (const std::size_t total = cells.size(); total > k_max_cells_listed) {
    cells.resize(k_max_cells_listed);
    cells.push_back(fmt::format("and {} more", total - k_max_cells_listed));
  }
  return text::join(cells);
}

class Merger {
 public:
  Merger(std::vector<Shard> shards, bool partial) : shards_(std::move(shards)), partial_(partial) {}

  // Returns the text of the joined run's journal.
  Result<std::string> merged_text() {
    WEIR_CHECK(check());
    RunHeader& merged = merged_;
    const RunHeader& first = shards_.front().run.header;
    merged.weir_version = first.weir_version;
    merged.config_file = first.config_file;
    merged.config_text = first.config_text;
    merged.machine = first.machine;
    merged.started_at = first.started_at;
    merged.extra = first.extra;
    ShardFacts plan_facts = shards_.front().facts;
    plan_facts.index = 0;
    merged.extra["shard"] = to_json(plan_facts);
    merged.extra["machines"] = Json::array();
    add_cells(plan_facts);
    std::string identity;
    std::string records;
    bool ended = true;
    for (const Shard& shard : shards_) {
      ended = ended && shard.run.ended;
      for (const char* key : {"against", "rules", "waivers"}) add_notes(shard, key);
      merged.started_at = std::min(merged.started_at, shard.run.header.started_at);
      merged.extra["machines"].push_back(to_json(shard.run.header.machine));
      for (const std::string& note : shard.run.header.notes) {
        if (!holds(merged.notes, note)) merged.notes.push_back(note);
      }
      for (const auto& [what, hash] : shard.run.header.identity) identity += what + hash + "\n";
      add_steps(shard, records);
    }
    merged.identity = {{"shards", short_hash(identity, 16)}};
    const std::string end = ended ? dump_json({{"steps", Json::array()}}) + "\n" : std::string();
    return dump_json(to_json(merged)) + "\n" + records + end;
  }

 private:
  // Fails if shards do not belong together, appear twice, are incomplete or missing.
  Result<void> check() {
    const Shard* previous = nullptr;
    for (const Shard& shard : shards_) {
      const ShardFacts& facts = shard.facts;
      const RunHeader& header = shard.run.header;
      WEIR_CHECK(check_same_run(shards_.front(), shard));
      if (previous != nullptr && previous->facts.index == facts.index) {
        return fail(Code::usage, "{} and {} are both shard {}: {} would count twice",
                    previous->name, shard.name, facts.name(),
                    short_list(facts.cells_of(facts.index)));
      }
      const auto measured = collect<std::string>(
          header.cells, [](const auto& cell_facts) { return cell_facts.cell.str(); });
      if (measured != facts.cells_of(facts.index)) {
        return fail(Code::usage, "{} did not measure the cells of shard {}", shard.name,
                    facts.name());
      }
      if (!header.base_cells.empty() && !shard.run.ended && !partial_) {
        return fail(
            Code::usage,
            "{} was interrupted in shard {}\n  go on with: {} and the options that it was "
            "begun with, or join the others with --partial",
            shard.name, facts.name(),
            resume_command(verb_of_run(header.extra), run_folder(shard.name), header.extra));
      }
      present_shards_.insert(facts.index);
      previous = &shard;
    }
    const ShardFacts& plan_facts = shards_.front().facts;
    for (std::size_t shard = 1; !partial_ && shard <= plan_facts.shards.size(); ++shard) {
      if (present_shards_.contains(shard)) continue;
      return fail(Code::usage,
                  "shard {}/{} is missing: {}\n  measure it, or join the others with --partial",
                  shard, plan_facts.shards.size(), short_list(plan_facts.cells_of(shard)));
    }
    return check_builds(shards_);
  }

  // Adds the plan's cells in order; a cell that no shard measured is unavailable.
  void add_cells(const ShardFacts& plan_facts) {
    const bool has_base = !shards_.front().run.header.base_cells.empty();
    using Place = std::pair<const RunHeader*, std::size_t>;
    std::map<std::string, Place> measured;
    for (const ShardRun& shard : shards_) {
      const RunHeader& header = shard.run.header;
      for (std::size_t i = 0; i < header.cells.size(); ++i) {
        measured[header.cells[i].cell.str()] = {&header, i};
      }
      merged_.unavailable.insert(header.unavailable.begin(), header.unavailable.end());
    }
    for (const std::string& name : plan_facts.cells) {
      cell_places_[name] = merged_.cells.size();
      profile::CellFacts absent;
      absent.cell = *profile::CellKey::parse(name);
      const auto [header, at] = look_up(measured, name, Place());
      merged_.cells.push_back(header != nullptr ? header->cells[at] : absent);
      if (has_base)
        merged_.base_cells.push_back(header != nullptr ? header->base_cells[at] : absent);
      if (header != nullptr) continue;
      merged_.unavailable[name] = "its shard was not measured, or its run is lost";
    }
  }

  // Adds each machine's notes under `key`: on the base, the rules or the waivers.
  void add_notes(const ShardRun& shard, const char* key) {
    const Json& extra = shard.run.header.extra;
    if (!extra.contains(key) || !extra[key].is_object() || !merged_.extra.contains(key)) return;
    const Json notes = extra[key].value("notes", Json::array());
    Json& merged_notes = merged_.extra[key]["notes"];
    if (!merged_notes.is_array()) merged_notes = Json::array();
    for (const Json& note : notes) {
      if (!holds(merged_notes, note)) merged_notes.push_back(note);
    }
  }

  // Adds the shard's steps, and its records to `records`, with their orders shifted.
  void add_steps(const ShardRun& shard, std::string& records) {
    const auto offset = static_cast<std::int64_t>(merged_.steps.size());
    for (Step step : shard.run.header.steps) {
      step.cell = cell_places_.at(shard.run.header.cells[step.cell].cell.str());
      step.order += offset;
      merged_.steps.push_back(step);
    }
    for (profile::RunRecord record : shard.run.records) {
      record.order += offset;
      if (record.start) *record.start += offset;
      records += dump_json(write_fields(record)) + "\n";
    }
  }

  std::vector<Shard> shards_;  // by their numbers
  bool partial_;
  std::set<std::size_t> present_shards_;
  std::map<std::string, std::size_t> cell_places_;
  RunHeader merged_;
};

}  // namespace

std::string ShardFacts::name() const { return fmt::format("{}/{}", index, shards.size()); }

std::vector<std::string> ShardFacts::cells_of(std::size_t shard) const {
  return collect<std::string>(shards.at(shard - 1),
                              [&](std::size_t place) { return cells.at(place); });
}

Json to_json(const ShardFacts& facts) {
  return {{"index", facts.index},
          {"plan", facts.plan},
          {"cells", facts.cells},
          {"shards", facts.shards}};
}

// Reads which part of a split run this is; nullopt if the run is whole. Fails unless each cell of
// the plan is in exactly one shard.
Result<std::optional<ShardFacts>> parse_shard_facts(const Json& extra) {
  if (!extra.is_object() || !extra.contains("shard")) return std::nullopt;
  JsonReader reader(extra["shard"], "shard");
  ShardFacts facts;
  reader("index", facts.index);
  facts.plan = reader.string("plan");
  facts.cells = reader.strings("cells");
  const Json& shards = reader.array("shards");
  reader.check(facts.cells.size() <= k_max_cells, "has too many cells");
  reader.check(shards.size() <= k_max_shards && !shards.empty(), "has too many shards, or none");
  reader.check(facts.index <= shards.size(), "is no shard");
  if (auto problem = reader.problem()) return tl::unexpected(std::move(*problem));
  std::set<std::string> names;
  for (const std::string& name : facts.cells) {
    const bool is_cell = profile::CellKey::parse(name).has_value();
    const bool is_new = names.insert(name).second;
    if (!is_cell || !is_new) {
      return fail(Code::data, "shard: \"{}\" is no cell, or comes twice", text::printable(name));
    }
  }
  constexpr std::size_t k_none = std::numeric_limits<std::size_t>::max();
  std::set<std::size_t> assigned;
  for (const Json& shard : shards) {
    facts.shards.emplace_back();
    for (const Json& place : shard.is_array() ? shard : Json::array()) {
      const std::size_t index = place.is_number_unsigned() ? place.get<std::size_t>() : k_none;
      const bool is_new = assigned.insert(index).second;
      if (index >= facts.cells.size() || !is_new) {
        return fail(Code::data, "shard: a cell is in two shards, or is none of the plan");
      }
      facts.shards.back().push_back(index);
    }
    if (!std::ranges::is_sorted(facts.shards.back())) {
      return fail(Code::data, "shard: its cells are not in the plan's order");
    }
  }
  if (assigned.size() != facts.cells.size()) {
    return fail(Code::data, "shard: some cells of the plan are in no shard");
  }
  return facts;
}

// Joins the runs of shards (parts of one run) into the text of one journal. Fails if they are not
// of one run; `partial` allows missing ones.
Result<std::string> merge(std::vector<ShardRun> shards, bool partial) {
  std::vector<Shard> parsed;
  for (ShardRun& shard : shards) {
    WEIR_TRY(auto facts,
             parse_shard_facts(shard.run.header.extra).map_error(with_prefix(shard.name)));
    if (!facts || facts->index == 0) {
      return fail(Code::usage, "{} is no shard: shards are made by weir run --shard I/N",
                  shard.name);
    }
    parsed.push_back({std::move(shard), *std::move(facts)});
  }
  if (parsed.empty()) return fail(Code::usage, "no runs to join");
  std::ranges::stable_sort(
      parsed, {}, [](const Shard& entry) { return std::tie(entry.facts.index, entry.name); });
  return Merger(std::move(parsed), partial).merged_text();
}

}  // namespace weir::run
