#include "gate/report/kernels_text.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/passes.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/unit/kernel_cost.hpp"

namespace weir::report {
namespace {

constexpr std::string_view k_schema = "weir.kernels/1";

std::string scope_words(unit::Scope scope) {
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

std::string cost_of(const KernelRow& row, const char* cost) {
  const std::int64_t* found = look_up(row.facts.costs, std::string(cost));
  return found == nullptr ? "" : fmt::format("{}", *found);
}

std::string head_of(const KernelsOfCell& table) {
  const std::string by = table.compiler.empty() ? "not compiled: no compiler was asked"
                                                : one_line(table.compiler, 100);
  return fmt::format("{}  {}", one_line(table.cell, 200), by);
}

}  // namespace

KernelsOfCell kernels_of(const profile::Profile& profile) {
  const bool of_a_cell = !profile.cell.model.empty();
  KernelsOfCell made{
      of_a_cell ? profile.cell.str() : profile.cell.engine, profile.compiler, "", {}};
  if (!profile.codes) return made;
  made.scope = scope_words(profile.codes->scope);
  const bool grouped = profile.code_groups && profile.code_groups->scope == profile.codes->scope;
  for (const auto& [key, calls] : profile.codes->counts) {
    if (calls == Rational(0)) continue;
    KernelRow row{std::string(profile::kernel_of_code(key)),
                  profile::hash_of_code(key),
                  calls,
                  grouped ? look_up(profile.code_groups->counts, key, Rational(0)) : Rational(0),
                  std::nullopt,
                  {}};
    row.facts = look_up(profile.code_facts, row.code, profile::CodeFacts());
    const auto cycles = grouped ? profile::cost_of_code(profile, key, "throughput_cycles")
                                : std::optional<Rational>();
    if (cycles) row.cycles = cycles->value();
    made.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(made.rows, std::greater<>(), [](const KernelRow& row) {
    return std::pair(row.cycles.value_or(0), row.calls.value());
  });
  return made;
}

std::string kernels_text(std::span<const KernelsOfCell> tables, int width, std::size_t most_rows) {
  Page page(columns_of(width));
  for (const KernelsOfCell& of : tables) {
    page.part();
    page.say(0, head_of(of));
    double sum = 0;
    for (const KernelRow& row : of.rows) sum += row.cycles.value_or(0);
    TextTable table{{"share", "calls", "regs", "spilled", "occup.", "shared", "cycles", "kernel"},
                    {true, true, true, true, true, true, true, false}};
    std::map<std::string, std::int64_t> left_out;
    for (const KernelRow& row : of.rows) {
      if (!row.facts.not_compiled.empty()) ++left_out[one_line(row.facts.not_compiled, 300)];
      table.rows.push_back(
          {row.cycles && sum > 0 ? fmt::format("{:.1f} %", 100 * *row.cycles / sum) : "",
           show(row.calls), cost_of(row, "registers"), cost_of(row, "spilled_registers"),
           cost_of(row, "occupancy"), cost_of(row, "shared_memory_bytes"),
           cost_of(row, "throughput_cycles"), one_line(row.kernel, 96)});
    }
    page.rows(std::move(table), most_rows);
    for (const auto& [why, kernels] : left_out) {
      page.say(2, "{} not compiled: {}", plural(static_cast<std::size_t>(kernels), "kernel"), why);
    }
  }
  page.blank();
  page.say(0,
           "share: of estimated cycles, an estimate by the compiler and no time. calls: per token, "
           "prefill, request or run. cycles: of one wave among many.");
  return page.finish();
}

Json kernels_json(std::span<const KernelsOfCell> tables) {
  Json cells = Json::array();
  for (const KernelsOfCell& of : tables) {
    Json rows = Json::array();
    for (const KernelRow& row : of.rows) {
      Json one = write_fields(row.facts);
      one["kernel"] = row.kernel;
      one["code"] = row.code;
      one["calls"] = row.calls.str();
      one["groups"] = row.groups.str();
      if (row.cycles) one["estimated_cycles"] = *row.cycles;
      rows.push_back(std::move(one));
    }
    cells.push_back({{"cell", of.cell},
                     {"compiler", of.compiler},
                     {"per", of.scope},
                     {"kernels", std::move(rows)}});
  }
  return {{"schema", k_schema}, {"cells", std::move(cells)}};
}

std::string kernel_diffs_text(std::span<const KernelDiff> diffs, int width) {
  Page page(columns_of(width));
  for (const KernelDiff& one : diffs) {
    page.part();
    page.say(0, "{}  in {}", one_line(one.code.kernel, 200), listed(one.cells, 3));
    for (const std::string& line : one.code.differences) page.say(2, one_line(line, 600));
    TextTable table{{"", "base", "now", ""}, {false, true, true, false}};
    for (const verdict::OtherCode::Cost& cost : one.code.costs) {
      const unit::KernelCost* known = unit::find_kernel_cost(cost.cost);
      table.rows.push_back(
          {known == nullptr ? one_line(cost.cost, 40) : std::string(known->label),
           fmt::format("{}", cost.before), fmt::format("{}", cost.now),
           cost.before == 0
               ? ""
               : percent(static_cast<double>(cost.now) / static_cast<double>(cost.before) - 1)});
    }
    if (!table.rows.empty()) page.table(table);
    if (!one.assembly.empty()) page.add("\n" + one.assembly + "\n");
  }
  return page.finish();
}

Json kernel_diffs_json(std::span<const KernelDiff> diffs) {
  Json all = Json::array();
  for (const KernelDiff& one : diffs) {
    Json costs = Json::object();
    for (const auto& cost : one.code.costs)
      costs[cost.cost] = {{"base", cost.before}, {"now", cost.now}};
    all.push_back({{"kernel", one.code.kernel},
                   {"cells", one.cells},
                   {"base", one.code.before},
                   {"now", one.code.now},
                   {"differences", one.code.differences},
                   {"costs", std::move(costs)},
                   {"assembly", one.assembly}});
  }
  return {{"schema", k_schema}, {"diffs", std::move(all)}};
}

}  // namespace weir::report
