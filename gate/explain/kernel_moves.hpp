// Kernels of which more or fewer ran, and what a pattern asks of them by their names. Used by
// kernels.cpp, variants.cpp and fusions.cpp alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gate/explain/patterns.hpp"

namespace weir::explain {

// The kernels that changed and are not explained yet.
struct UnclaimedMoves {
  Moves up, down;

  explicit UnclaimedMoves(const Board& board)
      : up(select_moves(board.differences.kernels, true)),
        down(select_moves(board.differences.kernels, false)) {
    leave_out([&](const Move* move) { return !board.is_unclaimed(*move); });
  }

  template <class Is>
  void leave_out(const Is& is) {
    for (Moves* side : {&up, &down}) std::erase_if(*side, is);
  }
};

// Each name is compared with each: engines have some hundreds of kernels, a file from strangers may
// have a million.
[[nodiscard]] bool too_many_names(const UnclaimedMoves& open);

[[nodiscard]] Moves joined(Moves a, const Moves& b);
// How many more, or how many fewer: what is greater.
[[nodiscard]] double dispatch_change(const Moves& moves);
// Kernels that do the same work (same_work), by the words of their names, where they have any.
[[nodiscard]] std::map<std::vector<std::string>, Moves> by_work(const Moves& moves);
// The largest first, variants of one kernel taken together.
void by_size(Moves& moves);

[[nodiscard]] bool is_small(const Move* move);  // small_work() of its name
[[nodiscard]] bool is_nameless(const Move* move);
// One name has all words of the other.
[[nodiscard]] bool extends(const Move* a, const Move* b);
[[nodiscard]] std::string joined_names(const Moves& moves);  // "a, b and c"
void name_ops(const Moves& moves, Finding& finding);
// Adds a finding that names these kernels and explains them, and how many dispatches there are.
void add_dispatched(Board& board, Finding finding, const Moves& kernels, double units);

// --- variants.cpp ------------------------------------------------------------------------------

// Kernels without names came for others, as often: all of them, or `one_by_one`.
void add_replaced(Board& board, bool one_by_one);
// Kernels of one kind of work whose changes add up to nothing: none came, none went.
[[nodiscard]] std::vector<Moves> swapped(const UnclaimedMoves& open);
// Moves the groups that satisfy `is` out of `groups`, and returns them.
[[nodiscard]] std::vector<Moves> take_out(std::vector<Moves>& groups, bool (*is)(const Moves&));
// By their names only the sizes of the work's pieces differ.
[[nodiscard]] bool only_tuned(const Moves& group);
// Other template arguments are on: "<64, true>" for "<64, false>".
[[nodiscard]] bool is_switched(const Moves& group);
void add_variants(Board& board, std::vector<Moves> groups, int rank = 1);
// Adds kinds of kernels that replaced each other, as often, regardless of variants.
void add_exchanged_kinds(Board& board);

// --- fusions.cpp -------------------------------------------------------------------------------

enum class FusionBy { name, number };
// Kernels that ran as one and run apart (`lost`), or the other way round; false where there are
// none.
bool find_fusion(Board& board, const UnclaimedMoves& open, bool lost, FusionBy by);
// Nearly every kernel is another, and they are many more or many fewer: a compiler that joins ops
// does not, or does, any more.
bool add_compiled_otherwise(Board& board);
// Several calls of one kernel for each of another that is named by more words (gemv_qkv for three
// gemv), or the other way round.
void add_merged(Board& board, bool lost);

}  // namespace weir::explain
