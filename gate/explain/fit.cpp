// Fits changes of counts to layers of a model, and writes the result as text.
#include "gate/explain/fit.hpp"

#include <cstdlib>

#include "gate/base/text.hpp"
#include "gate/explain/patterns.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::explain {
namespace {

constexpr std::int64_t k_max_rest = 2;
constexpr std::int64_t k_max_count_per_layer = 64;   // more per layer proves nothing
constexpr std::int64_t k_max_count_delta = 1 << 20;  // counts, not bytes
constexpr double k_worth_telling = 0.35;             // a fit that chance makes more often is none
constexpr std::size_t k_max_amounts = 64;            // in one finding; nobody reads more

std::string layers_text(std::int64_t number) {
  return text::plural(static_cast<std::size_t>(number), "layer");
}

LayerSet make_layer_set(std::vector<std::int64_t> layers, const std::string& tensors) {
  LayerSet set;
  set.layers = std::move(layers);
  set.tensors = tensors;
  set.description = layers_text(set.size());
  set.short_description = "the same " + set.description;
  return set;
}

LayerSet all_layers(const ModelFacts& model) {
  std::vector<std::int64_t> all;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) all.push_back(layer);
  return make_layer_set(std::move(all), "");
}

LayerSet make_family_set(const LayerFamily& family, const ModelFacts& model) {
  LayerSet set = make_layer_set(family.layers, family.pattern);
  set.description += fmt::format(" {} (of {})", family.description, layers_text(model.layers));
  return set;
}

// Writes |delta| as `each` x size + rest with the smallest rest: a change of `each` in every one
// of `size` layers. Nothing if `each` or the rest is too large to be believed.
std::optional<Term> fit_term(const Rational& delta, std::int64_t size) {
  if (!delta.is_integer() || size < 1) return std::nullopt;
  // Checked before abs(), which has no result for the smallest number.
  if (delta.numerator() < -k_max_count_delta || delta.numerator() > k_max_count_delta)
    return std::nullopt;
  const std::int64_t amount = std::abs(delta.numerator());
  if (amount == 0) return std::nullopt;
  const std::int64_t sign = delta.numerator() < 0 ? -1 : 1;
  std::int64_t each = amount / size, rest = amount % size;
  if (size - rest < rest) {
    ++each;
    rest -= size;
  }
  if (each < 1 || each > k_max_count_per_layer) return std::nullopt;
  // A rest is believed only if there are far more layers than values it may take.
  if (rest != 0 && (std::abs(rest) > k_max_rest || size < 4 * k_max_rest + 4)) {
    return std::nullopt;
  }
  return Term{0, sign * each, sign * rest};
}

// Returns the chance that a random amount fits as well: the allowed rests of all rests. An amount
// no larger than the set fits only by being its size.
double term_chance(const Term& term, std::int64_t size) {
  const double allowed_rests =
      term.rest == 0 ? 1 : 2.0 * std::abs(static_cast<double>(term.rest)) + 1;
  return std::min(1.0, allowed_rests / static_cast<double>(size));
}

// Returns the cost of a term in bits; simpler terms cost less.
double term_cost(const Term& term) {
  return std::log2(1.0 + std::fabs(static_cast<double>(term.per_layer))) +
         (term.rest == 0 ? 0 : 2 + std::fabs(static_cast<double>(term.rest)));
}

// Returns a guess for a model with few layers, which proves nothing but may be true; nothing if the
// amount is no such multiple.
std::optional<std::string> uncertain_split(const ExplainState& state, const Amount& amount) {
  if (state.model == nullptr || state.model->layers <= 2 * k_max_rest) return std::nullopt;
  if (!amount.delta.is_integer() || absolute_value(amount.delta) > k_max_count_delta)
    return std::nullopt;
  const std::int64_t layers = state.model->layers, total = std::abs(amount.delta.numerator());
  const std::int64_t each = total / layers, rest = total % layers;
  if (each < 1 || each > k_max_count_per_layer || rest > k_max_rest) return std::nullopt;
  return fmt::format("Perhaps {}: so few layers fit most numbers.",
                     term_text({0, each, rest}, layers_text(layers)));
}

// Returns true if an earlier line lists the last one among others, as changes_text() does: "−9
// rms_norm_mul, −4 rope".
bool is_last_line_repeated(const std::vector<std::string>& lines) {
  const auto delimited = [](const std::string& line) { return ", " + line + ", "; };
  return std::any_of(lines.begin(), lines.end() - 1, [&](const std::string& line) {
    return delimited(line).find(delimited(lines.back())) != std::string::npos;
  });
}

