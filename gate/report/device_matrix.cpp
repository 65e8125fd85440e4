// Writes counts and kernels of profiles as a matrix with a column for each kind of device.
#include "gate/report/device_matrix.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/html_style.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

using profile::Profile;

enum class RowGroup { counts, kernels };
// The name of a row; names sort in reading order.
using RowName = std::pair<RowGroup, std::string>;

// Devices with equal values.
struct Column {
  std::vector<std::string> devices;
  std::map<RowName, std::string> values;
};

// The devices that ran the same engine, model and prompt.
struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::string> broken;   // "device: error"
  std::vector<std::string> remarks;  // "device: reason" of devices that ran the work elsewhere
  std::set<RowName> names;
};

// Returns the exact counts and the kernels of a profile, as a column of the matrix.
Column make_column(const Profile& profile) {
  Column out;
  for (const auto& [name, measured] : profile.metrics) {
    if (measured.metric.kind != unit::Kind::count || measured.metric.scope == unit::Scope::fixed ||
        !measured.exact) {
      continue;
    }
    out.values[{RowGroup::counts, unit::display_name(measured.metric)}] = show(*measured.exact);
  }
  if (profile.kernels) {
    for (const auto& [name, count] : profile.kernels->counts) {
      out.values[{RowGroup::kernels, printable_line(name, 96)}] = show(count);
    }
  }
  return out;
}

// Sorts profiles into tables by engine, model and prompt; devices with equal values share a column.
std::vector<Table> make_tables(std::span<const Profile> profiles) {
  std::vector<Table> tables;
  for (const Profile& profile : profiles) {
    const profile::CellKey& key = profile.cell;
    const std::string device = printable_line(key.backend, 64);
    const std::string title =
        fmt::format("{} / {} / {}", printable_line(key.engine_part(), 64),
                    printable_line(key.model, 64), printable_line(key.prompt_part(), 64));
    Table* existing = find_first(tables, [&](const Table& other) { return other.title == title; });
    Table& table = existing == nullptr ? tables.emplace_back() : *existing;
    table.title = title;
    if (!profile.errors.empty()) {
      table.broken.push_back(
          fmt::format("{}: {}", device, printable_line(profile.errors.front(), 300)));
      continue;
    }
    if (profile.placement.state == profile::Placement::State::ran_elsewhere) {
      table.remarks.push_back(
          fmt::format("{}: {}", device, printable_line(profile.placement.reason, 300)));
    }
    Column column = make_column(profile);
    for (const auto& [name, value] : column.values) table.names.insert(name);
    auto same = std::ranges::find(table.columns, column.values, &Column::values);
    if (same == table.columns.end()) {
      same = table.columns.insert(same, std::move(column));
    }
    same->devices.push_back(device);
  }
  return tables;
}

// Returns "A" … "Z", then "A2" and so on.
std::string letter(std::size_t index) {
  std::string out(1, static_cast<char>('A' + index % 26));
  if (index >= 26) out += fmt::format("{}", index / 26 + 1);
  return out;
}

// Returns a row's name and its value in each column; "" for none.
std::vector<std::string> table_row(const Table& table, const RowName& name) {
  std::vector<std::string> row{name.second};
  for (const Column& column : table.columns) row.push_back(look_up(column.values, name, ""));
  return row;
}

bool same_everywhere(const std::vector<std::string>& row) {
  return std::all_of(row.begin() + 1, row.end(),
                     [&](const std::string& value) { return value == row[1]; });
}

// Returns the value that most devices have in a row.
std::string usual_value(const Table& table, const std::vector<std::string>& row) {
  std::map<std::string, std::size_t> devices;
  for (std::size_t i = 1; i < row.size(); ++i) {
    devices[row[i]] += table.columns[i - 1].devices.size();
  }
  const auto most_frequent =
      std::ranges::max_element(devices, {}, [](const auto& entry) { return entry.second; });
  return most_frequent == devices.end() ? "" : most_frequent->first;
}

