// Draws records that a pull request could write so that judging them takes as much as it can.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace weir::hostile {

// The largest file of a drawn record.
inline constexpr std::size_t k_max_bytes = std::size_t{1} << 20;

// How a drawn record is judged.
enum class Command {
  from,        // weir gate --from run
  from_rules,  // weir gate --from run --rules-from main
  compare,     // weir compare base run
};

struct DrawnRecord {
  std::string families;  // what it has much of: "kernels limits"
  Command command = Command::from;
  std::map<std::string, std::string> files;  // by path: "run/run.jsonl"
};
// Returns the same for the same seed, on every machine. Each file has at most k_max_bytes.
[[nodiscard]] DrawnRecord draw_record(std::uint64_t seed);

}  // namespace weir::hostile
