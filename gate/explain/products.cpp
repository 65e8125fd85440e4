// Finds matrix multiplications that moved between the engine's own kernels and the vendor's
// library.
#include <array>

#include "gate/explain/kernel_moves.hpp"

namespace weir::explain {

bool is_library_call(std::string_view kernel) {
  constexpr std::array<std::string_view, 3> k_libraries{"cublas", "hipblas", "rocblas"};
  return std::ranges::any_of(k_libraries,
                             [&](std::string_view library) { return kernel.starts_with(library); });
}

namespace {

bool is_library_product(const WorkChange* change) { return is_library_call(change->name); }

// Returns true for what adds up the parts of a product.
bool is_fixup(const WorkChange* change) {
  return holds(change->parsed.works, "MUL_MAT") && profile::adds_up_tiles(change->name);
}

bool is_own_product(const WorkChange* change) {
  return holds(change->parsed.works, "MUL_MAT") && !is_library_product(change) && !is_fixup(change);
}

// Returns true for what prepares the input of a product: types that the library takes, or those of
// the engine's kernels.
bool is_preparation(const WorkChange* change) {
  constexpr std::array<std::string_view, 4> k_helpers{"dequantize_", "convert_unary",
                                                      "quantize_mmq", "quantize_q8"};
  return std::ranges::any_of(
      k_helpers, [&](std::string_view helper) { return change->name.starts_with(helper); });
}

}  // namespace

// Adds a finding if matrix multiplications moved between the vendor's library (cuBLAS) and the
// engine's own kernels: one has as many more as the other has fewer.
void find_products(ExplainState& state) {
  const UnexplainedChanges changed(state);
  const WorkChanges all = concatenated(changed.increased, changed.decreased);
  const WorkChanges library_products = filter(all, is_library_product),
                    own_products = filter(all, is_own_product);
  const Rational delta = total_delta(library_products);
  if (delta == k_zero || total_delta(own_products) != k_zero.minus(delta)) return;
  const bool to_library = delta > k_zero;
  Finding finding = make_finding(to_library ? kind::moved_to_library : kind::moved_from_library,
                                 metric_name(state.evidence, "dispatches"));
  const Rational moved = to_library ? delta : k_zero.minus(delta).value_or(delta);
  finding.headline = fmt::format(
      "Matrix multiplications moved {}: {}, {}.",
      to_library ? "to the vendor's library" : "from the vendor's library to the engine's kernels",
      safe_name(library_products.front()->name), frequency_text(moved, state.evidence.scope));
  WorkChanges kernels = concatenated(library_products, own_products);
  kernels = concatenated(kernels, filter(all, is_preparation));
  kernels = concatenated(kernels, filter(all, is_fixup));
  add_op_names(kernels, finding);
  finding.lines.push_back(changes_text(kernels, 6));
  finding.cause =
      "the choice by type, number of tokens or GPU. The library takes plain floats, so quantized "
      "weights are dequantized first.";
  finding.look_at = "how the engine chooses between its own kernel and the library.";
  state.mark_explained(kernels);
  state.mark_all_explained({"hipblas_calls", "cublas_calls", "dispatches"});
  state.add(std::move(finding), dispatch_change(kernels));
}

}  // namespace weir::explain
