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
  if (generated > 0) text::append_item(name, "+", fmt::format("tg{}", generated));
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

std::string fact_of(const ObservedCase& test, std::string_view name) {
  return look_up(test.facts, std::string(name), "");
}

// Returns the fact if all tests have the same; nothing if they differ, or if one lacks it.
std::optional<std::string> common_fact(const Observed& observed, std::string_view name) {
  const std::string value = fact_of(observed.cases.front(), name);
  const bool is_common = std::ranges::all_of(
      observed.cases, [&](const ObservedCase& test) { return fact_of(test, name) == value; });
  return is_common && !value.empty() ? std::optional(value) : std::nullopt;
}

// Sets what all tests have in common: the build, the machine and the model. A document of several
// models names none for the whole.
void read_bench_context(Observed& observed) {
  auto& context = observed.context;
  context.engine_build = common_fact(observed, "build_commit");
  context.model = common_fact(observed, "model_type");
  for (const char* name :
       {"cpu_info", "gpu_info", "backends", "model_filename", "model_size", "model_n_params"}) {
    if (auto value = common_fact(observed, name)) context.facts[name] = std::move(*value);
  }
  for (const ObservedCase& test : observed.cases)
    add_place(observed, fact_of(test, "model_filename"));
}

// Facts that are no settings of a test: its lengths, which its name has, and when it ran.
constexpr std::string_view k_no_settings[] = {"n_prompt", "n_gen", "n_depth", "test_time"};
// Facts that follow from the model, the build or the machine. They tell tests apart only if no
// setting does.
constexpr std::string_view k_consequences[] = {"model_filename", "model_size", "model_n_params",
                                               "gpu_info",       "cpu_info",   "build_commit",
                                               "build_number"};

// Finds the settings by which tests differ, so that each has a name of its own.
void find_case_settings(Observed& observed) {
  const auto& cases = observed.cases;
  std::vector<std::string> names{"model_type"};  // listed first
  for (const ObservedCase& test : cases) {
    for (const auto& [name, value] : test.facts) {
      if (!holds(names, name) && !holds(k_no_settings, name) && !holds(k_consequences, name))
        names.push_back(name);
    }
  }
  const auto differ = [&](std::string_view name) {
    const std::string value = fact_of(cases.front(), name);
    return std::ranges::any_of(
        cases, [&](const ObservedCase& test) { return fact_of(test, name) != value; });
  };
  std::ranges::copy_if(names, std::back_inserter(observed.case_settings), differ);
  const auto have_own_names = [&] {
    std::set<std::string> case_names;
    for (const ObservedCase& test : cases) {
      case_names.insert(observed::case_name(test, observed.case_settings));
    }
    return case_names.size() == cases.size();
  };
  for (const std::string_view name : k_consequences) {
    if (have_own_names()) return;
    if (differ(name)) observed.case_settings.emplace_back(name);
  }
}

constexpr std::string_view k_results[] = {"avg_ns",    "stddev_ns",  "avg_ts",
                                          "stddev_ts", "samples_ns", "samples_ts"};

// Makes a case of a test: from its samples, else from its mean and deviation. Fails without a rate
// or without tokens.
Result<ObservedCase> make_test(const BenchFields& fields, const std::vector<double>& samples_ns) {
  ObservedCase test;
  const auto prompt = integer_field(fields, "n_prompt");
  const auto generated = integer_field(fields, "n_gen");
  if (!prompt || !generated) return fail(Code::data, "n_prompt or n_gen is missing or no number");
  if (*prompt + *generated == 0) return fail(Code::data, "a test of 0 tokens");
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
    if (!(ns > 0)) return fail(Code::data, "{}: a repetition that took {} ns", test.name, ns);
    rate.samples.push_back(tokens * 1e9 / ns);
  }
  if (rate.mean && *rate.mean <= 0) {
    return fail(Code::data, "{}: {} tokens a second", test.name, *rate.mean);
  }
  if (!rate.mean && rate.samples.empty()) return fail(Code::data, "{}: no rate", test.name);
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

constexpr std::string_view k_parts = "tests";

// Completes tests that were read: facts that all share, rates of the whole, and errors. Other text
// leaves nothing but the parts that could not be read.
void finish_bench(const Printed& printed, Observed& observed) {
  if (!observed.cases.empty()) {
    read_bench_context(observed);
    find_case_settings(observed);
  }
  set_overall_rates(observed);
  if (printed.holds("asserts enabled")) add_warning(observed, k_asserts);
  for (const std::string_view line : printed.lines()) {
    if (!line.starts_with("llama_bench: error:")) continue;
    observed.errors.push_back(display_text(line));
  }
  if (observed.cases.empty() && observed.errors.empty()) {
    Observed empty;
    empty.parts = std::move(observed.parts);
    observed = std::move(empty);
  }
}

