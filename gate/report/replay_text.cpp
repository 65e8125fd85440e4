// Writes replayed ops and recordings of steps as text.
#include "gate/report/replay_text.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

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
  return threads ? ", " + plural(static_cast<std::size_t>(*threads), "thread") : "";
}

std::string share_text(double part, double total) {
  return total > 0 ? fmt::format("{:.0f} %", 100 * part / total) : "";
}

// Adds a table of replayed ops, most time first; backends are named if there are several.
void add_table(Page& page, const ReplayStep& step, const Replayed& replayed, double sum,
               const ReplayStyle& style) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < step.nodes.size() && i < replayed.nodes.size(); ++i) {
    if (replayed.nodes[i].median) order.push_back(i);
  }
  const auto time = [&](std::size_t i) {
    return *replayed.nodes[i].median * static_cast<double>(step.nodes[i].count);
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return time(a) > time(b); });
  const bool several = std::ranges::any_of(order, [&](std::size_t i) {
    return step.nodes[i].backend != step.nodes[order.front()].backend;
  });
  TextTable table{{"time", "share", "calls", "each", "least", "op"},
                  {true, true, true, true, true, false}};
  for (const std::size_t i : order) {
    const ReplayNode& node = step.nodes[i];
    table.rows.push_back({brief_time(time(i)), share_text(time(i), sum),
                          fmt::format("{}", node.count), brief_time(*replayed.nodes[i].median),
                          brief_time(replayed.nodes[i].least.value_or(0)),
                          one_line(fmt::format("{}{} {} {}", several ? node.backend + " " : "",
                                               node.description, type_text(node), shape_text(node)),
                                   200)});
  }
  if (table.rows.empty()) return;
  page.blank();
  page.rows(std::move(table), style.most_rows);
}

}  // namespace

std::string replay_text(const Replay& replay, const ReplayStep& step, const Replayed& replayed,
                        const ReplayStyle& style) {
  const observed::ReplaySums sums = observed::sums_of(step, replayed);
  Page page(columns_of(style.width));
  page.say(0, "{}, {}{}", build_text(replayed.engine, replayed.version, replayed.commit),
           replayed.library, threads_text(replayed.threads));
  std::string summary = "nothing could be replayed";
  if (sums.replayed) {
    const auto tokens = static_cast<std::size_t>(step.rows);
    const std::string what = tokens == 0 ? "a step" : "a step of " + plural(tokens, "token");
    summary =
        fmt::format("{} of {}'s: {} replayed in {}", what, one_line(replay.program, 60),
                    plural(static_cast<std::size_t>(sums.calls), "op"), brief_time(*sums.replayed));
    if (style.whole && sums.ratio()) {
      summary += fmt::format(", {} of the {} that it took when it was recorded (median of {})",
                             share_text(*sums.replayed, *sums.recorded), brief_time(*sums.recorded),
                             step.seconds.size());
    }
  }
  page.say(0, summary);
  add_table(page, step, replayed, sums.replayed.value_or(0), style);
  std::vector<std::string> lines = list_left_out(step, replayed);
  if (style.whole && step.views > 0) {
    lines.insert(lines.begin(), plural(static_cast<std::size_t>(step.views), "node") +
                                    " that only view bytes in another way: no work");
  }
  if (!lines.empty()) page.blank();
  for (const std::string& line : lines) page.say(0, "left out: " + line);
  if (!replay.warnings.empty() || !replayed.warnings.empty()) page.blank();
  for (const std::string& warning : replay.warnings) page.say(0, "warning: " + warning);
  for (const std::string& warning : replayed.warnings) page.say(0, "warning: " + warning);
  return page.finish();
}

std::string recording_text(const Replay& replay, int width) {
  Page page(columns_of(width));
  page.say(0, "{}: {}{}", one_line(replay.program, 60),
           build_text("ggml", replay.version, replay.commit), threads_text(replay.threads));
  TextTable table{{"step", "tokens", "graphs", "ops", "different", "median"},
                  {true, true, true, true, true, true}};
  for (std::size_t i = 0; i < replay.steps.size(); ++i) {
    const ReplayStep& step = replay.steps[i];
    std::int64_t ops = 0;
    for (const ReplayNode& node : step.nodes) ops += node.count;
    const auto median = observed::sums_of(step, {}).recorded;
    table.rows.push_back({fmt::format("{}", i + 1),
                          step.rows == 0 ? "?" : fmt::format("{}", step.rows),
                          fmt::format("{}", step.seconds.size()), fmt::format("{}", ops),
                          fmt::format("{}", step.nodes.size()), median ? brief_time(*median) : ""});
  }
  page.blank();
  page.table(table);
  for (const std::string& warning : replay.warnings) page.say(0, "warning: " + warning);
  return page.finish();
}

}  // namespace weir::report
