// weir reach: what each cell runs, recorded once; which cells run what changed.
#include <algorithm>
#include <memory>

#include <unistd.h>

#include "gate/app/checkouts.hpp"
#include "gate/app/command_line.hpp"
#include "gate/app/reach_record.hpp"
#include "gate/app/reaching.hpp"
#include "gate/app/session.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

constexpr std::size_t k_most_reasons = 5;  // of one cell

struct ReachOptions {
  CommonOptions common;
  bool record = false;
  std::vector<std::string> coverage;
  std::string diff;
  std::string format = "text";
};

struct Commits {
  std::string base, head;              // in full; base is the merge-base
  std::string base_words, head_words;  // fit to show
  bool dirty = false;
};

Result<std::string> commit_of(const source::Git& git, const std::string& name) {
  WEIR_TRY(const auto commit, git.commit(name));
  if (!commit) {
    return fail(Code::usage, "--diff: {} is no commit here (a shallow clone may lack it)", name);
  }
  return *commit;
}

Result<Commits> commits_of(const source::Git& git, const std::string& base) {
  Commits commits;
  WEIR_TRY(commits.head, commit_of(git, "HEAD"));
  WEIR_TRY(commits.base, commit_of(git, base));
  WEIR_TRY(const std::vector<std::string> shared, git.merge_bases(commits.base, commits.head));
  if (!shared.empty()) commits.base = shared.front();
  WEIR_TRY(commits.base_words, git.words(commits.base));
  WEIR_TRY(commits.head_words, git.words(commits.head));
  WEIR_TRY(commits.dirty, git.dirty());
  return commits;
}

std::string text_of(const ReachBetween& between, const Commits& commits, const config::Veil& veil) {
  const auto& cells = between.diff.cells;
  const auto reached =
      std::count_if(cells.begin(), cells.end(), [](const auto& cell) { return !cell.by.empty(); });
  std::string text = fmt::format(
      "from {}\n  to {}: {} file{} changed, {} of {} cell{} run something of it\n",
      commits.base_words, commits.head_words, between.changed, between.changed == 1 ? "" : "s",
      reached, cells.size(), cells.size() == 1 ? "" : "s");
  std::vector<std::string> unknown;
  for (const profile::ReachedCell& cell : cells) {
    const std::string name = veil.cell_name(cell.cell);
    if (!cell.unknown.empty()) unknown.push_back(fmt::format("  {}: {}\n", name, cell.unknown));
    if (cell.by.empty()) continue;
    text += fmt::format("\n{}\n", name);
    for (std::size_t i = 0; i < cell.by.size() && i < k_most_reasons; ++i) {
      text += fmt::format("  {}: {}\n", profile::shown_path(cell.by[i].file), cell.by[i].why);
    }
    if (cell.by.size() > k_most_reasons) {
      text += fmt::format("  (+{} more)\n", cell.by.size() - k_most_reasons);
    }
  }
  if (!unknown.empty()) {
    text += "\nunknown, so that every change reaches them (weir reach --record):\n" +
            text::join(unknown, "");
  }
  if (const std::string none = profile::words_of_none(between.diff); !none.empty()) {
    text += "\n" + none + "\n";
  }
  if (!between.diff.quiet.empty()) {
    text += fmt::format("\n{} file{} of documents, tests and CI that no cell runs\n",
                        between.diff.quiet.size(), between.diff.quiet.size() == 1 ? "" : "s");
  }
  if (commits.dirty) text += "\nchanges that are not committed were not looked at\n";
  return text;
}

Json json_of(const ReachBetween& between, const Commits& commits, const config::Veil& veil) {
  Json cells = Json::array();
  for (const profile::ReachedCell& cell : between.diff.cells) {
    Json by = Json::array();
    for (const profile::Touched& touched : cell.by) {
      by.push_back({{"file", touched.file}, {"why", touched.why}});
    }
    cells.push_back({{"cell", veil.cell_name(cell.cell)},
                     {"reached", !cell.by.empty()},
                     {"by", std::move(by)},
                     {"unknown", cell.unknown.empty() ? Json(nullptr) : Json(cell.unknown)}});
  }
  return {{"schema", "weir.reach-diff/1"}, {"base", commits.base},      {"head", commits.head},
          {"uncommitted", commits.dirty},  {"cells", std::move(cells)}, {"none", between.diff.none},
          {"quiet", between.diff.quiet}};
}

Result<ExitCode> diff(const ReachOptions& options, sys::Files& files) {
  WEIR_TRY(const Loaded loaded, load_config(options.common, files));
  Outside outside(files);
  WEIR_TRY(
      const source::Git git,
      source::Git::open(outside.effects, sys::folder_of(sys::absolute(options.common.config))));
  WEIR_TRY(const Commits commits, commits_of(git, options.diff));
  WEIR_TRY(const ReachBetween between,
           reach_between(git, commits.base, commits.head, reach_cells(loaded.cells),
                         StoredReach(files, options.common.out)));
  if (options.format == "cells") {
    for (const profile::ReachedCell& cell : between.diff.cells) {
      if (!cell.by.empty()) answer(options.common, loaded.veil.cell_name(cell.cell) + "\n");
    }
  } else {
    answer(options.common, text_of(between, commits, loaded.veil));
  }
  WEIR_CHECK(
      write_json(options.common, dump_json(json_of(between, commits, loaded.veil), 1) + "\n"));
  return ExitCode::pass;
}

Result<ExitCode> reach(const ReachOptions& options) {
  sys::RealFiles files;
  if (!options.record && !options.coverage.empty()) {
    return fail(Code::usage, "--coverage says where --record takes a cell's files from");
  }
  if (options.record != options.diff.empty()) {
    return fail(Code::usage,
                "weir reach either records what cells run (--record) or says which of them run "
                "what changed (--diff BASE)");
  }
  if (options.record) return record_reach(options.common, options.coverage, files);
  return diff(options, files);
}

}  // namespace

void add_reach(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("reach", "Which cells run the changed code at all; judges nothing");
  auto options = std::make_shared<ReachOptions>();
  add_common(*verb, options->common, Takes::cells);
  verb->add_flag("--record", options->record,
                 "Run each cell once under valgrind and keep what it ran (needs an engine with\n"
                 "debug information; some fifty times slower than the engine itself)");
  verb->add_option("--coverage", options->coverage,
                   "With --record, of one cell: take the files from its coverage build's JSON\n"
                   "(llvm-cov export, gcov --json-format --stdout) and run nothing")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb->add_option("--diff", options->diff, "What changed since the merge-base of BASE and HEAD")
      ->type_name("BASE");
  verb->add_option("--format", options->format, "text, or cells: their names, one a line")
      ->check(CLI::IsMember({"text", "cells"}))
      ->capture_default_str();
  verb->footer(
      "Examples:\n"
      "  weir reach --record                          once, and after larger changes\n"
      "  weir reach --diff origin/main                which cells, why, and what none of them "
      "runs\n"
      "  weir reach --diff origin/main --format cells for scripts");
  set_action(*verb, [options] { return reach(*options); });
}

}  // namespace weir::app
