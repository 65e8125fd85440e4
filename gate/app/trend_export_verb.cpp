// weir trend export|list: what a history holds, as JSON lines or one line a series.
#include <algorithm>
#include <cstdio>

#include "gate/app/trend.hpp"
#include "gate/base/text.hpp"
#include "gate/history/json_lines.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {
namespace {

struct ExportOptions {
  StoreOptions store;
  FilterOptions filter;
  std::optional<std::string> out;
};

Result<void> write_all_of(history::Store& store, const history::Filter& filter,
                          const std::function<Result<void>(std::string)>& write) {
  WEIR_CHECK(write(history::first_line() + "\n"));
  history::Store::Takes takes;
  takes.run = [&](const history::Run& run) { return write(history::line_of(run) + "\n"); };
  takes.acknowledgement = [&](const history::Acknowledgement& one) {
    return write(history::line_of(one) + "\n");
  };
  takes.look = [&](const history::Look& one) { return write(history::line_of(one) + "\n"); };
  // A verdict holds all cells of its gate: it does not belong to a part of them.
  if (filter.cells.empty() && filter.metrics.empty() && filter.machines.empty()) {
    takes.verdict = [&](const history::StoredVerdict& one) {
      return write(history::line_of(one) + "\n");
    };
  }
  return store.all(filter, takes);
}

Result<ExitCode> export_history(const ExportOptions& options) {
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  WEIR_TRY(const auto store, open_history(options.store, false));
  if (options.out && *options.out != "-") {
    WEIR_TRY(sys::FileWriter writer, sys::FileWriter::create(*options.out));
    WEIR_CHECK(
        write_all_of(*store, filter, [&](const std::string& line) { return writer.write(line); }));
    WEIR_CHECK(writer.finish());
    return ExitCode::pass;
  }
  WEIR_CHECK(write_all_of(*store, filter, [](const std::string& line) -> Result<void> {
    if (std::fwrite(line.data(), 1, line.size(), stdout) == line.size()) return {};
    return fail(Code::io, "standard output can not be written to");
  }));
  if (std::fflush(stdout) != 0) return fail(Code::io, "standard output can not be written to");
  return ExitCode::pass;
}

struct ListOptions {
  StoreOptions store;
  FilterOptions filter;
  CommonOptions common;
};

std::string padded(std::string text, std::size_t width) {
  const std::size_t columns = text::columns(text);
  return columns < width ? text + std::string(width - columns, ' ') : text;
}

// Columns as wide as their widest text, but for the last.
std::string table_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], text::columns(row[i]));
    }
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i + 1 < row.size() ? padded(row[i], widths[i]) + "  " : row[i];
    }
    table += std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
  }
  return table;
}

Json json_of(const history::SeriesSummary& one) {
  return {{"project", one.project},        {"cell", one.cell},
          {"metric", one.metric.name},     {"machine", one.machine},
          {"points", one.points},          {"first", sys::time_of(one.first)},
          {"last", sys::time_of(one.last)}};
}

Result<ExitCode> list_history(const ListOptions& options) {
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  WEIR_TRY(const auto store, open_history(options.store, false));
  WEIR_TRY(const auto series, store->summaries(filter));
  std::vector<std::vector<std::string>> rows{
      {"PROJECT", "CELL", "METRIC", "POINTS", "FIRST", "LAST", "MACHINE"}};
  Json json = Json::array();
  for (const history::SeriesSummary& one : series) {
    rows.push_back({one.project, one.cell, one.metric.name, fmt::format("{}", one.points),
                    sys::date_of(one.first), sys::date_of(one.last), one.machine});
    json.push_back(json_of(one));
  }
  answer(options.common, series.empty() ? fmt::format("{}: nothing kept{}\n", store->name(),
                                                      filter.cells.empty() ? "" : " of such cells")
                                        : table_of(rows));
  WEIR_CHECK(write_json(options.common, dump_json(json, 1) + "\n"));
  return ExitCode::pass;
}

}  // namespace

void add_trend_export(CLI::App& trend) {
  CLI::App* verb = trend.add_subcommand("export", "A history as JSON lines");
  auto options = std::make_shared<ExportOptions>();
  add_store_options(*verb, options->store);
  add_filter_options(*verb, options->filter);
  verb->add_option("--out", options->out, "Write it there (default: standard output)")
      ->type_name("FILE");
  verb->footer(
      "Examples:\n"
      "  weir trend export --out history.jsonl        everything: import --jsonl reads it back\n"
      "  weir trend export --cell '*/vulkan/*' --since 2026-11-01 | jq .\n"
      "A part by --cell, --metric or --machine is without verdicts. docs/trends.md has the lines.");
  set_action(*verb, [options] { return export_history(*options); });
}

void add_trend_list(CLI::App& trend) {
  CLI::App* verb = trend.add_subcommand("list", "One line a series");
  auto options = std::make_shared<ListOptions>();
  add_store_options(*verb, options->store);
  add_filter_options(*verb, options->filter);
  verb->add_option("--json", options->common.json,
                   "Write the result as JSON to FILE, or to standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->default_str("-");
  verb->footer("Examples:\n  weir trend list --cell '*/decode'\n  weir trend list --json | jq .");
  set_action(*verb, [options] { return list_history(*options); });
}

}  // namespace weir::app
