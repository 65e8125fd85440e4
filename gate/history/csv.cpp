// Reads CSV into runs.
#include "gate/history/csv.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::history {
namespace {

constexpr std::size_t k_max_columns = 256;
constexpr std::size_t k_longest_field = std::size_t{64} << 10;
constexpr std::size_t k_max_rows = 100'000'000;

enum Column : std::size_t { cell, metric, commit, time, value, machine };
constexpr std::array<std::string_view, 6> k_columns{"cell", "metric", "commit",
                                                    "time", "value",  "machine"};
constexpr std::array k_required{Column::cell, Column::metric, Column::time, Column::value};

}  // namespace

// Splits CSV into rows of fields. A field points into the text, or into `unescaped_` if it had
// doubled quotes.
class CsvRows {
 public:
  explicit CsvRows(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);  // as spreadsheets begin files
  }
  // False at the end. Empty lines are passed over.
  Result<bool> next(std::vector<std::string_view>& fields) {
    do {
      if (at_ >= text_.size()) return false;
      line_ = lines_ + 1;
      WEIR_CHECK(read_row(fields));
    } while (fields.size() == 1 && fields.front().empty());
    return true;
  }
  [[nodiscard]] std::size_t line() const { return line_; }

 private:
  // Reads one row, and its line end.
  Result<void> read_row(std::vector<std::string_view>& fields) {
    fields.clear();
    unescaped_.clear();
    for (bool more = true; more;) {
      if (fields.size() == k_max_columns) return fail_at_line("more than 256 columns");
      const bool quoted = at_ < text_.size() && text_[at_] == '"';
      WEIR_TRY(const std::string_view field, quoted ? quoted_field() : plain_field());
      if (field.size() > k_longest_field) return fail_at_line("a field of more than 64 KiB");
      fields.push_back(field);
      more = at_ < text_.size() && text_[at_] == ',';
      if (more) ++at_;
    }
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size()) {
      if (text_[at_] != '\n') return fail_at_line("there is text after a closing quote");
      ++at_;
      ++lines_;
    }
    return {};
  }

  // Reads a field without quotes, up to a comma or the line end.
  Result<std::string_view> plain_field() {
    const std::size_t from = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ',' || c == '\n') break;
      if (c == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n')) break;
      if (c == '"') return fail_at_line("a quote within a field that does not begin with one");
      ++at_;
    }
    return text_.substr(from, at_ - from);
  }

  // Reads a field in quotes; a doubled quote within it is one quote.
  Result<std::string_view> quoted_field() {
    const std::size_t from = ++at_;
    std::string* copy = nullptr;  // needed once a quote is doubled
    std::size_t part = from;
    for (;;) {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos || quote - from > 2 * k_longest_field) {
        return fail_at_line("a quote is not closed");
      }
      lines_ += static_cast<std::size_t>(
          std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                     text_.begin() + static_cast<std::ptrdiff_t>(quote), '\n'));
      at_ = quote + 1;
      const bool doubled = at_ < text_.size() && text_[at_] == '"';
      if (!doubled && copy == nullptr) return text_.substr(from, quote - from);
      if (copy == nullptr) copy = &unescaped_.emplace_back();
      copy->append(text_.substr(part, quote - part));
      if (!doubled) return std::string_view(*copy);
      *copy += '"';
      part = ++at_;
    }
  }

  [[nodiscard]] tl::unexpected<Error> fail_at_line(std::string_view what) const {
    return fail(Code::data, "line {}: {}", line_, what);
  }

  std::string_view text_;
  std::size_t at_ = 0, lines_ = 0, line_ = 0;
  std::deque<std::string> unescaped_;
};

// Numbers of names that occur in many rows.
using CsvNames = std::unordered_map<std::string, std::uint32_t>;

