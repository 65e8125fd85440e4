// Runs the command line: the table of verbs, parsing, and how answers and errors leave the program.
#include "gate/app/program.hpp"

#include "gate/app/help.hpp"
#include "gate/app/options.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::app {

AddVerb add_ab, add_config, add_demo, add_init, add_run, add_gate, add_compare, add_explain,
    add_plan, add_merge, add_baseline, add_post, add_waive, add_reach, add_calibrate, add_model,
    add_device, add_doctor, add_profile, add_kernels, add_replay, add_bisect, add_hook, add_trend,
    add_serve, add_completion;

namespace {

struct VerbEntry {
  const char* group;  // heading in --help
  const char* name;
  const char* what;
  AddVerb* add;
  bool is_basic = false;  // in --help, not only in `weir help --all`
};

constexpr const char *k_start = "Start", *k_gate = "Gate", *k_cause = "Find the cause",
                     *k_ci = "In CI and before a push", *k_files = "Files", *k_history = "History",
                     *k_shell = "Shell";

// In the order of --help. A verb is a file in verbs/, its add_NAME above, a line here.
constexpr VerbEntry k_verbs[] = {
    {k_start, "demo", "Show one regression, from the baseline to its cause", add_demo, true},
    {k_start, "init", "Write a starter weir.yaml for engines found here", add_init, true},
    {k_start, "ab", "Compare two programs without a configuration", add_ab, true},
    {k_start, "doctor", "Show what probes see, and what adds noise here", add_doctor, true},
    {k_gate, "gate", "Measure and judge: the exit code is the verdict", add_gate, true},
    {k_gate, "run", "Measure without judging", add_run},
    {k_gate, "baseline", "Manage stored baselines", add_baseline, true},
    {k_gate, "calibrate", "Check which time limits this machine can hold", add_calibrate},
    {k_cause, "compare", "Compare two runs, or any two profiles", add_compare, true},
    {k_cause, "explain", "Explain why a cell changed", add_explain, true},
    {k_cause, "profile", "Profile one program: table, Chrome trace, page", add_profile, true},
    {k_cause, "kernels", "Show what kernels cost by the card's compiler, without the card",
     add_kernels},
    {k_cause, "bisect", "Find the first commit that broke a cell", add_bisect, true},
    {k_cause, "replay", "Benchmark the ops or kernels of a program alone", add_replay},
    {k_ci, "post", "Post a verdict to GitHub: comment, check, status", add_post},
    {k_ci, "waive", "Waive a change for one pull request", add_waive, true},
    {k_ci, "plan", "Split the matrix into shards for several machines", add_plan},
    {k_ci, "merge", "Join the runs of all shards", add_merge},
    {k_ci, "hook", "Install the pre-push check", add_hook, true},
    {k_ci, "reach", "List the cells that run the changed code", add_reach},
    {k_files, "model", "Make small models, or shrink a real one", add_model},
    {k_files, "device", "Manage descriptions of GPUs, for device twins", add_device},
    {k_files, "config", "Print what a weir.yaml comes to", add_config},
    {k_history, "trend", "Keep a history: change points, pages", add_trend, true},
    {k_history, "serve", "Serve history, pages and uploads over HTTP", add_serve},
    {k_shell, "completion", "Print a completion script for a shell", add_completion},
};

// Returns the words that call a command: "weir baseline accept".
std::string verb_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent == nullptr ? "" : verb_of(*parent) + " ") + command.get_name();
}

// Fails if a word is no command where one has to be. CLI11 itself would call it "not expected" and
// show the whole help.
Result<void> check_commands(const CLI::App& app, const Program::Words& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    std::vector<std::string> commands;
    for (const CLI::App* subcommand : command->get_subcommands({})) {
      // A subcommand without a name is a group of options.
      if (!subcommand->get_name().empty()) commands.push_back(subcommand->get_name());
    }
    const auto is_positional = [](const CLI::Option* option) { return option->get_positional(); };
    if (commands.empty() || word.starts_with('-')) break;
    if (!command->get_options(is_positional).empty()) break;
    if (!holds(commands, word)) {
      return fail(Code::usage, "no command \"{}\"{}\n  {} lists them", text::printable(word),
                  text::did_you_mean(word, commands),
                  command == &app ? "weir help --all" : verb_of(*command) + " --help");
    }
    command = command->get_subcommand(word);
  }
  return {};
}

