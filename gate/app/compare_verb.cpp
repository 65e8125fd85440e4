// weir compare A B: judges run B against run A, with the limits of B's configuration.
#include <memory>

#include "gate/app/command_line.hpp"
#include "gate/app/judging.hpp"
#include "gate/app/veiled.hpp"

namespace weir::app {
namespace {

struct CompareOptions {
  CommonOptions common;
  ReportFiles files;
  std::string base, candidate;
};

Result<ExitCode> compare(const CompareOptions& options) {
  sys::RealFiles files;
  WEIR_TRY(const Measured base, read_measured(options.common, options.base, files));
  WEIR_TRY(Measured candidate, read_measured(options.common, options.candidate, files));
  verdict::GateVerdict verdict = judge_against(candidate, base, policy_of(candidate, false));
  verdict.run.reset();  // a comparison is not the run's own verdict
  // What either side calls private stays so.
  return publish(options.common, options.files, veiled(verdict, base.veil), candidate.veil, files);
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("compare", "Judge run B against run A");
  auto options = std::make_shared<CompareOptions>();
  verb->add_option("A", options->base, "The run that is the base: its folder or run.jsonl")
      ->required();
  verb->add_option("B", options->candidate, "The run that is judged")->required();
  add_common(*verb, options->common, Takes::runs);
  refuse_option(*verb, "-c,--config", "the limits are those of B's own configuration, kept in it");
  refuse_option(*verb, "--out", "A and B are given with their folders");
  refuse_option(*verb, "--baselines", "A takes the place of stored baselines");
  add_report_files(*verb, options->files);
  verb->footer("Example:\n  weir compare weir-out/20261120-0930 weir-out/20261120-1015");
  set_action(*verb, [options] { return compare(*options); });
}

}  // namespace weir::app
