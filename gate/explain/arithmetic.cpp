// Amounts held against the model's layers, in lines.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

std::string count_words(std::string base) {
  std::replace(base.begin(), base.end(), '_', ' ');
  return base;
}

std::string amount_line(const Amount& amount, const Fit* fit, std::size_t index, bool first) {
  std::string line = fmt::format("{} {}", signed_text(amount.delta), amount.name);
  if (fit == nullptr) return line;
  const Term* term = fit->term(index);
  if (term == nullptr) return line;
  return line + " = " + term_words(*term, first ? fit->set.words : fit->set.short_words);
}

std::string surprise(const Fit& fit, std::size_t amounts) {
  const std::string fitting =
      amounts == 1 ? "The number fits these layers"
                   : fmt::format("{} of {} numbers fit these layers", fit.terms.size(), amounts);
  return fmt::format("{}: {}.", fitting, chance_words(fit.chance));
}

// Unlike the rest a fit says which layers, so it needs the finding's own number.
const Fit* fit_with_first(const std::vector<Fit>& list) {
  for (const Fit& fit : list) {
    if (fit.term(0) != nullptr) return &fit;
  }
  return nullptr;
}

}  // namespace

std::string safe(std::string_view name) {
  std::string text = text::printable(name.substr(0, 400));
  for (char& c : text) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  if (text::columns(text) <= 96) return text;
  std::size_t bytes = 0, points = 0;
  while (bytes < text.size() && points < 95) {
    do ++bytes;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U);
    ++points;
  }
  return text.substr(0, bytes) + "\u2026";
}

std::vector<Amount> amounts_of(const Board& board, const std::vector<std::string>& bases) {
  std::vector<Amount> amounts;
  for (const std::string& base : bases) {
    const Rational delta = board.found.count(base);
    if (delta != Rational(0)) amounts.push_back({count_words(base), delta});
  }
  return amounts;
}

std::optional<Fit> arithmetic(const Board& board, const std::vector<Amount>& amounts,
                              Finding& finding) {
  if (amounts.empty()) return std::nullopt;
  std::vector<Fit> list;
  if (board.model != nullptr) list = fits(amounts, *board.model);
  const Fit* fit = fit_with_first(list);
  bool first = true;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    finding.lines.push_back(amount_line(amounts[i], fit, i, first));
    if (fit != nullptr && fit->term(i) != nullptr) first = false;
  }
  if (fit == nullptr) return std::nullopt;
  finding.layers = fit->set.layers;
  if (!fit->set.tensors.empty()) finding.tensors = {fit->set.tensors};
  if (const Term* term = fit->term(0);
      term->rest == 0 && fit->set.times == 1 && fit->chance <= k_by_chance) {
    finding.per_layer = term->each;
  }
  finding.lines.push_back(surprise(*fit, amounts.size()));
  return *fit;
}

void about(const Board& board, const std::string& base, Finding& finding) {
  finding.metric = metric_name(board.evidence, base);
  const Rational delta = board.found.count(base);
  if (delta != Rational(0)) finding.delta = delta;
}

bool ops_told(const Board& board) {
  const Evidence& evidence = board.evidence;
  if (evidence.cpu_ops_known || evidence.graph_known || evidence.device == "cpu") return true;
  const std::string name = metric_name(evidence, "cpu_ops");
  return evidence.before.metrics.contains(name) && evidence.after.metrics.contains(name);
}

void add_also(Board& board, const std::vector<Amount>& amounts, const Fit& best) {
  if (board.model == nullptr) return;
  const Fit* other = nullptr;
  std::vector<Fit> singles;
  for (const Amount& amount : amounts) {
    for (Fit& fit : fits({amount}, *board.model)) {
      if (fit.set.size() == best.set.size() || fit.terms.front().rest != 0) continue;
      fit.terms.front().amount = static_cast<std::size_t>(&amount - amounts.data());
      singles.push_back(std::move(fit));
    }
  }
  for (const Fit& fit : singles) {
    if (other == nullptr || fit.cost < other->cost) other = &fit;
  }
  if (other == nullptr) return;
  const Amount& amount = amounts[other->terms.front().amount];
  std::vector<std::string> unlike;
  for (const Amount& one : amounts) {
    if (one.name == amount.name) continue;
    const auto alone = fits({one}, *board.model);
    const bool fits_too = std::any_of(alone.begin(), alone.end(), [&](const Fit& fit) {
      return fit.set.words == other->set.words && fit.terms.front().rest == 0;
    });
    if (!fits_too) unlike.push_back(one.name);
  }
  Finding finding;
  finding.also = true;
  finding.kind = to_string(amount.name != "barriers"    ? Kind::count_changed
                           : amount.delta > Rational(0) ? Kind::batching_lost
                                                        : Kind::batching_gained);
  finding.metric = metric_name(board.evidence, amount.name);
  finding.delta = amount.delta;
  if (other->chance <= k_by_chance && other->set.times == 1) {
    finding.per_layer = other->terms.front().each;
  }
  finding.layers = other->set.layers;
  if (!other->set.tensors.empty()) finding.tensors = {other->set.tensors};
  finding.headline = fmt::format("Also possible: {} {} = {}", signed_text(amount.delta),
                                 amount.name, term_words(other->terms.front(), other->set.words));
  if (amount.name == "barriers") {
    finding.headline += amount.delta > Rational(0) ? " (batching off)" : " (batching on)";
  }
  if (!unlike.empty()) {
    finding.headline +=
        fmt::format(", but {} would not fit these layers", text::join(unlike, " and "));
  }
  finding.headline += ".";
  board.add(std::move(finding), 0, 9);
}

std::string move_words(const std::vector<const Move*>& moves, std::size_t most) {
  std::string words;
  std::size_t shown = 0;
  for (const Move* move : moves) {
    if (shown == most) break;
    words += fmt::format("{}{} {}", shown == 0 ? "" : ", ", signed_text(move->delta()),
                         safe(move->name));
    ++shown;
  }
  if (moves.size() > shown) words += fmt::format(" and {} more", moves.size() - shown);
  return words;
}

std::string times_words(const Rational& times, unit::Scope scope) {
  const std::string per = per_words(scope);
  const std::string unit = per.empty() ? "" : " " + per;
  if (times == Rational(1)) return "once" + unit;
  if (times == Rational(2)) return "twice" + unit;
  return times.str() + " times" + unit;
}

}  // namespace weir::explain
