// Reads tables of work by the titles of their columns.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_longest_name = 2000;  // names of templates differ at their ends
constexpr std::size_t k_max_columns = 64;

enum class Column {
  other,
  name,
  category,
  calls,
  total,
  min_seconds,
  max_seconds,
  begin,
  end,
  each,
  bytes,
  size_in_threads  // "   1    1    1"
};

// Titles in lower case, with letters alone.
const std::map<std::string, Column, std::less<>> k_columns{
    {"name", Column::name},
    {"operation", Column::name},
    {"kernelname", Column::name},
    {"function", Column::name},
    {"direction", Column::name},
    {"category", Column::category},
    {"kind", Column::category},
    {"domain", Column::category},
    {"calls", Column::calls},
    {"instances", Column::calls},
    {"count", Column::calls},
    {"numcalls", Column::calls},
    {"operations", Column::calls},
    {"totaltime", Column::total},
    {"totalduration", Column::total},
    {"min", Column::min_seconds},
    {"minimum", Column::min_seconds},
    {"max", Column::max_seconds},
    {"maximum", Column::max_seconds},
    {"begin", Column::begin},
    {"starttimestamp", Column::begin},
    {"end", Column::end},
    {"endtimestamp", Column::end},
    {"duration", Column::each},
    {"total", Column::bytes},
    {"gridxyz", Column::size_in_threads},
    {"blockxyz", Column::size_in_threads},
};

std::optional<unit::Scale> parse_unit(std::string_view text) {
  for (const auto& [name, plain] :
       {std::pair{"nsec", "ns"}, {"usec", "us"}, {"\xCE\xBCs", "us"}, {"msec", "ms"}}) {
    if (text == name) return unit::parse_scale(plain);
  }
  return unit::parse_scale(text);
}

// A title without its unit: "Total Time (ns)", "TotalDurationNs".
struct Title {
  std::string words;  // in lower case, letters alone
  std::optional<unit::Scale> unit;
  bool is_share = false;
};
// Parses a column's title with its unit: "Time (%)", "Total Time (ns)", "TotalNs".
Title parse_title(std::string_view text) {
  Title title;
  std::string_view words = text::trim(text);
  if (const std::size_t open = words.rfind('('); open != words.npos && words.ends_with(')')) {
    const std::string_view unit = words.substr(open + 1, words.size() - open - 2);
    title.is_share = unit.find('%') != unit.npos;
    title.unit = parse_unit(unit);
    words = words.substr(0, open);
  } else if (words.ends_with("Ns") && words.size() > 2) {
    title.unit = unit::parse_scale("ns");
    words.remove_suffix(2);
  }
  for (const char c : words) {
    if (text::is_letter(c)) title.words += text::lower(std::string_view(&c, 1));
  }
  return title;
}

enum class Style { csv, tabs, bars, gaps };

Style style_of(std::string_view line) {
  if (text::trim(line).starts_with('|')) return Style::bars;
  if (line.find('\t') != line.npos) return Style::tabs;
  return line.find(',') != line.npos ? Style::csv : Style::gaps;
}

// Splits a line of a table into cells, in the way that its style separates them.
std::vector<std::string> split_cells(Style style, std::string_view line) {
  switch (style) {
    case Style::csv:
      return csv_fields(text::trim(line));
    case Style::tabs:
      return text::split(line, '\t');
    case Style::bars:
      return split_at_bars(line);
    case Style::gaps:
      return split_at_gaps(line);
  }
  return {};
}

