// What other limits would change, told by what they mean for each cell and metric rather than by
// the lines they are written in: an entry that overrides nothing changes nothing.
#include <algorithm>
#include <map>

#include "gate/base/text.hpp"
#include "gate/config/rules.hpp"

namespace weir::config {
namespace {

using verdict::Amount;
using verdict::Limit;
using verdict::LimitEntry;
using verdict::MaxChange;
using verdict::Mode;
using verdict::Proposal;
using Effect = Proposal::Effect;

// One kind of a limit as text, on both sides.
struct Change {
  std::string kind, from, to;
  Effect effect = Effect::changed;
  friend auto operator<=>(const Change&, const Change&) = default;
};

// More room is looser; none at all (absent) the loosest.
Effect of_amounts(const std::optional<Amount>& from, const std::optional<Amount>& to,
                  bool more_is_looser) {
  if (!from) return Effect::tighter;
  if (!to) return Effect::looser;
  if (from->relative != to->relative) return Effect::changed;
  return (to->value > from->value) == more_is_looser ? Effect::looser : Effect::tighter;
}

void compare(const char* kind, const std::optional<Amount>& from, const std::optional<Amount>& to,
             bool more_is_looser, std::vector<Change>& changes) {
  if (from == to) return;
  const auto shown = [](const std::optional<Amount>& one) {
    return one ? verdict::show(*one) : std::string();
  };
  changes.push_back({kind, shown(from), shown(to), of_amounts(from, to, more_is_looser)});
}

void compare(const char* kind, const std::optional<MaxChange>& from,
             const std::optional<MaxChange>& to, std::vector<Change>& changes) {
  const auto part = [](const std::optional<MaxChange>& one, Amount MaxChange::*which) {
    return one ? std::optional<Amount>((*one).*which) : std::nullopt;
  };
  const auto amount_from = part(from, &MaxChange::amount), amount_to = part(to, &MaxChange::amount);
  compare(kind, amount_from, amount_to, true, changes);
  // Half of the amount unless it is said: that it moved along says nothing more.
  if (!from || !to || amount_from != amount_to) return;
  compare("tolerate", part(from, &MaxChange::tolerate), part(to, &MaxChange::tolerate), true,
          changes);
}

std::vector<Change> changes_of(const Limit& from, const Limit& to) {
  std::vector<Change> changes;
  if (from.exact != to.exact) {
    const auto shown = [](bool exact) { return std::string(exact ? "exact" : "not exact"); };
    changes.push_back(
        {"", shown(from.exact), shown(to.exact), to.exact ? Effect::tighter : Effect::looser});
  }
  compare("max_drop", from.max_drop, to.max_drop, changes);
  compare("max_increase", from.max_increase, to.max_increase, changes);
  compare("max_decrease", from.max_decrease, to.max_decrease, changes);
  compare("max", from.max, to.max, true, changes);
  compare("min", from.min, to.min, false, changes);
  // What holds nothing is not gated whatever its mode.
  if (from.mode != to.mode && (from.any() || to.any())) {
    changes.push_back({"mode", std::string(verdict::to_string(from.mode)),
                       std::string(verdict::to_string(to.mode)),
                       to.mode > from.mode ? Effect::looser : Effect::tighter});
  }
  return changes;
}

bool same(const LimitEntry& a, const LimitEntry& b) {
  return a.match == b.match && a.metrics == b.metrics && a.exact == b.exact &&
         a.max_drop == b.max_drop && a.max_increase == b.max_increase &&
         a.max_decrease == b.max_decrease && a.tolerate == b.tolerate && a.max == b.max &&
         a.min == b.min && a.mode == b.mode;
}

std::string names_of(const std::vector<std::string>& metrics) {
  constexpr std::size_t k_most = 3;
  std::vector<std::string> some(
      metrics.begin(),
      metrics.begin() + static_cast<std::ptrdiff_t>(std::min(k_most, metrics.size())));
  std::string names = text::join(some);
  if (metrics.size() > k_most) names += fmt::format(" and {} more", metrics.size() - k_most);
  return names;
}

// Entries that are put off, by what they are about.
void later(const std::vector<LimitEntry>& base, const std::vector<LimitEntry>& head,
           std::vector<Proposal>& proposals) {
  for (const LimitEntry& after : head) {
    for (const LimitEntry& before : base) {
      if (!same(before, after) || before.until == after.until) continue;
      const bool longer = !after.until || (before.until && *after.until > *before.until);
      const bool loosens = after.mode.value_or(Mode::gate) != Mode::gate;
      proposals.push_back(
          {fmt::format("until of the limit of {}",
                       after.metrics.empty() ? "every metric" : text::join(after.metrics)),
           before.until.value_or(""), after.until.value_or(""),
           longer == loosens ? Effect::looser : Effect::tighter});
    }
  }
}

}  // namespace

std::vector<Proposal> compare_limits(const std::vector<profile::CellKey>& cells,
                                     const std::vector<unit::Metric>& metrics,
                                     const std::vector<LimitEntry>& base,
                                     const std::vector<LimitEntry>& head) {
  std::vector<Proposal> proposals;
  later(base, head, proposals);
  if (std::equal(base.begin(), base.end(), head.begin(), head.end(), same)) return proposals;
  // (what changes, in which cells) -> metrics that change alike
  std::map<std::pair<std::string, Change>, std::vector<std::string>> of_metric;
  const auto note = [&](const profile::CellKey& cell, const std::string& name, const Limit& before,
                        const Limit& after) {
    for (Change& change : changes_of(before, after)) {
      of_metric[{name, std::move(change)}].push_back(cell.str());
    }
  };
  for (const profile::CellKey& cell : cells) {
    for (const unit::Metric& metric : metrics) {
      note(cell, metric.name, verdict::resolve_limit(cell, metric, base),
           verdict::resolve_limit(cell, metric, head));
    }
    for (const char* name : {"kernels", "placement"}) {
      note(cell, name, verdict::resolve_special(cell, name, base),
           verdict::resolve_special(cell, name, head));
    }
  }
  std::map<std::pair<Change, std::vector<std::string>>, std::vector<std::string>> alike;
  for (auto& [what, names] : of_metric) {
    alike[{what.second, std::move(names)}].push_back(what.first);
  }
  for (const auto& [what, of] : alike) {
    const Change& change = what.first;
    const std::string name = names_of(of);
    Proposal one{change.kind.empty() ? "limit of " + name : change.kind + " of " + name,
                 change.from, change.to, change.effect};
    one.about(what.second);
    proposals.push_back(std::move(one));
  }
  return proposals;
}

}  // namespace weir::config
