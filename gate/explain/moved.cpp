// Work that left the device for the CPU, or came back.
//
// Where a probe sees ops they say so themselves. Where none does, dispatches that are gone while
// waits, splits or copies are new say it: something has to be waited for and brought over. What
// names and numbers of kernels say is told apart from work that other kernels do now.

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// `to_cpu`, in all that follows: the work left the device; else it came back, and all is the other
// way round.

// How much went and how much came.
struct Balance {
  double went = 0, came = 0;

  void add(double delta, bool to_cpu) {
    if ((delta > 0) == to_cpu) {
      came += std::fabs(delta);
    } else {
      went += std::fabs(delta);
    }
  }
  [[nodiscard]] bool fell() const { return went > 0 && came * 4 < went; }
  [[nodiscard]] bool still() const { return went <= 0 && came <= 0; }
};

// After what is the same work is added up.
Balance balance_of(const std::map<std::string, double>& sums, bool to_cpu) {
  Balance balance;
  for (const auto& [what, sum] : sums) balance.add(sum, to_cpu);
  return balance;
}

Balance balance_of(const std::vector<Move>& kernels, bool to_cpu) {
  Balance balance;
  for (const Move& move : kernels) balance.add(move.delta().value(), to_cpu);
  return balance;
}

// Others do its work now: its parts, or a variant of it.
bool replaced(const Move& move, const std::vector<KernelName>& others) {
  return !parts_of(move.parsed, others).empty() ||
         std::ranges::any_of(
             others, [&](const KernelName& other) { return same_work(move.parsed, other); });
}

// Where memory is shared nothing is copied; but a step on the CPU cuts what was sent together, and
// each piece goes with some submissions of its own. A wait that someone added does not.
bool cut_up(const Differences& found, bool to_cpu) {
  const double sign = to_cpu ? 1 : -1;
  const double syncs = sign * found.count("syncs").value();
  return syncs >= 2 && sign * found.count("submits").value() >= 2 * syncs;
}

// Many kinds of kernels run less often, products among them, and hardly one more often; some of
// them still run, as other layers do. Of kernels without names nobody knows which are products.
bool broad_fall(const std::vector<Move>& kernels, bool to_cpu) {
  std::set<std::string> kinds;
  bool product = false, some_still = false;
  for (const Move* move : one_way(kernels, !to_cpu)) {
    const bool nameless = has_no_name(move->name);
    const bool runs_still = move->before != k_none && move->after != k_none;
    if (nameless && !runs_still) continue;
    some_still = some_still || runs_still;
    kinds.insert(nameless ? move->name : move->parsed.base());
    product = product || nameless || is_product(move->parsed);
  }
  return product && some_still && kinds.size() >= 4 && balance_of(kernels, to_cpu).fell();
}

// The kernels that run less often, but for those that others took the place of.
Moves went_along(const std::vector<Move>& kernels, bool to_cpu) {
  constexpr std::size_t k_most_pairs = 1'000'000;
  Moves went = one_way(kernels, !to_cpu);
  const Moves came = one_way(kernels, to_cpu);
  if (went.size() * came.size() > k_most_pairs) return went;
  const std::vector<KernelName> others = names_in(came), names = names_in(went);
  std::set<std::size_t> parts;
  for (const KernelName& other : others) {
    for (const std::size_t part : parts_of(other, names)) parts.insert(part);
  }
  Moves list;
  for (std::size_t i = 0; i < went.size(); ++i) {
    if (!parts.contains(i) && !replaced(*went[i], others)) list.push_back(went[i]);
  }
  return list;
}

// A kernel is gone altogether, no other kernel took its place, and hardly one came.
bool plain_removal(const std::vector<Move>& kernels, bool to_cpu) {
  const Moves went = one_way(kernels, !to_cpu);
  if (went_along(kernels, to_cpu).size() != went.size()) return false;
  const bool whole = std::ranges::any_of(
      went, [&](const Move* move) { return (to_cpu ? move->after : move->before) == k_none; });
  return whole && balance_of(kernels, to_cpu).fell();
}

// Data crosses between the device and the CPU more often, and work is missing on the device.
//
// A step on the CPU is waited for; where memory is not shared, what it needs is copied down. A sum
// of dispatches tells little here, as fusions around the step come apart and others come about. So:
// fewer products and attentions, with hardly any new, whatever small kernels do beside them. Where
// these are as before, the small ones' own words have to fall with hardly one rising ("rope" moves
// from rope_set_rows to rope, "set" and "rows" are gone), and copies or many submissions have to be
// seen as well: a wait alone may be anyone's.
bool step_in_between(const Differences& found, bool to_cpu) {
  const Rational syncs = found.count("syncs"), copies = found.count("copies");
  if (syncs == k_none || (syncs > k_none) != to_cpu) return false;
  if (copies != k_none && (copies > k_none) != to_cpu) return false;
  std::map<std::string, double> large, words;
  for (const Move& move : found.kernels) {
    const double delta = move.delta().value();
    if (large_work(move.parsed)) large[move.parsed.base()] += delta;
    for (const std::string& word : move.parsed.words) words[word] += delta;
  }
  const Balance of_large = balance_of(large, to_cpu);
  if (!of_large.still()) return of_large.fell();
  return balance_of(words, to_cpu).fell() && (copies != k_none || cut_up(found, to_cpu));
}

