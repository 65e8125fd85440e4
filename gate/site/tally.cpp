#include <algorithm>
#include <map>
#include <tuple>

#include "gate/history/documents.hpp"
#include "gate/site/parts.hpp"

namespace weir::site {
namespace {

using verdict::Outcome;

// What one verdict says of one metric.
struct SaidOfMetric {
  std::size_t verdict, cell;  // places
  Outcome outcome;
  std::optional<double> baseline;
  std::optional<std::string> baseline_text;
};

// project, branch, cell, device, metric
using TallyKey = std::tuple<std::string, std::string, std::string, std::string, std::string>;
using Said = std::map<TallyKey, std::vector<SaidOfMetric>>;

bool decided(Outcome outcome) {
  return outcome == Outcome::fail || outcome == Outcome::pass || outcome == Outcome::improved ||
         outcome == Outcome::accepted;
}

Said said_by(const std::vector<SiteVerdict>& verdicts) {
  Said said;
  for (std::size_t v = 0; v < verdicts.size(); ++v) {
    const history::StoredVerdict& stored = *verdicts[v].stored;
    const auto& cells = verdicts[v].gate.cells;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      for (const verdict::Judgement& one : cells[c].judgements) {
        said[{stored.project, stored.branch.value_or(""), cells[c].cell.str(),
              cells[c].device_class, one.metric.name}]
            .push_back({v, c, one.verdict, one.baseline, one.baseline_text});
      }
    }
  }
  return said;
}

Fate fate_of(const std::vector<SiteVerdict>& verdicts, const SaidOfMetric& red,
             const SaidOfMetric& next) {
  const bool same_base = red.baseline == next.baseline && red.baseline_text == next.baseline_text;
  if (next.outcome == Outcome::accepted || !same_base) return Fate::accepted;
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
  for (const history::StoredVerdict& one : stored) {
    if (auto gate = history::verdict_of(one)) read.push_back({&one, *std::move(gate)});
  }
  std::ranges::stable_sort(read, {}, [](const SiteVerdict& one) {
    const history::StoredVerdict& of = *one.stored;
    return std::tie(of.project, of.time, of.kept_at, of.id);
  });
  return read;
}

Tally tally(const std::vector<SiteVerdict>& verdicts) {
  Tally made;
  made.verdicts = static_cast<std::int64_t>(verdicts.size());
  for (const SiteVerdict& one : verdicts) {
    made.red_gates += one.gate.verdict == Outcome::fail ? 1 : 0;
    made.errors += one.gate.verdict == Outcome::error ? 1 : 0;
  }
  for (const auto& [key, all] : said_by(verdicts)) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      // One that was judged again on the same commit counts as its last judgement does.
      const auto& commit = verdicts[all[i].verdict].stored->commit;
      const bool again =
          commit && i + 1 < all.size() && verdicts[all[i + 1].verdict].stored->commit == commit;
      if (decided(all[i].outcome) && !again) ++made.judged;
      if (all[i].outcome == Outcome::inconclusive && !again) ++made.undecided;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].outcome != Outcome::fail) continue;
      Red red{all[i].verdict, all[i].cell, std::get<4>(key), Fate::open};
      // Whether it was disputed, reverted or accepted shows beside the last red of those in a row.
      std::size_t last = i;
      for (++i; i < all.size(); ++i) {
        if (all[i].outcome == Outcome::fail) {
          last = i;
        } else if (decided(all[i].outcome)) {
          red.fate = fate_of(verdicts, all[last], all[i]);
          break;
        }
      }
      made.reds.push_back(std::move(red));
    }
  }
  std::ranges::stable_sort(made.reds, [&](const Red& a, const Red& b) {
    return verdicts[a.verdict].stored->time > verdicts[b.verdict].stored->time;
  });
  return made;
}

}  // namespace weir::site
