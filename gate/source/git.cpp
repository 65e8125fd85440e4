// Runs git and reads its answers.
#include "gate/source/git.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {
namespace {

// Checking out and fetching; a large repository on a slow disk takes minutes.
constexpr double k_checkout_seconds = 1800;
constexpr double k_history_seconds = 600;
constexpr std::uint64_t k_max_history_bytes = std::uint64_t{128} << 20;
constexpr std::size_t k_subject_columns = 60;

// git ends its answer with one newline; a path may hold others.
std::string without_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// Splits git's answer at zero bytes.
std::vector<std::string> split_paths(const std::string& out) {
  std::vector<std::string> paths = text::split(out, '\0');
  std::erase(paths, "");
  return paths;
}

std::vector<std::string> parse_commits(const std::string& out, char separator) {
  std::vector<std::string> commits = text::split(without_newline(out), separator);
  std::erase_if(commits, [](const std::string& word) { return !text::is_commit(word); });
  return commits;
}

// Parses a line "NAME SECONDS": a commit and its time.
std::optional<CommitFacts> parse_commit_facts(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(' '));
  const auto seconds = text::to_int(line.substr(std::min(name.size() + 1, line.size())));
  if (!text::is_commit(name) || !seconds) return std::nullopt;
  return CommitFacts{std::string(name), std::nullopt, static_cast<double>(*seconds)};
}

Result<std::string> git_program(const sys::Files& files) {
  auto program = sys::find_program(files, "git", "/", sys::environment_value("PATH").value_or(""));
  if (program) return std::move(*program);
  return fail(Code::unavailable, "git is not installed (or not in PATH)");
}

// Returns the git command: the first argument that is no option, as in "--literal-pathspecs log".
std::string git_verb(const std::vector<std::string>& arguments) {
  const auto* verb =
      find_first(arguments, [](const auto& argument) { return !argument.starts_with("-"); });
  return verb == nullptr ? "" : *verb;
}

// Lists the caller's git variables that git does not get: all but those for settings, author and
// the way to other hosts.
std::vector<std::string> withheld_git_variables() {
  std::vector<std::string> names = git_variables();
  for (const auto& [name, value] : sys::own_environment()) {
    if (!name.starts_with("GIT_")) continue;
    const bool is_passed = std::ranges::any_of(
        std::to_array<std::string_view>({"GIT_CONFIG_*", "GIT_AUTHOR_*", "GIT_COMMITTER_*",
                                         "GIT_SSH*", "GIT_SSL_*", "GIT_HTTP_*", "GIT_PROXY_*",
                                         "GIT_ASKPASS", "GIT_ALLOW_PROTOCOL",
                                         "GIT_PROTOCOL_FROM_USER", "GIT_EXEC_PATH", "GIT_TRACE*"}),
        [&](std::string_view pattern) { return text::glob_match(pattern, name); });
    if (!is_passed) names.push_back(name);
  }
  return names;
}

}  // namespace

// Lists git's variables that say where a repository is and how to read it.
std::vector<std::string> git_variables() {
  // `git rev-parse --local-env-vars`, and those a push sets beside them. GIT_CONFIG_COUNT stays:
  // git never sets it by itself, and containers use it to name the folders that are safe.
  return text::split(
      "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS "
      "GIT_OBJECT_DIRECTORY GIT_DIR GIT_WORK_TREE GIT_IMPLICIT_WORK_TREE "
      "GIT_GRAFT_FILE GIT_INDEX_FILE GIT_NO_REPLACE_OBJECTS GIT_REPLACE_REF_BASE "
      "GIT_PREFIX GIT_SHALLOW_FILE GIT_COMMON_DIR GIT_INTERNAL_SUPER_PREFIX "
      "GIT_NAMESPACE GIT_QUARANTINE_PATH GIT_REFLOG_ACTION GIT_LITERAL_PATHSPECS "
      "GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS",
      ' ');
}

const Git::CallOptions Git::k_default_options{};

