// Finds fusions that were lost or gained: kernels that ran as one and now run separately, or the
// reverse.
#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {
namespace {

struct Fusion {
  WorkChanges joined, parts;
  bool by_number = false;  // found by how often kernels run, not by their names
  WorkChanges helpers{};   // kernels that finish the results of the joined ones
};

// Appends those of `more` that `list` does not contain yet.
void add_once(WorkChanges& list, const WorkChanges& more) {
  std::set<const WorkChange*> present(list.begin(), list.end());
  for (const WorkChange* change : more) {
    if (present.insert(change).second) list.push_back(change);
  }
}

// Returns true if another kernel does the same attention, which then was not split:
// "attention_scores" would be a part of "attention".
bool is_done_by_other_kernel(const WorkChange& change, const std::vector<KernelName>& others) {
  if (!is_large_work(change.parsed) || is_matmul(change.parsed)) return false;
  return std::ranges::any_of(others, [&](const KernelName& other) {
    return !other.works.empty() && other.works == change.parsed.works &&
           other.words.front() != change.parsed.words.front();
  });
}

// Finds kernels on one side whose names say that they do the work of several on the other side.
Fusion fusion_by_name(const WorkChanges& joined_side, const WorkChanges& parts_side) {
  Fusion fusion;
  const std::vector<KernelName> names = names_in(parts_side);
  WorkChanges all_parts;
  for (const WorkChange* candidate : joined_side) {
    if (is_done_by_other_kernel(*candidate, names)) continue;
    const auto parts = find_fused_parts(candidate->parsed, names);
    if (!parts.empty()) fusion.joined.push_back(candidate);
    for (const std::size_t part : parts) all_parts.push_back(parts_side[part]);
  }
  add_once(fusion.parts, all_parts);
  return fusion;
}

std::size_t count_kinds(const WorkChanges& changes) {
  std::set<std::string> kinds;
  for (const WorkChange* change : changes) kinds.insert(change->parsed.base());
  return kinds.size();
}

// Finds a fusion by numbers alone: kernels of few kinds come, and more kernels of several kinds
// go, or the reverse. Empty if kernels are too few or too large for that.
Fusion fusion_by_number(const WorkChanges& joined_side, const WorkChanges& parts_side) {
  if (joined_side.empty()) return {};
  // Parts run as often as the joined kernel did; a kernel that runs more often is new work.
  const double joined_call_count = dispatch_change(joined_side);
  WorkChanges parts = parts_side;
  std::erase_if(parts, [&](const WorkChange* change) {
    return !(change->absolute_delta() <= joined_call_count);
  });
  const bool is_more =
      joined_call_count < dispatch_change(parts) && count_kinds(parts) >= count_kinds(joined_side);
  // Large kernels are parts only if each runs exactly as often as the joined one did.
  const bool has_same_frequency = std::ranges::all_of(
      parts, [&](const WorkChange* part) { return !(part->absolute_delta() < joined_call_count); });
  const bool is_likely = has_same_frequency || std::ranges::any_of(parts, is_small_kernel);
  // Kernels without names that also ran before: there is only less work.
  const auto unchanged_kinds = std::ranges::count_if(parts, [](const WorkChange* part) {
    return is_unnamed_kernel(part) && part->before != k_zero && part->after != k_zero;
  });
  if (2 * unchanged_kinds > std::ssize(parts)) return {};
  if (count_kinds(parts) < 2 || !is_more || !is_likely) return {};
  return {joined_side, std::move(parts), true};
}

// Returns the kernel of flash attention among these, and not one that joins its pieces; null if
// there is none.
const WorkChange* find_flash_attention(const WorkChanges& kernels) {
  const auto attention = std::ranges::find_if(kernels, [](const WorkChange* change) {
    const std::string name = text::lower(change->name);
    const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
    return has("flash_attn") && !has("_combine") && !has("_fixup") && !has("_reduce");
  });
  return attention == kernels.end() ? nullptr : *attention;
}

// Returns "Fusion lost: RMS_NORM_MUL ran as one kernel once a token; now MUL runs apart." Without
// numbers it lacks "once a token", and is "" where nothing else is left.
std::string fusion_headline(const ExplainState& state, const Fusion& fusion, bool lost,
                            bool has_numbers) {
  const WorkChange* joined_kernel = fusion.joined.front();
  WorkChanges parts;
  for (const std::size_t part : find_fused_parts(joined_kernel->parsed, names_in(fusion.parts))) {
    parts.push_back(fusion.parts[part]);
  }
  // The unfused form of a joined kernel is no part of it.
  const auto is_unfused_form = [&](const WorkChange* part) {
    return std::ranges::any_of(fusion.joined, [&](const WorkChange* candidate) {
      return same_work(part->parsed, candidate->parsed);
    });
  };
  const bool has_named_parts = !parts.empty();
  for (const WorkChange* part : fusion.parts) {
    if (has_named_parts || parts.size() == 3) break;
    if (!is_unfused_form(part)) parts.push_back(part);
  }
  const auto frequency_of_same_work = [&](WorkChanges changes) {
    std::erase_if(changes, [&](const WorkChange* change) {
      return !same_work(change->parsed, joined_kernel->parsed);
    });
    return frequency_text(total_delta(changes), state.evidence.scope);
  };
  const std::string frequency = frequency_of_same_work(fusion.joined);
  const std::string how_often = has_numbers ? " " + frequency : "";
  const std::string name = safe_name(joined_kernel->work());
  const char* seems_text = fusion.by_number ? " seems" : "";
  if (parts.empty()) {
    if (!has_numbers) return "";
    const std::string frequency_alone = frequency_of_same_work(fusion.parts);
    if (lost) {
      return fmt::format("Fusion{} lost: {} runs {} where it ran {}.", seems_text, name,
                         frequency_alone, frequency);
    }
    return fmt::format("Fusion{} gained: {} runs {} where it ran {}.", seems_text, name, frequency,
                       frequency_alone);
  }
  const std::string names = joined_names(parts);
  const char* op_or_kernel = state.evidence.device == "cpu" ? "op" : "kernel";
  const WorkChange* attention = find_flash_attention(fusion.joined);
  if (!lost && attention != nullptr) {
    return fmt::format("Flash attention is used now: {} runs{}, where {} ran.",
                       safe_name(attention->work()), how_often, names);
  }
  if (!lost) {
    return fmt::format("Fusion{} gained: {} runs as one {}{}, where {} ran.", seems_text, name,
                       op_or_kernel, how_often, names);
  }
  return fmt::format("Fusion{} lost: {} ran as one {}{}; now {} run{} apart.", seems_text, name,
                     op_or_kernel, how_often, names, parts.size() == 1 ? "s" : "");
}

// Returns the kernels that finish an attention computed in pieces, such as llama.cpp's
// "fa_split_k_reduce".
WorkChanges find_helpers(const WorkChanges& joined_kernels, WorkChanges candidates) {
  const bool attention = std::ranges::any_of(joined_kernels, [](const WorkChange* change) {
    return is_large_work(change->parsed) && !is_matmul(change->parsed);
  });
  std::erase_if(candidates, [&](const WorkChange* change) {
    return !attention || !finishes_attention(change->parsed);
  });
  return candidates;
}

// Adds the finding of a fusion that was lost or gained. It explains its kernels and the dispatches
// that the fusion costs or saves.
void add_fusion(ExplainState& state, Fusion fusion, bool is_lost) {
  Finding finding =
      state.finding_about(is_lost ? kind::fusion_lost : kind::fusion_gained, "dispatches");
  finding.headline = fusion_headline(state, fusion, is_lost, /*has_numbers=*/true);
  finding.summary = fusion_headline(state, fusion, is_lost, /*has_numbers=*/false);
  finding.lines = {changes_text(concatenated(fusion.joined, fusion.helpers), 4),
                   changes_text(fusion.parts, 6)};
  const WorkChanges all_kernels = concatenated(fusion.joined, fusion.parts);
  std::vector<Amount> amounts = changed_amounts(state, {"dispatches", "barriers"});
  if (state.differences.count("dispatches") == k_zero) {
    amounts.insert(amounts.begin(),
                   {safe_name(all_kernels.front()->name), all_kernels.front()->delta()});
  }
  add_amounts(state, amounts, finding);
  if (is_lost) {
    finding.cause =
        "a switch, a changed order of ops or a new shape or type keeps the pattern from matching.";
    finding.look_at = "the fusion's conditions, and environment variables that turn it off.";
  }

  const double units =
      std::max(1.0, absolute_value(total_delta(all_kernels))) + dispatch_change(fusion.helpers);
  add_dispatched(state, std::move(finding), concatenated(all_kernels, fusion.helpers), units);
}

}  // namespace

