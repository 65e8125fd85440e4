// Finds attention and matrix products that moved to the GPU's matrix cores or from them, and tiles
// that stream-k cuts otherwise.
#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {
namespace {

struct Op {
  std::string_view name, text;
};
constexpr std::array k_ops{Op{"FLASH_ATTN_EXT", "attention"},
                           Op{"MUL_MAT", "matrix multiplications"},
                           Op{"MUL_MAT_ID", "matrix multiplications of experts"}};

WorkChanges select_op(const ExplainState& state, const Op& op) {
  const UnexplainedChanges changed(state);
  return filter(concatenated(changed.increased, changed.decreased),
                [&](const WorkChange* change) { return holds(change->parsed.works, op.name); });
}

bool adds_up_tiles(const WorkChange* change) { return profile::adds_up_tiles(change->name); }

// Returns true for kernels that add up what others of the op computed in pieces.
bool adds_up_pieces(const WorkChange* change) {
  return adds_up_tiles(change) || change->name.find("combine_results") != std::string::npos;
}

bool is_added(const WorkChange* change) { return change->is_increase(); }

// Adds a finding if, for this op, kernels that use matrix cores replaced as many others, or the
// reverse.
void add_move(ExplainState& state, const Op& op) {
  const WorkChanges all = select_op(state, op);
  const auto select_by_matrix_cores = [&](bool uses) {
    return filter(all, [&](const WorkChange* change) {
      return profile::uses_matrix_cores(change->name) == uses && !adds_up_pieces(change);
    });
  };
  const WorkChanges with_cores = select_by_matrix_cores(true),
                    without_cores = select_by_matrix_cores(false);
  const Rational delta = total_delta(with_cores);
  if (delta == k_zero || total_delta(without_cores) != k_zero.minus(delta)) return;
  const bool is_gained = delta > k_zero;
  const WorkChanges kernels =
      concatenated(concatenated(with_cores, without_cores), filter(all, adds_up_pieces));
  const WorkChanges added = filter(is_gained ? with_cores : without_cores, is_added);
  const WorkChanges removed = filter(is_gained ? without_cores : with_cores, std::not_fn(is_added));
  Finding finding = state.finding_about(
      is_gained ? kind::matrix_cores_gained : kind::matrix_cores_lost, "dispatches");
  finding.headline =
      fmt::format("Matrix cores are {} used for {}: {} in place of {}, {}.",
                  is_gained ? "now" : "no longer", op.text, safe_name(added.front()->name),
                  safe_name(removed.front()->name), frequency_text(delta, state.evidence.scope));
  finding.lines.push_back(changes_text(kernels, 6));
  finding.cause =
      "the choice by GPU, size of heads, type or number of tokens. The names tell which units "
      "compute, and no time: code for matrix cores may spill registers.";
  finding.look_at = "how the engine chooses the kernel for this GPU.";
  add_dispatched(state, std::move(finding), kernels, dispatch_change(kernels));
}

}  // namespace

// Claims kernels of an op, if as many more run on matrix cores as fewer run elsewhere, or the
// reverse, and the kernels that add up their pieces.
void find_matrix_cores(ExplainState& state) {
  for (const Op& op : k_ops) add_move(state, op);
}

// Adds a finding if more or fewer kernels add up tiles that stream-k cut, while as many others of
// the op run. Stream-k splits a matmul's tiles evenly among processors.
void find_stream_k(ExplainState& state) {
  for (const Op& op : k_ops) {
    const WorkChanges all = select_op(state, op);
    const WorkChanges fixups = filter(all, adds_up_tiles),
                      others = filter(all, std::not_fn(adds_up_pieces));
    const Rational delta = total_delta(fixups);
    if (delta == k_zero || total_delta(others) != k_zero) continue;
    Finding finding = state.finding_about(kind::stream_k_changed, "dispatches");
    finding.headline =
        fmt::format("{} stream-k fixups of {}: {}, {}.", delta > k_zero ? "More" : "Fewer", op.text,
                    safe_name(fixups.front()->name), frequency_text(delta, state.evidence.scope));
    finding.lines.push_back(changes_text(fixups, 6));
    finding.cause =
        "stream-k is used or not on this GPU, or its tiles divide otherwise among the processors "
        "and the blocks that fit on one, by registers and shared memory.";
    finding.look_at = "how the engine computes the number of blocks.";
    add_dispatched(state, std::move(finding), fixups, dispatch_change(fixups));
  }
}

}  // namespace weir::explain
