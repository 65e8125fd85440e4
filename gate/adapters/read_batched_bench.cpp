// llama-batched-bench and llama-sweep-bench (of ik_llama): tables and JSON lines.
//
// A row is a case. N_KV of a sweep is the depth at which both tests begin; that of a batch follows
// from its other columns. Rates of a batch are those of all its sequences together.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters::batched_bench {
namespace {

using Texts = std::map<std::string, std::string, std::less<>>;

struct Row {
  Texts settings;
  std::int64_t prompt = 0, generated = 0;
  std::optional<std::int64_t> batch, depth;
  std::optional<double> prefill, decode, both;
  int table = 0;  // from 1; rows of JSON are of none
};

// Columns of the table, with the names of the JSON form.
constexpr std::pair<std::string_view, std::string_view> k_columns[] = {
    {"PP", "pp"},       {"TG", "tg"},
    {"B", "pl"},        {"N_KV", "n_kv"},
    {"T_PP s", "t_pp"}, {"S_PP t/s", "speed_pp"},
    {"T_TG s", "t_tg"}, {"S_TG t/s", "speed_tg"},
    {"T s", "t"},       {"S t/s", "speed"}};

std::optional<std::int64_t> take_count(Texts& values, std::string_view name) {
  const auto value = text::to_int(look_up(values, name, ""));
  values.erase(std::string(name));
  return value && *value >= 0 ? std::optional<std::int64_t>(*value) : std::nullopt;
}

// Reads the values of a row by their names in the JSON form; those that are left are settings.
void add_row(Texts values, int table, std::vector<Row>& rows, Observed& observed) {
  Row row;
  row.table = table;
  const auto prompt = take_count(values, "pp"), generated = take_count(values, "tg");
  row.batch = take_count(values, "pl");
  const auto cached = take_count(values, "n_kv");
  if (!row.batch) row.depth = cached;
  const auto take_rate = [&](std::string_view name) {
    const auto rate = printed_number(look_up(values, name, ""));
    values.erase(std::string(name));
    return rate && *rate > 0 ? rate : std::nullopt;
  };
  row.prefill = take_rate("speed_pp");
  row.decode = take_rate("speed_tg");
  row.both = take_rate("speed");
  for (const char* time : {"t_pp", "t_tg", "t"}) values.erase(time);
  if (!prompt || !generated || !cached || *prompt + *generated == 0) {
    return add_unread_part(observed, "rows", "a number of tokens is none");
  }
  if ((*prompt > 0 && !row.prefill) || (*generated > 0 && !row.decode)) {
    return add_unread_part(observed, "rows", "a rate is none or 0");
  }
  row.prompt = *prompt;
  row.generated = *generated;
  row.settings = std::move(values);
  if (rows.size() >= k_max_rows)
    return add_unread_part(observed, "rows", "it has more than 200000");
  add_read_parts(observed, "rows");
  rows.push_back(std::move(row));
}

// Reads "main: n_kv_max = 8192, n_batch = 2048, …".
Texts read_settings(std::string_view line) {
  Texts settings;
  const std::size_t begin = line.find("n_kv_max = ");
  for (const std::string& pair : text::split(line.substr(begin), ',')) {
    LineScanner scan(pair);
    const auto name = scan.read_until("=");
    if (name && settings.size() < 64) settings[display_text(*name, 60)] = display_text(scan.rest());
  }
  return settings;
}

std::string case_name(const Row& row, const std::vector<std::string>& differing) {
  std::string name;
  if (row.prompt > 0) name = fmt::format("pp{}", row.prompt);
  if (row.generated > 0) text::append_item(name, " ", fmt::format("tg{}", row.generated));
  if (row.batch) name += fmt::format(" b{}", *row.batch);
  if (row.depth.value_or(0) > 0) name += fmt::format(" @ d{}", *row.depth);
  for (const std::string& setting : differing) {
    name += fmt::format(" {} {}", setting, look_up(row.settings, setting, "-"));
  }
  return name;
}

// Returns the settings that are not the same in all rows.
std::vector<std::string> find_differing(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.settings.empty()) continue;
    const Texts& first = rows.front().settings;
    for (const auto& [name, value] : row.settings) {
      if (!first.empty() && look_up(first, name, "") != value && !holds(names, name))
        names.push_back(name);
    }
  }
  std::ranges::sort(names);
  return names;
}

