// What commits hold, without checking them out.
#include <algorithm>
#include <set>

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
  WEIR_TRY(const Answer answer, call(std::move(question), How{}));
  auto entries = answer.exit_code == 0 && !answer.cut ? parse_entries(answer.out) : std::nullopt;
  if (!entries) {
    return fail(Code::io, "git ls-tree {} in {}: {}", commit, top_,
                text::trim(text::printable(answer.err)));
  }
  return *entries;
}

Result<std::vector<Entry>> Git::entries_below(const std::string& commit, const std::string& folder,
                                              std::size_t most) const {
  const std::string tree = folder.empty() ? commit : commit + ":" + folder;
  How how;
  how.output_limit = k_most_listed;
  WEIR_TRY(const Answer answer, call({"ls-tree", "-r", "-z", "--full-tree", tree}, how));
  auto entries = answer.exit_code == 0 && !answer.cut ? parse_entries(answer.out) : std::nullopt;
  if (!entries) {
    return fail(Code::io, "git ls-tree {} in {}: {}", tree, top_,
                answer.cut ? std::string("far too many files")
                           : std::string(text::trim(text::printable(answer.err))));
  }
  if (entries->size() > most) {
    return fail(Code::data, "{} of {}: more than {} files", folder, short_commit(commit), most);
  }
  for (Entry& entry : *entries) {
    if (!folder.empty()) entry.path = folder + "/" + entry.path;
  }
  return *entries;
}

Result<std::string> Git::content(const std::string& object, std::uint64_t most) const {
  How how;
  how.output_limit = most + (std::uint64_t{64} << 10);  // what it has to say on standard error too
  WEIR_TRY(Answer answer, call({"cat-file", "blob", object}, how));
  if (answer.cut || answer.out.size() > most) {
    return fail(Code::data, "more than {} bytes", most);
  }
  if (answer.exit_code != 0) {
    return fail(Code::io, "git cat-file in {}: {}", top_, text::trim(text::printable(answer.err)));
  }
  return std::move(answer.out);
}

Result<std::vector<std::string>> Git::changed_files(const std::string& commit,
                                                    const std::string& folder) const {
  How how;
  how.output_limit = k_most_listed;
  const std::string place = folder.empty() ? "." : folder;
  std::set<std::string> paths;
  const std::vector<std::string> questions[] = {
      {"--literal-pathspecs", "diff", "--no-ext-diff", "--no-textconv", "--no-renames",
       "--ignore-submodules=all", "--name-only", "-z", commit, "--", place},
      {"--literal-pathspecs", "ls-files", "--others", "--full-name", "-z", "--", place}};
  for (const std::vector<std::string>& question : questions) {
    WEIR_TRY(const Answer answer, call(question, how));
    if (answer.exit_code != 0 || answer.cut) {
      return fail(Code::io, "git {} in {}: {}", question[1], top_,
                  text::trim(text::printable(answer.err)));
    }
    for (std::string& path : text::split(answer.out, '\0')) {
      if (!path.empty()) paths.insert(std::move(path));
    }
  }
  return std::vector<std::string>(paths.begin(), paths.end());
}

}  // namespace weir::source
