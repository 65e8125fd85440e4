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

// What Finding::kind says.
namespace kind {
// the same work in more or fewer batches
constexpr const char* batches_changed = "batches_changed";
// CUDA graphs: each kernel is handed over by itself
constexpr const char* graphs_lost = "graphs_lost";
// many kernels are handed over at once
constexpr const char* graphs_gained = "graphs_gained";
constexpr const char* work_moved_to_cpu = "work_moved_to_cpu";
constexpr const char* work_moved_to_gpu = "work_moved_to_gpu";
constexpr const char* fusion_lost = "fusion_lost";
constexpr const char* fusion_gained = "fusion_gained";
// more barriers between the same dispatches, or the same work in more of these
constexpr const char* batching_lost = "batching_lost";
// fewer of them
constexpr const char* batching_gained = "batching_gained";
// as many syncs as there are layers of a kind
constexpr const char* sync_per_layer = "sync_per_layer";
// some, not by layers
constexpr const char* sync_added = "sync_added";
constexpr const char* sync_removed = "sync_removed";
constexpr const char* extra_copies = "extra_copies";
constexpr const char* copies_removed = "copies_removed";
// the same work by another kernel
constexpr const char* variant_changed = "variant_changed";
// the same kernel, other code behind its name, or other groups
constexpr const char* code_changed = "code_changed";
constexpr const char* splits_changed = "splits_changed";
// the same work in more or fewer submissions
constexpr const char* submits_changed = "submits_changed";
constexpr const char* grows_with_context = "grows_with_context";
constexpr const char* fixed_cost_changed = "fixed_cost_changed";
// what it takes of devices, and how often it asks for that
constexpr const char* memory_changed = "memory_changed";
// pipelines or graphs made while tokens are generated, or fewer of these for each token
constexpr const char* made_late = "made_late";
constexpr const char* op_added = "op_added";
constexpr const char* op_removed = "op_removed";
constexpr const char* op_slower = "op_slower";
constexpr const char* op_faster = "op_faster";
// system calls by name, per token
constexpr const char* calls_changed = "calls_changed";
constexpr const char* threads_changed = "threads_changed";
// what a server took from a cache, or accepted of a draft
constexpr const char* served_changed = "served_changed";
// a rate, a time or memory, with no difference that explains it
constexpr const char* time_changed = "time_changed";
// none of the above
constexpr const char* count_changed = "count_changed";
// weir.yaml says what it means
constexpr const char* user_rule = "user_rule";
}  // namespace kind

using verdict::Finding;

struct Total {
  std::string name;  // "dispatches"
  Rational before, after;
};

// Of the later side of a cell on a device.
struct Hint {
  std::string metric;
  double value = 0;
  std::string text;  // one line
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
  // Models of the same shape in the same run, each with its rate: "q8_0 41.2 tok/s".
  std::vector<std::string> other_quantizations{};
};

struct Explanation {
  std::string cell;
  unit::Scope scope = unit::Scope::per_token;
  std::vector<Total> totals;        // dispatches, barriers, syncs, where both sides have them
  std::vector<Finding> findings;    // best first
  std::vector<Hint> hints;          // counts outside of the usual, of the later side
  std::vector<Check> checklist;     // for slow engines
  std::vector<std::string> doubts;  // of the data
  bool alone = false;               // of one profile, which is both sides
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
void fields(Fields& io, Explanation& explanation);

}  // namespace weir::explain
