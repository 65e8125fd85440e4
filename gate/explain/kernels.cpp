// What changed among kernels, by their names and numbers: pieces of work; variants, fusions, and
// work added or removed.
#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {
namespace {

// A kernel copies what the device copied, or the other way round: as many of one came as went of
// the other, or nearly.
bool copies_instead(const Board& board, const Move* move) {
  const double copies = board.found.count("copies").value(), kernels = move->delta().value();
  return is_copy(move->parsed) && copies * kernels < 0 &&
         2 * std::fabs(copies) >= std::fabs(kernels);
}

// Kernels that run as often, with other code, where small ones come or go that run no more often:
// what one did with its result, the others do apart. Of a new build of all kernels nobody can tell.
std::vector<std::string> recoded_beside(const Board& board, const Moves& moves, bool added) {
  std::vector<std::string> names;
  double often = 0;
  for (const verdict::OtherCode& one : board.evidence.code) {
    if (!one.other_code || small_work(kernel_name(one.kernel))) continue;
    names.push_back(one.kernel);
    often = std::max(often, one.calls.value());
  }
  const bool alone = std::ranges::all_of(board.found.kernels,
                                         [&](const Move& move) { return move.up() == added; });
  const bool small = std::ranges::all_of(
      moves, [&](const Move* move) { return is_small(move) && move->size() <= often; });
  return alone && small && names.size() <= moves.size() ? names : std::vector<std::string>{};
}

void add_works(Board& board, Moves moves, bool added) {
  if (moves.empty()) return;
  by_size(moves);
  // The engine's graph asks for the same ops as before: they were fused, or are.
  const bool same_graph =
      board.evidence.same_graph || (board.evidence.graph_known && board.found.graph.empty());
  const std::vector<std::string> recoded = recoded_beside(board, moves, added);
  // A copy that no op asked for is one that another kernel needs.
  const bool fusion = (same_graph || !recoded.empty()) && is_small(moves.front()) &&
                      !is_copy(moves.front()->parsed);
  Finding finding = board.about(fusion  ? (added ? kind::fusion_lost : kind::fusion_gained)
                                : added ? kind::op_added
                                        : kind::op_removed,
                                "dispatches");
  const std::string names =
      joined_names(moves.size() > 3 ? Moves(moves.begin(), moves.begin() + 3) : moves);
  if (fusion && !same_graph) {
    finding.headline = fmt::format("Fusion seems {}: {} has other code, and {} {} run{} apart.",
                                   added ? "lost" : "gained", safe(recoded.front()), names,
                                   added ? "now" : "no longer", moves.size() == 1 ? "s" : "");
  } else if (fusion) {
    finding.headline = fmt::format("Fusion {}: the same ops {} {} in kernels of {} own.",
                                   added ? "lost" : "gained", added ? "now run" : "no longer run",
                                   names, moves.size() == 1 ? "its" : "their");
  } else {
    const char* place = !place_known(board.evidence, *moves.front()) ? ""
                        : board.evidence.device == "cpu"             ? " on the CPU"
                                                                     : " on the device";
    finding.headline = fmt::format("{} work{}: {}.", added ? "More" : "Less", place, names);
  }
  if (moves.size() > 1) finding.lines.push_back(move_words(moves, 6));
  arithmetic(board, {{safe(moves.front()->name), moves.front()->delta()}}, finding);
  finding.cause = added ? "an op was added, is converted or copied first, or is no longer fused."
                        : "an op is gone, was fused into another kernel, or runs elsewhere.";
  add_dispatched(board, std::move(finding), moves, units_of(moves));
}

// Products that `moves` do run in more dispatches, or in fewer; `amount` says how many where no
// count does.
void add_batching(Board& board, Finding finding, const Moves& moves, const Amount& amount) {
  // A sum of dispatches that holds other changes too says nothing of this one.
  const Rational dispatches = board.found.count("dispatches");
  const bool sole = dispatches == k_none || dispatches == sum_of(moves);
  std::vector<Amount> amounts;
  if (sole) amounts = amounts_of(board, {"dispatches", "barriers"});
  if (amounts.empty()) amounts.push_back(amount);
  arithmetic(board, amounts, finding);
  if (finding.kind == kind::batching_lost) {
    finding.cause =
        "matrix multiplications that ran together now run one by one, or some run twice.";
    finding.look_at =
        "where matmuls of the same input are joined: query, key and value; gate and up.";
  }
  add_dispatched(board, std::move(finding), moves, size_of(sum_of(moves)));
}

// Large kernels of one kind all gave way to others of it, and these run more often: other kernels
// do the work, and do it in more pieces. That is two changes.
void add_replaced_in_pieces(Board& board) {
  const Open open(board);
  for (const auto& [words, moves] : by_work(joined(open.up, open.down))) {
    const bool all_others = std::ranges::all_of(moves, [](const Move* move) {
      return (move->before == k_none) != (move->after == k_none);
    });
    const bool any_gone = !moves.back()->up();
    if (!all_others || !any_gone || is_small(moves.front()) || is_nameless(moves.front()) ||
        sum_of(moves) < Rational(2)) {
      continue;
    }
    add_variants(board, {moves});
    Rational before, after;
    for (const Move* move : moves) {
      before = before.plus(move->before).value_or(before);
      after = after.plus(move->after).value_or(after);
    }
    const std::string work = safe(moves.front()->work());
    Finding finding = board.about(kind::batching_lost, "dispatches");
    finding.headline = fmt::format("Batching lost: {} runs {}, before {}.", work,
                                   times_words(after, board.evidence.scope), before.str());
    add_batching(board, std::move(finding), moves, {work, sum_of(moves)});
  }
}

}  // namespace

