#include "gate/explain/fit.hpp"

#include <cstdlib>

#include "gate/explain/patterns.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::explain {
namespace {

constexpr std::int64_t k_most_rest = 2;
constexpr std::int64_t k_most_each = 64;        // more of anything in one layer tells nothing
constexpr std::int64_t k_most_delta = 1 << 20;  // counts, not bytes
constexpr double k_worth_telling = 0.35;        // a fit that chance makes more often is none

std::string layers_text(std::int64_t number) {
  return fmt::format("{} layer{}", number, number == 1 ? "" : "s");
}

LayerSet set_of(std::vector<std::int64_t> layers, const std::string& tensors) {
  LayerSet set;
  set.layers = std::move(layers);
  set.tensors = tensors;
  set.words = layers_text(set.size());
  set.short_words = "the same " + set.words;
  return set;
}

LayerSet all_layers(const ModelFacts& model) {
  std::vector<std::int64_t> all;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) all.push_back(layer);
  return set_of(std::move(all), "");
}

LayerSet of_family(const Family& family, const ModelFacts& model) {
  LayerSet set = set_of(family.layers, family.pattern);
  set.words += fmt::format(" {} (of {})", family.words, layers_text(model.layers));
  return set;
}

// |delta| = each x size + rest with the smallest rest.
std::optional<Term> term_of(const Rational& delta, std::int64_t size) {
  if (!delta.whole() || size < 1) return std::nullopt;
  // Before abs: the smallest number of all has none.
  if (delta.numerator() < -k_most_delta || delta.numerator() > k_most_delta) return std::nullopt;
  const std::int64_t amount = std::abs(delta.numerator());
  if (amount == 0) return std::nullopt;
  const std::int64_t sign = delta.numerator() < 0 ? -1 : 1;
  std::int64_t each = amount / size, rest = amount % size;
  if (size - rest < rest) {
    ++each;
    rest -= size;
  }
  if (each < 1 || each > k_most_each) return std::nullopt;
  // A rest is believed only where there are many more layers than it could take values.
  if (rest != 0 && (std::abs(rest) > k_most_rest || size < 4 * k_most_rest + 4))
    return std::nullopt;
  return Term{0, sign * each, sign * rest};
}

// How often a random amount fits: rests that are allowed, of all there are. An amount that is not
// larger than the set fits only by being its size.
double chance_of(const Term& term, std::int64_t size) {
  const double ways = term.rest == 0 ? 1 : 2.0 * std::abs(static_cast<double>(term.rest)) + 1;
  return std::min(1.0, ways / static_cast<double>(size));
}

double cost_of(const Term& term) {
  return std::log2(1.0 + std::fabs(static_cast<double>(term.each))) +
         (term.rest == 0 ? 0 : 2 + std::fabs(static_cast<double>(term.rest)));
}

// A rest behind one for each of few layers, which proves nothing and may still be what it is.
std::optional<std::string> loose_split(const Board& board, const Amount& amount) {
  if (board.model == nullptr || board.model->layers <= 2 * k_most_rest) return std::nullopt;
  if (!amount.delta.whole() || size_of(amount.delta) > k_most_delta) return std::nullopt;
  const std::int64_t layers = board.model->layers, all = std::abs(amount.delta.numerator());
  const std::int64_t each = all / layers, rest = all % layers;
  if (each < 1 || each > k_most_each || rest > k_most_rest) return std::nullopt;
  return fmt::format("Perhaps {}: so few layers fit most numbers.",
                     term_words({0, each, rest}, layers_text(layers)));
}

// An earlier line lists it among others, as move_words() does: "−9 rms_norm_mul, −4 rope".
bool last_is_repeated(const std::vector<std::string>& lines) {
  const auto listed = [](const std::string& line) { return ", " + line + ", "; };
  return std::any_of(lines.begin(), lines.end() - 1, [&](const std::string& line) {
    return listed(line).find(listed(lines.back())) != std::string::npos;
  });
}

// A finding, or a number of it.
void set_layers(const Fit& fit, const Term& term, auto& told) {
  told.layers = fit.set.layers;
  if (term.rest == 0 && fit.set.times == 1 && fit.chance <= k_by_chance) {
    told.per_layer = term.each;
  }
}
void set_where(const Fit& fit, const Term& term, Finding& finding) {
  set_layers(fit, term, finding);
  if (!fit.set.tensors.empty()) finding.tensors = {fit.set.tensors};
}

}  // namespace

