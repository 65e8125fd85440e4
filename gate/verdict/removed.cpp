// Finds numbers, kernels and cells that a pull request takes out of a gate, and cells that it
// edits.
#include "gate/verdict/removed.hpp"

#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

// Parts of a fingerprint that the configuration and weir's version decide. The others are of files.
constexpr std::string_view k_parts_of_keys[] = {"arguments", "environment", "prompt",
                                                "counting rules"};

// Returns a judgement on the cell itself, as a count of cells: 1 in the base, `now` in the
// candidate.
Judgement judgement_on_cell(std::string now, Ruling ruling) {
  Judgement judgement;
  judgement.metric = unit::custom_metric(k_cell_metric, unit::Kind::count, unit::Unit::count,
                                         unit::Better::higher);
  judgement.nature = profile::Nature::exact;
  judgement.source = "configuration";
  judgement.baseline = 1;
  judgement.baseline_text = "1";
  judgement.current_text = std::move(now);
  judgement.set_ruling(std::move(ruling));
  return judgement;
}

// Checks one cell for what the candidate no longer measures.
struct RemovedCheck {
  const Profile& candidate;
  const baseline::BaselineChoice& choice;
  const LimitTable& limits;
  const bool fails;
  CellVerdict& cell;
  bool found_any = false;

  // Adds a fail or a warning for each number and the kernels, if they were taken out.
  void run() {
    // An error of the cell already says that its numbers are missing.
    if (!candidate.errors.empty()) return;
    for (Judgement& metric : cell.metrics()) check_metric(metric);
    check_kernels();
    if (found_any && fails) fold_judgements(cell);
  }

 private:
  void warn(const std::string& reason) {
    cell.warnings.push_back(reason + " (gate.on_removed: warn)");
  }

  // Fails a metric that the baseline holds and the candidate no longer measures.
  void check_metric(Judgement& metric) {
    // Nothing may be counted for want of a device. Then a reason is given, and nothing is missed.
    const bool is_missed = metric.verdict == Outcome::error ||
                           (metric.verdict == Outcome::skipped && !candidate.counts_skip_reason);
    if (metric.current || metric.pairs || !is_missed) return;
    const bool count = metric.metric.kind == unit::Kind::count;
    if (count && !metric.baseline) return;
    if (profile::skip_reason(candidate, metric.metric, metric.source)) return;
    std::string had = "samples";
    if (count && metric.baseline_text) {
      had = *metric.baseline_text;
    } else if (count) {
      had = fmt::format("{:.10g}", *metric.baseline);
    } else if (metric.baseline) {
      had = unit::show(metric.metric, *metric.baseline);
    }
    std::string reason = fmt::format("not measured any more: the baseline holds {}", had);
    found_any = true;
    if (!fails) return warn(fmt::format("{}: {}", unit::display_name(metric.metric), reason));
    metric.baseline_text = std::move(had);
    metric.current_text = k_not_measured;
    metric.set_ruling({Outcome::fail, std::move(reason)});
  }

  // Fails the kernels if the baseline holds them and the candidate no longer names any.
  void check_kernels() {
    const auto& stored = choice.match == baseline::BaselineChoice::Match::same && choice.baseline
                             ? choice.baseline->kernels
                             : std::nullopt;
    const bool missing =
        stored && stored->has_names && !stored->counts.empty() && !candidate.kernels;
    const Outcome verdict = cell.judgement_of(k_kernels).verdict;
    const Limit limit = limits.resolve_non_metric(limits.fitting(candidate.cell), k_kernels);
    if (!missing || verdict != Outcome::error || !limit.exact || limit.mode != Mode::gate) return;
    const std::string reason = "not measured any more: the baseline holds kernels";
    found_any = true;
    if (!fails) return warn("kernels: " + reason);
    Judgement& kernels = cell.put(k_kernels);
    kernels.limit = limit;
    kernels.set_ruling({Outcome::fail, reason});
    kernels.changed = differences(stored->counts, {});
  }
};

}  // namespace

void fields(Fields& io, BaseCell& base_cell) {
  io("cell", base_cell.cell);
  io.optional("shown", base_cell.shown);
  io.optional("now", base_cell.current_name);
  io.optional("edited", base_cell.edited);
  io.optional("edit", base_cell.edit);
  io.optional("limits", base_cell.limits);
  io.optional("why", base_cell.why);
}