// Writes columns of numbers under their letters, as many side by side as fit. Further columns
// follow in blocks below, which leave out rows without values.
std::string column_blocks(const std::vector<std::vector<std::string>>& rows, std::size_t columns,
                          std::size_t width) {
  constexpr std::size_t k_indent = 2;
  const std::size_t max_width = width / 2;
  const auto column_width = [&](std::size_t column) {
    std::size_t widest = column == 0 ? 0 : letter(column - 1).size();
    for (const auto& row : rows) widest = std::max(widest, text::columns(row[column]));
    return widest;
  };
  const std::size_t name_width = std::min(column_width(0), max_width);
  std::size_t tight_width = k_indent + name_width;  // width of all columns with gaps of one space
  for (std::size_t i = 1; i <= columns; ++i) tight_width += 1 + column_width(i);
  // Gaps are narrow if all columns fit only then.
  const std::size_t gap = tight_width <= width && tight_width + columns > width ? 1 : 2;
  std::string out;
  for (std::size_t first_column = 1; first_column <= columns;) {
    std::vector<std::size_t> widths;
    std::size_t used_width = k_indent + name_width;
    std::size_t end_column = first_column;
    for (; end_column <= columns; ++end_column) {
      const std::size_t needed = column_width(end_column);
      if (end_column > first_column && used_width + gap + needed > width) break;
      used_width += gap + needed;
      widths.push_back(needed);
    }
    std::string head(k_indent + name_width, ' ');
    for (std::size_t i = first_column; i < end_column; ++i) {
      head += std::string(gap, ' ') + pad_left(letter(i - 1), widths[i - first_column]);
    }
    out += head + "\n";
    for (const auto& row : rows) {
      std::string line =
          std::string(k_indent, ' ') + pad_right(clip_middle(row[0], max_width), name_width);
      bool has_value = false;
      for (std::size_t i = first_column; i < end_column; ++i) {
        line += std::string(gap, ' ') + pad_left(row[i], widths[i - first_column]);
        if (!row[i].empty()) has_value = true;
      }
      if (has_value) out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    first_column = end_column;
  }
  return out;
}

constexpr std::string_view k_matrix_style = R"css(
table { width: auto; } thead th { text-align: right; }
td.n { text-align: right; padding: .2rem .55rem; white-space: nowrap; }
th { padding-left: .55rem; padding-right: .55rem; }
th[scope=row], th.group { padding-left: 0; }
th[scope=row] { position: sticky; left: 0; background: var(--page); min-width: 9.5rem;
  max-width: 45vw; overflow-wrap: anywhere; }
th.group { font-size: .8rem; padding-top: .7rem; }
tr.same td, tr.same th[scope=row] { color: var(--soft); }
td.other { background: var(--band); font-weight: 650; }
dl.devices { gap: .1rem .8rem; } dl.devices dt { font-weight: 650; }
@media (max-width: 34rem) { dl.devices { grid-template-columns: max-content 1fr; } }
)css";

// Returns a <tbody> with the rows of a group under its title; values that are not the usual ones
// are marked. "" without rows.
std::string page_rows(const Table& table, RowGroup group, std::string_view title) {
  std::string out;
  for (const RowName& name : table.names) {
    if (name.first != group) continue;
    if (out.empty()) {
      out = fmt::format("<tbody><tr><th class=\"group\" colspan=\"{}\">{}</th></tr>\n",
                        table.columns.size() + 1, title);
    }
    const auto row = table_row(table, name);
    const std::string usual = usual_value(table, row);
    out += fmt::format("<tr{}><th scope=\"row\">{}</th>",
                       same_everywhere(row) ? " class=\"same\"" : "", xml_text(name.second));
    for (std::size_t i = 1; i < row.size(); ++i) {
      out += fmt::format("<td class=\"n{}\">{}</td>", row[i] == usual ? "" : " other",
                         xml_text(row[i]));
    }
    out += "</tr>\n";
  }
  return out.empty() ? "" : out + "</tbody>\n";
}

// Returns a table's title, the list of its devices, its rows, remarks and errors, as HTML.
std::string page_table(const Table& table) {
  std::string out = fmt::format("<h2>{}</h2>\n", xml_text(table.title));
  if (!table.columns.empty()) {
    std::string head;
    out += "<dl class=\"devices\">";
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const std::string devices = xml_text(text::join(table.columns[i].devices));
      out += fmt::format("<dt>{}</dt><dd>{}</dd>", letter(i), devices);
      head += fmt::format("<th scope=\"col\" title=\"{}\">{}</th>", devices, letter(i));
    }
    out += fmt::format(
        "</dl>\n<div class=\"wide\" tabindex=\"0\"><table><thead><tr><td></td>{}</tr></thead>\n",
        head);
    out += page_rows(table, RowGroup::counts, "counts") +
           page_rows(table, RowGroup::kernels, "kernels");
    out += "</table></div>\n";
  }
  for (const std::string& remark : table.remarks) out += "<p>" + xml_text(remark) + "</p>\n";
  for (const std::string& broken : table.broken) {
    out += fmt::format("<p><span class=\"word error\">error</span>{}</p>\n", xml_text(broken));
  }
  return out;
}

}  // namespace

// Writes for each engine, model and prompt a table with a column for each device. Rows that are the
// same everywhere show only with `all`.
std::string device_matrix_text(std::span<const Profile> profiles, bool all, int width) {
  Page page(columns_of(width));
  for (const Table& table : make_tables(profiles)) {
    page.start_part();
    page.add_text(table.title);
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      page.add_paragraph("  " + letter(i) + "  ", text::join(table.columns[i].devices), 5);
    }
    std::vector<std::vector<std::string>> rows;
    std::size_t hidden = 0;
    for (const RowName& name : table.names) {
      auto row = table_row(table, name);
      if (!all && same_everywhere(row)) {
        ++hidden;
      } else {
        rows.push_back(std::move(row));
      }
    }
    if (!rows.empty()) page.add_lines(column_blocks(rows, table.columns.size(), page.width()));
    if (hidden != 0)
      page.add_indented(2, "{} the same on all (--all shows them)", text::plural(hidden, "row"));
    for (const std::string& remark : table.remarks) page.add_indented(2, remark);
    for (const std::string& broken : table.broken) page.add_indented(2, "error " + broken);
  }
  return page.finish();
}

std::string device_matrix_html(std::span<const Profile> profiles) {
  std::string body =
      "<h1>What each device is given</h1>\n<p>Counts and kernels of unmodified engines on "
      "described "
      "devices. Bold on a band: not what most devices have. Grey: the same on all.</p>\n";
  for (const Table& table : make_tables(profiles)) body += page_table(table);
  return html_page("weir: devices", k_matrix_style, body);
}

}  // namespace weir::report
