// Checks the base of a run under a commit's rules: its author must not choose it.
#include "gate/flow/base_check.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/rules.hpp"
#include "gate/flow/waivers.hpp"
#include "gate/source/base.hpp"

namespace weir::flow {
namespace {

using source::Git;

std::string several_bases(std::size_t count, const std::string& ref) {
  return fmt::format("{} merge-bases with {}: merge it into the branch, or rebase the branch",
                     count, text::printable(ref));
}

// Notes how far the branch of the rules (limits and baselines) is ahead of the base: what it gained
// since is not compared.
Result<void> add_note_on_newer(const Git& git, const verdict::RulesFrom& rules,
                               const std::string& base, BaseCheck& check) {
  if (base == rules.commit) return {};
  WEIR_TRY(const bool is_of_ref, git.contains(rules.commit, base));
  if (!is_of_ref) return {};
  const auto commits = git.history(base, rules.commit);
  check.notes.push_back(fmt::format(
      "the branch is {} behind {}: what that gained since is not compared; update the branch, or "
      "measure its merge with it",
      commits ? text::plural(commits->size(), "commit") : std::string("many commits"),
      text::printable(rules.ref)));
  return {};
}

// Checks the base that a run by others says it was compared with.
class ClaimedBase {
 public:
  ClaimedBase(const Job& job, const BaseFacts& facts)
      : job_(job),
        git_(job.rules->repository->git()),
        facts_(facts),
        rules_(*job.rules->used.from),
        ref_(text::printable(rules_.ref)) {}

  [[nodiscard]] Result<BaseCheck> check() {
    const bool is_folder = facts_.words.starts_with(source::k_folder_words);
    if (is_folder || !facts_.commit) {
      return problem(fmt::format("the run was compared with {}, which is no commit of {}",
                                 is_folder ? "a folder" : "a program", ref_));
    }
    WEIR_TRY(const std::optional<std::string> base, commit_here(*facts_.commit));
    WEIR_TRY(const bool is_of_ref, is_in_ref(base));
    if (!is_of_ref) {
      WEIR_TRY(const bool is_shallow, git_.shallow());
      return problem(fmt::format("the run was compared with {}, which is no commit of {}{}",
                                 shown(*facts_.commit), ref_,
                                 is_shallow ? " as far as its history is here" : ""));
    }
    if (*base == rules_.commit) return BaseCheck{};
    return compare(*base);
  }

 private:
  static BaseCheck problem(std::string why) { return {std::move(why)}; }
  static std::string shown(const std::string& commit) {
    return text::printable(text::short_commit(commit));
  }
  [[nodiscard]] Result<std::optional<std::string>> commit_here(const std::string& id) const {
    if (!source::is_full_id(id)) return std::optional<std::string>();
    return git_.resolve_commit(id);
  }
  [[nodiscard]] Result<bool> is_in_ref(const std::optional<std::string>& commit) const {
    if (!commit) return false;
    return git_.contains(rules_.commit, *commit);
  }

  // Compares `base`, a commit of REF, with the one that the measured commit should have.
  [[nodiscard]] Result<BaseCheck> compare(const std::string& base) const {
    const auto event_base_commit = event_base(job_), event_commit = event_head(job_);
    if (!event_commit)
      return problem(text::printable(text::first_line(event_commit.error().message)));
    const std::string claimed = facts_.candidate_commit.value_or("");
    WEIR_TRY(const std::optional<std::string> candidate, commit_here(claimed));
    std::optional<std::string> head = candidate;
    if (!event_commit->empty()) WEIR_TRY_SET(head, commit_here(*event_commit));
    std::vector<std::string> merge_bases;
    if (head) WEIR_TRY_SET(merge_bases, git_.merge_bases(*head, rules_.commit));
    if (merge_bases.size() > 1) return problem(several_bases(merge_bases.size(), rules_.ref));
    if (holds(merge_bases, base)) return BaseCheck{};
    const bool is_events = base == *event_base_commit;
    // A commit of the branch itself is compared with the one that was pushed before.
    if (head == rules_.commit) {
      WEIR_TRY(const std::vector<std::string> parents, git_.parents(*head));
      if (is_events || (!parents.empty() && parents.front() == base)) return BaseCheck{};
    }
    if (merge_bases.empty()) {
      if (is_events) return BaseCheck{};
      return unknown_head(event_commit->empty() ? claimed : *event_commit);
    }
    // The event's base may be long out of date.
    WEIR_TRY(const bool is_later, git_.contains(base, merge_bases.front()));
    if (is_later && is_events) return BaseCheck{};
    // A job may have measured a merge of the head, which is seldom here: its first parent is the
    // branch as it was then.
    const bool is_head = candidate == head;
    if (is_later && !is_head) return check_merge(candidate, *head, base);
    return wrong(base, merge_bases.front());
  }

  // Checks `base` of a measured commit that is not the head, but may be a merge of it.
  [[nodiscard]] Result<BaseCheck> check_merge(const std::optional<std::string>& candidate,
                                              const std::string& head,
                                              const std::string& base) const {
    if (!candidate) return BaseCheck{};
    WEIR_TRY(const std::vector<std::string> parents, git_.parents(*candidate));
    if (parents == std::vector<std::string>{base, head}) return BaseCheck{};
    return wrong(base, parents.empty() ? rules_.commit : parents.front());
  }

  [[nodiscard]] BaseCheck wrong(const std::string& base, const std::string& right) const {
    return problem(fmt::format(
        "the run was compared with {}, and its merge-base with {} is {}: measure it with --against "
        "{}",
        shown(base), ref_, shown(right), ref_));
  }

  [[nodiscard]] BaseCheck unknown_head(const std::string& head) const {
    BaseCheck check;
    check.notes.push_back(fmt::format(
        "the run's base is a commit of {}; whether it is the merge-base cannot be told, as the "
        "history of {} is not here: fetch it (git fetch --filter=tree:0 origin COMMIT)",
        ref_, head.empty() ? "its commit" : shown(head)));
    return check;
  }

  const Job& job_;
  const Git& git_;
  const BaseFacts& facts_;
  const verdict::RulesFrom& rules_;
  std::string ref_;
};

}  // namespace

// Checks that a run's base is one that the rules allow. For a run by others these are the merge
// base, the rules' branch, or the base that the event names.
Result<BaseCheck> check_base(const Job& job, const MeasuredRun& measured) {
  const std::optional<AppliedRules>& rules = measured.configuration.rules;
  if (!measured.base_runs || !rules || !rules->from) return BaseCheck{};
  const BaseFacts& facts = measured.base_runs->facts;
  BaseCheck check;
  if (measured.claimed) {
    WEIR_TRY_SET(check, ClaimedBase(job, facts).check());
  } else if (facts.merge_bases > 1) {
    check.problem = several_bases(facts.merge_bases, facts.against.spec);
  }
  const bool has_history = job.rules && job.rules->used.from && job.rules->repository;
  const bool is_on_branch = facts.candidate_commit == rules->from->commit;
  const bool may_be_behind = facts.is_behind || (measured.claimed && !is_on_branch);
  if (check.problem || !facts.commit || !has_history || !may_be_behind) return check;
  WEIR_CHECK(add_note_on_newer(job.rules->repository->git(), *rules->from, *facts.commit, check));
  return check;
}

}  // namespace weir::flow