// Returns the verdict on a cell that the base measures and the candidate does not: it fails.
// Limits that no longer apply to any cell become notes.
CellVerdict removed_cell(const BaseCell& base_cell) {
  CellVerdict cell;
  if (auto key = profile::CellKey::parse(base_cell.shown)) cell.cell = std::move(*key);
  Judgement& judgement = cell.judgements.emplace_back(
      judgement_on_cell("0", {Outcome::fail, "not measured any more: " + base_cell.why}));
  judgement.current = 0;
  judgement.change = -1;
  for (const std::string& limit : base_cell.limits) {
    cell.notes.push_back(fmt::format("the limit at {} holds no cell any more", limit));
  }
  fold_judgements(cell);
  return cell;
}

void check_removed(const Profile& candidate, const baseline::BaselineChoice& choice,
                   const LimitTable& limits, bool fails, CellVerdict& cell) {
  RemovedCheck{candidate, choice, limits, fails, cell}.run();
}

// Returns how a cell was edited: its settings, or the files that changed since its baseline was
// stored. Nothing if the edit is not known, say because its keys changed too.
std::optional<CellEdit> find_edit(const Profile& candidate, const baseline::BaselineChoice& stored,
                                  const BaseCell& base_cell) {
  if (!base_cell.edited.empty()) return CellEdit{base_cell.edited, base_cell.edit};
  if (stored.match != baseline::BaselineChoice::Match::fingerprint || !stored.baseline)
    return std::nullopt;
  const profile::Provenance& provenance = candidate.provenance;
  std::vector<std::string> files;
  for (const auto& [part, hash] : stored.baseline->fingerprint_parts) {
    if (part == profile::k_variables || look_up(provenance.fingerprint_parts, part, "") == hash)
      continue;
    // The base's own keys changed since its baseline was stored, so nothing says what the files
    // were.
    if (holds(k_parts_of_keys, part)) return std::nullopt;
    files.push_back(part);
  }
  if (files.empty()) return std::nullopt;
  return CellEdit{text::join(files), provenance.fingerprint};
}

void mark_edited(const CellEdit& edit, CellVerdict& cell) {
  cell.judgements.insert(
      cell.judgements.begin(),
      judgement_on_cell(
          std::string(k_edited) + edit.hash,
          {Outcome::error,
           fmt::format("not judged: the pull request measures another thing than the base does: {}",
                       edit.what)}));
  fold_judgements(cell);
}

// Returns which counts the base's branch improved since the merge base; "" if none. Such a count
// fails the candidate, which did not change it.
std::string describe_gain(const Profile& candidate, const baseline::BaselineChoice& stored,
                          const baseline::Baseline& merge_base, const LimitTable& limits,
                          const Policy& policy, const std::string& branch) {
  if (stored.match != baseline::BaselineChoice::Match::same || !stored.baseline) return "";
  Profile merge_base_profile = candidate;
  merge_base_profile.metrics = merge_base.counts;
  merge_base_profile.placement = merge_base.placement;
  const Base base{stored};
  const Comparison comparison(merge_base_profile, base, limits, policy);
  std::vector<std::string> improved;
  for (const auto& [name, stored_count] : stored.baseline->counts) {
    const Measurement* merge_base_count = look_up(merge_base.counts, name);
    if (merge_base_count == nullptr || !merge_base_count->value() || !stored_count.value())
      continue;
    const bool is_worse = unit::got_worse(
        stored_count.metric.better, /*rose=*/*merge_base_count->value() > *stored_count.value());
    if (!is_worse ||
        judge_count(comparison, *merge_base_count, stored_count).verdict != Outcome::fail)
      continue;
    improved.push_back(fmt::format("{} has {} {} since, its merge-base {}", branch,
                                   value_text(stored_count), name, value_text(*merge_base_count)));
  }
  return list_some(improved);
}

void mark_behind(const std::string& gain, CellVerdict& cell) {
  Judgement judgement = judgement_on_cell(
      "behind", {Outcome::error, fmt::format("not judged: {}: update the branch", gain)});
  cell.judgements.insert(cell.judgements.begin(), std::move(judgement));
  fold_judgements(cell);
}

}  // namespace weir::verdict
