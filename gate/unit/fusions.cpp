// The table of op sequences that engines fuse into one kernel.
#include "gate/unit/fusions.hpp"

#include <algorithm>

#include "gate/base/text.hpp"

namespace weir::unit {
namespace {

using Ops = std::vector<std::string_view>;

// Returns the fusions (ops that run as one kernel) of ggml-vulkan and ggml-cuda, llama.cpp v0.5.0.
// ADD+RMS_NORM is not among them: ggml-vulkan lets the ADD prepare the norm and still runs two
// kernels.
std::vector<Fusion> make_fusions() {
  std::vector<Fusion> table = {
      {{"SOFTPLUS", "SQRT", "ADD", "ARGSORT", "GET_ROWS", "SUM_ROWS", "CLAMP", "DIV"}, "topk_moe"},
      {{"SIGMOID", "ADD", "ARGSORT", "GET_ROWS", "SUM_ROWS", "CLAMP", "DIV"}, "topk_moe"},
      {{"SOFT_MAX", "ARGSORT", "GET_ROWS", "SUM_ROWS", "CLAMP", "DIV"}, "topk_moe"},
      {{"SOFT_MAX", "ARGSORT", "GET_ROWS"}, "topk_moe"},
      {{"ARGSORT", "GET_ROWS", "SOFT_MAX"}, "topk_moe"},
      {{"RMS_NORM", "MUL", "ROPE", "SET_ROWS"}, "rms_norm_mul_rope"},
      {{"RMS_NORM", "MUL", "ROPE"}, "rms_norm_mul_rope"},
      {{"RMS_NORM", "MUL", "ADD", "MUL"}, "rms_norm_mul"},
      {{"RMS_NORM", "MUL", "ADD"}, "rms_norm_mul"},
      {{"RMS_NORM", "MUL"}, "rms_norm_mul"},
      {{"RMS_NORM", "SET_ROWS"}, "rms_norm_set_rows"},
      {{"ROPE", "SET_ROWS"}, "rope_"},
      {{"MUL_MAT", "ADD", "ADD"}, "mul_mat_vec", true},
      {{"MUL_MAT", "ADD"}, "mul_mat_vec", true},
      {{"MUL_MAT_ID", "ADD_ID", "MUL"}, "mul_mat_vec_id", true},
      {{"MUL_MAT_ID", "ADD_ID"}, "mul_mat_vec_id", true},
      {{"MUL_MAT_ID", "MUL"}, "mul_mat_vec_id", true},
      {{"SILU", "MUL"}, "silu_mul"},
      {{"GELU", "MUL"}, "gelu_mul"},
      {{"SIGMOID", "MUL"}, "sigmoid_mul"},
      {{"SOFTPLUS", "MUL"}, "softplus_mul"},
      {{"SSM_CONV", "ADD", "SILU"}, "ssm_conv_bias_silu"},
      {{"SSM_CONV", "SILU"}, "ssm_conv_silu"},
      {{"MUL", "SIN", "SQR", "MUL", "ADD"}, "snake"},
      {{"SCALE", "TANH", "SCALE"}, "softcap"},
      // One op of ggml's own: SOFT_MAX takes a scale and a mask.
      {{"SCALE", "ADD", "SOFT_MAX"}, ""},
      {{"SCALE", "SOFT_MAX"}, ""},
  };
  for (std::size_t adds = 9; adds >= 2; --adds) table.push_back({Ops(adds, "ADD"), "multi_add"});
  return table;
}

// Returns true if `ops` begins with `wanted`, each op taking the result of the one before.
bool begins_with_ops(const Ops& wanted, std::span<const OpInRow> ops) {
  if (wanted.size() > ops.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (ops[i].op != wanted[i] || (i > 0 && !ops[i].follows)) return false;
  }
  return true;
}

}  // namespace

std::string Fusion::name() const {
  return text::join(std::vector<std::string>(ops.begin(), ops.end()), "+");
}

const std::vector<Fusion>& fusions() {
  static const std::vector<Fusion> k_fusions = make_fusions();
  return k_fusions;
}

// Counts, by fusion, the rows of ops that it could join into one kernel. The longest fusion wins,
// and no op counts twice. `one_row`: the ops compute a single token.
std::map<std::string, std::int64_t> count_fusible_rows(std::span<const OpInRow> ops, bool one_row) {
  std::map<std::string, std::int64_t> rows;
  while (!ops.empty()) {
    const Fusion* longest = nullptr;
    for (const Fusion& fusion : fusions()) {
      if ((one_row || !fusion.needs_vector) && begins_with_ops(fusion.ops, ops) &&
          (longest == nullptr || fusion.ops.size() > longest->ops.size())) {
        longest = &fusion;
      }
    }
    if (longest != nullptr) ++rows[longest->name()];
    ops = ops.subspan(longest == nullptr ? 1 : longest->ops.size());
  }
  return rows;
}

}  // namespace weir::unit
