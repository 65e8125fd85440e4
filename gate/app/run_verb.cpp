// weir run: measures the matrix and writes a run; judges nothing.
#include <memory>

#include "gate/app/command_line.hpp"
#include "gate/app/session.hpp"
#include "gate/base/text.hpp"
#include "gate/report/profile_texts.hpp"

namespace weir::app {
namespace {

struct RunOptions {
  CommonOptions common;
  std::optional<std::string> resume;
  std::optional<std::int64_t> runs;
  bool dry_run = false;
  std::optional<std::string> against;
  MeasureOptions wanted;  // of shards
};

Result<ExitCode> dry_run(const RunOptions& options, const MeasureOptions& wanted,
                         sys::Files& files) {
  WEIR_TRY(Loaded loaded, load_config(options.common, files));
  const config::Veil veil = loaded.veil;
  WEIR_TRY(const auto commands, planned_commands(std::move(loaded), options.common, wanted,
                                                 {options.common.out, ""}, files));
  Json planned = Json::array();
  for (const PlannedCommand& command : commands) {
    planned.push_back({{"cell", command.cell},
                       {"pass", profile::to_string(command.pass)},
                       {"argv", command.argv},
                       {"env", Json::object()}});
    for (const auto& [name, value] : command.env) planned.back()["env"][name] = value;
    std::string line;
    for (const auto& [name, value] : command.env)
      line += fmt::format("{}={} ", name, text::shell_word(veil.text(value)));
    for (std::size_t i = 0; i < command.argv.size(); ++i) {
      line += (i == 0 ? "" : " ") + text::shell_word(veil.text(command.argv[i]));
    }
    answer(options.common, fmt::format("{}\n", line));
  }
  WEIR_CHECK(write_json(
      options.common, dump_json({{"schema", "weir.commands/1"}, {"commands", planned}}, 1) + "\n"));
  return ExitCode::pass;
}

Result<ExitCode> run_matrix(const RunOptions& options) {
  sys::RealFiles files;
  MeasureOptions wanted = options.wanted;
  wanted.plan.times = !options.common.counts_only;
  if (options.against) wanted.against = AgainstWanted{.spec = *options.against, .command = {}};
  wanted.plan.runs = options.runs;
  wanted.resume = options.resume;
  if (options.common.json && *options.common.json != "-") {
    wanted.output_places.push_back(*options.common.json);
  }
  if (options.dry_run) return dry_run(options, wanted, files);
  WEIR_TRY(Measured measured, measure(options.common, wanted, files));
  veil_profiles(measured);
  answer(options.common, report::profiles_text(measured.profiles,
                                               {.width = width_of(answer_stream(options.common))}));
  answer(options.common, fmt::format("run {}\n", measured.folder));
  return write_profiles(options.common, measured.profiles);
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("run", "Measure the matrix, write a run; judges nothing");
  auto options = std::make_shared<RunOptions>();
  add_common(*verb, options->common, Takes::measuring);
  verb->add_option("--resume", options->resume, "Go on with an interrupted RUN (default: newest)")
      ->type_name("[RUN]")
      ->expected(0, 1)
      ->default_str("");
  verb->add_option("--runs", options->runs, "Timed processes a cell, in place of gate.runs")
      ->check(CLI::Range(1, 10'000));
  verb->add_option("--against", options->against,
                   "Beside the base of REF, or the folder DIR: judged later, by weir gate --from")
      ->type_name("REF|DIR");
  add_shard_options(*verb, options->wanted);
  verb->add_flag("--dry-run", options->dry_run, "Print the engine's command lines, start none");
  verb->footer(
      "Examples:\n  weir run --counts-only\n  weir run --cell '*/decode' --json -\n  weir run "
      "--dry-run\n  weir run --shard 3/16 --plan weir-plan.json   a part; weir merge joins them");
  set_action(*verb, [options] { return run_matrix(*options); });
}

}  // namespace weir::app
