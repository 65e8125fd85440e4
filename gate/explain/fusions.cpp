// Kernels that were one and run apart, or the other way round.
#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {
namespace {

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

}  // namespace

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

}  // namespace weir::explain
