// weir hook: the pre-push check, put in place, taken away, and what git starts.
#include <cstdio>
#include <memory>

#include <unistd.h>

#include "gate/app/checkouts.hpp"
#include "gate/app/hook_files.hpp"
#include "gate/app/hooking.hpp"
#include "gate/source/base.hpp"
#include "gate/source/git.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#include "gate/unit/metric.hpp"

namespace weir::app {
namespace {

struct HookOptions {
  CommonOptions common;
  std::string against, limit = "60s";
  bool build = false, all = false;
};

// What `weir hook run` gets of `weir hook install`: the config as it is named from the top, where
// git starts hooks, so that it is found in every work tree.
Result<std::vector<std::string>> words_for_run(const HookOptions& options, const source::Git& git) {
  std::vector<std::string> words;
  const std::string& config = options.common.config;
  const std::string name = config.substr(config.find_last_of('/') + 1);
  const std::string from_top = git.place().empty() ? name : git.place() + "/" + name;
  if (!sys::RealFiles().exists(config)) {
    return fail(Code::config, "{}: no such file; -c names another", config);
  }
  words.insert(words.end(), {"-c", from_top, "--limit", options.limit});
  if (!options.against.empty()) words.insert(words.end(), {"--against", options.against});
  if (options.build) words.emplace_back("--build");
  if (options.all) words.emplace_back("--all");
  for (const std::string& cell : options.common.cells) words.insert(words.end(), {"--cell", cell});
  return words;
}

Result<ExitCode> install(const HookOptions& options) {
  sys::RealFiles files;
  Outside outside(files);
  WEIR_CHECK(unit::parse_duration_seconds(options.limit));
  const std::string place = sys::absolute(sys::folder_of(options.common.config));
  WEIR_TRY(const source::Git git, source::Git::open(outside.effects, place));
  WEIR_TRY(const std::vector<std::string> words, words_for_run(options, git));
  WEIR_TRY(const std::string folder, git.hooks_folder());
  const std::string program = sys::own_program();
  WEIR_TRY(const bool beside,
           install_hook(folder, hook_text(program.empty() ? "weir" : program, words)));
  say(fmt::format("{}/pre-push: made{}\n", folder,
                  beside ? "; the hook that was there runs first (pre-push.before-weir)" : ""));
  return ExitCode::pass;
}

Result<ExitCode> uninstall(const HookOptions& options) {
  sys::RealFiles files;
  Outside outside(files);
  WEIR_TRY(
      const source::Git git,
      source::Git::open(outside.effects, sys::absolute(sys::folder_of(options.common.config))));
  WEIR_TRY(const std::string folder, git.hooks_folder());
  WEIR_TRY(const bool was, uninstall_hook(folder));
  say(fmt::format("{}/pre-push: {}\n", folder, was ? "removed" : "none of weir's is there"));
  return ExitCode::pass;
}

std::string standard_input() {
  constexpr std::size_t k_most = std::size_t{16} << 20;
  std::string text;
  char block[65536];
  for (std::size_t got = 0; (got = std::fread(block, 1, sizeof block, stdin)) > 0;) {
    text.append(block, got);
    if (text.size() > k_most) break;
  }
  return text;
}

// The framework of .pre-commit-hooks.yaml hands no lines on, but variables.
std::optional<source::Pushed> from_pre_commit() {
  const auto to = sys::environment_value("PRE_COMMIT_TO_REF");
  if (!to) return std::nullopt;
  const std::string branch = sys::environment_value("PRE_COMMIT_REMOTE_BRANCH").value_or("");
  const std::string from =
      sys::environment_value("PRE_COMMIT_FROM_REF").value_or(std::string(40, '0'));
  return source::Pushed{branch, *to, branch, from};
}

Result<ExitCode> run_hook(const HookOptions& options) {
  if (sys::environment_value("WEIR_SKIP") == "1") {
    talk(options.common, "weir: WEIR_SKIP=1, so nothing was judged");
    return ExitCode::pass;
  }
  HookWanted wanted;
  const std::vector<std::string>& words = words_behind();
  wanted.remote = !words.empty()
                      ? words.front()
                      : sys::environment_value("PRE_COMMIT_REMOTE_NAME").value_or("origin");
  wanted.against = options.against;
  wanted.build = options.build;
  wanted.all = options.all;
  WEIR_TRY(wanted.limit_seconds, unit::parse_duration_seconds(options.limit));
  std::vector<source::Pushed> pushed;
  if (auto one = from_pre_commit()) {
    pushed.push_back(*std::move(one));
  } else if (isatty(STDIN_FILENO) != 0) {
    return fail(Code::usage,
                "weir hook run is started by git, when it pushes; it reads the lines "
                "of a pre-push hook");
  } else {
    auto lines = source::parse_pushed(standard_input());
    if (!lines) {
      print_error(with_context("nothing was judged", lines.error()));
      return ExitCode::pass;
    }
    pushed = std::move(*lines);
  }
  if (pushed.empty()) talk(options.common, "weir: nothing was pushed that can be judged");
  sys::RealFiles files;
  auto judged = judge_pushed(options.common, wanted, pushed, files);
  if (judged || judged.error().code == Code::interrupted) return judged;
  // Only a broken limit keeps a push from going out.
  print_error(with_context("nothing was judged", judged.error()));
  return ExitCode::pass;
}

void add_config(CLI::App& verb, HookOptions& options) {
  verb.add_option("-c,--config", options.common.config, "The configuration")
      ->type_name("FILE")
      ->capture_default_str();
}

void add_judging(CLI::App& verb, HookOptions& options) {
  verb.add_option("--cell", options.common.cells, "Only cells whose name matches GLOB")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  verb.add_option("--limit", options.limit, "Time for measuring; the cheapest cells come first")
      ->type_name("DURATION")
      ->capture_default_str();
  verb.add_option("--against", options.against,
                  "The branch whose merge-base is the base (default: the main one of the\n"
                  "remote that is pushed to)")
      ->type_name("REF");
  verb.add_flag("--build", options.build, "Build what is not built, within the push");
  verb.add_flag("--all", options.all,
                "Also cells that run nothing of what changed, by their record (weir reach)");
}

}  // namespace

void add_hook(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("hook", "The local pre-push check");
  verb->require_subcommand(1);
  auto options = std::make_shared<HookOptions>();
  CLI::App* install_verb = verb->add_subcommand("install", "Put the pre-push hook in place");
  CLI::App* uninstall_verb = verb->add_subcommand("uninstall", "Take it away again");
  CLI::App* run_verb = verb->add_subcommand("run", "What git starts: judges what is pushed");
  for (CLI::App* one : {install_verb, uninstall_verb, run_verb}) add_config(*one, *options);
  for (CLI::App* one : {install_verb, run_verb}) add_judging(*one, *options);
  run_verb->add_option("--out", options->common.out, "Where runs are kept")
      ->type_name("DIR")
      ->capture_default_str();
  install_verb->footer(
      "Examples:\n"
      "  weir hook install                          beside a hook that is there, which runs first\n"
      "  weir hook install --limit 20s --cell '*/decode' --against origin/main\n\n"
      "A push is kept back by a broken limit alone. Not now: WEIR_SKIP=1 git push, or\n"
      "git push --no-verify.");
  set_action(*install_verb, [options] { return install(*options); });
  set_action(*uninstall_verb, [options] { return uninstall(*options); });
  set_action_with_words(*run_verb, [options] { return run_hook(*options); });
}

}  // namespace weir::app
