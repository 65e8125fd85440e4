// Writes the compiled code of kernels, its costs and its changes as text and JSON.
#include "gate/report/kernels_text.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/passes.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/unit/kernel_cost.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

constexpr std::string_view k_schema = "weir.kernels/1";

// Returns what counts of a scope are divided by: "token", "prefill".
std::string scope_name(unit::Scope scope) {
  switch (scope) {
    case unit::Scope::per_token:
      return "token";
    case unit::Scope::per_prefill:
      return "prefill";
    case unit::Scope::per_request:
      return "request";
    default:
      return "run";
  }
}

std::string cost_text(const KernelRow& row, const char* cost) {
  const std::int64_t* value = look_up(row.facts.costs, std::string(cost));
  return value == nullptr ? "" : fmt::format("{}", *value);
}

// Returns the cell and the compiler: "llama.cpp/tiny/vulkan/decode  RADV 24.2".
std::string table_title(const KernelsOfCell& table) {
  const std::string by = table.compiler.empty() ? "not compiled: no compiler was asked"
                                                : printable_line(table.compiler, 100);
  return fmt::format("{}  {}", printable_line(table.cell, 200), by);
}

}  // namespace

// Returns a row for each piece of GPU code that ran, the most estimated cycles first.
KernelsOfCell kernels_of(const profile::Profile& profile) {
  const bool has_cell = !profile.cell.model.empty();
  KernelsOfCell cell_kernels{
      has_cell ? profile.cell.str() : profile.cell.engine, profile.compiler, "", {}};
  if (!profile.codes) return cell_kernels;
  cell_kernels.scope = scope_name(profile.codes->scope);
  // Numbers of groups count only if they are of the same scope as the calls.
  const bool has_groups = profile.code_groups && profile.code_groups->scope == profile.codes->scope;
  for (const auto& [key, calls] : profile.codes->counts) {
    if (calls == Rational(0)) continue;
    KernelRow row{std::string(profile::kernel_of_code(key)),
                  profile::hash_of_code(key),
                  calls,
                  has_groups ? look_up(profile.code_groups->counts, key, Rational(0)) : Rational(0),
                  std::nullopt,
                  {}};
    row.facts = look_up(profile.code_facts, row.code, profile::CodeFacts());
    const auto cycles = has_groups ? profile::cost_of_code(profile, key, "throughput_cycles")
                                   : std::optional<Rational>();
    if (cycles) row.cycles = cycles->value();
    cell_kernels.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(cell_kernels.rows, std::greater<>(), [](const KernelRow& row) {
    return std::pair(row.cycles.value_or(0), row.calls.value());
  });
  return cell_kernels;
}

// Writes a table of kernels for each cell, with what each costs.
std::string kernels_text(std::span<const KernelsOfCell> tables, int width, std::size_t max_rows) {
  Page page(columns_of(width));
  for (const KernelsOfCell& cell : tables) {
    page.start_part();
    page.add_text(table_title(cell));
    double sum = 0;
    for (const KernelRow& row : cell.rows) sum += row.cycles.value_or(0);
    TextTable table{
        .headings = {"share", "calls", "regs", "spilled", "occup.", "shared", "cycles", "kernel"},
        .right_aligned = {true, true, true, true, true, true, true, false}};
    std::map<std::string, std::int64_t> left_out;  // number of kernels by reason
    for (const KernelRow& row : cell.rows) {
      if (!row.facts.not_compiled.empty()) ++left_out[printable_line(row.facts.not_compiled, 300)];
      table.rows.push_back({row.cycles ? show_share(*row.cycles, sum) : "", show(row.calls),
                            cost_text(row, "registers"), cost_text(row, "spilled_registers"),
                            cost_text(row, "occupancy"), cost_text(row, "shared_memory_bytes"),
                            cost_text(row, "throughput_cycles"), printable_line(row.kernel, 96)});
    }
    page.add_first_rows(std::move(table), max_rows);
    for (const auto& [reason, kernels] : left_out) {
      page.add_indented(2, "{} not compiled: {}",
                        text::plural(static_cast<std::size_t>(kernels), "kernel"), reason);
    }
  }
  page.add_blank_line();
  page.add_text(
      "share: of estimated cycles, an estimate by the compiler and no time. calls: per token, "
      "prefill, request or run. cycles: of one wave among many.");
  return page.finish();
}

// Returns the tables of kernels as JSON, a cell at a time.
Json kernels_json(std::span<const KernelsOfCell> tables) {
  Json cells = Json::array();
  for (const KernelsOfCell& cell : tables) {
    Json rows = Json::array();
    for (const KernelRow& row : cell.rows) {
      Json json = write_fields(row.facts);
      json["kernel"] = row.kernel;
      json["code"] = row.code;
      json["calls"] = row.calls.str();
      json["groups"] = row.groups.str();
      if (row.cycles) json["estimated_cycles"] = *row.cycles;
      rows.push_back(std::move(json));
    }
    cells.push_back({{"cell", cell.cell},
                     {"compiler", cell.compiler},
                     {"per", cell.scope},
                     {"kernels", std::move(rows)}});
  }
  return {{"schema", k_schema}, {"cells", std::move(cells)}};
}

// Writes each changed kernel with its cells, differences, costs and assembly.
std::string kernel_diffs_text(std::span<const KernelDiff> diffs, int width) {
  Page page(columns_of(width));
  for (const KernelDiff& diff : diffs) {
    page.start_part();
    page.add_text("{}  in {}", printable_line(diff.code.kernel, 200), list_names(diff.cells, 3));
    for (const std::string& line : diff.code.metadata_differences)
      page.add_indented(2, printable_line(line, 600));
    TextTable table{.headings = {"", "base", "now", ""},
                    .right_aligned = {false, true, true, false}};
    for (const verdict::KernelChange::Cost& cost : diff.code.costs) {
      const unit::KernelCost* kernel_cost = unit::find_kernel_cost(cost.cost);
      table.rows.push_back(
          {kernel_cost == nullptr ? printable_line(cost.cost, 40) : std::string(kernel_cost->label),
           fmt::format("{}", cost.before), fmt::format("{}", cost.now),
           cost.before == 0
               ? ""
               : unit::signed_percent(
                     static_cast<double>(cost.now) / static_cast<double>(cost.before) - 1)});
    }
    if (!table.rows.empty()) page.add_table(table);
    if (!diff.assembly.empty()) page.add_lines("\n" + diff.assembly + "\n");
  }
  return page.finish();
}

// Returns the differences of kernels as JSON: costs before and now, and the cells that run each.
Json kernel_diffs_json(std::span<const KernelDiff> diffs) {
  Json all = Json::array();
  for (const KernelDiff& diff : diffs) {
    Json costs = Json::object();
    for (const auto& cost : diff.code.costs)
      costs[cost.cost] = {{"base", cost.before}, {"now", cost.now}};
    all.push_back({{"kernel", diff.code.kernel},
                   {"cells", diff.cells},
                   {"base", diff.code.hashes_before},
                   {"now", diff.code.hashes_now},
                   {"differences", diff.code.metadata_differences},
                   {"costs", std::move(costs)},
                   {"assembly", diff.assembly}});
  }
  return {{"schema", k_schema}, {"diffs", std::move(all)}};
}

}  // namespace weir::report