const Term* Fit::term(std::size_t amount) const {
  return first_of(terms, [&](const Term& one) { return one.amount == amount; });
}

std::vector<LayerSet> layer_sets(const ModelFacts& model) {
  std::vector<LayerSet> sets;
  if (model.layers < 1) return sets;
  sets.push_back(all_layers(model));
  for (const Family& family : model.families) sets.push_back(of_family(family, model));
  if (model.experts_used && *model.experts_used > 1 && *model.experts_used <= 64) {
    const std::size_t plain = sets.size();
    for (std::size_t i = 0; i < plain; ++i) {
      const bool experts = sets[i].tensors.find("exp") != std::string::npos;
      if (i > 0 && !experts) continue;
      LayerSet each = sets[i];
      each.times = *model.experts_used;
      each.words = fmt::format("{} experts × {}", each.times, sets[i].words);
      each.short_words = fmt::format("{} experts × {}", each.times, sets[i].short_words);
      sets.push_back(std::move(each));
    }
  }
  return sets;
}

std::vector<Fit> fits(const std::vector<Amount>& amounts, const ModelFacts& model) {
  std::vector<Fit> found;
  const std::vector<LayerSet> sets = layer_sets(model);
  for (const LayerSet& set : sets) {
    Fit fit;
    fit.set = set;
    double chance = 1;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      auto term = term_of(amounts[i].delta, set.size());
      if (!term) continue;
      term->amount = i;
      // Amounts that equal one before it are hardly another witness.
      const bool seen = std::ranges::any_of(fit.terms, [&](const Term& other) {
        return amounts[other.amount].delta == amounts[i].delta;
      });
      chance *= seen ? 0.9 : chance_of(*term, set.size());
      fit.cost += cost_of(*term);
      fit.terms.push_back(*term);
    }
    if (fit.terms.empty()) continue;
    // As many sets were tried as there are.
    fit.chance = std::min(1.0, chance * static_cast<double>(sets.size()));
    if (set.times > 1) fit.cost += 2;
    if (fit.chance <= k_worth_telling) found.push_back(std::move(fit));
  }
  std::ranges::stable_sort(
      found, {}, [](const Fit& one) { return std::pair(-std::ssize(one.terms), one.cost); });
  return found;
}

std::string chance_words(double chance) {
  if (chance > k_by_chance) return "";
  const double times = 1 / chance;
  if (times > 1e6) return "by chance less than once in a million";
  double unit = 1;
  while (times / unit >= 100) unit *= 10;
  return fmt::format("by chance about 1 in {:.0f}", std::round(times / unit) * unit);
}

std::string signed_text(const Rational& value) {
  std::string text = value.str();
  if (text.starts_with('-')) return "\u2212" + text.substr(1);
  return value == Rational(0) ? text : "+" + text;
}

std::string term_words(const Term& term, const std::string& layers) {
  std::string text = fmt::format("{} × {}", std::abs(term.each), layers);
  const std::int64_t rest = term.each < 0 ? -term.rest : term.rest;
  if (rest > 0) text += fmt::format(" + {}", rest);
  if (rest < 0) text += fmt::format(" \u2212 {}", -rest);
  return text;
}

std::string safe(std::string_view name) {
  std::string text = text::printable(name.substr(0, 400));
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  if (text::columns(text) <= 96) return text;
  std::size_t bytes = 0;
  for (int point = 0; point < 95; ++point) static_cast<void>(text::next_code_point(text, bytes));
  return text.substr(0, bytes) + "\u2026";
}

std::vector<Amount> amounts_of(const Board& board, const std::vector<std::string>& bases) {
  std::vector<Amount> amounts;
  for (const std::string& base : bases) {
    const Rational delta = board.found.count(base);
    if (delta != k_none) amounts.push_back({plain(base), delta});
  }
  return amounts;
}

