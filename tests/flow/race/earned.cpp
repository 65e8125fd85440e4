// Tells earned successes from others.
#include "tests/flow/race/earned.hpp"

#include "gate/publish/target.hpp"

namespace weir::tests::race {
namespace {

constexpr std::string_view k_waive = "/weir waive ";  // before the code in a comment
constexpr std::size_t k_code_size = 40;

}  // namespace

void Earned::judge(const std::string& head, const std::string& rules) {
  const bool is_good = head == origin_.id("good") || head == origin_.id("poisoner");
  const bool is_strict = rules == origin_.id("main") || rules == origin_.id("later");
  if (is_good || !is_strict) passed_.insert({head, rules});
}

std::string Earned::find_wrong(const GithubStore& store, const Branches& branches) {
  const auto unearned = [](const std::string& shown, const std::string& head, std::int64_t pull) {
    return fmt::format("{} is a success at {} for pull request {}", shown, head.substr(0, 7), pull);
  };
  for (const Json& run : store.check_runs()) {
    const auto marker = publish::parse_marker(run.value("external_id", ""));
    if (!marker) continue;
    const std::string head = run.value("head_sha", ""), name = run.value("name", "");
    const std::string summary = run["output"].value("summary", "");
    const std::int64_t pull = marker->pull_request.value_or(0);
    const std::size_t at = summary.rfind(k_waive);
    if (at != std::string::npos && summary.find(" REASON", at) != std::string::npos) {
      const std::tuple place(pull, head, name);
      const auto [offer, is_new] =
          offers_.emplace(summary.substr(at + k_waive.size(), k_code_size), place);
      if (!is_new && offer->second != place) return "one code for two places";
    }
    if (run["conclusion"] != "success" && run["conclusion"] != "neutral") continue;
    if (!is_earned(pull, head, name, branches)) return unearned(name, head, pull);
  }
  for (const std::string& head : heads_) {
    std::set<std::string> contexts;
    for (const Json& status : store.statuses(head)) {
      const std::string context = status.value("context", "");
      if (!contexts.insert(context).second || status["state"] != "success") continue;
      // "weir/gate (main #7)"
      const std::size_t mark = context.find(" #");
      const std::int64_t pull = mark == std::string::npos ? 0 : std::stoi(context.substr(mark + 2));
      const std::string name =
          mark == std::string::npos ? context : "weir" + context.substr(9, mark - 9) + ")";
      if (!is_earned(pull, head, name, branches)) return unearned(context, head, pull);
    }
  }
  return "";
}

// Returns true for a success of the check `name`: it was earned by that base's rules, or waived
// by its code.
bool Earned::is_earned(std::int64_t pull, const std::string& head, const std::string& name,
                       const Branches& branches) {
  for (const auto& [branch, commits] : branches) {
    if (name != "weir (" + branch + ")") continue;
    for (const std::string& rules : commits) {
      // main and lax once were as old is.
      if (rules == "old" && branch != "old") continue;
      if (!passed_.contains({head, origin_.id(rules)})) continue;
      ++greens_;
      return true;
    }
  }
  for (const Comment& comment : comments_) {
    const auto offer = offers_.find(comment.body.substr(k_waive.size(), k_code_size));
    if (comment.pull == pull && comment.login == k_maintainer && offer != offers_.end() &&
        offer->second == std::tuple(pull, head, name)) {
      return true;
    }
  }
  return false;
}

}  // namespace weir::tests::race
