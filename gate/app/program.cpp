#include "gate/app/program.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

AddVerb add_ab, add_config;
AddVerb add_demo, add_init, add_run, add_gate, add_compare, add_explain, add_plan, add_merge,
    add_baseline, add_post, add_allow, add_reach, add_calibrate, add_model, add_device, add_doctor,
    add_profile, add_replay, add_replay_kernels, add_bisect, add_hook, add_trend, add_serve,
    add_completion;

namespace {

enum class Group { start, gate, understand, compare, share, machine, history, hidden };

struct VerbEntry {
  const char* name;
  const char* what;
  Group group;  // of --help
  AddVerb* add;
};

// In the order of --help. A verb is a file in verbs/, a line here and its name above.
constexpr VerbEntry k_verbs[] = {
    {"demo", "One regression, from the baseline to its cause", Group::start, add_demo},
    {"init", "Write a starter weir.yaml for the engines found here", Group::start, add_init},
    {"ab", "Compare two programs, without a configuration", Group::start, add_ab},
    {"config", "Print what a weir.yaml comes to", Group::start, add_config},
    {"run", "Measure the matrix, write a run; judges nothing", Group::gate, add_run},
    {"gate", "Measure, compare with baselines, report", Group::gate, add_gate},
    {"compare", "Judge run B against run A, or say how two profiles differ", Group::compare,
     add_compare},
    {"explain", "Why a cell changed: what fits the differences", Group::understand, add_explain},
    {"plan", "Split the matrix into shards for several machines", Group::share, add_plan},
    {"merge", "Join the runs of all shards into one", Group::share, add_merge},
    {"baseline", "What a candidate is held to, in the repository", Group::gate, add_baseline},
    {"post", "Summary to GitHub: comment, check run, commit status", Group::share, add_post},
    {"allow", "Accept a change for one pull request", Group::gate, add_allow},
    {"reach", "Which cells run the changed code at all; judges nothing", Group::understand,
     add_reach},
    {"calibrate", "Each cell against itself: can this machine hold the limits on times?",
     Group::machine, add_calibrate},
    {"model", "Small models; a tiny twin of a real one", Group::machine, add_model},
    {"device", "Descriptions of GPUs, for device twins", Group::machine, add_device},
    {"doctor", "What probes can see, and what makes this machine's times worse", Group::machine,
     add_doctor},
    {"profile", "One program once, with all that probes see: a table and a Chrome trace",
     Group::understand, add_profile},
    {"replay", "Compute the ops of an engine's step alone, at their exact shapes and types",
     Group::understand, add_replay},
    {"replay-kernels", "Vulkan kernels as the probe recorded them, each run again alone",
     Group::hidden, add_replay_kernels},
    {"bisect", "The first commit that broke a cell", Group::understand, add_bisect},
    {"hook", "The local pre-push check", Group::gate, add_hook},
    {"trend", "A history of what was measured", Group::history, add_trend},
    {"serve", "History, pages and the upload API over HTTP", Group::history, add_serve},
    {"completion", "Print a completion script for a shell", Group::start, add_completion},
};

verdict::ExitCode exit_code_of(Code code) {
  using verdict::ExitCode;
  if (code == Code::usage || code == Code::config) return ExitCode::usage;
  return code == Code::interrupted ? ExitCode::interrupted : ExitCode::unmeasured;
}

}  // namespace

void Program::choose(std::shared_ptr<const flow::Job> job, Action action, bool takes_words) {
  if (action_) return;  // of a verb below it, which goes first
  job_ = std::move(job);
  action_ = std::move(action);
  takes_words_ = takes_words;
}

Result<verdict::ExitCode> Program::act() const {
  if (!words_.empty() && !takes_words_) {
    return fail(Code::usage, "this verb takes no program behind \"--\"");
  }
  WEIR_TRY(const flow::Answer answer, action_(words_));
  if (!answer.text.empty()) job_->answer(answer.text);
  WEIR_CHECK(flow::write_json(*job_, answer.json));
  return answer.code;
}

int Program::run(int argc, const char* const* argv) {
  CLI::App app{"weir: a performance-regression gate for LLM inference engines", "weir"};
  app.set_version_flag("--version", fmt::format("weir {}", flow::k_version));
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
  for (const VerbEntry& entry : k_verbs) {
    CLI::App* verb = app.add_subcommand(entry.name, entry.what);
    if (entry.group == Group::hidden) verb->group("");
    entry.add(Verb(*this, *verb));
  }
  constexpr int k_usage = static_cast<int>(verdict::ExitCode::usage);
  try {
    Words words(argv + 1, argv + argc);
    const auto dashes = std::ranges::find(words, "--");
    if (dashes != words.end()) {
      words_.assign(dashes + 1, words.end());
      words.erase(dashes, words.end());
    }
    std::ranges::reverse(words);  // as the parser wants them
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here as well, with exit code 0.
    return app.exit(error) == 0 ? 0 : k_usage;
  }
  if (!action_) {
    fmt::print("{}", app.help());
    return k_usage;
  }
  const auto code = act();
  if (code) return static_cast<int>(*code);
  flow::print_error(world_, code.error());
  return static_cast<int>(exit_code_of(code.error().code));
}

}  // namespace weir::app
