// Helpers for kernels that ran more or less often.
#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {

bool too_many_names(const UnclaimedMoves& moves) {
  return moves.up.size() + moves.down.size() > 2000;
}

Moves joined(Moves a, const Moves& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

double dispatch_change(const Moves& moves) {
  double up = 0, down = 0;
  for (const Move* move : moves) {
    if (move->up()) {
      up += move->size();
    } else {
      down += move->size();
    }
  }
  return std::max(up, down);
}

std::map<std::vector<std::string>, Moves> by_work(const Moves& moves) {
  std::map<std::vector<std::string>, Moves> kinds;
  for (const Move* move : moves) {
    if (!move->parsed.words.empty()) kinds[move->parsed.words].push_back(move);
  }
  return kinds;
}

void by_size(Moves& moves) {
  std::map<std::string, double> sums;
  for (const Move* move : moves) sums[move->parsed.base()] += move->size();
  std::ranges::stable_sort(moves, {}, [&](const Move* move) {
    const std::string base = move->parsed.base();
    return std::tuple(-sums[base], base, -move->size());
  });
}

bool is_small(const Move* move) { return is_small_work(move->parsed); }

bool is_nameless(const Move* move) { return has_no_name(move->name); }

bool extends(const Move* a, const Move* b) {
  const bool a_is_longer = a->parsed.words.size() > b->parsed.words.size();
  const auto& longer = a_is_longer ? a->parsed.words : b->parsed.words;
  const auto& shorter = a_is_longer ? b->parsed.words : a->parsed.words;
  return !shorter.empty() &&
         std::ranges::all_of(shorter, [&](const std::string& word) { return holds(longer, word); });
}

std::string joined_names(const Moves& moves) {
  std::vector<std::string> names;
  for (const Move* move : moves) {
    const std::string name = safe_name(move->work());
    if (!holds(names, name)) names.push_back(name);
  }
  if (names.size() < 2) return text::join(names);
  const std::string last = std::move(names.back());
  names.pop_back();
  return text::join(names) + " and " + last;
}

void name_ops(const Moves& moves, Finding& finding) {
  for (const Move* move : moves) finding.ops.push_back(move->name);
}

void add_dispatched(Board& board, Finding finding, const Moves& kernels, double units) {
  name_ops(kernels, finding);
  board.claim(kernels);
  board.claim("dispatches");
  board.add(std::move(finding), units);
}

}  // namespace weir::explain
