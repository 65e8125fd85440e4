// Pairs the kernels of two builds by GPU and symbol, and ranks what changed.
#include "gate/profile/build_changes.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

namespace weir::profile {
namespace {

using Kernels = std::span<const GpuKernel>;
using Figure = KernelFigures::Figure;

void sort_kernels(GpuBuild& build) {
  std::ranges::sort(build.kernels, {}, [](const GpuKernel& kernel) {
    return std::tie(kernel.target, kernel.symbol, kernel.digest);
  });
}

// Takes the first kernels for which `part` is the same off `rest`.
template <class Part>
Kernels take_group(Kernels& rest, Part part) {
  std::size_t size = 1;
  while (size < rest.size() && rest[size].*part == rest[0].*part) ++size;
  const Kernels group = rest.first(size);
  rest = rest.subspan(size);
  return group;
}

// Splits sorted kernels into groups, by the name that they share.
template <class Part>
std::map<std::string_view, Kernels> group_by(Kernels kernels, Part part) {
  std::map<std::string_view, Kernels> groups;
  while (!kernels.empty()) {
    const Kernels group = take_group(kernels, part);
    groups.emplace_hint(groups.end(), group.front().*part, group);
  }
  return groups;
}

CodeTotals sum_up(Kernels kernels) {
  CodeTotals totals;
  totals.kernels = kernels.size();
  for (const GpuKernel& kernel : kernels) {
    totals.stubs += kernel.is_stub() ? 1 : 0;
    totals.spilling += kernel.figures.spilled_vgprs.value_or(0) != 0 ? 1 : 0;
    totals.spilled_vgprs += kernel.figures.spilled_vgprs.value_or(0);
    totals.spilled_sgprs += kernel.figures.spilled_sgprs.value_or(0);
  }
  return totals;
}

bool all_stubs(Kernels pieces) { return std::ranges::all_of(pieces, &GpuKernel::is_stub); }

// Returns the worst of each figure (registers, memory) over pieces of one symbol. Stubs, which
// hold no code, count only if there is nothing else.
KernelFigures worst_figures(Kernels pieces) {
  const bool has_code = !all_stubs(pieces);
  KernelFigures worst;
  for (const GpuKernel& piece : pieces) {
    if (has_code && piece.is_stub()) continue;
    for (const FigureInfo& info : kernel_figures()) {
      const Figure& value = piece.figures.*info.figure;
      Figure& worst_value = worst.*info.figure;
      if (!value) continue;
      const bool is_worse =
          !worst_value || (info.more_is_better ? *value < *worst_value : *value > *worst_value);
      if (is_worse) worst_value = value;
    }
  }
  return worst;
}

std::vector<std::uint64_t> digests_of(Kernels pieces) {
  std::vector<std::uint64_t> digests;
  std::ranges::transform(pieces, std::back_inserter(digests), &GpuKernel::digest);
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

// Returns how a kernel's symbol differs between two builds; either side may be empty. Nothing if
// code and figures are the same, or both are stubs without code.
std::optional<KernelDifference> compare_pieces(std::string_view symbol, Kernels base, Kernels now) {
  KernelDifference difference{
      std::string(symbol), KernelState::changed, true, all_stubs(base) && all_stubs(now),
      worst_figures(base), worst_figures(now)};
  if (base.empty() || now.empty()) {
    difference.state = base.empty() ? KernelState::added : KernelState::removed;
    return difference;
  }
  difference.has_other_code = digests_of(base) != digests_of(now);
  if (!difference.has_other_code && difference.base == difference.now) return std::nullopt;
  const bool was_stub = all_stubs(base), is_stub = all_stubs(now);
  if (difference.is_stub) return std::nullopt;
  if (was_stub) difference.state = KernelState::compiled;
  if (is_stub) difference.state = KernelState::stub;
  return difference;
}

// Compares by each figure in the order of their table; then by state and symbol.
bool is_worse(const KernelDifference& a, const KernelDifference& b) {
  for (const FigureInfo& figure : kernel_figures()) {
    const std::int64_t of_a = worsening(a, figure), of_b = worsening(b, figure);
    if (of_a != of_b) return of_a > of_b;
  }
  return std::tie(a.state, a.symbol) < std::tie(b.state, b.symbol);
}

// Compares the kernels for one GPU target, symbol by symbol. The worst differences come first;
// equal kernels are only counted.
TargetChanges compare_target(std::string_view target, Kernels base, Kernels now) {
  TargetChanges changes{std::string(target), sum_up(base), sum_up(now), 0, {}};
  const auto before = group_by(base, &GpuKernel::symbol);
  const auto after = group_by(now, &GpuKernel::symbol);
  const auto add_symbol = [&](std::string_view symbol, Kernels old_pieces, Kernels new_pieces) {
    auto difference = compare_pieces(symbol, old_pieces, new_pieces);
    if (difference) {
      changes.differences.push_back(std::move(*difference));
    } else {
      ++changes.unchanged;
    }
  };
  for (const auto& [symbol, pieces] : before) {
    const auto match = after.find(symbol);
    add_symbol(symbol, pieces, match == after.end() ? Kernels() : match->second);
  }
  for (const auto& [symbol, pieces] : after) {
    if (!before.contains(symbol)) add_symbol(symbol, {}, pieces);
  }
  std::ranges::sort(changes.differences, is_worse);
  return changes;
}

// Returns the figure of that name, or the sum of both kinds of spilled registers.
Figure figure_named(const KernelFigures& figures, std::string_view name) {
  if (name == "spilled_registers") {
    if (!figures.spilled_vgprs && !figures.spilled_sgprs) return std::nullopt;
    return figures.spilled_vgprs.value_or(0) + figures.spilled_sgprs.value_or(0);
  }
  for (const FigureInfo& info : kernel_figures()) {
    if (info.name == name) return figures.*info.figure;
  }
  return std::nullopt;
}

}  // namespace

// Compares the kernels of two builds, GPU target by target. Sorts both in place, so that the
// kernels of a target are one span.
std::vector<TargetChanges> compare_builds(GpuBuild& base, GpuBuild& now) {
  sort_kernels(base);
  sort_kernels(now);
  const std::span<const GpuKernel> base_kernels(base.kernels), kernels_now(now.kernels);
  const auto before = group_by(base_kernels, &GpuKernel::target);
  const auto after = group_by(kernels_now, &GpuKernel::target);
  std::vector<TargetChanges> changes;
  for (const auto& [target, kernels] : before) {
    const auto match = after.find(target);
    changes.push_back(
        compare_target(target, kernels, match == after.end() ? Kernels() : match->second));
  }
  for (const auto& [target, kernels] : after) {
    if (!before.contains(target)) changes.push_back(compare_target(target, {}, kernels));
  }
  std::ranges::sort(changes, {}, &TargetChanges::target);
  return changes;
}

// Returns by how much a figure became worse; below 0 if it became better, 0 if it cannot be
// compared. New kernels count from 0, and only by spilled registers.
std::int64_t worsening(const KernelDifference& difference, const FigureInfo& figure) {
  const Figure& before = difference.base.*figure.figure;
  const Figure& after = difference.now.*figure.figure;
  const bool is_of_spills = figure.figure == &KernelFigures::spilled_vgprs ||
                            figure.figure == &KernelFigures::spilled_sgprs ||
                            figure.figure == &KernelFigures::scratch_bytes;
  const bool has_no_base = !difference.is_stub && (difference.state == KernelState::added ||
                                                   difference.state == KernelState::compiled);
  const bool has_both = difference.state == KernelState::changed && before && after;
  if (!has_both && !(has_no_base && is_of_spills)) return 0;
  const std::int64_t change = static_cast<std::int64_t>(after.value_or(0)) -
                              (has_both ? static_cast<std::int64_t>(*before) : 0);
  return figure.more_is_better ? -change : change;
}

bool breaks(const KernelDifference& difference, const FigureLimit& limit) {
  if (difference.state != KernelState::changed) return false;
  const Figure before = figure_named(difference.base, limit.figure);
  const Figure after = figure_named(difference.now, limit.figure);
  if (!before || !after) return false;
  const double change =
      (limit.on_decrease ? -1 : 1) * (static_cast<double>(*after) - static_cast<double>(*before));
  const double allowed = limit.is_relative ? limit.amount * *before : limit.amount;
  return change > allowed;
}

}  // namespace weir::profile
