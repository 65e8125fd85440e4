#include "gate/adapters/from_observed.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "gate/adapters/reading.hpp"
#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"
#include "gate/unit/metric.hpp"

namespace weir::adapters {
namespace {

// Metrics of weir's own alone: a format's other figures are for `weir profile`.
void take_times(const observed::Observed& observed, profile::EngineReport& report) {
  for (const auto& timing : observed.timings) {
    if (unit::find_metric(timing.metric.name) != timing.metric) continue;
    std::vector<double> samples = timing.samples;
    if (samples.empty() && timing.mean) samples.push_back(*timing.mean);
    if (!samples.empty()) report.times.push_back({timing.metric, std::move(samples)});
  }
}

void take_counts(const observed::Observed& observed, profile::EngineReport& report) {
  for (const auto& count : observed.counts) {
    if (count.values.empty() || unit::find_metric(count.metric.name) != count.metric) continue;
    const auto [least, most] = std::minmax_element(count.values.begin(), count.values.end());
    if (*least != *most) {
      report.warnings.push_back(
          fmt::format("{}: not the same each time ({} and {})", count.metric.name, *least, *most));
    }
    report.counts[count.metric.name] = count.values.back();
  }
}

bool wanted(const Output& output, const std::string& name) {
  return std::any_of(output.works.begin(), output.works.end(),
                     [&](const std::string& pattern) { return text::glob_match(pattern, name); });
}

// Single ops of the engine's own profile, as limits name them, a token: their time of a timed pass,
// their calls else. Names that become one metric are added up.
void take_works(const observed::Observed& observed, const Output& output,
                profile::EngineReport& report) {
  using observed::GroupBy;
  if (output.works.empty()) return;
  const bool timed = output.pass == profile::Pass::timed;
  for (const auto& [by, time, calls] : {std::tuple{GroupBy::op, "op:", "op_calls:"},
                                        {GroupBy::kernel, "kernel:", "kernel_calls:"}}) {
    std::map<std::string, double> sums;
    for (const auto& one : observed::op_totals_per_token(observed, by)) {
      const std::string name = unit::work_name(timed ? time : calls, one.name);
      const auto& value = timed ? one.seconds : one.calls;
      if (value && unit::find_metric(name) && wanted(output, name)) sums[name] += *value;
    }
    for (const auto& [name, sum] : sums) {
      if (timed) {
        report.times.push_back({*unit::find_metric(name), {sum}});
      } else if (sum == std::floor(sum) && sum < 1e15) {
        report.counts[name] = static_cast<std::int64_t>(sum);
      } else {
        report.warnings.push_back(
            fmt::format("{}: {:.4g} a token: not as many for each, so not counted", name, sum));
      }
    }
  }
}

// An engine that falls back to the CPU says so nowhere but in the backend that it names.
std::optional<std::string> refutation_of(const observed::Observed& observed, const Output& output) {
  const auto& backend = observed.context.backend;
  if (!backend || output.device.empty() || output.device == "cpu") return std::nullopt;
  if (text::lower(*backend) != "cpu") return std::nullopt;
  return fmt::format("the engine reports the backend {}: the CPU did the work", *backend);
}

// As many tests as were asked for, each of the asked lengths and depth.
Result<bool> check_tests(const observed::Observed& observed, const profile::Asked& asked) {
  const std::size_t wanted = (asked.prompt_tokens > 0 ? 1U : 0U) + (asked.tokens > 0 ? 1U : 0U);
  if (observed.cases.size() != wanted) {
    return fail(Code::data,
                "llama-bench reports {} results, expected {} (it adds up flags that stand twice)",
                observed.cases.size(), wanted);
  }
  for (const auto& test : observed.cases) {
    const bool decode = test.generated_tokens.has_value();
    const auto tokens = decode ? test.generated_tokens : test.prompt_tokens;
    if (tokens != (decode ? asked.tokens : asked.prompt_tokens) ||
        test.depth.value_or(0) != asked.depth || (decode && test.prompt_tokens)) {
      return fail(Code::data, "llama-bench reports a test {} that was not asked for", test.name);
    }
  }
  return true;
}

}  // namespace

Result<profile::EngineReport> read_with(std::string_view format, const Output& output) {
  WEIR_TRY(const auto observed, read_as(format, {output.out, output.err}));
  if (observed.truncated) return fail(Code::data, "the engine's output ends in the middle");
  profile::EngineReport report;
  take_times(observed, report);
  if (!observed.errors.empty() && report.times.empty()) {
    return fail(Code::data, "the engine says: {}", observed.errors.front());
  }
  if (format == "llama-bench-table") WEIR_CHECK(check_tests(observed, output.asked));
  take_counts(observed, report);
  take_works(observed, output, report);
  const bool timed = output.pass == profile::Pass::timed;
  if (report.times.empty() && (timed || report.counts.empty())) {
    return fail(Code::data, "there is no {} in the engine's output ({})",
                timed ? "rate or time" : "rate, time or count", format);
  }
  report.generated_tokens = observed.generated_tokens;
  report.prompt_tokens = observed.prompt_tokens;
  report.model = observed.context.model;
  report.engine_build = observed.context.engine_build;
  report.device_refuted = refutation_of(observed, output);
  report.warnings.insert(report.warnings.end(), observed.warnings.begin(), observed.warnings.end());
  for (std::string& doubt : observed::cross_checks(observed)) {
    report.warnings.push_back("the engine's own profile: " + std::move(doubt));
  }
  return report;
}

Result<profile::EngineReport> read_agave(const Output& output) {
  return read_with("agave", output);
}
Result<profile::EngineReport> read_hf2q(const Output& output) { return read_with("hf2q", output); }
Result<profile::EngineReport> read_llama_bench_table(const Output& output) {
  return read_with("llama-bench-table", output);
}
Result<profile::EngineReport> read_llama_perf(const Output& output) {
  return read_with("llama-perf", output);
}
Result<profile::EngineReport> read_mlx_lm(const Output& output) {
  return read_with("mlx-lm", output);
}
Result<profile::EngineReport> read_ollama(const Output& output) {
  return read_with("ollama", output);
}
Result<profile::EngineReport> read_weir_observed(const Output& output) {
  return read_with("weir", output);
}

}  // namespace weir::adapters
