// Who earned which success: the truth that the drawn events are compared with.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/flow/race/origin.hpp"
#include "tests/publish/github_store.hpp"

namespace weir::tests::race {

inline constexpr const char* k_maintainer = "ada";
inline constexpr const char* k_author = "mallory";  // opened all pull requests, and may write
inline constexpr const char* k_reader = "eve";

struct Comment {
  std::int64_t pull = 0;
  std::string login, body, event;
};

class Earned {
 public:
  explicit Earned(const Origin& origin) : origin_(origin) {}
  // Names the heads of pull requests (ids).
  void watch(std::vector<std::string> heads) { heads_ = std::move(heads); }

  // Notes that a head was measured honestly, and judged by the rules of a commit.
  void judge(const std::string& head, const std::string& rules);
  void post(const Comment& comment) { comments_.push_back(comment); }
  // The names of a branch's commits, by branch.
  using Branches = std::map<std::string, std::vector<std::string>>;
  // Looks at what GitHub shows. Returns a success that nobody earned, or what is wrong otherwise;
  // "" where all is well.
  [[nodiscard]] std::string find_wrong(const GithubStore& store, const Branches& branches);
  // Offered codes, with the pull request, head and name of the check that offered each.
  using Offers = std::map<std::string, std::tuple<std::int64_t, std::string, std::string>>;
  [[nodiscard]] const Offers& offers() const { return offers_; }
  // Successes that were earned by measuring.
  [[nodiscard]] int greens() const { return greens_; }

 private:
  [[nodiscard]] bool is_earned(std::int64_t pull, const std::string& head, const std::string& name,
                               const Branches& branches);

  const Origin& origin_;
  std::vector<std::string> heads_;                        // ids
  std::set<std::pair<std::string, std::string>> passed_;  // head, rules
  Offers offers_;
  std::vector<Comment> comments_;
  int greens_ = 0;
};

}  // namespace weir::tests::race