// Finds one fusion, by names or by numbers, and adds it with the small kernels that seem to belong
// to it. Returns false if there is none.
bool find_fusion(ExplainState& state, const UnexplainedChanges& changed, bool is_lost,
                 FusionBy by) {
  WorkChanges joined_side = is_lost ? changed.decreased : changed.increased;
  WorkChanges parts_side = is_lost ? changed.increased : changed.decreased;
  Fusion fusion = by == FusionBy::name ? fusion_by_name(joined_side, parts_side)
                                       : fusion_by_number(joined_side, parts_side);
  if (fusion.joined.empty() || fusion.parts.empty()) return false;
  fusion.helpers = find_helpers(fusion.joined, joined_side);
  // Small kernels whose names do not show it belong to the fusion as well.
  for (WorkChanges* side : {&joined_side, &parts_side})
    std::erase_if(*side, std::not_fn(is_small_kernel));
  for (WorkChanges* side : {&fusion.joined, &fusion.parts, &joined_side, &parts_side})
    sort_by_size(*side);
  add_once(fusion.parts, parts_side);
  add_once(fusion.joined, joined_side);
  add_fusion(state, std::move(fusion), is_lost);
  return true;
}

// Adds a finding if nearly every kernel is new, and dispatches changed by half or more: a compiler
// fuses ops now, or no longer does. Returns false otherwise.
bool add_compiler_fusion_change(ExplainState& state) {
  const auto totals = exact_counts(state.evidence, "dispatches");
  const UnexplainedChanges changed(state);
  const bool is_lost = totals && totals->after > totals->before;
  WorkChanges removed = changed.decreased, added = changed.increased;
  std::erase_if(removed, [](const WorkChange* change) { return change->after != k_zero; });
  std::erase_if(added, [](const WorkChange* change) { return change->before != k_zero; });
  if (!totals || totals->before <= k_zero || totals->after <= k_zero) return false;
  if (removed.size() < 4 || added.size() < 4) return false;
  constexpr double k_nearly_all = 0.9, k_min_factor = 1.5;
  const double before = totals->before.value(), after = totals->after.value();
  const bool are_nearly_all_new = -total_delta(removed).value() >= k_nearly_all * before &&
                                  total_delta(added).value() >= k_nearly_all * after;
  const double factor = std::max(before / after, after / before);
  if (!are_nearly_all_new || factor < k_min_factor) return false;
  Finding finding =
      state.finding_about(is_lost ? kind::fusion_lost : kind::fusion_gained, "dispatches");
  finding.headline =
      fmt::format("Fusion seems {}: nearly every kernel is another, and {} run{} where {} ran.",
                  is_lost ? "lost" : "gained", totals->after.str(), state.per_unit_text(),
                  totals->before.str());
  finding.lines = {fmt::format("{} kernels are gone, {} are new", removed.size(), added.size())};
  add_amounts(state, changed_amounts(state, {"dispatches", "barriers"}), finding);
  add_dispatched(state, std::move(finding), concatenated(removed, added),
                 absolute_value(state.differences.count("dispatches")));
  return true;
}

void add_merged(ExplainState& state, bool lost) {
  const UnexplainedChanges changed(state);
  if (too_many_names(changed)) return;
  for (const WorkChange* joined_kernel : lost ? changed.decreased : changed.increased) {
    for (const WorkChange* part : lost ? changed.increased : changed.decreased) {
      const double times = part->absolute_delta() / joined_kernel->absolute_delta();
      if (times < 2 || times != std::floor(times) || !extends(joined_kernel, part)) continue;
      return add_fusion(state, {{joined_kernel}, {part}, true}, lost);
    }
  }
}

}  // namespace weir::explain
