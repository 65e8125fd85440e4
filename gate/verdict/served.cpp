// What times of engines that serve stand on: requests within a start, and starts.
#include <fmt/format.h>

#include "gate/verdict/judging.hpp"

namespace weir::verdict {

std::optional<std::string> percentile_doubt(const profile::Profile& candidate,
                                            const MetricVerdict& metric) {
  const Limit& limit = metric.limit;
  if (!candidate.requests || limit.mode == Mode::off || !limit.any()) return std::nullopt;
  // Gaps between tokens are many more than requests.
  if (metric.metric.name.starts_with("inter_token_latency")) return std::nullopt;
  struct Percentile {
    const char* in_name;
    const char* words;
    std::int64_t requests;  // of k requests those above 1 - 1/k lie between the two largest
  };
  constexpr Percentile k_percentiles[] = {{"_p90_", "p90", 10}, {"_p99_", "p99", 100}};
  for (const Percentile& one : k_percentiles) {
    if (metric.metric.name.find(one.in_name) == std::string::npos) continue;
    if (*candidate.requests >= one.requests) return std::nullopt;
    return fmt::format(
        "{} of {} requests a start lies between the two slowest of them: {} requests are the "
        "fewest that it needs (requests on the prompt)",
        one.words, *candidate.requests, one.requests);
  }
  return std::nullopt;
}

std::optional<std::string> starts_note(const Question& question) {
  const auto& requests = question.candidate.requests;
  if (!requests || question.pairs == nullptr || question.pairs->pairs == 0) return std::nullopt;
  return fmt::format(
      "times are of {} fresh starts of each server, {} requests each: a start is one number, "
      "however many requests it has, and what is rarer than one start in {} has hardly been seen",
      question.pairs->pairs, *requests, question.pairs->pairs);
}

}  // namespace weir::verdict
