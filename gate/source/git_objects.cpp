// Reads what commits contain, and makes commits, without a work tree.

#include <algorithm>
#include <span>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/source/git.hpp"
#include "gate/source/lfs.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {

namespace {

using Entry = Git::TreeEntry;

// Parses the output of `git ls-tree -z`: "100644 blob 3f…\tpath\0"; nullopt if it has another form.
// Sizes are not requested, since a partial clone would fetch each file for them.
std::optional<std::vector<Entry>> parse_entries(const std::string& out) {
  std::vector<Entry> entries;
  for (const std::string& line : text::split(out, '\0')) {
    if (line.empty()) continue;  // after the last zero byte
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) return std::nullopt;
    const std::vector<std::string> words = text::split(line.substr(0, tab), ' ');
    if (words.size() != 3) return std::nullopt;
    Entry entry;
    entry.path = line.substr(tab + 1);
    entry.object = words[2];
    entry.is_executable = words[0] == "100755";
    if (words[0] == "120000") {
      entry.kind = Entry::Kind::link;
    } else if (words[1] == "commit") {
      entry.kind = Entry::Kind::submodule;
    } else if (words[1] == "tree") {
      entry.kind = Entry::Kind::folder;
    } else if (words[1] != "blob") {
      return std::nullopt;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Parses the output of `git diff --raw -z --no-abbrev --no-renames`: ":100644 100644 BEFORE AFTER
// M\0path\0"; nullopt if it has another form. `after` is all zeros for a file that is not stored
// yet.
std::optional<std::vector<Git::FileChange>> parse_changes(const std::string& out) {
  constexpr std::string_view k_absent = "000000", k_submodule = "160000", k_link = "120000";
  std::vector<Git::FileChange> changes;
  const std::vector<std::string> parts = text::split(out, '\0');
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    const std::vector<std::string> words = text::split(parts[i], ' ');
    if (words.size() != 5 || !words[0].starts_with(':')) return std::nullopt;
    const std::string before_mode = words[0].substr(1), &after_mode = words[1];
    Git::FileChange change{parts[i + 1], words[2], words[3]};
    change.is_submodule = before_mode == k_submodule || after_mode == k_submodule;
    if (before_mode == k_absent) change.before.clear();
    if (after_mode == k_absent) change.after.clear();
    if (after_mode == k_link && is_zero_id(change.after)) change.after = "link";
    changes.push_back(std::move(change));
  }
  return changes;
}

bool is_same(const Git::FileChange& change) { return change.before == change.after; }

constexpr std::uint64_t k_max_listed_bytes = std::uint64_t{256} << 20;

}  // namespace

Result<std::vector<Entry>> Git::entries(const std::string& commit,
                                        const std::vector<std::string>& paths) const {
  std::vector<std::string> question{"--literal-pathspecs", "ls-tree", "-z",
                                    "--full-tree",         commit,    "--"};
  question.insert(question.end(), paths.begin(), paths.end());
  WEIR_TRY(const Answer answer, call(std::move(question)));
  auto entries = answer.exit_code == 0 && !answer.cut ? parse_entries(answer.out) : std::nullopt;
  if (!entries) return git_error("ls-tree " + commit, answer);
  return *entries;
}

// Lists all files below a folder of a commit; fails if there are more than `max_entries`.
Result<std::vector<Entry>> Git::entries_below(const std::string& commit, const std::string& folder,
                                              std::size_t max_entries) const {
  const std::string tree = folder.empty() ? commit : commit + ":" + folder;
  WEIR_TRY(Answer answer, call({"ls-tree", "-r", "-z", "--full-tree", tree},
                               {.output_limit = k_max_listed_bytes}));
  auto entries = answer.exit_code == 0 && !answer.cut ? parse_entries(answer.out) : std::nullopt;
  if (answer.cut) answer.err = "far too many files";
  if (!entries) return git_error("ls-tree " + tree, answer);
  if (entries->size() > max_entries) {
    return fail(Code::data, "{} of {}: more than {} files", folder, text::short_commit(commit),
                max_entries);
  }
  for (Entry& entry : *entries) {
    if (!folder.empty()) entry.path = folder + "/" + entry.path;
  }
  return *entries;
}

Result<std::string> Git::content(const std::string& object, std::uint64_t max_bytes) const {
  // Leave room for messages on standard error, which count too.
  WEIR_TRY(Answer answer, call({"cat-file", "blob", object},
                               {.output_limit = max_bytes + (std::uint64_t{64} << 10)}));
  if (answer.cut || answer.out.size() > max_bytes)
    return fail(Code::data, "more than {} bytes", max_bytes);
  if (answer.exit_code != 0) return git_error("cat-file", answer);
  return std::move(answer.out);
}

// Lists files in the work tree, below `folder`, that differ from the commit or that git does not
// track.
Result<std::vector<std::string>> Git::changed_files(const std::string& commit,
                                                    const std::string& folder) const {
  const std::string place = folder.empty() ? "." : folder;
  std::set<std::string> paths;
  const std::vector<std::string> questions[] = {
      {"--literal-pathspecs", "diff", "--no-ext-diff", "--no-textconv", "--no-renames",
       "--ignore-submodules=all", "--name-only", "-z", commit, "--", place},
      {"--literal-pathspecs", "ls-files", "--others", "--full-name", "-z", "--", place}};
  for (const std::vector<std::string>& question : questions) {
    WEIR_TRY(const std::string out, call_checked(question, {.output_limit = k_max_listed_bytes}));
    for (std::string& path : text::split(out, '\0')) paths.insert(std::move(path));
  }
  paths.erase("");
  return std::vector<std::string>(paths.begin(), paths.end());
}

// Lists the files that differ between `commit` and `head`, or the work tree if `head` is absent.
// Files that the index hides are compared, too.
Result<std::vector<Git::FileChange>> Git::changes_since(
    const std::string& commit, const std::optional<std::string>& head) const {
  const auto list = [&](std::vector<std::string> question) -> Result<std::vector<FileChange>> {
    question.insert(question.end(), {"--raw", "-z", "--no-abbrev", "--no-renames", "--no-relative",
                                     "--no-ext-diff", "--no-textconv", "--end-of-options", commit});
    if (head) question.push_back(*head);
    question.emplace_back("--");
    WEIR_TRY(const std::string out,
             call_checked(std::move(question), {.output_limit = k_max_listed_bytes}));
    auto changes = parse_changes(out);
    if (!changes) return fail(Code::io, "git diff in {}: an answer that is not understood", top_);
    return *std::move(changes);
  };
  // A submodule's own repository is not asked: settings of its files could start programs.
  if (head) return list({"diff", "--ignore-submodules=dirty"});
  WEIR_TRY(std::vector<FileChange> changes, list({"diff", "--ignore-submodules=all"}));
  WEIR_CHECK(hash_work_tree_files(changes));
  std::erase_if(changes, is_same);
  WEIR_TRY(const std::vector<FileChange> staged, list({"diff", "--cached"}));
  std::ranges::copy_if(staged, std::back_inserter(changes), &FileChange::is_submodule);
  WEIR_TRY(HiddenChanges hidden, hidden_changes());
  std::map<std::string, std::string> before;  // in `commit`, by path
  for (const FileChange& change : hidden.changes) before[change.path] = change.before;
  std::erase_if(changes, [&](const FileChange& seen) { return before.contains(seen.path); });
  for (const FileChange& change : staged) {
    if (std::string* object = look_up(before, change.path)) *object = change.before;
  }
  for (FileChange& change : hidden.changes) {
    change.before = before.at(change.path);
    if (change.before != change.after) changes.push_back(std::move(change));
  }
  return changes;
}

Result<std::vector<Git::FileChange>> Git::changes_in_submodule(const std::string& path,
                                                               const std::string& commit) const {
  const std::string folder = sys::join_path(top_, path);
  WEIR_TRY(const Git own, open(*effects_, folder));
  if (own.top() != folder) return fail(Code::config, "{}: not checked out", text::printable(path));
  WEIR_TRY(std::vector<FileChange> changes, own.changes_since(commit, std::nullopt));
  for (FileChange& change : changes) change.path = sys::join_path(path, change.path);
  return changes;
}

// Replaces an id of zeros, which stands for a file of the work tree, by the id of the file's
// content.
Result<void> Git::hash_work_tree_files(std::vector<FileChange>& changes) const {
  std::vector<FileChange*> unstored;
  for (FileChange& change : changes) {
    if (!change.after.empty() && is_zero_id(change.after)) unstored.push_back(&change);
  }
  constexpr std::size_t k_files_per_call = 200;  // a command line has room for so many
  for (std::size_t begin = 0; begin < unstored.size(); begin += k_files_per_call) {
    const auto batch =
        std::span(unstored).subspan(begin, std::min(k_files_per_call, unstored.size() - begin));
    std::vector<std::string> paths;
    for (const FileChange* change : batch) paths.push_back(change->path);
    WEIR_TRY(const std::set<std::string> filtered, filtered_files(paths));
    std::vector<std::string> question{"hash-object", "--no-filters", "--"};
    question.insert(question.end(), paths.begin(), paths.end());
    WEIR_TRY(const std::string out, call_checked(std::move(question)));
    const std::vector<std::string> objects = text::lines(out);
    if (objects.size() != batch.size())
      return fail(Code::io, "git hash-object in {}: an answer that is not understood", top_);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      FileChange& change = *batch[i];
      change.after = objects[i];
      if (filtered.contains(change.path) && is_smudged(change)) change.after = change.before;
    }
  }
  return {};
}

