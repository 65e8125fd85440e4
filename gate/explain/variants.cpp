// The same work by other kernels.
#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {
namespace {

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

}  // namespace

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

std::vector<Moves> take_out(std::vector<Moves>& groups, bool (*is)(const Moves&)) {
  const auto rest = std::ranges::stable_partition(groups, std::not_fn(is));
  std::vector<Moves> taken(rest.begin(), rest.end());
  groups.erase(rest.begin(), rest.end());
  return taken;
}

bool only_tuned(const Moves& group) {
  std::map<std::string, Moves> alike;
  for (const Move* move : group) {
    alike[profile::untuned_name(move->name)].push_back(move);
  }
  return std::ranges::all_of(alike, [](const auto& one) { return sum_of(one.second) == k_none; });
}

bool is_switched(const Moves& group) {
  const auto on = [](const Move* move) {
    const std::string name = profile::untuned_name(move->name);
    return std::ranges::count(text::split(name, ','), "true");
  };
  const auto [least, most] = std::ranges::minmax(group, {}, on);
  return on(least) != on(most);
}

void add_variants(Board& board, std::vector<Moves> groups, int rank) {
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

void add_exchanged_kinds(Board& board) {
  std::vector<Moves> groups = exchanged_kinds(Open(board));
  std::vector<Moves> renamed = take_out(groups, only_renamed);
  add_variants(board, std::move(groups));
  add_variants(board, std::move(renamed), board.found.count("dispatches") == k_none ? 1 : 2);
}

}  // namespace weir::explain
