// Turns an engine's printed counts into one number.
#include "gate/adapters/own_counts.hpp"

namespace weir::adapters {
namespace {

// Returns how many tokens (prefills, runs) the values cover; nothing if that is unknown.
std::optional<std::int64_t> find_divisor(std::int64_t values, const unit::Metric& metric,
                                         std::int64_t tokens, std::int64_t repeats) {
  if (metric.scope != unit::Scope::per_token) {
    return values % repeats == 0 ? std::optional(repeats) : std::nullopt;
  }
  const bool each_token = values >= tokens - repeats && values <= tokens + repeats;
  return values == repeats || each_token ? std::optional(values) : std::nullopt;
}

}  // namespace

// Adds a count that the engine printed. Several values, or those of all tokens, are divided by the
// number of tokens or repeats that they cover.
bool add_own_count(profile::EngineReport& report, const unit::Metric& metric,
                   const std::vector<std::int64_t>& values, bool of_all_tokens,
                   const profile::RunParameters& request) {
  const auto count = std::ssize(values);
  const std::int64_t repeats = std::max<std::int64_t>(request.repeats, 1);
  const std::int64_t tokens = report.generated_tokens.value_or(request.tokens) * repeats;
  const bool of_all = of_all_tokens && metric.scope == unit::Scope::per_token && tokens > 0;
  if (count == 1 && !of_all) {
    report.counts[metric.name] = values.front();
    return true;
  }
  const auto divisor =
      of_all ? std::optional(tokens) : find_divisor(count, metric, tokens, repeats);
  const auto share = divisor ? Rational::share(values, *divisor) : std::nullopt;
  if (!share) {
    report.uncounted[metric.name] =
        fmt::format("printed {} times in {}{}: how many tokens {} is not known", count,
                    repeats == 1 ? "a run" : fmt::format("{} runs", repeats),
                    tokens > 0 ? fmt::format(" of {} tokens", tokens / repeats) : "",
                    of_all_tokens && metric.scope == unit::Scope::per_token ? "they are of together"
                                                                            : "each value is of");
    return false;
  }
  report.shares[metric.name] = *share;
  return true;
}

}  // namespace weir::adapters
