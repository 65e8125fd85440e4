// weir plan and weir merge: divides a matrix among machines, and joins their runs.
#include "gate/flow/shards.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"
#include "gate/flow/base.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/rules.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/shards_text.hpp"
#include "gate/run/plan.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::string_view k_schema = "weir.plan/1";
constexpr std::uint64_t k_largest_plan = std::uint64_t{64} << 20;

struct ShardPlan {
  run::ShardFacts facts;  // index 0
  std::vector<config::Shard> shards;
  std::size_t measured_cells = 0;  // cells whose time an earlier run measured
};

// Returns the processes of a run as far as the configuration determines them. On another machine a
// probe may see more, or less.
run::Plan planned_run(const LoadedConfig& loaded, bool times) {
  std::vector<run::PreparedCell> cells;
  for (const config::Cell& cell : loaded.cells) {
    run::PreparedCell& prepared = cells.emplace_back();
    prepared.cell = cell;
    prepared.facts.cell = cell.key;
    prepared.facts.sweep = cell.sweep;
    prepared.counts_work = cell.engine->reports_counts();
    for (const std::string& probe : cell.engine->probes) {
      if (probe == "instructions") {
        prepared.instructions = run::CountInstructions::perf;
      } else if (probe == "host") {
        prepared.host = true;
      } else if (probe == profile::k_python) {
        prepared.python = true;
      } else {
        prepared.counts_work = true;
      }
    }
    if (!prepared.counts_work && !prepared.instructions && !prepared.host && !prepared.python)
      prepared.facts.counts_skip_reason = "nothing";
  }
  run::PlanOptions options;
  options.times = times;
  return run::make_plan(std::move(cells), *loaded.configuration.settings, options);
}

// Returns the estimated seconds of each cell. A pass that no earlier run measured is guessed,
// scaled by the pace of those that were. Counts in `measured_cells` the cells with measured times.
std::vector<double> estimate_seconds(const LoadedConfig& loaded, bool times,
                                     const std::map<std::string, ProcessTimes>& times_by_cell,
                                     std::size_t& measured_cells) {
  struct Pass {
    double guessed = 0;    // seconds of all processes
    double processes = 0;  // how many
    double measured = 0;   // seconds of one process; 0 if never measured
    [[nodiscard]] double at(double pace) const {
      return measured > 0 ? measured * processes : pace * guessed;
    }
  };
  std::vector<std::array<Pass, 2>> cells(loaded.cells.size());
  for (const run::Step& step : planned_run(loaded, times).steps) {
    Pass& pass = cells[step.cell][step.pass == profile::Pass::counted ? 0 : 1];
    pass.guessed += config::guessed_seconds(loaded.cells[step.cell], step.parameters);
    ++pass.processes;
  }
  double measured_seconds = 0, guessed = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const ProcessTimes* cell_times = look_up(times_by_cell, loaded.cells[i].key.str());
    if (cell_times == nullptr) continue;
    ++measured_cells;
    cells[i][0].measured = cell_times->counted;
    cells[i][1].measured = cell_times->timed;
    for (const Pass& pass : cells[i]) {
      if (pass.measured <= 0) continue;
      measured_seconds += pass.measured * pass.processes;
      guessed += pass.guessed;
    }
  }
  const double pace = measured_seconds > 0 && guessed > 0 ? measured_seconds / guessed : 1;
  constexpr double k_min_seconds = 0.01;  // for a cell without planned processes
  std::vector<double> seconds;
  for (const auto& [counted, timed] : cells) {
    seconds.push_back(std::max(counted.at(pace) + timed.at(pace), k_min_seconds));
  }
  return seconds;
}

// Returns the hash by which shards make sure that they share one plan.
std::string plan_hash(const std::string& config_text, const run::ShardFacts& facts) {
  return short_hash(config_text + dump_json({{"cells", facts.cells}, {"shards", facts.shards}}),
                    16);
}

// Parses a number from 1 to 4096.
std::optional<std::size_t> parse_shard_number(std::string_view text) {
  const auto value = text::to_int(text);
  if (!value || *value < 1 || *value > 4096) return std::nullopt;
  return static_cast<std::size_t>(*value);
}

