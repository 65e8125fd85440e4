// Finds work that left the device for the CPU, or came back. If a probe sees ops, they show it.
// Else dispatches that are gone while waits, splits or copies are new show it, because such a step
// has to be waited for and its data copied. Names and numbers of kernels separate this from work
// that other kernels do now.

#include "gate/base/text.hpp"
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// In all functions below `to_cpu` means that the work left the device; false means that it came
// back, and every sign is reversed.

// Sums of decreases and of increases in the direction of the move.
struct Balance {
  double decrease = 0, increase = 0;

  void add(double delta, bool to_cpu) {
    if ((delta > 0) == to_cpu) {
      increase += std::fabs(delta);
    } else {
      decrease += std::fabs(delta);
    }
  }
  [[nodiscard]] bool has_fallen() const { return decrease > 0 && increase * 4 < decrease; }
  [[nodiscard]] bool is_zero() const { return decrease <= 0 && increase <= 0; }
};

// Adds up the balance of sums that are already grouped by work.
Balance sum_balance(const std::map<std::string, double>& sums, bool to_cpu) {
  Balance balance;
  for (const auto& [work, sum] : sums) balance.add(sum, to_cpu);
  return balance;
}

// Adds up the balance of all changes of kernels.
Balance sum_balance(const std::vector<WorkChange>& kernels, bool to_cpu) {
  Balance balance;
  for (const WorkChange& change : kernels) balance.add(change.delta().value(), to_cpu);
  return balance;
}

// Returns true if other kernels do its work now: its parts, or a variant of it.
bool is_replaced(const WorkChange& change, const std::vector<KernelName>& others) {
  return !find_fused_parts(change.parsed, others).empty() ||
         std::ranges::any_of(
             others, [&](const KernelName& other) { return same_work(change.parsed, other); });
}

// Returns true if submissions changed at least twice as much as waits. A step on the CPU cuts
// submissions into pieces, also where memory is shared and nothing is copied; a wait that someone
// added does not.
bool has_more_submissions(const Differences& differences, bool to_cpu) {
  const double sign = to_cpu ? 1 : -1;
  const double syncs = sign * differences.count("syncs").value();
  return syncs >= 2 && sign * differences.count("submits").value() >= 2 * syncs;
}

// Returns true if many kinds of kernels run less often (more often unless `to_cpu`), matmuls among
// them, and hardly one the reverse. Some must still run, for other layers.
bool run_less_broadly(const std::vector<WorkChange>& kernels, bool to_cpu) {
  std::set<std::string> kinds;
  bool has_matmul = false, is_any_still_running = false;
  for (const WorkChange* change : select_changes(kernels, !to_cpu)) {
    const bool is_unnamed_kernel = has_no_name(change->name);
    const bool still_runs = change->before != k_zero && change->after != k_zero;
    if (is_unnamed_kernel && !still_runs) continue;
    is_any_still_running = is_any_still_running || still_runs;
    kinds.insert(is_unnamed_kernel ? change->name : change->parsed.base());
    has_matmul = has_matmul || is_unnamed_kernel || is_matmul(change->parsed);
  }
  return has_matmul && is_any_still_running && kinds.size() >= 4 &&
         sum_balance(kernels, to_cpu).has_fallen();
}

// Returns the kernels that run less often (more often unless `to_cpu`), except those whose work
// other kernels do now.
WorkChanges kernels_without_replacement(const std::vector<WorkChange>& kernels, bool to_cpu) {
  constexpr std::size_t k_max_pairs = 1'000'000;
  WorkChanges gone = select_changes(kernels, !to_cpu);
  const WorkChanges new_kernels = select_changes(kernels, to_cpu);
  if (gone.size() * new_kernels.size() > k_max_pairs) return gone;
  const std::vector<KernelName> new_names = names_in(new_kernels), gone_names = names_in(gone);
  std::set<std::size_t> parts;
  for (const KernelName& other : new_names) {
    for (const std::size_t part : find_fused_parts(other, gone_names)) parts.insert(part);
  }
  WorkChanges unreplaced;
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (!parts.contains(i) && !is_replaced(*gone[i], new_names)) unreplaced.push_back(gone[i]);
  }
  return unreplaced;
}

