// What changed among kernels, by their names and numbers: variants, fusions, pieces of work, and
// work added or removed.
#include <map>
#include <string>
#include <vector>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// The kernels that changed and are not explained yet.
struct Open {
  Moves up, down;

  explicit Open(const Board& board)
      : up(one_way(board.found.kernels, true)), down(one_way(board.found.kernels, false)) {
    leave_out([&](const Move* move) { return !board.free(*move); });
  }

  template <class Is>
  void leave_out(const Is& is) {
    for (Moves* side : {&up, &down}) std::erase_if(*side, is);
  }
};

// Each name is compared with each: engines have some hundreds of kernels, a file from strangers may
// have a million.
bool too_many_names(const Open& open) { return open.up.size() + open.down.size() > 2000; }

Moves joined(Moves a, const Moves& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// How many more, or how many fewer: what is greater.
double units_of(const Moves& moves) {
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

// Kernels that do the same work (same_work), by the words of their names, where they have any.
std::map<std::vector<std::string>, Moves> by_work(const Moves& moves) {
  std::map<std::vector<std::string>, Moves> kinds;
  for (const Move* move : moves) {
    if (!move->parsed.words.empty()) kinds[move->parsed.words].push_back(move);
  }
  return kinds;
}

// The largest first, variants of one kernel taken together.
void by_size(Moves& moves) {
  std::map<std::string, double> sums;
  for (const Move* move : moves) sums[move->parsed.base()] += move->size();
  std::ranges::stable_sort(moves, {}, [&](const Move* move) {
    const std::string base = move->parsed.base();
    return std::tuple(-sums[base], base, -move->size());
  });
}

bool is_small(const Move* move) { return small_work(move->parsed); }

bool is_nameless(const Move* move) { return has_no_name(move->name); }

// One name has all words of the other.
bool extends(const Move* a, const Move* b) {
  const auto& more =
      a->parsed.words.size() > b->parsed.words.size() ? a->parsed.words : b->parsed.words;
  const auto& less = &more == &a->parsed.words ? b->parsed.words : a->parsed.words;
  return !less.empty() &&
         std::ranges::all_of(less, [&](const std::string& word) { return holds(more, word); });
}

// "a, b and c".
std::string joined_names(const Moves& moves) {
  std::vector<std::string> names;
  for (const Move* move : moves) {
    const std::string name = safe(move->work());
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

// Adds a finding that names these kernels and explains them, and how many dispatches there are.
void add_dispatched(Board& board, Finding finding, const Moves& kernels, double units) {
  name_ops(kernels, finding);
  board.take(kernels);
  board.take("dispatches");
  board.add(std::move(finding), units);
}

// --- the same work by other kernels -------------------------------------------------------------

// Many of the kernels without names that ran before are gone: another build of the shaders.
bool built_anew(const Board& board, const Moves& gone) {
  std::set<std::string> names;
  for (const Work& work : board.evidence.before.works) {
    if (has_no_name(work.name)) names.insert(work.name);
  }
  return gone.size() >= 2 && gone.size() * 3 >= names.size();
}

// What came for what went, among kernels without names: all of it, where it adds up to nothing.
Moves replaced(const Board& board, bool one_by_one) {
  Open open(board);
  open.leave_out(std::not_fn(is_nameless));
  if (open.up.empty() || open.down.empty()) return {};
  const Moves all = joined(open.down, open.up);
  if (sum_of(all) == k_none) return all;
  if (!one_by_one) return {};
  // What runs on both sides, more or less often, is the same code.
  open.leave_out([](const Move* one) { return one->before != k_none && one->after != k_none; });
  std::multimap<double, const Move*> came;
  for (const Move* up : open.up) came.emplace(up->size(), up);
  Moves pairs;
  std::set<double> sizes;
  for (const Move* down : open.down) {
    const auto found = came.find(down->size());
    if (found == came.end()) continue;
    pairs.insert(pairs.end(), {down, found->second});
    sizes.insert(down->size());
    came.erase(found);
  }
  // That several run just as often as others did is no chance.
  const bool each =
      pairs.size() == 2 * open.down.size() && open.down.size() >= 3 && sizes.size() >= 2;
  return each || built_anew(board, open.down) ? pairs : Moves{};
}

// Known to tell of the same work.
bool same_works(const Move* a, const Move* b) {
  return !a->parsed.works.empty() && a->parsed.works == b->parsed.works;
}

// Names that begin alike, or that are known to tell of the same work.
bool alike(const Move* a, const Move* b) {
  const auto& left = a->parsed.words;
  const auto& right = b->parsed.words;
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(left, right).in1 - left.begin());
  return (same > 0 && same * 2 >= std::max(left.size(), right.size())) || same_works(a, b);
}

// Where several kinds could be meant, none is.
std::vector<Moves> exchanged_kinds(Open open) {
  struct Kind {
    Moves moves;
    double sum = 0;
    bool small = false;
    std::vector<std::size_t> fits{};
  };
  // Whatever they are called: nothing else changed, and one is gone where the other is new.
  const bool only = open.up.size() == 1 && open.down.size() == 1 &&
                    open.up.front()->before == k_none && open.down.front()->after == k_none;
  open.leave_out(is_nameless);
  std::vector<Kind> kinds;
  for (auto& [words, moves] : by_work(joined(open.up, open.down))) {
    const double sum = sum_of(moves).value();
    const bool small = is_small(moves.front());
    if (sum != 0) kinds.push_back({moves, sum, small});
  }
  std::vector<Moves> groups;
  if (kinds.size() > 1000) return groups;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    for (std::size_t k = i + 1; k < kinds.size(); ++k) {
      Kind &one = kinds[i], &other = kinds[k];
      const bool small = one.small || other.small;
      const double rest = std::fabs(one.sum + other.sum);
      // One of many matmuls may become part of something else.
      const bool as_often =
          one.sum * other.sum < 0 && (small ? rest == 0 : rest * 20 <= std::fabs(one.sum));
      if (!as_often) continue;
      const Move *a = one.moves.front(), *b = other.moves.front();
      // Of small kernels a longer name is another, fused one.
      const bool any_name = only && rest == 0;
      if (!any_name && !(small ? same_works(a, b) : alike(a, b))) continue;
      one.fits.push_back(k);
      other.fits.push_back(i);
    }
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Kind& one = kinds[i];
    if (one.fits.size() != 1 || one.fits.front() < i) continue;
    const Kind& other = kinds[one.fits.front()];
    if (other.fits.size() == 1) groups.push_back(joined(one.moves, other.moves));
  }
  return groups;
}

// A word more or less in a name moves no dispatch.
bool only_renamed(const Moves& group) {
  const Move *a = group.front(), *b = group.back();
  return extends(a, b) && std::abs(std::ssize(a->parsed.words) - std::ssize(b->parsed.words)) <= 1;
}

// Kernels without names came for others, as often: all of them, or `one_by_one`.
void add_replaced(Board& board, bool one_by_one) {
  const Moves all = replaced(board, one_by_one);
  if (all.empty()) return;
  Finding finding = finding_of(kind::variant_changed, metric_name(board.evidence, "dispatches"));
  const auto came = std::ranges::count_if(all, &Move::up);
  finding.headline =
      came == 1 ? std::string("A kernel without a name was replaced by another, as often.")
                : fmt::format("{} kernels without names were replaced by others, as often.", came);
  finding.lines.push_back(move_words(all, 6));
  name_ops(all, finding);
  finding.cause = "their code was changed or compiled anew, or another variant was chosen.";
  finding.look_at = "weir kernels, which shows the code of a recorded kernel.";
  board.take(all);
  // The work is the same.
  board.add(std::move(finding), 0.5, board.found.only_works() ? 1 : 3);
}

// Kernels of one kind of work whose changes add up to nothing: none came, none went.
std::vector<Moves> swapped(const Open& open) {
  auto kinds = by_work(joined(open.up, open.down));
  std::vector<Moves> groups;
  for (const Move* first : open.down) {
    const auto group = kinds.extract(first->parsed.words);
    if (!group.empty() && group.mapped().size() >= 2 && sum_of(group.mapped()) == k_none) {
      groups.push_back(group.mapped());
    }
  }
  return groups;
}

// Those for which `is` holds, no longer among the others.
std::vector<Moves> take_out(std::vector<Moves>& groups, bool (*is)(const Moves&)) {
  const auto rest = std::ranges::stable_partition(groups, std::not_fn(is));
  std::vector<Moves> taken(rest.begin(), rest.end());
  groups.erase(rest.begin(), rest.end());
  return taken;
}

// By their names only the sizes of the work's pieces differ.
bool only_tuned(const Moves& group) {
  std::map<std::string, Moves> alike;
  for (const Move* move : group) {
    alike[profile::untuned_name(move->name)].push_back(move);
  }
  return std::ranges::all_of(alike, [](const auto& one) { return sum_of(one.second) == k_none; });
}

// Other template arguments are on: "<64, true>" for "<64, false>".
bool is_switched(const Moves& group) {
  const auto on = [](const Move* move) {
    const std::string name = profile::untuned_name(move->name);
    return std::ranges::count(text::split(name, ','), "true");
  };
  const auto [least, most] = std::ranges::minmax(group, {}, on);
  return on(least) != on(most);
}

void add_variants(Board& board, std::vector<Moves> groups, int rank = 1) {
  if (groups.empty()) return;
  std::ranges::stable_sort(groups, std::greater(), units_of);
  Finding finding = finding_of(kind::variant_changed, metric_name(board.evidence, "dispatches"));
  // What came of a group: kinds that run more often, or of one kind the variants that do.
  const auto kinds = by_work(groups.front());
  Moves came = groups.front();
  std::erase_if(came, [&](const Move* move) {
    return !move->up() || (kinds.size() > 1 && sum_of(kinds.at(move->parsed.words)) < k_none);
  });
  if (came.empty()) came = groups.front();
  const Move* first = came.front();
  const bool cpu = board.evidence.device == "cpu";
  const bool same_op = cpu && kinds.size() == 1 && !profile::op_of(first->name).empty();
  const std::string often = times_words(sum_of(came), board.evidence.scope);
  finding.headline =
      same_op ? fmt::format("{} has other types or shapes, {}.", safe(first->work()), often)
              : fmt::format("Another {} does the same work: {}, {}.", cpu ? "op" : "kernel",
                            safe(first->work()), often);
  double units = 0;
  for (const Moves& group : groups) {
    board.take(group);
    name_ops(group, finding);
    units += units_of(group);
    finding.lines.push_back(move_words(group, 4));
  }
  std::vector<std::string> lines = std::exchange(finding.lines, {});
  if (arithmetic(board, {{safe(first->name), first->delta()}}, finding)) {
    lines.push_back(finding.lines.front());
  } else {
    finding.numbers.clear();
  }
  finding.lines = std::move(lines);
  if (cpu) {
    finding.cause = "a setting of the cache or of attention, or the types of tensors.";
    finding.look_at = "the engine's arguments and defaults.";
  } else {
    finding.cause =
        "the device reports other features, a switch turned a path off, or the choice by shape, "
        "alignment or type changed.";
    finding.look_at = "how the kernel is chosen, and what the device reported.";
  }
  board.add(std::move(finding), units, rank);
}

// Kinds of kernels that do the same work, one for the other as often, whatever their variants.
void add_exchanged_kinds(Board& board) {
  std::vector<Moves> groups = exchanged_kinds(Open(board));
  std::vector<Moves> renamed = take_out(groups, only_renamed);
  add_variants(board, std::move(groups));
  add_variants(board, std::move(renamed), board.found.count("dispatches") == k_none ? 1 : 2);
}

// --- kernels that were one and run apart, or the other way round --------------------------------

struct Fusion {
  Moves joined, parts;
  bool by_number = false;  // no name says so
  Moves helpers{};         // came or went with the joined ones, whose results they finish
};

// Those of `more` that `list` does not have yet.
void add_once(Moves& list, const Moves& more) {
  std::set<const Move*> seen(list.begin(), list.end());
  for (const Move* move : more) {
    if (seen.insert(move).second) list.push_back(move);
  }
}

// Kernels on one side whose names say that they do what those on the other side do.
Fusion fusion_by_name(const Moves& joined_side, const Moves& parts_side) {
  Fusion fusion;
  const std::vector<KernelName> names = names_in(parts_side);
  Moves all;
  for (const Move* one : joined_side) {
    const auto parts = parts_of(one->parsed, names);
    if (!parts.empty()) fusion.joined.push_back(one);
    for (const std::size_t part : parts) all.push_back(parts_side[part]);
  }
  add_once(fusion.parts, all);
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
  const double often = units_of(joined_side);
  Moves parts = parts_side;
  std::erase_if(parts, [&](const Move* move) { return !(move->size() <= often); });
  const bool more = often < units_of(parts) && kinds_of(parts) >= kinds_of(joined_side);
  // Large ones are parts of another where each runs exactly as often as that one did.
  const bool as_often =
      std::ranges::all_of(parts, [&](const Move* part) { return !(part->size() < often); });
  const bool likely = as_often || std::ranges::any_of(parts, is_small);
  // Shaders without names that run elsewhere as before: there is less to do.
  const auto still = std::ranges::count_if(parts, [](const Move* part) {
    return is_nameless(part) && part->before != k_none && part->after != k_none;
  });
  if (2 * still > std::ssize(parts)) return {};
  if (kinds_of(parts) < 2 || !more || !likely) return {};
  return {joined_side, std::move(parts), true};
}

std::string fusion_headline(const Board& board, const Fusion& fusion, bool lost) {
  const Move* whole = fusion.joined.front();
  Moves parts;
  for (const std::size_t part : parts_of(whole->parsed, names_in(fusion.parts))) {
    parts.push_back(fusion.parts[part]);
  }
  // The plain form of a joined kernel is no part of one.
  const auto is_plain = [&](const Move* part) {
    return std::ranges::any_of(
        fusion.joined, [&](const Move* one) { return same_work(part->parsed, one->parsed); });
  };
  const bool named = !parts.empty();
  for (const Move* part : fusion.parts) {
    if (named || parts.size() == 3) break;
    if (!is_plain(part)) parts.push_back(part);
  }
  const auto times_among = [&](Moves moves) {
    std::erase_if(moves, [&](const Move* one) { return !same_work(one->parsed, whole->parsed); });
    return times_words(sum_of(moves), board.evidence.scope);
  };
  const std::string often = times_among(fusion.joined);
  const std::string name = safe(whole->work());
  const char* seems = fusion.by_number ? " seems" : "";
  if (parts.empty()) {
    const std::string plainly = times_among(fusion.parts);
    return fmt::format("Fusion{} {}: {} runs {} where it ran {}.", seems, lost ? "lost" : "gained",
                       name, lost ? plainly : often, lost ? often : plainly);
  }
  const std::string names = joined_names(parts);
  const char* one = board.evidence.device == "cpu" ? "op" : "kernel";
  return lost ? fmt::format("Fusion{} lost: {} ran as one {} {}; now {} run{} apart.", seems, name,
                            one, often, names, parts.size() == 1 ? "s" : "")
              : fmt::format("Fusion{} gained: {} runs as one {} {}, where {} ran.", seems, name,
                            one, often, names);
}

// llama.cpp's "fa_split_k_reduce", which sums up what its attention computed in pieces.
Moves helpers_of(const Moves& joined_kernels, Moves candidates) {
  const bool attention = std::ranges::any_of(joined_kernels, [](const Move* one) {
    return large_work(one->parsed) && !is_product(one->parsed);
  });
  std::erase_if(candidates,
                [&](const Move* one) { return !attention || !finishes_attention(one->parsed); });
  return candidates;
}

void add_fusion(Board& board, Fusion fusion, bool lost) {
  Finding finding = board.about(lost ? kind::fusion_lost : kind::fusion_gained, "dispatches");
  finding.headline = fusion_headline(board, fusion, lost);
  finding.lines = {move_words(joined(fusion.joined, fusion.helpers), 4),
                   move_words(fusion.parts, 6)};
  const Moves all = joined(fusion.joined, fusion.parts);
  std::vector<Amount> amounts = amounts_of(board, {"dispatches", "barriers"});
  if (board.found.count("dispatches") == k_none) {
    amounts.insert(amounts.begin(), {safe(all.front()->name), all.front()->delta()});
  }
  arithmetic(board, amounts, finding);
  if (lost) {
    finding.cause =
        "a switch, a changed order of ops or a new shape or type keeps the pattern from matching.";
    finding.look_at = "the fusion's conditions, and environment variables that turn it off.";
  }
  // What it costs or saves: dispatches.
  const double units = std::max(1.0, size_of(sum_of(all))) + units_of(fusion.helpers);
  add_dispatched(board, std::move(finding), joined(all, fusion.helpers), units);
}

enum class FusionBy { name, number };
// Kernels that ran as one and run apart (`lost`), or the other way round; false where there are
// none.
bool find_fusion(Board& board, const Open& open, bool lost, FusionBy by) {
  Moves joined_side = lost ? open.down : open.up;
  Moves parts_side = lost ? open.up : open.down;
  Fusion fusion = by == FusionBy::name ? fusion_by_name(joined_side, parts_side)
                                       : fusion_by_number(joined_side, parts_side);
  if (fusion.joined.empty() || fusion.parts.empty()) return false;
  fusion.helpers = helpers_of(fusion.joined, joined_side);
  // The rest of it: small kernels whose joined ones do not show it in their names.
  for (Moves* side : {&joined_side, &parts_side}) std::erase_if(*side, std::not_fn(is_small));
  for (Moves* side : {&fusion.joined, &fusion.parts, &joined_side, &parts_side}) by_size(*side);
  add_once(fusion.parts, parts_side);
  add_once(fusion.joined, joined_side);
  add_fusion(board, std::move(fusion), lost);
  return true;
}

// Nearly every kernel is another, and they are many more or many fewer: a compiler that joins ops
// does not, or does, any more.
bool add_compiled_otherwise(Board& board) {
  const auto totals = exact_counts(board.evidence, "dispatches");
  const Open open(board);
  const bool lost = totals && totals->after > totals->before;
  Moves gone = open.down, came = open.up;
  std::erase_if(gone, [](const Move* move) { return move->after != k_none; });
  std::erase_if(came, [](const Move* move) { return move->before != k_none; });
  const double nearly_all = 0.9, many = 1.5;
  if (!totals || totals->before <= k_none || totals->after <= k_none || gone.size() < 4 ||
      came.size() < 4 || -sum_of(gone).value() < nearly_all * totals->before.value() ||
      sum_of(came).value() < nearly_all * totals->after.value() ||
      std::max(totals->before.value() / totals->after.value(),
               totals->after.value() / totals->before.value()) < many) {
    return false;
  }
  Finding finding = board.about(lost ? kind::fusion_lost : kind::fusion_gained, "dispatches");
  finding.headline =
      fmt::format("Fusion seems {}: nearly every kernel is another, and {} run{} where {} ran.",
                  lost ? "lost" : "gained", totals->after.str(), board.per(), totals->before.str());
  finding.lines = {fmt::format("{} kernels are gone, {} are new", gone.size(), came.size())};
  arithmetic(board, amounts_of(board, {"dispatches", "barriers"}), finding);
  add_dispatched(board, std::move(finding), joined(gone, came),
                 size_of(board.found.count("dispatches")));
  return true;
}

// Several calls of one kernel for each of another that is named by more words (gemv_qkv for three
// gemv), or the other way round.
void add_merged(Board& board, bool lost) {
  const Open open(board);
  if (too_many_names(open)) return;
  for (const Move* whole : lost ? open.down : open.up) {
    for (const Move* part : lost ? open.up : open.down) {
      const double times = part->size() / whole->size();
      if (times < 2 || times != std::floor(times) || !extends(whole, part)) continue;
      return add_fusion(board, {{whole}, {part}, true}, lost);
    }
  }
}

// --- work in pieces, added or removed -----------------------------------------------------------

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