class Table {
 public:
  // Nothing unless these are titles of a table of work.
  static std::optional<Table> from_heading(std::string_view line) {
    Table table;
    table.style_ = style_of(line);
    const std::vector<std::string> titles = split_cells(table.style_, line);
    if (titles.size() < 3 || titles.size() > k_max_columns) return std::nullopt;
    const auto is_calls = [](const std::string& text) {
      return look_up(k_columns, parse_title(text).words, Column::other) == Column::calls;
    };
    const bool has_calls = std::ranges::any_of(titles, is_calls);
    for (const std::string& text : titles) {
      const Title title = parse_title(text);
      Column column = look_up(k_columns, title.words, Column::other);
      if (title.is_share) column = Column::other;
      // With a number of calls, a duration is that of all of them.
      if (column == Column::each && has_calls) column = Column::total;
      const bool is_size = title.unit && title.unit->unit == unit::Unit::bytes;
      if (column == Column::bytes && !is_size) column = Column::other;
      if (is_size && column != Column::bytes) column = Column::other;
      if (table.has(column) && column != Column::size_in_threads) column = Column::other;
      table.columns_.push_back(column);
      table.scales_.push_back(title.unit ? title.unit->factor : 1e-9);
    }
    const bool is_timed = table.has(Column::total) || table.has(Column::each) ||
                          (table.has(Column::begin) && table.has(Column::end));
    if (!table.has(Column::name) || !(is_timed || table.has(Column::bytes))) return std::nullopt;
    return table;
  }

  // Nothing if the line has other columns.
  [[nodiscard]] std::optional<WorkRow> parse_row(std::string_view line) const {
    std::vector<std::string> cells = split_cells(style_, line);
    if (style_ == Style::gaps && cells.size() != columns_.size()) cells = split_words(line);
    if (cells.size() != columns_.size()) return std::nullopt;
    WorkRow row;
    std::optional<double> begin, end;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string& cell = cells[i];
      switch (columns_[i]) {
        case Column::name:
          row.name = display_text(cell, k_longest_name);
          break;
        case Column::category:
          row.category = display_text(cell, 100);
          break;
        case Column::calls:
          if (const auto calls = number_cell(cell); calls && *calls >= 0 && *calls < 1e15)
            row.calls = static_cast<std::int64_t>(*calls);
          break;
        case Column::total:
        case Column::each:
          row.seconds = time_cell(cell, scales_[i]);
          break;
        case Column::min_seconds:
          row.min_seconds = time_cell(cell, scales_[i]);
          break;
        case Column::max_seconds:
          row.max_seconds = time_cell(cell, scales_[i]);
          break;
        case Column::begin:
          begin = number_cell(cell);
          break;
        case Column::end:
          end = time_cell(cell, scales_[i]);
          if (begin && end) end = (*number_cell(cell) - *begin) * scales_[i];
          break;
        case Column::bytes:
          row.bytes = time_cell(cell, scales_[i]);
          break;
        case Column::size_in_threads:
        case Column::other:
          break;
      }
    }
    if (!row.seconds && begin) row.seconds = end;
    if (!has(Column::calls)) row.calls = 1;
    return row;
  }

  [[nodiscard]] Style style() const { return style_; }
  // True if a line without an end holds all of its row.
  [[nodiscard]] bool ends_row(std::string_view line) const {
    const std::string_view row = text::trim(line);
    return (style_ == Style::bars && row.ends_with('|')) ||
           (style_ == Style::csv && row.ends_with('"') &&
            split_cells(style_, line).size() == columns_.size());
  }

 private:
  [[nodiscard]] bool has(Column column) const {
    return column != Column::other && holds(columns_, column);
  }
  // Splits a line at its blanks; the last column takes the rest. "1 1 1" is one cell of a size.
  [[nodiscard]] std::vector<std::string> split_words(std::string_view line) const {
    LineScanner scan(line);
    std::vector<std::string> cells;
    for (std::size_t i = 0; i + 1 < columns_.size(); ++i) {
      for (int words = columns_[i] == Column::size_in_threads ? 3 : 1; words > 0; --words) {
        const auto word = scan.word();
        if (!word) return {};
        if (words == 1) cells.emplace_back(*word);
      }
    }
    cells.emplace_back(scan.rest());
    return cells;
  }

  Style style_ = Style::gaps;
  std::vector<Column> columns_;
  std::vector<double> scales_;
};

// Titles hold no digits, names of work may.
bool may_be_heading(std::string_view line) {
  if (line.size() > 2000 || std::any_of(line.begin(), line.end(), text::is_digit)) return false;
  const std::string lower = text::lower(line);
  for (const char* title : {"name", "operation", "function", "direction"}) {
    if (lower.find(title) != lower.npos) return true;
  }
  return false;
}

}  // namespace

