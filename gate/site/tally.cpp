// Tallies a gate's verdicts: how many metrics were red, and what became of them.
#include <algorithm>
#include <map>
#include <tuple>

#include "gate/history/documents.hpp"
#include "gate/site/parts.hpp"

namespace weir::site {
namespace {

using verdict::Outcome;

// The judgement of one metric by one verdict.
struct MetricJudgement {
  std::size_t verdict, cell;  // places
  Outcome outcome;
  std::optional<double> baseline;
  std::optional<std::string> baseline_text;
};

// project, branch, cell, device, metric
using TallyKey = std::tuple<std::string, std::string, std::string, std::string, std::string>;
using JudgementsByMetric = std::map<TallyKey, std::vector<MetricJudgement>>;

bool is_decided(Outcome outcome) {
  return outcome == Outcome::fail || outcome == Outcome::pass || outcome == Outcome::improved ||
         outcome == Outcome::waived;
}

// Returns the judgements of each metric (project, branch, cell, device, metric) in the order of the
// verdicts.
JudgementsByMetric judgements_by_metric(const std::vector<SiteVerdict>& verdicts) {
  JudgementsByMetric judgements;
  for (std::size_t verdict_index = 0; verdict_index < verdicts.size(); ++verdict_index) {
    const history::StoredVerdict& stored = *verdicts[verdict_index].stored;
    const auto& cells = verdicts[verdict_index].gate.cells;
    for (std::size_t cell_index = 0; cell_index < cells.size(); ++cell_index) {
      for (const verdict::Judgement& judgement : cells[cell_index].judgements) {
        judgements[{stored.project, stored.branch.value_or(""), cells[cell_index].cell.str(),
                    cells[cell_index].device_class, judgement.metric.name}]
            .push_back({verdict_index, cell_index, judgement.verdict, judgement.baseline,
                        judgement.baseline_text});
      }
    }
  }
  return judgements;
}

// Returns the fate of a red metric by the next decided judgement of it.
Fate find_fate(const std::vector<SiteVerdict>& verdicts, const MetricJudgement& red,
               const MetricJudgement& next) {
  const bool same_base = red.baseline == next.baseline && red.baseline_text == next.baseline_text;
  if (next.outcome == Outcome::waived || !same_base) return Fate::accepted;
  const auto& before = verdicts[red.verdict].stored->commit;
  return before && before == verdicts[next.verdict].stored->commit ? Fate::disputed
                                                                   : Fate::reverted;
}

}  // namespace

std::string_view to_string(Fate fate) {
  // In the order in which they are declared.
  constexpr std::string_view k_fates[] = {"accepted", "reverted", "disputed", "open"};
  return k_fates[static_cast<std::size_t>(fate)];
}

std::vector<SiteVerdict> read_verdicts(const std::vector<history::StoredVerdict>& stored) {
  std::vector<SiteVerdict> read;
  for (const history::StoredVerdict& verdict : stored) {
    if (auto gate = history::verdict_of(verdict)) read.push_back({&verdict, *std::move(gate)});
  }
  std::ranges::stable_sort(read, {}, [](const SiteVerdict& verdict) {
    const history::StoredVerdict& entry = *verdict.stored;
    return std::tie(entry.project, entry.time, entry.kept_at, entry.id);
  });
  return read;
}

// Counts verdicts and judgements, and finds the fate of each metric that was red. Several reds in a
// row count as one.
Tally tally(const std::vector<SiteVerdict>& verdicts) {
  Tally result;
  result.verdicts = static_cast<std::int64_t>(verdicts.size());
  for (const SiteVerdict& verdict : verdicts) {
    if (verdict.gate.verdict == Outcome::fail) ++result.red_gates;
    if (verdict.gate.verdict == Outcome::error) ++result.errors;
  }
  for (const auto& [key, all] : judgements_by_metric(verdicts)) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      // Only the last of several judgements on the same commit counts.
      const auto& commit = verdicts[all[i].verdict].stored->commit;
      const bool is_repeated =
          commit && i + 1 < all.size() && verdicts[all[i + 1].verdict].stored->commit == commit;
      if (is_repeated) continue;
      if (is_decided(all[i].outcome)) ++result.judged;
      if (all[i].outcome == Outcome::inconclusive) ++result.undecided;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].outcome != Outcome::fail) continue;
      Red red{all[i].verdict, all[i].cell, std::get<4>(key), Fate::open};
      // Several reds in a row are one; its fate shows by comparison with the last of them.
      std::size_t last = i;
      for (++i; i < all.size(); ++i) {
        if (all[i].outcome == Outcome::fail) {
          last = i;
        } else if (is_decided(all[i].outcome)) {
          red.fate = find_fate(verdicts, all[last], all[i]);
          break;
        }
      }
      result.reds.push_back(std::move(red));
    }
  }
  std::ranges::stable_sort(result.reds, [&](const Red& a, const Red& b) {
    return verdicts[a.verdict].stored->time > verdicts[b.verdict].stored->time;
  });
  return result;
}

}  // namespace weir::site
