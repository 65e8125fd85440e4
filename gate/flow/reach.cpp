// Which cells run the files that changed between two commits, by their stored records.
#include "gate/flow/reach.hpp"

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::uint64_t k_largest_record = std::uint64_t{256} << 20;

// Returns which of the run's cells execute code that changed from its base to its candidate, by
// stored records of the functions that each cell executes. Requires a run with a base, and both
// commits in its facts.
Result<ReachOfChanges> reach_of_measured_cells(const Job& job, const MeasuredRun& measured,
                                               const ReachRecords& stored) {
  // The profiles also have lines over several depths of a prompt, which are not run as cells. So
  // the cells come from the configuration.
  WEIR_TRY(const config::Matrix matrix, config::expand(*measured.configuration.settings));
  std::set<std::string> names;
  for (const profile::Profile& profile : measured.profiles) names.insert(profile.cell.str());
  std::vector<ReachCell> cells = reach_cells(matrix.cells);
  std::erase_if(cells, [&](const ReachCell& cell) { return !names.contains(cell.cell); });
  const BaseFacts& facts = measured.base_runs->facts;
  WEIR_TRY(const auto repository,
           Repository::open(job.world, sys::folder_of(sys::absolute(measured.configuration.file))));
  return reach_of_changes(repository->git(), *facts.commit, *facts.candidate_commit, cells, stored);
}

}  // namespace

ReachRecords::ReachRecords(sys::Files& files, const std::string& out)
    : files_(files), folder_(sys::join_path(out, "reach")) {}

std::string ReachRecords::path_of(const std::string& cell) const {
  return sys::join_path(folder_, cell + ".json");
}

Result<std::optional<profile::Reach>> ReachRecords::find(const std::string& cell) const {
  const std::string path = path_of(cell);
  if (!files_.exists(path)) return std::nullopt;
  WEIR_TRY(const std::string text, files_.read(path, k_largest_record));
  WEIR_TRY(profile::Reach reach, parse_json(text, {.bytes = k_largest_record, .depth = 16})
                                     .and_then(reading<profile::Reach>("reach"))
                                     .map_error(with_prefix(path)));
  if (reach.cell == cell) return reach;
  return fail(Code::data, "{}: holds what \"{}\" runs; it was moved or edited by hand", path,
              reach.cell);
}

Result<void> ReachRecords::put(const profile::Reach& reach) {
  const std::string path = path_of(reach.cell);
  WEIR_CHECK(files_.make_dirs(sys::folder_of(path)));
  return files_.write_atomic(path, json_document(write_fields(reach)));
}

std::vector<ReachCell> reach_cells(std::span<const config::Cell> cells) {
  std::vector<ReachCell> result;
  for (const config::Cell& cell : cells) result.push_back({cell.key.str(), cell.device});
  return result;
}

// Returns which cells run the changes between two commits, by their records of executed code.
Result<ReachOfChanges> reach_of_changes(const source::Git& git, const std::string& from,
                                        const std::string& to, std::span<const ReachCell> cells,
                                        const ReachRecords& stored) {
  ReachOfChanges reach_change;
  std::vector<profile::CellReach> recorded;
  for (const ReachCell& cell : cells) {
    WEIR_TRY(auto reach, stored.find(cell.cell));
    if (reach) ++reach_change.recorded_cells;
    recorded.push_back({cell.cell, cell.device, std::move(reach)});
  }
  WEIR_TRY(const std::vector<profile::ChangedFile> changed, git.changed(from, to));
  WEIR_TRY(const std::vector<std::string> files, git.files_of(to));
  reach_change.changed_files = changed.size();
  reach_change.diff = profile::reach_of_diff(recorded, changed, files);
  return reach_change;
}

// Notes changed files that no cell of a run against a base executes. Does nothing without records.
void add_reach_note(const MeasuredRun& measured, const Job& job, verdict::GateVerdict& verdict) {
  if (!measured.base_runs) return;
  const BaseFacts& facts = measured.base_runs->facts;
  if (!facts.commit || !facts.candidate_commit || facts.commit == facts.candidate_commit) return;
  const ReachRecords stored(job.files(), job.selection.runs_folder);
  if (job.files().kind(stored.folder()) != sys::Kind::folder) return;
  const auto reach_change = reach_of_measured_cells(job, measured, stored);
  if (!reach_change) {
    verdict.notes.push_back("which changed files these cells run is not known: " +
                            text::printable(reach_change.error().message));
    return;
  }
  if (reach_change->recorded_cells == 0) return;
  std::string text = profile::unreached_files_text(reach_change->diff);
  if (text.empty()) return;
  if (measured.is_selection) text += " (of the cells of this gate)";
  // Goes into the first line: a pass that says nothing about the change must not look like one that
  // does.
  verdict.not_judged.push_back(std::move(text));
}