// Adds a row to its case; `cases` has the index of each name.
void add_case(const Row& row, const std::string& name, std::map<std::string, std::size_t>& cases,
              Observed& observed) {
  ObservedCase* test = nullptr;
  if (const auto* index = look_up(cases, name)) {
    test = &observed.cases[*index];
    add_warning(observed, "a test that stands in it more than once is read as repetitions");
  } else {
    ObservedCase fresh;
    fresh.name = name;
    fresh.facts = {row.settings.begin(), row.settings.end()};
    if (row.prompt > 0) fresh.prompt_tokens = row.prompt;
    if (row.generated > 0) fresh.generated_tokens = row.generated;
    fresh.depth = row.depth;
    if (!append_row_within_limit(observed.cases, std::move(fresh), observed)) return;
    cases[name] = observed.cases.size() - 1;
    test = &observed.cases.back();
  }
  if (row.batch.value_or(1) > 1)
    add_warning(observed, "rates of a batch (b2 and more) are those of all its sequences together");
  if (row.prefill) add_sample(test->timings, "prefill_tokens_per_second", *row.prefill);
  if (row.decode) add_sample(test->timings, "decode_tokens_per_second", *row.decode);
  if (!row.both) return;
  const auto metric = unit::custom_metric("tokens_per_second", unit::Kind::time,
                                          unit::Unit::tokens_per_second, unit::Better::higher);
  find_or_add_timing(test->timings, metric).samples.push_back(*row.both);
}

// Takes a row of JSON: results and settings.
void read_json(const Json& json, std::vector<Row>& rows, Observed& observed) {
  if (!json.is_object() || !json.contains("speed_pp")) return;
  Texts values;
  for (const auto& [name, value] : json.items()) {
    if (values.size() < 64 && value.is_primitive() && !value.is_null())
      values[display_text(name, 60)] = json_display_text(value);
  }
  add_row(std::move(values), 0, rows, observed);
}

// Reads the rows of all tables. A line with settings ("… n_kv_max = 2048, …") is of the table after
// it.
//
//   |    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S
//   t/s | |    32 |     16 |    1 |     48 |    0.108 |   297.05 |    0.063 |   253.02 |    0.171 |
//   280.64 |
void read_tables(const Printed& printed, std::vector<Row>& rows, Observed& observed) {
  std::vector<std::string> titles;
  Texts settings;
  int table = 0;
  for (const std::string_view line : printed.lines()) {
    if (line.find("n_kv_max = ") != line.npos) settings = read_settings(line);
    const std::vector<std::string> cells = split_at_bars(line);
    if (cells.empty()) {
      if (text::trim(line).starts_with('|') && !titles.empty()) mark_truncated(observed);
      continue;
    }
    if (holds(cells, "N_KV") && holds(cells, "S_PP t/s")) {
      titles = cells;
      ++table;
      add_read_parts(observed, "tables");
      continue;
    }
    if (cells.front() == "model")
      add_unread_part(observed, "tables", "a table of llama-bench in the same text");
    if (cells.front() == "model" || cells.size() != titles.size()) titles.clear();
    if (titles.empty() || is_ruler(line)) continue;
    Texts values = settings;
    for (const auto& [title, name] : k_columns) {
      const auto at = std::ranges::find(titles, title);
      if (at != titles.end())
        values[std::string(name)] = cells[static_cast<std::size_t>(at - titles.begin())];
    }
    add_row(std::move(values), table, rows, observed);
  }
}

}  // namespace

// Reads tables and JSON lines. Each row is a case, named by the settings in which rows differ.
void read(const Printed& printed, Observed& observed) {
  std::vector<Row> rows;
  read_tables(printed, rows, observed);
  if (printed.holds("\"speed_pp\"")) {
    read_documents(
        printed, [&](const Json& json) { read_json(json, rows, observed); }, observed);
  }
  const std::vector<std::string> differing = find_differing(rows);
  // Tables of several runs ("master", "PR") are no repetitions of each other.
  std::map<std::string, int> first_tables;
  std::map<std::string, std::size_t> cases;
  for (const Row& row : rows) {
    std::string name = case_name(row, differing);
    const int first_table = first_tables.try_emplace(name, row.table).first->second;
    if (row.table != first_table) name += fmt::format(" (table {})", row.table);
    add_case(row, name, cases, observed);
  }
  copy_tokens_of_only_case(observed);
  if (observed.cases.size() == 1) observed.timings = observed.cases.front().timings;
}

}  // namespace weir::adapters::batched_bench

const weir::adapters::Format weir::adapters::k_batched_bench(
    "llama-batched-bench", "llama-batched-bench and llama-sweep-bench, table or JSON lines",
    "llama.cpp", batched_bench::read,
    {{90, {"S_PP t/s & S_TG t/s", "\"speed_pp\" & \"speed_tg\""}}});
