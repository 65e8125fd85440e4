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

// A share in percent: "0", "0.35", "12.3", "100"; never 0 or 100 for what is not.
std::string percent(double share) {
  if (share <= 0) return "0";
  if (share >= 1) return "100";
  const double value = 100 * share;
  if (value < 0.001) return fmt::format("{:.1e}", value);
  std::string text = fmt::format("{:.{}f}", value, value < 0.1 ? 3 : value < 10 ? 2 : 1);
  if (text == "100.0") return ">99.9";
  return text;
}

std::string count(double value) { return fmt::format("{:.{}f}", value, value < 99.95 ? 1 : 0); }

std::string drop_of(const Row& row) { return row.drop ? percent(*row.drop) : "?"; }

std::string looks(const Tally& tally) {
  std::vector<std::string> shares;
  for (const std::uint64_t within : tally.decided_within) {
    shares.push_back(fmt::format("{:.0f}", std::floor(100 * tally.share(within))));
    if (within == tally.trials) break;  // all later ones are 100 too
  }
  return text::join(shares, " ");
}

// The rows of one rule and noise, as pooled() and the command line put them one after another.
std::span<const Row> group_at(std::span<const Row> rows) {
  std::size_t size = 1;
  while (size < rows.size() && rows[size].rule == rows[0].rule &&
         rows[size].noise == rows[0].noise) {
    ++size;
  }
  return rows.first(size);
}

template <class Cell>
std::string side_by_side(std::span<const Row> group, Cell cell) {
  std::vector<std::string> cells;
  for (const Row& row : group) cells.push_back(cell(row));
  return text::join(cells, " · ");
}

}  // namespace

GateFalseFail gate_false_fail(const Tally& unchanged) {
  if (unchanged.trials == 0) return {0, 1};
  constexpr double k_confidence = 0.95;
  return {per_gate(unchanged.share(unchanged.fail), k_gate_metrics),
          per_gate(stats::share_at_most(unchanged.fail, unchanged.trials, k_confidence),
                   k_gate_metrics)};
}

std::vector<Row> pooled(std::span<const Row> rows, std::span<const std::string> same_program) {
  std::vector<Row> sums;
  for (const Row& row : rows) {
    const bool counts =
        std::find(same_program.begin(), same_program.end(), row.noise) != same_program.end();
    if (!counts || !row.drop || *row.drop != 0) continue;
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
  for (std::size_t i = 0; i < k_looks.size(); ++i) {
    json["decided_within"][std::to_string(k_looks[i])] = tally.share(tally.decided_within[i]);
  }
  if (row.note) json["note"] = *row.note;
  return dump_json(json);
}

std::string heading() {
  return fmt::format("{:<12} {:<14} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>6}  {:<15} {}", "rule",
                     "noise", "drop %", "trials", "fail %", "pass %", "open %", "pairs", "p95",
                     "within", "false fails a gate % (95 % bound)");
}

std::string to_line(const Row& row) {
  const Tally& tally = row.tally;
  std::string gate;
  if (row.unchanged && row.drop == 0.0) {
    const GateFalseFail found = gate_false_fail(*row.unchanged);
    gate = fmt::format("{} ({})", percent(found.share), percent(found.upper));
  }
  if (row.note) gate += (gate.empty() ? "" : "  ") + *row.note;
  std::string line =
      fmt::format("{:<12} {:<14} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>6}  {:<15} {}", row.rule,
                  row.noise, drop_of(row), tally.trials, percent(tally.share(tally.fail)),
                  percent(tally.share(tally.pass)), percent(tally.share(tally.inconclusive)),
                  count(tally.pairs_mean()), tally.pairs_p95(), looks(tally), gate);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string to_markdown(std::span<const Row> rows) {
  std::string text =
      "| noise | rule | drop % | fail % | pass % | open % | pairs | p95 | % decided within 10 30 "
      "100 300 "
      "| false fails a gate, % (95 % bound) |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  while (!rows.empty()) {
    const std::span<const Row> group = group_at(rows);
    rows = rows.subspan(group.size());
    std::string gate = "–";
    if (group[0].unchanged) {
      const GateFalseFail found = gate_false_fail(*group[0].unchanged);
      gate = fmt::format("{} ({})", percent(found.share), percent(found.upper));
    }
    const auto share = [](std::uint64_t Tally::*which) {
      return [which](const Row& row) { return percent(row.tally.share(row.tally.*which)); };
    };
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", group[0].noise, group[0].rule,
        side_by_side(group, drop_of), side_by_side(group, share(&Tally::fail)),
        side_by_side(group, share(&Tally::pass)), side_by_side(group, share(&Tally::inconclusive)),
        side_by_side(group, [](const Row& row) { return count(row.tally.pairs_mean()); }),
        side_by_side(group, [](const Row& row) { return std::to_string(row.tally.pairs_p95()); }),
        side_by_side(group, [](const Row& row) { return looks(row.tally); }), gate);
  }
  return text;
}

}  // namespace weir::quality
