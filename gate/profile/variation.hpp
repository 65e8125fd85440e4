// How a count varied between runs of one program that should all count the same. Pure.
#pragma once

#include <optional>
#include <string>

#include "gate/profile/profile.hpp"

namespace weir::profile {

[[nodiscard]] std::string range_text(double low, double high);  // "63 to 64"; "17" where equal

struct Variation {
  double low = 0, high = 0;
  std::size_t runs = 0, others = 0;         // others: runs without the most frequent value
  [[nodiscard]] std::string range() const;  // "63 to 64"; "17" where all agree
  [[nodiscard]] std::string str() const;    // "63 to 64, 1 of 3 runs"
};

// Returns the variation of a count that is stored as nearly exact. Nothing for what no machine
// repeats (instructions, requests that overlap), and where fewer than two values are stored.
[[nodiscard]] std::optional<Variation> find_variation(const Measurement& measured);

// Returns how many processes counted each length of a profile; at least 1.
[[nodiscard]] std::size_t count_processes(const Profile& profile);

}  // namespace weir::profile
