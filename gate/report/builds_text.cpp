// Writes what changed in the GPU code of two builds.
#include "gate/report/builds_text.hpp"

#include <algorithm>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

using profile::CodeTotals;
using profile::FigureInfo;
using profile::KernelDifference;
using profile::KernelFigures;
using profile::KernelState;
using profile::TargetChanges;

// Names of states in JSON, and marks of rows.
struct StateText {
  const char* name;
  const char* mark;
};
// Returns the name of a kernel's state in JSON, and its mark in a table.
StateText state_text(KernelState state) {
  switch (state) {
    case KernelState::added:
      return {"new", "+"};
    case KernelState::removed:
      return {"gone", "-"};
    case KernelState::stub:
      return {"became_stub", "s"};
    case KernelState::compiled:
      return {"was_stub", "c"};
    default:
      return {"changed", ""};
  }
}

bool is_of_stub(const KernelDifference& difference) {
  return difference.state == KernelState::stub || difference.state == KernelState::compiled;
}

bool breaks_any(const KernelDifference& difference, const BuildComparison& comparison) {
  return std::ranges::any_of(comparison.limits, [&](const profile::FigureLimit& limit) {
    return profile::breaks(difference, limit);
  });
}

// Returns "0 → 51", or the one value if there is no other; "" if there is none.
std::string change_text(const KernelDifference& difference, const FigureInfo& info) {
  const auto text = [](const KernelFigures::Figure& figure) {
    return figure ? fmt::format("{}", *figure) : std::string();
  };
  const std::string before = text(difference.base.*info.figure);
  const std::string after = text(difference.now.*info.figure);
  const bool has_one_side = before.empty() || after.empty() || before == after;
  if (has_one_side || difference.state == KernelState::compiled) {
    return after.empty() ? before : after;
  }
  return before + std::string(k_arrow) + after;
}

// Returns true if a row says more by this figure: it changed, or counts registers that were
// spilled.
bool says_more(const KernelDifference& difference, const FigureInfo& info) {
  const KernelFigures::Figure& before = difference.base.*info.figure;
  const KernelFigures::Figure& after = difference.now.*info.figure;
  if (difference.state == KernelState::changed) return before && after && *before != *after;
  const bool is_always_shown = info.figure == &KernelFigures::registers ||
                               info.figure == &KernelFigures::spilled_vgprs ||
                               info.figure == &KernelFigures::occupancy;
  return is_always_shown && (before || after);
}

// Adds a table of kernels that differ, each column only where it says something. `more_option`
// shows the rows that are left out.
void add_differences(Page& page, std::vector<const KernelDifference*> rows,
                     const BuildComparison& comparison, std::size_t max_rows,
                     const std::string& more_option) {
  const std::size_t row_count = rows.size();
  rows.resize(std::min(rows.size(), max_rows));
  std::vector<const FigureInfo*> columns;
  for (const FigureInfo& info : profile::kernel_figures()) {
    if (info.figure == &KernelFigures::code_bytes) continue;
    const bool is_shown = std::ranges::any_of(
        rows, [&](const KernelDifference* row) { return says_more(*row, info); });
    if (is_shown) columns.push_back(&info);
  }
  TextTable table{.headings = {""}, .right_aligned = {false}};
  for (const FigureInfo* info : columns) {
    table.headings.emplace_back(info->label);
    table.right_aligned.push_back(true);
  }
  table.headings.emplace_back("kernel");
  table.right_aligned.push_back(false);
  for (const KernelDifference* row : rows) {
    const bool is_broken = breaks_any(*row, comparison);
    std::vector<std::string> cells{is_broken ? "!" : state_text(row->state).mark};
    for (const FigureInfo* info : columns) cells.push_back(change_text(*row, *info));
    cells.push_back(printable_line(comparison.readable(row->symbol), 120));
    table.rows.push_back(std::move(cells));
  }
  if (!table.rows.empty()) page.add_table(table);
  if (row_count > max_rows) {
    page.add_indented(2, "and {} more ({} shows them)", row_count - max_rows, more_option);
  }
}

