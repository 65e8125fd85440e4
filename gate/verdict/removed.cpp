// Finds numbers, kernels and cells that a pull request takes out of a gate.
#include "gate/verdict/removed.hpp"

#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

// A failed judgement on the cell itself, as a count: one before, none now.
Judgement missing_cell(std::string reason) {
  Judgement judgement;
  judgement.metric = unit::custom_metric(k_cell_metric, unit::Kind::count, unit::Unit::count,
                                         unit::Better::higher);
  judgement.nature = profile::Nature::exact;
  judgement.source = "configuration";
  judgement.baseline = 1;
  judgement.current = 0;
  judgement.baseline_text = "1";
  judgement.current_text = "0";
  judgement.change = -1;
  static_cast<Ruling&>(judgement) = {Outcome::fail, std::move(reason)};  // verdict and reason
  return judgement;
}

// Checks one cell for what the candidate no longer measures.
struct RemovedCheck {
  const Profile& candidate;
  const baseline::Choice& choice;
  const LimitTable& limits;
  const BaseCell& base_cell;
  const bool fails;
  CellVerdict& cell;
  bool found_any = false;

  // Adds a fail or a warning for each number, the kernels and the cell itself, if it was taken out.
  void run() {
    // An error of the cell already says that its numbers are missing.
    if (!candidate.errors.empty()) return;
    const bool measured = candidate.counted_runs + candidate.timed_runs > 0;
    if (!base_cell.changed.empty() && choice.match == baseline::Choice::Match::fingerprint &&
        (measured || !base_cell.lost.empty())) {
      fail_cell(
          fmt::format("another cell under this name ({} changed): nothing of the base judges it",
                      base_cell.changed));
    }
    for (Judgement& metric : cell.metrics()) check_metric(metric);
    check_kernels();
    if (!base_cell.lost.empty()) check_limits();
    if (!found_any && !base_cell.lost.empty() && candidate.counts_skipped) {
      fail_cell(fmt::format("its counts are not taken any more: the pull request has no {}",
                            base_cell.lost));
    }
    if (found_any && fails) fold_judgements(cell);
  }

 private:
  // Fails the cell as a whole, or warns.
  void fail_cell(std::string reason) {
    found_any = true;
    if (!fails) return warn(reason);
    cell.judgements.insert(cell.judgements.begin(), missing_cell(std::move(reason)));
  }
  void warn(const std::string& reason) {
    cell.warnings.push_back(reason + " (gate.on_removed: warn)");
  }
  // "; the pull request has no probe vulkan", or "".
  [[nodiscard]] std::string lost_probe_text() const {
    return base_cell.lost.empty() ? "" : "; the pull request has no " + base_cell.lost;
  }
  // Returns true if an edit must be the cause that a number was not measured. Nothing may be
  // counted for want of a device: then the configuration has to be the reason, or no reason was
  // given.
  [[nodiscard]] bool is_caused_by_edit(Outcome verdict) const {
    return verdict == Outcome::error ||
           (verdict == Outcome::skipped && (!base_cell.lost.empty() || !candidate.counts_skipped));
  }

  // Fails a metric that the baseline holds and the candidate no longer measures.
  void check_metric(Judgement& metric) {
    if (metric.current || metric.pairs || !is_caused_by_edit(metric.verdict)) return;
    const bool count = metric.metric.kind == unit::Kind::count;
    if (count && !metric.baseline) return;
    if (base_cell.lost.empty() && profile::skip_reason(candidate, metric.metric, metric.source)) {
      return;
    }
    std::string had = "samples";
    if (count && metric.baseline_text) {
      had = *metric.baseline_text;
    } else if (count) {
      had = fmt::format("{:.10g}", *metric.baseline);
    }
    fail_metric(
        metric, had,
        fmt::format("not measured any more: the baseline holds {}{}", had, lost_probe_text()));
  }
  // Fails `metric`, whose number was `had`, or warns.
  void fail_metric(Judgement& metric, std::string had, std::string reason) {
    found_any = true;
    if (!fails) return warn(fmt::format("{}: {}", unit::label(metric.metric), reason));
    metric.baseline_text = std::move(had);
    metric.current_text = k_not_measured;
    static_cast<Ruling&>(metric) = {Outcome::fail, std::move(reason)};  // verdict and reason
  }

