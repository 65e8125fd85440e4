// SGLang's bench_serving --output-file: one JSON object a run, a line each.
//
// It names neither the requests that were asked for nor those that failed. With --output-details
// it lists the error of each request, "" for none.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::sglang {
namespace {

struct Details {
  std::int64_t requests = 0, errors = 0;
  std::vector<double> first_tokens;
};

// Reads the result of one run.
void read_result(const Json& json, const Details& details, Observed& observed) {
  if (!json.is_object() || !json.contains("completed")) return;
  ObservedCase run;
  run.name = json_text(json, "tag").value_or(fmt::format("run {}", observed.cases.size()));
  copy_facts(
      json,
      {"tag", "dataset_name", "request_rate", "max_concurrency", "duration", "random_input_len",
       "random_output_len", "random_range_ratio", "sharegpt_output_len", "accept_length"},
      run);
  // Without a limit, request_rate is the bare word Infinity, which is no JSON.
  if (json.contains("request_rate") && !run.facts.contains("request_rate"))
    run.facts["request_rate"] = "inf";
  if (const auto backend = json_text(json, "backend")) observed.context.backend = *backend;
  const auto failed =
      details.requests > 0 ? std::optional(details.errors) : json_integer(json, "failed");
  set_requests(run, json_integer(json, "completed"), failed);
  run.prompt_tokens = json_integer(json, "total_input_tokens");
  run.generated_tokens = json_integer(json, "total_output_tokens");
  set_rate(run, "output_tokens_per_second", json_number(json, "output_throughput"));
  set_rate(run, "requests_per_second", json_number(json, "request_throughput"));
  for (const double seconds : details.first_tokens) {
    add_sample(run.timings, "time_to_first_token_seconds", seconds);
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_number() && has_answers(run))
      add_latency_by_key(run.latencies, key, value.get<double>());
  }
  append_row_within_limit(observed.cases, std::move(run), observed);
}

// Reads {"request_throughput": 9.4, "mean_ttft_ms": 81.5, …, "ttfts": [0.08, …], "errors": ["",
// …]}. The lists of a run come before its other members are complete, so they are collected first.
void read(const Printed& printed, Observed& observed) {
  Details details;
  const auto take_detail = [&](std::string_view list, const Json& value) {
    if (list == "errors") {
      ++details.requests;
      if (value.is_string() && value != "") ++details.errors;
    }
    if (list == "ttfts" && value.is_number() && details.first_tokens.size() < k_max_rows)
      details.first_tokens.push_back(value.get<double>());
  };
  const auto take_run = [&](const Json& members) {
    read_result(members, std::exchange(details, {}), observed);
  };
  const auto pass_over = [](std::string_view list, std::string_view rest) {
    return list.empty() || list == "errors" || list == "ttfts" ? 0 : skip_elements(rest);
  };
  read_pieces(printed,
              {"errors", "ttfts", "itls", "input_lens", "output_lens", "generated_texts",
               "start_times", "latencies", "text_chunks"},
              {take_detail, take_run, pass_over}, observed);
  finish_loads(observed);
}

Result<profile::EngineReport> make_sglang_report(const Output& output) {
  return make_load_report("sglang", output);
}

}  // namespace
}  // namespace weir::adapters::sglang

const weir::adapters::Format weir::adapters::k_sglang(
    "sglang", "sglang.bench_serving --output-file", "sglang", sglang::read,
    {{95, {"\"total_output_tokens_retokenized\"", "\"sharegpt_output_len\""}},
     {90, {"\"median_e2e_latency_ms\" & \"total_output_tokens\""}}},
    {"sglang", 16, Counts::results, sglang::make_sglang_report});
