// mlx_lm.benchmark: a line per trial, with values by name. Rates are those of the whole batch.
// mlx_lm.generate: its last lines, "Prompt: 12 tokens, 96.4 tokens-per-sec". Rates are as printed.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::mlx_lm {
namespace {

// Reads a trial: "prompt_tps=1234.567, generation_tps=45.678, peak_memory=5.432".
void read_trial(std::string_view values, Observed& observed) {
  std::size_t rates = 0;
  for (const std::string& pair : text::split(values, ' ')) {
    LineScanner scan(pair);
    const auto name = scan.read_until("=");
    const auto value = scan.number();
    if (!name || !value) continue;
    if ((name == "prompt_tps" || name == "generation_tps") && *value > 0) ++rates;
    if (name == "prompt_tps") add_sample(observed.timings, "prefill_tokens_per_second", *value);
    if (name == "generation_tps") add_sample(observed.timings, "decode_tokens_per_second", *value);
    // The accelerator's memory in GB of 10^9 bytes: the maximum of all trials so far.
    if (name == "peak_memory") observed.context.facts["peak_memory_gb"] = fmt::format("{}", *value);
  }
  if (rates == 2) return add_read_parts(observed, "trials");
  add_unread_part(observed, "trials", "prompt_tps or generation_tps is missing or 0");
}

std::optional<std::int64_t> read_setting(LineScanner line, std::string_view name) {
  return line.read_until(name) ? line.integer() : std::nullopt;
}

// The two lines that mlx_lm.generate prints of each run.
struct Line {
  const char* title;
  const char* metric;
  std::optional<std::int64_t> ObservedCase::*tokens;
};
constexpr Line k_prompt{"Prompt:", "prefill_tokens_per_second", &ObservedCase::prompt_tokens};
constexpr Line k_generation{"Generation:", "decode_tokens_per_second",
                            &ObservedCase::generated_tokens};

// Reads "Prompt: 12 tokens, 96.412 tokens-per-sec"; older versions print the rate alone. Returns
// false for other lines: the text that the model wrote may begin so.
bool read_generate_line(std::string_view text, const Line& line, ObservedCase& run) {
  LineScanner scan(text);
  std::int64_t tokens = 0;
  double rate = 0;
  if (!scan.skip_prefix(line.title)) return false;
  const bool has_tokens = scan.read_values("{} tokens,", tokens);
  if (!scan.read_values("{} tokens-per-sec", rate)) return false;
  if (has_tokens) run.*line.tokens = tokens;
  add_sample(run.timings, line.metric, rate);
  return true;
}

// Reads a line of mlx_lm.generate; the one of the prompt begins a run.
void read_generate(std::string_view line, Observed& observed) {
  ObservedCase run;
  run.name = fmt::format("run {}", observed.cases.size());
  if (read_generate_line(line, k_prompt, run)) {
    append_row_within_limit(observed.cases, std::move(run), observed);
  } else if (!observed.cases.empty()) {
    read_generate_line(line, k_generation, observed.cases.back());
  }
}

// Sets the rates of the whole if there is only one run.
void finish_generate(Observed& observed) {
  for (ObservedCase& run : observed.cases) {
    if (run.generated_tokens == 0) {
      run.error = "no token was generated";
      observed.errors.push_back(run.name + ": " + *run.error);
    }
  }
  const ObservedCase& last = observed.cases.back();
  const bool has_generation = std::ranges::any_of(
      last.timings, [](const auto& timing) { return timing.metric.name == k_generation.metric; });
  if (!has_generation && !last.error) mark_truncated(observed);
  copy_tokens_of_only_case(observed);
  if (observed.cases.size() == 1 && !last.error) observed.timings = last.timings;
}

}  // namespace

// Reads the lines of a benchmark or of one generation:
//
//   Timing with prompt_tokens=512, generation_tokens=128, batch_size=1.
//   Trial 1:  prompt_tps=1234.567, generation_tps=45.678, peak_memory=5.432
//   Averages: prompt_tps=1234.567, generation_tps=45.678, peak_memory=5.432
void read(const Printed& printed, Observed& observed) {
  bool has_averages = false;
  for (const std::string_view line : printed.lines()) {
    const bool cut = printed.may_be_cut(line);
    LineScanner scan(line);
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
    } else if (!cut && scan.skip_prefix("Peak memory:")) {
      if (const auto gigabytes = scan.number())
        observed.context.facts["peak_memory_gb"] = fmt::format("{}", *gigabytes);
    } else if (scan.skip_prefix("No text generated for this prompt")) {
      observed.errors.emplace_back("no token was generated");
    } else if (!cut) {
      read_generate(line, observed);
    }
  }
  if (!observed.cases.empty()) return finish_generate(observed);
  if (!has_averages) mark_truncated(observed);
}

}  // namespace weir::adapters::mlx_lm

const weir::adapters::Format weir::adapters::k_mlx_lm(
    "mlx-lm", "mlx_lm.benchmark, mlx_lm.generate", "mlx-lm", mlx_lm::read,
    {{85,
      {"prompt_tps= & generation_tps=", "^Generation: & tokens-per-sec",
       "^Prompt: & tokens-per-sec"}},
     {70, {"^Timing with prompt_tokens="}}},
    {"mlx-lm", 6});
