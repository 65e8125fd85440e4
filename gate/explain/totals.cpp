// Dispatches of which only the sum is known.
#include <cmath>

#include <fmt/format.h>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// So few dispatches that a layer is about one: "30 = 24 layers + 6".
bool one_a_layer(const Board& board, Finding& finding) {
  if (board.model == nullptr || board.model->layers < 8) return false;
  const std::string name = metric_name(board.evidence, "dispatches");
  const auto before = exact_of(board.evidence.before, name);
  const auto after = exact_of(board.evidence.after, name);
  if (!before || !after || !after->whole()) return false;
  const std::int64_t layers = board.model->layers;
  const std::int64_t rest = after->numerator() - layers;
  if (rest < 0 || rest > layers / 2 || before->value() < 4 * after->value()) return false;
  finding.kind = to_string(Kind::fusion_gained);
  finding.headline = fmt::format("Whole layers {} as one dispatch each: {} = {} layers{}.",
                                 ops_told(board) ? "run" : "seem to run", after->str(), layers,
                                 rest > 0 ? fmt::format(" + {}", rest) : "");
  finding.layers.clear();
  for (std::int64_t layer = 0; layer < layers; ++layer) finding.layers.push_back(layer);
  return true;
}

std::string total_headline(const Finding& finding, bool more, bool told) {
  const std::string in = finding.layers.empty() ? ""
                         : finding.tensors.empty()
                             ? " in each layer"
                             : " in each layer that has " + safe(finding.tensors.front());
  if (!finding.per_layer) {
    return more   ? "More, smaller dispatches do the work: a fusion is lost, or work was added."
           : told ? "Fewer dispatches do the work: it is fused."
                  : "Fewer dispatches: the work is fused, or done elsewhere.";
  }
  const auto each = std::abs(*finding.per_layer);
  return more ? fmt::format("{} more dispatch{}{}: a fusion is lost, or work was added.", each,
                            each == 1 ? "" : "es", in)
              : fmt::format("{} fewer dispatch{}{}: {}.", each, each == 1 ? "" : "es", in,
                            told ? "they are fused" : "fused, or done elsewhere");
}

}  // namespace

void find_totals(Board& board) {
  if (!board.found.kernels.empty()) return;
  const Rational dispatches = board.open("dispatches");
  if (dispatches == Rational(0)) return;
  const bool more = dispatches > Rational(0);
  Finding finding;
  const bool told = ops_told(board);
  // Work that is gone may be done elsewhere, or by nobody.
  finding.kind = to_string(more   ? Kind::fusion_lost
                           : told ? Kind::fusion_gained
                                  : Kind::op_removed);
  about(board, "dispatches", finding);
  std::vector<Amount> amounts = amounts_of(board, {"dispatches"});
  // Barriers stand between dispatches: they come and go with them.
  const Rational barriers = board.open("barriers");
  if (barriers != Rational(0) && (barriers > Rational(0)) == more) {
    amounts.push_back({"barriers", barriers});
    board.take("barriers");
  }
  const auto fit = arithmetic(board, amounts, finding);
  if (more || !one_a_layer(board, finding)) finding.headline = total_headline(finding, more, told);
  finding.look_at = more
                        ? "kernels by name: weir profile, or an engine that names them."
                        : "whether the CPU does what is gone: only a probe that sees ops can tell.";
  if (!more && told) finding.look_at.clear();
  board.take("dispatches");
  board.add(std::move(finding), std::fabs(dispatches.value()));
  if (fit) add_also(board, amounts, *fit);
}

}  // namespace weir::explain
