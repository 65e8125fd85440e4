// What a kernel or op is there for, whatever engine, backend or quantization wrote its name:
// "mul_mat_vec_q4_0_f32_f32" (Vulkan), "kernel_mul_mv_q8_0_f32" (Metal), "MUL_MAT" (ggml's CPU) and
// "gemv_ffn" (Agave) all multiply a matrix.
//
// Roles have ggml's names of ops, joined for fusions ("RMS_NORM_MUL"), and with "+" for work that a
// profiler timed together ("rope_norm_f32, set_rows_f32_i64": "ROPE+SET_ROWS"). A name that tells
// of no known work is its own role. Names come from strangers and may be anything. Pure.
#pragma once

#include <string>
#include <string_view>

namespace weir::explain {

struct Role {
  std::string work;     // "MUL_MAT", "RMS_NORM_MUL"; "" of an empty name alone
  std::string part;     // what of it, or how: "ffn", "vec"; "" where the name adds nothing
  std::string variant;  // as in KernelName: "q4_0_f32_f32"

  friend bool operator==(const Role&, const Role&) = default;
};
[[nodiscard]] Role role_of(std::string_view name);

}  // namespace weir::explain
