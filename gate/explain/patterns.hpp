// The patterns that differences are held against, one function each, in causal order: what an
// earlier one claims is no cause for a later one. Used by this module alone.
//
//   batches.cpp   the same work in more or fewer batches
//   moved.cpp     work that left the device for the CPU, or came back
//   syncs.cpp     waits, by layer or not
//   pieces.cpp    the same products in more dispatches
//   kernels.cpp   fusions, variants, work added and removed, told by names of kernels
//   totals.cpp    the same where only sums of dispatches are known
//   counts.cpp    barriers, splits, copies, context, the fixed part, and what is left
//   slow.cpp      works that take longer each time
//   times.cpp     rates, times and memory that nothing before explains
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gate/explain/differences.hpp"
#include "gate/explain/explain.hpp"
#include "gate/explain/fit.hpp"

namespace weir::explain {

// What the patterns look at and write on.
struct Board {
  const Evidence& evidence;
  const Differences& found;
  const ModelFacts* model;  // may be null

  struct Entry {
    Finding finding;
    double units = 0;  // how much it explains; a dispatch is 1
    int rank = 0;      // smaller goes before larger, whatever the units
  };
  std::vector<Entry> entries{};
  std::set<std::string> taken{};  // "syncs", "kernel rms_norm_f32", …

  [[nodiscard]] bool free(const std::string& item) const { return !taken.contains(item); }
  void take(const std::string& item) { taken.insert(item); }
  // The change of a count that nothing has claimed; 0 where there is none.
  [[nodiscard]] Rational open(const std::string& base) const;
  void add(Finding finding, double units, int rank = 1);
};

void find_batches(Board& board);
void find_moved(Board& board);
void find_syncs(Board& board);
void find_pieces(Board& board);
void find_kernels(Board& board);
void find_totals(Board& board);
void find_barriers(Board& board);
void find_splits(Board& board);
void find_copies(Board& board);
void find_context(Board& board);
void find_slow(Board& board);
void find_fixed(Board& board);
void find_rest(Board& board);
void find_times(Board& board);

// Writes each amount as a line, held against the model's layers where that fits, and fills the
// finding's layers, tensors and per_layer from the first of them. Says how surprising the fit is.
// The best fit comes back; nothing where none is worth telling.
std::optional<Fit> arithmetic(const Board& board, const std::vector<Amount>& amounts,
                              Finding& finding);
// Amounts of these counts that changed, by what people call them ("syncs").
[[nodiscard]] std::vector<Amount> amounts_of(const Board& board,
                                             const std::vector<std::string>& bases);
// Sets metric and delta of a finding about this count.
void about(const Board& board, const std::string& base, Finding& finding);
// Another set of layers that fits some of the amounts, as a finding of its own.
void add_also(Board& board, const std::vector<Amount>& amounts, const Fit& best);

// It is known whether an op ran on the CPU: by name, or both sides counted these.
[[nodiscard]] bool ops_told(const Board& board);

// "+9 mul_f32", at most `most` of them, then "and 3 more".
[[nodiscard]] std::string move_words(const std::vector<const Move*>& moves, std::size_t most = 5);
// Hostile names as one short line.
[[nodiscard]] std::string safe(std::string_view name);
// "once a token", "8 times a token", "+1/2 a token".
[[nodiscard]] std::string times_words(const Rational& times, unit::Scope scope);

}  // namespace weir::explain