struct Moved {
  bool to_cpu = true;
  Moves ops{};                       // on the CPU
  std::vector<std::string> named{};  // those that the gate found there, where `ops` is empty
  std::string evidence{};            // how it is known, where ops are not
  bool seems = false;                // something else may be the reason
};

// The more work crosses between the device and the CPU, the more of these.
constexpr std::array k_crossings = {"syncs", "splits", "copies", "backend_syncs", "tensor_copies"};

// Ops that the CPU fuses run there less often, and nothing came to the device for it: it does less
// as well, and as much crosses. (An op that is new on the CPU may be anything.)
bool stayed(const Board& board, bool to_cpu) {
  if (to_cpu) return false;
  const auto goes = [&](const char* base) {
    return same_way(board.found.count(base), Rational(to_cpu ? 1 : -1));
  };
  const auto known = [&](const char* base) { return counted(board.evidence, base); };
  return goes("dispatches") && std::ranges::any_of(k_crossings, known) &&
         std::ranges::none_of(k_crossings, goes);
}

// Each graph has the same ops on the CPU as before: there are more graphs, or fewer.
bool follows_from_graphs(const Board& board) {
  const auto ops = exact_counts(board.evidence, "cpu_ops");
  const auto graphs = exact_counts(board.evidence, "graphs");
  if (!ops || !graphs || graphs->before == graphs->after) return false;
  if (graphs->before <= k_none || graphs->after <= k_none || ops->before <= k_none) return false;
  const auto is_other = [](const Move& op) { return op.before == k_none || op.after == k_none; };
  if (std::ranges::any_of(board.found.cpu_ops, is_other)) return false;
  const auto one = ops->before.times(graphs->after), other = ops->after.times(graphs->before);
  return one && other && *one == *other;
}

std::optional<Moved> by_ops(const Board& board) {
  if (follows_from_graphs(board)) return std::nullopt;
  const auto& ops = board.found.cpu_ops;
  Rational net;
  for (const Move& op : ops) net = net.plus(op.delta()).value_or(net);
  if (net == k_none) net = board.found.count("cpu_ops");
  if (net == k_none || stayed(board, net > k_none)) return std::nullopt;
  return Moved{net > k_none, one_way(ops, net > k_none)};
}

std::optional<Moved> by_counts(const Board& board) {
  const Evidence& evidence = board.evidence;
  const std::vector<Move>& kernels = board.found.kernels;
  const auto moved = [](bool to_cpu, bool seems, const char* went, const char* came) {
    return Moved{to_cpu, {}, {}, to_cpu ? went : came, seems};
  };
  const auto sums = exact_counts(evidence, "dispatches");
  if (sums && (sums->before == k_none) != (sums->after == k_none)) {
    return moved(sums->after == k_none, false, "The device gets no work at all any more.",
                 "The device got no work at all before.");
  }
  // Ops of both sides are known, and none moved.
  if (evidence.cpu_ops_known || evidence.graph_known) return std::nullopt;
  if (evidence.after.metrics.contains(metric_name(evidence, "cpu_ops"))) return std::nullopt;
  const bool named = evidence.kernels_known && !kernels.empty();
  for (const bool to_cpu : {true, false}) {
    if (!named || !step_in_between(board.found, to_cpu)) continue;
    return moved(
        to_cpu, true,
        "Kernels do less, and the CPU waits for the device more often: it does the rest in "
        "between.",
        "Kernels do more, and the CPU waits for the device less often: it did that in "
        "between.");
  }
  const Rational dispatches = board.found.count("dispatches");
  if (dispatches == k_none) return std::nullopt;
  const bool to_cpu = dispatches < k_none;
  const bool broad = broad_fall(kernels, to_cpu);
  // A wait or copy more says little beside kernels that have names: these have to say it too.
  if (named && !broad && !plain_removal(kernels, to_cpu)) return std::nullopt;
  int signs = 0;
  for (const char* base : k_crossings) {
    const Rational delta = board.found.count(base);
    if (delta != k_none) signs += same_way(delta, dispatches) ? -1 : 1;
  }
  if (signs > 0) {
    return moved(to_cpu, true, "Dispatches are gone while waits, splits or copies are new.",
                 "Dispatches are new while waits, splits or copies are gone.");
  }
  if (signs < 0 || !broad) return std::nullopt;
  return moved(to_cpu, true,
               "Kernels of all kinds run less often: the CPU does their work, or nobody.",
               "Kernels of all kinds run more often: the CPU did their work, or nobody.");
}

