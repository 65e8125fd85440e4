// Counts in the texts of profiles and stored baselines. Pure; names from outside are made inert.
#pragma once

#include <cstddef>
#include <string>

#include "gate/profile/profile.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {

// Returns "12", "3.4 ms"; "" if it was not measured.
[[nodiscard]] std::string value_text(const profile::Measurement& measured);

// Adds a row for each kernel: how often it ran, and its name in at most `max_columns` characters.
void add_counts(TextTable& table, const profile::KernelSet& set, std::size_t max_columns);

}  // namespace weir::report