// Reads a plan's file. Fails with Code::usage if it was made from another configuration.
Result<run::ShardFacts> read_plan(const std::string& path, const std::string& config_text,
                                  const sys::Files& files) {
  WEIR_TRY(const std::string text, files.read(path, k_largest_plan));
  const JsonLimits limits{.bytes = k_largest_plan, .depth = 16};
  WEIR_TRY(const Json json, parse_json(text, limits).map_error(with_prefix(path)));
  if (member_or_null(json, "schema") != k_schema) {
    return fail(Code::usage, "{} is no plan of weir plan ({})", path, k_schema);
  }
  WEIR_TRY(auto facts, run::parse_shard_facts({{"shard", json.value("facts", Json::object())}})
                           .map_error(with_prefix(path)));
  if (facts->plan != plan_hash(config_text, *facts)) {
    return fail(Code::usage,
                "{} was made from another configuration: every shard needs the one it was planned "
                "with; run weir plan again",
                path);
  }
  return *std::move(facts);
}

}  // namespace

// Returns the mean seconds of counted and timed processes, by cell.
std::map<std::string, ProcessTimes> process_times(const run::RunFile& run) {
  std::map<std::string, ProcessTimes> times_by_cell, processes;
  for (const profile::RunRecord& record : run.records) {
    if (record.error) continue;
    const auto pass =
        record.pass == profile::Pass::counted ? &ProcessTimes::counted : &ProcessTimes::timed;
    times_by_cell[record.cell].*pass += record.wall_seconds;
    ++(processes[record.cell].*pass);
  }
  for (auto& [cell, times] : times_by_cell) {
    times.counted /= std::max(1.0, processes[cell].counted);
    times.timed /= std::max(1.0, processes[cell].timed);
  }
  return times_by_cell;
}

namespace {

// Divides the selected cells into shards, for several machines. Deterministic for the same
// configuration and times.
Result<ShardPlan> plan_shards(const LoadedConfig& loaded, std::size_t count, bool times,
                              const std::map<std::string, ProcessTimes>& times_by_cell) {
  if (times && loaded.configuration.settings->gate.reference) {
    return fail(Code::usage,
                "{}: a reference workload runs beside every timed cell, and shards cannot share "
                "one: leave it out, or plan with --counts-only",
                loaded.configuration.settings->gate.reference_source);
  }
  ShardPlan plan;
  const std::vector<double> seconds =
      estimate_seconds(loaded, times, times_by_cell, plan.measured_cells);
  WEIR_TRY(plan.shards, config::make_shards(loaded.cells, seconds, count));
  for (const config::Cell& cell : loaded.cells) plan.facts.cells.push_back(cell.key.str());
  for (const config::Shard& shard : plan.shards) plan.facts.shards.push_back(shard.cells);
  plan.facts.plan = plan_hash(loaded.text, plan.facts);
  return plan;
}

// Returns the plan as a weir.plan/1 document.
Json to_json(const ShardPlan& plan) {
  Json json = {{"schema", k_schema},
               {"facts", run::to_json(plan.facts)},
               {"known_cells", plan.measured_cells},
               {"shards", Json::array()}};
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    const config::Shard& shard = plan.shards[i];
    json["shards"].push_back({{"shard", fmt::format("{}/{}", i + 1, plan.shards.size())},
                              {"runner", shard.runner},
                              {"cells", plan.facts.cells_of(i + 1)},
                              {"seconds", shard.seconds}});
  }
  return json;
}

}  // namespace

// Selects the cells of one shard, such as "3/16", by a plan's file or by a plan made anew.
Result<run::ShardFacts> choose_shard(LoadedConfig& loaded, const std::string& shard,
                                     const std::string& plan_file, bool times,
                                     const sys::Files& files) {
  const std::size_t slash = shard.find('/');
  const auto index = parse_shard_number(std::string_view(shard).substr(0, slash));
  const auto count = slash == std::string::npos
                         ? std::nullopt
                         : parse_shard_number(std::string_view(shard).substr(slash + 1));
  if (!index || !count || *index > *count) {
    return fail(Code::usage, "--shard {}: a number and how many there are: --shard 3/16",
                text::printable(shard));
  }
  run::ShardFacts facts;
  if (plan_file.empty()) {
    WEIR_TRY(ShardPlan plan, plan_shards(loaded, *count, times, {}));
    facts = std::move(plan.facts);
  } else {
    WEIR_TRY(facts, read_plan(plan_file, loaded.text, files));
  }
  if (facts.shards.size() != *count) {
    return fail(Code::usage, "--shard {}: the plan has {} shards", shard, facts.shards.size());
  }
  facts.index = *index;
  std::vector<config::Cell> shard_cells;
  for (const std::string& name : facts.cells_of(*index)) {
    const auto has_name = [&](const config::Cell& cell) { return cell.key.str() == name; };
    const config::Cell* selected = find_first(loaded.cells, has_name);
    if (selected == nullptr) {
      return fail(Code::usage, "--shard {}: the plan's {} is not among the selected cells", shard,
                  loaded.configuration.redactor.cell_name(name));
    }
    shard_cells.push_back(*selected);
  }
  loaded.cells = std::move(shard_cells);
  return facts;
}

