// What changed among kernels, told by their names and numbers: variants, fusions, work added or
// removed.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

using Moves = std::vector<const Move*>;

Rational total_of(const Moves& moves) {
  Rational sum(0);
  for (const Move* move : moves) sum = sum.plus(move->delta()).value_or(sum);
  return sum;
}

// What came of a group, exactly: as often as others went where it adds up to nothing.
Rational came_of(const Moves& moves) {
  Rational sum(0);
  for (const Move* move : moves) {
    if (move->up()) sum = sum.plus(move->delta()).value_or(sum);
  }
  return sum;
}

double units_of(const Moves& moves) {
  double up = 0, down = 0;
  for (const Move* move : moves) (move->up() ? up : down) += std::fabs(move->delta().value());
  return std::max(up, down);
}

// The kernels that changed and are not explained yet.
struct Open {
  Moves up, down;

  explicit Open(const Board& board) {
    for (const Move& move : board.found.kernels) {
      if (!board.free("kernel " + move.name)) continue;
      (move.up() ? up : down).push_back(&move);
    }
  }
  [[nodiscard]] Moves all() const {
    Moves both = up;
    both.insert(both.end(), down.begin(), down.end());
    return both;
  }
};

// Each name is held against each: engines have some hundreds of kernels, a file from strangers may
// have a million.
bool too_many_names(const Open& open) { return open.up.size() + open.down.size() > 2000; }

void take_all(Board& board, const Moves& moves) {
  for (const Move* move : moves) board.take("kernel " + move->name);
}

void name_ops(const Moves& moves, Finding& finding) {
  for (const Move* move : moves) finding.ops.push_back(move->name);
}

std::string joined_names(const Moves& moves, std::string_view last = " and ") {
  std::string words;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    words += i == 0 ? "" : i + 1 == moves.size() ? std::string(last) : ", ";
    words += safe(moves[i]->parsed.base());
  }
  return words;
}

// --- the same work by another kernel -----------------------------------------------------------

// Kernels of one kind of work whose changes add up to nothing: none came, none went.
std::vector<Moves> swapped(const Open& open) {
  std::map<std::vector<std::string>, Moves> alike;  // same_work
  for (const Move* move : open.all()) {
    if (!move->parsed.words.empty()) alike[move->parsed.words].push_back(move);
  }
  std::vector<Moves> groups;
  for (const Move* first : open.down) {
    const auto found = alike.find(first->parsed.words);
    if (found == alike.end()) continue;
    Moves group = std::move(found->second);
    alike.erase(found);
    if (group.size() >= 2 && total_of(group) == Rational(0)) groups.push_back(std::move(group));
  }
  return groups;
}

// One kernel for another as often, with names that begin alike.
std::vector<Moves> exchanged(const Open& open) {
  std::vector<Moves> pairs;
  if (too_many_names(open)) return pairs;
  std::set<const Move*> seen;
  for (const Move* down : open.down) {
    for (const Move* up : open.up) {
      if (seen.contains(up) || seen.contains(down)) continue;
      if (total_of({up, down}) != Rational(0)) continue;
      const auto& a = down->parsed.words;
      const auto& b = up->parsed.words;
      const std::size_t shorter = std::min(a.size(), b.size());
      std::size_t alike = 0;
      while (alike < shorter && a[alike] == b[alike]) ++alike;
      if (alike == 0 || alike * 2 < std::max(a.size(), b.size())) continue;
      seen.insert({up, down});
      pairs.push_back({up, down});
    }
  }
  return pairs;
}

void add_variants(Board& board, std::vector<Moves> groups) {
  if (groups.empty()) return;
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Moves& a, const Moves& b) { return units_of(a) > units_of(b); });
  Finding finding;
  finding.kind = to_string(Kind::variant_changed);
  finding.metric = metric_name(board.evidence, "dispatches");
  const Moves& first = groups.front();
  finding.headline =
      fmt::format("Another kernel does the same work: {}, {}.", safe(first.front()->parsed.base()),
                  times_words(came_of(first), board.evidence.scope));
  double units = 0;
  std::vector<Amount> amounts;
  for (const Moves& group : groups) {
    take_all(board, group);
    name_ops(group, finding);
    units += units_of(group);
    finding.lines.push_back(move_words(group, 4));
  }
  amounts.push_back({safe(first.front()->name), first.front()->delta()});
  Finding fitted;
  if (arithmetic(board, amounts, fitted)) {
    finding.layers = fitted.layers;
    finding.tensors = fitted.tensors;
    finding.per_layer = fitted.per_layer;
    finding.lines.push_back(fitted.lines.front());
  }
  finding.cause =
      "the device reports other features, a switch turned a path off, or the choice by shape, "
      "alignment or type changed.";
  finding.look_at = "how the kernel is chosen, and what the device said of itself.";
  board.add(std::move(finding), units);
}

