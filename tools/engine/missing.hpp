// The missing-kernel policy: a backend never hands work to another one in silence.
//
// What it cannot do stops the program, before anything is computed, with what is missing, what
// gets around it and what else would do:
//
//   vulkan: matrix-vector product of BF16 not implemented — use --backend cpu or convert to F16
//
// weir knows such messages, from any engine, and shows them as the cell's error
// (gate/adapters/format.hpp). Two kinds of work run on the CPU whatever the backend, and
// are counted as ops there: GET_ROWS (one row of the embedding) and SOFT_MAX of fewer than 128
// values. Both take less time than a dispatch costs.
#pragma once

#include <string_view>

#include "gate/base/result.hpp"

namespace weir::engine {

// `workaround` and `alternative` follow a dash: "use --backend cpu", "convert to F16".
[[nodiscard]] inline tl::unexpected<Error> missing_kernel(std::string_view backend,
                                                          std::string_view what,
                                                          std::string_view workaround,
                                                          std::string_view alternative) {
  return fail(Code::unavailable, "{}: {} not implemented — {} or {}", backend, what, workaround,
              alternative);
}

// Below it a softmax is done by the CPU, on any backend.
inline constexpr std::uint32_t k_softmax_on_gpu_from = 128;

}  // namespace weir::engine