// Reads a table: a header, and rows that are grouped into runs.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string project, std::string machine)
      : rows_(text), project_(std::move(project)), machine_(std::move(machine)) {}

  // Reads the whole text.
  Result<CsvTable> read() {
    WEIR_TRY(const bool has_header, rows_.next(fields_));
    if (!has_header) return fail(Code::data, "line 1: no header: {}", text::join(column_names()));
    WEIR_CHECK(read_header());
    for (;;) {
      WEIR_TRY(const bool has_row, rows_.next(fields_));
      if (!has_row) break;
      WEIR_CHECK(read_fields().map_error([&](Error error) {
        return add_prefix(fmt::format("line {}", rows_.line()), std::move(error));
      }));
    }
    WEIR_CHECK(sort_rows());
    return std::move(table_);
  }

 private:
  static std::vector<std::string> column_names() { return {k_columns.begin(), k_columns.end()}; }

  // Finds the place of each column by its name.

  Result<void> read_header() {
    places_.fill(std::nullopt);
    columns_ = fields_.size();
    std::vector<std::string> unknown;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const std::string name = text::lower(text::trim(fields_[i]));
      const auto column = std::ranges::find(k_columns, name);
      if (column == k_columns.end()) {
        unknown.push_back(fmt::format("\"{}\"", text::printable(name.substr(0, 64))));
        continue;
      }
      auto& place = places_[static_cast<std::size_t>(column - k_columns.begin())];
      if (place) return fail(Code::data, "line 1: the column \"{}\" is there twice", name);
      place = i;
    }
    for (const Column column : k_required) {
      if (!places_[column]) {
        return fail(Code::data,
                    "line 1: there is no column \"{}\": the header names {}, in any order",
                    k_columns[column], text::join(column_names()));
      }
    }
    if (!unknown.empty()) {
      unknown.resize(std::min(unknown.size(), std::size_t{8}));
      table_.warnings_.push_back(
          fmt::format("unknown columns were left out: {}", text::join(unknown)));
    }
    return {};
  }

  // The field of a column; "" if the header does not have it.
  [[nodiscard]] std::string_view field(Column column) const {
    return places_[column] ? fields_[*places_[column]] : std::string_view();
  }

  // Adds the fields of one row to the table.
  Result<void> read_fields() {
    if (fields_.size() != columns_) {
      return fail(Code::data, "{} fields; the header has {}", fields_.size(), columns_);
    }
    if (table_.rows_.size() == k_max_rows) return fail(Code::data, "too many rows");
    if (field(Column::cell).empty() || field(Column::metric).empty()) {
      return fail(Code::data, "a cell and a metric need names");
    }
    CsvTable::Row row;
    WEIR_TRY(row.group, find_or_add_group());
    row.cell = find_or_add(cells_, stored_name(field(Column::cell)), table_.cells_);
    row.metric = find_or_add(metrics_, stored_name(field(Column::metric)), table_.metrics_);
    WEIR_CHECK(read_value(row));
    table_.rows_.push_back(row);
    return {};
  }

  // The number of a name. A new one is added to `list`, too.
  template <class Item>
  static std::uint32_t find_or_add(CsvNames& numbers, std::string name, std::vector<Item>& list) {
    const auto [entry, is_new] =
        numbers.try_emplace(std::move(name), static_cast<std::uint32_t>(list.size()));
    if (!is_new) return entry->second;
    if constexpr (std::is_same_v<Item, Metric>) {
      list.push_back(metric_named(entry->first));
    } else {
      list.push_back(entry->first);
    }
    return entry->second;
  }

  // The number of the row's run, made from its commit, time and machine.
  Result<std::uint32_t> find_or_add_group() {
    key_.clear();
    for (const Column column : {Column::commit, Column::time, Column::machine}) {
      const std::string_view part = field(column);
      key_ += fmt::format("{}:", part.size());  // so that no two keys run into one
      key_ += part;
    }
    const auto group = groups_.find(key_);
    if (group != groups_.end()) return group->second;
    const auto time = parse_time(field(Column::time));
    if (!time) {
      return fail(Code::data, "\"{}\" is not a time: Unix seconds, or 2026-11-20T09:30:15Z",
                  text::printable(field(Column::time).substr(0, 64)));
    }
    RunFacts facts;
    facts.project = project_;
    facts.source = Source::csv;
    facts.time = *time + 0.0;
    if (!field(Column::commit).empty()) facts.commit = stored_name(field(Column::commit));
    facts.machine = field(Column::machine).empty() ? machine_ : stored_name(field(Column::machine));
    // Another way to write the same time is still the same run.
    facts.id = hash_hex(
        fmt::format("csv\n{}\n{}\n{}", facts.commit.value_or(""), facts.time, facts.machine));
    const Run run_without_points{facts, {}};
    WEIR_CHECK(check(run_without_points));
    const auto [same_run, is_new] =
        ids_.try_emplace(facts.id, static_cast<std::uint32_t>(table_.groups_.size()));
    if (is_new) table_.groups_.push_back(std::move(facts));
    groups_.emplace(key_, same_run->second);
    return same_run->second;
  }

  // Reads the number of a row, exactly for counts and fractions.
  Result<void> read_value(CsvTable::Row& row) {
    const std::string_view written = text::trim(field(Column::value));
    const bool count = table_.metrics_[row.metric].kind == unit::Kind::count;
    if (count || written.find('/') != std::string_view::npos) {
      if (const auto exact = Rational::parse(written)) {
        table_.exact_.push_back(*exact);
        row.exact = static_cast<std::uint32_t>(table_.exact_.size());
        row.value = exact->value();
        return {};
      }
    }
    const auto number = text::to_double(written);
    if (!number) {
      return fail(Code::data, "\"{}\" is no finite number", text::printable(written.substr(0, 64)));
    }
    row.value = *number + 0.0;
    return {};
  }

  // Sorts the rows by run, cell and metric, and checks how many a run and a point have.
  Result<void> sort_rows() {
    auto& rows = table_.rows_;
    const auto key = [](const CsvTable::Row& row) {
      return std::tie(row.group, row.cell, row.metric);
    };
    std::ranges::stable_sort(rows, {}, key);
    std::size_t points = 0, samples = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool same_group = i > 0 && rows[i].group == rows[i - 1].group;
      const bool same_point = same_group && key(rows[i]) == key(rows[i - 1]);
      if (!same_group) table_.begins_.push_back(i);
      samples = same_point ? samples + 1 : 1;
      if (!same_group) points = 0;
      if (!same_point) ++points;
      if (points > k_max_points || samples > k_max_samples) {
        const bool too_many_points = points > k_max_points;
        return fail(Code::data, "more than {} of one commit, time and machine{}",
                    too_many_points ? k_max_points : k_max_samples,
                    too_many_points ? "" : ", cell and metric");
      }
    }
    table_.begins_.push_back(rows.size());
    return {};
  }

  CsvRows rows_;
  std::string project_, machine_, key_;
  std::vector<std::string_view> fields_;
  std::size_t columns_ = 0;
  std::array<std::optional<std::size_t>, k_columns.size()> places_{};
  CsvNames cells_, metrics_, groups_, ids_;
  CsvTable table_;
};