// Opens the repository that a folder lies in. Fails if there is none, or git would use another one.
Result<Git> Git::open(const Effects& effects, const std::string& folder) {
  WEIR_TRY(const std::string program, git_program(effects.files));
  const std::string real_folder = sys::real_path(folder).value_or(folder);
  WEIR_TRY(const std::string top, find_top(effects.files, real_folder));
  Git git(effects, program, top);
  WEIR_TRY(const Answer answer, git.call({"rev-parse", "--show-toplevel"}));
  if (answer.exit_code != 0) {
    return fail(Code::config, "{}: no git repository that can be used: {}", folder,
                text::trim(text::printable(answer.err)));
  }
  if (sys::real_path(without_newline(answer.out)) != top) {
    return fail(Code::config, "{}: no git repository that can be used: its work tree is {}", folder,
                text::printable(without_newline(answer.out)));
  }
  if (real_folder != top) git.place_ = real_folder.substr(top == "/" ? 1 : top.size() + 1);
  // Asked at the top, where a relative answer cannot lead through a link.
  WEIR_TRY(const std::string store, git.ask({"rev-parse", "--git-common-dir"}));
  git.common_folder_ = sys::absolute(sys::join_path(top, store));
  WEIR_CHECK(git.read_settings());
  return git;
}

// Reads the settings that calls depend on. Fails if one comes from a file of a work tree, which a
// commit could change.
Result<void> Git::read_settings() {
  WEIR_TRY(const std::string answer, call_checked({"config", "--list", "--show-origin", "--null"}));
  settings_ = parse_git_settings(answer);
  const auto follow_links = [](const std::string& path) {
    return sys::real_path(path).value_or(path);
  };
  const auto is_below = [](const std::string& path, const std::string& folder) {
    return path.starts_with(folder == "/" ? folder : folder + "/");
  };
  const std::string common_folder = follow_links(common_folder_);
  const std::string main_top =
      sys::file_name_of(common_folder) == ".git" ? sys::folder_of(common_folder) : top_;
  for (const std::string& name : settings_.files) {
    const std::string file = follow_links(sys::absolute(sys::join_path(top_, name)));
    if (is_below(file, common_folder) || (!is_below(file, top_) && !is_below(file, main_top)))
      continue;
    return fail(
        Code::config,
        "{}: git reads settings from this file of the work tree, which a commit can change; "
        "remove it from git's configuration (include.path)",
        text::printable(file));
  }
  return {};
}

// Returns git's diff of two texts, from its first hunk on; "" if they are equal.
Result<std::string> Git::diff(const Effects& effects, std::string_view before,
                              std::string_view now) {
  WEIR_TRY(const std::string program, git_program(effects.files));
  WEIR_TRY(const sys::ScratchFolder folder,
           sys::ScratchFolder::make_temporary(effects.files, "weir-diff-"));
  WEIR_CHECK(effects.files.write_unsynced(folder.at("before"), before));
  WEIR_CHECK(effects.files.write_unsynced(folder.at("now"), now));
  const Git git(effects, program, folder.path());
  WEIR_TRY(const Answer answer, git.call({"diff", "--no-index", "--no-color", "--no-ext-diff",
                                          "--no-textconv", "before", "now"}));
  if (answer.exit_code > 1) return git.git_error("diff", answer);
  const std::size_t first_hunk = answer.out.find("\n@@");
  if (first_hunk == std::string::npos) return answer.out;
  return answer.out.substr(first_hunk + 1);
}

// Runs git without hooks, prompts and foreign settings. Fails only if it cannot be run to its end;
// an exit code other than 0 is an answer.
Result<Git::Answer> Git::call(std::vector<std::string> arguments,
                              const CallOptions& options) const {
  sys::ProcessSpec spec;
  spec.argv = {program_, "--no-pager", "--no-optional-locks", "--no-replace-objects"};
  std::vector<std::string> settings = {
      "safe.bareRepository=explicit", "core.hooksPath=/dev/null", "core.fsmonitor=false",
      "protocol.ext.allow=never", "advice.detachedHead=false", "log.showSignature=false",
      "i18n.logOutputEncoding=UTF-8", "submodule.recurse=false", "gc.auto=0",
      "maintenance.auto=false",
      // A change of a file is seen by its times and inode, not by its size alone.
      "core.checkStat=default", "core.trustctime=true", "core.ignoreStat=false"};
  using Filters = CallOptions::Filters;
  if (options.filters != Filters::all) {
    const auto& disabled_filters =
        options.filters == Filters::none ? settings_.no_filters : settings_.lfs_filter_only;
    settings.insert(settings.end(), disabled_filters.begin(), disabled_filters.end());
  }
  for (const std::string& setting : settings) spec.argv.insert(spec.argv.end(), {"-c", setting});
  const std::string verb = git_verb(arguments);
  std::ranges::move(arguments, std::back_inserter(spec.argv));
  spec.unset = withheld_git_variables();
  // The ways to its credentials, and to other hosts.
  spec.passed_variables = {"GIT_CONFIG_*", "*ASKPASS*", "SSH_AUTH_SOCK", "SSH_AGENT_PID",
                           "*_PROXY"};
  spec.env = {{"LC_ALL", "C"},
              {"GIT_TERMINAL_PROMPT", "0"},
              {"GIT_CEILING_DIRECTORIES", sys::folder_of(top_)}};
  spec.env.insert(spec.env.end(), options.env.begin(), options.env.end());
  spec.folder = options.folder.empty() ? top_ : options.folder;
  spec.timeout_seconds = options.timeout_seconds;
  spec.output_limit = options.output_limit;
  WEIR_TRY(sys::Finished finished, effects_->processes.run(spec, effects_->stop));
  using sys::HowEnded;
  if (finished.ended == HowEnded::interrupted) {
    return fail(Code::interrupted, "stopped while git {} was running", verb);
  }
  if (finished.ended != HowEnded::exited && finished.ended != HowEnded::output_limit) {
    const std::string message = text::printable(finished.err);
    return fail(Code::io, "git {} in {} {}{}", verb, spec.folder,
                sys::describe_ending(finished, spec),
                text::prefix_if_any(": ", text::trim(message)));
  }
  return Answer{finished.exit_code, std::move(finished.out), std::move(finished.err),
                finished.ended == sys::HowEnded::output_limit};
}