// Adds a test by the fields of its row. `samples_ns` is empty if the form has no samples.
void add_test(const BenchFields& fields, const std::vector<double>& samples_ns,
              Observed& observed) {
  auto test = make_test(fields, samples_ns);
  if (!test) return add_unread_part(observed, k_parts, std::move(test).error().message);
  add_read_parts(observed, k_parts);
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
  for (const Json& sample : list_or_empty(json, "samples_ns")) {
    if (samples.size() >= k_max_rows) break;
    samples.push_back(sample.is_number() ? sample.get<double>() : NAN);
  }
  return samples;
}

}  // namespace

namespace llama_bench_json {

void read(const Printed& printed, Observed& observed) {
  const auto take = [&](const Json& json) {
    // Other objects are lines of a log.
    if (json.is_object() && (json.contains("n_prompt") || json.contains("n_gen")))
      add_test(text_fields(json), read_samples(json), observed);
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

// A row of the md form. A page that shows the table is copied without bars at the ends, or with
// tabs between the cells.
struct Row {
  std::vector<std::string> cells;
  bool has_first_bar = false, has_last_bar = false;
};

// Removes the marks of a quotation: "> | model | …".
std::string_view unquoted(std::string_view line) {
  line = text::trim(line);
  while (line.starts_with("> ")) line = text::trim(line.substr(2));
  return line;
}

Row split_row(std::string_view line) {
  line = unquoted(line);
  const char separator = line.find('|') == line.npos ? '\t' : '|';
  Row row{text::split(line, separator), line.starts_with('|'), false};
  row.has_last_bar = row.cells.size() > 1 && line.ends_with('|');
  if (row.has_last_bar) row.cells.pop_back();
  if (row.has_first_bar) row.cells.erase(row.cells.begin());
  for (std::string& cell : row.cells) cell = std::string(text::trim(cell));
  return row;
}

// Returns true for the heading of the md form: its last two columns are always test and t/s.
bool is_heading(const Row& row) {
  const auto& cells = row.cells;
  return cells.size() >= 3 && cells.back() == "t/s" && cells[cells.size() - 2] == "test";
}

bool is_ruler(const Row& row) {
  return std::ranges::all_of(row.cells, [](const std::string& cell) {
    return !cell.empty() && cell.find_first_not_of("-: ") == cell.npos;
  });
}

// Joins the cells of a column of patterns with bars in them, such as "ffn_(up|down)_exps=CPU", so
// that there are as many cells as columns. Returns false if no column is known to hold bars.
bool join_bars(const std::vector<std::string>& names, std::vector<std::string>& cells) {
  const auto column = std::ranges::find(names, "ot");
  if (cells.size() == names.size()) return true;
  if (cells.size() < names.size() || column == names.end()) return false;
  const auto first = cells.begin() + (column - names.begin());
  const auto more = static_cast<std::ptrdiff_t>(cells.size() - names.size());
  for (auto cell = first + 1; cell != first + 1 + more; ++cell) *first += "|" + *cell;
  cells.erase(first + 1, first + 1 + more);
  return true;
}

// Reads a test's name into fields: "pp16+tg8 @ d32" -> n_prompt 16, n_gen 8, n_depth 32. Builds of
// 2023 write "pp 16". "tg8@pp32" of ik_llama generates after a prompt of 32: at that depth.
bool read_test_name(std::string_view name, BenchFields& fields) {
  LineScanner scan(name);
  fields["n_prompt"] = "0";
  fields["n_gen"] = "0";
  bool has_tokens = false;
  for (const auto& [mark, field] : {std::pair{"pp", "n_prompt"},
                                    {"+tg", "n_gen"},
                                    {"tg", "n_gen"},
                                    {"@ d", "n_depth"},
                                    {"@d", "n_depth"},
                                    {"@pp", "n_depth"},
                                    {"@ pp", "n_depth"}}) {
    if (!scan.skip_prefix(mark)) continue;
    const auto number = scan.integer();
    if (!number) return false;
    fields[field] = fmt::format("{}", *number);
    has_tokens = has_tokens || std::string_view(field) != "n_depth";
  }
  return has_tokens && scan.done();
}

// Reads "8123.40 ± 41.2". The mark between is skipped whatever its encoding made of it.
bool read_rate(std::string_view cell, BenchFields& fields) {
  LineScanner scan(cell);
  const auto mean = scan.number();
  if (!mean) return false;
  fields["avg_ts"] = fmt::format("{}", *mean);
  const std::string_view rest = scan.rest();
  if (rest.empty()) return true;
  const std::size_t mark = std::min(rest.find_first_of("0123456789."), rest.size());
  LineScanner spread(rest.substr(mark));
  const auto deviation = spread.number();
  if (mark > 12 || !deviation || !spread.done()) return false;
  fields["stddev_ts"] = fmt::format("{}", *deviation);
  return true;
}

// Columns of the md form, with the names that llama-bench's other forms use.
constexpr std::pair<std::string_view, std::string_view> k_markdown_names[] = {
    {"model", "model_type"},        {"size", "model_size"},  {"params", "model_n_params"},
    {"backend", "backends"},        {"ngl", "n_gpu_layers"}, {"threads", "n_threads"},
    {"fa", "flash_attn"},           {"sm", "split_mode"},    {"mg", "main_gpu"},
    {"nkvo", "no_kv_offload"},      {"mmap", "use_mmap"},    {"embd", "embeddings"},
    {"nopo", "no_op_offload"},      {"dev", "devices"},      {"ts", "tensor_split"},
    {"ot", "tensor_buft_overrides"}};

// Reads the tables of the md form, row by row.
class Tables {
 public:
  explicit Tables(Observed& observed) : observed_(observed) {}

  // Returns false if the line is no row.
  bool read_line(std::string_view line, bool may_be_cut) {
    Row row = split_row(line);
    if (is_heading(row)) {
      heading_ = std::move(row);
      above_.clear();
      return true;
    }
    if (heading_.cells.empty() || row.has_first_bar != heading_.has_first_bar) return false;
    const bool is_row = row.has_first_bar || row.cells.size() >= heading_.cells.size();
    if (!is_row || is_ruler(row)) return is_row;
    if (heading_.has_last_bar && !row.has_last_bar && may_be_cut) {
      mark_truncated(observed_);
    } else {
      add(std::move(row.cells));
    }
    return true;
  }

  // Notes the line after a table, "build: 1a2b3c4d (9001)", for the tests above it.
  void set_build(std::string_view commit) {
    for (; built_ < observed_.cases.size(); ++built_)
      observed_.cases[built_].facts["build_commit"] = display_text(commit);
    is_built_ = true;
  }
  // A table without bars at its ends was copied from a page, which may be without that line.
  [[nodiscard]] bool lacks_build() const { return heading_.has_first_bar && !is_built_; }

 private:
  void add(std::vector<std::string> cells) {
    const auto& names = heading_.cells;
    if (!join_bars(names, cells)) {
      const char* reason = cells.size() < names.size() ? "a row has fewer cells than the heading"
                                                       : "a cell holds a bar";
      return add_unread_part(observed_, k_parts, reason);
    }
    // A cell that is blank repeats the one above it.
    for (std::size_t i = 0; i + 2 < cells.size() && i < above_.size(); ++i) {
      if (cells[i].empty()) cells[i] = above_[i];
    }
    above_ = cells;
    BenchFields fields = pair_fields(names, cells);
    if (!read_test_name(fields["test"], fields)) {
      return add_unread_part(
          observed_, k_parts,
          fmt::format("the test \"{}\" is of another kind", display_text(fields["test"], 40)));
    }
    if (!read_rate(fields["t/s"], fields)) {
      return add_unread_part(observed_, k_parts,
                             fmt::format("\"{}\" is no rate", display_text(fields["t/s"], 40)));
    }
    for (const auto& [title, field] : k_markdown_names) {
      const auto match = fields.find(title);
      if (match == fields.end()) continue;
      fields[std::string(field)] = match->second;
      if (title != field) fields.erase(std::string(title));
    }
    fields.erase("t/s");
    fields.erase("test");
    add_test(fields, {}, observed_);
  }

  Observed& observed_;
  Row heading_;
  std::vector<std::string> above_;
  std::size_t built_ = 0;
  bool is_built_ = false;
};

}  // namespace

int recognises(const Printed& printed) {
  const bool table = std::ranges::any_of(printed.lines(), [](std::string_view line) {
    return line.find("t/s") != line.npos && is_heading(split_row(line));
  });
  return table ? 85 : 0;
}

// Reads the rows of CSV, SQL and Markdown:
//
//   | model          |     size | params | backend | threads |  test |           t/s |
//   | llama 1B Q4_0  | 606 MiB  | 1.10 B | CPU     |       2 | pp512 |  75.21 ± 0.52 |
void read(const Printed& printed, Observed& observed) {
  // An appended run writes rows without a heading: they have the columns of the table before.
  std::vector<std::string> csv;
  Tables tables(observed);
  for (const std::string_view line : printed.lines()) {
    if (line.starts_with("build_commit,build_number,")) {
      csv = text::split(line, ',');
    } else if (!csv.empty() && line.starts_with('"')) {
      const auto values = csv_fields(line);
      const bool is_complete = values.size() == csv.size();
      if (is_complete) {
        add_test(pair_fields(csv, values), {}, observed);
      } else if (printed.may_be_cut(line)) {
        mark_truncated(observed);
      } else {
        add_unread_part(observed, k_parts, "a row has another number of fields than the heading");
      }
    } else if (line.starts_with("INSERT INTO llama_bench")) {
      const auto row = sql_row(line, "llama_bench");
      if (row) add_test(*row, {}, observed);
      if (!row) mark_truncated(observed);
    } else if (LineScanner build(unquoted(line)); build.skip_prefix("build:")) {
      if (const auto commit = build.word(); commit && build.skip_prefix("("))
        tables.set_build(*commit);
    } else {
      tables.read_line(line, printed.may_be_cut(line));
    }
  }
  // The md form ends in a line that names the build.
  if (tables.lacks_build()) mark_truncated(observed);
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
