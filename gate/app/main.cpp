// weir: the command line. Each verb is a file of its own; this one only turns what a verb answers
// into an exit code.
#include <algorithm>
#include <exception>

#include "gate/app/command_line.hpp"
#include "gate/app/version.hpp"

namespace {

int run(int argc, char** argv) {
  using namespace weir::app;
  CLI::App app{"weir: a performance-regression gate for LLM inference engines", "weir"};
  app.set_version_flag("--version", fmt::format("weir {}", k_version));
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n"
      "  weir demo                    one regression from start to end, in a minute\n"
      "  weir init                    write a starter weir.yaml for the engines found here\n"
      "  weir gate                    measure, compare with baselines/, report\n"
      "  weir gate --counts-only      seconds instead of minutes: counts are exact in one run\n"
      "  weir baseline accept         make what was measured the new baseline\n\n"
      "Exit codes: 0 pass, 1 a limit is broken, 2 usage or configuration, 3 something could not "
      "be\n"
      "measured, 4 inconclusive (under on_inconclusive: fail), 130 interrupted.");
  add_demo(app);
  add_init(app);
  add_run(app);
  add_gate(app);
  add_compare(app);
  add_explain(app);
  add_plan(app);
  add_merge(app);
  add_baseline(app);
  add_post(app);
  add_allow(app);
  add_reach(app);
  add_calibrate(app);
  add_model(app);
  add_device(app);
  add_doctor(app);
  add_profile(app);
  add_replay(app);
  add_replay_kernels(app);
  add_bisect(app);
  add_hook(app);
  add_trend(app);
  add_serve(app);
  add_completion(app);
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    take_words_behind(words);
    std::reverse(words.begin(), words.end());  // as the parser wants them
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here as well, with exit code 0.
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  const Action& action = chosen_action();
  if (!action) {
    fmt::print("{}", app.help());
    return static_cast<int>(ExitCode::usage);
  }
  const auto code = action();
  if (code) return static_cast<int>(*code);
  print_error(code.error());
  return static_cast<int>(exit_code_of(code.error().code));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    weir::app::print_error(
        {weir::Code::internal, fmt::format("a fault in weir: {}", error.what())});
  }
  return static_cast<int>(weir::verdict::ExitCode::unmeasured);
}
