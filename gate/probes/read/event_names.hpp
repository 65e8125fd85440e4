// What the numbers in event files are called where people read them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gate/probes/events.h"

namespace weir::probes {

[[nodiscard]] std::string_view copy_name(std::uint32_t kind);      // of weir_copy_kind: "fill"
[[nodiscard]] std::string_view wait_name(std::uint32_t kind);      // of weir_wait_kind
[[nodiscard]] std::string_view transfer_name(std::uint32_t kind);  // of weir_probe_transfer_kind
// "memory barrier", "buffer+image layout barrier", "execution barrier".
[[nodiscard]] std::string barrier_name(const weir_event_barrier& barrier);

}  // namespace weir::probes