tl::unexpected<Error> Git::git_error(std::string_view what, const Answer& answer) const {
  return fail(Code::io, "git {} in {}: {}", what, top_, text::trim(text::printable(answer.err)));
}

Result<std::string> Git::call_checked(std::vector<std::string> arguments,
                                      const CallOptions& options, std::string_view what) const {
  const std::string verb = what.empty() ? git_verb(arguments) : std::string(what);
  WEIR_TRY(Answer answer, call(std::move(arguments), options));
  if (answer.cut && !options.too_much_message.empty())
    return fail(Code::config, "{}", options.too_much_message);
  if (answer.exit_code != 0 || answer.cut) return git_error(verb, answer);
  return std::move(answer.out);
}

Result<std::string> Git::ask(const std::vector<std::string>& arguments) const {
  return call_checked(arguments, k_default_options, text::join(arguments, " "))
      .map(without_newline);
}

Result<std::string> Git::superproject() const {
  return ask({"rev-parse", "--show-superproject-working-tree"});
}

Result<bool> Git::contains(const std::string& tip, const std::string& commit) const {
  WEIR_TRY(const Answer answer, call({"merge-base", "--is-ancestor", commit, tip}));
  if (answer.exit_code > 1) return git_error("merge-base", answer);
  return answer.exit_code == 0;
}

Result<std::vector<std::string>> Git::parents(const std::string& commit) const {
  WEIR_TRY(const std::string line, ask({"rev-list", "--parents", "-n", "1", commit, "--"}));
  std::vector<std::string> commits = parse_commits(line, ' ');
  if (!commits.empty()) commits.erase(commits.begin());  // itself
  return commits;
}

Result<std::vector<std::string>> Git::merge_bases(const std::string& one,
                                                  const std::string& other) const {
  WEIR_TRY(const Answer answer, call({"merge-base", "--all", one, other}));
  if (answer.exit_code > 1) return git_error("merge-base", answer);
  return parse_commits(answer.out, '\n');
}

Result<bool> Git::shallow() const {
  WEIR_TRY(const std::string answer, ask({"rev-parse", "--is-shallow-repository"}));
  return answer == "true";
}

Result<bool> Git::dirty() const {
  WEIR_TRY(const Answer answer, call({"status", "--porcelain", "--untracked-files=no"},
                                     {.filters = CallOptions::Filters::all}));
  if (answer.exit_code != 0) return git_error("status", answer);
  if (answer.cut || !answer.out.empty()) return true;
  WEIR_TRY(const HiddenChanges hidden, hidden_changes());
  return std::ranges::any_of(hidden.changes, [&](const FileChange& change) {
    return !hidden.left_out.contains(change.path);
  });
}

// Lists the commits that `bad` contains and `good` does not, each with its parents, children first.
Result<std::vector<HistoryCommit>> Git::history(const std::string& good,
                                                const std::string& bad) const {
  const CallOptions options{.too_much_message =
                                fmt::format("{} lies more commits before {} than weir reads",
                                            text::short_commit(good), text::short_commit(bad))};
  WEIR_TRY(const std::string out,
           call_checked({"rev-list", "--topo-order", "--parents", bad, "^" + good, "--"}, options));
  std::vector<HistoryCommit> history;
  for (const std::string& line : text::lines(out)) {
    const std::vector<std::string> names = parse_commits(line, ' ');
    if (!names.empty()) history.push_back({names[0], {names.begin() + 1, names.end()}});
  }
  return history;
}

