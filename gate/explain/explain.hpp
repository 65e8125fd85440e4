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

// Kinds of findings: name, the direction in which it may change times, and a sentence for a cause
// over many cells. The last text is used if every finding only says that it seems so.
#define WEIR_FINDING_KINDS(K)                                                                  \
  K(batches_changed, either, "The same work is done in other batches", "")                     \
  K(graphs_lost, slower, "GPU graphs are no longer used", "")                                  \
  K(graphs_gained, faster, "GPU graphs are now used", "")                                      \
  K(work_moved_to_cpu, slower, "Work moved to the CPU", "Work seems to have moved to the CPU") \
  K(work_moved_to_gpu, faster, "Work moved to the GPU", "Work seems to have moved to the GPU") \
  K(fusion_lost, slower, "Fusion lost", "Fusion seems lost")                                   \
  K(fusion_gained, faster, "Fusion gained", "Fusion seems gained")                             \
  K(batching_lost, slower, "Batching lost", "Batching seems lost")                             \
  K(batching_gained, faster, "Batching gained", "Batching seems gained")                       \
  K(sync_per_layer, slower, "A CPU step came in between GPU steps, layer by layer", "")        \
  K(sync_added, slower, "The CPU waits for the GPU more often", "")                            \
  K(sync_removed, faster, "The CPU waits for the GPU less often", "")                          \
  K(read_back_added, slower, "A value is read back", "")                                       \
  K(read_back_removed, faster, "A value is no longer read back", "")                           \
  K(extra_copies, slower, "More is copied between memories", "")                               \
  K(copies_removed, faster, "Less is copied between memories", "")                             \
  K(moved_to_library, either, "Matrix multiplications moved to the vendor's library", "")      \
  K(moved_from_library, either, "Matrix multiplications moved to the engine's kernels", "")    \
  K(matrix_cores_lost, either, "Matrix cores are no longer used", "")                          \
  K(matrix_cores_gained, either, "Matrix cores are now used", "")                              \
  K(stream_k_changed, either, "Stream-k fixups changed", "")                                   \
  K(attention_unfused, slower, "Attention runs without a fused kernel", "")                    \
  K(norm_unfused, slower, "A norm is no longer fused", "")                                     \
  K(convolution_unfused, slower, "A convolution is no longer one call", "")                    \
  K(wider_type, slower, "Work is computed in a wider type", "")                                \
  K(mask_built, slower, "A mask is built", "")                                                 \
  K(conversion_added, slower, "Values are converted to another type", "")                      \
  K(variant_changed, either, "Another kernel does the same work", "")                          \
  K(code_changed, either, "Kernels have other code, or run in other groups", "")               \
  K(splits_changed, either, "The graph is cut into other parts between backends", "")          \
  K(submits_changed, either, "The GPU gets its work in other parts", "")                       \
  K(grows_with_context, either, "Counts go with the context in another way", "")               \
  K(fixed_cost_changed, neither, "What is done once changed", "")                              \
  K(memory_changed, either, "Memory of devices changed", "")                                   \
  K(made_late, either, "Pipelines are made at other times", "")                                \
  K(op_added, slower, "More work on the device", "")                                           \
  K(op_removed, faster, "Less work on the device", "")                                         \
  K(op_slower, slower, "Ops take longer", "")                                                  \
  K(op_faster, faster, "Ops take less long", "")                                               \
  K(calls_changed, either, "System calls changed", "")                                         \
  K(costly_call_added, slower, "The host does more that takes long for each token", "")        \
  K(costly_call_removed, faster, "The host does less that takes long for each token", "")      \
  K(host_calls_added, slower, "The host calls more functions for each token", "")              \
  K(host_calls_removed, faster, "The host calls fewer functions for each token", "")           \
  K(threads_changed, either, "The engine has another number of threads", "")                   \
  K(served_changed, either, "A server says otherwise of its caches or drafts", "")             \
  K(time_changed, either, "The time of the same work changed", "")                             \
  K(count_changed, neither, "Counts changed, and nothing known explains it", "")               \
  K(user_rule, either, "", "") /* weir.yaml says what it means */

namespace kind {
#define WEIR_KIND_NAME(name, effect, sentence, seems) constexpr const char* name = #name;
WEIR_FINDING_KINDS(WEIR_KIND_NAME)
#undef WEIR_KIND_NAME
}  // namespace kind

using verdict::Finding;

struct Total {
  std::string name;  // "dispatches"
  Rational before, after;
};

// A count of the later side of a device's cell that is unusual.
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
  std::string note;  // the value, or the reason why there is no answer
};
[[nodiscard]] std::string_view to_string(Check::Answer answer);  // "fine", "wrong", "unknown"

// Ops that the config lets run on the CPU; absent where that is not known.
using AllowedOps = std::optional<std::set<std::string>>;

struct Options {
  Bands bands;
  std::vector<Rule> rules;
  AllowedOps cpu_ops_allowed{};  // the cell's
  // Models of the same shape in the same run, each with its rate: "q8_0 41.2 tok/s".
  std::vector<std::string> other_quantizations{};
};

struct Explanation {
  std::string cell;
  unit::Scope scope = unit::Scope::per_token;
  std::vector<Total> totals;          // dispatches, barriers, syncs, where both sides have them
  std::vector<Finding> findings;      // best first
  std::vector<Hint> hints;            // counts outside of the usual, of the later side
  std::vector<Check> checklist;       // for slow engines
  std::vector<std::string> warnings;  // doubts about the data
  bool has_work = true;               // as in Evidence; in no file
  bool is_alone = false;              // true for one profile, which is both sides
  bool sides_differ = false;          // something does, explained or not
  // The gate's verdict if it is no pass ("fail", "error", "new", …) and its reason, one line.
  std::string verdict, reason;
};

// Explains the differences. `model` may be null: then counts are not fitted to layers.
[[nodiscard]] Explanation explain(const Evidence& evidence, const ModelFacts* model,
                                  const Options& options);

// "/token", "/prefill" as words: "a token"; "" for the rest.
[[nodiscard]] std::string per_text(unit::Scope scope);

// One element of the list in weir.explanation/1: {"cell", "findings": [...], ...}.
void fields(Fields& io, Explanation& explanation);

}  // namespace weir::explain
