// What differs between two pieces of code of one kernel, in words: constants and other options, and
// where the SPIR-V itself differs, what of it. Judges nothing. Pure; nothing in the code is
// trusted.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace weir::explain {

// As profile::CodeFacts, and the code itself where it is at hand.
struct KernelCode {
  std::span<const std::uint32_t> words{};        // SPIR-V; empty: not known
  std::string source{};                          // its hash; "": not known
  std::map<std::string, std::string> options{};  // "constant 2" -> "64"
  std::string hash{};                            // of all of that; "": not known
};

struct CodeChanges {
  std::string headline{};            // "constant 2: 64 → 128"; "": no difference is known
  std::vector<std::string> lines{};  // what else differs, the most telling first
  std::string before{}, now{};       // KernelCode::hash
};

// Code that only one side has at hand counts for both where the sources are the same; else what
// differs is said of options alone.
[[nodiscard]] CodeChanges code_changes(const KernelCode& before, const KernelCode& now);

// Of a kernel that is several pipelines: each that only one side has with the one of the other that
// differs least from it. What is left where one side has more of them is not told of.
[[nodiscard]] std::vector<CodeChanges> code_changes(std::vector<KernelCode> before,
                                                    std::vector<KernelCode> now);

}  // namespace weir::explain
