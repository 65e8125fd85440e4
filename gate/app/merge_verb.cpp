// weir merge: the runs of all shards joined into one.
#include <memory>

#include "gate/app/beside.hpp"
#include "gate/app/command_line.hpp"
#include "gate/app/known.hpp"
#include "gate/app/rules.hpp"
#include "gate/app/stored_baselines.hpp"
#include "gate/app/veiled.hpp"
#include "gate/config/parse.hpp"
#include "gate/run/merge.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

struct MergeOptions {
  std::vector<std::string> runs;
  std::string out = "weir-out";
  bool partial = false;
};

// The folder of a run that was named by its folder or its journal.
std::string folder_of_run(const std::string& run, const sys::Files& files) {
  return files.kind(run) == sys::Kind::folder ? run : sys::folder_of(run);
}

// What a run keeps beside its journal: the base's counts, and the baselines that judge it. Each
// cell is of one shard.
Result<void> copy_baselines(const std::string& from, const std::string& to, sys::Files& files) {
  if (files.kind(from) != sys::Kind::folder) return {};
  WEIR_TRY(const auto entries, StoredBaselines(files, from).all());
  StoredBaselines into(files, to);
  for (const StoredBaselines::Entry& entry : entries) {
    WEIR_TRY(const std::string path, into.put(entry.baseline));
    (void)path;
  }
  return {};
}

Result<ExitCode> merge(const MergeOptions& options) {
  sys::RealFiles files;
  std::vector<run::ShardRun> shards;
  double started = 0;
  for (const std::string& name : options.runs) {
    run::ShardRun shard{name, {}};
    WEIR_TRY(shard.run, run::read_run(files, name));
    const double begun = shard.run.header.started_at;
    started = shards.empty() ? begun : std::min(started, begun);
    shards.push_back(std::move(shard));
  }
  // Errors name cells: what is private in the first shard's configuration stays at home.
  const run::RunHeader& first = shards.front().run.header;
  const auto settings = config::parse_settings(first.config_text, first.config_file,
                                               known_now(files, first.config_file));
  const config::Veil veil =
      settings ? config::Veil(*settings, sys::absolute(sys::folder_of(first.config_file)))
               : config::Veil();
  WEIR_TRY(const std::string text,
           run::merge(std::move(shards), options.partial).map_error([&](Error error) {
             if (!settings && first.config_text.find("private") != std::string::npos) {
               return Error{error.code,
                            "these runs are no whole plan; their configuration can not "
                            "be read here, so what is private in it is not known"};
             }
             return veiled(std::move(error), veil);
           }));
  WEIR_TRY(const std::string folder, run::make_run_folder(files, options.out, started));
  for (const std::string& name : options.runs) {
    const std::string from = folder_of_run(name, files);
    WEIR_CHECK(copy_baselines(base_counts_folder(from), base_counts_folder(folder), files));
    WEIR_CHECK(copy_baselines(baselines_in_run(from), baselines_in_run(folder), files));
  }
  WEIR_CHECK(files.write_atomic(sys::join_path(folder, std::string(run::k_journal_name)), text));
  say(fmt::format("{} shard{} joined: {}\n  judge it with: weir gate --from {}\n",
                  options.runs.size(), options.runs.size() == 1 ? "" : "s", folder, folder));
  return ExitCode::pass;
}

}  // namespace

void add_merge(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("merge", "Join the runs of all shards into one");
  auto options = std::make_shared<MergeOptions>();
  verb->add_option("RUN", options->runs, "Folders of runs, or their run.jsonl")->required();
  verb->add_option("--out", options->out, "Where runs go")->capture_default_str();
  verb->add_flag("--partial", options->partial,
                 "Shards may be missing: their cells could not be measured (exit 3 when judged)");
  verb->footer(
      "Examples:\n"
      "  weir merge shard-*/weir-out/*        duplicates and holes are errors that name the cells\n"
      "  weir gate --from                     judges the joined run");
  set_action(*verb, [options] { return merge(*options); });
}

}  // namespace weir::app
