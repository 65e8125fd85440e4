// weir trend: keeps a history of runs. Some of its subcommands have files of their own.
#include "gate/flow/trend.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

namespace {

// Adds `weir trend import`, which adds runs to a history. The flow also gets whether --project was
// given.
void add_trend_import(const Verb& trend) {
  const Verb verb = trend.subcommand("import", "Add runs to a history");
  auto options = std::make_shared<flow::TrendImportOptions>();
  verb.option("RUN", options->runs, "", "Folders of runs, their run.jsonl, or verdicts");
  verb.option(
      "--from-dir", options->from_dir, "DIR",
      "All runs and verdicts in DIR, and the baselines that git has there, commit by commit");
  verb.list_option("--csv", options->csv, "FILE",
                   "Foreign series: cell,metric,commit,time,value,machine; repeatable");
  verb.list_option("--jsonl", options->json_lines, "FILE",
                   "A file of weir trend export; repeatable");
  add_store_options(verb, options->store);
  auto* project =
      verb.option_with_default("--project", options->facts.project, "NAME", "Project of the runs");
  verb.option("--machine", options->facts.machine, "NAME",
              "Name of the machine in its series (default: processor, cores, memory)");
  verb.option("--commit", options->facts.commit, "SHA",
              "Commit that was measured (default: from the run)");
  verb.option("--branch", options->facts.branch, "NAME",
              "Branch that was measured (default: from the run)");
  verb.option("--time", options->time, "TIME", "Time of the measurement (default: from the run)");
  verb.option("-c,--config", options->config, "FILE",
              "For --from-dir: configuration with the private names of its baselines (default: "
              "weir.yaml in DIR or above)");
  verb.flag("--each", options->each, "Print the id of each run once it is stored");
  verb.option_with_default("--batch", options->batch, "N",
                           "Most runs of --csv and --jsonl per write")
      ->check(CLI::Range(std::size_t{1}, std::size_t{2000}));
  verb->footer(
      "Examples:\n"
      "  weir trend import weir-out/2*              runs and verdicts\n"
      "  weir trend import --from-dir baselines     from git alone, without a server\n"
      "  weir trend import --csv old-numbers.csv --project engine\n"
      "  WEIR_DB=postgres://weir@db/weir weir trend import weir-out/20261120-0930\n\n"
      "Importing a run again changes nothing.\n"
      "Exit codes: 0 everything is stored, 2 usage error, 3 something was left out.");
  verb.set_flow(options, [options, project](const flow::Job& job, const flow::TrendImportOptions&) {
    options->project_given = project->count() > 0;
    return flow::import_history(job, *options);
  });
}

// Adds `weir trend export`, which writes a history as JSON lines.
void add_trend_export(const Verb& trend) {
  const Verb verb = trend.subcommand("export", "Write a history as JSON lines");
  const auto options = verb.set_flow_with_new_options(flow::export_history);
  add_history_options(verb, *options);
  verb.option("--output", options->out, "FILE", "File to write (default: standard output)");
  verb->footer(
      "A part chosen by --cell, --metric or --machine has no verdicts.\n"
      "docs/how-to/trends.md describes the lines.\n\n"
      "Examples:\n"
      "  weir trend export --output history.jsonl     for trend import --jsonl\n"
      "  weir trend export --cell '*/vulkan/*' --since 2026-11-01 | jq .");
}

void add_trend_list(const Verb& trend) {
  const Verb verb = trend.subcommand("list", "List series, one a line");
  const auto options = verb.set_flow_with_new_options(flow::list_history);
  add_history_options(verb, *options);
  verb.add_json_option();
  verb->footer(
      "Examples:\n"
      "  weir trend list --cell '*/decode'\n"
      "  weir trend list --json | jq .");
}

// Adds `weir trend site`, which writes the pages of a history to a folder.
void add_trend_site(const Verb& trend) {
  const Verb verb = trend.subcommand("site", "Write the pages of a history");
  const auto options = verb.set_flow_with_new_options(flow::write_trend_site);
  verb.option("OUT", options->out, "", "Folder to write to")->type_name("")->required();
  add_history_options(verb, *options);
  verb.option("--repo-url", options->repo, "URL",
              "Home of commits, shown at URL/commit/NAME: https://github.com/me/engine");
  verb.option("--title", options->title, "TEXT", "Title of all pages");
  verb.option(
      "--changes", options->commit_changes, "FILE",
      "What changed between commits and why, as JSON lines (weir.changes/1): adds the pages "
      "Changes and Kernels");
  verb.flag("--no-subjects", options->no_subjects, "Leave out the subjects of commits");
  verb->footer(
      "Open public/index.html, or publish the folder. Unchanged files stay untouched.\n"
      "docs/how-to/trend-site.md describes the pages.\n\n"
      "Examples:\n"
      "  weir trend site public --repo-url https://github.com/me/engine\n"
      "  weir trend site public --branch main --title 'Engine, nightly'");
}

}  // namespace

// Adds `weir trend` and its subcommands: import, export, list, changes, ack, notify, site.
void add_trend(const Verb& verb) {
  verb->require_subcommand(1);
  verb->footer(
      "Examples:\n"
      "  weir trend import weir-out/2*              store runs in .weir/history.db\n"
      "  weir trend import --from-dir baselines     from git alone\n"
      "  weir trend list                            one line a series\n"
      "  weir trend changes                         change points, with their size\n"
      "  weir trend site public                     pages for a browser");
  add_trend_import(verb);
  add_trend_export(verb);
  add_trend_list(verb);
  add_trend_changes(verb);
  add_trend_ack(verb);
  add_trend_notify(verb);
  add_trend_site(verb);
}

}  // namespace weir::app