std::size_t count_state(const TargetChanges& target, KernelState state, bool of_stubs = false) {
  return static_cast<std::size_t>(
      std::ranges::count_if(target.differences, [&](const KernelDifference& difference) {
        return difference.state == state && difference.is_stub == of_stubs;
      }));
}

// Returns true if a row has something to show beside other code.
bool has_other_figures(const KernelDifference& difference) {
  if (difference.state != KernelState::changed) return true;
  return std::ranges::any_of(profile::kernel_figures(), [&](const FigureInfo& info) {
    return info.figure != &KernelFigures::code_bytes && says_more(difference, info);
  });
}

std::string spill_text(const CodeTotals& totals) {
  return fmt::format("{} registers in {} kernels", totals.spilled_vgprs, totals.spilling);
}

// Adds what became of stubs (kernels without code for this GPU). They are no regression, so they
// stand apart.
void add_stubs(Page& page, const TargetChanges& target, std::vector<const KernelDifference*> rows,
               const BuildComparison& comparison, std::size_t max_rows) {
  std::vector<std::string> parts;
  const auto add_count = [&](KernelState state, bool is_stub, const char* text) {
    const std::size_t number = count_state(target, state, is_stub);
    if (number != 0) parts.push_back(fmt::format("{} {}", number, text));
  };
  add_count(KernelState::compiled, false, "became code (c)");
  add_count(KernelState::stub, false, "took the place of code (s)");
  add_count(KernelState::added, true, "new");
  add_count(KernelState::removed, true, "gone");
  if (parts.empty()) return;
  page.add_indented(2, "stubs, which have no code for this GPU: {}", text::join(parts));
  add_differences(page, std::move(rows), comparison, max_rows, "--json");
}

// Adds the differences of one target GPU: counts of kernels, a table of those with other figures,
// and those that became stubs.
void add_target(Page& page, const TargetChanges& target, const BuildComparison& comparison,
                std::size_t max_rows) {
  std::vector<const KernelDifference*> rows, of_stubs;
  std::size_t other_code_alone = 0;
  for (const KernelDifference& difference : target.differences) {
    if (difference.is_stub) continue;
    if (is_of_stub(difference)) {
      of_stubs.push_back(&difference);
    } else if (has_other_figures(difference)) {
      rows.push_back(&difference);
    } else {
      ++other_code_alone;
    }
  }
  page.start_part();
  page.add_text("{}  {}{}{} kernels; by name {} new, {} gone, {} changed, {} the same",
                printable_line(target.target, 60), target.base.kernels, k_arrow, target.now.kernels,
                count_state(target, KernelState::added), count_state(target, KernelState::removed),
                count_state(target, KernelState::changed), target.unchanged);
  if (target.base.spilled_vgprs != 0 || target.now.spilled_vgprs != 0) {
    page.add_indented(2, "spilled: {}{}{}", spill_text(target.base), k_arrow,
                      spill_text(target.now));
  }
  const std::string more_option = fmt::format("--top {}", rows.size());
  add_differences(page, std::move(rows), comparison, max_rows, more_option);
  if (other_code_alone != 0) {
    page.add_indented(2, "{}: other code, the same figures",
                      text::plural(other_code_alone, "kernel"));
  }
  add_stubs(page, target, std::move(of_stubs), comparison, std::max<std::size_t>(max_rows / 4, 1));
}

Json totals_json(const CodeTotals& totals) {
  return {{"kernels", totals.kernels},
          {"stubs", totals.stubs},
          {"spilling_kernels", totals.spilling},
          {"spilled_vgprs", totals.spilled_vgprs},
          {"spilled_sgprs", totals.spilled_sgprs}};
}

Json figures_json(const KernelFigures& figures) {
  Json json = Json::object();
  for (const FigureInfo& info : profile::kernel_figures()) {
    if (figures.*info.figure) json[std::string(info.name)] = *(figures.*info.figure);
  }
  return json;
}

std::string limit_text(const profile::FigureLimit& limit) {
  const std::string amount = limit.is_relative ? fmt::format("{:g} %", limit.amount * 100)
                                               : fmt::format("{:g}", limit.amount);
  return fmt::format("{} may {} by {}", limit.figure, limit.on_decrease ? "fall" : "grow", amount);
}