namespace {

constexpr std::size_t k_max_reasons = 5;  // for one cell

// The two commits of weir reach --diff.
struct Commits {
  std::string base, head;              // in full; base is the merge-base
  std::string base_words, head_words;  // for people
  bool dirty = false;
};

Result<std::string> find_commit(const source::Git& git, const std::string& name) {
  WEIR_TRY(const auto commit, git.resolve_commit(name));
  if (commit) return *commit;
  return fail(Code::usage, "--diff: {} is no commit here (a shallow clone may lack it)", name);
}

// Returns HEAD and its merge-base with `base`.
Result<Commits> find_commits(const source::Git& git, const std::string& ref) {
  Commits commits;
  WEIR_TRY(commits.head, find_commit(git, "HEAD"));
  WEIR_TRY(commits.base, find_commit(git, ref));
  WEIR_TRY(const std::vector<std::string> merge_bases, git.merge_bases(commits.base, commits.head));
  if (!merge_bases.empty()) commits.base = merge_bases.front();
  WEIR_TRY(commits.base_words, git.words(commits.base));
  WEIR_TRY(commits.head_words, git.words(commits.head));
  WEIR_TRY(commits.dirty, git.dirty());
  return commits;
}

// Returns for people which cells run what changed, with the first reasons of each.
std::string diff_text(const ReachOfChanges& reach_change, const Commits& commits,
                      const config::Redactor& redactor) {
  const auto& cells = reach_change.diff.cells;
  const auto reached_count =
      std::ranges::count_if(cells, [](const auto& cell) { return !cell.changed_code_run.empty(); });
  std::string text = fmt::format("from {}\n  to {}: {} changed, {} of {} run something of it\n",
                                 commits.base_words, commits.head_words,
                                 text::plural(reach_change.changed_files, "file"), reached_count,
                                 text::plural(cells.size(), "cell"));
  std::vector<std::string> unknown;
  for (const profile::ReachedCell& cell : cells) {
    const std::string name = redactor.cell_name(cell.cell);
    if (!cell.unknown.empty()) unknown.push_back(fmt::format("  {}: {}\n", name, cell.unknown));
    if (cell.changed_code_run.empty()) continue;
    text += fmt::format("\n{}\n", name);
    for (std::size_t i = 0; i < cell.changed_code_run.size() && i < k_max_reasons; ++i) {
      text += fmt::format("  {}: {}\n", profile::shown_path(cell.changed_code_run[i].file),
                          cell.changed_code_run[i].why);
    }
    if (cell.changed_code_run.size() > k_max_reasons) {
      text += fmt::format("  (+{} more)\n", cell.changed_code_run.size() - k_max_reasons);
    }
  }
  if (!unknown.empty()) {
    text += "\nunknown, so that every change reaches them (weir reach --record):\n" +
            text::join(unknown, "");
  }
  if (const std::string none = profile::unreached_files_text(reach_change.diff); !none.empty()) {
    text += "\n" + none + "\n";
  }
  if (!reach_change.diff.quiet_files.empty()) {
    text += fmt::format("\n{} of documents, tests and CI that no cell runs\n",
                        text::plural(reach_change.diff.quiet_files.size(), "file"));
  }
  if (commits.dirty) text += "\nchanges that are not committed were not looked at\n";
  return text;
}

// Returns which cells run what changed as a weir.reach-diff/1 document.
Json diff_json(const ReachOfChanges& reach_change, const Commits& commits,
               const config::Redactor& redactor) {
  Json cells = Json::array();
  for (const profile::ReachedCell& cell : reach_change.diff.cells) {
    Json reasons = Json::array();
    for (const profile::Touched& touched : cell.changed_code_run) {
      reasons.push_back({{"file", touched.file}, {"why", touched.why}});
    }
    cells.push_back({{"cell", redactor.cell_name(cell.cell)},
                     {"reached", !cell.changed_code_run.empty()},
                     {"by", std::move(reasons)},
                     {"unknown", cell.unknown.empty() ? Json(nullptr) : Json(cell.unknown)}});
  }
  return {{"schema", "weir.reach-diff/1"},
          {"base", commits.base},
          {"head", commits.head},
          {"uncommitted", commits.dirty},
          {"cells", std::move(cells)},
          {"none", reach_change.diff.unreached_files},
          {"quiet", reach_change.diff.quiet_files}};
}

// Shows which cells run the changes from a base commit to HEAD.
Result<Answer> diff(const Job& job, const ReachOptions& options) {
  WEIR_TRY(const LoadedConfig loaded, load_config(job));
  WEIR_TRY(const auto repository, Repository::open(job.world, job.folder()));
  const source::Git& git = repository->git();
  WEIR_TRY(const Commits commits, find_commits(git, options.diff));
  WEIR_TRY(const ReachOfChanges reach_change,
           reach_of_changes(git, commits.base, commits.head, reach_cells(loaded.cells),
                            ReachRecords(job.files(), job.selection.runs_folder)));
  const config::Redactor& redactor = loaded.configuration.redactor;
  std::string text;
  if (options.format == "cells") {
    for (const profile::ReachedCell& cell : reach_change.diff.cells) {
      if (!cell.changed_code_run.empty()) text += redactor.cell_name(cell.cell) + "\n";
    }
  } else {
    text = diff_text(reach_change, commits, redactor);
  }
  return Answer{text, json_document(diff_json(reach_change, commits, redactor))};
}

}  // namespace

Result<Answer> reach(const Job& job, const ReachOptions& options) {
  if (!options.record && !options.coverage.empty()) {
    return fail(Code::usage, "--coverage says where --record takes a cell's files from");
  }
  if (options.record != options.diff.empty()) {
    return fail(Code::usage,
                "weir reach either records what cells run (--record) or says which of them run "
                "what changed (--diff BASE)");
  }
  return options.record ? record_reach(job, options.coverage) : diff(job, options);
}

}  // namespace weir::flow
