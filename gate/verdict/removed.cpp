#include "gate/verdict/removed.hpp"

#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

// The cell itself, as a count: one before, none now.
MetricVerdict cell_metric(std::string reason) {
  MetricVerdict made;
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

class Holding {
 public:
  Holding(const Profile& candidate, const baseline::Choice& choice,
          std::span<const LimitEntry> limits, const HeldCell& held, bool fails, CellVerdict& cell)
      : candidate_(candidate),
        choice_(choice),
        limits_(limits),
        held_(held),
        fails_(fails),
        cell_(cell) {}

  void hold() {
    // An error of the cell has said already that its numbers are missing.
    if (!candidate_.errors.empty()) return;
    const bool measured = candidate_.counted_runs + candidate_.timed_runs > 0;
    if (!held_.changed.empty() && choice_.match == baseline::Choice::Match::fingerprint &&
        (measured || !held_.lost.empty())) {
      whole(fmt::format("another cell under this name ({} changed): nothing of the base judges it",
                        held_.changed));
    }
    for (MetricVerdict& metric : cell_.metrics) metric_lost(metric);
    kernels_lost();
    if (!held_.lost.empty()) limits_lost();
    if (!told_ && !held_.lost.empty() && candidate_.counts_skipped) {
      whole(
          fmt::format("its counts are not taken any more: the pull request has no {}", held_.lost));
    }
    if (told_ && fails_) fold(cell_);
  }

 private:
  void whole(std::string reason) {
    told_ = true;
    if (!fails_) return warn(reason);
    cell_.metrics.insert(cell_.metrics.begin(), cell_metric(std::move(reason)));
  }
  void warn(const std::string& reason) {
    cell_.warnings.push_back(reason + " (gate.on_removed: warn)");
  }
  // "; the pull request has no probe vulkan".
  [[nodiscard]] std::string by() const {
    return held_.lost.empty() ? "" : "; the pull request has no " + held_.lost;
  }
  // That nothing was counted here may be for want of a device: a fail only where the configuration
  // is why, or where nobody says why.
  [[nodiscard]] bool explained(Outcome verdict) const {
    return verdict == Outcome::error ||
           (verdict == Outcome::skipped && (!held_.lost.empty() || !candidate_.counts_skipped));
  }

  void metric_lost(MetricVerdict& metric) {
    if (metric.current || metric.pairs || !explained(metric.verdict)) return;
    const bool count = metric.metric.kind == unit::Kind::count;
    if (count && !metric.baseline) return;
    if (metric.metric.base == "instructions" && candidate_.instructions_skipped &&
        held_.lost.empty()) {
      return;
    }
    const std::string held = !count                 ? "samples"
                             : metric.baseline_text ? *metric.baseline_text
                                                    : fmt::format("{:.10g}", *metric.baseline);
    fail(metric, held, fmt::format("not measured any more: the baseline holds {}{}", held, by()));
  }
  void fail(MetricVerdict& metric, std::string held, std::string reason) {
    told_ = true;
    if (!fails_) {
      return warn(fmt::format("{}: {}", unit::label(metric.metric), reason));
    }
    metric.baseline_text = std::move(held);
    metric.current_text = k_not_measured;
    static_cast<Ruling&>(metric) = {Outcome::fail, std::move(reason)};
  }

  void kernels_lost() {
    const auto& stored = choice_.match == baseline::Choice::Match::same && choice_.baseline
                             ? choice_.baseline->kernels
                             : std::nullopt;
    const bool missing = stored && stored->named && !stored->counts.empty() && !candidate_.kernels;
    const bool gone = cell_.kernels_verdict == Outcome::error ||
                      (cell_.kernels_verdict == Outcome::info && !held_.lost.empty());
    const Limit limit = resolve_special(candidate_.cell, "kernels", limits_);
    if (!missing || !gone || !limit.exact || limit.mode != Mode::gate) return;
    const std::string reason = "not measured any more: the baseline holds kernels" + by();
    told_ = true;
    if (!fails_) return warn("kernels: " + reason);
    cell_.kernels = differences(stored->counts, {});
    cell_.kernels_verdict = Outcome::fail;
    cell_.kernels_reason = reason;
  }

  // Plain limits that name their metric: a probe that is gone leaves nothing for them to hold.
  void limits_lost() {
    for (const LimitEntry& entry : limits_) {
      if (!entry.max && !entry.min) continue;
      for (const std::string& name : entry.metrics) {
        const auto metric = unit::find_metric(name);
        const bool known = std::ranges::any_of(
            cell_.metrics, [&](const MetricVerdict& one) { return one.metric.name == name; });
        if (!metric || known || !entry.covers(candidate_.cell, name)) continue;
        MetricVerdict made;
        made.metric = *metric;
        made.limit = resolve_limit(candidate_.cell, *metric, limits_);
        if (made.limit.mode != Mode::gate) continue;
        fail(made, made.limit.words(),
             fmt::format("not measured any more: the limit is {}{}", made.limit.words(), by()));
        if (fails_) cell_.metrics.insert(cell_.metrics.begin(), std::move(made));
      }
    }
  }

  const Profile& candidate_;
  const baseline::Choice& choice_;
  const std::span<const LimitEntry> limits_;
  const HeldCell& held_;
  const bool fails_;
  CellVerdict& cell_;
  bool told_ = false;
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
  cell.metrics.push_back(cell_metric("not measured any more: " + held.why));
  for (const std::string& limit : held.limits) {
    cell.notes.push_back(fmt::format("the limit at {} holds no cell any more", limit));
  }
  fold(cell);
  return cell;
}

void hold_measured(const Profile& candidate, const baseline::Choice& choice,
                   std::span<const LimitEntry> limits, const HeldCell& held, bool fails,
                   CellVerdict& cell) {
  Holding(candidate, choice, limits, held, fails, cell).hold();
}

}  // namespace weir::verdict