Result<std::string> Git::hooks_folder() const {
  // call() sets core.hooksPath itself, so that no hook runs: the last value is ours.
  WEIR_TRY(const Answer answer,
           call({"config", "--null", "--type=path", "--get-all", "core.hooksPath"}));
  std::vector<std::string> folders = text::split(answer.out, '\0');
  if (!folders.empty() && folders.back().empty()) folders.pop_back();
  if (answer.exit_code == 0 && folders.size() > 1) {
    return sys::absolute(sys::join_path(top_, folders[folders.size() - 2]));
  }
  return sys::join_path(common_folder_, "hooks");
}

Result<std::vector<std::string>> Git::tracked_files() const {
  return call_checked({"ls-files", "-z", "--recurse-submodules"}).map(split_paths);
}

Result<bool> Git::tracks(const std::string& path) const {
  WEIR_TRY(const std::string out, call_checked({"--literal-pathspecs", "ls-files", "-z", "--",
                                                path.substr(0, path.find('/'))}));
  return std::ranges::any_of(split_paths(out), [&](const std::string& tracked) {
    return tracked == path || tracked.starts_with(path + "/") || path.starts_with(tracked + "/");
  });
}

// Returns the files that differ between two commits.
Result<std::vector<profile::ChangedFile>> Git::changed(const std::string& from,
                                                       const std::string& to) const {
  // These options keep the user's configuration (prefix, order, external diff) from changing the
  // output.
  WEIR_TRY(const std::string out,
           call_checked({"diff", "--raw", "-z", "--find-renames", "--no-relative", "--no-ext-diff",
                         "--no-textconv", "--ignore-submodules=none", "--submodule=short",
                         "--no-color", "--end-of-options", from, to, "--"}));
  return profile::parse_raw_diff(out);
}

Result<std::vector<std::string>> Git::files_of(const std::string& commit) const {
  WEIR_TRY(const std::string out,
           call_checked({"ls-tree", "-r", "-z", "--name-only", "--full-tree", commit}));
  std::vector<std::string> files = split_paths(out);
  for (std::string& path : files) path = text::printable(path);
  return files;
}

Result<std::string> Git::subject(const std::string& commit) const {
  WEIR_TRY(std::string subject,
           ask({"show", "--no-patch", "--no-color", "--format=%s", commit, "--"}));
  std::ranges::replace(subject, '\n', ' ');
  return text::printable(subject);
}

Result<std::string> Git::words(const std::string& commit) const {
  WEIR_TRY(const std::string subject, this->subject(commit));
  return fmt::format("{} \"{}\"", text::short_commit(commit),
                     report::clip(subject, k_subject_columns));
}

Result<void> Git::add_worktree(const std::string& path, const std::string& commit) const {
  // --force: git may remember a folder of that name that no longer exists.
  WEIR_CHECK(
      call_checked({"worktree", "add", "--detach", "--force", path, commit},
                   {.timeout_seconds = k_checkout_seconds, .filters = CallOptions::Filters::lfs},
                   fmt::format("worktree add {} {}", path, commit)));
  return {};
}

Result<void> Git::remove_worktree(const std::string& path) const {
  // Not `worktree prune`: it would also remove the user's worktrees on unmounted disks.
  WEIR_CHECK(call({"worktree", "remove", "--force", "--force", path}));
  return {};
}

Result<void> Git::update_submodules(const std::string& worktree) const {
  WEIR_CHECK(call_checked({"submodule", "update", "--init", "--recursive"},
                          {.timeout_seconds = k_checkout_seconds,
                           .folder = worktree,
                           .filters = CallOptions::Filters::lfs},
                          fmt::format("submodule update for {}", worktree)));
  return {};
}

Result<std::optional<CommitFacts>> Git::head() const {
  WEIR_TRY(const Answer answer, call({"log", "-1", "--format=%H %ct", "HEAD", "--"}));
  if (answer.exit_code != 0) return std::nullopt;  // no commit yet
  auto facts = parse_commit_facts(text::trim(answer.out));
  if (!facts) return fail(Code::io, "git log in {}: an answer that is not understood", top_);
  WEIR_TRY(const Answer branch, call({"symbolic-ref", "--quiet", "--short", "HEAD"}));
  if (branch.exit_code == 0) facts->branch = std::string(text::trim(branch.out));
  return facts;
}

