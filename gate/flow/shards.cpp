#include "gate/flow/shards.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"
#include "gate/flow/base.hpp"
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
  std::size_t known = 0;  // cells whose time some run knew
};

// The processes that a run starts, as far as the configuration alone tells: on another machine a
// probe may see more, or less.
run::Plan planned_run(const Loaded& loaded, bool times) {
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
      } else {
        prepared.counts_work = true;
      }
    }
    if (!prepared.counts_work && !prepared.instructions && !prepared.host)
      prepared.facts.counts_skipped = "nothing";
  }
  run::PlanOptions options;
  options.times = times;
  return run::make_plan(std::move(cells), *loaded.known.settings, options);
}

// A pass that no run knew is guessed, at the pace of what is known.
std::vector<double> seconds_of(const Loaded& loaded, bool times,
                               const std::map<std::string, KnownTimes>& known,
                               std::size_t& known_cells) {
  struct Pass {
    double guessed = 0, processes = 0, known = 0;  // known: of one, 0 where it is not
    [[nodiscard]] double at(double pace) const {
      return known > 0 ? known * processes : pace * guessed;
    }
  };
  std::vector<std::array<Pass, 2>> cells(loaded.cells.size());
  for (const run::Step& step : planned_run(loaded, times).steps) {
    Pass& pass = cells[step.cell][step.pass == profile::Pass::counted ? 0 : 1];
    pass.guessed += config::guessed_seconds(loaded.cells[step.cell], step.asked);
    ++pass.processes;
  }
  double seen = 0, guessed = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const KnownTimes* times_of = look_up(known, loaded.cells[i].key.str());
    if (times_of == nullptr) continue;
    ++known_cells;
    cells[i][0].known = times_of->counted;
    cells[i][1].known = times_of->timed;
    for (const Pass& pass : cells[i]) {
      if (pass.known <= 0) continue;
      seen += pass.known * pass.processes;
      guessed += pass.guessed;
    }
  }
  const double pace = seen > 0 && guessed > 0 ? seen / guessed : 1;
  constexpr double k_least = 0.01;  // of a cell that nothing is planned for
  std::vector<double> seconds;
  for (const auto& [counted, timed] : cells) {
    seconds.push_back(std::max(counted.at(pace) + timed.at(pace), k_least));
  }
  return seconds;
}

std::string plan_hash(const std::string& config_text, const run::ShardFacts& facts) {
  return short_hash(config_text + dump_json({{"cells", facts.cells}, {"shards", facts.shards}}),
                    16);
}

std::optional<std::size_t> number(std::string_view text) {
  const auto value = text::to_int(text);
  if (!value || *value < 1 || *value > 4096) return std::nullopt;
  return static_cast<std::size_t>(*value);
}

Result<run::ShardFacts> read_plan(const std::string& path, const std::string& config_text,
                                  const sys::Files& files) {
  WEIR_TRY(const std::string text, files.read(path, k_largest_plan));
  const JsonLimits limits{.bytes = k_largest_plan, .depth = 16};
  WEIR_TRY(const Json json, parse_json(text, limits).map_error(in_context(path)));
  if (below(json, "schema") != k_schema) {
    return fail(Code::usage, "{} is no plan of weir plan ({})", path, k_schema);
  }
  WEIR_TRY(auto facts, run::shard_facts({{"shard", json.value("facts", Json::object())}})
                           .map_error(in_context(path)));
  if (facts->plan != plan_hash(config_text, *facts)) {
    return fail(Code::usage,
                "{} was made from another configuration: every shard needs the one it was planned "
                "with; run weir plan again",
                path);
  }
  return *std::move(facts);
}

}  // namespace

