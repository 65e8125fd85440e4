// llama-bench in each of its forms: json and jsonl (with samples), csv, sql and md (a mean and its
// deviation). Each test is a case. The rates of the whole are those of the only test of their kind.
//
// Rates are made from samples_ns: avg_ts is a mean of rates, which one disturbed repetition spoils.

#include "gate/adapters/readers.hpp"

namespace weir::adapters {
namespace {

// Values of one test by the names of llama-bench's fields, as text.
using BenchFields = TableRow;

std::optional<std::int64_t> integer_field(const BenchFields& fields, std::string_view name) {
  const auto value = text::to_int(look_up(fields, name, ""));
  return value && *value >= 0 ? std::optional<std::int64_t>(*value) : std::nullopt;
}

std::string test_name(std::int64_t prompt, std::int64_t generated, std::int64_t depth) {
  std::string name;
  if (prompt > 0) name = fmt::format("pp{}", prompt);
  if (generated > 0) name += fmt::format("{}tg{}", name.empty() ? "" : "+", generated);
  if (depth > 0) name += fmt::format(" @ d{}", depth);
  return name;
}

unit::Metric rate_metric(const ObservedCase& test) {
  const bool generated = test.generated_tokens.value_or(0) > 0;
  if (generated && test.prompt_tokens.value_or(0) > 0) {
    return unit::custom_metric("tokens_per_second", unit::Kind::time, unit::Unit::tokens_per_second,
                               unit::Better::higher);
  }
  return *unit::find_metric(generated ? "decode_tokens_per_second" : "prefill_tokens_per_second");
}

// Reads the fields that describe the build, the machine and the model rather than the test.
void read_bench_context(const BenchFields& fields, Observed& observed) {
  const auto text_field = [&](const char* name) -> std::optional<std::string> {
    const std::string value = look_up(fields, name, "");
    return value.empty() ? std::nullopt : std::optional(display_text(value));
  };
  auto& context = observed.context;
  context.engine_build = text_field("build_commit");
  context.model = text_field("model_type");
  for (const char* name :
       {"cpu_info", "gpu_info", "backends", "model_filename", "model_size", "model_n_params"}) {
    if (auto value = text_field(name)) context.facts[name] = std::move(*value);
  }
  if (context.places.empty()) add_place(observed, text_field("model_filename").value_or(""));
}

constexpr std::string_view k_results[] = {"avg_ns",    "stddev_ns",  "avg_ts",
                                          "stddev_ts", "samples_ns", "samples_ts"};

// Makes a case of a test: from its samples, else from its mean and deviation. Nothing without a
// rate or without tokens.
std::optional<ObservedCase> make_test(const BenchFields& fields,
                                      const std::vector<double>& samples_ns) {
  ObservedCase test;
  const auto prompt = integer_field(fields, "n_prompt");
  const auto generated = integer_field(fields, "n_gen");
  if (!prompt || !generated || *prompt + *generated == 0) return std::nullopt;
  test.depth = integer_field(fields, "n_depth");
  if (*prompt > 0) test.prompt_tokens = prompt;
  if (*generated > 0) test.generated_tokens = generated;
  test.name = test_name(*prompt, *generated, test.depth.value_or(0));
  for (const auto& [name, value] : fields) {
    if (holds(k_results, name) || test.facts.size() >= 64) continue;
    test.facts[display_text(name, 60)] = display_text(value);
  }
  const auto number = [&](const char* name) { return printed_number(look_up(fields, name, "")); };
  ObservedTiming rate{rate_metric(test), {}, number("avg_ts"), number("stddev_ts")};
  const auto tokens = static_cast<double>(*prompt + *generated);
  for (const double ns : samples_ns) {
    if (ns > 0) rate.samples.push_back(tokens * 1e9 / ns);
  }
  if (rate.mean && *rate.mean <= 0) rate.mean.reset();
  if (!rate.mean && rate.samples.empty()) return std::nullopt;
  test.timings.push_back(std::move(rate));
  return test;
}

// Sets the decode and prefill rate of the whole, each if there is exactly one such test.
void set_overall_rates(Observed& observed) {
  for (const bool decode : {false, true}) {
    const auto of_kind = [&](const ObservedCase& test) {
      return test.generated_tokens.has_value() == decode &&
             test.prompt_tokens.has_value() != decode;
    };
    if (std::ranges::count_if(observed.cases, of_kind) != 1) continue;
    const ObservedCase* only = find_first(observed.cases, of_kind);
    observed.timings.push_back(only->timings.front());
    const auto tokens = decode ? &Observed::generated_tokens : &Observed::prompt_tokens;
    observed.*tokens = decode ? only->generated_tokens : only->prompt_tokens;
  }
}

void finish_bench(const Printed& printed, Observed& observed) {
  set_overall_rates(observed);
  if (printed.holds("asserts enabled")) add_warning(observed, k_asserts);
  for (const std::string_view line : printed.lines()) {
    if (!line.starts_with("llama_bench: error:")) continue;
    observed.errors.push_back(display_text(line));
  }
  if (observed.cases.empty() && observed.errors.empty()) observed = {};
}

void add_test(const BenchFields& fields, const std::vector<double>& samples_ns,
              Observed& observed) {
  auto test = make_test(fields, samples_ns);
  if (!test) return;
  read_bench_context(fields, observed);
  append_row_within_limit(observed.cases, std::move(*test), observed);
}

// Returns the scalar members of a JSON object as text.
BenchFields text_fields(const Json& json) {
  BenchFields fields;
  for (const auto& [name, value] : json.items()) {
    if (value.is_structured() || value.is_null()) continue;
    fields[name] = value.is_string() ? value.get<std::string>() : dump_json(value);
  }
  return fields;
}

std::vector<double> read_samples(const Json& json) {
  std::vector<double> samples;
  for (const Json& sample : list_in(json, "samples_ns")) {
    if (sample.is_number() && samples.size() < k_most_rows) samples.push_back(sample.get<double>());
  }
  return samples;
}

}  // namespace

namespace llama_bench_json {

void read(const Printed& printed, Observed& observed) {
  const auto take = [&](const Json& json) {
    if (json.is_object()) add_test(text_fields(json), read_samples(json), observed);
  };
  read_documents(printed, take, observed);
  finish_bench(printed, observed);
}

}  // namespace llama_bench_json

const Format k_llama_bench_json("llama-bench", "llama-bench -o json or jsonl", "llama.cpp",
                                llama_bench_json::read,
                                {{90,
                                  {"\"n_gen\": & \"avg_ns\":", "\"n_gen\": & \"build_commit\":"}},
                                 {60, {"^llama_bench: error:"}}},
                                {"llama-bench", 1, Counts::none, read_llama_bench});

namespace llama_bench_table {
namespace {

BenchFields pair_fields(const std::vector<std::string>& names,
                        const std::vector<std::string>& values) {
  BenchFields fields;
  for (std::size_t i = 0; i < names.size() && i < values.size(); ++i) fields[names[i]] = values[i];
  return fields;
}

std::vector<std::string> split_cells(std::string_view line) {
  std::vector<std::string> cells = text::split(line, '|');
  if (cells.size() < 3 || !text::trim(cells.front()).empty() || !text::trim(cells.back()).empty())
    return {};
  cells.erase(cells.begin());
  cells.pop_back();
  for (std::string& cell : cells) cell = std::string(text::trim(cell));
  return cells;
}

// Reads a test's name into fields: "pp16+tg8 @ d32" -> n_prompt 16, n_gen 8, n_depth 32.
bool read_test_name(std::string_view name, BenchFields& fields) {
  Scan scan(name);
  fields["n_prompt"] = "0";
  fields["n_gen"] = "0";
  for (const auto& [mark, field] :
       {std::pair{"pp", "n_prompt"}, {"+tg", "n_gen"}, {"tg", "n_gen"}, {"@ d", "n_depth"}}) {
    if (!scan.skip_prefix(mark)) continue;
    const auto number = scan.integer();
    if (!number) return false;
    fields[field] = fmt::format("{}", *number);
  }
  return scan.done();  // a name without tokens is no test
}

// Columns of the md form, with the names that llama-bench's other forms use.
constexpr std::pair<std::string_view, std::string_view> k_markdown_names[] = {
    {"model", "model_type"},        {"size", "model_size"},  {"params", "model_n_params"},
    {"backend", "backends"},        {"ngl", "n_gpu_layers"}, {"threads", "n_threads"},
    {"fa", "flash_attn"},           {"sm", "split_mode"},    {"mg", "main_gpu"},
    {"nkvo", "no_kv_offload"},      {"mmap", "use_mmap"},    {"embd", "embeddings"},
    {"nopo", "no_op_offload"},      {"dev", "devices"},      {"ts", "tensor_split"},
    {"ot", "tensor_buft_overrides"}};

// Adds a row of the md form. Its columns have short names; the last two are always test and t/s.
void add_markdown(const std::vector<std::string>& names, const std::vector<std::string>& cells,
                  Observed& observed) {
  if (names.size() != cells.size() || names.size() < 3) return;
  BenchFields fields = pair_fields(names, cells);
  if (!read_test_name(fields["test"], fields)) return;
  Scan rate(fields["t/s"]);
  const auto mean = rate.number();
  if (!mean) return;
  fields["avg_ts"] = fmt::format("{}", *mean);
  if (rate.skip_prefix("\xC2\xB1")) {
    if (const auto deviation = rate.number()) fields["stddev_ts"] = fmt::format("{}", *deviation);
  }
  for (const auto& [title, field] : k_markdown_names) {
    const auto match = fields.find(title);
    if (match == fields.end()) continue;
    fields[std::string(field)] = match->second;
    if (title != field) fields.erase(std::string(title));
  }
  fields.erase("t/s");
  fields.erase("test");
  add_test(fields, {}, observed);
}

}  // namespace

int recognises(const Printed& printed) {
  const bool table = std::ranges::any_of(printed.lines(), [](std::string_view line) {
    return line.starts_with("| model ") && line.find(" t/s |") != std::string_view::npos;
  });
  return table ? 85 : 0;
}

void read(const Printed& printed, Observed& observed) {
  // An appended run writes rows without a heading: they have the columns of the table before.
  std::vector<std::string> csv, markdown;
  for (const std::string_view line : printed.lines()) {
    if (line.starts_with("build_commit,build_number,")) {
      csv = text::split(line, ',');
    } else if (!csv.empty() && line.starts_with('"')) {
      const auto values = csv_fields(line);
      const bool is_complete = values.size() == csv.size();
      if (is_complete) add_test(pair_fields(csv, values), {}, observed);
      if (!is_complete) mark_truncated(observed);
    } else if (line.starts_with("INSERT INTO llama_bench")) {
      const auto row = sql_row(line, "llama_bench");
      if (row) add_test(*row, {}, observed);
      if (!row) mark_truncated(observed);
    } else if (line.starts_with('|')) {
      const auto cells = split_cells(line);
      if (!cells.empty() && cells.back() == "t/s") {
        markdown = cells;
      } else if (!cells.empty() && !markdown.empty()) {
        add_markdown(markdown, cells, observed);
      }
    } else if (Scan build(line); build.skip_prefix("build:")) {
      if (const auto commit = build.word(); commit && build.skip_prefix("(")) {
        observed.context.engine_build = display_text(*commit);
      }
    }
  }
  // The md form ends in a line that names the build.
  if (!markdown.empty() && !observed.context.engine_build) mark_truncated(observed);
  finish_bench(printed, observed);
}

}  // namespace llama_bench_table

const Format k_llama_bench_table("llama-bench-table", "llama-bench -o csv, sql or md", "llama.cpp",
                                 llama_bench_table::read,
                                 {{90,
                                   {"^build_commit,build_number,", "INSERT INTO llama_bench ("}},
                                  {60, {"CREATE TABLE IF NOT EXISTS llama_bench"}}},
                                 {"llama-bench-table", 2}, llama_bench_table::recognises);

}  // namespace weir::adapters
