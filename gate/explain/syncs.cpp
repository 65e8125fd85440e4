// Waits of the CPU for the device: by layer, or not.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

constexpr double k_sync_units = 10;  // a wait empties the device: about what ten dispatches cost

std::string in_layers(const Fit& fit, std::int64_t each) {
  const std::string often = std::abs(each) == 1   ? "once"
                            : std::abs(each) == 2 ? "twice"
                                                  : fmt::format("{} times", std::abs(each));
  const std::string expert =
      fit.set.times > 1 ? fmt::format(" for each of {} experts", fit.set.times) : "";
  if (fit.set.tensors.empty()) return often + expert + " in each layer";
  return fmt::format("{}{} in each layer that has {}", often, expert, safe(fit.set.tensors));
}

// What the other layers tell: where not to look.
std::string where_to_look(const Board& board, const Fit& fit) {
  const auto rest = board.model->layers - static_cast<std::int64_t>(fit.set.layers.size());
  if (rest <= 0) return "what every layer does between its first and its last kernel.";
  return fmt::format("what those layers do that the other {} do{} not.", rest,
                     rest == 1 ? "es" : "");
}

void per_layer(Board& board, const std::vector<Amount>& amounts, const Fit& fit, Finding finding) {
  const Term* term = fit.term(0);
  finding.kind = to_string(Kind::sync_per_layer);
  finding.headline =
      fmt::format("A CPU step came in between GPU steps, {}.", in_layers(fit, term->each));
  finding.cause =
      "a split or copy moved from a kernel to the CPU, which has to wait for the GPU before and "
      "after.";
  finding.look_at = where_to_look(board, fit);
  board.take("syncs");
  double units = k_sync_units * std::fabs(amounts.front().delta.value());
  for (const Term& one : fit.terms) {
    if (one.amount == 0) continue;
    board.take(amounts[one.amount].name);
    units += std::fabs(amounts[one.amount].delta.value());
  }
  board.add(std::move(finding), units);
  add_also(board, amounts, fit);
}

// Which count tells waits here: the device's own, or else the engine's.
std::string sync_base(const Board& board) {
  return metric_name(board.evidence, "syncs").empty() ? "backend_syncs" : "syncs";
}

}  // namespace

void find_syncs(Board& board) {
  const std::string base = sync_base(board);
  const Rational delta = board.open(base);
  if (delta == Rational(0)) return;
  Finding finding;
  about(board, base, finding);
  std::vector<std::string> bases = {base};
  // What kernels explain they explain better.
  if (board.found.kernels.empty()) bases.emplace_back("dispatches");
  for (const char* other : {"barriers", "copies", "submits"}) {
    if (board.open(other) != Rational(0)) bases.emplace_back(other);
  }
  const std::vector<Amount> amounts = amounts_of(board, bases);
  if (delta > Rational(0)) {
    const auto fit = arithmetic(board, amounts, finding);
    if (fit && fit->chance <= k_by_chance && fit->set.size() >= 2 && base == "syncs" &&
        fit->term(0)->rest == 0) {
      return per_layer(board, amounts, *fit, std::move(finding));
    }
    finding.lines.clear();
    finding.layers.clear();
    finding.tensors.clear();
    finding.per_layer.reset();
  }
  finding.kind = to_string(delta > Rational(0) ? Kind::sync_added : Kind::sync_removed);
  arithmetic(board, amounts_of(board, {base}), finding);
  const std::string per = per_words(board.evidence.scope);
  finding.headline = delta > Rational(0) ? fmt::format("The CPU waits for the GPU more often{}{}.",
                                                       per.empty() ? "" : " in ", per)
                                         : fmt::format("The CPU waits for the GPU less often{}{}.",
                                                       per.empty() ? "" : " in ", per);
  if (delta > Rational(0)) {
    finding.cause = "results read back or written in between, or work no longer sent ahead.";
    finding.look_at = "what runs between two submissions: a read, a copy to the host, a log.";
  }
  const double units = k_sync_units * std::fabs(delta.value());
  board.take(base);
  board.take("backend_syncs");
  board.add(std::move(finding), units);
}

}  // namespace weir::explain
