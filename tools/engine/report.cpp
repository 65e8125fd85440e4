// Makes weir.observed/1 of what a run counted and how long it took.
#include "tools/engine/report.hpp"

#include <array>
#include <utility>

#include "tools/engine/version.hpp"

namespace weir::engine {
namespace {

using observed::Observed;

constexpr std::array<std::pair<const char*, std::int64_t Tally::*>, 6> k_counts{{
    {"dispatches", &Tally::dispatches},
    {"barriers", &Tally::barriers},
    {"copies", &Tally::copies},
    {"submits", &Tally::submits},
    {"syncs", &Tally::syncs},
    {"cpu_ops", &Tally::cpu_ops},
}};

void add_timing(Observed& observed, std::string_view name, std::vector<double> samples) {
  const auto metric = unit::find_metric(name);
  if (!metric || samples.empty()) return;
  observed.timings.push_back({*metric, std::move(samples), {}, {}});
}

// Adds rates and times, a sample for each repeat. The first token belongs to the prompt.
void add_timings(Observed& observed, const Run& run) {
  std::vector<double> decode_rates, prefill_rates, first_token_seconds;
  for (const Repeat& repeat : run.repeats) {
    first_token_seconds.push_back(repeat.prefill_seconds);
    prefill_rates.push_back(static_cast<double>(run.work.prompt.size()) / repeat.prefill_seconds);
    if (repeat.tokens.size() < 2) continue;
    decode_rates.push_back(static_cast<double>(repeat.tokens.size() - 1) / repeat.decode_seconds);
  }
  add_timing(observed, "decode_tokens_per_second", decode_rates);
  add_timing(observed, "prefill_tokens_per_second", prefill_rates);
  add_timing(observed, "time_to_first_token_seconds", first_token_seconds);
  add_timing(observed, "load_seconds", {run.load_seconds});
}

// Adds counts per token and per prefill. Those that are 0 in the whole process are left out: a CPU
// has no dispatches.
void add_counts(Observed& observed, const Run& run, const Counts& counts) {
  for (const auto& [name, counter] : k_counts) {
    if (counts.tally().*counter == 0) continue;
    observed::ObservedCount token{unit::count_metric(name, unit::Scope::per_token), {}};
    observed::ObservedCount prefill{unit::count_metric(name, unit::Scope::per_prefill), {}};
    for (const Repeat& repeat : run.repeats) {
      prefill.values.push_back(repeat.prefill.*counter);
      for (const Tally& tally : repeat.per_token) token.values.push_back(tally.*counter);
    }
    if (!token.values.empty()) observed.counts.push_back(std::move(token));
    observed.counts.push_back(std::move(prefill));
    observed.counters.push_back(
        {name, "", "counter", {{{}, static_cast<double>(counts.tally().*counter)}}});
  }
}

// Adds a row for each kernel and each op on the CPU, with its calls over the whole process.
void add_ops(Observed& observed, const Backend& backend, const Counts& counts) {
  for (const auto& [name, calls] : counts.kernels()) {
    observed::ObservedOp op;
    op.op = name;
    op.kernel = name;
    op.backend = backend.name();
    op.calls = calls;
    observed.ops.push_back(std::move(op));
  }
  for (const auto& [name, calls] : counts.cpu_ops()) {
    observed::ObservedOp op;
    op.op = name;
    op.backend = "CPU";
    op.calls = calls;
    observed.ops.push_back(std::move(op));
  }
}

}  // namespace

// Returns the measurement as weir reads it: the model and device, times, counts and ops.
observed::Observed observe(const Run& run, const Model& model, const Backend& backend,
                           const Counts& counts) {
  Observed observed;
  observed.format = "weir-engine";
  observed.context.engine = "weir-engine";
  observed.context.engine_build = k_version;
  observed.context.model = model.description;
  observed.context.backend = backend.name();
  observed.context.device = backend.device();
  observed.prompt_tokens = static_cast<std::int64_t>(run.work.prompt.size());
  observed.generated_tokens = static_cast<std::int64_t>(run.work.tokens);
  if (!run.repeats.empty() && !run.repeats[0].tokens.empty()) {
    observed.context.facts["tokens"] = join(run.repeats[0].tokens);
  }
  add_timings(observed, run);
  add_counts(observed, run, counts);
  add_ops(observed, backend, counts);
  return observed;
}

std::string join(const std::vector<std::uint32_t>& tokens) {
  return fmt::format("{}", fmt::join(tokens, ","));
}

}  // namespace weir::engine