// Returns those of the files that attributes give a filter.
Result<std::set<std::string>> Git::filtered_files(const std::vector<std::string>& paths) const {
  std::vector<std::string> question{"check-attr", "-z", "filter", "--"};
  question.insert(question.end(), paths.begin(), paths.end());
  WEIR_TRY(const std::string out, call_checked(std::move(question)));
  std::set<std::string> filtered;
  const std::vector<std::string> words = text::split(out, '\0');  // path, "filter", value
  for (std::size_t i = 0; i + 2 < words.size(); i += 3) {
    if (words[i + 2] != "unspecified" && words[i + 2] != "unset") filtered.insert(words[i]);
  }
  return filtered;
}

// Returns true if `before` is a pointer of Git LFS and the work tree has what it points to.
bool Git::is_smudged(const FileChange& change) const {
  if (change.before.empty()) return false;
  const auto text = content(change.before, k_max_lfs_pointer_bytes);
  const auto pointer = text ? parse_lfs_pointer(*text) : std::nullopt;
  return pointer && is_content_of(*pointer, effects_->files, sys::join_path(top_, change.path));
}

// Finds changes of files that the index hides: those marked skip-worktree or assume-unchanged.
// `left_out` has those that are absent on purpose.
Result<Git::HiddenChanges> Git::hidden_changes() const {
  WEIR_TRY(const std::string out, call_checked({"ls-files", "-v", "--stage", "-z", "--full-name"},
                                               {.output_limit = k_max_listed_bytes}));
  HiddenChanges hidden;
  for (const std::string& line : text::split(out, '\0')) {
    // "S 100644 78981922… 0\tpath": S for skip-worktree, a small letter for assume-unchanged.
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    const std::vector<std::string> words = text::split(line.substr(0, tab), ' ');
    if (words.size() != 4 || words[0].size() != 1)
      return fail(Code::io, "git ls-files in {}: an answer that is not understood", top_);
    const bool is_skipped = text::lower(words[0]) == "s";
    if (!is_skipped && text::lower(words[0]) != words[0]) continue;
    const bool is_submodule = words[1] == "160000", is_link = words[1] == "120000";
    if (is_submodule) continue;
    FileChange change{line.substr(tab + 1), words[2], ""};
    const sys::Kind kind = effects_->files.kind(sys::join_path(top_, change.path));
    if (kind == sys::Kind::file && !is_link) {
      change.after = std::string(change.before.size(), '0');
    } else if (kind != sys::Kind::absent) {
      change.after = "link";  // or what else no content is read of
    } else if (is_skipped) {
      hidden.left_out.insert(change.path);
    }
    hidden.changes.push_back(std::move(change));
  }
  WEIR_CHECK(hash_work_tree_files(hidden.changes));
  std::erase_if(hidden.changes, is_same);
  return hidden;
}

