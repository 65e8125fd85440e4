// weir trend: a history of what was measured. Some of its subcommands have files of their own.
#include "gate/flow/trend.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

namespace {

void add_trend_import(const Verb& trend) {
  const Verb verb = trend.below("import", "Keep runs in a history");
  auto options = std::make_shared<flow::TrendImportOptions>();
  verb.option("RUN", options->runs, "", "Folders of runs, their run.jsonl, or files of verdicts");
  verb.option("--from-dir", options->from_dir, "DIR",
              "All runs and verdicts below DIR, and the baselines that git\n"
              "knows there, commit by commit");
  verb.repeated("--csv", options->csv, "FILE",
                "Foreign series: cell,metric,commit,time,value,machine");
  verb.repeated("--jsonl", options->json_lines, "FILE", "What weir trend export wrote");
  add_store_options(verb, options->store);
  auto* project = verb.preset("--project", options->facts.project, "NAME", "Whose runs they are");
  verb.option("--machine", options->facts.machine, "NAME",
              "The machine's name in its series (default: processor, cores, memory)");
  verb.option("--commit", options->facts.commit, "SHA",
              "The commit that was measured (default: as the run says)");
  verb.option("--branch", options->facts.branch, "NAME", "Its branch (default: as the run says)");
  verb.option("--time", options->time, "TIME", "When it was measured (default: as the run says)");
  verb.option("-c,--config", options->config, "FILE",
              "Of --from-dir: whose private names baselines may hold (default:\n"
              "weir.yaml in DIR or above)");
  verb.flag("--each", options->each, "Say the id of each run when it is on the disk");
  verb.preset("--batch", options->batch, "N",
              "Runs of --csv and --jsonl kept by one write to the disk, at most")
      ->check(CLI::Range(std::size_t{1}, std::size_t{2000}));
  verb->footer(
      "Examples:\n"
      "  weir trend import weir-out/*                 what weir run and weir gate measured\n"
      "  weir trend import --from-dir baselines       from git alone, without any server\n"
      "  weir trend import --csv old-numbers.csv --project engine\n"
      "  WEIR_DB=postgres://weir:…@db/weir weir trend import weir-out/20261120-0930\n"
      "Importing again changes nothing. Exit codes: 0 all is kept, 2 usage, 3 something was left "
      "out.");
  verb.runs(options, [options, project](const flow::Job& job, const flow::TrendImportOptions&) {
    options->project_given = project->count() > 0;
    return flow::import_history(job, *options);
  });
}

void add_trend_export(const Verb& trend) {
  const Verb verb = trend.below("export", "A history as JSON lines");
  auto options = std::make_shared<flow::TrendExportOptions>();
  add_history_options(verb, *options);
  verb.option("--out", options->out, "FILE", "Write it there (default: standard output)");
  verb->footer(
      "Examples:\n"
      "  weir trend export --out history.jsonl        everything: import --jsonl reads it back\n"
      "  weir trend export --cell '*/vulkan/*' --since 2026-11-01 | jq .\n"
      "A part by --cell, --metric or --machine is without verdicts. docs/how-to/trends.md has the "
      "lines.");
  verb.runs(options, flow::export_history);
}

void add_trend_list(const Verb& trend) {
  const Verb verb = trend.below("list", "One line a series");
  auto options = std::make_shared<flow::HistoryOptions>();
  add_history_options(verb, *options);
  verb.takes_json();
  verb->footer("Examples:\n  weir trend list --cell '*/decode'\n  weir trend list --json | jq .");
  verb.runs(options, flow::list_history);
}

void add_trend_site(const Verb& trend) {
  const Verb verb = trend.below("site", "Pages of a history, to be opened in a browser");
  auto options = std::make_shared<flow::TrendSiteOptions>();
  verb.option("OUT", options->out, "", "The folder to write them to; it may be new")
      ->type_name("")
      ->required();
  add_history_options(verb, *options);
  verb.option("--repo-url", options->repo, "URL",
              "Where commits are shown, at URL/commit/NAME: https://github.com/me/engine");
  verb.option("--title", options->title, "TEXT", "What stands above all pages");
  verb.flag("--no-subjects", options->no_subjects, "Leave out the first lines of commit messages");
  verb->footer(
      "Examples:\n"
      "  weir trend site public --repo-url https://github.com/me/engine\n"
      "  weir trend site public --branch main --title 'Engine, nightly'\n"
      "Open public/index.html, or publish the folder. Files that are the same stay untouched.\n"
      "docs/how-to/trend-site.md says what the pages show.");
  verb.runs(options, flow::write_trend_site);
}

}  // namespace

void add_trend(const Verb& verb) {
  verb->require_subcommand(1);
  verb->footer(
      "Examples:\n"
      "  weir trend import weir-out/*               keep what was measured, in .weir/history.db\n"
      "  weir trend import --from-dir baselines     from git alone\n"
      "  weir trend list                            one line a series\n"
      "  weir trend changes                         where it changed, and by how much\n"
      "  weir trend site public                     pages, to be opened in a browser");
  add_trend_import(verb);
  add_trend_export(verb);
  add_trend_list(verb);
  add_trend_changes(verb);
  add_trend_ack(verb);
  add_trend_notify(verb);
  add_trend_site(verb);
}

}  // namespace weir::app