Result<std::optional<double>> Git::time_of(const std::string& commit) const {
  WEIR_TRY(const std::optional<std::string> name, this->resolve_commit(commit));
  if (!name) return std::nullopt;
  WEIR_TRY(const Answer answer, call({"log", "-1", "--format=%H %ct", *name, "--"}));
  const auto facts = parse_commit_facts(text::trim(answer.out));
  return facts ? std::optional(facts->time) : std::nullopt;
}

Git::CallOptions Git::history_options() const {
  return {.timeout_seconds = k_history_seconds,
          .output_limit = k_max_history_bytes,
          .too_much_message = top_ + " has more commits than weir reads"};
}

Result<std::vector<std::string>> Git::all_commits() const {
  // HEAD may be on no branch; without a commit there is none at all.
  WEIR_TRY(const std::optional<std::string> head, resolve_commit("HEAD"));
  std::vector<std::string> question{"rev-list", "--topo-order", "--reverse", "--all"};
  if (head) question.push_back(*head);
  question.emplace_back("--");
  WEIR_TRY(const std::string out, call_checked(std::move(question), history_options()));
  return parse_commits(out, '\n');
}

// Returns the first line of every commit's message, by commit id.
Result<std::map<std::string, std::string>> Git::subjects() const {
  WEIR_TRY(const std::optional<std::string> head, resolve_commit("HEAD"));
  std::map<std::string, std::string> subjects;
  if (!head) return subjects;
  WEIR_TRY(const std::string out,
           call_checked({"log", "--encoding=UTF-8", "--format=%H %s", "--all", *head, "--"},
                        history_options()));
  for (const std::string& line : text::lines(out)) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || !text::is_commit(line.substr(0, space))) continue;
    subjects.emplace(line.substr(0, space), text::printable(line.substr(space + 1, 256)));
  }
  return subjects;
}

// Lists the commits of HEAD's first-parent line that changed the folder ("" is all), oldest first.
Result<std::vector<CommitFacts>> Git::commits_that_changed(const std::string& folder) const {
  WEIR_TRY(const std::string out,
           call_checked({"--literal-pathspecs", "log", "--first-parent", "--reverse",
                         "--format=%H %ct", "HEAD", "--", folder.empty() ? "." : folder},
                        {.timeout_seconds = k_history_seconds,
                         .too_much_message = top_ + ": more commits than weir reads"}));
  std::vector<CommitFacts> commits;
  for (const std::string& line : text::lines(out)) {
    if (auto facts = parse_commit_facts(line)) commits.push_back(*std::move(facts));
  }
  return commits;
}

// Returns the last commit up to `commit` that changed something in `folder`; for "", anywhere but
// in "waivers". Nullopt if none did.
Result<std::optional<std::string>> Git::last_change(const std::string& commit,
                                                    const std::string& folder) const {
  std::vector<std::string> words{"log", "-1", "--format=%H", commit, "--"};
  if (folder.empty()) {
    words.insert(words.end(), {".", ":(exclude)waivers"});
  } else {
    words.push_back(":(literal)" + folder);
  }
  WEIR_TRY(const std::string name, ask(words));
  if (!is_full_id(name)) return std::optional<std::string>();
  return std::optional<std::string>(name);
}

Result<std::string> Git::user_name() const {
  WEIR_TRY(const Answer answer, call({"config", "--get", "user.name"}));
  return answer.exit_code == 0 ? std::string(text::trim(answer.out)) : "";
}

Result<bool> Git::ignores(const std::string& path) const {
  WEIR_TRY(const Answer answer, call({"check-ignore", "-q", "--", path}));
  if (answer.exit_code > 1) return git_error("check-ignore", answer);
  return answer.exit_code == 0;
}

// Parses the lines that git gives a pre-push hook: local and remote reference with their commits.
Result<std::vector<Pushed>> parse_pushed(std::string_view text) {
  std::vector<Pushed> pushed;
  for (const std::string& line : text::lines(text)) {
    if (text::trim(line).empty()) continue;
    // The first field is as typed, "HEAD@{2 days ago}" for example, so it may contain spaces.
    std::vector<std::string> words = text::split(line, ' ');
    while (words.size() > 4) {
      words[0] += " " + words[1];
      words.erase(words.begin() + 1);
    }
    if (words.size() != 4 || !text::is_commit(words[1]) || !text::is_commit(words[3])) {
      return fail(Code::data, "no line of a pre-push hook: \"{}\"",
                  text::printable(line.substr(0, 200)));
    }
    pushed.push_back({words[0], words[1], words[2], words[3]});
  }
  return pushed;
}

}  // namespace weir::source