// Returns true if a kernel is gone altogether, none was replaced, and hardly one came.
bool is_plain_removal(const std::vector<WorkChange>& kernels, bool to_cpu) {
  const WorkChanges fewer = select_changes(kernels, !to_cpu);
  if (kernels_without_replacement(kernels, to_cpu).size() != fewer.size()) return false;
  const bool any_removed = std::ranges::any_of(fewer, [&](const WorkChange* change) {
    return (to_cpu ? change->after : change->before) == k_zero;
  });
  return any_removed && sum_balance(kernels, to_cpu).has_fallen();
}

// Returns true if the CPU seems to run a step in between: data crosses between the devices more
// often, and the device does less work.
//
// The device waits for a step on the CPU, and its data is copied unless memory is shared. The sum
// of dispatches says little here, because fusions around the step change. So we look for fewer
// matmuls and attentions with hardly any new ones, regardless of small kernels. If these are as
// before, the words in names of small kernels have to fall with hardly one rising ("rope" moves
// from rope_set_rows to rope, "set" and "rows" are gone). Then copies or many submissions have to
// change as well, because a wait alone may have any reason.
bool has_cpu_step(const Differences& differences, bool to_cpu) {
  const Rational syncs = differences.count("syncs"), copies = differences.count("copies");
  if (syncs == k_zero || (syncs > k_zero) != to_cpu) return false;
  if (copies != k_zero && (copies > k_zero) != to_cpu) return false;
  std::map<std::string, double> large_deltas, word_deltas;
  for (const WorkChange& change : differences.kernels) {
    const double delta = change.delta().value();
    if (is_large_work(change.parsed)) large_deltas[change.parsed.base()] += delta;
    for (const std::string& word : change.parsed.words) word_deltas[word] += delta;
  }
  const Balance large_balance = sum_balance(large_deltas, to_cpu);
  if (!large_balance.is_zero()) return large_balance.has_fallen();
  return sum_balance(word_deltas, to_cpu).has_fallen() &&
         (copies != k_zero || has_more_submissions(differences, to_cpu));
}

struct MovedWork {
  bool to_cpu = true;
  WorkChanges ops{};                    // ops that run on the CPU now
  std::vector<std::string> gate_ops{};  // ops that the gate saw there, if `ops` is empty
  std::string evidence{};               // the reason to believe it, if ops are not known
  bool is_uncertain = false;            // there may be another reason
};

// Counts that grow with the work that crosses between the device and the CPU.
constexpr std::array k_crossings = {"syncs", "splits", "copies", "backend_syncs", "tensor_copies"};

// Returns true if ops of the CPU are gone without coming to the device: the CPU fuses them, and the
// device does less as well, with as many crossings.
bool stayed_on_device(const ExplainState& state, bool to_cpu) {
  if (to_cpu) return false;
  const auto moves_along = [&](const char* base) {
    return same_sign(state.differences.count(base), Rational(to_cpu ? 1 : -1));
  };
  const auto is_counted = [&](const char* base) { return both_sides_count(state.evidence, base); };
  return moves_along("dispatches") && std::ranges::any_of(k_crossings, is_counted) &&
         std::ranges::none_of(k_crossings, moves_along);
}

// Returns true if each graph has the same ops on the CPU as before, and only the number of
// computed graphs changed.
bool follows_from_graphs(const ExplainState& state) {
  const auto ops = exact_counts(state.evidence, "cpu_ops");
  const auto graphs = exact_counts(state.evidence, "graphs");
  if (!ops || !graphs || graphs->before == graphs->after) return false;
  if (graphs->before <= k_zero || graphs->after <= k_zero || ops->before <= k_zero) return false;
  const auto is_new_or_gone = [](const WorkChange& op) {
    return op.before == k_zero || op.after == k_zero;
  };
  if (std::ranges::any_of(state.differences.cpu_ops, is_new_or_gone)) return false;
  const auto before_scaled = ops->before.times(graphs->after),
             after_scaled = ops->after.times(graphs->before);
  return before_scaled && after_scaled && *before_scaled == *after_scaled;
}

