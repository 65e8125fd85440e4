// The same products in more dispatches.
//
// How many products there are follows from the model's weights, and these are the same on both
// sides: kernels that ran before and do so more often, with nothing gone for it, do them in smaller
// pieces.
#include <algorithm>

#include <fmt/format.h>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// One more alone may be anything.
bool in_pieces(const Move& move) {
  return move.before > Rational(0) && move.delta() >= Rational(2) && !move.parsed.words.empty() &&
         !small_work(move.parsed);
}

}  // namespace

void find_pieces(Board& board) {
  std::vector<const Move*> moves;  // the largest first, as differences are
  double units = 0;
  for (const Move& move : board.found.kernels) {
    if (!board.free("kernel " + move.name)) continue;
    if (!in_pieces(move)) return;
    moves.push_back(&move);
    units += move.delta().value();
  }
  if (moves.empty()) return;
  Finding finding;
  finding.kind = to_string(Kind::batching_lost);
  about(board, "dispatches", finding);
  const Move& first = *moves.front();
  finding.headline = fmt::format(
      "Batching lost: {} runs {}, before {}, and nothing is gone.", safe(first.parsed.base()),
      times_words(first.after, board.evidence.scope), first.before.str());
  finding.lines.push_back(move_words(moves, 6));
  std::vector<Amount> amounts = amounts_of(board, {"dispatches", "barriers"});
  if (amounts.empty()) amounts.push_back({safe(first.name), first.delta()});
  arithmetic(board, amounts, finding);
  finding.cause = "products that were sent together now go one by one, or some are done twice.";
  finding.look_at =
      "where products of the same input are put together: query, key and value; gate and up.";
  for (const Move* move : moves) {
    finding.ops.push_back(move->name);
    board.take("kernel " + move->name);
  }
  board.take("dispatches");
  board.add(std::move(finding), units);
}

}  // namespace weir::explain