// With the ops that the gate found on the CPU, where the baseline does not say which were there.
std::optional<Moved> with_names(const Board& board, std::optional<Moved> moved) {
  const auto& gate = board.evidence.gate;
  if (!gate || gate->not_allowed.empty() || board.evidence.cpu_ops_known) return moved;
  if (!moved && !amounts_of(board, {"syncs", "splits", "copies", "dispatches"}).empty()) {
    moved = Moved{};
  }
  if (!moved || !moved->to_cpu || !moved->ops.empty()) return moved;
  moved->named.assign(gate->not_allowed.begin(), gate->not_allowed.end());
  moved->seems = false;
  return moved;
}

std::string headline(const Moved& moved, unit::Scope scope) {
  constexpr std::size_t k_shown = 3;
  const char* where = moved.to_cpu ? "to the CPU" : "to the GPU";
  if (moved.seems) return fmt::format("Work seems to have moved {}.", where);
  std::vector<std::string> what;
  for (const Move* op : std::span(moved.ops).first(std::min(moved.ops.size(), k_shown))) {
    what.push_back(safe(op->name) + " " +
                   times_words(op->delta(), what.empty() ? scope : unit::Scope::whole));
  }
  for (const std::string& op : moved.named) {
    if (what.size() < k_shown) what.push_back(safe(op));
  }
  const std::size_t more = moved.ops.size() + moved.named.size() - what.size();
  return fmt::format(
      "Work moved {}{}{}{}.", where, what.empty() ? "" : ": ", text::join(what),
      more > 0 ? fmt::format(" and {} more kind{}", more, more == 1 ? "" : "s") : "");
}

// What the move changed: ops by name, then counts. `kernels` went along; where others more than
// make up for these, the sum of dispatches tells nothing of the move.
std::vector<Amount> amounts_moved(const Board& board, const Moved& moved, const Moves& kernels) {
  std::vector<Amount> amounts = amounts_of(board, {"cpu_ops"});
  for (const Move* op : moved.ops) {
    if (amounts.size() >= 5) break;
    amounts.push_back({safe(op->name) + " on the CPU", op->delta()});
  }
  if (moved.ops.size() == 1 && amounts.size() == 2) amounts.erase(amounts.begin());
  std::vector<std::string> bases = {"syncs", "splits", "copies"};
  const double went = sum_of(kernels).value(), sum = board.found.count("dispatches").value();
  if (went * sum >= 0) bases.emplace_back("dispatches");
  std::ranges::move(amounts_of(board, bases), std::back_inserter(amounts));
  return amounts;
}

}  // namespace

void find_moved(Board& board) {
  if (board.evidence.device == "cpu" || !board.free("moves")) return;
  auto moved = by_ops(board);
  if (!moved) moved = by_counts(board);
  moved = with_names(board, std::move(moved));
  if (!moved) return;
  const bool to_cpu = moved->to_cpu;
  const auto changed = [&](const char* base) { return board.found.count(base) != k_none; };
  Finding finding = board.about(to_cpu ? kind::work_moved_to_cpu : kind::work_moved_to_gpu,
                                changed("cpu_ops")      ? "cpu_ops"
                                : changed("dispatches") ? "dispatches"
                                                        : "syncs");
  finding.headline = headline(*moved, board.evidence.scope);
  if (!moved->evidence.empty()) finding.lines.push_back(moved->evidence);
  const Moves kernels = went_along(board.found.kernels, to_cpu);
  arithmetic(board, amounts_moved(board, *moved, kernels), finding);
  for (const Move* op : moved->ops) finding.ops.push_back(op->name);
  finding.ops.insert(finding.ops.end(), moved->named.begin(), moved->named.end());
  if (!kernels.empty()) {
    finding.lines.push_back(
        fmt::format("{} the device: {}", to_cpu ? "Gone from" : "New on", move_words(kernels)));
    for (const Move* kernel : kernels) finding.ops.push_back(kernel->name);
  }
  if (to_cpu) {
    finding.cause =
        "the backend lacks a kernel for this op, type or shape; weights or cache are kept on the "
        "host; fewer layers are offloaded.";
    finding.look_at = "the engine's log for buffers and fallbacks, and the op's supports check.";
  }
  double units = 0;
  for (const char* base :
       {"cpu_ops", "dispatches", "barriers", "syncs", "splits", "copies", "submits",
        "tensor_copies", "tensor_sets", "tensor_gets", "copied_bytes", "backend_syncs", "graphs"}) {
    if (base != std::string_view("copied_bytes")) units += size_of(board.open(base));
    board.take(base);
  }
  board.take(kernels);
  board.add(std::move(finding), units + 1, 0);
}

}  // namespace weir::explain