void find_kernels(Board& board) {
  add_replaced(board, false);
  std::vector<Moves> groups = swapped(Open(board));
  // Other sizes of pieces are no reason for anything else that changed.
  if (!board.found.only_works()) add_variants(board, take_out(groups, only_tuned), 3);
  // Small kernels that only changed their variant beside a fusion belong to it. So do others of
  // which a switch is on, if no name says what was joined.
  std::vector<Moves> small =
      take_out(groups, [](const Moves& group) { return std::ranges::all_of(group, is_small); });
  std::vector<Moves> switched = take_out(groups, is_switched);
  add_variants(board, std::move(groups));
  const Rational dispatches = board.found.count("dispatches");
  bool fused = false;
  // More dispatches: a fusion is lost rather than gained; both may be there.
  const bool lost_first = dispatches >= k_none;
  std::set<const Move*> apart;
  for (const Moves& group : switched) apart.insert(group.begin(), group.end());
  for (const bool lost : {lost_first, !lost_first}) {
    Open open(board);
    if (too_many_names(open)) break;
    open.leave_out([&](const Move* move) { return apart.contains(move); });
    fused = find_fusion(board, open, lost, FusionBy::name) || fused;
  }
  if (!fused) add_exchanged_kinds(board);
  fused = fused || add_compiled_otherwise(board);
  if (!fused && dispatches != k_none) {
    Open open(board);
    open.leave_out([&](const Move* move) { return copies_instead(board, move); });
    find_fusion(board, open, dispatches > k_none, FusionBy::number);
  }
  add_replaced_in_pieces(board);
  std::ranges::move(switched, std::back_inserter(small));
  std::erase_if(small, [&](const Moves& group) { return !board.free(*group.front()); });
  add_variants(board, std::move(small), dispatches == k_none ? 1 : 2);
  add_exchanged_kinds(board);
  for (const bool lost : {lost_first, !lost_first}) add_merged(board, lost);
  add_replaced(board, true);
  const Open rest(board);
  add_works(board, rest.up, true);
  add_works(board, rest.down, false);
}

// The same matrix multiplications in more dispatches. How many there are follows from the model's
// weights, and these are the same on both sides: kernels that ran before and do so more often, with
// nothing gone for it, do them in smaller pieces. The reverse only seems so unless the graph is
// known to be the same: work may be gone, or be done elsewhere.
void find_pieces(Board& board) {
  Moves moves;  // the largest first, as differences are
  for (const Move& move : board.found.kernels) {
    if (!board.free(move)) continue;
    // One more alone may be anything, and so may what has no name.
    if (move.before == k_none || move.after == k_none || size_of(move.delta()) < 2 ||
        move.parsed.words.empty() || is_small(&move) || is_nameless(&move) ||
        (!moves.empty() && (move.delta() > k_none) != (moves[0]->delta() > k_none))) {
      return;
    }
    moves.push_back(&move);
  }
  if (moves.empty()) return;
  const Move& first = *moves.front();
  const bool lost = first.delta() > k_none, seems = !lost && !board.evidence.graph_known;
  if (!lost && !(board.found.graph.empty() && board.found.cpu_ops.empty())) return;
  Finding finding = board.about(lost ? kind::batching_lost : kind::batching_gained, "dispatches");
  finding.headline = fmt::format("Batching {}{}: {} runs {}, before {}, and nothing {}.",
                                 seems ? "seems " : "", lost ? "lost" : "gained",
                                 safe(first.work()), times_words(first.after, board.evidence.scope),
                                 first.before.str(), lost ? "is gone" : "came");
  finding.lines.push_back(move_words(moves, 6));
  if (seems) {
    finding.look_at =
        "whether the work is gone, or the CPU does it: a probe that sees ops can tell.";
  }
  add_batching(board, std::move(finding), moves, {safe(first.name), first.delta()});
}

}  // namespace weir::explain
