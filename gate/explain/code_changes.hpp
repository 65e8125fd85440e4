// Describes how two pieces of code of one kernel differ: constants and other options, and the
// SPIR-V itself. Judges nothing. Pure; nothing in the code is trusted.
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
  std::string hash{};                            // hash of everything above; "": not known
};

struct CodeChanges {
  std::string headline{};            // "constant 2: 64 → 128"; "": no difference is known
  std::vector<std::string> lines{};  // all other differences, the most telling first
  std::string before{}, now{};       // KernelCode::hash
};

// If only one side has its code and the sources are the same, that code counts for both. Else only
// options are compared.
[[nodiscard]] CodeChanges code_changes(const KernelCode& before, const KernelCode& after);

// Compares a kernel that is several pipelines. Each one that only one side has is paired with the
// one of the other side that differs least; those left without a partner are not listed.
[[nodiscard]] std::vector<CodeChanges> code_changes(std::vector<KernelCode> before,
                                                    std::vector<KernelCode> after);

}  // namespace weir::explain
