// Work that left the device for the CPU, or came back.
//
// Where a probe sees ops they say so themselves. Where none does, dispatches that are gone while
// waits, splits or copies are new say it: something has to be waited for and brought over.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/explain/patterns.hpp"

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

// Many kinds of kernels run less often and hardly one more often.
bool broad_fall(const std::vector<Move>& kernels, bool falls) {
  double went = 0, came = 0;
  std::set<std::string> kinds;
  bool product = false;
  for (const Move& move : kernels) {
    if (move.up() == falls) {
      came += std::fabs(move.delta().value());
      continue;
    }
    went += std::fabs(move.delta().value());
    kinds.insert(move.parsed.base());
    for (const std::string& word : move.parsed.words) {
      product = product || word.find("mat") != std::string::npos || word == "gemv" ||
                word == "gemm" || word == "mv" || word == "mm";
    }
  }
  return product && kinds.size() >= 4 && came * 4 < went;
}

std::vector<KernelName> names_in(const Moves& moves) {
  std::vector<KernelName> names;
  for (const Move* move : moves) names.push_back(move->parsed);
  return names;
}

// Others do its work now: its parts, or a variant of it.
bool replaced(const Move& move, const std::vector<KernelName>& others) {
  if (!parts_of(move.parsed, others).empty()) return true;
  return std::any_of(others.begin(), others.end(),
                     [&](const KernelName& other) { return same_work(move.parsed, other); });
}

// The kernels that went with the work: those that run less often on the device it left, but for
// those that others took the place of.
Moves went_along(const Board& board, bool to_cpu) {
  constexpr std::size_t k_most_pairs = 1'000'000;
  Moves went = of_sign(board.found.kernels, !to_cpu);
  const Moves came = of_sign(board.found.kernels, to_cpu);
  if (went.size() * came.size() > k_most_pairs) return went;
  const std::vector<KernelName> others = names_in(came);
  const auto names = names_in(went);
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

// A kernel is gone (or new) altogether, no other kernel took its place, and hardly one came.
bool plain_removal(const Board& board, bool to_cpu) {
  const Moves went = of_sign(board.found.kernels, !to_cpu);
  if (went_along(board, to_cpu).size() != went.size()) return false;
  double gone = 0, came = 0;
  bool whole = false;
  for (const Move& move : board.found.kernels) {
    (move.up() == to_cpu ? came : gone) += std::fabs(move.delta().value());
    if (move.up() == to_cpu) continue;
    whole = whole || (to_cpu ? move.after : move.before) == Rational(0);
  }
  return whole && came * 4 < gone;
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
  const Rational dispatches = board.found.count("dispatches");
  if (dispatches == none) return std::nullopt;
  const bool to_cpu = dispatches < none;
  int signs = 0;
  for (const char* base : {"syncs", "splits", "copies", "backend_syncs", "tensor_copies"}) {
    const Rational delta = board.found.count(base);
    if (delta == none) continue;
    signs += (delta > none) == to_cpu ? 1 : -1;
  }
  // A wait or copy more says little beside kernels that have names: these have to say it too.
  const bool named = board.evidence.kernels_known && !board.found.kernels.empty();
  if (named && !broad_fall(board.found.kernels, to_cpu) && !plain_removal(board, to_cpu)) {
    return std::nullopt;
  }
  if (signs > 0) {
    return Moved{to_cpu,
                 {},
                 to_cpu ? "Dispatches are gone while waits, splits or copies are new."
                        : "Dispatches are new while waits, splits or copies are gone.",
                 true};
  }
  if (signs == 0 && broad_fall(board.found.kernels, to_cpu)) {
    return Moved{to_cpu,
                 {},
                 to_cpu ? "Kernels of all kinds run less often: the CPU does their work, or nobody."
                        : "Kernels of all kinds run more often: the CPU did their work, or nobody.",
                 true};
  }
  return std::nullopt;
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
  about(board, board.found.count("cpu_ops") != Rational(0) ? "cpu_ops" : "dispatches", finding);
  finding.headline = headline(*moved, board.evidence.scope);
  if (!moved->evidence.empty()) finding.lines.push_back(moved->evidence);
  arithmetic(board, amounts_moved(board, *moved), finding);
  for (const Move* op : moved->ops) finding.ops.push_back(op->name);
  const Moves kernels = went_along(board, moved->to_cpu);
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
