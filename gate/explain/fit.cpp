#include "gate/explain/fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace weir::explain {
namespace {

constexpr std::int64_t k_most_rest = 2;
constexpr std::int64_t k_most_each = 64;        // more of anything in one layer tells nothing
constexpr std::int64_t k_most_delta = 1 << 20;  // counts, not bytes
constexpr double k_worth_telling = 0.35;        // a fit that chance makes more often is none

std::string layers_of(const ModelFacts& model) {
  return fmt::format("{} layer{}", model.layers, model.layers == 1 ? "" : "s");
}

LayerSet all_layers(const ModelFacts& model) {
  LayerSet all;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) all.layers.push_back(layer);
  all.words = layers_of(model);
  all.short_words = "the same " + layers_of(model);
  return all;
}

LayerSet of_family(const Family& family, const ModelFacts& model) {
  LayerSet set;
  set.layers = family.layers;
  set.tensors = family.pattern;
  const std::size_t size = family.layers.size();
  set.words = fmt::format("{} layer{} {} (of {})", size, size == 1 ? "" : "s", family.words,
                          layers_of(model));
  set.short_words = fmt::format("the same {} layer{}", size, size == 1 ? "" : "s");
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

}  // namespace

const Term* Fit::term(std::size_t amount) const {
  for (const Term& one : terms) {
    if (one.amount == amount) return &one;
  }
  return nullptr;
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
      const bool seen = std::any_of(fit.terms.begin(), fit.terms.end(), [&](const Term& other) {
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
  std::stable_sort(found.begin(), found.end(), [](const Fit& a, const Fit& b) {
    if (a.terms.size() != b.terms.size()) return a.terms.size() > b.terms.size();
    return a.cost < b.cost;
  });
  return found;
}

std::string chance_words(double chance) {
  if (chance > k_by_chance) return "chance would do as well";
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

}  // namespace weir::explain
