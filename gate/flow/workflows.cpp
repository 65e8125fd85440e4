// The CI workflows of weir init: what they need, their files, and what is left to do.
#include "gate/flow/workflows.hpp"

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/config/starter.hpp"
#include "gate/config/typed_command.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/repository.hpp"
#include "gate/model/gguf.hpp"
#include "gate/model/hugging_face.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/profile_text.hpp"
#include "gate/source/virtual_environment.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/limits.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::flow {
namespace {

// The least time for a job on a hosted runner, which installs packages and builds an engine first.
constexpr double k_min_minutes = 30;
// The file of the jobs if .gitlab-ci.yml is there already.
constexpr std::string_view k_gitlab_part = ".gitlab/weir.yml";
constexpr std::string_view k_github = ".github/workflows/weir.yml";
constexpr std::string_view k_post = ".github/workflows/weir-post.yml";
constexpr std::string_view k_waive = ".github/workflows/weir-waive.yml";
// The action that a workflow beside the one that measures is there for.
const std::map<std::string_view, std::string_view> k_own_actions{{k_post, "/ci/post@"},
                                                                 {k_waive, "/ci/waive@"}};
constexpr std::string_view k_nightly = ".github/workflows/weir-nightly.yml";
constexpr std::uint64_t k_max_workflow_bytes = std::uint64_t{1} << 20;

// Returns the nearest folder at or above `folder` (absolute) with a .git in it, else `folder`.
std::string repository_root(const std::string& folder, const sys::Files& files) {
  for (std::string current = folder;;) {
    if (files.exists(sys::join_path(current, ".git"))) return current;
    const std::string above = sys::folder_of(current);
    if (above == current || above.empty() || above == ".") return folder;
    current = above;
  }
}

// Returns `folder` as a path relative to `root`, which is `folder` itself or above it.
std::string relative_path(const std::string& folder, const std::string& root) {
  if (folder == root) return ".";
  return folder.substr(root == "/" ? 1 : root.size() + 1);
}

// The workflows of a CI system, as they lie in the repository.
struct Workflows {
  std::string report;                // which were written
  std::vector<std::string> names;    // the one that measures first
  std::string text;                  // of all of them
  std::vector<std::string> lacking;  // what was asked for and a kept one lacks, a sentence each
  bool has_new = false;              // one was written
};

// Returns a line for each option of `weir init` that an existing workflow does not support. `kept`
// is its text; it is never changed.
std::vector<std::string> find_missing_parts(const InitOptions& options, const std::string& name,
                                            const std::string& kept) {
  const auto has = [&](std::string_view part) { return kept.find(part) != std::string::npos; };
  std::vector<std::string> lacking;
  if (options.queue && !has("merge_group")) {
    lacking.push_back(
        fmt::format("{} is kept: it lacks {}, or move it away to get a new one", name,
                    options.forks ? "a merge queue's trigger and the job that posts: add both"
                                  : "a merge queue's trigger: add \"merge_group:\" to \"on:\""));
  }
  const bool posts_groups_alone = has("if: always() && github.event_name == 'merge_group'");
  if (options.comments && !has("baselines-ref:")) {
    lacking.push_back(fmt::format(
        "{} is kept: it reads no waivers, which --comments stores: add \"baselines-ref: "
        "refs/remotes/origin/perf-baselines\" to the steps of weir that measure and "
        "post, or move it away to get a new one",
        name));
  }
  if (options.forks && has("/ci/post@") && !posts_groups_alone) {
    lacking.push_back(
        fmt::format("{} is kept: it posts, as weir-post.yml does: take its job \"post\" out, or "
                    "move it away to get a new one",
                    name));
  }
  return lacking;
}

// Writes the CI workflows that are missing. Never writes over an existing file, but reports what it
// lacks. With a .gitlab-ci.yml of the user's, weir's jobs go into a file that it can include.
Result<Workflows> write_workflows(const InitOptions& options, const std::string& root,
                                  const config::StarterCi& ci, sys::Files& files) {
  const bool github = options.ci == "github";
  std::vector<std::pair<std::string, std::string>> workflows{
      // name, text
      github ? std::pair(std::string(k_github), config::starter_github(ci))
             : std::pair(std::string(".gitlab-ci.yml"), config::starter_gitlab(ci))};
  if (ci.forks) workflows.emplace_back(k_post, config::starter_github_post(ci));
  if (options.comments) {
    workflows.emplace_back(k_waive, config::starter_github_waive());
  }
  if (options.nightly) workflows.emplace_back(k_nightly, config::starter_github_nightly(ci));
  if (!github && files.exists(sys::join_path(root, workflows.front().first)))
    workflows.front().first = std::string(k_gitlab_part);
  Workflows written;
  for (const auto& [name, text] : workflows) {
    const std::string place = sys::join_path(root, name);
    const bool is_kept = files.exists(place);
    if (is_kept) {
      written.report +=
          fmt::format("  kept    {}: it is there already; move it away to get a new one\n", name);
    } else {
      WEIR_CHECK(files.make_dirs(sys::folder_of(place)));
      WEIR_CHECK(files.write_atomic(place, text));
      written.report += fmt::format("wrote {}\n", name);
      written.has_new = true;
    }
    const std::string content = files.read(place, k_max_workflow_bytes).value_or("");
    if (is_kept && name == k_github) written.lacking = find_missing_parts(options, name, content);
    if (const auto action = k_own_actions.find(name);
        is_kept && action != k_own_actions.end() && content.find(action->second) == content.npos) {
      written.lacking.push_back(fmt::format(
          "{} is kept: it lacks the action {}, which {} needs: move it away to get a new one", name,
          action->second.substr(1, action->second.size() - 2),
          action->first == k_waive ? "--comments" : "--forks"));
    }
    written.names.push_back(name);
    written.text += content;
  }
  return written;
}

// Adds what the workflows lack to the end of an answer, which is then no success.
Answer with_lacking(Answer answer, const Workflows& workflows, int width) {
  if (workflows.lacking.empty()) return answer;
  answer.text += '\n';
  for (const std::string& sentence : workflows.lacking) {
    const auto lines = report::wrap(sentence, static_cast<std::size_t>(width), "", 2);
    answer.text += text::join(lines, "\n") + "\n";
  }
  answer.code = ExitCode::unmeasured;
  return answer;
}

// Lists in at most ten lines what is left for the user: where, and what.
std::string steps_text(const std::vector<std::string>& steps, int width) {
  std::string text = "left to do\n";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto lines = report::wrap(text::printable(steps[i]), static_cast<std::size_t>(width),
                                    fmt::format("  {}. ", i + 1), 5);
    text += text::join(lines, "\n") + "\n";
  }
  return text;
}

