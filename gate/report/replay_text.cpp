// Writes replayed ops and recordings of steps as text.
#include "gate/report/replay_text.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {

namespace {

using observed::Replayed;
using profile::Replay;
using profile::ReplayNode;
using profile::ReplayStep;

std::string build_text(const std::string& engine, const std::string& version,
                       const std::string& commit) {
  if (version.empty()) return engine + " of an unknown version";
  return commit.empty() ? fmt::format("{} {}", engine, version)
                        : fmt::format("{} {} ({})", engine, version, commit);
}

// Returns ", 4 threads"; "" if that is unknown.
std::string threads_text(const std::optional<std::int64_t>& threads) {
  return threads ? ", " + text::plural(static_cast<std::size_t>(*threads), "thread") : "";
}

// Adds a table of replayed ops, most time first; backends are named if there are several.
void add_table(Page& page, const ReplayStep& step, const Replayed& replayed, double sum,
               const ReplayStyle& style) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < step.nodes.size() && i < replayed.nodes.size(); ++i) {
    if (replayed.nodes[i].median) order.push_back(i);
  }
  const auto total_seconds = [&](std::size_t i) {
    return *replayed.nodes[i].median * static_cast<double>(step.nodes[i].count);
  };
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return total_seconds(a) > total_seconds(b); });
  const bool has_several_backends = std::ranges::any_of(order, [&](std::size_t i) {
    return step.nodes[i].backend != step.nodes[order.front()].backend;
  });
  TextTable table{.headings = {"time", "share", "calls", "each", "least", "op"},
                  .right_aligned = {true, true, true, true, true, false}};
  for (const std::size_t i : order) {
    const ReplayNode& node = step.nodes[i];
    table.rows.push_back(
        {brief_time(total_seconds(i)), show_share(total_seconds(i), sum, 0),
         fmt::format("{}", node.count), brief_time(*replayed.nodes[i].median),
         brief_time(replayed.nodes[i].min_seconds.value_or(0)),
         printable_line(fmt::format("{}{} {} {}", has_several_backends ? node.backend + " " : "",
                                    node.description, type_text(node), shape_text(node)),
                        200)});
  }
  if (table.rows.empty()) return;
  page.add_blank_line();
  page.add_first_rows(std::move(table), style.max_rows);
}

}  // namespace

// Writes a replayed step: the engine, the sum of times against the recorded one, ops by time, and
// what was left out.
std::string replay_text(const Replay& replay, const ReplayStep& step, const Replayed& replayed,
                        const ReplayStyle& style) {
  const observed::ReplaySums sums = observed::sum_up_times(step, replayed);
  Page page(columns_of(style.width));
  page.add_text("{}, {}{}", build_text(replayed.engine, replayed.version, replayed.commit),
                replayed.library, threads_text(replayed.threads));
  std::string summary = "nothing could be replayed";
  if (sums.replayed) {
    const auto tokens = static_cast<std::size_t>(step.rows);
    const std::string what = tokens == 0 ? "a step" : "a step of " + text::plural(tokens, "token");
    summary = fmt::format("{} of {}'s: {} replayed in {}", what, printable_line(replay.program, 60),
                          text::plural(static_cast<std::size_t>(sums.calls), "op"),
                          brief_time(*sums.replayed));
    if (style.is_whole_step && sums.ratio()) {
      summary += fmt::format(", {} of the {} that it took when it was recorded (median of {})",
                             show_share(*sums.replayed, *sums.recorded, 0),
                             brief_time(*sums.recorded), step.seconds.size());
    }
  }
  page.add_text(summary);
  add_table(page, step, replayed, sums.replayed.value_or(0), style);
  std::vector<std::string> lines = list_left_out(step, replayed);
  if (style.is_whole_step && step.views > 0) {
    lines.insert(lines.begin(), text::plural(static_cast<std::size_t>(step.views), "node") +
                                    " that only view bytes in another way: no work");
  }
  if (!lines.empty()) page.add_blank_line();
  for (const std::string& line : lines) page.add_text("left out: " + line);
  if (!replay.warnings.empty() || !replayed.warnings.empty()) page.add_blank_line();
  for (const std::string& warning : replay.warnings) page.add_text("warning: " + warning);
  for (const std::string& warning : replayed.warnings) page.add_text("warning: " + warning);
  return page.finish();
}

// Lists the kinds of steps in a recording, with tokens, graphs, ops and median time.
std::string recording_text(const Replay& replay, int width) {
  Page page(columns_of(width));
  page.add_text("{}: {}{}", printable_line(replay.program, 60),
                build_text("ggml", replay.version, replay.commit), threads_text(replay.threads));
  TextTable table{.headings = {"step", "tokens", "graphs", "ops", "different", "median"},
                  .right_aligned = {true, true, true, true, true, true}};
  for (std::size_t i = 0; i < replay.steps.size(); ++i) {
    const ReplayStep& step = replay.steps[i];
    std::int64_t ops = 0;
    for (const ReplayNode& node : step.nodes) ops += node.count;
    const auto median = observed::sum_up_times(step, {}).recorded;
    table.rows.push_back({fmt::format("{}", i + 1),
                          step.rows == 0 ? "?" : fmt::format("{}", step.rows),
                          fmt::format("{}", step.seconds.size()), fmt::format("{}", ops),
                          fmt::format("{}", step.nodes.size()), median ? brief_time(*median) : ""});
  }
  page.add_blank_line();
  page.add_table(table);
  for (const std::string& warning : replay.warnings) page.add_text("warning: " + warning);
  return page.finish();
}

}  // namespace weir::report
