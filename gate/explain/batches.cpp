// The same work in more or fewer batches: every count is multiplied.
#include <cmath>

#include <fmt/format.h>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

std::optional<double> ratio_of(const Board& board, const std::string& base) {
  const std::string name = metric_name(board.evidence, base);
  const auto before = exact_of(board.evidence.before, name);
  const auto after = exact_of(board.evidence.after, name);
  if (!before || !after || before->value() <= 0 || after->value() <= 0) return std::nullopt;
  return after->value() / before->value();
}

// The whole number by which most kernels of both sides are multiplied, or divided; 1 where there is
// none.
std::int64_t common_factor(const Board& board, bool more) {
  std::map<std::int64_t, int> factors;
  int both = 0;
  for (const Move& move : board.found.kernels) {
    const Rational& small = more ? move.before : move.after;
    const Rational& large = more ? move.after : move.before;
    if (small == Rational(0) || large == Rational(0)) continue;
    ++both;
    const double factor = large.value() / small.value();
    if (factor >= 2 && factor <= 1024 && factor == std::floor(factor)) {
      ++factors[static_cast<std::int64_t>(factor)];
    }
  }
  for (const auto& [factor, kernels] : factors) {
    if (kernels >= 4 && kernels * 2 > both) return factor;
  }
  return 1;
}

void take_everything(Board& board) {
  for (const auto& [base, delta] : board.found.counts) board.take(base);
  for (const Move& kernel : board.found.kernels) board.take("kernel " + kernel.name);
  board.take("moves");
}

double all_units(const Board& board) {
  double units = 0;
  for (const auto& [base, delta] : board.found.counts) {
    if (base != "copied_bytes") units += std::fabs(delta.value());
  }
  return units;
}

void add_batches(Board& board, const std::string& base, bool more, std::string headline) {
  Finding finding;
  finding.kind = to_string(Kind::batches_changed);
  about(board, base, finding);
  finding.headline = std::move(headline);
  for (const Amount& amount : amounts_of(board, {"graphs", "dispatches", "syncs"})) {
    finding.lines.push_back(signed_text(amount.delta) + " " + amount.name);
  }
  if (more) finding.cause = "the batch is limited (-b, -ub), or requests are not taken together.";
  finding.look_at = "batch sizes among the arguments, and the engine's defaults.";
  const double units = all_units(board);
  take_everything(board);
  board.add(std::move(finding), units, 0);
}

// No graphs are counted: kernels tell, where each batch is also waited for. Layers that moved to
// the CPU make every kernel rarer as well, and are not.
void batches_by_kernels(Board& board) {
  for (const bool more : {true, false}) {
    const std::int64_t factor = common_factor(board, more);
    const auto syncs = ratio_of(board, "syncs");
    if (factor < 2 || !syncs) continue;
    if (std::fabs(std::log(*syncs) - (more ? 1 : -1) * std::log(factor)) > 1e-9) continue;
    return add_batches(
        board, "dispatches", more,
        fmt::format("The same kernels run {}{} times as often: the work is done in "
                    "{} batches.",
                    more ? "" : "1/", factor, more ? "more, smaller" : "fewer, larger"));
  }
}

}  // namespace

void find_batches(Board& board) {
  if (metric_name(board.evidence, "graphs").empty()) return batches_by_kernels(board);
  if (board.open("graphs") == Rational(0)) return;
  const auto graphs = ratio_of(board, "graphs");
  const auto dispatches = ratio_of(board, "dispatches");
  const auto ops = ratio_of(board, "cpu_ops");
  if (!graphs) return;
  const auto& work = dispatches ? dispatches : ops;
  // Graphs alone may be cut without more work; then all is not multiplied.
  if (!work || (*graphs > 1) != (*work > 1) ||
      std::fabs(std::log(*work)) < 0.5 * std::fabs(std::log(*graphs))) {
    return;
  }
  const bool more = *graphs > 1;
  const std::string name = metric_name(board.evidence, "graphs");
  const std::string per = per_words(board.evidence.scope);
  add_batches(board, "graphs", more,
              fmt::format("The same work is done in {} batches: {} graphs{}{}, before {}.",
                          more ? "more, smaller" : "fewer, larger",
                          exact_of(board.evidence.after, name)->str(), per.empty() ? "" : " ", per,
                          exact_of(board.evidence.before, name)->str()));
}

}  // namespace weir::explain
