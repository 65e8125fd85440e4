// The block that vllm bench serve and SGLang's bench_serving print at the end of a load: a block of
// lines "Mean TTFT (ms):   121.28", the same but for a few that one of them has alone.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters::serving_console {
namespace {

constexpr std::string_view k_title = " Serving Benchmark Result ";

constexpr std::pair<std::string_view, const char*> k_latencies[] = {
    {"TTFT", "time_to_first_token_seconds"},
    {"TPOT", "time_per_output_token_seconds"},
    {"ITL", "inter_token_latency_seconds"},
    {"E2EL", "end_to_end_latency_seconds"},
    {"E2E Latency", "end_to_end_latency_seconds"}};

// Settings and results that are facts, with the names that results in JSON have.
constexpr std::pair<std::string_view, const char*> k_facts[] = {
    {"Backend", "backend"},
    {"Traffic request rate", "request_rate"},
    {"Request rate configured (RPS)", "request_rate"},
    {"Max request concurrency", "max_concurrency"},
    {"Max reqeuest concurrency", "max_concurrency"},  // SGLang, until 2025
    {"Maximum request concurrency", "max_concurrency"},
    {"Benchmark duration (s)", "duration"},
    {"Request goodput (req/s)", "request_goodput"},
    {"Total token throughput (tok/s)", "total_token_throughput"},
    {"Total Token throughput (tok/s)", "total_token_throughput"},
    {"Peak output token throughput (tok/s)", "max_output_tokens_per_s"},
    {"Peak concurrent requests", "max_concurrent_requests"},
    {"Concurrency", "mean_concurrency"},
    {"Accept length", "accept_length"}};

// A block, as it is read.
struct Block {
  ObservedCase load;
  std::optional<std::int64_t> completed, failed;
  bool is_sglang = false, is_vllm = false;
};

std::optional<std::int64_t> count_of(std::string_view value) {
  const auto number = number_cell(value);
  if (!number || *number < 0 || *number > 9e15 || *number != std::floor(*number))
    return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

// Reads "P99 E2E Latency (ms)". Returns false if it is no latency.
bool read_latency(std::string_view title, std::string_view value, ObservedCase& load,
                  Observed& observed) {
  if (!title.ends_with(')')) return false;
  const std::size_t open = title.rfind(" (");
  if (open == title.npos) return false;
  const auto unit = unit::parse_scale(title.substr(open + 2, title.size() - open - 3));
  LineScanner scan(title.substr(0, open));
  const std::string_view figure = scan.word().value_or("");
  const auto* latency =
      find_first(k_latencies, [&](const auto& entry) { return entry.first == scan.rest(); });
  if (!unit || unit->unit != unit::Unit::seconds || latency == nullptr) return false;
  static const std::map<std::string_view, const char*> k_figures{
      {"Mean", "mean"}, {"Median", "median"}, {"Std", "stddev"}};
  std::string name = look_up(k_figures, figure, "");
  if (figure.starts_with('P')) name = fmt::format("p{}", figure.substr(1));
  const auto number = number_cell(value);
  if (name.empty()) return true;  // "Max ITL (ms)"
  if (!number) {
    add_warning(observed, "{} is no number: {}", display_text(title, 60), display_text(value, 60));
    return true;
  }
  add_latency_figure(load.latencies, latency->second, name, *number * unit->factor);
  return true;
}

// Reads one line of the block: its title, and the text after the colon.
void read_figure_line(std::string_view title, std::string_view text, Block& block,
                      Observed& observed) {
  // People mark lines: "0          <<<< new".
  const std::string_view value = text::trim(text.substr(0, text.find("  ")));
  if (title == "Successful requests") block.completed = count_of(value);
  if (title == "Failed requests") block.failed = count_of(value);
  if (title == "Total input tokens") block.load.prompt_tokens = count_of(value);
  if (title == "Total generated tokens") block.load.generated_tokens = count_of(value);
  if (title == "Output token throughput (tok/s)")
    set_rate(block.load, "output_tokens_per_second", number_cell(value));
  if (title == "Request throughput (req/s)")
    set_rate(block.load, "requests_per_second", number_cell(value));
  if (title == "Request goodput (req/s)")
    set_rate(block.load, "goodput_requests_per_second", number_cell(value));
  const auto* fact = find_first(k_facts, [&](const auto& entry) { return entry.first == title; });
  if (fact != nullptr) block.load.facts[fact->second] = display_text(value);
  block.is_sglang = block.is_sglang || title == "Backend" ||
                    title == "Total generated tokens (retokenized)" ||
                    title.find("E2E Latency") != title.npos;
  block.is_vllm = block.is_vllm || title == "Failed requests" ||
                  title == "Maximum request concurrency" || title.find("E2EL") != title.npos;
  read_latency(title, value, block.load, observed);
}

// Returns the number of requests in a command, "--num-prompts 1000".
std::optional<std::int64_t> requests_in_command(std::string_view line) {
  LineScanner scan(line);
  if (!scan.read_until("--num-prompts")) return std::nullopt;
  std::ignore = scan.skip_prefix("=");
  return scan.integer();
}

// Returns the value of an argument in "Namespace(…, num_prompts=1000, …)".
std::optional<std::string> argument(std::string_view line, std::string_view name) {
  for (std::size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at > 0 && (line[at - 1] == ' ' || line[at - 1] == '(');
    if (!begins || end >= line.size() || line[end] != '=') continue;
    std::string_view value = line.substr(end + 1, line.find_first_of(",)", end) - end - 1);
    if (value.size() >= 2 && value.front() == '\'') value = value.substr(1, value.size() - 2);
    return display_text(value);
  }
  return std::nullopt;
}

// Adds the block as a case. `requested`: the number of requests that its program was asked for.
void add_block(Block block, std::optional<std::int64_t> requested, Observed& observed) {
  ObservedCase& load = block.load;
  load.name = fmt::format("run {}", observed.cases.size());
  if (requested) load.facts["num_prompts"] = fmt::format("{}", *requested);
  if (!block.failed && requested && block.completed && *requested >= *block.completed)
    block.failed = *requested - *block.completed;
  set_requests(load, block.completed, block.failed);
  if (block.is_sglang) {
    observed.context.facts["tool"] = "SGLang bench_serving";
    observed.context.engine = look_up(load.facts, "backend", "sglang");
  } else if (block.is_vllm) {
    observed.context.facts["tool"] = "vllm bench serve";
    observed.context.engine = "vllm";
  }
  append_row_within_limit(observed.cases, std::move(load), observed);
}

}  // namespace

// Reads blocks of results. The command before a block may name the number of requests:
//
//   ============ Serving Benchmark Result ============
//   Successful requests:                     1000
//   Output token throughput (tok/s):         11086.96
void read(const Printed& printed, Observed& observed) {
  std::optional<Block> block;
  std::optional<std::int64_t> requested;
  for (const std::string_view line : printed.lines()) {
    if (line.find("Namespace(") != line.npos) {
      requested = count_of(argument(line, "num_prompts").value_or(""));
      if (const auto model = argument(line, "model"); model && *model != "None") {
        observed.context.model = *model;
        if (model->starts_with('/')) add_place(observed, *model);
      }
      continue;
    }
    if (const auto number = requests_in_command(line)) requested = number;
    const std::string_view trimmed = text::trim(line);
    if (line.find(k_title) != line.npos) {
      if (block) mark_truncated(observed);  // it did not end
      block.emplace();
    } else if (block && trimmed.size() > 20 && trimmed.find_first_not_of('=') == trimmed.npos) {
      add_block(std::move(*block), requested, observed);
      block.reset();
      requested.reset();
    } else if (block && !printed.may_be_cut(line)) {
      LineScanner scan(line);
      if (const auto title = scan.read_until(":"))
        read_figure_line(*title, scan.rest(), *block, observed);
    }
  }
  if (block) {
    mark_truncated(observed);
    if (!block->load.timings.empty()) add_block(std::move(*block), requested, observed);
  }
  if (!observed.cases.empty()) finish_loads(observed);
}

}  // namespace weir::adapters::serving_console

const weir::adapters::Format weir::adapters::k_serving_console(
    "serving-console", "the result that vllm bench serve and SGLang's bench_serving print", "",
    serving_console::read, {{86, {" Serving Benchmark Result "}}});