// The parts of weir.yaml that its author has yet to write.
struct Unfinished {
  std::vector<std::string> unbuilt;  // programs that no command is known to make
  std::string likely_build;          // a command that may make them; "" if none or if one is named
  bool is_gated = false;             // something can fail
  bool has_failed = false;           // some cell could not be measured
};

// Returns what is left to do until pull requests are gated: if no workflow is new, only what files
// here lack.
std::vector<std::string> remaining_steps(bool github, const Workflows& workflows,
                                         const config::StarterCi& ci,
                                         const Unfinished& unfinished) {
  std::vector<std::string> steps;
  if (unfinished.has_failed) {
    steps.push_back(
        fmt::format("here: mend the cells that could not be {} (above); weir doctor says more",
                    ci.has_counts ? "counted" : "run"));
  }
  const std::string& workflow = workflows.names.front();
  const auto holds_text = [&](std::string_view part) {
    return workflows.text.find(part) != std::string::npos;
  };
  if (holds_text("OWNER/weir")) {
    steps.push_back(fmt::format("{}: put weir's {} in place of OWNER/weir",
                                text::join(workflows.names, " and "),
                                github ? "repository" : "releases"));
  }
  if (workflow == k_gitlab_part)
    steps.emplace_back(".gitlab-ci.yml: include: [{local: /.gitlab/weir.yml}]");
  std::vector<std::string> missing = ci.programs;
  std::erase_if(missing, config::is_looked_up);
  missing.insert(missing.end(), ci.models.begin(), ci.models.end());
  if (!missing.empty() && holds_text("::error title=weir::")) {
    steps.push_back(fmt::format("{}: say in {} where these come from: {}", workflow,
                                github ? "its step \"The engine and its models\"" : "before_script",
                                verdict::list_some(missing)));
  }
  const std::string& build = unfinished.likely_build;
  if (!unfinished.unbuilt.empty()) {
    steps.push_back(fmt::format("{}: name the command that builds {} (build:{})", ci.file,
                                verdict::list_some(unfinished.unbuilt),
                                text::prefix_if_any(" ", build)));
  } else if (!build.empty()) {
    steps.push_back(
        fmt::format("{}: does CI have to build your engine? build: {}", ci.file, build));
  }
  if (!unfinished.is_gated)
    steps.push_back(fmt::format("{}: times are only reported: give them limits", ci.file));
  if (!workflows.has_new) return steps;
  steps.push_back(fmt::format("git: commit {} and {} to the default branch", ci.file,
                              text::join(workflows.names, " and ")));
  if (!github)
    steps.emplace_back("GitLab: a variable WEIR_GITLAB_TOKEN and a pipeline schedule, to post");
  if (ci.has_counts) {
    steps.push_back(fmt::format("baselines{}: {}", ci.has_base ? ", if wanted" : "",
                                github ? "\"Run workflow\" of weir in GitHub's Actions"
                                       : "the job \"weir-baselines\" of the default branch"));
  }
  steps.push_back(fmt::format("{}: open one; it is compared with {}",
                              github ? "pull request" : "merge request",
                              ci.has_base ? "its base" : "the baselines"));
  if (github) {
    steps.push_back(fmt::format("GitHub, Settings, Rules: require the check \"weir (main)\"{}",
                                ci.queue ? " and a merge queue" : ""));
  }
  if (holds(workflows.names, std::string(k_nightly))) {
    steps.emplace_back(
        "nights: a runner of your own with the labels self-hosted, linux and gpu, and baselines of "
        "it: there weir baseline accept --baselines-ref perf-baselines");
  } else if (ci.queue) {
    steps.emplace_back("every night, if wanted: weir init --ci github --nightly");
  }
  return steps;
}

