// Finds other code behind the names of kernels: constants, instructions, and their costs.

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// Returns how much worse a kernel's costs became, for sorting: by the most telling cost that grew,
// then by its factor.
std::pair<std::ptrdiff_t, double> worsening(const verdict::KernelChange& code) {
  const auto known_costs = unit::kernel_costs();
  for (const verdict::KernelChange::Cost& cost : code.costs) {  // in the order of these
    const auto* kernel_cost = unit::find_kernel_cost(cost.cost);
    if (kernel_cost == nullptr) continue;
    const double before = static_cast<double>(cost.before), after = static_cast<double>(cost.now);
    const auto [less, more] =
        kernel_cost->more_is_better ? std::pair(after, before) : std::pair(before, after);
    if (more > less) {
      return {known_costs.data() + known_costs.size() - kernel_cost, more / std::max(less, 1.0)};
    }
  }
  return {0, 0};
}

std::string change_line(const verdict::KernelChange& code) {
  return text::shortened(text::printable(code.words()), 300);
}

}  // namespace

// Finds kernels whose code changed, or only their groups if nothing else did.
void find_code(ExplainState& state) {
  constexpr std::size_t k_max_lines = 8;
  const auto& code = state.evidence.code;
  const bool any_other_code = std::ranges::any_of(code, &verdict::KernelChange::code_changed);
  state.claim("code");
  // Group sizes depend on shapes, so they are a finding only if nothing else changed.
  if (!any_other_code && !(state.entries.empty() && state.differences.counts.empty())) return;
  std::vector<const verdict::KernelChange*> changed;
  for (const verdict::KernelChange& kernel : code) {
    if (kernel.code_changed == any_other_code) changed.push_back(&kernel);
  }
  if (changed.empty()) return;
  std::ranges::stable_sort(changed, std::greater<>(),
                           [](const auto* kernel) { return worsening(*kernel); });
  Finding finding = make_finding(kind::code_changed);
  const verdict::KernelChange& first = *changed.front();
  finding.headline =
      fmt::format("The kernel {} {}: {}.", safe_name(first.kernel),
                  any_other_code ? "has other code" : "runs in other groups", change_line(first));
  for (std::size_t i = 1; i < std::min(changed.size(), k_max_lines); ++i) {
    finding.lines.push_back(
        fmt::format("{}: {}", safe_name(changed[i]->kernel), change_line(*changed[i])));
  }
  for (const auto* one : changed) finding.ops.push_back(one->kernel);
  finding.look_at = "weir kernels --diff KERNEL, which shows all that differs.";
  // Ranks after counts and memory: a change there changes code and group sizes as well.
  state.add(std::move(finding), /*units=*/0.5,
            /*rank=*/any_other_code && state.differences.only_works() ? 1 : 3);
}

}  // namespace weir::explain
