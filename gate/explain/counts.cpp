// Barriers, splits, copies, what grows with context, the fixed part, and what is left.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

double size_of(const Rational& value) { return std::fabs(value.value()); }

double explained_units(const Board& board) {
  double units = 0;
  for (const Board::Entry& entry : board.entries) units += entry.units;
  return units;
}

std::string scope_words(const Board& board) {
  const std::string per = per_words(board.evidence.scope);
  return per.empty() ? "" : " " + per;
}

std::string plain(std::string base) {
  std::replace(base.begin(), base.end(), '_', ' ');
  return base;
}

}  // namespace

void find_barriers(Board& board) {
  const Rational none(0);
  const Rational barriers = board.open("barriers");
  if (barriers == none) return;
  const Rational dispatches = board.found.count("dispatches");
  board.take("barriers");
  // Barriers stand between dispatches: other kernels, other barriers.
  const bool with_dispatches = dispatches != none && (dispatches > none) == (barriers > none);
  const double reach = 2 * explained_units(board) + 2;
  const bool kernels_changed = !board.found.kernels.empty();
  // One before a copy and one behind it: where no dispatch changed, they came with the copies.
  const Rational copies = board.open("copies");
  const bool with_copies = copies != none && (copies > none) == (barriers > none) &&
                           dispatches == none && !kernels_changed;
  if (with_copies && size_of(barriers) <= 2 * size_of(copies)) return;
  if ((with_dispatches || kernels_changed) && size_of(barriers) <= reach) return;
  const bool more = barriers > none;
  Finding finding;
  finding.kind = to_string(more ? Kind::batching_lost : Kind::batching_gained);
  about(board, "barriers", finding);
  const std::string number = signed_text(barriers);
  const std::string name = metric_name(board.evidence, "dispatches");
  const bool counted =
      board.evidence.before.metrics.contains(name) && board.evidence.after.metrics.contains(name);
  finding.headline =
      !counted ? fmt::format("Batching seems {}: {} barriers{}; dispatches are not known.",
                             more ? "lost" : "gained", number, scope_words(board))
      : dispatches == none
          ? fmt::format("Batching {}: {} barriers{} between the same dispatches.",
                        more ? "lost" : "gained", number, scope_words(board))
          : fmt::format("Batching {}: {} barriers{}, more than dispatches explain.",
                        more ? "lost" : "gained", number, scope_words(board));
  const std::vector<Amount> amounts = amounts_of(board, {"barriers"});
  arithmetic(board, amounts, finding);
  if (more) {
    finding.cause =
        "work that may overlap is no longer sent together: ops are in another order, or each is "
        "followed by a barrier.";
    finding.look_at = "the order of the graph's nodes, and what is timed or logged op by op.";
  }
  board.add(std::move(finding), size_of(barriers));
}

void find_splits(Board& board) {
  const Rational splits = board.open("splits");
  if (splits == Rational(0)) return;
  const bool more = splits > Rational(0);
  Finding finding;
  finding.kind = to_string(Kind::splits_changed);
  about(board, "splits", finding);
  finding.headline = fmt::format("The graph is cut into {} parts between backends{}.",
                                 more ? "more" : "fewer", scope_words(board));
  arithmetic(board, amounts_of(board, {"splits", "copies"}), finding);
  finding.cause = "tensors or ops are placed on other backends.";
  finding.look_at = "where weights and cache are kept: buffers in the engine's log.";
  double units = 3 * size_of(splits);
  for (const char* base : {"splits", "copies", "submits", "tensor_copies", "tensor_sets",
                           "tensor_gets", "copied_bytes", "backend_syncs", "cpu_ops"}) {
    board.take(base);
  }
  board.add(std::move(finding), units);
}

