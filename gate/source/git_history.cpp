// When and in which order commits were made.
#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/source/git.hpp"

namespace weir::source {
namespace {

constexpr double k_history_seconds = 600;
constexpr std::uint64_t k_most_history_bytes = std::uint64_t{128} << 20;

bool hex_digits(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "NAME SECONDS"
std::optional<CommitFacts> facts_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view name = line.substr(0, space);
  const auto seconds = text::to_int(line.substr(space + 1));
  if ((name.size() != 40 && name.size() != 64) || !hex_digits(name) || !seconds) {
    return std::nullopt;
  }
  return CommitFacts{std::string(name), std::nullopt, static_cast<double>(*seconds)};
}

}  // namespace

Result<std::optional<CommitFacts>> Git::head() const {
  WEIR_TRY(const Answer answer, call({"log", "-1", "--format=%H %ct", "HEAD", "--"}, How{}));
  if (answer.exit_code != 0) return std::nullopt;  // no commit yet
  auto facts = facts_of(text::trim(answer.out));
  if (!facts) return fail(Code::io, "git log in {}: an answer that is not understood", top_);
  WEIR_TRY(const Answer branch, call({"symbolic-ref", "--quiet", "--short", "HEAD"}, How{}));
  if (branch.exit_code == 0) {
    facts->branch = std::string(text::trim(branch.out));
  }
  return facts;
}

Result<std::optional<double>> Git::time_of(const std::string& commit) const {
  WEIR_TRY(const std::optional<std::string> known, this->commit(commit));
  if (!known) return std::nullopt;
  WEIR_TRY(const Answer answer, call({"log", "-1", "--format=%H %ct", *known, "--"}, How{}));
  const auto facts = facts_of(text::trim(answer.out));
  return facts ? std::optional(facts->time) : std::nullopt;
}

Result<std::vector<std::string>> Git::all_commits() const {
  How how;
  how.timeout_seconds = k_history_seconds;
  how.output_limit = k_most_history_bytes;
  // HEAD may be on no branch; without a commit there is none at all.
  WEIR_TRY(const std::optional<std::string> head, commit("HEAD"));
  std::vector<std::string> question{"rev-list", "--topo-order", "--reverse", "--all"};
  if (head) question.push_back(*head);
  question.emplace_back("--");
  WEIR_TRY(const Answer answer, call(std::move(question), how));
  if (answer.cut) return fail(Code::config, "{} has more commits than weir reads", top_);
  if (answer.exit_code != 0) {
    return fail(Code::io, "git rev-list in {}: {}", top_, text::trim(text::printable(answer.err)));
  }
  std::vector<std::string> commits = text::lines(answer.out);
  std::erase_if(commits, [](const std::string& line) { return line.empty() || !hex_digits(line); });
  return commits;
}

Result<std::map<std::string, std::string>> Git::subjects() const {
  How how;
  how.timeout_seconds = k_history_seconds;
  how.output_limit = k_most_history_bytes;
  WEIR_TRY(const std::optional<std::string> head, commit("HEAD"));
  std::map<std::string, std::string> subjects;
  if (!head) return subjects;
  WEIR_TRY(const Answer answer,
           call({"log", "--encoding=UTF-8", "--format=%H %s", "--all", *head, "--"}, how));
  if (answer.cut) return fail(Code::config, "{} has more commits than weir reads", top_);
  if (answer.exit_code != 0) {
    return fail(Code::io, "git log in {}: {}", top_, text::trim(text::printable(answer.err)));
  }
  for (const std::string& line : text::lines(answer.out)) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || !hex_digits(line.substr(0, space))) continue;
    subjects.emplace(line.substr(0, space), text::printable(line.substr(space + 1, 256)));
  }
  return subjects;
}

Result<std::vector<CommitFacts>> Git::commits_that_changed(const std::string& folder) const {
  How how;
  how.timeout_seconds = k_history_seconds;
  WEIR_TRY(const Answer answer,
           call({"--literal-pathspecs", "log", "--first-parent", "--reverse", "--format=%H %ct",
                 "HEAD", "--", folder.empty() ? "." : folder},
                how));
  if (answer.cut) return fail(Code::config, "{}: more commits than weir reads", top_);
  if (answer.exit_code != 0) {
    return fail(Code::io, "git log in {}: {}", top_, text::trim(text::printable(answer.err)));
  }
  std::vector<CommitFacts> commits;
  for (const std::string& line : text::lines(answer.out)) {
    if (auto facts = facts_of(line)) commits.push_back(*std::move(facts));
  }
  return commits;
}

}  // namespace weir::source