// Says how long it took to measure once, and what a gate takes beside that.
std::string duration_text(const MeasuredRun& measured, const config::StarterCi& ci) {
  const std::string seconds = unit::show_duration(measured.seconds);
  const double budget = measured.configuration.settings->gate.budget_seconds;
  if (ci.has_counts) {
    return fmt::format("counted once here, in {}{}\n", seconds,
                       ci.has_base ? "; a gate also builds and counts the base" : "");
  }
  return fmt::format("ran once here, in {}; a gate builds the base and has {} for pairs\n", seconds,
                     unit::show_duration(budget));
}

// --- files that a runner has to make or get, as git does not hold them

// Returns the absolute paths of git's files; nothing if git does not answer.
std::optional<std::set<std::string>> tracked_files(const Job& job, const std::string& folder) {
  const auto repository = Repository::containing(job.world, folder);
  if (!repository) return std::nullopt;
  const source::Git& git = (*repository)->git();
  const auto names = git.tracked_files();
  if (!names) return std::nullopt;
  std::set<std::string> files;
  for (const std::string& name : *names) files.insert(sys::join_path(git.top(), name));
  return files;
}

// Returns false if a shell may give a character of the text a meaning.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return text::is_alphanumeric(c) || c == '/' || c == '.' || c == '_' || c == '-' || c == ' ';
  });
}

// Returns the options of `weir model make` that its config.json names. "" if it names none.
std::string folder_make_options(const std::string& folder, sys::Files& files) {
  constexpr std::uint64_t k_longest_config = std::uint64_t{1} << 20;
  const auto text = files.read_prefix(sys::join_path(folder, "config.json"), k_longest_config);
  const auto config = text.and_then([](const std::string& json) { return parse_json(json); });
  if (!config) return "";
  const Json& options = member_or_null(*config, model::k_make_arguments);
  if (!options.is_string() || !is_plain(options.get<std::string>())) return "";
  return options.get<std::string>();
}

// Returns the arguments of `weir model make` that make this model again, read from config.json or
// the name in its header. "" if weir did not make it.
std::string model_make_arguments(const std::string& file, const std::string& shown_path,
                                 sys::Files& files) {
  if (!is_plain(shown_path) || shown_path.find(' ') != std::string::npos) return "";
  if (files.kind(file) == sys::Kind::folder) {
    const std::string options = folder_make_options(file, files);
    return options.empty() ? "" : shown_path + " " + options;
  }
  const auto header =
      model::load_gguf([&](std::uint64_t bytes) { return files.read_prefix(file, bytes); });
  if (!header) return "";
  // "weir llama 4x256 f16"
  const model::GgufValue* name = header->find("general.name");
  const auto name_parts = text::split(name == nullptr ? "" : name->to_string().value_or(""), ' ');
  const auto plain = [](const std::string& word) {
    return !word.empty() &&
           std::ranges::all_of(word, [](char c) { return text::is_alphanumeric(c) || c == '_'; });
  };
  if (name_parts.size() != 4 || name_parts[0] != "weir" || !std::ranges::all_of(name_parts, plain))
    return "";
  const auto sizes = text::split(name_parts[2], 'x');
  if (sizes.size() != 2) return "";
  return fmt::format("{} --arch {} --layers {} --embedding {} --quantization {}", shown_path,
                     name_parts[1], sizes[0], sizes[1], name_parts[3]);
}

