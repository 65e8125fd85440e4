// Finds values that the program reads back from the device to decide what it does next.
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

constexpr const char* k_reads = "small_read_backs";

// "8 bytes of reduce_kernel"
std::string_view read_name(const verdict::Changed& read) {
  return std::string_view(read.name).substr(profile::k_read_back.size());
}

// Returns the reads that changed in the direction of the count, the largest change first.
std::vector<verdict::Changed> select_reads(const ExplainState& state, const Rational& delta) {
  std::vector<verdict::Changed> reads = state.evidence.read_backs;
  std::erase_if(reads, [&](const auto& read) { return !same_sign(delta_of(read), delta); });
  std::ranges::stable_sort(reads, std::greater(),
                           [](const auto& read) { return absolute_value(delta_of(read)); });
  return reads;
}

}  // namespace

// Adds a finding if the program reads single values back from the device more or less often. Each
// is a copy, and mostly a wait.
void find_read_backs(ExplainState& state) {
  const Rational delta = state.unexplained_change(k_reads);
  if (delta == k_zero) return;
  const bool is_increase = delta > k_zero;
  Finding finding =
      state.finding_about(is_increase ? kind::read_back_added : kind::read_back_removed, k_reads);
  const std::vector<verdict::Changed> reads = select_reads(state, delta);
  finding.headline = is_increase ? "A value is read back" : "A value is no longer read back";
  if (!reads.empty()) {
    constexpr std::string_view k_tensor_separator = " of ";
    const std::string_view name = read_name(reads.front());
    finding.headline += fmt::format(": {}", safe_name(name));
    if (const auto separator_at = name.find(k_tensor_separator);
        separator_at != std::string_view::npos) {
      finding.ops.emplace_back(name.substr(separator_at + k_tensor_separator.size()));
    }
  }
  const Rational largest_change = reads.empty() ? delta : delta_of(reads.front());
  finding.headline += fmt::format(", {}.", frequency_text(largest_change, state.evidence.scope));
  constexpr std::size_t k_max_lines = 6;
  for (const verdict::Changed& read : std::span(reads).first(std::min(reads.size(), k_max_lines))) {
    finding.lines.push_back(
        fmt::format("{} {}", signed_text(delta_of(read)), safe_name(read_name(read))));
  }
  add_number({readable_name(k_reads), delta}, finding);
  state.mark_explained(k_reads);
  for (const char* base : {"copies", "syncs", "submits"}) {
    const Rational change = state.unexplained_change(base);
    if (!same_sign(change, delta) || absolute_value(change) > absolute_value(delta)) continue;
    add_number({base, change}, finding);
    state.mark_explained(base);
  }
  if (is_increase) {
    finding.cause = "a value decides what the program does next: the CPU waits until it is there.";
    finding.look_at =
        "what turns a tensor into a number: item(), tolist(), if; "
        "torch.cuda.set_sync_debug_mode(\"warn\") names the line.";
  }
  state.add(std::move(finding), /*units=*/k_sync_units * absolute_value(delta));
}

}  // namespace weir::explain
