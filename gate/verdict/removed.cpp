#include "gate/verdict/removed.hpp"

#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

// The cell itself, as a count: one before, none now.
Judgement cell_metric(std::string reason) {
  Judgement made;
  made.metric = unit::custom_metric(k_cell_metric, unit::Kind::count, unit::Unit::count,
                                    unit::Better::higher);
  made.nature = profile::Nature::exact;
  made.source = "configuration";
  made.baseline = 1;
  made.current = 0;
  made.baseline_text = "1";
  made.current_text = "0";
  made.change = -1;
  static_cast<Ruling&>(made) = {Outcome::fail, std::move(reason)};
  return made;
}

struct Holding {
  const Profile& candidate;
  const baseline::Choice& choice;
  const std::span<const LimitEntry> limits;
  const HeldCell& held;
  const bool fails;
  CellVerdict& cell;
  bool told = false;

  void hold() {
    // An error of the cell has said already that its numbers are missing.
    if (!candidate.errors.empty()) return;
    const bool measured = candidate.counted_runs + candidate.timed_runs > 0;
    if (!held.changed.empty() && choice.match == baseline::Choice::Match::fingerprint &&
        (measured || !held.lost.empty())) {
      whole(fmt::format("another cell under this name ({} changed): nothing of the base judges it",
                        held.changed));
    }
    for (Judgement& metric : cell.metrics()) metric_lost(metric);
    kernels_lost();
    if (!held.lost.empty()) limits_lost();
    if (!told && !held.lost.empty() && candidate.counts_skipped) {
      whole(
          fmt::format("its counts are not taken any more: the pull request has no {}", held.lost));
    }
    if (told && fails) fold(cell);
  }

 private:
  void whole(std::string reason) {
    told = true;
    if (!fails) return warn(reason);
    cell.judgements.insert(cell.judgements.begin(), cell_metric(std::move(reason)));
  }
  void warn(const std::string& reason) {
    cell.warnings.push_back(reason + " (gate.on_removed: warn)");
  }
  // "; the pull request has no probe vulkan".
  [[nodiscard]] std::string by() const {
    return held.lost.empty() ? "" : "; the pull request has no " + held.lost;
  }
  // That nothing was counted here may be for want of a device: a fail only where the configuration
  // is why, or where nobody says why.
  [[nodiscard]] bool explained(Outcome verdict) const {
    return verdict == Outcome::error ||
           (verdict == Outcome::skipped && (!held.lost.empty() || !candidate.counts_skipped));
  }

  void metric_lost(Judgement& metric) {
    if (metric.current || metric.pairs || !explained(metric.verdict)) return;
    const bool count = metric.metric.kind == unit::Kind::count;
    if (count && !metric.baseline) return;
    if (held.lost.empty() && profile::why_skipped(candidate, metric.metric, metric.source)) return;
    const std::string had = !count                 ? "samples"
                            : metric.baseline_text ? *metric.baseline_text
                                                   : fmt::format("{:.10g}", *metric.baseline);
    fail(metric, had, fmt::format("not measured any more: the baseline holds {}{}", had, by()));
  }
  void fail(Judgement& metric, std::string had, std::string reason) {
    told = true;
    if (!fails) return warn(fmt::format("{}: {}", unit::label(metric.metric), reason));
    metric.baseline_text = std::move(had);
    metric.current_text = k_not_measured;
    static_cast<Ruling&>(metric) = {Outcome::fail, std::move(reason)};
  }

  void kernels_lost() {
    const auto& stored = choice.match == baseline::Choice::Match::same && choice.baseline
                             ? choice.baseline->kernels
                             : std::nullopt;
    const bool missing = stored && stored->named && !stored->counts.empty() && !candidate.kernels;
    const Outcome verdict = cell.of(k_kernels).verdict;
    const bool gone = verdict == Outcome::error || (verdict == Outcome::info && !held.lost.empty());
    const Limit limit = resolve_special(candidate.cell, k_kernels, limits);
    if (!missing || !gone || !limit.exact || limit.mode != Mode::gate) return;
    const std::string reason = "not measured any more: the baseline holds kernels" + by();
    told = true;
    if (!fails) return warn("kernels: " + reason);
    Judgement& kernels = cell.put(k_kernels);
    kernels.limit = limit;
    static_cast<Ruling&>(kernels) = {Outcome::fail, reason};
    kernels.changed = differences(stored->counts, {});
  }

  // Plain limits that name their metric: a probe that is gone leaves nothing for them to hold.
  void limits_lost() {
    for (const LimitEntry& entry : limits) {
      if (!entry.max && !entry.min) continue;
      for (const std::string& name : entry.metrics) {
        const auto metric = unit::find_metric(name);
        const bool known = of_metric(cell.judgements, name) != nullptr;
        if (!metric || known || !entry.covers(candidate.cell, name)) continue;
        Judgement made;
        made.metric = *metric;
        made.limit = resolve_limit(candidate.cell, *metric, limits);
        if (made.limit.mode != Mode::gate) continue;
        fail(made, made.limit.words(),
             fmt::format("not measured any more: the limit is {}{}", made.limit.words(), by()));
        if (fails) cell.judgements.insert(cell.judgements.begin(), std::move(made));
      }
    }
  }
};

}  // namespace

void fields(Fields& io, HeldCell& held) {
  io("cell", held.cell);
  io.sparse("shown", held.shown);
  io.sparse("now", held.now);
  io.sparse("changed", held.changed);
  io.sparse("lost", held.lost);
  io.sparse("limits", held.limits);
  io.sparse("why", held.why);
}

CellVerdict removed_cell(const HeldCell& held) {
  CellVerdict cell;
  if (auto key = profile::CellKey::parse(held.shown)) cell.cell = std::move(*key);
  cell.judgements.push_back(cell_metric("not measured any more: " + held.why));
  for (const std::string& limit : held.limits) {
    cell.notes.push_back(fmt::format("the limit at {} holds no cell any more", limit));
  }
  fold(cell);
  return cell;
}

void hold_measured(const Profile& candidate, const baseline::Choice& choice,
                   std::span<const LimitEntry> limits, const HeldCell& held, bool fails,
                   CellVerdict& cell) {
  Holding{candidate, choice, limits, held, fails, cell}.hold();
}

}  // namespace weir::verdict