// --- fusions -----------------------------------------------------------------------------------

struct Fusion {
  Moves joined, parts;
  bool by_number = false;  // no name says so
};

std::vector<KernelName> parsed(const Moves& moves) {
  std::vector<KernelName> names;
  names.reserve(moves.size());
  for (const Move* move : moves) names.push_back(move->parsed);
  return names;
}

// A list of moves that has each once.
class Once {
 public:
  explicit Once(Moves& list) : list_(list), seen_(list.begin(), list.end()) {}
  void push(const Move* move) {
    if (seen_.insert(move).second) list_.push_back(move);
  }

 private:
  Moves& list_;
  std::set<const Move*> seen_;
};

// Kernels on one side whose names say that they do what those on the other side do.
Fusion fusion_by_name(const Moves& joined_side, const Moves& parts_side) {
  Fusion fusion;
  const std::vector<KernelName> names = parsed(parts_side);
  Once once(fusion.parts);
  for (const Move* joined : joined_side) {
    const auto parts = parts_of(joined->parsed, names);
    if (parts.empty()) continue;
    fusion.joined.push_back(joined);
    for (const std::size_t part : parts) once.push(parts_side[part]);
  }
  return fusion;
}

std::size_t kinds_of(const Moves& moves) {
  std::set<std::string> kinds;
  for (const Move* move : moves) kinds.insert(move->parsed.base());
  return kinds.size();
}

// Names tell nothing, numbers do: fewer kernels of few kinds make room for more of several.
Fusion fusion_by_number(const Moves& joined_side, const Moves& parts_side) {
  if (joined_side.empty()) return {};
  // What ran as one so many times runs apart as often: a kernel that is more than that is new work.
  const double joined = units_of(joined_side);
  Moves parts;
  for (const Move* move : parts_side) {
    if (std::fabs(move->delta().value()) <= joined) parts.push_back(move);
  }
  const bool more = joined < units_of(parts) && kinds_of(parts) >= kinds_of(joined_side);
  const bool small = std::any_of(parts.begin(), parts.end(),
                                 [](const Move* move) { return small_work(move->parsed); });
  if (kinds_of(parts) < 2 || !more || !small) return {};
  return {joined_side, std::move(parts), true};
}

// The rest of a fusion: small kernels whose joined ones do not show it in their names.
void absorb(Fusion& fusion, const Moves& joined_side, const Moves& parts_side) {
  Once parts(fusion.parts), joined(fusion.joined);
  for (const Move* move : parts_side) {
    if (small_work(move->parsed)) parts.push(move);
  }
  for (const Move* move : joined_side) {
    if (small_work(move->parsed)) joined.push(move);
  }
}

void by_size(Moves& moves) {
  std::stable_sort(moves.begin(), moves.end(), [](const Move* a, const Move* b) {
    return std::fabs(a->delta().value()) > std::fabs(b->delta().value());
  });
}

std::string fusion_headline(const Board& board, const Fusion& fusion, bool lost) {
  const Move* joined = fusion.joined.front();
  Moves parts;
  for (const std::size_t part : parts_of(joined->parsed, parsed(fusion.parts))) {
    parts.push_back(fusion.parts[part]);
  }
  // The joined kernel's own plain form is no part of it.
  const bool named = !parts.empty();
  for (const Move* part : fusion.parts) {
    if (named || parts.size() == 3) break;
    if (!same_work(part->parsed, joined->parsed)) parts.push_back(part);
  }
  Rational times = joined->delta();
  if (times < Rational(0)) times = Rational(0).minus(times).value_or(times);
  const std::string often = times_words(times, board.evidence.scope);
  const std::string name = safe(joined->parsed.base());
  const std::string names = joined_names(parts);
  const char* seems = fusion.by_number ? " seems" : "";
  return lost ? fmt::format("Fusion{} lost: {} ran as one kernel {}; now {} run{} apart.", seems,
                            name, often, names, parts.size() == 1 ? "s" : "")
              : fmt::format("Fusion{} gained: {} runs as one kernel {}, where {} ran.", seems, name,
                            often, names);
}

