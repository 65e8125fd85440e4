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

namespace weir::history {
namespace {

constexpr std::size_t k_most_columns = 256;
constexpr std::size_t k_longest_field = std::size_t{64} << 10;
constexpr std::size_t k_most_rows = 100'000'000;

enum Column : std::size_t { cell, metric, commit, time, value, machine };
constexpr std::array<std::string_view, 6> k_columns{"cell", "metric", "commit",
                                                    "time", "value",  "machine"};
constexpr std::array k_needed{Column::cell, Column::metric, Column::time, Column::value};

}  // namespace

// Rows of fields. A field points into the text, or where quotes were doubled into `kept_`.
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
  Result<void> read_row(std::vector<std::string_view>& fields) {
    fields.clear();
    kept_.clear();
    for (bool more = true; more;) {
      if (fields.size() == k_most_columns) return wrong("more than 256 columns");
      const bool quoted = at_ < text_.size() && text_[at_] == '"';
      WEIR_TRY(const std::string_view field, quoted ? quoted_field() : plain_field());
      if (field.size() > k_longest_field) return wrong("a field of more than 64 KiB");
      fields.push_back(field);
      more = at_ < text_.size() && text_[at_] == ',';
      if (more) ++at_;
    }
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size()) {
      if (text_[at_] != '\n') return wrong("there is text after a closing quote");
      ++at_;
      ++lines_;
    }
    return {};
  }

  Result<std::string_view> plain_field() {
    const std::size_t from = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ',' || c == '\n') break;
      if (c == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n')) break;
      if (c == '"') return wrong("a quote within a field that does not begin with one");
      ++at_;
    }
    return text_.substr(from, at_ - from);
  }

  Result<std::string_view> quoted_field() {
    const std::size_t from = ++at_;
    std::string* copy = nullptr;  // needed where a quote is doubled
    std::size_t part = from;
    for (;;) {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos || quote - from > 2 * k_longest_field) {
        return wrong("a quote is not closed");
      }
      lines_ += static_cast<std::size_t>(
          std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                     text_.begin() + static_cast<std::ptrdiff_t>(quote), '\n'));
      at_ = quote + 1;
      const bool doubled = at_ < text_.size() && text_[at_] == '"';
      if (!doubled && copy == nullptr) return text_.substr(from, quote - from);
      if (copy == nullptr) copy = &kept_.emplace_back();
      copy->append(text_.substr(part, quote - part));
      if (!doubled) return std::string_view(*copy);
      *copy += '"';
      part = ++at_;
    }
  }

  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view what) const {
    return fail(Code::data, "line {}: {}", line_, what);
  }

  std::string_view text_;
  std::size_t at_ = 0, lines_ = 0, line_ = 0;
  std::deque<std::string> kept_;
};

// Names that occur in many rows, numbered. Different bytes may be one name.
using CsvNames = std::unordered_map<std::string, std::uint32_t>;

class CsvReading {
 public:
  CsvReading(std::string_view text, std::string project, std::string machine)
      : rows_(text), project_(std::move(project)), machine_(std::move(machine)) {}

  Result<CsvTable> read() {
    WEIR_TRY(const bool some, rows_.next(fields_));
    if (!some) return fail(Code::data, "line 1: no header: {}", text::join(names()));
    WEIR_CHECK(read_header());
    for (;;) {
      WEIR_TRY(const bool more, rows_.next(fields_));
      if (!more) break;
      WEIR_CHECK(read_fields().map_error([&](Error error) {
        return with_context(fmt::format("line {}", rows_.line()), std::move(error));
      }));
    }
    WEIR_CHECK(arrange());
    return std::move(table_);
  }

 private:
  static std::vector<std::string> names() { return {k_columns.begin(), k_columns.end()}; }

