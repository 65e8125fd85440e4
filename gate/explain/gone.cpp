#include "gate/explain/gone.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace weir::explain {
namespace {

using Moves = std::vector<const Move*>;

Moves one_way(const std::vector<Move>& moves, bool up) {
  Moves list;
  for (const Move& move : moves) {
    if (move.up() == up) list.push_back(&move);
  }
  return list;
}

bool product_word(const std::string& word) {
  return word.find("mat") != std::string::npos || word == "gemv" || word == "gemm" ||
         word == "mv" || word == "mm";
}

// A product, or attention: what a model's time goes to, and never a part of a small kernel.
bool large_work(const KernelName& name) {
  return std::any_of(name.words.begin(), name.words.end(), [](const std::string& word) {
    return product_word(word) || word.starts_with("attn") || word.starts_with("attention") ||
           word == "sdpa";
  });
}

// How much went and how much came, after what is the same work is added up.
struct Balance {
  double went = 0, came = 0;

  explicit Balance(const std::map<std::string, double>& sums, bool to_cpu) {
    for (const auto& [what, sum] : sums) ((sum > 0) == to_cpu ? came : went) += std::fabs(sum);
  }
  [[nodiscard]] bool fell() const { return went > 0 && came * 4 < went; }
  [[nodiscard]] bool still() const { return went <= 0 && came <= 0; }
};

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

// Where memory is shared nothing is copied; but a step on the CPU cuts what was sent together, and
// each piece goes with some submissions of its own. A wait that someone added does not.
bool cut_up(const Differences& found, bool to_cpu) {
  const double sign = to_cpu ? 1 : -1;
  const double syncs = sign * found.count("syncs").value();
  return syncs >= 2 && sign * found.count("submits").value() >= 2 * syncs;
}

}  // namespace

bool broad_fall(const std::vector<Move>& kernels, bool to_cpu) {
  double went = 0, came = 0;
  std::set<std::string> kinds;
  bool product = false;
  for (const Move& move : kernels) {
    if (move.up() == to_cpu) {
      came += std::fabs(move.delta().value());
      continue;
    }
    went += std::fabs(move.delta().value());
    kinds.insert(move.parsed.base());
    product =
        product || std::any_of(move.parsed.words.begin(), move.parsed.words.end(), product_word);
  }
  return product && kinds.size() >= 4 && came * 4 < went;
}

std::vector<const Move*> went_along(const std::vector<Move>& kernels, bool to_cpu) {
  constexpr std::size_t k_most_pairs = 1'000'000;
  Moves went = one_way(kernels, !to_cpu);
  const Moves came = one_way(kernels, to_cpu);
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

bool plain_removal(const std::vector<Move>& kernels, bool to_cpu) {
  const Moves went = one_way(kernels, !to_cpu);
  if (went_along(kernels, to_cpu).size() != went.size()) return false;
  double gone = 0, came = 0;
  bool whole = false;
  for (const Move& move : kernels) {
    (move.up() == to_cpu ? came : gone) += std::fabs(move.delta().value());
    if (move.up() == to_cpu) continue;
    whole = whole || (to_cpu ? move.after : move.before) == Rational(0);
  }
  return whole && came * 4 < gone;
}

bool step_in_between(const Differences& found, bool to_cpu) {
  const Rational none(0);
  const Rational syncs = found.count("syncs"), copies = found.count("copies");
  if (syncs == none || (syncs > none) != to_cpu) return false;
  if (copies != none && (copies > none) != to_cpu) return false;
  std::map<std::string, double> large, words;
  for (const Move& move : found.kernels) {
    const double delta = move.delta().value();
    if (large_work(move.parsed)) large[move.parsed.base()] += delta;
    for (const std::string& word : move.parsed.words) words[word] += delta;
  }
  const Balance of_large(large, to_cpu);
  if (!of_large.still()) return of_large.fell();
  return Balance(words, to_cpu).fell() && (copies != none || cut_up(found, to_cpu));
}

}  // namespace weir::explain