// Reads a number with or without separators of thousands: "3,200" is 3200. Nothing for "nan" or
// "--".
std::optional<double> number_cell(std::string_view cell) {
  cell = text::trim(cell);
  if (cell.empty() || cell.size() > 40) return std::nullopt;
  const std::size_t point = std::min(cell.find('.'), cell.size());
  std::string plain;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    if (cell[i] != ',') {
      plain += cell[i];
    } else if (i == 0 || i > point || (point - i) % 4 != 0) {
      return printed_number(cell);  // no separator of thousands
    }
  }
  return text::to_double(plain);
}

// Reads a time as seconds: "729.72us", or a number alone, which is multiplied by `scale` (0: not
// allowed).
std::optional<double> time_cell(std::string_view cell, double scale) {
  cell = text::trim(cell);
  std::size_t end = cell.size();
  while (end > 0 && !text::is_digit(cell[end - 1]) && cell[end - 1] != '.') --end;
  const auto value = number_cell(cell.substr(0, end));
  const std::string_view suffix = text::trim(cell.substr(end));
  if (!value || *value < 0 || *value > 1e30) return std::nullopt;
  if (suffix.empty()) return scale > 0 ? std::optional(*value * scale) : std::nullopt;
  const auto unit = parse_unit(suffix);
  if (!unit || unit->unit != unit::Unit::seconds) return std::nullopt;
  return *value * unit->factor;
}

std::vector<std::string> split_at_gaps(std::string_view line) {
  std::vector<std::string> cells;
  line = text::trim(line);
  while (!line.empty() && cells.size() < k_max_columns) {
    const std::size_t end = std::min(line.find("  "), line.size());
    cells.emplace_back(text::trim(line.substr(0, end)));
    line = text::trim(line.substr(end));
  }
  return cells;
}

std::vector<std::string> split_at_bars(std::string_view line) {
  line = text::trim(line);
  if (line.size() < 2 || !line.starts_with('|') || !line.ends_with('|')) return {};
  std::vector<std::string> cells = text::split(line.substr(1, line.size() - 2), '|');
  for (std::string& cell : cells) cell = std::string(text::trim(cell));
  return cells;
}

bool is_ruler(std::string_view line) {
  line = text::trim(line);
  return !line.empty() && line.find_first_not_of("-=+|: ") == line.npos;
}

std::string call_category(std::string_view name, std::string_view other) {
  const std::string lower = text::lower(name);
  const auto has = [&](const char* part) { return lower.find(part) != lower.npos; };
  if (!lower.starts_with("cu") && !lower.starts_with("hip") && !lower.starts_with("hsa"))
    return std::string(other);
  if (has("synchronize") || has("waitevent") || has("query") || has("signal_wait")) return "wait";
  if (has("graph") || has("capture")) return "graph";
  if (has("memcpy") || has("memset") || has("memory_async_copy")) return "transfer";
  return has("launch") ? "submit" : std::string(other);
}

bool WorkRows::is_repeated(Part part) {
  return tables_.try_emplace(part, table_).first->second != table_;
}

// Adds a kernel, copy or call, or adds the row's times to those of its name if that came before.
void WorkRows::add_row(Work work, const WorkRow& row) {
  const bool is_call = work == Work::call;
  auto& list = is_call ? observed_.cpu_calls : observed_.ops;
  const auto [at, fresh] = rows_.try_emplace(std::pair(work, row.name), list.size());
  if (!fresh) {  // one more call of the name, or names that were shortened to the same
    ObservedOp& op = list[at->second];
    if (row.calls == 1 && row.seconds) return add_call(op, *row.seconds);
    op.calls = op.calls.value_or(0) + row.calls.value_or(0);
    if (row.seconds) op.seconds = op.seconds.value_or(0) + *row.seconds;
    if (row.min_seconds)
      op.min_seconds = std::min(op.min_seconds.value_or(*row.min_seconds), *row.min_seconds);
    if (row.max_seconds)
      op.max_seconds = std::max(op.max_seconds.value_or(*row.max_seconds), *row.max_seconds);
    return;
  }
  ObservedOp op;
  if (work == Work::kernel) {
    op.kernel = row.name;
  } else {
    op.op = row.name;
  }
  op.category = work == Work::copy ? "copy" : "kernel";
  if (is_call) op.category = call_category(row.name);
  op.calls = row.calls;
  op.seconds = row.seconds;
  op.min_seconds = row.min_seconds;
  op.max_seconds = row.max_seconds;
  if (row.calls == 1 && row.seconds) {
    op.min_seconds = row.seconds;
    op.max_seconds = row.seconds;
  }
  const bool is_added = is_call ? append_row_within_limit(list, std::move(op), observed_)
                                : append_valid_op(std::move(op), observed_);
  if (!is_added) rows_.erase(at);
}