// Finds moved work by the ops that ran on the CPU.
std::optional<MovedWork> find_by_ops(const ExplainState& state) {
  if (follows_from_graphs(state)) return std::nullopt;
  const auto& ops = state.differences.cpu_ops;
  Rational net;
  for (const WorkChange& op : ops) net = net.plus(op.delta()).value_or(net);
  if (net == k_zero) net = state.differences.count("cpu_ops");
  if (net == k_zero || stayed_on_device(state, net > k_zero)) return std::nullopt;
  return MovedWork{net > k_zero, select_changes(ops, net > k_zero)};
}

// Finds moved work by counts alone, if no side reports where ops ran.
std::optional<MovedWork> find_by_counts(const ExplainState& state) {
  const Evidence& evidence = state.evidence;
  const std::vector<WorkChange>& kernels = state.differences.kernels;
  // Takes the reason for either direction.
  const auto make_moved = [](bool to_cpu, bool is_uncertain, const char* if_to_cpu,
                             const char* if_to_gpu) {
    MovedWork moved;
    moved.to_cpu = to_cpu;
    moved.evidence = to_cpu ? if_to_cpu : if_to_gpu;
    moved.is_uncertain = is_uncertain;
    return moved;
  };
  const auto totals = exact_counts(evidence, "dispatches");
  if (totals && is_on_one_side(totals->before, totals->after)) {
    return make_moved(totals->after == k_zero, /*is_uncertain=*/false,
                      "The device gets no work at all any more.",
                      "The device got no work at all before.");
  }
  // Both sides report their ops, and none moved.
  if (evidence.cpu_ops_known || evidence.graph_known) return std::nullopt;
  if (evidence.after.metrics.contains(metric_name(evidence, "cpu_ops"))) return std::nullopt;
  const bool has_names = evidence.kernels_known && !kernels.empty();
  for (const bool to_cpu : {true, false}) {
    if (!has_names || !has_cpu_step(state.differences, to_cpu)) continue;
    return make_moved(
        to_cpu, /*is_uncertain=*/true,
        "Kernels do less, and the CPU waits for the device more often: it does the rest in "
        "between.",
        "Kernels do more, and the CPU waits for the device less often: it did that in "
        "between.");
  }
  const Rational dispatches = state.differences.count("dispatches");
  if (dispatches == k_zero) return std::nullopt;
  const bool to_cpu = dispatches < k_zero;
  const bool is_broad = run_less_broadly(kernels, to_cpu);
  // If kernels have names they have to show it too: one more wait or copy says little.
  if (has_names && !is_broad && !is_plain_removal(kernels, to_cpu)) return std::nullopt;
  int votes = 0;
  for (const char* base : k_crossings) {
    const Rational delta = state.differences.count(base);
    if (delta == k_zero) continue;
    if (same_sign(delta, dispatches)) {
      --votes;
    } else {
      ++votes;
    }
  }
  if (votes > 0) {
    return make_moved(to_cpu, /*is_uncertain=*/true,
                      "Dispatches are gone while waits, splits or copies are new.",
                      "Dispatches are new while waits, splits or copies are gone.");
  }
  if (votes < 0 || !is_broad) return std::nullopt;
  return make_moved(to_cpu, /*is_uncertain=*/true,
                    "Kernels of all kinds run less often: the CPU does their work, or nobody.",
                    "Kernels of all kinds run more often: the CPU did their work, or nobody.");
}

// Adds the ops that the gate saw on the CPU, if the baseline does not say which were there.
std::optional<MovedWork> add_gate_names(const ExplainState& state, std::optional<MovedWork> moved) {
  const auto& gate = state.evidence.gate;
  if (!gate || gate->not_allowed.empty() || state.evidence.cpu_ops_known) return moved;
  if (!moved && !changed_amounts(state, {"syncs", "splits", "copies", "dispatches"}).empty()) {
    moved = MovedWork{};
  }
  if (!moved || !moved->to_cpu || !moved->ops.empty()) return moved;
  moved->gate_ops.assign(gate->not_allowed.begin(), gate->not_allowed.end());
  moved->is_uncertain = false;
  return moved;
}

