// SGLang's bench_one_batch: what it prints, and the JSON lines of --result-filename. Each batch is
// a case. Rates are those of all sequences of the batch together; that of decoding is a median over
// its steps.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::sglang_batch {
namespace {

constexpr std::string_view k_parts = "runs";

// A run, as it is read.
struct Run {
  ObservedCase test;
  std::optional<double> prefill, decode;
};

// Adds a run as a case. Runs with equal settings get a number.
void add_run(Run run, Observed& observed) {
  if (run.prefill.value_or(0) <= 0)
    return add_unread_part(observed, k_parts, "a run has no rate of its prefill");
  add_read_parts(observed, k_parts);
  add_sample(run.test.timings, "prefill_tokens_per_second", *run.prefill);
  if (run.decode) add_sample(run.test.timings, "decode_tokens_per_second", *run.decode);
  int equal = 1;
  for (const ObservedCase& other : observed.cases) {
    if (other.facts == run.test.facts) ++equal;
  }
  if (equal > 1) run.test.name += fmt::format(" ({})", equal);
  append_row_within_limit(observed.cases, std::move(run.test), observed);
}

// Reads {"run_name": "default", "batch_size": 1, "prefill_throughput": 5916.4, …}.
void read_result(const Json& json, Observed& observed) {
  if (!json.is_object() || !json.contains("prefill_throughput")) return;
  Run run;
  run.test.name = json_text(json, "run_name").value_or("run");
  copy_facts(json, {"run_name", "batch_size", "input_len", "output_len"}, run.test);
  for (const char* name : {"batch_size", "input_len", "output_len"}) {
    if (const auto value = json_integer(json, name))
      run.test.name += fmt::format(", {} {}", name, *value);
  }
  run.prefill = json_number(json, "prefill_throughput");
  run.decode = json_number(json, "median_decode_throughput");
  add_run(std::move(run), observed);
}

// Reads the lines of one run: "Prefill. latency: 0.01 s, throughput: 5916.43 token/s" begins it,
// "Total. latency: …" ends it.
void read_line(std::string_view line, std::optional<Run>& run, Observed& observed) {
  LineScanner scan(line);
  double seconds = 0, rate = 0;
  std::int64_t number = 0, batch = 0;
  if (scan.read_values("Prefill. latency: {} s, throughput: {} token/s", seconds, rate)) {
    run.emplace();
    run->test.name = "batch";
    run->prefill = rate;
  } else if (run && scan.read_values("Decode {}. Batch size: {},", number, batch)) {
    run->test.name = fmt::format("batch {}", batch);
    run->test.facts["batch_size"] = fmt::format("{}", batch);
  } else if (run && scan.read_values("Decode.  median latency: {} s, median throughput: {} token/s",
                                     seconds, rate)) {
    run->decode = rate;
  } else if (run && scan.read_values("Total. latency: {} s,", seconds)) {
    add_run(std::move(*run), observed);
    run.reset();
  } else if (scan.skip_prefix("Prefill. latency:") || scan.skip_prefix("Decode.  median")) {
    add_unread_part(observed, k_parts, "a line has no rate");
  }
}

}  // namespace

// Reads JSON lines, or the lines that are printed. Runs before "Benchmark ..." were the warm-up.
void read(const Printed& printed, Observed& observed) {
  if (printed.holds("\"prefill_throughput\"")) {
    return read_documents(
        printed, [&](const Json& json) { read_result(json, observed); }, observed);
  }
  std::optional<Run> run;
  for (const std::string_view line : printed.lines()) {
    if (text::trim(line) == "Benchmark ...") {  // the runs before it were the warm-up
      observed.cases.clear();
      observed.parts.clear();
      run.reset();
    }
    if (!printed.may_be_cut(line)) read_line(line, run, observed);
  }
  if (run) mark_truncated(observed);
}

}  // namespace weir::adapters::sglang_batch

const weir::adapters::Format weir::adapters::k_sglang_batch(
    "sglang-one-batch", "sglang.bench_one_batch: printed, --result-filename", "sglang",
    sglang_batch::read,
    {{88,
      {"^Prefill. latency: & ^Total. latency:",
       "\"prefill_throughput\" & \"overall_throughput\" & \"total_latency\""}}});
