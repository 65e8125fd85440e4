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

void Verb::add_config_option(const char* help) const {
  option_with_default("-c,--config", job_->selection.config, "FILE", help)
      ->each([job = job_](const std::string&) { job->selection.config_is_set = true; });
}

void Verb::add_cell_option() const {
  list_option("--cell", job_->selection.cells, "GLOB",
              "Only cells that match GLOB ('*' crosses '/'); repeatable");
}

void Verb::add_baselines_option() const {
  option_with_default("--baselines", job_->selection.baselines, "DIR",
                      "Folder of stored baselines");
}

void Verb::add_out_option() const {
  option_with_default("--out", job_->selection.runs_folder, "DIR", "Folder of runs");
}

void Verb::add_json_option(const char* help) const {
  option("--json", job_->output.json, "[FILE]", help)->expected(0, 1)->default_str("-");
}

void Verb::add_color_option() const {
  option_with_default("--color", job_->output.color, "", "When to use colour")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void Verb::add_trust_cache_option() const {
  flag("--trust-cache", job_->trusts_cache,
       "In CI and jobs of a scheduler, reuse builds and counts of base commits, and compiled "
       "kernels, from the cache. This trusts all that could write there: engines of earlier pull "
       "requests too");
}

void Verb::add_quiet_option(const char* help) const {
  flag("-q,--quiet", job_->output.quiet, help);
}

// Adds the options that all verbs of a group share: configuration, cells, baselines, folders,
// output.
void Verb::add_group(OptionGroup group) const {
  const bool has_config = group != OptionGroup::runs && group != OptionGroup::output;
  if (has_config) add_config_option();
  if (group != OptionGroup::config && group != OptionGroup::output) add_cell_option();
  if (group == OptionGroup::matrix || group == OptionGroup::measuring) add_baselines_option();
  if (has_config) add_out_option();
  if (group == OptionGroup::measuring) {
    flag("--counts-only", job_->selection.counts_only, "Count only: no timed passes");
    add_trust_cache_option();
  }
  add_json_option();
  add_quiet_option();
  add_color_option();
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
  verb.option_with_default("--app", options.app, "SLUG", "GitHub App that posts as weir");
}

void add_report_files(const Verb& verb, flow::ReportFiles& files) {
  for (std::size_t i = 0; i < files.files.size(); ++i) {
    const report::ReportFormat& format = report::report_formats()[i];
    verb.option(format.option, files.files[i], "FILE", format.about);
  }
}

// Adds the options of verbs that measure: resume, number of runs, shards, plan.
void add_measure_options(const Verb& verb, flow::MeasureOptions& options) {
  options.verb = verb->get_name();
  verb.optional("--resume", options.resume, "[RUN]",
                "Continue an interrupted RUN (default: the newest)");
  verb.option("--runs", options.plan.runs, "", "Timed processes per cell (default: gate.runs)")
      ->check(CLI::Range(1, 10'000));
  CLI::Option* shard =
      verb.option("--shard", options.shard, "I/N", "Measure one part of the matrix, such as 3/16");
  verb.option("--profiling-cost", options.plan.cost_pairs, "[PAIRS]",
              "Measure what probes cost, in pairs of timed processes with and without them")
      ->expected(0, 1)
      ->default_str("8")
      ->check(CLI::Range(5, 1000));  // fewer pairs show nothing in 9 of 10 cases
  verb.option("--plan", options.plan_file, "FILE",
              "Plan that weir plan wrote (default: made from the configuration)")
      ->needs(shard);
}

void add_store_options(const Verb& verb, flow::StoreOptions& options) {
  verb.option("--db", options.db, "FILE|URL",
              fmt::format("The history: a file, or the URL of a PostgreSQL database (default: "
                          "WEIR_DB, else {}). Keep passwords in WEIR_DB, PGPASSWORD or ~/.pgpass",
                          flow::k_default_history));
}

// Adds the options that select a stored history, and the runs in it.
void add_history_options(const Verb& verb, flow::HistoryOptions& history) {
  add_store_options(verb, history.store);
  flow::FilterOptions& options = history.filter;
  history::Filter& filter = options.filter;
  verb.option("--project", filter.project, "NAME", "Only this project");
  verb.list_option("--cell", filter.cells, "GLOB",
                   "Only cells that match ('*' crosses '/'); repeatable");
  verb.list_option("--metric", filter.metrics, "GLOB", "Only metrics that match; repeatable");
  verb.list_option("--machine", filter.machines, "GLOB", "Only machines that match; repeatable");
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
