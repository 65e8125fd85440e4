// A change that somebody with the right to waived for one pull request: it fails no more.
//
// A waiver is for exactly one change: it is void for another value, another pull request, another
// commit (where it is pinned to one) and another day. Counts are waived from one exact text to
// another, kernels by each kernel that changed, times down to a bound. What could not be measured
// and work that ran elsewhere (placement) cannot be waived: these are no values.
//
// Kept as weir.waivers/1, one file a pull request ("waivers/12.json" on a branch). Pure.
#pragma once

#include <functional>

#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// A change that can be waived.
struct Waivable {
  std::string cell;      // as reports show it: an alias where it is private
  std::string metric;    // its name, or "kernels"
  std::string from, to;  // "65", "133/2"; of a time "0 %" and the worst change it may have: "-12 %"
  std::string device_class{};      // the class it was seen on; "": any
  std::vector<Changed> kernels{};  // for metric "kernels": sorted by name, with their counts

  friend bool operator==(const Waivable&, const Waivable&) = default;
};

struct Waiver {
  Waivable what;
  std::int64_t pull_request = 0;
  std::optional<std::string> head;    // for this commit of the pull request alone
  std::string reason, who;            // a login
  std::string until;                  // "2026-12-31", that day included
  std::optional<std::string> base{};  // the branch that the pull request was for at that time
};

// The changes that have to be waived so that a gate passes.
struct NeededWaivers {
  std::vector<Waivable> changes;
  // Other obstacles, in words. Empty: the gate passes once all of the above is waived.
  std::vector<std::string> beyond;
  std::optional<RulesFrom> rules{};  // the rules that the gate judged by
};
[[nodiscard]] NeededWaivers needed_waivers(const GateVerdict& gate);

inline constexpr std::size_t k_max_waivers = 10'000;
// "waivers/12.json"
[[nodiscard]] std::string waiver_path(std::int64_t pull_request);
// weir.waivers/1, one a line, sorted: `all` are of one pull request.
[[nodiscard]] std::string to_text(std::int64_t pull_request, std::vector<Waiver> all);
// Reads hostile text: at most 8 MiB and k_max_waivers. Fails with Code::data on the waivers
// of another pull request, and on a part that is malformed.
[[nodiscard]] Result<std::vector<Waiver>> parse_waivers(std::string_view text,
                                                        std::int64_t pull_request);
// Adds `added` to `stored`. An added one replaces those of the same cell, metric, class and commit,
// and all for older commits, which are void.
[[nodiscard]] std::vector<Waiver> with_waivers(std::vector<Waiver> stored,
                                               std::vector<Waiver> added);
// Returns why `waiver` is not valid; nothing when fine.
[[nodiscard]] std::optional<std::string> waiver_problem(const Waiver& waiver);

// As in weir.waivable/1: the changes, the rules by which they failed, and who may not waive them.
void fields(Fields& io, NeededWaivers& needed);
// The text that a check run shows of it and `/weir waive` reads back: a line for people and a
// block of weir.waivable/1, which nothing in it can end early. If the changes exceed `limit`
// bytes, they are left out, and `beyond` says so.
[[nodiscard]] std::string waivable_text(const NeededWaivers& needed, std::size_t limit);
[[nodiscard]] Result<NeededWaivers> parse_waivable_text(std::string_view text);

// The baseline to store once the pull request is merged: `stored` with the waived counts and
// kernels. Nothing if it is of another class or holds another value than `from`. Times are never
// written, for a bound is no sample.
[[nodiscard]] std::optional<baseline::Baseline> apply_to_baseline(const Waivable& what,
                                                                  const baseline::Baseline& stored);

void fields(Fields& io, Waivable& what);

// The gate that waivers are applied to.
struct WaiverContext {
  // Heads of the pull requests whose waivers hold, by number; "" where one is not known: the one
  // that is judged, and others whose change it holds as well.
  std::map<std::int64_t, std::string> heads;
  std::optional<std::int64_t> pull_request;  // the one that is judged
  // The pull requests whose change the base has, too. Their waivers hold beside stored baselines
  // alone, which may not have their level yet, and for what is stored exactly: no bound of a time.
  std::set<std::int64_t> in_base;
  std::string today;  // "2026-11-20"
  // Returns a cell's name as reports show it.
  std::function<std::string(const profile::CellKey&)> shown{};
  std::string base{};  // the branch that the pull request is for; "" where it is not known
};
// Turns fails that have a waiver into waived ones, and folds their cells again. Returns, in words,
// the waivers that are void here: somebody counts on them, so reports list them.
[[nodiscard]] std::vector<std::string> apply_waivers(const std::vector<Waiver>& waivers,
                                                     const WaiverContext& gate,
                                                     std::vector<CellVerdict>& cells);

}  // namespace weir::verdict