bool is_in_environment(const sys::Files& files, const std::string& folder,
                       const std::string& program) {
  const std::string path = sys::absolute(sys::join_path(folder, program));
  return source::environment_around(files, path).has_value();
}

// Returns true if a base can run a command with files of its own: it starts a program of the work
// tree, or names a file of it, that no virtual environment has.
bool has_own_files(const sys::Files& files, const std::string& folder, const std::string& root,
                   const std::vector<std::string>& command) {
  const auto is_own = [&](const std::string& word) {
    const std::string path = sys::absolute(sys::join_path(folder, word));
    return sys::is_within(path, root) && !is_in_environment(files, folder, word);
  };
  const auto names_own = [&](const std::string& word) {
    return files.kind(sys::join_path(folder, word)) == sys::Kind::file && is_own(word);
  };
  if (command.empty()) return false;
  const std::string& program = command.front();
  return (!config::is_looked_up(program) && is_own(program)) ||
         std::any_of(command.begin() + 1, command.end(), names_own);
}

// Lists the programs, builds and models of the cells that a fresh checkout lacks. Returns the
// command that seems to build them, if no engine names one.
std::string find_missing_files(const Job& job, const LoadedConfig& loaded,
                               const std::string& folder, const std::string& root,
                               config::StarterCi& ci) {
  std::set<std::string> listed;
  const auto is_new = [&](const std::string& item) { return listed.insert(item).second; };
  const auto tracked = tracked_files(job, folder);
  const auto is_tracked = [&](const std::string& path) {
    const auto inside = tracked->lower_bound(path + "/");
    return tracked->contains(path) || (inside != tracked->end() && inside->starts_with(path + "/"));
  };
  const auto is_missing = [&](const std::string& relative_name) {
    const std::string path = sys::absolute(sys::join_path(folder, relative_name));
    const std::string real = sys::real_path(path).value_or(path);
    return tracked && !is_tracked(path) && !is_tracked(real);
  };
  ci.has_base = false;
  for (const config::Cell& cell : loaded.cells) {
    const config::EngineSettings& engine = *cell.engine;
    const std::string program = engine.command.empty() ? "" : engine.command.front();
    // By its name alone it is found in PATH, which no commit holds.
    const bool inside = !config::is_looked_up(program) && !program.starts_with('/');
    ci.has_base = ci.has_base || has_own_files(job.files(), folder, root, engine.command);
    const auto build = text::shell_line(engine.build);
    if (!build.empty() && is_new(build)) ci.builds.push_back(build);
    const bool is_made = !build.empty() || program.empty();
    if (!is_made && (!inside || is_missing(program)) && is_new(program))
      ci.programs.push_back(program);
    if (cell.model_path.empty() || cell.model_path == config::k_no_model ||
        !is_missing(cell.model_path) || !is_new(cell.model_path))
      continue;
    const std::string arguments =
        model_make_arguments(sys::join_path(folder, cell.model_path), cell.model_path, job.files());
    if (arguments.empty()) {
      ci.models.push_back(cell.model_path);
    } else {
      ci.generated_models.push_back(arguments);
    }
  }
  if (!ci.builds.empty()) return "";
  return find_build([&](const char* name) {
    return tracked && tracked->contains(sys::absolute(sys::join_path(folder, name)));
  });
}

// Returns false if nothing of a cell can be counted here: then a gate has times alone. What keeps a
// plan from being made is told by the measurement.
bool has_counted_pass(const Job& job, LoadedConfig loaded) {
  const auto planned =
      planned_commands(std::move(loaded), job, {}, {job.selection.runs_folder, ""});
  return !planned ||
         std::ranges::count(planned->commands, profile::Pass::counted, &PlannedCommand::pass) > 0;
}

// Returns true if a limit on some time gates.
bool has_gating_times(const LoadedConfig& loaded) {
  const auto& entries = loaded.configuration.settings->limits;
  const verdict::LimitTable limits(entries);
  const unit::Metric throughput = unit::find_metric("decode_tokens_per_second").value();
  return std::ranges::any_of(entries,
                             [](const verdict::LimitEntry& entry) {
                               return entry.mode.value_or(verdict::Mode::gate) ==
                                          verdict::Mode::gate &&
                                      (entry.max_drop || entry.max_increase);
                             }) ||
         std::ranges::any_of(loaded.cells, [&](const config::Cell& cell) {
           return verdict::resolve_limit(cell.key, throughput, limits).mode == verdict::Mode::gate;
         });
}

}  // namespace

