// mlx_lm.benchmark: a line per trial, with values by name. Rates are those of the whole batch.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::mlx_lm {
namespace {

// Reads a trial: "prompt_tps=1234.567, generation_tps=45.678, peak_memory=5.432".
void read_trial(std::string_view values, Observed& observed) {
  for (const std::string& pair : text::split(values, ' ')) {
    Scan scan(pair);
    const auto name = scan.read_until("=");
    const auto value = scan.number();
    if (!name || !value) continue;
    if (name == "prompt_tps") add_sample(observed.timings, "prefill_tokens_per_second", *value);
    if (name == "generation_tps") add_sample(observed.timings, "decode_tokens_per_second", *value);
    // The accelerator's memory in GB of 10^9 bytes: the maximum of all trials so far.
    if (name == "peak_memory") observed.context.facts["peak_memory_gb"] = fmt::format("{}", *value);
  }
}

std::optional<std::int64_t> read_setting(Scan line, std::string_view name) {
  return line.read_until(name) ? line.integer() : std::nullopt;
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  bool has_averages = false;
  for (const std::string_view line : printed.lines()) {
    const bool cut = printed.is_cut(line);
    Scan scan(line);
    if (!cut && scan.skip_prefix("Timing with ")) {
      observed.prompt_tokens = read_setting(scan, "prompt_tokens=");
      observed.generated_tokens = read_setting(scan, "generation_tokens=");
      if (const auto batch = read_setting(scan, "batch_size=")) {
        observed.context.facts["batch_size"] = fmt::format("{}", *batch);
        if (*batch > 1) add_warning(observed, "rates are those of a batch of {}", *batch);
      }
    } else if (!cut && scan.skip_prefix("Trial") && scan.integer() && scan.skip_prefix(":")) {
      read_trial(scan.rest(), observed);
    } else if (scan.skip_prefix("Averages:")) {
      has_averages = true;
    }
  }
  if (!has_averages) mark_truncated(observed);
}

}  // namespace weir::adapters::mlx_lm

const weir::adapters::Format weir::adapters::k_mlx_lm("mlx-lm", "mlx_lm.benchmark", "mlx-lm",
                                                      mlx_lm::read,
                                                      {{85, {"prompt_tps= & generation_tps="}},
                                                       {70, {"^Timing with prompt_tokens="}}},
                                                      {"mlx-lm", 6});