// Makes commits without a work tree: with an own index, and moving a branch only if nobody else has
// moved it.

Result<std::optional<std::string>> Git::branch_tip(const std::string& name) const {
  WEIR_TRY(const Answer check, call({"check-ref-format", "--branch", name}));
  if (check.exit_code != 0 || text::first_line(check.out) != name || name.starts_with("-")) {
    return fail(Code::usage, "{}: is no name of a branch", text::printable(name));
  }
  return resolve_commit("refs/heads/" + name);
}

Result<std::string> Git::checked_out_in(const std::string& branch) const {
  return ask({"for-each-ref", "--format=%(worktreepath)", "refs/heads/" + branch});
}

// Commits changes on top of `wanted.parent` and moves the branch. Returns the commit, or nullopt if
// another writer moved the branch first.
Result<std::optional<std::string>> Git::commit_to(const std::string& branch,
                                                  const Commit& wanted) const {
  WEIR_TRY(const sys::ScratchFolder scratch,
           sys::ScratchFolder::make(effects_->files, common_folder_, "weir-"));
  const CallOptions options{.env = {{"GIT_INDEX_FILE", scratch.at("index")}}};
  const auto run_git = [&](std::vector<std::string> arguments) {
    return call_checked(std::move(arguments), options).map([](const std::string& out) {
      return text::first_line(out);
    });
  };
  WEIR_CHECK(wanted.parent ? run_git({"read-tree", *wanted.parent})
                           : run_git({"read-tree", "--empty"}));
  for (const auto& [path, text] : wanted.changes) {
    if (!text) {
      WEIR_CHECK(run_git({"update-index", "--force-remove", "--", path}));
      continue;
    }
    const std::string file = scratch.at("content");
    WEIR_CHECK(effects_->files.write_atomic(file, *text));
    // --no-filters: the work tree's attributes do not apply to this branch.
    WEIR_TRY(const std::string object, run_git({"hash-object", "-w", "--no-filters", "--", file}));
    WEIR_CHECK(run_git({"update-index", "--add", "--cacheinfo", "100644," + object + "," + path}));
  }
  WEIR_TRY(const std::string tree, run_git({"write-tree"}));
  std::vector<std::string> words{"commit-tree", tree, "-m", wanted.message};
  if (wanted.parent) words.insert(words.end(), {"-p", *wanted.parent});
  WEIR_TRY(const std::string commit_name, run_git(std::move(words)));
  const std::string ref = "refs/heads/" + branch;
  WEIR_TRY(const Answer update,
           call({"update-ref", "-m", "weir: " + text::first_line(wanted.message), ref, commit_name,
                 wanted.old ? *wanted.old : std::string(commit_name.size(), '0')}));
  if (update.exit_code == 0) return std::optional(commit_name);
  WEIR_TRY(const std::optional<std::string> current_tip, resolve_commit(ref));
  // Another writer has moved the branch, or is moving it now.
  if (current_tip != wanted.old || update.err.find("Unable to create") != std::string::npos) {
    return std::optional<std::string>();
  }
  return fail(Code::io, "git update-ref {}: {}", ref, text::trim(text::printable(update.err)));
}

}  // namespace weir::source
