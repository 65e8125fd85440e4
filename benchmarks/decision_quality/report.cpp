// Prints results as lines, JSON and Markdown tables.
#include "benchmarks/decision_quality/report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/stats/replay.hpp"

#include "benchmarks/decision_quality/classic.hpp"

namespace weir::quality {
namespace {

// Returns a share in percent: "0", "0.35", "12.3", "100". Only exact 0 and 1 give "0" and "100".
std::string percent(double share) {
  if (share <= 0) return "0";
  if (share >= 1) return "100";
  const double value = 100 * share;
  if (value < 0.001) return fmt::format("{:.1e}", value);
  int decimals = 1;
  if (value < 10) decimals = 2;
  if (value < 0.1) decimals = 3;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text == "100.0") return ">99.9";
  return text;
}

std::string count_text(double value) {
  return fmt::format("{:.{}f}", value, value < 99.95 ? 1 : 0);
}

std::string drop_text(const Row& row) { return row.drop ? percent(*row.drop) : "?"; }

// Percent of trials decided within 10, 30, 100 and 300 pairs, cut off after the first 100 %.
std::string decided_shares(const Tally& tally) {
  std::vector<std::string> shares;
  for (const std::uint64_t within : tally.decided_within) {
    shares.push_back(fmt::format("{:.0f}", std::floor(100 * tally.share(within))));
    if (within == tally.trials) break;  // the rest are 100 too
  }
  return text::join(shares, " ");
}

// Returns the leading rows with the rule and noise of the first; such rows are adjacent.
std::span<const Row> first_group(std::span<const Row> rows) {
  std::size_t size = 1;
  while (size < rows.size() && rows[size].rule == rows[0].rule &&
         rows[size].noise == rows[0].noise) {
    ++size;
  }
  return rows.first(size);
}

// Joins format(row) of all rows of a group to one table cell.
template <class Format>
std::string join_effects(std::span<const Row> group, Format format) {
  std::vector<std::string> texts;
  for (const Row& row : group) texts.push_back(format(row));
  return text::join(texts, " · ");
}

// False fails of a gate in percent, with their upper bound: "0.02 (0.35)".
std::string false_fail_text(const Tally& unchanged) {
  const GateFalseFail gate = gate_false_fail(unchanged);
  return fmt::format("{} ({})", percent(gate.share), percent(gate.upper));
}

}  // namespace

GateFalseFail gate_false_fail(const Tally& unchanged) {
  if (unchanged.trials == 0) return {0, 1};
  constexpr double k_confidence = 0.95;
  return {share_per_gate(unchanged.share(unchanged.fail), k_gate_metrics),
          share_per_gate(stats::max_share(unchanged.fail, unchanged.trials, k_confidence),
                         k_gate_metrics)};
}

// Returns, for each rule, the sum of its rows without a change on the noises of `same_program`.
std::vector<Row> pool_unchanged_rows(std::span<const Row> rows,
                                     std::span<const std::string> same_program) {
  std::vector<Row> sums;
  for (const Row& row : rows) {
    const bool is_same_program =
        std::find(same_program.begin(), same_program.end(), row.noise) != same_program.end();
    if (!is_same_program || !row.drop || *row.drop != 0) continue;
    auto sum = std::find_if(sums.begin(), sums.end(),
                            [&](const Row& other) { return other.rule == row.rule; });
    if (sum == sums.end()) {
      sums.push_back({row.rule, "pooled", 0.0, {}, {}, {}});
      sum = sums.end() - 1;
    }
    sum->tally.add(row.tally);
  }
  for (Row& sum : sums) sum.unchanged = sum.tally;
  return sums;
}

// Returns one row as a JSON object on one line. Shares are from 0 to 1.
std::string to_json(const Row& row, const Limits& limits) {
  const Tally& tally = row.tally;
  Json json = {{"rule", row.rule},
               {"noise", row.noise},
               {"effect", row.drop ? Json(*row.drop) : Json(nullptr)},
               {"tolerate", limits.tolerate},
               {"limit", limits.max_drop},
               {"trials", tally.trials},
               {"fail", tally.share(tally.fail)},
               {"pass", tally.share(tally.pass)},
               {"inconclusive", tally.share(tally.inconclusive)},
               {"unlike", tally.share(tally.unlike)},
               {"pairs_mean", tally.pairs_mean()},
               {"pairs_p95", tally.pairs_p95()},
               {"gate_false_fail", nullptr},
               {"gate_false_fail_upper", nullptr},
               {"pairs_cap", limits.cap}};
  if (row.unchanged) {
    const GateFalseFail gate = gate_false_fail(*row.unchanged);
    json["gate_false_fail"] = gate.share;
    json["gate_false_fail_upper"] = gate.upper;
  }
  for (std::size_t i = 0; i < k_pair_limits.size(); ++i) {
    json["decided_within"][std::to_string(k_pair_limits[i])] = tally.share(tally.decided_within[i]);
  }
  if (row.note) json["note"] = *row.note;
  return dump_json(json);
}

std::string heading() {
  return fmt::format("{:<12} {:<14} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>6}  {:<15} {}", "rule",
                     "noise", "drop %", "trials", "fail %", "pass %", "open %", "pairs", "p95",
                     "within", "false fails a gate % (95 % bound)");
}

// Returns one row as a line of text below heading(). Shares are in percent.
std::string to_line(const Row& row) {
  const Tally& tally = row.tally;
  std::string gate;
  if (row.unchanged && row.drop == 0.0) gate = false_fail_text(*row.unchanged);
  if (row.note) gate += (gate.empty() ? "" : "  ") + *row.note;
  std::string line =
      fmt::format("{:<12} {:<14} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>6}  {:<15} {}", row.rule,
                  row.noise, drop_text(row), tally.trials, percent(tally.share(tally.fail)),
                  percent(tally.share(tally.pass)), percent(tally.share(tally.inconclusive)),
                  count_text(tally.pairs_mean()), tally.pairs_p95(), decided_shares(tally), gate);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Returns a Markdown table with a row for each rule and noise; its effects are joined by " · ".
std::string to_markdown(std::span<const Row> rows) {
  std::string text =
      "| noise | rule | drop % | fail % | pass % | open % | pairs | p95 | % decided within 10 30 "
      "100 300 "
      "| false fails a gate, % (95 % bound) |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  while (!rows.empty()) {
    const std::span<const Row> group = first_group(rows);
    rows = rows.subspan(group.size());
    std::string false_fails = "–";
    if (group[0].unchanged) false_fails = false_fail_text(*group[0].unchanged);
    const auto share_of = [](std::uint64_t Tally::*count) {
      return [count](const Row& row) { return percent(row.tally.share(row.tally.*count)); };
    };
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", group[0].noise, group[0].rule,
        join_effects(group, drop_text), join_effects(group, share_of(&Tally::fail)),
        join_effects(group, share_of(&Tally::pass)),
        join_effects(group, share_of(&Tally::inconclusive)),
        join_effects(group, [](const Row& row) { return count_text(row.tally.pairs_mean()); }),
        join_effects(group, [](const Row& row) { return std::to_string(row.tally.pairs_p95()); }),
        join_effects(group, [](const Row& row) { return decided_shares(row.tally); }), false_fails);
  }
  return text;
}

}  // namespace weir::quality
