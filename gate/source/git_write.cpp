// Commits made without a work tree: objects, an index of their own, a branch that moves only from
// where it was seen.
#include "gate/base/text.hpp"
#include "gate/source/git.hpp"
#include "gate/sys/files.hpp"

namespace weir::source {
Result<std::optional<std::string>> Git::branch_tip(const std::string& name) const {
  WEIR_TRY(const Answer valid, call({"check-ref-format", "--branch", name}, How{}));
  if (valid.exit_code != 0 || text::first_line(valid.out) != name || name.starts_with("-")) {
    return fail(Code::usage, "{}: is no name of a branch", text::printable(name));
  }
  return commit("refs/heads/" + name);
}

Result<std::string> Git::checked_out_in(const std::string& branch) const {
  WEIR_TRY(const std::string place,
           ask({"for-each-ref", "--format=%(worktreepath)", "refs/heads/" + branch}));
  return place;
}

Result<std::optional<std::string>> Git::commit_to(const std::string& branch,
                                                  const Commit& wanted) const {
  WEIR_TRY(const sys::ScratchFolder scratch,
           sys::ScratchFolder::make(effects_->files, store_, "weir-"));
  How how;
  how.env = {{"GIT_INDEX_FILE", scratch.at("index")}};
  const auto must = [&](std::vector<std::string> arguments) -> Result<std::string> {
    const std::string verb = arguments.front();
    WEIR_TRY(const Answer answer, call(std::move(arguments), how));
    if (answer.exit_code != 0 || answer.cut) {
      return fail(Code::io, "git {} in {}: {}", verb, top_,
                  text::trim(text::printable(answer.err)));
    }
    return text::first_line(answer.out);
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
                 wanted.old ? *wanted.old : std::string(made.size(), '0')},
                How{}));
  if (moved.exit_code == 0) return std::optional(made);
  WEIR_TRY(const std::optional<std::string> now, commit(ref));
  // Another writer has it, or holds its lock just now.
  if (now != wanted.old || moved.err.find("Unable to create") != std::string::npos) {
    return std::optional<std::string>();
  }
  return fail(Code::io, "git update-ref {}: {}", ref, text::trim(text::printable(moved.err)));
}

}  // namespace weir::source
