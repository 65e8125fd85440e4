// Documents that weir writes about a run, as what a history keeps: a verdict (weir.verdict/1), and
// the profiles of `weir run --json` (weir.profiles/1). Pure; documents are hostile.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/history/history.hpp"
#include "gate/history/store.hpp"
#include "gate/profile/profile.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::history {

// What whoever hands a document in says of it; it goes before what the document says.
struct GivenFacts {
  std::string project = "default";
  std::optional<std::string> machine, commit, branch;
  std::optional<double> time;  // when it was measured; seconds since the epoch
};

// What is known around it.
struct Around {
  double now = 0;  // StoredVerdict::kept_at
  // When it was measured, where neither document nor facts nor its commit say so.
  std::optional<double> otherwise{};
  // The time of a commit that a repository at hand knows.
  std::function<std::optional<double>(const std::string& commit)> time_of_commit{};
};

inline constexpr std::string_view k_profiles_schema = "weir.profiles/1";
inline constexpr std::string_view k_verdict_schema = "weir.verdict/1";
inline constexpr std::size_t k_most_profiles = 10'000;

// Profiles of a weir.profiles/1 document. Code::data where it is none.
[[nodiscard]] Result<std::vector<profile::Profile>> profiles_from_json(const Json& json);

// A verdict and its numbers, without samples. Code::usage where nothing says when it was measured.
[[nodiscard]] Result<Batch> batch_of(const verdict::GateVerdict& verdict, const GivenFacts& given,
                                     const Around& around);
// A run of these profiles. They say no time: without given.time it is the commit's or `otherwise`.
[[nodiscard]] Result<Batch> batch_of(const std::vector<profile::Profile>& profiles,
                                     const GivenFacts& given, const Around& around);

}  // namespace weir::history