void add_fusion(Board& board, Fusion fusion, bool lost) {
  by_size(fusion.joined);
  by_size(fusion.parts);
  Finding finding;
  finding.kind = to_string(lost ? Kind::fusion_lost : Kind::fusion_gained);
  about(board, "dispatches", finding);
  finding.headline = fusion_headline(board, fusion, lost);
  Moves all = fusion.joined;
  all.insert(all.end(), fusion.parts.begin(), fusion.parts.end());
  finding.lines.push_back(move_words(fusion.joined, 4));
  finding.lines.push_back(move_words(fusion.parts, 6));
  std::vector<Amount> amounts = amounts_of(board, {"dispatches"});
  if (amounts.empty()) amounts.push_back({safe(all.front()->name), all.front()->delta()});
  if (board.found.count("barriers") != Rational(0)) {
    amounts.push_back({"barriers", board.found.count("barriers")});
  }
  arithmetic(board, amounts, finding);
  name_ops(all, finding);
  if (lost) {
    finding.cause =
        "a switch, a changed order of ops or a new shape or type keeps the pattern from matching.";
    finding.look_at = "the fusion's conditions, and environment variables that turn it off.";
  }
  take_all(board, all);
  board.take("dispatches");
  // What it costs or saves: dispatches.
  board.add(std::move(finding), std::max(1.0, std::fabs(total_of(all).value())));
}

bool find_fusion(Board& board, bool lost, Fusion (*way)(const Moves&, const Moves&)) {
  const Open open(board);
  if (way == fusion_by_name && too_many_names(open)) return false;
  const Moves& joined_side = lost ? open.down : open.up;
  const Moves& parts_side = lost ? open.up : open.down;
  Fusion fusion = way(joined_side, parts_side);
  if (fusion.joined.empty() || fusion.parts.empty()) return false;
  absorb(fusion, joined_side, parts_side);
  add_fusion(board, std::move(fusion), lost);
  return true;
}

// --- work added or removed ---------------------------------------------------------------------

bool same_graph(const Board& board) {
  return board.evidence.graph_known && board.found.graph.empty();
}

void add_works(Board& board, Moves moves, bool added) {
  if (moves.empty()) return;
  by_size(moves);
  Finding finding;
  // The engine's graph asks for the same ops as before: they were fused, or are.
  const bool fusion = same_graph(board) && small_work(moves.front()->parsed);
  finding.kind = to_string(fusion ? (added ? Kind::fusion_lost : Kind::fusion_gained)
                                  : (added ? Kind::op_added : Kind::op_removed));
  about(board, "dispatches", finding);
  const std::string names =
      joined_names(moves.size() > 3 ? Moves(moves.begin(), moves.begin() + 3) : moves);
  if (fusion) {
    finding.headline = fmt::format("Fusion {}: the same ops {} {} in kernels of {} own.",
                                   added ? "lost" : "gained", added ? "now run" : "no longer run",
                                   names, moves.size() == 1 ? "its" : "their");
  } else {
    finding.headline = added ? fmt::format("More work on the device: {}.", names)
                             : fmt::format("Less work on the device: {}.", names);
  }
  finding.lines.push_back(move_words(moves, 6));
  arithmetic(board, {{safe(moves.front()->name), moves.front()->delta()}}, finding);
  if (!finding.lines.empty() && moves.size() == 1) finding.lines.erase(finding.lines.begin());
  name_ops(moves, finding);
  finding.cause = added ? "an op was added, is converted or copied first, or is no longer fused."
                        : "an op is gone, was fused into another kernel, or runs elsewhere.";
  take_all(board, moves);
  board.take("dispatches");
  board.add(std::move(finding), units_of(moves));
}

// Small kernels that only changed their variant beside a fusion belong to it.
bool all_small(const Moves& moves) {
  return std::all_of(moves.begin(), moves.end(),
                     [](const Move* move) { return small_work(move->parsed); });
}

}  // namespace

void find_kernels(Board& board) {
  const Rational none(0);
  std::vector<Moves> groups = swapped(Open(board));
  const auto large_end = std::stable_partition(
      groups.begin(), groups.end(), [](const Moves& group) { return !all_small(group); });
  std::vector<Moves> small(large_end, groups.end());
  groups.erase(large_end, groups.end());
  add_variants(board, std::move(groups));
  const Rational dispatches = board.found.count("dispatches");
  bool fused = false;
  // More dispatches: a fusion is lost rather than gained; both may be there.
  const bool lost_first = dispatches >= none;
  for (const bool lost : {lost_first, !lost_first}) {
    fused = find_fusion(board, lost, fusion_by_name) || fused;
  }
  if (!fused && dispatches != none) {
    fused = find_fusion(board, dispatches > none, fusion_by_number);
  }
  std::erase_if(small,
                [&](const Moves& group) { return !board.free("kernel " + group.front()->name); });
  add_variants(board, std::move(small));
  add_variants(board, exchanged(Open(board)));
  const Open rest(board);
  add_works(board, rest.up, true);
  add_works(board, rest.down, false);
}

}  // namespace weir::explain