// Adds a row of a table of kernels, copies or calls. Rows without a name or time, and those of a
// second table, are counted as unread.
void WorkRows::add(Work work, const WorkRow& row) {
  const bool has_only_bytes = !row.seconds && row.bytes;
  const bool is_finite = std::isfinite(row.seconds.value_or(0)) && row.seconds.value_or(0) >= 0;
  if (row.name.empty() || !is_finite || !(row.seconds || row.bytes)) {
    return add_unread_part(observed_, "rows", "a row has no name or no time");
  }
  Part part = Part::calls;
  if (work == Work::copy) part = Part::copies;
  if (work == Work::kernel) part = Part::kernels;
  if (has_only_bytes) part = Part::bytes;
  if (is_repeated(part)) {
    return add_unread_part(observed_, "rows",
                           "a second table of the same kind, of another run or of the same work");
  }
  add_read_parts(observed_, "rows");
  if (has_only_bytes) {
    if (sizes_.size() < k_max_rows) sizes_.emplace(row.name, row);
    return;
  }
  add_row(work, row);
}

// Adds the sizes of copies, which come in a table of their own, to the rows of their times.
void WorkRows::finish() {
  for (const auto& [name, size] : sizes_) {
    ObservedOp* copy = nullptr;
    if (const auto* at = look_up(rows_, std::pair(Work::copy, name))) copy = &observed_.ops[*at];
    if (copy == nullptr) {
      ObservedOp op;
      op.op = name;
      op.category = "copy";
      op.calls = size.calls;
      if (!append_valid_op(std::move(op), observed_)) continue;
      copy = &observed_.ops.back();
    }
    const std::int64_t calls = size.calls.value_or(0);
    if (calls > 0) copy->bytes = *size.bytes / static_cast<double>(calls);
  }
  std::ranges::stable_sort(observed_.cpu_calls, std::greater{}, &ObservedOp::seconds);
}

// Reads all tables of a text. The line above a table ("** CUDA API Summary:") is its section, by
// which `kind_of` tells kernels, copies and calls apart.
void read_work_tables(const Printed& printed, KindOfWork kind_of, Observed& observed) {
  WorkRows rows(observed);
  std::optional<Table> table;
  std::string section;
  for (const std::string_view line : printed.lines()) {
    const std::string_view trimmed = text::trim(line);
    if (may_be_heading(line)) {
      if (auto next = Table::from_heading(line)) {
        table = std::move(next);
        rows.begin_table();
        continue;
      }
    }
    if (trimmed.empty() || trimmed.ends_with(':') || trimmed.starts_with("** ")) {
      if (!trimmed.empty()) section = trimmed;
      if (!table || table->style() != Style::csv || !trimmed.empty()) table.reset();
      continue;
    }
    if (!table || is_ruler(line)) continue;
    if (printed.may_be_cut(line) && !table->ends_row(line)) {
      mark_truncated(observed);
      continue;
    }
    const auto row = table->parse_row(line);
    if (!row) {
      add_unread_part(observed, "rows", "a row has other columns than its heading");
      continue;
    }
    if (const auto work = kind_of(section, *row)) {
      rows.add(*work, *row);
    } else {
      add_unread_part(observed, "rows", "weir reads kernels, copies and calls of CUDA and HIP");
    }
  }
  rows.finish();
}

}  // namespace weir::adapters
