// Times as foreign series write them. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace weir::history {

// Seconds since the epoch, from Unix seconds ("1795000000", "1795000000.25") or ISO 8601:
// "2026-11-20", "2026-11-20T09:30", "2026-11-20 09:30:15.5Z", "2026-11-20T09:30:15+02:00"; without
// a zone it is UTC. Nothing on anything else, dates that no calendar has included.
[[nodiscard]] std::optional<double> parse_time(std::string_view text);

}  // namespace weir::history
