#include "gate/report/device_matrix.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/html.hpp"
#include "gate/report/html_style.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/words.hpp"

namespace weir::report {
namespace {

using profile::Profile;

// A row's name -> its value, in the order of reading.
struct Column {
  std::vector<std::string> devices;
  std::map<std::string, std::string> counts, kernels;
};

struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::string> broken;  // "device: why"
  std::set<std::string> counts, kernels;
};

Column column_of(const Profile& profile) {
  Column out;
  for (const auto& [name, measured] : profile.metrics) {
    if (measured.metric.kind != unit::Kind::count || measured.metric.scope == unit::Scope::fixed ||
        !measured.exact) {
      continue;
    }
    out.counts[unit::label(measured.metric)] = show(*measured.exact);
  }
  if (profile.kernels) {
    for (const auto& [name, count] : profile.kernels->counts) {
      out.kernels[one_line(name, 96)] = show(count);
    }
  }
  return out;
}

std::vector<Table> tables_of(std::span<const Profile> profiles) {
  std::vector<std::pair<std::string, Table>> tables;
  for (const Profile& profile : profiles) {
    profile::CellKey key = profile.cell;
    const std::string device = one_line(key.backend, 64);
    const std::string title = fmt::format("{} / {} / {}", one_line(key.engine_part(), 64),
                                          one_line(key.model, 64), one_line(key.prompt_part(), 64));
    auto found = std::find_if(tables.begin(), tables.end(),
                              [&](const auto& table) { return table.first == title; });
    if (found == tables.end()) {
      tables.push_back({title, {}});
      found = tables.end() - 1;
      found->second.title = title;
    }
    Table& table = found->second;
    if (!profile.errors.empty()) {
      table.broken.push_back(fmt::format("{}: {}", device, one_line(profile.errors.front(), 300)));
      continue;
    }
    Column column = column_of(profile);
    for (const auto& [name, value] : column.counts) table.counts.insert(name);
    for (const auto& [name, value] : column.kernels) table.kernels.insert(name);
    const auto same =
        std::find_if(table.columns.begin(), table.columns.end(), [&](const Column& known) {
          return known.counts == column.counts && known.kernels == column.kernels;
        });
    if (same != table.columns.end()) {
      same->devices.push_back(device);
    } else {
      column.devices.push_back(device);
      table.columns.push_back(std::move(column));
    }
  }
  std::vector<Table> out;
  for (auto& [title, table] : tables) out.push_back(std::move(table));
  return out;
}

// "A" … "Z", then "A2" and on.
std::string letter(std::size_t index) {
  std::string out(1, static_cast<char>('A' + index % 26));
  if (index >= 26) out += fmt::format("{}", index / 26 + 1);
  return out;
}

using Values = std::map<std::string, std::string> Column::*;

std::vector<std::string> row_of(const Table& table, const std::string& name, Values values) {
  std::vector<std::string> row{name};
  for (const Column& column : table.columns) {
    const auto found = (column.*values).find(name);
    row.push_back(found == (column.*values).end() ? "" : found->second);
  }
  return row;
}

bool same_everywhere(const std::vector<std::string>& row) {
  return std::all_of(row.begin() + 1, row.end(),
                     [&](const std::string& value) { return value == row[1]; });
}

}  // namespace

std::string device_matrix_text(std::span<const Profile> profiles, bool all, int wide) {
  const auto width = static_cast<std::size_t>(std::max(wide, 40));
  std::string out;
  for (const Table& table : tables_of(profiles)) {
    out += (out.empty() ? "" : "\n") + table.title + "\n";
    TextTable text;
    text.head = {""};
    text.right = {false};
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      for (const std::string& line :
           wrap(text::join(table.columns[i].devices), width, "  " + letter(i) + "  ", 5)) {
        out += line + "\n";
      }
      text.head.push_back(letter(i));
      text.right.push_back(true);
    }
    std::size_t hidden = 0;
    const auto add = [&](const std::set<std::string>& names, Values values) {
      for (const std::string& name : names) {
        auto row = row_of(table, name, values);
        if (!all && same_everywhere(row)) {
          ++hidden;
        } else {
          text.rows.push_back(std::move(row));
        }
      }
    };
    add(table.counts, &Column::counts);
    add(table.kernels, &Column::kernels);
    if (!text.rows.empty()) {
      // The last column is not padded: an empty one behind keeps the numbers to the right.
      text.head.emplace_back();
      text.right.push_back(false);
      for (auto& row : text.rows) row.emplace_back();
      for (const std::string& line : text::lines(text.str(2, width))) {
        const std::size_t end = line.find_last_not_of(' ');
        out += line.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
      }
    }
    if (hidden != 0) {
      say(out, fmt::format("{} the same on all (--all shows them)", plural(hidden, "row")), width,
          2);
    }
    for (const std::string& broken : table.broken) say(out, "error " + broken, width, 2);
  }
  return out;
}

std::string device_matrix_html(std::span<const Profile> profiles) {
  std::string body;
  for (const Table& table : tables_of(profiles)) {
    body += fmt::format("<h2>{}</h2>\n<table><thead><tr><th></th>", html_text(table.title));
    for (const Column& column : table.columns) {
      body += fmt::format("<th>{}</th>", html_text(text::join(column.devices)));
    }
    body += "</tr></thead><tbody>\n";
    const auto add = [&](const std::set<std::string>& names, Values values) {
      for (const std::string& name : names) {
        const auto row = row_of(table, name, values);
        body += fmt::format("<tr><th scope=\"row\">{}</th>", html_text(name));
        const bool differs = !same_everywhere(row);
        for (std::size_t i = 1; i < row.size(); ++i) {
          body += fmt::format("<td class=\"n\">{}{}{}</td>", differs ? "<b>" : "",
                              html_text(row[i]), differs ? "</b>" : "");
        }
        body += "</tr>\n";
      }
    };
    add(table.counts, &Column::counts);
    add(table.kernels, &Column::kernels);
    body += "</tbody></table>\n";
    for (const std::string& broken : table.broken) {
      body += fmt::format("<p>error {}</p>\n", html_text(broken));
    }
  }
  return fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>weir: "
      "devices</title>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<style>{}\nmain {{ overflow-x: auto; }} td.n {{ text-align: right; "
      "font-variant-numeric: tabular-nums; }} th {{ text-align: left; font-weight: normal; "
      "vertical-align: bottom; }}</style></head><body><main><h1>What each device is given</h1>\n"
      "<p>Counts and kernels of unmodified engines on described devices. Bold: not the same on "
      "all.</p>\n{}</main></body></html>\n",
      k_html_style, body);
}

}  // namespace weir::report
