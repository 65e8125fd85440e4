// weir trend: a history of what was measured. Some of its subcommands have files of their own.
#include "gate/flow/trend.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

namespace {

void add_trend_export(const Verb& trend) {
  const Verb verb = trend.below("export", "A history as JSON lines");
  auto options = std::make_shared<flow::TrendExportOptions>();
  add_store_options(verb, options->store);
  add_filter_options(verb, options->filter);
  verb.option("--out", options->out, "FILE", "Write it there (default: standard output)");
  verb->footer(
      "Examples:\n"
      "  weir trend export --out history.jsonl        everything: import --jsonl reads it back\n"
      "  weir trend export --cell '*/vulkan/*' --since 2026-11-01 | jq .\n"
      "A part by --cell, --metric or --machine is without verdicts. docs/trends.md has the lines.");
  verb.runs(options, flow::export_history);
}

void add_trend_list(const Verb& trend) {
  const Verb verb = trend.below("list", "One line a series");
  auto options = std::make_shared<flow::TrendListOptions>();
  add_store_options(verb, options->store);
  add_filter_options(verb, options->filter);
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
  add_store_options(verb, options->store);
  add_filter_options(verb, options->filter);
  verb.option("--repo-url", options->repo, "URL",
              "Where commits are shown, at URL/commit/NAME: https://github.com/me/engine");
  verb.option("--title", options->title, "TEXT", "What stands above all pages");
  verb.flag("--no-subjects", options->no_subjects, "Leave out the first lines of commit messages");
  verb->footer(
      "Examples:\n"
      "  weir trend site public --repo-url https://github.com/me/engine\n"
      "  weir trend site public --branch main --title 'Engine, nightly'\n"
      "Open public/index.html, or publish the folder. Files that are the same stay untouched.\n"
      "docs/trend-site.md says what the pages show.");
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
