// What commits hold, without checking them out.

#include "gate/base/text.hpp"
#include "gate/source/git.hpp"

namespace weir::source {

namespace {

using Entry = Git::TreeEntry;

// `git ls-tree -z`: "100644 blob 3f…\tpath\0". Nothing where a line is not like that. Sizes are not
// asked for: a clone without its files would fetch each of them for that.
std::optional<std::vector<Entry>> parse_entries(const std::string& out) {
  std::vector<Entry> entries;
  for (const std::string& line : text::split(out, '\0')) {
    if (line.empty()) continue;  // behind the last one
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) return std::nullopt;
    const std::vector<std::string> words = text::split(line.substr(0, tab), ' ');
    if (words.size() != 3) return std::nullopt;
    Entry entry;
    entry.path = line.substr(tab + 1);
    entry.object = words[2];
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

constexpr std::uint64_t k_most_listed = std::uint64_t{256} << 20;

}  // namespace

Result<std::vector<Entry>> Git::entries(const std::string& commit,
                                        const std::vector<std::string>& paths) const {
  std::vector<std::string> question{"--literal-pathspecs", "ls-tree", "-z",
                                    "--full-tree",         commit,    "--"};
  question.insert(question.end(), paths.begin(), paths.end());
  WEIR_TRY(const Answer answer, call(std::move(question)));
  auto entries = answer.exit_code == 0 && !answer.cut ? parse_entries(answer.out) : std::nullopt;
  if (!entries) return refused("ls-tree " + commit, answer);
  return *entries;
}

Result<std::vector<Entry>> Git::entries_below(const std::string& commit, const std::string& folder,
                                              std::size_t most) const {
  const std::string tree = folder.empty() ? commit : commit + ":" + folder;
  WEIR_TRY(Answer answer,
           call({"ls-tree", "-r", "-z", "--full-tree", tree}, {.output_limit = k_most_listed}));
  auto entries = answer.exit_code == 0 && !answer.cut ? parse_entries(answer.out) : std::nullopt;
  if (answer.cut) answer.err = "far too many files";
  if (!entries) return refused("ls-tree " + tree, answer);
  if (entries->size() > most) {
    return fail(Code::data, "{} of {}: more than {} files", folder, short_commit(commit), most);
  }
  for (Entry& entry : *entries) {
    if (!folder.empty()) entry.path = folder + "/" + entry.path;
  }
  return *entries;
}

Result<std::string> Git::content(const std::string& object, std::uint64_t most) const {
  // More than that for what it has to say on standard error too.
  WEIR_TRY(Answer answer,
           call({"cat-file", "blob", object}, {.output_limit = most + (std::uint64_t{64} << 10)}));
  if (answer.cut || answer.out.size() > most) return fail(Code::data, "more than {} bytes", most);
  if (answer.exit_code != 0) return refused("cat-file", answer);
  return std::move(answer.out);
}

Result<std::vector<std::string>> Git::changed_files(const std::string& commit,
                                                    const std::string& folder) const {
  const std::string place = folder.empty() ? "." : folder;
  std::set<std::string> paths;
  const std::vector<std::string> questions[] = {
      {"--literal-pathspecs", "diff", "--no-ext-diff", "--no-textconv", "--no-renames",
       "--ignore-submodules=all", "--name-only", "-z", commit, "--", place},
      {"--literal-pathspecs", "ls-files", "--others", "--full-name", "-z", "--", place}};
  for (const std::vector<std::string>& question : questions) {
    WEIR_TRY(const std::string out, whole(question, {.output_limit = k_most_listed}));
    for (std::string& path : text::split(out, '\0')) paths.insert(std::move(path));
  }
  paths.erase("");
  return std::vector<std::string>(paths.begin(), paths.end());
}

// Commits made without a work tree: objects, an index of their own, a branch that moves only from
// where it was seen.

Result<std::optional<std::string>> Git::branch_tip(const std::string& name) const {
  WEIR_TRY(const Answer valid, call({"check-ref-format", "--branch", name}));
  if (valid.exit_code != 0 || text::first_line(valid.out) != name || name.starts_with("-")) {
    return fail(Code::usage, "{}: is no name of a branch", text::printable(name));
  }
  return commit("refs/heads/" + name);
}

Result<std::string> Git::checked_out_in(const std::string& branch) const {
  return ask({"for-each-ref", "--format=%(worktreepath)", "refs/heads/" + branch});
}

Result<std::optional<std::string>> Git::commit_to(const std::string& branch,
                                                  const Commit& wanted) const {
  WEIR_TRY(const sys::ScratchFolder scratch,
           sys::ScratchFolder::make(effects_->files, store_, "weir-"));
  const How how{.env = {{"GIT_INDEX_FILE", scratch.at("index")}}};
  const auto must = [&](std::vector<std::string> arguments) {
    return whole(std::move(arguments), how).map([](const std::string& out) {
      return text::first_line(out);
    });
  };
  WEIR_CHECK(wanted.parent ? must({"read-tree", *wanted.parent}) : must({"read-tree", "--empty"}));
  for (const auto& [path, text] : wanted.changes) {
    if (!text) {
      WEIR_CHECK(must({"update-index", "--force-remove", "--", path}));
      continue;
    }
    const std::string file = scratch.at("content");
    WEIR_CHECK(effects_->files.write_atomic(file, *text));
    // As it is: attributes of the work tree say nothing about this branch.
    WEIR_TRY(const std::string object, must({"hash-object", "-w", "--no-filters", "--", file}));
    WEIR_CHECK(must({"update-index", "--add", "--cacheinfo", "100644," + object + "," + path}));
  }
  WEIR_TRY(const std::string tree, must({"write-tree"}));
  std::vector<std::string> words{"commit-tree", tree, "-m", wanted.message};
  if (wanted.parent) words.insert(words.end(), {"-p", *wanted.parent});
  WEIR_TRY(const std::string made, must(std::move(words)));
  const std::string ref = "refs/heads/" + branch;
  WEIR_TRY(const Answer moved,
           call({"update-ref", "-m", "weir: " + text::first_line(wanted.message), ref, made,
                 wanted.old ? *wanted.old : std::string(made.size(), '0')}));
  if (moved.exit_code == 0) return std::optional(made);
  WEIR_TRY(const std::optional<std::string> now, commit(ref));
  // Another writer has it, or holds its lock just now.
  if (now != wanted.old || moved.err.find("Unable to create") != std::string::npos) {
    return std::optional<std::string>();
  }
  return fail(Code::io, "git update-ref {}: {}", ref, text::trim(text::printable(moved.err)));
}

}  // namespace weir::source