// Sets the layers of a finding, or of a number of it.
void set_layers(const Fit& fit, const Term& term, auto& target) {
  target.layers = fit.set.layers;
  if (term.rest == 0 && fit.set.experts == 1 && fit.chance <= k_by_chance) {
    target.per_layer = term.per_layer;
  }
}
void set_place(const Fit& fit, const Term& term, Finding& finding) {
  set_layers(fit, term, finding);
  if (!fit.set.tensors.empty()) finding.tensors = {fit.set.tensors};
}

}  // namespace

const Term* Fit::term(std::size_t amount) const {
  return find_first(terms, [&](const Term& term) { return term.amount == amount; });
}

// Returns the sets of layers that a change may be a multiple of: all layers, each family of
// layers, and with experts also those times the experts in use.
std::vector<LayerSet> layer_sets(const ModelFacts& model) {
  std::vector<LayerSet> sets;
  if (model.layers < 1) return sets;
  sets.push_back(all_layers(model));
  for (const LayerFamily& family : model.families) sets.push_back(make_family_set(family, model));
  if (model.experts_used && *model.experts_used > 1 && *model.experts_used <= 64) {
    const std::size_t layer_set_count = sets.size();
    for (std::size_t i = 0; i < layer_set_count; ++i) {
      const bool has_experts = sets[i].tensors.find("exp") != std::string::npos;
      if (i > 0 && !has_experts) continue;
      LayerSet set = sets[i];
      set.experts = *model.experts_used;
      set.description = fmt::format("{} experts × {}", set.experts, sets[i].description);
      set.short_description =
          fmt::format("{} experts × {}", set.experts, sets[i].short_description);
      sets.push_back(std::move(set));
    }
  }
  return sets;
}

// Writes the amounts as multiples of each set of layers, and returns the fits, best first. Fits
// that chance would find as well are left out.
std::vector<Fit> fits(const std::vector<Amount>& amounts, const ModelFacts& model) {
  std::vector<Fit> result;
  const std::vector<LayerSet> sets = layer_sets(model);
  for (const LayerSet& set : sets) {
    Fit fit;
    fit.set = set;
    double chance = 1;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      auto term = fit_term(amounts[i].delta, set.size());
      if (!term) continue;
      term->amount = i;
      // An amount equal to an earlier one is hardly further evidence.
      const bool is_repeated = std::ranges::any_of(fit.terms, [&](const Term& other) {
        return amounts[other.amount].delta == amounts[i].delta;
      });
      chance *= is_repeated ? 0.9 : term_chance(*term, set.size());
      fit.cost += term_cost(*term);
      fit.terms.push_back(*term);
    }
    if (fit.terms.empty()) continue;
    // The chance is multiplied by the number of sets that were tried.
    fit.chance = std::min(1.0, chance * static_cast<double>(sets.size()));
    if (set.experts > 1) fit.cost += 2;
    if (fit.chance <= k_worth_telling) result.push_back(std::move(fit));
  }
  std::ranges::stable_sort(result, {}, [](const Fit& candidate) {
    return std::pair(-std::ssize(candidate.terms), candidate.cost);
  });
  return result;
}