Result<CsvTable> CsvTable::parse(std::string_view text, const std::string& project,
                                 const std::string& machine) {
  return CsvReader(text, project, machine).read();
}

std::size_t CsvTable::rows_of(std::size_t run) const { return begins_[run + 1] - begins_[run]; }

// Makes a run of the rows of its group. Rows of one cell and metric are one point: exact if all
// agree, else their median with the rows as samples.
Run CsvTable::run(std::size_t index) const {
  Run run{groups_[index], {}};
  run.points.reserve(rows_of(index));
  for (std::size_t i = begins_[index]; i < begins_[index + 1];) {
    std::size_t end = i + 1;
    const Row& first = rows_[i];
    while (end < begins_[index + 1] && rows_[end].cell == first.cell &&
           rows_[end].metric == first.metric) {
      ++end;
    }
    Point point;
    point.cell = cells_[first.cell];
    point.metric = metrics_[first.metric];
    const auto equals_first = [&](const Row& row) {
      return row.exact > 0 && exact_[row.exact - 1] == exact_[first.exact - 1];
    };
    if (first.exact > 0 &&
        std::all_of(rows_.begin() + static_cast<std::ptrdiff_t>(i),
                    rows_.begin() + static_cast<std::ptrdiff_t>(end), equals_first)) {
      point.nature = profile::Nature::exact;
      point.exact = exact_[first.exact - 1];
      point.value = first.value;
    } else {
      for (std::size_t row = i; row < end; ++row) point.samples.push_back(rows_[row].value);
      point.value = *stats::median(point.samples);
      if (point.samples.size() == 1) point.samples.clear();  // it is the value
    }
    run.points.push_back(std::move(point));
    i = end;
  }
  return run;
}

}  // namespace weir::history
