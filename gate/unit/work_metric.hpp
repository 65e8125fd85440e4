// Metrics of single ops and kernels: their time ("op:lm_head", "kernel:NAME") and their calls
// ("op_calls:NAME", "kernel_calls:NAME"), per token or prefill as the cell counts.
//
// find_metric() knows every such name; no default limit covers one. Pure.
#pragma once

#include <string>
#include <string_view>

#include "gate/unit/metric.hpp"

namespace weir::unit {

// `text` begins as such names do; it may be a pattern of them.
[[nodiscard]] bool names_work(std::string_view text);

// `prefix` ("kernel_calls:") and a name from outside, cut and made fit for a metric's name.
[[nodiscard]] std::string work_name(std::string_view prefix, std::string_view name);

}  // namespace weir::unit