// Returns how much more often the moved op of this name runs on the CPU; 0 without one.
double moved_times(const MovedWork& moved, std::string_view name) {
  for (const WorkChange* op : moved.ops) {
    if (op->name == name) return absolute_value(op->delta());
  }
  return 0;
}

bool has_moved(const MovedWork& moved, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return moved_times(moved, name) > 0; });
}

// Returns true if the ops of whole layers moved: multiplications, attention and norms.
bool has_moved_layers(const MovedWork& moved) {
  return has_moved(moved, {"MUL_MAT", "MUL_MAT_ID"}) &&
         has_moved(moved, {"FLASH_ATTN_EXT", "SOFT_MAX"}) && has_moved(moved, {"RMS_NORM", "NORM"});
}

// Returns true if only ops that write or read the cache moved.
bool has_moved_cache(const MovedWork& moved) {
  constexpr std::array<std::string_view, 6> k_of_cache{"SET_ROWS", "CPY",     "CONT",
                                                       "SOFT_MAX", "MUL_MAT", "FLASH_ATTN_EXT"};
  const auto is_of_cache = [&](const WorkChange* op) {
    return holds(k_of_cache, std::string_view(op->name));
  };
  const bool has_plain_product = has_moved(moved, {"MUL_MAT"}) && !has_moved(moved, {"SOFT_MAX"});
  return has_moved(moved, {"SET_ROWS", "CPY"}) && std::ranges::all_of(moved.ops, is_of_cache) &&
         !has_plain_product;
}

// Returns "3 of 4 layers"; "whole layers" if attention does not tell how many.
std::string moved_layers_text(const ExplainState& state, const MovedWork& moved) {
  const double attentions = moved_times(moved, "FLASH_ATTN_EXT");
  const bool is_known = state.evidence.scope == unit::Scope::per_token && attentions > 0 &&
                        attentions == std::floor(attentions);
  if (!is_known) return "whole layers";
  const auto number = static_cast<std::size_t>(attentions);
  if (state.model == nullptr || static_cast<double>(state.model->layers) < attentions) {
    return text::plural(number, "layer");
  }
  return fmt::format("{} of {} layers", number, state.model->layers);
}

// Returns "Work moved to the CPU: ROPE once a token and 2 more kinds." with up to three ops, or
// the layers that moved.
std::string headline(const ExplainState& state, const MovedWork& moved) {
  const unit::Scope scope = state.evidence.scope;
  constexpr std::size_t k_shown = 3;
  const char* where = moved.to_cpu ? "to the CPU" : "to the GPU";
  if (moved.is_uncertain) return fmt::format("Work seems to have moved {}.", where);
  std::vector<std::string> ops;
  for (const WorkChange* op : std::span(moved.ops).first(std::min(moved.ops.size(), k_shown))) {
    ops.push_back(safe_name(op->name) + " " +
                  frequency_text(op->delta(), ops.empty() ? scope : unit::Scope::whole_run));
  }
  for (const std::string& op : moved.gate_ops) {
    if (ops.size() < k_shown) ops.push_back(safe_name(op));
  }
  const std::size_t more = moved.ops.size() + moved.gate_ops.size() - ops.size();
  std::string rest;
  if (more > 0) rest = " and " + text::plural(more, "more kind");
  const std::string list = text::join(ops) + rest;
  if (has_moved_layers(moved)) {
    return fmt::format("Work moved {}: {} ({}).", where, moved_layers_text(state, moved), list);
  }
  return fmt::format("Work moved {}{}{}.", where, ops.empty() ? "" : ": ", list);
}

// Returns why work left the device.
const char* moved_cause(const MovedWork& moved) {
  if (has_moved_layers(moved))
    return "fewer layers are offloaded (-ngl), or fewer fit on the device.";
  if (has_moved_cache(moved)) {
    return "the backend lacks a kernel for this op, type or shape, or the KV cache is kept on the "
           "host (-nkvo).";
  }
  return "the backend lacks a kernel for this op, type or shape; weights or cache are kept on the "
         "host; fewer layers are offloaded.";
}

