#include "gate/run/merge.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

constexpr std::size_t k_most_cells = 100'000;
constexpr std::size_t k_most_shards = 4096;

struct Shard : ShardRun {
  ShardFacts facts;
};

tl::unexpected<Error> differs(const ShardRun& one, const ShardRun& other, std::string_view what) {
  return fail(Code::usage, "{} and {} were measured with another {}: they are no shards of one run",
              one.name, other.name, what);
}

// What all shards of one run have alike.
Result<void> check_alike(const Shard& one, const Shard& other) {
  const RunHeader &left = one.run.header, &right = other.run.header;
  const ShardFacts &a = one.facts, &b = other.facts;
  if (a.plan != b.plan || a.cells != b.cells || a.shards != b.shards) {
    return differs(one, other, "plan");
  }
  if (left.weir_version != right.weir_version) return differs(one, other, "version of weir");
  if (left.config_text != right.config_text) return differs(one, other, "configuration");
  if (left.base_cells.empty() != right.base_cells.empty()) return differs(one, other, "base");
  const auto limits = [](const RunHeader& header) {
    return look_up(header.identity, "limits", "");
  };
  if (limits(left) != limits(right)) return differs(one, other, "set of limits");
  constexpr std::pair<const char*, const char*> k_extra[] = {{"counts_only", "set of limits"},
                                                             {"rules", "set of limits"},
                                                             {"allowances", "set of limits"},
                                                             {"against", "base"},
                                                             {"source", "commit"}};
  for (const auto& [key, what] : k_extra) {
    Json x = left.extra.value(key, Json()), y = right.extra.value(key, Json());
    // Each machine tells in its own notes how it came by the base.
    for (Json* json : {&x, &y}) {
      if (!json->is_object()) continue;
      json->erase("notes");
      json->erase("today");
    }
    if (x != y) return differs(one, other, what);
  }
  return {};
}

// The engine builds that a shard saw, by engine.
Result<void> check_builds(const std::vector<Shard>& shards) {
  std::map<std::string, std::pair<std::string, const ShardRun*>> seen;
  for (const ShardRun& shard : shards) {
    for (const profile::RunRecord& record : shard.run.records) {
      if (!record.report || !record.report->engine_build) continue;
      const std::string engine = std::string(profile::to_string(record.side)) + " " +
                                 record.cell.substr(0, record.cell.find('/'));
      const auto [place, fresh] = seen.try_emplace(engine, *record.report->engine_build, &shard);
      if (!fresh && place->second.first != *record.report->engine_build) {
        return fail(Code::usage, "{} ran {} of {}, {} ran {}: they are no shards of one run",
                    place->second.second->name, text::printable(place->second.first),
                    text::printable(engine), shard.name,
                    text::printable(*record.report->engine_build));
      }
    }
  }
  return {};
}

// It was named by its folder or its journal.
std::string folder_of_run(const std::string& name) {
  return sys::file_name_of(name) == k_journal_name ? sys::folder_of(name) : name;
}

std::string shown(std::vector<std::string> cells) {
  constexpr std::size_t k_most = 5;
  if (const std::size_t all = cells.size(); all > k_most) {
    cells.resize(k_most);
    cells.push_back(fmt::format("and {} more", all - k_most));
  }
  return text::join(cells);
}

class Merging {
 public:
  Merging(std::vector<Shard> shards, bool partial)
      : shards_(std::move(shards)), partial_(partial) {}

  Result<std::string> text() {
    WEIR_CHECK(check());
    RunHeader& merged = merged_;
    const RunHeader& first = shards_.front().run.header;
    merged.weir_version = first.weir_version;
    merged.config_file = first.config_file;
    merged.config_text = first.config_text;
    merged.machine = first.machine;
    merged.started_at = first.started_at;
    merged.extra = first.extra;
    ShardFacts whole = shards_.front().facts;
    whole.index = 0;
    merged.extra["shard"] = to_json(whole);
    merged.extra["machines"] = Json::array();
    add_cells(whole);
    std::string identity;
    std::string records;
    bool ended = true;
    for (const Shard& shard : shards_) {
      ended = ended && shard.run.ended;
      for (const char* of : {"against", "rules", "allowances"}) add_notes(shard, of);
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
  Result<void> check() {
    const Shard* before = nullptr;
    for (const Shard& shard : shards_) {
      const ShardFacts& facts = shard.facts;
      const RunHeader& header = shard.run.header;
      WEIR_CHECK(check_alike(shards_.front(), shard));
      if (before != nullptr && before->facts.index == facts.index) {
        return fail(Code::usage, "{} and {} are both shard {}: {} would count twice", before->name,
                    shard.name, facts.name(), shown(facts.cells_of(facts.index)));
      }
      const auto measured =
          collect<std::string>(header.cells, [](const auto& one) { return one.cell.str(); });
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
            resume_command(verb_of_run(header.extra), folder_of_run(shard.name), header.extra));
      }
      present_.insert(facts.index);
      before = &shard;
    }
    const ShardFacts& all = shards_.front().facts;
    for (std::size_t shard = 1; !partial_ && shard <= all.shards.size(); ++shard) {
      if (present_.contains(shard)) continue;
      return fail(Code::usage,
                  "shard {}/{} is missing: {}\n  measure it, or join the others with --partial",
                  shard, all.shards.size(), shown(all.cells_of(shard)));
    }
    return check_builds(shards_);
  }