  // Fails the kernels if the baseline holds them and the candidate no longer names any.
  void check_kernels() {
    const auto& stored = choice.match == baseline::Choice::Match::same && choice.baseline
                             ? choice.baseline->kernels
                             : std::nullopt;
    const bool missing =
        stored && stored->has_names && !stored->counts.empty() && !candidate.kernels;
    const Outcome verdict = cell.judgement_of(k_kernels).verdict;
    const bool missing_verdict_texts =
        verdict == Outcome::error || (verdict == Outcome::info && !base_cell.lost.empty());
    const Limit limit = resolve_non_metric_limit(candidate.cell, k_kernels, limits);
    if (!missing || !missing_verdict_texts || !limit.exact || limit.mode != Mode::gate) return;
    const std::string reason =
        "not measured any more: the baseline holds kernels" + lost_probe_text();
    found_any = true;
    if (!fails) return warn("kernels: " + reason);
    Judgement& kernels = cell.put(k_kernels);
    kernels.limit = limit;
    static_cast<Ruling&>(kernels) = {Outcome::fail, reason};  // verdict and reason
    kernels.changed = differences(stored->counts, {});
  }

  // Checks plain limits that name their metric: without its probe they limit nothing.
  void check_limits() {
    const EntrySet fitting = limits.fitting(candidate.cell);
    std::set<std::string> present;
    std::vector<Judgement> missing;
    for (const Judgement& judgement : cell.judgements) present.insert(judgement.metric.name);
    for (std::size_t i = 0; i < limits.entries().size(); ++i) {
      const LimitEntry& entry = limits.entries()[i];
      if ((!entry.max && !entry.min) || !contains(fitting, i)) continue;
      for (const std::string& name : entry.metrics) {
        const auto metric = unit::find_metric(name);
        if (!metric || !present.insert(name).second) continue;
        Judgement judgement;
        judgement.metric = *metric;
        judgement.limit = limits.resolve(fitting, *metric);
        if (judgement.limit.mode != Mode::gate) continue;
        const std::string limit = judgement.limit.words();
        fail_metric(
            judgement, limit,
            fmt::format("not measured any more: the limit is {}{}", limit, lost_probe_text()));
        if (fails) missing.push_back(std::move(judgement));
      }
    }
    std::ranges::reverse(missing);
    cell.judgements.insert(cell.judgements.begin(), std::move_iterator(missing.begin()),
                           std::move_iterator(missing.end()));
  }
};

}  // namespace

void fields(Fields& io, BaseCell& base_cell) {
  io("cell", base_cell.cell);
  io.optional("shown", base_cell.shown);
  io.optional("now", base_cell.now);
  io.optional("changed", base_cell.changed);
  io.optional("lost", base_cell.lost);
  io.optional("limits", base_cell.limits);
  io.optional("why", base_cell.why);
}

CellVerdict removed_cell(const BaseCell& base_cell) {
  CellVerdict cell;
  if (auto key = profile::CellKey::parse(base_cell.shown)) cell.cell = std::move(*key);
  cell.judgements.push_back(missing_cell("not measured any more: " + base_cell.why));
  for (const std::string& limit : base_cell.limits) {
    cell.notes.push_back(fmt::format("the limit at {} holds no cell any more", limit));
  }
  fold_judgements(cell);
  return cell;
}

void check_removed(const Profile& candidate, const baseline::Choice& choice,
                   const LimitTable& limits, const BaseCell& base_cell, bool fails,
                   CellVerdict& cell) {
  RemovedCheck{candidate, choice, limits, base_cell, fails, cell}.run();
}

}  // namespace weir::verdict