double shard_false_alarm(const run::ShardFacts& facts, double false_alarm) {
  if (facts.index == 0) return false_alarm;
  return false_alarm * static_cast<double>(facts.shards[facts.index - 1].size()) /
         static_cast<double>(facts.cells.size());
}

namespace {

// Copies the baselines of one shard's run into the joined run. Each cell belongs to one shard.
Result<void> copy_baselines(const std::string& from, const std::string& to_folder,
                            sys::Files& files) {
  if (files.kind(from) != sys::Kind::folder) return {};
  WEIR_TRY(const auto entries, StoredBaselines(files, from).all());
  StoredBaselines into(files, to_folder);
  for (const StoredBaselines::Entry& entry : entries) WEIR_CHECK(into.put(entry.baseline));
  return {};
}

// Joins the journals of all shards into one, and sets `started` to the earliest start (Unix
// seconds).
Result<std::string> join_runs(const Job& job, const MergeOptions& options, double& started) {
  std::vector<run::ShardRun> shards;
  for (const std::string& name : options.runs) {
    run::ShardRun shard{name, {}};
    WEIR_TRY(shard.run, run::read_run(job.files(), name));
    const double started_at = shard.run.header.started_at;
    started = shards.empty() ? started_at : std::min(started, started_at);
    shards.push_back(std::move(shard));
  }
  // Errors name cells, so we hide what the first shard's configuration or rules call private.
  const run::RunHeader first = shards.front().run.header;
  const auto configuration = read_configuration(first, job.world);
  return run::merge(std::move(shards), options.partial).map_error([&](Error error) {
    const std::string texts = first.config_text + dump_json(first.extra);
    if (!configuration && texts.find("private") != std::string::npos) {
      return Error{error.code,
                   "these runs are no whole plan; their configuration cannot "
                   "be read here, so what is private in it is not known"};
    }
    return redacted(std::move(error), configuration ? configuration->redactor : config::Redactor());
  });
}

// Makes the folder of the joined run: --into, or one named by time. Fails with Code::usage if
// --into is there already: the pull request may have committed a run.
Result<std::string> make_joined_folder(const Job& job, const MergeOptions& options,
                                       double started) {
  if (!options.into) {
    WEIR_CHECK(check_runs_folder(job));
    return run::make_run_folder(job.files(), job.selection.runs_folder, started);
  }
  if (job.files().exists(*options.into)) {
    return fail(Code::usage, "--into {}: it is there already; name a new folder", *options.into);
  }
  WEIR_CHECK(job.files().make_dirs(*options.into));
  return *options.into;
}

}  // namespace

// Joins the runs of all shards into one run, with the baselines that they kept.
Result<Answer> merge(const Job& job, const MergeOptions& options) {
  sys::Files& files = job.files();
  double started = 0;
  WEIR_TRY(const std::string text, join_runs(job, options, started));
  WEIR_TRY(const std::string folder, make_joined_folder(job, options, started));
  for (const std::string& name : options.runs) {
    // A run may be named by its folder or by its journal.
    const bool is_folder = files.kind(name) == sys::Kind::folder;
    const std::string from = is_folder ? name : sys::folder_of(name);
    WEIR_CHECK(copy_baselines(base_counts_folder(from), base_counts_folder(folder), files));
    WEIR_CHECK(copy_baselines(baselines_in_run(from), baselines_in_run(folder), files));
  }
  WEIR_CHECK(files.write_atomic(sys::join_path(folder, run::k_journal_name), text));
  return Answer{
      text::printable(fmt::format("{} joined: {}\n  judge it with: weir gate --from {}\n",
                                  text::plural(options.runs.size(), "shard"), folder, folder))};
}

