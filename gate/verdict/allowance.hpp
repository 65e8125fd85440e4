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

// What can be allowed.
struct Allowable {
  std::string cell;      // as reports show it: an alias where it is private
  std::string metric;    // its name, or "kernels"
  std::string from, to;  // "65", "133/2"; of a time "0 %" and the worst change it may have: "-12 %"
  std::string device_class{};      // that it was seen on; "": any
  std::vector<Changed> kernels{};  // of "kernels", by name; from and to count them

  friend bool operator==(const Allowable&, const Allowable&) = default;
};

struct Allowance {
  Allowable what;
  std::int64_t pull_request = 0;
  std::optional<std::string> head;    // for this commit of the pull request alone
  std::string reason, who;            // a login
  std::string until;                  // "2026-12-31", that day included
  std::optional<std::string> base{};  // the branch that the pull request was for when it was said
};

// What a gate would have to be allowed so that it passes.
struct WouldTake {
  std::vector<Allowable> changes;
  // What else keeps it from passing, in words; none: allowing all of the above is enough.
  std::vector<std::string> beyond;
  std::optional<RulesFrom> rules{};  // that the gate judged by
};
[[nodiscard]] WouldTake would_take(const GateVerdict& gate);

inline constexpr std::size_t k_most_allowances = 10'000;
// "allowances/12.json"
[[nodiscard]] std::string allowance_path(std::int64_t pull_request);
// weir.allowances/1, one a line, sorted: `all` are of one pull request.
[[nodiscard]] std::string to_text(std::int64_t pull_request, std::vector<Allowance> all);
// Hostile text: at most 8 MiB and k_most_allowances. Of another pull request, or with a part that
// is not what it should be: Code::data.
[[nodiscard]] Result<std::vector<Allowance>> parse_allowances(std::string_view text,
                                                              std::int64_t pull_request);
// `added` beside `there`: takes the place of what was allowed of the same cell, metric and commit.
[[nodiscard]] std::vector<Allowance> with_allowances(std::vector<Allowance> there,
                                                     std::vector<Allowance> added);
// Why it cannot be one; nothing when fine.
[[nodiscard]] std::optional<std::string> problem_of(const Allowance& allowance);

// As in weir.allowable/1: what is accepted, by which rules it failed, and who may not accept it.
void fields(Fields& io, WouldTake& take);
// What a check run shows of it and `/weir accept` reads back: a line for people and a block of
// weir.allowable/1, nothing of which ends the block early. What does not fit into `limit` bytes is
// left out whole, and said to be beyond.
[[nodiscard]] std::string allowable_text(const WouldTake& take, std::size_t limit);
[[nodiscard]] Result<WouldTake> parse_allowable_text(std::string_view text);

// What is allowed in place of what is stored, once the pull request is merged: counts and kernels
// of the baseline's device class. Nothing where it holds another value than `from`; times are never
// written, for a bound is no sample.
[[nodiscard]] std::optional<baseline::Baseline> accepted_into(const Allowable& what,
                                                              const baseline::Baseline& stored);

void fields(Fields& io, Allowable& what);

// What a gate is of.
struct AllowedFor {
  std::int64_t pull_request = 0;
  std::string head;   // the pull request's commit; "" where it is not known
  std::string today;  // "2026-11-20"
  // A cell's name as reports show it.
  std::function<std::string(const profile::CellKey&)> shown{};
  std::string base{};  // the branch that the pull request is for; "" where it is not known
};
// Fails that are allowed become accepted, and cells with them. Answers what was allowed and is void
// here, in words: a void allowance is told, since somebody counts on it.
[[nodiscard]] std::vector<std::string> apply_allowances(const std::vector<Allowance>& allowances,
                                                        const AllowedFor& gate,
                                                        std::vector<CellVerdict>& cells);

}  // namespace weir::verdict
