// Declares the options that several verbs share.
#include "gate/app/options.hpp"

#include "gate/flow/measure.hpp"
#include "gate/flow/post.hpp"
#include "gate/flow/reports.hpp"
#include "gate/flow/trend.hpp"
#include "gate/unit/metric.hpp"

namespace weir::app {

void Verb::refuses(const char* names, const char* why) const {
  app_->add_option_function<std::string>(
          names, [names, why](const std::string&) { throw CLI::ValidationError(names, why); })
      ->group("");  // not in --help
}

CLI::Option* Verb::seconds(const char* names, double& into, const char* shown_default,
                           const std::string& help) const {
  return option(names, into, "DURATION", help)
      ->transform([](const std::string& text) {
        const auto duration = unit::parse_duration_seconds(text);
        return duration ? fmt::format("{}", *duration) : text;
      })
      ->check(CLI::Range(1.0, 86'400.0))
      ->default_str(shown_default);
}

void Verb::takes_config(const char* help) const {
  preset("-c,--config", job_->selection.config, "FILE", help)
      ->each([job = job_](const std::string&) { job->selection.config_is_set = true; });
}

void Verb::takes_cells() const {
  repeated("--cell", job_->selection.cells, "GLOB",
           "Only cells that match GLOB ('*' crosses '/'); repeatable");
}

void Verb::takes_baselines() const {
  preset("--baselines", job_->selection.baselines, "DIR", "Folder of stored baselines");
}

void Verb::takes_out() const { preset("--out", job_->selection.out, "DIR", "Folder of runs"); }

void Verb::takes_json(const char* help) const {
  option("--json", job_->shown.json, "[FILE]", help)->expected(0, 1)->default_str("-");
}

void Verb::takes_color() const {
  preset("--color", job_->shown.color, "", "When to use colour")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void Verb::takes_quiet(const char* help) const { flag("-q,--quiet", job_->shown.quiet, help); }

void Verb::takes(Takes group) const {
  const bool has_config = group != Takes::runs && group != Takes::output;
  if (has_config) takes_config();
  if (group != Takes::config && group != Takes::output) takes_cells();
  if (group == Takes::matrix || group == Takes::measuring) takes_baselines();
  if (has_config) takes_out();
  if (group == Takes::measuring) {
    flag("--counts-only", job_->selection.counts_only, "Count only: no timed passes");
  }
  takes_json();
  takes_quiet();
  takes_color();
}

std::vector<std::string> Verb::used_options(std::initializer_list<const char*> names) const {
  std::vector<std::string> used;
  for (const char* name : names) {
    if (app_->count(name) != 0) used.emplace_back(name);
  }
  return used;
}

void add_github_options(const Verb& verb, flow::GithubOptions& options) {
  verb.option("--api", options.api_url, "URL",
              "GitHub's API (default: GITHUB_API_URL, else https://api.github.com)");
  verb.option("--token-file", options.token_file, "FILE",
              "File that holds the token (default: WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN)");
  verb.preset("--app", options.app, "SLUG", "GitHub App that posts as weir");
}

void add_report_files(const Verb& verb, flow::ReportFiles& files) {
  for (std::size_t i = 0; i < files.files.size(); ++i) {
    const report::ReportFormat& format = report::report_formats()[i];
    verb.option(format.option, files.files[i], "FILE", format.about);
  }
}

void add_measure_options(const Verb& verb, flow::MeasureOptions& wanted) {
  wanted.verb = verb->get_name();
  verb.optional("--resume", wanted.resume, "[RUN]",
                "Continue an interrupted RUN (default: the newest)");
  verb.option("--runs", wanted.plan.runs, "", "Timed processes per cell (default: gate.runs)")
      ->check(CLI::Range(1, 10'000));
  CLI::Option* shard =
      verb.option("--shard", wanted.shard, "I/N", "Measure one part of the matrix, such as 3/16");
  verb.option("--profiling-cost", wanted.plan.cost_pairs, "[PAIRS]",
              "Measure what probes cost, in pairs of timed processes with and without them")
      ->expected(0, 1)
      ->default_str("8")
      ->check(CLI::Range(5, 1000));  // fewer pairs show nothing in 9 of 10 cases
  verb.option("--plan", wanted.plan_file, "FILE",
              "Plan that weir plan wrote (default: made from the configuration)")
      ->needs(shard);
}

void add_store_options(const Verb& verb, flow::StoreOptions& options) {
  verb.option("--db", options.db, "FILE|URL",
              fmt::format("The history: a file, or the URL of a PostgreSQL database (default: "
                          "WEIR_DB, else {}). Keep passwords in WEIR_DB, PGPASSWORD or ~/.pgpass",
                          flow::k_default_history));
}

void add_history_options(const Verb& verb, flow::HistoryOptions& history) {
  add_store_options(verb, history.store);
  flow::FilterOptions& options = history.filter;
  history::Filter& filter = options.filter;
  verb.option("--project", filter.project, "NAME", "Only this project");
  verb.repeated("--cell", filter.cells, "GLOB",
                "Only cells that match ('*' crosses '/'); repeatable");
  verb.repeated("--metric", filter.metrics, "GLOB", "Only metrics that match; repeatable");
  verb.repeated("--machine", filter.machines, "GLOB", "Only machines that match; repeatable");
  verb.option("--branch", filter.branch, "NAME", "Only runs of this branch");
  verb.option("--since", options.since, "TIME", "Only runs measured at TIME or later");
  verb.option("--until", options.until, "TIME", "Only runs measured at TIME or before");
}

void add_repository_option(const Verb& verb, std::string& repository) {
  verb.option("--repository", repository, "DIR",
              "Checkout whose commits give the order (default: the current folder's; without one, "
              "series are ordered by time)");
}

}  // namespace weir::app