namespace {

// Returns the times of processes that earlier runs measured, by cell; later ones override earlier
// ones.
Result<std::map<std::string, ProcessTimes>> measured_times(const Job& job,
                                                           const ShardPlanOptions& options) {
  std::map<std::string, ProcessTimes> times_by_cell;
  if (options.guess) return times_by_cell;
  std::vector<std::string> runs = options.runs;
  if (runs.empty()) {
    auto newest = newest_run(job);
    if (newest) runs.push_back(*std::move(newest));
  }
  for (const std::string& name : runs) {
    WEIR_TRY(const run::RunFile run, run::read_run(job.files(), name));
    for (const auto& [cell, times] : process_times(run)) {
      ProcessTimes& merged = times_by_cell[cell];
      if (times.counted > 0) merged.counted = times.counted;
      if (times.timed > 0) merged.timed = times.timed;
    }
  }
  return times_by_cell;
}

// Fails if a cell needs a runner that the rules give to no backend. A label chooses the machine
// that runs a pull request's code, so a pull request must not add one. `rules` is null without
// --rules-from.
Result<void> check_runners(const Job& job, const LoadedConfig& loaded, const Rules* rules,
                           const std::string& ref) {
  const auto labelled = std::ranges::find_if(
      loaded.cells, [](const config::Cell& cell) { return !cell.runner.empty(); });
  if (labelled == loaded.cells.end()) return {};
  if (rules == nullptr) {
    const bool is_request = job.variable("GITHUB_EVENT_NAME").starts_with("pull_request") ||
                            !job.variable("CI_MERGE_REQUEST_IID").empty();
    if (!is_request) return {};
    return fail(Code::usage,
                "{}: a pull request would choose the runner of {} ({}): plan with --rules-from "
                "and its base, whose runners alone are then taken",
                job.selection.config, loaded.configuration.redactor.cell(labelled->key).str(),
                text::join(labelled->runner, "+"));
  }
  std::set<std::vector<std::string>> base_runners;
  base_runners.insert(std::vector<std::string>());  // a cell may need no label
  if (rules->settings) {
    for (const auto& backend : rules->settings->backends) base_runners.insert(backend.runner);
  }
  for (const config::Cell& cell : loaded.cells) {
    if (base_runners.contains(cell.runner)) continue;
    return fail(Code::config,
                "{}: {} needs the runner {}, which {} gives to no backend: merge that label "
                "first, in a change of its own",
                job.selection.config, loaded.configuration.redactor.cell(cell.key).str(),
                text::join(cell.runner, "+"), text::printable(ref));
  }
  return {};
}

// Fails if a word would end a line of a script: a comment there ends with the line.
Result<void> check_single_lines(const report::ShardsText& plan) {
  std::vector<std::string> words = plan.cells;
  words.insert(words.end(), {plan.plan_file, plan.config, plan.out});
  for (const std::string& word : words) {
    const bool is_control = std::ranges::any_of(
        word, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7F'; });
    if (is_control) {
      return fail(Code::usage, "--format slurm: \"{}\" has a line break or control character",
                  text::printable(word));
    }
  }
  return {};
}

// Returns the plan for people, with private names hidden.
report::ShardsText plan_text(const Job& job, const ShardPlan& plan, const ShardPlanOptions& options,
                             const config::Redactor& redactor) {
  report::ShardsText text;
  text.plan_file = options.plan;
  text.config = job.selection.config;
  text.out = job.selection.runs_folder;
  text.cells = job.selection.cells;
  text.counts_only = job.selection.counts_only;
  text.cells_in_all = plan.facts.cells.size();
  text.cells_with_known_time = plan.measured_cells;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    std::vector<std::string> cells;
    for (const std::string& cell : plan.facts.cells_of(i + 1))
      cells.push_back(redactor.cell_name(cell));
    text.shards.push_back({plan.shards[i].runner, std::move(cells), plan.shards[i].seconds});
  }
  return text;
}

}  // namespace

// Divides the matrix into shards, writes the plan, and prints it as --format asks.
Result<Answer> plan(const Job& job, const ShardPlanOptions& options) {
  WEIR_TRY(LoadedConfig loaded, load_config(job));
  std::shared_ptr<const Rules> rules;
  if (options.rules_from) WEIR_TRY_SET(rules, read_rules({options.rules_from, std::nullopt}, job));
  if (rules && rules->settings) hide_private_names(*rules->settings, loaded.configuration);
  WEIR_CHECK(check_runners(job, loaded, rules.get(), options.rules_from.value_or("")));
  WEIR_TRY(const auto times, measured_times(job, options));
  WEIR_TRY(const ShardPlan shard_plan,
           plan_shards(loaded, options.shards, !job.selection.counts_only, times));
  const std::string json = json_document(to_json(shard_plan));
  WEIR_CHECK(job.files().write_atomic(options.plan, json));
  const report::ShardsText text =
      plan_text(job, shard_plan, options, loaded.configuration.redactor);
  std::string printed;
  if (options.format == "json") {
    printed = json;
  } else if (options.format == "github") {
    printed = report::shards_for_github(text) + "\n";
  } else if (options.format == "slurm") {
    WEIR_CHECK(check_single_lines(text));
    printed = report::shards_for_slurm(text);
  } else {
    printed = report::shards_text(text, job.width());
  }
  job.world.terminal.write(1, text::neutralize_ci_commands(text::printable(printed)));
  return Answer{};
}

}  // namespace weir::flow