// Rounds 1 / chance to two digits.
std::string chance_text(double chance) {
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

std::string term_text(const Term& term, const std::string& layers) {
  std::string text = fmt::format("{} × {}", std::abs(term.per_layer), layers);
  const std::int64_t rest = term.per_layer < 0 ? -term.rest : term.rest;
  if (rest > 0) text += fmt::format(" + {}", rest);
  if (rest < 0) text += fmt::format(" \u2212 {}", -rest);
  return text;
}

std::string safe_name(std::string_view name) {
  std::string text = text::printable(name.substr(0, 400));
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  if (text::columns(text) <= 96) return text;
  std::size_t bytes = 0;
  for (int point = 0; point < 95; ++point) static_cast<void>(text::next_code_point(text, bytes));
  return text.substr(0, bytes) + "\u2026";
}

std::vector<Amount> changed_amounts(const ExplainState& state,
                                    const std::vector<std::string>& bases) {
  std::vector<Amount> amounts;
  for (const std::string& base : bases) {
    const Rational delta = state.differences.count(base);
    if (delta != k_zero) amounts.push_back({readable_name(base), delta});
  }
  return amounts;
}

// Adds each amount to the finding as a line, "+24 = 1 x 24 layers" if it is a multiple of layers.
// Returns the fit that includes the first amount; nothing if there is none.
std::optional<Fit> add_amounts(const ExplainState& state, const std::vector<Amount>& amounts,
                               Finding& finding) {
  if (amounts.empty()) return std::nullopt;
  if (amounts.size() > k_max_amounts) {
    auto fit = add_amounts(state, {amounts.begin(), amounts.begin() + k_max_amounts}, finding);
    finding.lines.push_back(fmt::format("and {} more", amounts.size() - k_max_amounts));
    return fit;
  }
  std::vector<Fit> fits_found;
  if (state.model != nullptr) fits_found = fits(amounts, *state.model);

  const Fit* fit =
      find_first(fits_found, [](const Fit& candidate) { return candidate.term(0) != nullptr; });
  bool is_first = true;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    add_number(amounts[i], finding);
    const Term* term = fit == nullptr ? nullptr : fit->term(i);
    if (term == nullptr) {
      if (is_last_line_repeated(finding.lines)) finding.lines.pop_back();
      continue;
    }
    const std::string& layers = is_first ? fit->set.description : fit->set.short_description;
    finding.lines.back() += " = " + term_text(*term, layers);
    set_layers(*fit, *term, finding.numbers.back());
    is_first = false;
  }
  if (fit == nullptr) {
    if (const auto split = uncertain_split(state, amounts.front())) finding.lines.push_back(*split);
    return std::nullopt;
  }
  set_place(*fit, *fit->term(0), finding);
  if (const std::string chance = chance_text(fit->chance); !chance.empty()) {
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

// Adds a finding "Also possible": the simplest fit of a single amount to a set of layers of
// another size than `best`. Names the amounts that do not fit these layers.
void add_also(ExplainState& state, const std::vector<Amount>& amounts, const Fit& best) {
  if (state.model == nullptr || amounts.size() > k_max_amounts) return;
  struct Single {
    Fit fit;  // fit of one amount alone
    const Amount* amount = nullptr;
  };
  std::optional<Single> other;
  for (const Amount& amount : amounts) {
    for (Fit& fit : fits({amount}, *state.model)) {
      if (fit.set.size() == best.set.size() || fit.terms.front().rest != 0) continue;
      if (!other || fit.cost < other->fit.cost) other = {std::move(fit), &amount};
    }
  }
  if (!other) return;
  const Fit& fit = other->fit;
  const Amount* amount = other->amount;
  const LayerSet& layers = fit.set;
  std::vector<std::string> misfits;
  for (const Amount& entry : amounts) {
    if (entry.name == amount->name) continue;
    const auto alone = fits({entry}, *state.model);
    const bool fits_too = std::ranges::any_of(alone, [&](const Fit& alone_fit) {
      return alone_fit.set.description == layers.description && alone_fit.terms.front().rest == 0;
    });
    if (!fits_too) misfits.push_back(entry.name);
  }
  const bool is_barriers = amount->name == "barriers", is_increase = amount->delta > k_zero;
  const char* kind = kind::count_changed;
  if (is_barriers) kind = is_increase ? kind::batching_lost : kind::batching_gained;
  Finding finding = make_finding(kind, metric_name(state.evidence, amount->name));
  finding.also = true;
  finding.delta = amount->delta;
  set_place(fit, fit.terms.front(), finding);
  finding.numbers.push_back({amount->name, amount->delta, finding.per_layer, finding.layers});
  finding.headline = fmt::format("Also possible: {} {} = {}", signed_text(amount->delta),
                                 amount->name, term_text(fit.terms.front(), fit.set.description));
  const char* batching = is_increase ? " (batching off)" : " (batching on)";
  if (is_barriers) finding.headline += batching;
  if (!misfits.empty()) {
    finding.headline +=
        fmt::format(", but {} would not fit these layers", text::join(misfits, " and "));
  }
  finding.headline += ".";
  state.add(std::move(finding), /*units=*/0, /*rank=*/9);
}

Rational magnitude(const Rational& value) {
  return value < k_zero ? k_zero.minus(value).value_or(value) : value;
}

double absolute_value(const Rational& value) { return std::fabs(value.value()); }

bool same_sign(const Rational& a, const Rational& b) { return a.value() * b.value() > 0; }

bool is_on_one_side(const Rational& before, const Rational& after) {
  const bool was_there = before != k_zero, is_there = after != k_zero;
  return was_there != is_there;
}

std::string readable_name(std::string base) {
  std::ranges::replace(base, '_', ' ');
  return base;
}

std::string changes_text(const WorkChanges& changes, std::size_t max_changes) {
  const auto words = collect<std::string>(changes, [](const WorkChange* change) {
    return signed_text(change->delta()) + " " + safe_name(change->name);
  });
  return verdict::list_some(words, max_changes);
}

std::string frequency_text(const Rational& times, unit::Scope scope) {
  const Rational often = magnitude(times);
  const std::string per = per_text(scope);
  const std::string unit = text::prefix_if_any(" ", per);
  if (often == Rational(1)) return "once" + unit;
  if (often == Rational(2)) return "twice" + unit;
  return often.str() + " times" + unit;
}

}  // namespace weir::explain
