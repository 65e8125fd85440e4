// Checks that a backend has kernels for the types of all tensors of a model.
#include "tools/engine/types.hpp"

#include "tools/engine/cpu_kernels.hpp"
#include "tools/engine/missing.hpp"

namespace weir::engine {
namespace {

Result<void> check_rows(const Tensor& tensor, std::string_view backend) {
  if (can_unpack(tensor.type)) return {};
  return missing_kernel(
      backend,
      fmt::format("row look-up in {} ({})", model::tensor_type_info(tensor.type).name, tensor.name),
      "run it with llama.cpp", "convert to Q8_0");
}

}  // namespace

// Fails for a tensor whose type the backend has no kernel for. The error says what helps.
Result<void> check_types(const Model& model, std::string_view backend,
                         const Multiplies& multiplies) {
  const auto check_matrix = [&](const Tensor& tensor) -> Result<void> {
    if (multiplies(tensor.type)) return {};
    return missing_kernel(backend,
                          fmt::format("matrix-vector product of {} ({})",
                                      model::tensor_type_info(tensor.type).name, tensor.name),
                          backend != "cpu" && cpu_multiplies(tensor.type) ? "use --backend cpu"
                                                                          : "run it with llama.cpp",
                          "convert to Q8_0");
  };
  WEIR_CHECK(check_rows(model.embedding, backend));
  WEIR_CHECK(check_rows(model.output_norm, backend));
  WEIR_CHECK(check_matrix(model.output));
  for (const Layer& layer : model.layers) {
    for (const Tensor* matrix : {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate,
                                 &layer.up, &layer.down}) {
      WEIR_CHECK(check_matrix(*matrix));
    }
    WEIR_CHECK(check_rows(layer.attention_norm, backend));
    WEIR_CHECK(check_rows(layer.ffn_norm, backend));
  }
  return {};
}

}  // namespace weir::engine