// Returns the changes that a move of work made: ops by name, then counts. Dispatches are left out
// if other kernels more than make up for `kernels`, which left with the move.
std::vector<Amount> move_amounts(const ExplainState& state, const MovedWork& moved,
                                 const WorkChanges& kernels) {
  std::vector<Amount> amounts = changed_amounts(state, {"cpu_ops"});
  for (const WorkChange* op : moved.ops) {
    if (amounts.size() >= 5) break;
    amounts.push_back({safe_name(op->name) + " on the CPU", op->delta()});
  }
  if (moved.ops.size() == 1 && amounts.size() == 2) amounts.erase(amounts.begin());
  std::vector<std::string> bases = {"syncs", "splits", "copies"};
  const double kernel_change = total_delta(kernels).value(),
               dispatch_total = state.differences.count("dispatches").value();
  if (kernel_change * dispatch_total >= 0) bases.emplace_back("dispatches");
  std::ranges::move(changed_amounts(state, bases), std::back_inserter(amounts));
  return amounts;
}

// Claims all counts that follow from moved work, and returns by how much they changed together.
double claim_moved_counts(ExplainState& state) {
  double units = 0;
  for (const char* count :
       {"cpu_ops", "dispatches", "barriers", "syncs", "splits", "copies", "submits",
        "tensor_copies", "tensor_sets", "tensor_gets", "copied_bytes", "backend_syncs", "graphs"}) {
    const bool is_number_of_events = count != std::string_view("copied_bytes");
    if (is_number_of_events) units += absolute_value(state.unexplained_change(count));
    state.mark_explained(count);
  }
  return units;
}

}  // namespace

// Finds work that moved between the device and the CPU. The finding explains all counts that
// follow from the move.
void find_moved(ExplainState& state) {
  if (state.evidence.device == "cpu" || !state.is_unexplained("moves")) return;
  auto moved = find_by_ops(state);
  if (!moved) moved = find_by_counts(state);
  moved = add_gate_names(state, std::move(moved));
  if (!moved) return;
  const bool to_cpu = moved->to_cpu;
  const auto has_changed = [&](const char* base) {
    return state.differences.count(base) != k_zero;
  };
  const char* base = "syncs";
  if (has_changed("dispatches")) base = "dispatches";
  if (has_changed("cpu_ops")) base = "cpu_ops";
  Finding finding =
      state.finding_about(to_cpu ? kind::work_moved_to_cpu : kind::work_moved_to_gpu, base);
  finding.headline = headline(state, *moved);
  if (!moved->evidence.empty()) finding.lines.push_back(moved->evidence);
  const WorkChanges kernels = kernels_without_replacement(state.differences.kernels, to_cpu);
  const std::vector<Amount> amounts = move_amounts(state, *moved, kernels);
  if (has_moved_layers(*moved)) {
    // Some layers moved, so that a multiple of all layers is chance.
    for (const Amount& amount : amounts) add_number(amount, finding);
  } else {
    add_amounts(state, amounts, finding);
  }
  for (const WorkChange* op : moved->ops) finding.ops.push_back(op->name);
  finding.ops.insert(finding.ops.end(), moved->gate_ops.begin(), moved->gate_ops.end());
  if (!kernels.empty()) {
    finding.lines.push_back(
        fmt::format("{} the device: {}", to_cpu ? "Gone from" : "New on", changes_text(kernels)));
    for (const WorkChange* kernel : kernels) finding.ops.push_back(kernel->name);
  }
  if (to_cpu) {
    finding.cause = moved_cause(*moved);
    finding.look_at = "the engine's log for buffers and fallbacks, and the op's supports check.";
  }
  const double units = claim_moved_counts(state);
  state.mark_explained(kernels);
  state.add(std::move(finding), /*units=*/units + 1, /*rank=*/0);
}

}  // namespace weir::explain