std::optional<Fit> arithmetic(const Board& board, const std::vector<Amount>& amounts,
                              Finding& finding) {
  if (amounts.empty()) return std::nullopt;
  std::vector<Fit> list;
  if (board.model != nullptr) list = fits(amounts, *board.model);
  // Unlike the rest a fit says which layers, so it needs the finding's own number.
  const Fit* fit = first_of(list, [](const Fit& one) { return one.term(0) != nullptr; });
  bool first = true;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    add_number(amounts[i], finding);
    const Term* term = fit == nullptr ? nullptr : fit->term(i);
    if (term == nullptr) {
      if (last_is_repeated(finding.lines)) finding.lines.pop_back();
      continue;
    }
    const std::string& layers = first ? fit->set.words : fit->set.short_words;
    finding.lines.back() += " = " + term_words(*term, layers);
    set_layers(*fit, *term, finding.numbers.back());
    first = false;
  }
  if (fit == nullptr) {
    if (const auto split = loose_split(board, amounts.front())) finding.lines.push_back(*split);
    return std::nullopt;
  }
  set_where(*fit, *fit->term(0), finding);
  if (const std::string chance = chance_words(fit->chance); !chance.empty()) {
    const std::string fitting =
        amounts.size() == 1
            ? "The number fits"
            : fmt::format("{} of {} numbers fit", fit->terms.size(), amounts.size());
    finding.lines.push_back(fmt::format("{} these layers: {}.", fitting, chance));
  }
  return *fit;
}

void add_number(const Amount& amount, Finding& finding) {
  finding.lines.push_back(fmt::format("{} {}", signed_text(amount.delta), amount.name));
  finding.numbers.push_back({amount.name, amount.delta, std::nullopt, {}});
}

void add_also(Board& board, const std::vector<Amount>& amounts, const Fit& best) {
  if (board.model == nullptr) return;
  struct Single {
    Fit fit;  // of one amount alone
    const Amount* amount = nullptr;
  };
  std::optional<Single> other;
  for (const Amount& amount : amounts) {
    for (Fit& fit : fits({amount}, *board.model)) {
      if (fit.set.size() == best.set.size() || fit.terms.front().rest != 0) continue;
      if (!other || fit.cost < other->fit.cost) other = {std::move(fit), &amount};
    }
  }
  if (!other) return;
  const auto& [fit, amount] = *other;
  std::vector<std::string> unlike;
  for (const Amount& one : amounts) {
    if (one.name == amount->name) continue;
    const auto alone = fits({one}, *board.model);
    const bool fits_too = std::ranges::any_of(alone, [&set = fit.set](const Fit& its) {
      return its.set.words == set.words && its.terms.front().rest == 0;
    });
    if (!fits_too) unlike.push_back(one.name);
  }
  const bool barriers = amount->name == "barriers", more = amount->delta > k_none;
  Finding finding = finding_of(!barriers ? kind::count_changed
                               : more    ? kind::batching_lost
                                         : kind::batching_gained,
                               metric_name(board.evidence, amount->name));
  finding.also = true;
  finding.delta = amount->delta;
  set_where(fit, fit.terms.front(), finding);
  finding.numbers.push_back({amount->name, amount->delta, finding.per_layer, finding.layers});
  finding.headline = fmt::format("Also possible: {} {} = {}", signed_text(amount->delta),
                                 amount->name, term_words(fit.terms.front(), fit.set.words));
  if (barriers) finding.headline += more ? " (batching off)" : " (batching on)";
  if (!unlike.empty()) {
    finding.headline +=
        fmt::format(", but {} would not fit these layers", text::join(unlike, " and "));
  }
  finding.headline += ".";
  board.add(std::move(finding), 0, 9);
}

Rational magnitude(const Rational& value) {
  return value < k_none ? k_none.minus(value).value_or(value) : value;
}

double size_of(const Rational& value) { return std::fabs(value.value()); }

bool same_way(const Rational& a, const Rational& b) { return a.value() * b.value() > 0; }

std::string plain(std::string base) {
  std::ranges::replace(base, '_', ' ');
  return base;
}

std::string move_words(const Moves& moves, std::size_t most) {
  const auto words = collect<std::string>(
      moves, [](const Move* move) { return signed_text(move->delta()) + " " + safe(move->name); });
  return verdict::some_of(words, most);
}

std::string times_words(const Rational& times, unit::Scope scope) {
  const Rational often = magnitude(times);
  const std::string per = per_words(scope);
  const std::string unit = per.empty() ? "" : " " + per;
  if (often == Rational(1)) return "once" + unit;
  if (often == Rational(2)) return "twice" + unit;
  return often.str() + " times" + unit;
}

}  // namespace weir::explain