// Returns the command that builds a program in a fresh checkout, chosen by the build files that are
// there.
std::string find_build(const std::function<bool(const char*)>& is_there) {
  constexpr std::pair<const char*, const char*> k_builds[] = {
      {"build.sh", "[./build.sh]"},
      {"CMakeLists.txt",
       "[sh, -c, \"cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build -j\"]"},
      {"build.zig", "[zig, build, -Doptimize=ReleaseFast]"},
      {"Cargo.toml", "[cargo, build, --release]"},
      {"Makefile", "[make, -j]"}};
  for (const auto& [file, build] : k_builds) {
    if (is_there(file)) return build;
  }
  return "";
}

Result<Answer> init_ci(const Job& given_job, const InitOptions& options, bool incomplete) {
  Job job = given_job;
  job.selection.config_is_set = true;
  const std::string& config = job.selection.config;
  if (incomplete) {
    return Answer{
        text::printable(fmt::format("no workflow yet: {} is an example still\n\n", config)) +
        steps_text({config + ": fill in what was not found, or weir init --force -- COMMAND",
                    "here: weir init --ci " + options.ci + " again; it goes on from there"},
                   job.width())};
  }
  sys::Files& files = job.files();
  WEIR_TRY(LoadedConfig loaded, load_config(job));
  const std::string folder = sys::folder_of(sys::absolute(config));
  const std::string root = repository_root(folder, files);
  const bool github = options.ci == "github";
  config::StarterCi ci;
  // Beside a workflow that posts, the one that measures does not.
  ci.forks = options.forks || (github && files.exists(sys::join_path(root, k_post)));
  ci.queue = options.queue;
  ci.comments = options.comments;
  ci.version = k_version;
  ci.folder = relative_path(folder, root);
  ci.file = relative_path(sys::absolute(config), folder);
  const config::Settings& settings = *loaded.configuration.settings;
  ci.minutes = std::max(k_min_minutes, 3 * settings.gate.budget_seconds / 60);
  ci.vulkan = std::ranges::count(loaded.cells, std::string("vulkan"), &config::Cell::device) > 0;
  Unfinished unfinished;
  unfinished.likely_build = find_missing_files(job, loaded, folder, root, ci);
  const bool has_gate = has_gating_times(loaded);
  ci.has_counts = has_counted_pass(job, std::move(loaded));
  if (!ci.has_counts && !ci.has_base) {
    return fail(
        Code::usage,
        "--ci {}: a runner could judge nothing: {} gives times alone, and the command names "
        "no file of the repository, so that no base of it can run beside it\n  name what "
        "the repository changes (command: [python3, bench.py]), or say what counts it "
        "(probes)",
        options.ci, verdict::list_some(ci.programs));
  }
  WEIR_TRY(const Workflows workflows, write_workflows(options, root, ci, files));
  job.answer_printable(workflows.report);
  // Both sides share a virtual environment.
  unfinished.unbuilt = ci.programs;
  std::erase_if(unfinished.unbuilt, [&](const std::string& program) {
    return config::is_looked_up(program) || is_in_environment(files, folder, program);
  });
  unfinished.is_gated = ci.has_counts || has_gate;
  if (!workflows.has_new) {
    const auto steps = remaining_steps(github, workflows, ci, unfinished);
    const std::string text =
        steps.empty() ? "nothing is left to do here\n" : "\n" + steps_text(steps, job.width());
    return with_lacking({text}, workflows, job.width());
  }
  job.selection.counts_only = ci.has_counts;
  MeasureOptions wanted;
  wanted.plan.times = !ci.has_counts;
  wanted.plan.runs = 1;
  WEIR_TRY(MeasuredRun measured, measure(job, wanted));
  redact_profiles(measured);
  unfinished.has_failed = std::ranges::any_of(
      measured.profiles, [](const profile::Profile& profile) { return !profile.errors.empty(); });
  if (unfinished.has_failed)
    job.answer_printable("\n" + report::profiles_text(measured.profiles, {.width = job.width()}));
  job.answer_printable(duration_text(measured, ci) + "\n");
  const std::string steps =
      steps_text(remaining_steps(github, workflows, ci, unfinished), job.width());
  return with_lacking(profiles_answer(steps, measured.profiles), workflows, job.width());
}

}  // namespace weir::flow
