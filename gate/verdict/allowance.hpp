// A change that somebody with the right to allowed for one pull request: it fails no more.
//
// Exactly what was allowed, and nothing else: another value, another pull request, another commit
// (where it is pinned to one) or another day, and it is void. Counts are allowed from one exact
// text to another, kernels by each kernel that changed, times down to a bound. What could not be
// measured and work that ran elsewhere (placement) cannot be allowed: these are no values.
//
// Kept as weir.allowances/1, one file a pull request ("allowances/12.json" on a branch). Pure.
#pragma once

#include <functional>

#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// A change that can be allowed.
struct Allowable {
  std::string cell;      // as reports show it: an alias where it is private
  std::string metric;    // its name, or "kernels"
  std::string from, to;  // "65", "133/2"; of a time "0 %" and the worst change it may have: "-12 %"
  std::string device_class{};      // the class it was seen on; "": any
  std::vector<Changed> kernels{};  // for metric "kernels": sorted by name, with their counts

  friend bool operator==(const Allowable&, const Allowable&) = default;
};

struct Allowance {
  Allowable what;
  std::int64_t pull_request = 0;
  std::optional<std::string> head;    // for this commit of the pull request alone
  std::string reason, who;            // a login
  std::string until;                  // "2026-12-31", that day included
  std::optional<std::string> base{};  // the branch that the pull request was for at that time
};

// The changes that have to be allowed so that a gate passes.
struct NeededAllowances {
  std::vector<Allowable> changes;
  // Other obstacles, in words. Empty: the gate passes once all of the above is allowed.
  std::vector<std::string> beyond;
  std::optional<RulesFrom> rules{};  // the rules that the gate judged by
};
[[nodiscard]] NeededAllowances needed_allowances(const GateVerdict& gate);

inline constexpr std::size_t k_max_allowances = 10'000;
// "allowances/12.json"
[[nodiscard]] std::string allowance_path(std::int64_t pull_request);
// weir.allowances/1, one a line, sorted: `all` are of one pull request.
[[nodiscard]] std::string to_text(std::int64_t pull_request, std::vector<Allowance> all);
// Reads hostile text: at most 8 MiB and k_max_allowances. Fails with Code::data on the allowances
// of another pull request, and on a part that is malformed.
[[nodiscard]] Result<std::vector<Allowance>> parse_allowances(std::string_view text,
                                                              std::int64_t pull_request);
// Adds `added` to `stored`. An added one replaces those of the same cell, metric, class and commit.
[[nodiscard]] std::vector<Allowance> with_allowances(std::vector<Allowance> stored,
                                                     std::vector<Allowance> added);
// Returns why `allowance` is not valid; nothing when fine.
[[nodiscard]] std::optional<std::string> allowance_problem(const Allowance& allowance);

// As in weir.allowable/1: what is accepted, by which rules it failed, and who may not accept it.
void fields(Fields& io, NeededAllowances& needed);
// The text that a check run shows of it and `/weir accept` reads back: a line for people and a
// block of weir.allowable/1, which nothing in it can end early. If the changes exceed `limit`
// bytes, they are left out, and `beyond` says so.
[[nodiscard]] std::string allowable_text(const NeededAllowances& needed, std::size_t limit);
[[nodiscard]] Result<NeededAllowances> parse_allowable_text(std::string_view text);

// The baseline to store once the pull request is merged: `stored` with the allowed counts and
// kernels. Nothing if it is of another class or holds another value than `from`. Times are never
// written, for a bound is no sample.
[[nodiscard]] std::optional<baseline::Baseline> apply_to_baseline(const Allowable& what,
                                                                  const baseline::Baseline& stored);

void fields(Fields& io, Allowable& what);

// The gate that allowances are applied to.
struct AllowanceContext {
  std::int64_t pull_request = 0;
  std::string head;   // the pull request's commit; "" where it is not known
  std::string today;  // "2026-11-20"
  // Returns a cell's name as reports show it.
  std::function<std::string(const profile::CellKey&)> shown{};
  std::string base{};  // the branch that the pull request is for; "" where it is not known
};
// Turns fails that are allowed into accepted ones, and folds their cells again. Returns, in words,
// the allowances that are void here: somebody counts on them, so reports list them.
[[nodiscard]] std::vector<std::string> apply_allowances(const std::vector<Allowance>& allowances,
                                                        const AllowanceContext& gate,
                                                        std::vector<CellVerdict>& cells);

}  // namespace weir::verdict