std::map<std::string, KnownTimes> known_times(const run::RunFile& run) {
  std::map<std::string, KnownTimes> known, processes;
  for (const profile::RunRecord& record : run.records) {
    if (record.error) continue;
    const auto pass =
        record.pass == profile::Pass::counted ? &KnownTimes::counted : &KnownTimes::timed;
    known[record.cell].*pass += record.wall_seconds;
    ++(processes[record.cell].*pass);
  }
  for (auto& [cell, times] : known) {
    times.counted /= std::max(1.0, processes[cell].counted);
    times.timed /= std::max(1.0, processes[cell].timed);
  }
  return known;
}

namespace {

// The same for the same configuration, cells and times.
Result<ShardPlan> plan_shards(const Loaded& loaded, std::size_t count, bool times,
                              const std::map<std::string, KnownTimes>& known) {
  if (times && loaded.known.settings->gate.reference) {
    return fail(Code::usage,
                "{}: a reference workload runs beside every timed cell, and shards cannot share "
                "one: leave it out, or plan with --counts-only",
                loaded.known.settings->gate.reference_source);
  }
  ShardPlan plan;
  const std::vector<double> seconds = seconds_of(loaded, times, known, plan.known);
  WEIR_TRY(plan.shards, config::make_shards(loaded.cells, seconds, count));
  for (const config::Cell& cell : loaded.cells) plan.facts.cells.push_back(cell.key.str());
  for (const config::Shard& shard : plan.shards) plan.facts.shards.push_back(shard.cells);
  plan.facts.plan = plan_hash(loaded.text, plan.facts);
  return plan;
}

// weir.plan/1.
Json to_json(const ShardPlan& plan) {
  Json json = {{"schema", k_schema},
               {"facts", run::to_json(plan.facts)},
               {"known_cells", plan.known},
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

Result<run::ShardFacts> choose_shard(Loaded& loaded, const std::string& shard,
                                     const std::string& plan_file, bool times,
                                     const sys::Files& files) {
  const std::size_t slash = shard.find('/');
  const auto index = number(std::string_view(shard).substr(0, slash));
  const auto count =
      slash == std::string::npos ? std::nullopt : number(std::string_view(shard).substr(slash + 1));
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
  std::vector<config::Cell> chosen;
  for (const std::string& name : facts.cells_of(*index)) {
    const auto is_it = [&](const config::Cell& cell) { return cell.key.str() == name; };
    const config::Cell* found = first_of(loaded.cells, is_it);
    if (found == nullptr) {
      return fail(Code::usage, "--shard {}: the plan's {} is not among the selected cells", shard,
                  loaded.known.redactor.cell_name(name));
    }
    chosen.push_back(*found);
  }
  loaded.cells = std::move(chosen);
  return facts;
}

double false_alarm_of(const run::ShardFacts& facts, double false_alarm) {
  if (facts.index == 0) return false_alarm;
  return false_alarm * static_cast<double>(facts.shards[facts.index - 1].size()) /
         static_cast<double>(facts.cells.size());
}

namespace {

// What a run keeps beside its journal: the base's counts, and the baselines that judge it. Each
// cell is of one shard.
Result<void> copy_baselines(const std::string& from, const std::string& to, sys::Files& files) {
  if (files.kind(from) != sys::Kind::folder) return {};
  WEIR_TRY(const auto entries, StoredBaselines(files, from).all());
  StoredBaselines into(files, to);
  for (const StoredBaselines::Entry& entry : entries) WEIR_CHECK(into.put(entry.baseline));
  return {};
}

Result<std::string> joined(const Job& job, const MergeOptions& options, double& started) {
  std::vector<run::ShardRun> shards;
  for (const std::string& name : options.runs) {
    run::ShardRun shard{name, {}};
    WEIR_TRY(shard.run, run::read_run(job.files(), name));
    const double begun = shard.run.header.started_at;
    started = shards.empty() ? begun : std::min(started, begun);
    shards.push_back(std::move(shard));
  }
  // Errors name cells: what is private in the first shard's configuration stays at home.
  const run::RunHeader first = shards.front().run.header;
  const auto known =
      configured(first.config_text, first.config_file, known_now(job.world, first.config_file));
  return run::merge(std::move(shards), options.partial).map_error([&](Error error) {
    if (!known && first.config_text.find("private") != std::string::npos) {
      return Error{error.code,
                   "these runs are no whole plan; their configuration cannot "
                   "be read here, so what is private in it is not known"};
    }
    return redacted(std::move(error), known ? known->redactor : config::Redactor());
  });
}

}  // namespace

Result<Answer> merge(const Job& job, const MergeOptions& options) {
  sys::Files& files = job.files();
  double started = 0;
  WEIR_TRY(const std::string text, joined(job, options, started));
  WEIR_TRY(const std::string folder, run::make_run_folder(files, job.asked.out, started));
  for (const std::string& name : options.runs) {
    // It was named by its folder or its journal.
    const bool folder_named = files.kind(name) == sys::Kind::folder;
    const std::string from = folder_named ? name : sys::folder_of(name);
    WEIR_CHECK(copy_baselines(base_counts_folder(from), base_counts_folder(folder), files));
    WEIR_CHECK(copy_baselines(baselines_in_run(from), baselines_in_run(folder), files));
  }
  WEIR_CHECK(files.write_atomic(sys::join_path(folder, run::k_journal_name), text));
  return Answer{
      text::printable(fmt::format("{} joined: {}\n  judge it with: weir gate --from {}\n",
                                  report::plural(options.runs.size(), "shard"), folder, folder))};
}

namespace {

// Of several runs the last named knows best.
Result<std::map<std::string, KnownTimes>> known_of(const Job& job,
                                                   const ShardPlanOptions& options) {
  std::map<std::string, KnownTimes> all;
  if (options.guess) return all;
  std::vector<std::string> runs = options.runs;
  if (runs.empty()) {
    const std::vector<std::string> here = run::list_runs(job.files(), job.asked.out);
    if (!here.empty()) runs.push_back(here.back());
  }
  for (const std::string& name : runs) {
    WEIR_TRY(const run::RunFile run, run::read_run(job.files(), name));
    for (const auto& [cell, times] : known_times(run)) {
      KnownTimes& one = all[cell];
      if (times.counted > 0) one.counted = times.counted;
      if (times.timed > 0) one.timed = times.timed;
    }
  }
  return all;
}

report::ShardsText text_of(const Job& job, const ShardPlan& plan, const ShardPlanOptions& options,
                           const config::Redactor& redactor) {
  report::ShardsText text;
  text.plan_file = options.plan;
  text.config = job.asked.config;
  text.out = job.asked.out;
  text.cells = job.asked.cells;
  text.counts_only = job.asked.counts_only;
  text.cells_in_all = plan.facts.cells.size();
  text.known = plan.known;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    std::vector<std::string> cells;
    for (const std::string& cell : plan.facts.cells_of(i + 1))
      cells.push_back(redactor.cell_name(cell));
    text.shards.push_back({plan.shards[i].runner, std::move(cells), plan.shards[i].seconds});
  }
  return text;
}

}  // namespace

Result<Answer> plan(const Job& job, const ShardPlanOptions& options) {
  WEIR_TRY(const Loaded loaded, load_config(job));
  WEIR_TRY(const auto times, known_of(job, options));
  WEIR_TRY(const ShardPlan made,
           plan_shards(loaded, options.shards, !job.asked.counts_only, times));
  const std::string json = document(to_json(made));
  WEIR_CHECK(job.files().write_atomic(options.plan, json));
  const report::ShardsText text = text_of(job, made, options, loaded.known.redactor);
  job.world.terminal.write(
      1, text::disarm(text::printable(
             options.format == "json"     ? json
             : options.format == "github" ? report::shards_for_github(text) + "\n"
             : options.format == "slurm"  ? report::shards_for_slurm(text)
                                          : report::shards_text(text, job.width()))));
  return Answer{};
}

}  // namespace weir::flow