void find_copies(Board& board) {
  const std::vector<std::string> kinds = {"copies", "tensor_copies", "tensor_sets", "tensor_gets"};
  std::vector<Amount> amounts;
  std::string base;
  double units = 0;
  Rational leading(0);  // counts of other things do not add up
  bool ups = false, downs = false;
  for (const std::string& kind : kinds) {
    const Rational delta = board.open(kind);
    if (delta == Rational(0)) continue;
    if (base.empty()) base = kind, leading = delta;
    (delta > Rational(0) ? ups : downs) = true;
    units += 2 * size_of(delta);
    amounts.push_back({plain(kind), delta});
    board.take(kind);
  }
  const Rational bytes = board.open("copied_bytes");
  board.take("copied_bytes");
  if (base.empty()) {
    // Other sizes alone are a finding where there is no better one.
    if (bytes == Rational(0) || !board.entries.empty()) return;
    base = "copied_bytes";
    units = 1;
  }
  if (bytes != Rational(0)) {
    leading = bytes;
    (bytes > Rational(0) ? ups : downs) = true;
  }
  const bool more = leading > Rational(0);
  Finding finding;
  finding.kind = to_string(more ? Kind::extra_copies : Kind::copies_removed);
  about(board, base, finding);
  finding.headline =
      ups && downs ? fmt::format("Other things are copied between memories{}.", scope_words(board))
                   : fmt::format("{} is copied between memories{}.", more ? "More" : "Less",
                                 scope_words(board));
  arithmetic(board, amounts, finding);
  if (bytes != Rational(0)) {
    finding.lines.insert(finding.lines.begin() + static_cast<std::ptrdiff_t>(amounts.size()),
                         fmt::format("{} copied bytes", signed_text(bytes)));
  }
  if (more) finding.cause = "a tensor lives in other memory than the op that reads it.";
  board.take("backend_syncs");
  board.add(std::move(finding), units);
}

void find_context(Board& board) {
  // Of a thousand tokens of context: what grows a little a token is a lot.
  constexpr double k_context = 1000;
  std::vector<Amount> amounts;
  double units = 0;
  std::string first;
  bool grows = false;
  for (const auto& [base, delta] : board.found.context) {
    if (base == "copied_bytes") continue;
    if (first.empty() || base == "dispatches") {
      first = base;
      grows = delta > Rational(0);
    }
    amounts.push_back({plain(base) + " for each token of context", delta});
    units += k_context * size_of(delta);
  }
  const bool unsteady = !board.found.unsteady.empty();
  if (amounts.empty() && !unsteady) return;
  Finding finding;
  finding.kind = to_string(Kind::grows_with_context);
  if (!amounts.empty()) {
    finding.metric = first + "_per_context_token";
    finding.delta = board.found.context.at(first);
    finding.headline = fmt::format("Counts {} with the context.", grows ? "grow" : "grow less");
    for (const Amount& amount : amounts) {
      finding.lines.push_back(fmt::format("{} {}", signed_text(amount.delta), amount.name));
    }
    finding.cause =
        grows ? "work is done token by token of the context, or the cache is cut into parts." : "";
    return board.add(std::move(finding), units);
  }
  const std::string name = board.found.unsteady.front();
  const auto metric = unit::find_metric(name);
  finding.metric = name;
  finding.headline = fmt::format("{} are no longer the same for every token.",
                                 metric ? plain(metric->base) : safe(name));
  finding.headline.front() =
      static_cast<char>(std::toupper(static_cast<unsigned char>(finding.headline.front())));
  finding.cause = "the count depends on the length: of the context, or of a batch.";
  board.add(std::move(finding), 0.5);
}

void find_fixed(Board& board) {
  // What changes each token changes the warm-up as well; alone it is of the start.
  if (!board.found.counts.empty() || !board.found.kernels.empty() || board.found.fixed.empty()) {
    return;
  }
  std::vector<Amount> amounts;
  double units = 0;
  for (const auto& [base, delta] : board.found.fixed) {
    amounts.push_back({plain(base), delta});
    if (base != "copied_bytes") units += size_of(delta);
  }
  Finding finding;
  finding.kind = to_string(Kind::fixed_cost_changed);
  const auto& [base, delta] = *board.found.fixed.begin();
  finding.metric = base + "_fixed";
  finding.delta = delta;
  const std::string per = scope_words(board);
  finding.headline = fmt::format("Only what is done once changed: load, warm-up{}{}.",
                                 board.evidence.scope == unit::Scope::per_token ? ", prompt" : "",
                                 per.empty() ? "" : "; no count" + per + " did");
  arithmetic(board, amounts, finding);
  board.add(std::move(finding), units + 0.5, 2);
}

void find_rest(Board& board) {
  std::vector<std::string> bases;
  for (const auto& [base, delta] : board.found.counts) {
    if (board.free(base)) bases.push_back(base);
  }
  if (bases.empty()) return;
  // Beside something that is explained they say little.
  if (!board.entries.empty()) return;
  Finding finding;
  finding.kind = to_string(Kind::count_changed);
  about(board, bases.front(), finding);
  finding.headline = fmt::format("{} changed, and nothing known explains it.",
                                 bases.size() == 1 ? plain(bases.front()) : "Counts");
  finding.headline.front() =
      static_cast<char>(std::toupper(static_cast<unsigned char>(finding.headline.front())));
  arithmetic(board, amounts_of(board, bases), finding);
  board.add(std::move(finding), 1, 3);
}

}  // namespace weir::explain