  void add_cells(const ShardFacts& whole) {
    const bool beside = !shards_.front().run.header.base_cells.empty();
    using Place = std::pair<const RunHeader*, std::size_t>;
    std::map<std::string, Place> known;
    for (const ShardRun& shard : shards_) {
      const RunHeader& header = shard.run.header;
      for (std::size_t i = 0; i < header.cells.size(); ++i) {
        known[header.cells[i].cell.str()] = {&header, i};
      }
      merged_.unavailable.insert(header.unavailable.begin(), header.unavailable.end());
    }
    for (const std::string& name : whole.cells) {
      places_[name] = merged_.cells.size();
      profile::CellFacts absent;
      absent.cell = *profile::CellKey::parse(name);
      const auto [header, at] = look_up(known, name, Place());
      merged_.cells.push_back(header != nullptr ? header->cells[at] : absent);
      if (beside) merged_.base_cells.push_back(header != nullptr ? header->base_cells[at] : absent);
      if (header != nullptr) continue;
      merged_.unavailable[name] = "its shard was not measured, or its run is lost";
    }
  }

  // What each machine tells of the base, the rules and what was allowed.
  void add_notes(const ShardRun& shard, const char* of) {
    const Json& extra = shard.run.header.extra;
    if (!extra.contains(of) || !extra[of].is_object() || !merged_.extra.contains(of)) return;
    const Json notes = extra[of].value("notes", Json::array());
    Json& all = merged_.extra[of]["notes"];
    if (!all.is_array()) all = Json::array();
    for (const Json& note : notes) {
      if (!holds(all, note)) all.push_back(note);
    }
  }

  void add_steps(const ShardRun& shard, std::string& records) {
    const auto before = static_cast<std::int64_t>(merged_.steps.size());
    for (Step step : shard.run.header.steps) {
      step.cell = places_.at(shard.run.header.cells[step.cell].cell.str());
      step.order += before;
      merged_.steps.push_back(step);
    }
    for (profile::RunRecord record : shard.run.records) {
      record.order += before;
      if (record.start) *record.start += before;
      records += dump_json(write_fields(record)) + "\n";
    }
  }

  std::vector<Shard> shards_;  // by their numbers
  bool partial_;
  std::set<std::size_t> present_;
  std::map<std::string, std::size_t> places_;
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

Result<std::optional<ShardFacts>> shard_facts(const Json& extra) {
  if (!extra.is_object() || !extra.contains("shard")) return std::nullopt;
  JsonReader read(extra["shard"], "shard");
  ShardFacts facts;
  read("index", facts.index);
  facts.plan = read.string("plan");
  facts.cells = read.strings("cells");
  const Json& shards = read.array("shards");
  read.check(facts.cells.size() <= k_most_cells, "has too many cells");
  read.check(shards.size() <= k_most_shards && !shards.empty(), "has too many shards, or none");
  read.check(facts.index <= shards.size(), "is no shard");
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  std::set<std::string> names;
  for (const std::string& name : facts.cells) {
    if (!profile::CellKey::parse(name) || !names.insert(name).second) {
      return fail(Code::data, "shard: \"{}\" is no cell, or comes twice", text::printable(name));
    }
  }
  std::set<std::size_t> held;
  for (const Json& shard : shards) {
    facts.shards.emplace_back();
    for (const Json& place : shard.is_array() ? shard : Json::array()) {
      const bool fits = place.is_number_unsigned() && place.get<std::size_t>() < facts.cells.size();
      if (!fits || !held.insert(place.get<std::size_t>()).second) {
        return fail(Code::data, "shard: a cell is in two shards, or is none of the plan");
      }
      facts.shards.back().push_back(place.get<std::size_t>());
    }
    if (!std::ranges::is_sorted(facts.shards.back())) {
      return fail(Code::data, "shard: its cells are not in the plan's order");
    }
  }
  if (held.size() != facts.cells.size()) {
    return fail(Code::data, "shard: some cells of the plan are in no shard");
  }
  return facts;
}

Result<std::string> merge(std::vector<ShardRun> shards, bool partial) {
  std::vector<Shard> known;
  for (ShardRun& shard : shards) {
    WEIR_TRY(auto facts, shard_facts(shard.run.header.extra).map_error(in_context(shard.name)));
    if (!facts || facts->index == 0) {
      return fail(Code::usage, "{} is no shard: shards are made by weir run --shard I/N",
                  shard.name);
    }
    known.push_back({std::move(shard), *std::move(facts)});
  }
  if (known.empty()) return fail(Code::usage, "no runs to join");
  std::ranges::stable_sort(known, {},
                           [](const Shard& one) { return std::tie(one.facts.index, one.name); });
  return Merging(std::move(known), partial).text();
}

}  // namespace weir::run
