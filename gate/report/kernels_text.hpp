// The text and JSON of `weir kernels`: the code of kernels and its costs. Pure; names from outside
// are made inert.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gate/profile/profile.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

// One piece of code under one name.
struct KernelRow {
  std::string kernel, code;      // code: its hash
  Rational calls, groups;        // over the cell's scope; groups 0: not known
  std::optional<double> cycles;  // estimated, over all groups
  profile::CodeFacts facts;
};
struct KernelsOfCell {
  std::string cell, compiler;
  std::string scope;            // "token", "prefill", …
  std::vector<KernelRow> rows;  // the most cycles first, else the most calls
};
[[nodiscard]] KernelsOfCell kernels_of(const profile::Profile& profile);

[[nodiscard]] std::string kernels_text(std::span<const KernelsOfCell> tables, int width,
                                       std::size_t max_rows);
[[nodiscard]] Json kernels_json(std::span<const KernelsOfCell> tables);  // weir.kernels/1

// A kernel whose code changed, in these cells.
struct KernelDiff {
  verdict::KernelChange code;
  std::vector<std::string> cells;
  std::string compiler;
  std::string assembly;  // a diff; "": not asked for
};
[[nodiscard]] std::string kernel_diffs_text(std::span<const KernelDiff> diffs, int width);
[[nodiscard]] Json kernel_diffs_json(std::span<const KernelDiff> diffs);  // weir.kernels/1

}  // namespace weir::report
