#include "gate/flow/claimed.hpp"

#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/base.hpp"
#include "gate/report/layout.hpp"
#include "gate/run/merge.hpp"
#include "gate/run/prepare.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::size_t k_most_entries = 100'000;

// No link at `path` and below it.
Result<void> no_links(const std::string& path, const sys::Files& files, std::size_t& entries) {
  const auto folder = sys::real_path(sys::folder_of(path));
  const auto real = sys::real_path(path);
  if (!folder || !real || *real != sys::join_path(*folder, sys::file_name_of(path))) {
    return fail(Code::data, "{}: is a link: what is read of a run lies in its folder",
                text::printable(path));
  }
  if (++entries > k_most_entries) {
    return fail(Code::data, "{}: more than {} files", text::printable(path), k_most_entries);
  }
  if (files.kind(path) != sys::Kind::folder) return {};
  WEIR_TRY(const std::vector<std::string> names, files.list(path));
  for (const std::string& name : names) {
    WEIR_CHECK(no_links(sys::join_path(path, name), files, entries));
  }
  return {};
}

// The parts of a fingerprint that a configuration says; the others are of files that lie elsewhere.
void take_identity(const config::Cell& cell, profile::Provenance& claimed) {
  const auto& known = run::fingerprint_parts(cell, {}, "");
  std::erase_if(claimed.fingerprint_parts, [&](const auto& part) {
    return !known.contains(part.first) && part.first != run::k_device_description;
  });
  for (const auto& [name, text] : cell.identity) {
    claimed.fingerprint_parts[name] = short_hash(text);
  }
  claimed.fingerprint = run::fingerprint_of(claimed.fingerprint_parts);
}

// What its configuration does not say of `facts` stays a claim.
Result<void> take_facts(const std::map<std::string, const config::Cell*>& cells, const Job& job,
                        std::vector<profile::CellFacts>& all) {
  std::set<std::string> seen;
  for (profile::CellFacts& facts : all) {
    const std::string name = facts.cell.str();
    if (!seen.insert(name).second)
      return fail(Code::data, "its journal has the cell {} twice", name);
    const auto found = cells.find(name);
    if (found == cells.end()) {
      if (!job.asked.cells.empty()) continue;  // it is not looked at
      return fail(Code::data, "its journal has the cell {}, which its configuration lacks", name);
    }
    run::describe(*found->second, facts);
    facts.twin = found->second->twin;
    take_identity(*found->second, facts.provenance);
  }
  return {};
}

}  // namespace

bool judges_claims(const Job& job) { return job.rules && job.rules->used.from; }

Result<void> stays_inside(const std::string& run, const sys::Files& files) {
  if (files.kind(run) != sys::Kind::folder) return {};
  std::size_t entries = 0;
  for (const std::string& name :
       {std::string(run::k_journal_name), sys::file_name_of(base_counts_folder(run)),
        std::string("confirm")}) {
    const std::string path = sys::join_path(run, name);
    if (files.exists(path)) WEIR_CHECK(no_links(path, files, entries));
  }
  return {};
}

Result<Configured> configured_by_rules(const Job& job, run::RunHeader& header) {
  WEIR_TRY(const auto shard, run::shard_facts(header.extra));
  if (shard && shard->index > 0) {
    return fail(Code::usage,
                "--rules-from judges whole runs, and this is shard {}: weir merge joins shards",
                shard->name());
  }
  Job itself = job;
  itself.asked.config_text = header.config_text;
  WEIR_TRY(Loaded loaded, load_config(itself));
  std::map<std::string, const config::Cell*> cells;
  for (const config::Cell& cell : loaded.cells) cells[cell.key.str()] = &cell;
  for (std::size_t i = 0; i < header.base_cells.size(); ++i) {
    if (header.base_cells[i].cell != header.cells[i].cell) {
      return fail(Code::data, "its journal has a base of other cells");
    }
  }
  WEIR_CHECK(take_facts(cells, job, header.cells));
  WEIR_CHECK(take_facts(cells, job, header.base_cells));
  std::set<std::string> there;
  for (const profile::CellFacts& facts : header.cells) there.insert(facts.cell.str());
  RulesUsed& rules = *loaded.known.rules;
  for (verdict::HeldCell& held : rules.held) {
    cells.erase(held.now);
    if (held.now.empty() || there.contains(held.now)) continue;
    held.now.clear();
    held.why = "the run does not hold it";
  }
  std::erase_if(cells, [&](const auto& cell) { return there.contains(cell.first); });
  if (!cells.empty()) {
    rules.not_judged.push_back(
        fmt::format("{} of the run's own matrix not in it", report::plural(cells.size(), "cell")));
  }
  // Nothing that its configuration names is opened.
  loaded.known.place = "";
  return std::move(loaded.known);
}

}  // namespace weir::flow
