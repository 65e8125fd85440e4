// Why a cell changed: differences of counts, kernels and ops turned into sentences that can be
// checked by hand.
//
// A finding claims the differences that it explains; what follows from it (syncs around a step that
// moved to the CPU) stands under it, not beside it. What has no difference beyond its own noise has
// no finding. Nothing here judges: verdicts do. Pure.
#pragma once

#include <set>

#include "gate/base/json.hpp"
#include "gate/base/json_fwd.hpp"
#include "gate/explain/evidence.hpp"
#include "gate/explain/model_facts.hpp"
#include "gate/explain/rules.hpp"

namespace weir::explain {

enum class Kind {
  batches_changed,  // the same work in more or fewer batches
  graphs_lost,      // CUDA graphs: each kernel is handed over by itself
  work_moved_to_cpu,
  work_moved_to_gpu,
  fusion_lost,
  fusion_gained,
  batching_lost,    // more barriers between the same dispatches, or the same work in more of these
  batching_gained,  // fewer of them
  sync_per_layer,   // as many syncs as there are layers of a kind
  sync_added,       // some, not by layers
  sync_removed,
  extra_copies,
  copies_removed,
  variant_changed,  // the same work by another kernel
  splits_changed,
  grows_with_context,
  fixed_cost_changed,
  op_added,
  op_removed,
  op_slower,
  op_faster,
  time_changed,   // a rate, a time or memory, with no difference that explains it
  count_changed,  // none of the above
  user_rule,      // weir.yaml says what it means
};
[[nodiscard]] std::string_view to_string(Kind kind);

using verdict::Finding;  // its kind is to_string() of one above

struct Total {
  std::string name;  // "dispatches"
  Rational before, after;
};

// Of the later side of a cell on a device.
struct Hint {
  std::string metric;
  double value = 0;
  bool high = false;  // else low
  std::string text;   // one line
};

// One line of the checklist for slow engines, ticked as far as what was measured can answer it.
struct Check {
  enum class Answer { fine, wrong, unknown };
  std::string question;  // "Syncs: 3 a token or fewer"
  Answer answer = Answer::unknown;
  std::string note;  // what was seen, or why it cannot be told
};
[[nodiscard]] std::string_view to_string(Check::Answer answer);  // "fine", "wrong", "unknown"

// Ops that the config lets run on the CPU; absent where that is not known.
using AllowedOps = std::optional<std::set<std::string>>;

struct Options {
  Bands bands;
  std::vector<Rule> rules;
  AllowedOps cpu_ops_allowed{};  // of the cell
};

struct Explanation {
  std::string cell;
  unit::Scope scope = unit::Scope::per_token;
  std::vector<Total> totals;        // dispatches, barriers, syncs, where both sides have them
  std::vector<Finding> findings;    // best first
  std::vector<Hint> hints;          // counts outside of the usual, of the later side
  std::vector<Check> checklist;     // for slow engines
  std::vector<std::string> doubts;  // of the data
  bool differs = false;             // something does, explained or not
  // What the gate said, where it is no pass: "fail", "error", "new", …; with its reason, one line.
  std::string verdict, reason;
};

// `model` may be null: then counts are not held against layers.
[[nodiscard]] Explanation explain(const Evidence& evidence, const ModelFacts* model,
                                  const Options& options);

// "/token", "/prefill" as words: "a token"; "" for the rest.
[[nodiscard]] std::string per_words(unit::Scope scope);

// One element of the list in weir.explanation/1: {"cell", "findings": [...], ...}.
[[nodiscard]] Json to_json(const Explanation& explanation);

}  // namespace weir::explain
