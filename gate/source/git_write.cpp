// Commits made without a work tree: objects, an index of their own, a branch that moves only from
// where it was seen.
#include <unistd.h>

#include "gate/base/text.hpp"
#include "gate/source/git.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {
namespace {

// A folder below the repository's store, removed with all in it.
class Scratch {
 public:
  static Result<Scratch> make(sys::Files& files, const std::string& store) {
    std::string pattern = sys::join_path(store, "weir-XXXXXX");
    if (mkdtemp(pattern.data()) == nullptr) {
      return fail(Code::io, "{}: no folder can be made there", store);
    }
    return Scratch(files, pattern);
  }
  Scratch(Scratch&& other) noexcept : files_(other.files_), folder_(std::move(other.folder_)) {
    other.folder_.clear();
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (!folder_.empty()) (void)files_.remove_tree(folder_);
  }
  [[nodiscard]] std::string at(const std::string& name) const {
    return sys::join_path(folder_, name);
  }

 private:
  Scratch(sys::Files& files, std::string folder) : files_(files), folder_(std::move(folder)) {}
  sys::Files& files_;
  std::string folder_;
};

}  // namespace

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
  WEIR_TRY(const Scratch scratch, Scratch::make(effects_->files, store_));
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
