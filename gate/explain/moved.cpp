// Work that left the device for the CPU, or came back.
//
// Where a probe sees ops they say so themselves. Where none does, dispatches that are gone while
// waits, splits or copies are new say it: something has to be waited for and brought over.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/explain/gone.hpp"

namespace weir::explain {
namespace {

const std::vector<std::string> k_follow = {
    "cpu_ops",      "dispatches",    "barriers",      "syncs",       "splits",
    "copies",       "submits",       "tensor_copies", "tensor_sets", "tensor_gets",
    "copied_bytes", "backend_syncs", "graphs"};

using Moves = std::vector<const Move*>;

struct Moved {
  bool to_cpu = true;
  Moves ops;             // on the CPU
  std::string evidence;  // how it is known, where ops are not
  bool seems = false;    // something else may be the reason
};

Rational sum_of(const std::vector<Move>& moves) {
  Rational sum(0);
  for (const Move& move : moves) sum = sum.plus(move.delta()).value_or(sum);
  return sum;
}

Moves of_sign(const std::vector<Move>& moves, bool up) {
  Moves list;
  for (const Move& move : moves) {
    if (move.up() == up) list.push_back(&move);
  }
  return list;
}

std::optional<Moved> by_ops(const Board& board) {
  const Rational listed = sum_of(board.found.cpu_ops);
  const Rational counted = board.found.count("cpu_ops");
  const Rational net = listed != Rational(0) ? listed : counted;
  if (net == Rational(0)) return std::nullopt;
  Moved moved;
  moved.to_cpu = net > Rational(0);
  moved.ops = of_sign(board.found.cpu_ops, moved.to_cpu);
  return moved;
}

Moved seems(bool to_cpu, std::string evidence) { return {to_cpu, {}, std::move(evidence), true}; }

std::string crossings(bool to_cpu) {
  return to_cpu ? "Dispatches are gone while waits, splits or copies are new."
                : "Dispatches are new while waits, splits or copies are gone.";
}

std::optional<Moved> by_counts(const Board& board) {
  const Rational none(0);
  const std::string name = metric_name(board.evidence, "dispatches");
  const auto before = exact_of(board.evidence.before, name);
  const auto after = exact_of(board.evidence.after, name);
  if (before && after && (*before == none) != (*after == none)) {
    return Moved{*after == none,
                 {},
                 *after == none ? "The device gets no work at all any more."
                                : "The device got no work at all before."};
  }
  // Ops of both sides are known, and none moved.
  if (board.evidence.cpu_ops_known || board.evidence.graph_known) return std::nullopt;
  if (board.evidence.after.metrics.contains(metric_name(board.evidence, "cpu_ops"))) {
    return std::nullopt;
  }
  const bool named = board.evidence.kernels_known && !board.found.kernels.empty();
  for (const bool to_cpu : {true, false}) {
    if (!named || !step_in_between(board.found, to_cpu)) continue;
    return seems(to_cpu, to_cpu ? "Kernels do less, and the CPU waits for the device more often: "
                                  "it does the rest in between."
                                : "Kernels do more, and the CPU waits for the device less often: "
                                  "it did that in between.");
  }
  const Rational dispatches = board.found.count("dispatches");
  if (dispatches == none) return std::nullopt;
  const bool to_cpu = dispatches < none;
  const bool broad = broad_fall(board.found.kernels, to_cpu);
  // A wait or copy more says little beside kernels that have names: these have to say it too.
  if (named && !broad && !plain_removal(board.found.kernels, to_cpu)) return std::nullopt;
  int signs = 0;
  for (const char* base : {"syncs", "splits", "copies", "backend_syncs", "tensor_copies"}) {
    const Rational delta = board.found.count(base);
    if (delta == none) continue;
    signs += (delta > none) == to_cpu ? 1 : -1;
  }
  if (signs > 0) return seems(to_cpu, crossings(to_cpu));
  if (signs < 0 || !broad) return std::nullopt;
  return seems(to_cpu, to_cpu ? "Kernels of all kinds run less often: the CPU does their work, or "
                                "nobody."
                              : "Kernels of all kinds run more often: the CPU did their work, or "
                                "nobody.");
}

std::string headline(const Moved& moved, unit::Scope scope) {
  std::string what;
  std::size_t shown = 0;
  for (const Move* op : moved.ops) {
    if (shown == 3) break;
    Rational times = op->delta();
    if (times < Rational(0)) times = Rational(0).minus(times).value_or(times);
    what += fmt::format("{}{} {}", shown == 0 ? ": " : ", ", safe(op->name),
                        times_words(times, shown == 0 ? scope : unit::Scope::whole));
    ++shown;
  }
  if (moved.ops.size() > shown) {
    what += fmt::format(" and {} more kind{}", moved.ops.size() - shown,
                        moved.ops.size() - shown == 1 ? "" : "s");
  }
  const char* where = moved.to_cpu ? "to the CPU" : "to the GPU";
  if (moved.seems) {
    return fmt::format("Work seems to have moved {}.", where);
  }
  return fmt::format("Work moved {}{}.", where, what);
}

// What the move changed: ops by name, then counts.
std::vector<Amount> amounts_moved(const Board& board, const Moved& moved) {
  std::vector<Amount> amounts = amounts_of(board, {"cpu_ops"});
  for (const Move* op : moved.ops) {
    if (amounts.size() >= 5) break;
    amounts.push_back({safe(op->name) + " on the CPU", op->delta()});
  }
  if (moved.ops.size() == 1 && amounts.size() == 2) amounts.erase(amounts.begin());
  for (Amount& amount : amounts_of(board, {"syncs", "splits", "copies", "dispatches"})) {
    amounts.push_back(std::move(amount));
  }
  return amounts;
}

}  // namespace

void find_moved(Board& board) {
  if (board.evidence.device == "cpu" || !board.free("moves")) return;
  auto moved = by_ops(board);
  if (!moved) moved = by_counts(board);
  if (!moved) return;
  Finding finding;
  finding.kind = to_string(moved->to_cpu ? Kind::work_moved_to_cpu : Kind::work_moved_to_gpu);
  for (const char* base : {"cpu_ops", "dispatches", "syncs"}) {
    about(board, base, finding);
    if (board.found.count(base) != Rational(0)) break;
  }
  finding.headline = headline(*moved, board.evidence.scope);
  if (!moved->evidence.empty()) finding.lines.push_back(moved->evidence);
  arithmetic(board, amounts_moved(board, *moved), finding);
  for (const Move* op : moved->ops) finding.ops.push_back(op->name);
  const Moves kernels = went_along(board.found.kernels, moved->to_cpu);
  if (!kernels.empty()) {
    finding.lines.push_back(fmt::format("{} the device: {}", moved->to_cpu ? "Gone from" : "New on",
                                        move_words(kernels)));
    for (const Move* kernel : kernels) finding.ops.push_back(kernel->name);
  }
  if (moved->to_cpu) {
    finding.cause =
        "the backend lacks a kernel for this op, type or shape; weights or cache are kept on the "
        "host; fewer layers are offloaded.";
    finding.look_at = "the engine's log for buffers and fallbacks, and the op's supports check.";
  }
  double units = 0;
  for (const std::string& base : k_follow) {
    units += base == "copied_bytes" ? 0 : std::fabs(board.open(base).value());
    board.take(base);
  }
  for (const Move* kernel : kernels) board.take("kernel " + kernel->name);
  board.add(std::move(finding), units + 1, 0);
}

}  // namespace weir::explain