// Returns a line with the top-level commands that have an option; "" if none or many have it.
std::string commands_with(const CLI::App& app, const std::string& option) {
  constexpr std::size_t k_max_commands = 4;
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_option_no_throw(option) != nullptr) commands.push_back(verb_of(*command));
  }
  if (commands.size() > k_max_commands) return "";
  return text::prefix_if_any("\n  commands that have it: ", text::join(commands));
}

// Returns the error for words that the chosen verb does not take. It names the option that was
// probably meant, or the first word too many.
Error refused_words_error(const CLI::App& app) {
  const CLI::App* command = &app;
  while (command->remaining().empty() && !command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  const std::vector<std::string> words = command->remaining();
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  const auto refused = std::ranges::find_if(words, is_option);
  if (refused == words.end()) {
    return {Code::usage,
            fmt::format("one word too many: \"{}\"\n  {} --help lists what it takes",
                        text::printable(words.empty() ? "" : words.front()), verb_of(*command))};
  }
  std::vector<std::string> options;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  return {Code::usage, fmt::format("no option {}{}{}\n  {} --help lists them",
                                   text::printable(*refused), text::did_you_mean(*refused, options),
                                   commands_with(app, *refused), verb_of(*command))};
}

constexpr const char* k_examples =
    "A benchmark cell is one point of the matrix: engine/model/backend/prompt.\n\n"
    "Examples:\n"
    "  weir demo                           see a regression found, in a minute\n"
    "  weir init                           write weir.yaml for the engines found here\n"
    "  weir ab old/bench new/bench -- -n 8 compare two programs\n"
    "  weir gate --counts-only             exact counts, in seconds\n"
    "  weir baseline accept --counts-only  store what was counted as the baseline\n"
    "  weir gate --against origin/main     compare with a base build, times included\n"
    "  weir explain                        why the newest run failed\n"
    "  weir help gate                      options and examples of a command\n"
    "  weir help --all                     all commands: CI, servers, files, …\n\n"
    "Exit codes: 0 pass, 1 a limit is broken, 2 usage or configuration error,\n"
    "3 something could not be measured, 4 inconclusive (if gate.on_inconclusive is\n"
    "fail), 130 interrupted.";

}  // namespace

void Program::choose(std::shared_ptr<const flow::Job> job, Action action, bool takes_words) {
  if (action_) return;  // a subcommand, which goes first, is chosen already
  job_ = std::move(job);
  action_ = std::move(action);
  takes_words_ = takes_words;
}

// Runs the chosen verb and prints its answer.
Result<verdict::ExitCode> Program::act() const {
  if (!words_.empty() && !takes_words_) {
    return fail(Code::usage, "this command takes no program after \"--\"");
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
  app.formatter(help_formatter());
  app.failure_message([](const CLI::App* command, const CLI::Error& error) {
    return "weir: " + CLI::FailureMessage::simple(command, error);
  });
  Words words(argv + 1, argv + argc);
  const bool lists_all = words == Words{"help", "--all"};
  if (lists_all) words.pop_back();
  for (const VerbEntry& entry : k_verbs) {
    CLI::App* verb = app.add_subcommand(entry.name, entry.what);
    verb->group(entry.is_basic || lists_all ? entry.group : "");
    entry.add(Verb(*this, *verb));
  }
  app.footer(k_examples);  // after the verbs, which would inherit it
  constexpr int k_usage = static_cast<int>(verdict::ExitCode::usage);
  try {
    const auto dashes = std::ranges::find(words, "--");
    if (dashes != words.end()) {
      words_.assign(dashes + 1, words.end());
      words.erase(dashes, words.end());
    }
    if (!words.empty() && words[0] == "help") {  // `weir help VERB…` is `weir VERB… --help`
      words.erase(words.begin());
      words.emplace_back("--help");
    }
    if (const auto checked = check_commands(app, words); !checked) {
      flow::print_error(world_, checked.error());
      return k_usage;
    }
    std::ranges::reverse(words);  // CLI11 takes the words from the end
    app.parse(words);
  } catch (const CLI::ExtrasError&) {
    flow::print_error(world_, refused_words_error(app));
    return k_usage;
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
  const Code why = code.error().code;
  if (why == Code::usage || why == Code::config) return k_usage;
  using verdict::ExitCode;
  return static_cast<int>(why == Code::interrupted ? ExitCode::interrupted : ExitCode::unmeasured);
}

}  // namespace weir::app
