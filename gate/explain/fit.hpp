// Differences of counts as arithmetic over a model's layers: +16 = 1 x the 16 layers with ssm_*
// tensors.
//
// A number fits many sets of layers; what convinces is that several numbers fit one set at once.
// Every candidate comes with the chance that random numbers would fit as well. Pure.
#pragma once

#include "gate/base/rational.hpp"
#include "gate/explain/model_facts.hpp"

namespace weir::explain {

// Things that repeat: layers of a family, all layers, or the experts in use in these.
struct LayerSet {
  std::vector<std::int64_t> layers;
  std::string tensors;            // "blk.*.ssm_*"; "" for all layers
  std::string description;        // "16 layers with blk.*.ssm_* tensors (of 24 layers)"
  std::string short_description;  // "the same 16 layers"
  std::int64_t experts = 1;       // used in each layer; 1 unless the set counts experts
  [[nodiscard]] std::int64_t size() const {
    return static_cast<std::int64_t>(layers.size()) * experts;
  }
};
// Returns all sets that the model's header names, all layers among them.
[[nodiscard]] std::vector<LayerSet> layer_sets(const ModelFacts& model);

// One difference to explain: what it is called ("syncs") and how large it is.
struct Amount {
  std::string name;
  Rational delta;
};

// delta = per_layer x size (+ rest), with a small rest.
struct Term {
  std::size_t amount = 0;      // index into the amounts
  std::int64_t per_layer = 0;  // signed, never 0
  std::int64_t rest = 0;       // 0, or -2 to 2
};

struct Fit {
  LayerSet set;
  std::vector<Term> terms;  // in the order of the amounts; those that fit
  double chance = 1;        // chance that random amounts of that size fit some known set as well
  double cost = 0;          // bits to write it down; smaller is simpler
  [[nodiscard]] const Term* term(std::size_t amount) const;
};

// The best first: those that explain more of the amounts, then the simpler ones. Empty where
// nothing fits better than chance would.
[[nodiscard]] std::vector<Fit> fits(const std::vector<Amount>& amounts, const ModelFacts& model);

// A fit that chance makes more often than this is shown as a fit, never as a fact ("once in each
// layer").
inline constexpr double k_by_chance = 0.2;

// "by chance about 1 in 4000"; "" where chance makes such a fit as well.
[[nodiscard]] std::string chance_text(double chance);

// "+16", "-48" with a real minus sign; fractions as "+1/3".
[[nodiscard]] std::string signed_text(const Rational& value);
// "1 × 16 layers with …", "2 × 24 layers + 1".
[[nodiscard]] std::string term_text(const Term& term, const std::string& layers);

}  // namespace weir::explain
