// Other code behind the names of kernels: constants, instructions, and what they cost.

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// What to look at first: the most telling cost that grew, then by how much.
std::pair<std::ptrdiff_t, double> worsening(const verdict::OtherCode& one) {
  const auto all = unit::kernel_costs();
  for (const verdict::OtherCode::Cost& cost : one.costs) {  // in the order of these
    const auto* known = unit::find_kernel_cost(cost.cost);
    if (known == nullptr) continue;
    const double from = static_cast<double>(cost.before), to = static_cast<double>(cost.now);
    const auto [less, more] = known->more_is_better ? std::pair(to, from) : std::pair(from, to);
    if (more > less) return {all.data() + all.size() - known, more / std::max(less, 1.0)};
  }
  return {0, 0};
}

std::string line_of(const verdict::OtherCode& one) {
  return text::shortened(text::printable(one.words()), 300);
}

}  // namespace

void find_code(Board& board) {
  constexpr std::size_t k_most_lines = 8;
  const auto& code = board.evidence.code;
  const bool other = std::ranges::any_of(code, &verdict::OtherCode::other_code);
  board.take("code");
  // Groups go with shapes: they are a finding where nothing else changed.
  if (!other && !(board.entries.empty() && board.found.counts.empty())) return;
  std::vector<const verdict::OtherCode*> changed;
  for (const verdict::OtherCode& one : code) {
    if (one.other_code == other) changed.push_back(&one);
  }
  if (changed.empty()) return;
  std::ranges::stable_sort(changed, std::greater<>(),
                           [](const auto* one) { return worsening(*one); });
  Finding finding = finding_of(kind::code_changed);
  const verdict::OtherCode& first = *changed.front();
  finding.headline = fmt::format("The kernel {} {}: {}.", safe(first.kernel),
                                 other ? "has other code" : "runs in other groups", line_of(first));
  for (std::size_t i = 1; i < std::min(changed.size(), k_most_lines); ++i) {
    finding.lines.push_back(fmt::format("{}: {}", safe(changed[i]->kernel), line_of(*changed[i])));
  }
  for (const auto* one : changed) finding.ops.push_back(one->kernel);
  finding.look_at = "weir kernels --diff KERNEL, which shows all that differs.";
  // After any count and memory: what changed those changes the code as well, and sizes groups.
  board.add(std::move(finding), 0.5, other && board.found.only_works() ? 1 : 3);
}

}  // namespace weir::explain
