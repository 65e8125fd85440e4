// Finds other code behind the names of kernels: constants, instructions, and their costs.

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// Returns how much worse a kernel's compiled code became, to sort by: the rank of the most telling
// cost (registers, spills) that got worse, and its factor. Zeros if none did.
std::pair<std::size_t, double> find_worsening(const verdict::KernelChange& code) {
  std::size_t rank = unit::kernel_costs().size();  // the most telling cost comes first
  for (const unit::KernelCost& kernel_cost : unit::kernel_costs()) {
    for (const verdict::KernelChange::Cost& cost : code.costs) {
      if (unit::find_kernel_cost(cost.cost) != &kernel_cost) continue;
      double better_value = static_cast<double>(cost.before),
             worse_value = static_cast<double>(cost.now);
      if (kernel_cost.more_is_better) std::swap(better_value, worse_value);
      if (worse_value > better_value) return {rank, worse_value / std::max(better_value, 1.0)};
    }
    --rank;
  }
  return {0, 0};
}

std::string change_line(const verdict::KernelChange& code) {
  return text::shortened(text::printable(code.words()), 300);
}

// Returns "spills 51 registers; it spilled none"; nothing unless it spills more than before.
std::optional<std::string> describe_spills(const verdict::KernelChange& code) {
  const auto spills =
      std::ranges::find(code.costs, "spilled_registers", &verdict::KernelChange::Cost::cost);
  if (spills == code.costs.end() || spills->now <= spills->before) return std::nullopt;
  return fmt::format("spills {} registers; it spilled {}", spills->now,
                     spills->before == 0 ? "none" : std::to_string(spills->before));
}

}  // namespace

// Adds a finding about kernels whose compiled code changed; about their workgroups only if nothing
// else changed. It ranks after changed counts, which change code as well.
void find_code(ExplainState& state) {
  constexpr std::size_t k_max_lines = 8;
  const auto& code = state.evidence.code;
  const bool has_other_code = std::ranges::any_of(code, &verdict::KernelChange::code_changed);
  state.mark_explained("code");

  if (!has_other_code && !(state.entries.empty() && state.differences.counts.empty())) return;
  std::vector<const verdict::KernelChange*> changed;
  for (const verdict::KernelChange& kernel : code) {
    if (kernel.code_changed == has_other_code) changed.push_back(&kernel);
  }
  if (changed.empty()) return;
  std::ranges::stable_sort(changed, std::greater<>(),
                           [](const auto* kernel) { return find_worsening(*kernel); });
  Finding finding = make_finding(kind::code_changed);
  const verdict::KernelChange& first = *changed.front();
  const auto spills = describe_spills(first);
  finding.headline = spills
                         ? fmt::format("The kernel {} {}.", safe_name(first.kernel), *spills)
                         : fmt::format("The kernel {} {}: {}.", safe_name(first.kernel),
                                       has_other_code ? "has other code" : "runs in other groups",
                                       change_line(first));
  if (spills) finding.lines.push_back(change_line(first));
  for (std::size_t i = 1; i < std::min(changed.size(), k_max_lines); ++i) {
    finding.lines.push_back(
        fmt::format("{}: {}", safe_name(changed[i]->kernel), change_line(*changed[i])));
  }
  for (const auto* kernel : changed) finding.ops.push_back(kernel->kernel);
  finding.look_at = "weir kernels --diff KERNEL, which shows all that differs.";

  state.add(std::move(finding), /*units=*/0.5,
            /*rank=*/has_other_code && state.differences.only_works_changed() ? 1 : 3);
}

}  // namespace weir::explain
