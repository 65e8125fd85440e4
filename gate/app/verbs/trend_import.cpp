// weir trend import: runs, verdicts, baselines in git, foreign series and exports into a history.
#include "gate/app/options.hpp"
#include "gate/flow/trend.hpp"

namespace weir::app {

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

}  // namespace weir::app