// Returns "FAIL  2 kernels break a limit (!): spilled_registers may grow by 0", or that all pass.
std::string verdict_text(const BuildComparison& comparison, std::size_t broken,
                         std::size_t unread) {
  std::vector<std::string> limits;
  for (const profile::FigureLimit& limit : comparison.limits) limits.push_back(limit_text(limit));
  std::string verdict = "pass  no kernel breaks a limit";
  if (broken != 0) {
    const char* verb = broken == 1 ? "breaks" : "break";
    verdict = fmt::format("FAIL  {} {} a limit (!)", text::plural(broken, "kernel"), verb);
  }
  verdict += ": " + text::join(limits);
  if (unread != 0) {
    verdict +=
        fmt::format("; {} not judged", text::plural(unread, "piece of code", "pieces of code"));
  }
  return verdict;
}

}  // namespace

std::size_t count_broken(const BuildComparison& comparison) {
  std::size_t broken = 0;
  for (const TargetChanges& target : comparison.targets) {
    for (const KernelDifference& difference : target.differences) {
      broken += breaks_any(difference, comparison) ? 1 : 0;
    }
  }
  return broken;
}

// Writes a comparison of two builds for a terminal: the verdict by its limits, then a table for
// each target GPU.
std::string builds_text(const BuildComparison& comparison, int width, std::size_t max_rows) {
  Page page(columns_of(width));
  const std::size_t broken = count_broken(comparison);
  const std::size_t unread = comparison.unread_base + comparison.unread_now;
  if (!comparison.limits.empty()) page.add_text(verdict_text(comparison, broken, unread));
  for (const TargetChanges& target : comparison.targets) {
    if (target.differences.empty()) {
      page.start_part();
      page.add_text("{}  {}: the same code", printable_line(target.target, 60),
                    text::plural(target.now.kernels, "kernel"));
    } else {
      add_target(page, target, comparison, max_rows);
    }
  }
  const bool has_changes = std::ranges::any_of(
      comparison.targets, [](const TargetChanges& target) { return !target.differences.empty(); });
  if (unread != 0 || has_changes) page.add_blank_line();
  if (unread != 0) {
    page.add_text("{} not read: compressed in a way that weir does not unpack.",
                  text::plural(unread, "piece of code", "pieces of code"));
  }
  if (!has_changes) return page.finish();
  page.add_text(
      "+ new, - gone. A spill is a reason to look, no time: with fewer registers, more "
      "waves run at once. waves: at most, by registers and static shared memory; memory "
      "that a launch asks for lowers it.");
  return page.finish();
}

// Returns a comparison of two builds as a weir.kernels/1 document.
Json builds_json(const BuildComparison& comparison) {
  Json targets = Json::array();
  for (const TargetChanges& target : comparison.targets) {
    Json kernels = Json::array();
    for (const KernelDifference& difference : target.differences) {
      Json kernel{{"kernel", comparison.readable(difference.symbol)},
                  {"symbol", difference.symbol},
                  {"state", state_text(difference.state).name},
                  {"other_code", difference.has_other_code},
                  {"stub", difference.is_stub},
                  {"breaks_limit", breaks_any(difference, comparison)}};
      if (difference.state != KernelState::added) kernel["base"] = figures_json(difference.base);
      if (difference.state != KernelState::removed) kernel["now"] = figures_json(difference.now);
      kernels.push_back(std::move(kernel));
    }
    targets.push_back({{"target", target.target},
                       {"base", totals_json(target.base)},
                       {"now", totals_json(target.now)},
                       {"unchanged", target.unchanged},
                       {"kernels", std::move(kernels)}});
  }
  return {{"schema", "weir.kernels/1"},
          {"base", comparison.base},
          {"now", comparison.now},
          {"unread", {{"base", comparison.unread_base}, {"now", comparison.unread_now}}},
          {"broken", count_broken(comparison)},
          {"targets", std::move(targets)}};
}

}  // namespace weir::report
