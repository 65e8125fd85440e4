#include "gate/report/replay_text.hpp"

#include <algorithm>
#include <vector>

#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

using observed::Replayed;
using profile::Replay;
using profile::ReplayNode;
using profile::ReplayStep;

std::string build_words(const std::string& engine, const std::string& version,
                        const std::string& commit) {
  if (version.empty()) return engine + " of an unknown version";
  return commit.empty() ? fmt::format("{} {}", engine, version)
                        : fmt::format("{} {} ({})", engine, version, commit);
}

std::string engine_words(const Replayed& replayed) {
  std::string words = fmt::format(
      "{}, {}", build_words(replayed.engine, replayed.version, replayed.commit), replayed.library);
  if (replayed.threads) {
    words += ", " + plural(static_cast<std::size_t>(*replayed.threads), "thread");
  }
  return words;
}

std::string step_words(const ReplayStep& step) {
  return step.rows == 0 ? "a step"
                        : "a step of " + plural(static_cast<std::size_t>(step.rows), "token");
}

std::string share_of(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "";
}

void table_of(std::string& out, const ReplayStep& step, const Replayed& replayed, double sum,
              const ReplayStyle& style) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < step.nodes.size() && i < replayed.nodes.size(); ++i) {
    if (replayed.nodes[i].median) order.push_back(i);
  }
  const auto time = [&](std::size_t i) {
    return *replayed.nodes[i].median * static_cast<double>(step.nodes[i].count);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return time(a) > time(b); });
  const bool several = std::any_of(order.begin(), order.end(), [&](std::size_t i) {
    return step.nodes[i].backend != step.nodes[order.front()].backend;
  });
  TextTable table;
  table.head = {"time", "share", "calls", "each", "least", "op"};
  table.right = {true, true, true, true, true, false};
  for (std::size_t n = 0; n < std::min(order.size(), style.most_rows); ++n) {
    const std::size_t i = order[n];
    const ReplayNode& node = step.nodes[i];
    table.rows.push_back({brief_time(time(i)), share_of(time(i), sum),
                          fmt::format("{}", node.count), brief_time(*replayed.nodes[i].median),
                          brief_time(replayed.nodes[i].least.value_or(0)),
                          one_line(fmt::format("{}{} {} {}", several ? node.backend + " " : "",
                                               node.description, type_text(node), shape_text(node)),
                                   200)});
  }
  if (table.rows.empty()) return;
  out += "\n" + table.str(2, style.width);
  if (order.size() > style.most_rows) {
    say(out,
        fmt::format("and {} more (--top {} shows them)", order.size() - style.most_rows,
                    order.size()),
        style.width, 2);
  }
}

}  // namespace

std::string replay_text(const Replay& replay, const ReplayStep& step, const Replayed& replayed,
                        const ReplayStyle& style) {
  const observed::ReplaySums sums = observed::sums_of(step, replayed);
  std::string out;
  say(out, engine_words(replayed), style.width);
  if (sums.replayed) {
    std::string words =
        fmt::format("{} of {}'s: {} replayed in {}", step_words(step), one_line(replay.program, 60),
                    plural(static_cast<std::size_t>(sums.calls), "op"), brief_time(*sums.replayed));
    if (style.whole && sums.ratio()) {
      words += fmt::format(", {} of the {} that it took when it was recorded (median of {})",
                           share_of(*sums.replayed, *sums.recorded), brief_time(*sums.recorded),
                           step.seconds.size());
    }
    say(out, words, style.width);
  } else {
    say(out, "nothing could be replayed", style.width);
  }
  table_of(out, step, replayed, sums.replayed.value_or(0), style);
  std::vector<std::string> lines;
  if (style.whole && step.views > 0) {
    lines.push_back(plural(static_cast<std::size_t>(step.views), "node") +
                    " that only look at bytes in another way: no work");
  }
  for (const std::string& line : leave_outs(step, replayed)) lines.push_back(line);
  if (!lines.empty()) out += "\n";
  for (const std::string& line : lines) say(out, "left out: " + line, style.width);
  std::vector<std::string> warnings = replay.warnings;
  warnings.insert(warnings.end(), replayed.warnings.begin(), replayed.warnings.end());
  if (!warnings.empty()) out += "\n";
  for (const std::string& warning : warnings) say(out, "warning: " + warning, style.width);
  return out;
}

std::string recording_text(const Replay& replay, std::size_t width) {
  std::string out;
  say(out,
      fmt::format(
          "{}: {}{}", one_line(replay.program, 60),
          build_words("ggml", replay.version, replay.commit),
          replay.threads ? ", " + plural(static_cast<std::size_t>(*replay.threads), "thread") : ""),
      width);
  TextTable table;
  table.head = {"step", "tokens", "graphs", "ops", "different", "median"};
  table.right.assign(6, true);
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
  out += "\n" + table.str(2, width);
  for (const std::string& warning : replay.warnings) say(out, "warning: " + warning, width);
  return out;
}

}  // namespace weir::report