  Result<void> read_header() {
    places_.fill(std::nullopt);
    columns_ = fields_.size();
    std::vector<std::string> unknown;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const std::string name = text::lower(text::trim(fields_[i]));
      const auto known = std::ranges::find(k_columns, name);
      if (known == k_columns.end()) {
        unknown.push_back(fmt::format("\"{}\"", text::printable(name.substr(0, 64))));
        continue;
      }
      auto& place = places_[static_cast<std::size_t>(known - k_columns.begin())];
      if (place) return fail(Code::data, "line 1: the column \"{}\" is there twice", name);
      place = i;
    }
    for (const Column needed : k_needed) {
      if (!places_[needed]) {
        return fail(Code::data,
                    "line 1: there is no column \"{}\": the header names {}, in any order",
                    k_columns[needed], text::join(names()));
      }
    }
    if (!unknown.empty()) {
      unknown.resize(std::min(unknown.size(), std::size_t{8}));
      table_.warnings_.push_back(
          fmt::format("unknown columns were left out: {}", text::join(unknown)));
    }
    return {};
  }

  [[nodiscard]] std::string_view field(Column column) const {
    return places_[column] ? fields_[*places_[column]] : std::string_view();
  }

  Result<void> read_fields() {
    if (fields_.size() != columns_) {
      return fail(Code::data, "{} fields; the header has {}", fields_.size(), columns_);
    }
    if (table_.rows_.size() == k_most_rows) return fail(Code::data, "too many rows");
    if (field(Column::cell).empty() || field(Column::metric).empty()) {
      return fail(Code::data, "a cell and a metric need names");
    }
    CsvTable::Row row;
    WEIR_TRY(row.group, group());
    row.cell = number(cells_, stored_name(field(Column::cell)), table_.cells_);
    row.metric = number(metrics_, stored_name(field(Column::metric)), table_.metrics_);
    WEIR_CHECK(read_value(row));
    table_.rows_.push_back(row);
    return {};
  }

  // Its number; what is new is put behind the others in `list`, too.
  template <class Item>
  static std::uint32_t number(CsvNames& known, std::string name, std::vector<Item>& list) {
    const auto [at, fresh] =
        known.try_emplace(std::move(name), static_cast<std::uint32_t>(list.size()));
    if constexpr (std::is_same_v<Item, Metric>) {
      if (fresh) list.push_back(metric_named(at->first));
    } else {
      if (fresh) list.push_back(at->first);
    }
    return at->second;
  }

  Result<std::uint32_t> group() {
    key_.clear();
    for (const Column column : {Column::commit, Column::time, Column::machine}) {
      const std::string_view one = field(column);
      key_ += fmt::format("{}:", one.size());  // so that no two keys run into one
      key_ += one;
    }
    const auto known = groups_.find(key_);
    if (known != groups_.end()) return known->second;
    const auto when = parse_time(field(Column::time));
    if (!when) {
      return fail(Code::data, "\"{}\" is not a time: Unix seconds, or 2026-11-20T09:30:15Z",
                  text::printable(field(Column::time).substr(0, 64)));
    }
    RunFacts facts;
    facts.project = project_;
    facts.source = Source::csv;
    facts.time = *when + 0.0;
    if (!field(Column::commit).empty()) facts.commit = stored_name(field(Column::commit));
    facts.machine = field(Column::machine).empty() ? machine_ : stored_name(field(Column::machine));
    // However a time is written, it is the same run.
    facts.id = hash_hex(
        fmt::format("csv\n{}\n{}\n{}", facts.commit.value_or(""), facts.time, facts.machine));
    Run alone{facts, {}};
    WEIR_CHECK(check(alone));
    const auto [same, fresh] =
        ids_.try_emplace(facts.id, static_cast<std::uint32_t>(table_.groups_.size()));
    if (fresh) table_.groups_.push_back(std::move(facts));
    groups_.emplace(key_, same->second);
    return same->second;
  }

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

  Result<void> arrange() {
    auto& rows = table_.rows_;
    const auto key = [](const CsvTable::Row& row) {
      return std::tie(row.group, row.cell, row.metric);
    };
    std::ranges::stable_sort(rows, {}, [&](const CsvTable::Row& one) { return key(one); });
    std::size_t points = 0, samples = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool same_group = i > 0 && rows[i].group == rows[i - 1].group;
      const bool same_point = same_group && key(rows[i]) == key(rows[i - 1]);
      if (!same_group) table_.begins_.push_back(i);
      samples = same_point ? samples + 1 : 1;
      points = same_point ? points : same_group ? points + 1 : 1;
      if (points > k_most_points || samples > k_most_samples) {
        return fail(Code::data, "more than {} of one commit, time and machine{}",
                    points > k_most_points ? k_most_points : k_most_samples,
                    points > k_most_points ? "" : ", cell and metric");
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
  return CsvReading(text, project, machine).read();
}

std::size_t CsvTable::rows_of(std::size_t run) const { return begins_[run + 1] - begins_[run]; }

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
    const auto same = [&](const Row& row) {
      return row.exact > 0 && exact_[row.exact - 1] == exact_[first.exact - 1];
    };
    if (first.exact > 0 && std::all_of(rows_.begin() + static_cast<std::ptrdiff_t>(i),
                                       rows_.begin() + static_cast<std::ptrdiff_t>(end), same)) {
      point.nature = profile::Nature::exact;
      point.exact = exact_[first.exact - 1];
      point.value = first.value;
    } else {
      for (std::size_t at = i; at < end; ++at) point.samples.push_back(rows_[at].value);
      point.value = middle_of(point.samples);
      if (point.samples.size() == 1) point.samples.clear();  // it is the value
    }
    run.points.push_back(std::move(point));
    i = end;
  }
  return run;
}

}  // namespace weir::history
