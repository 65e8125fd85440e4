// Turns the results of a replay into rows, sums and lines.
#include "gate/observed/replayed.hpp"

#include "gate/observed/totals.hpp"
#include "gate/profile/profile.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::observed {
namespace {

// Returns the row of a node whose computation was repeated and timed: the median time for all its
// calls.
ObservedOp make_row(const profile::ReplayStep& step, const profile::ReplayNode& node,
                    const ReplayedNode& times) {
  ObservedOp op;
  op.op = node.description;
  op.type = profile::type_text(node);
  op.shape = profile::shape_text(node);
  op.backend = node.backend;
  op.node = node.name;
  op.phase = phase_of_rows(step.rows);
  op.step = 0;
  op.calls = node.count;
  op.seconds = *times.median * static_cast<double>(node.count);
  op.min_seconds = times.min_seconds;
  op.max_seconds = times.max_seconds;
  fill_from_shape(op);
  return op;
}

// Returns the backends of all replayed nodes: "CPU, Vulkan0".
std::string places_text(const profile::ReplayStep& step, const Replayed& replayed) {
  std::set<std::string> places;
  for (std::size_t i = 0; i < step.nodes.size() && i < replayed.nodes.size(); ++i) {
    if (replayed.nodes[i].median) places.insert(step.nodes[i].backend);
  }
  return fmt::format("{}", fmt::join(places, ", "));
}

ObservedTiming make_timing(const char* name, double seconds) {
  const auto metric =
      unit::custom_metric(name, unit::Kind::time, unit::Unit::seconds, unit::Better::lower);
  return {metric, {}, seconds, std::nullopt};
}

}  // namespace

std::optional<double> ReplaySums::ratio() const {
  if (!recorded || !replayed || *recorded <= 0) return std::nullopt;
  return *replayed / *recorded;
}

// Adds up the replayed times of a step: each op's median times its number of calls. Ops without a
// time are counted as left out.
ReplaySums sum_up_times(const profile::ReplayStep& step, const Replayed& replayed) {
  ReplaySums sums;
  sums.recorded = stats::median(step.seconds);
  for (std::size_t i = 0; i < step.nodes.size() && i < replayed.nodes.size(); ++i) {
    const auto count = step.nodes[i].count;
    if (!replayed.nodes[i].median) {
      sums.left_out += count;
      continue;
    }
    sums.calls += count;
    sums.replayed =
        sums.replayed.value_or(0) + *replayed.nodes[i].median * static_cast<double>(count);
  }
  return sums;
}

// Lists the ops without times, "3 × ADD: reason", the most frequent first.
std::vector<std::string> list_left_out(const profile::ReplayStep& step, const Replayed& replayed) {
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  for (std::size_t i = 0; i < step.nodes.size() && i < replayed.nodes.size(); ++i) {
    if (replayed.nodes[i].median) continue;
    counts[{step.nodes[i].description, replayed.nodes[i].left_out}] += step.nodes[i].count;
  }
  std::vector<std::pair<std::int64_t, std::string>> sorted_lines;  // -count, text
  for (const auto& [node, count] : counts) {
    const auto& [description, reason] = node;
    sorted_lines.emplace_back(-count, fmt::format("{} \u00d7 {}: {}", count, description, reason));
  }
  std::ranges::sort(sorted_lines);
  std::vector<std::string> lines;
  for (auto& [order, line] : sorted_lines) lines.push_back(std::move(line));
  return lines;
}

// Turns a replay (recorded ops, repeated and timed) into an Observed: one step, a row for each op
// with times, and the sums as timings. The recorded step's time counts only if all of it was
// replayed.
Observed to_observed(const profile::Replay& replay, const profile::ReplayStep& step,
                     const Replayed& replayed, bool whole_step) {
  Observed observed;
  observed.format = "weir-replay";
  observed.version = "1";
  observed.context.engine = replayed.engine;
  if (!replayed.version.empty()) {
    observed.context.engine_build = replayed.commit.empty()
                                        ? replayed.version
                                        : fmt::format("{} ({})", replayed.version, replayed.commit);
  }
  observed.context.backend = places_text(step, replayed);
  observed.context.device = replayed.library;
  observed.context.facts["recorded_program"] = replay.program;
  if (replayed.threads) observed.context.facts["threads"] = fmt::format("{}", *replayed.threads);
  const ReplaySums sums = sum_up_times(step, replayed);
  const auto tokens = step.rows > 0 ? std::optional<std::int64_t>(step.rows) : std::nullopt;
  observed.steps.push_back({"replayed step", phase_of_rows(step.rows), tokens, sums.replayed});
  for (std::size_t i = 0; i < step.nodes.size() && i < replayed.nodes.size(); ++i) {
    if (replayed.nodes[i].median) {
      observed.ops.push_back(make_row(step, step.nodes[i], replayed.nodes[i]));
    }
  }
  if (sums.replayed) observed.timings.push_back(make_timing("replay_seconds", *sums.replayed));
  if (whole_step && sums.recorded) {
    observed.timings.push_back(make_timing("recorded_step_seconds", *sums.recorded));
  }
  observed.warnings = replay.warnings;
  for (const std::string& line : list_left_out(step, replayed)) {
    observed.warnings.push_back("left out: " + line);
  }
  observed.warnings.insert(observed.warnings.end(), replayed.warnings.begin(),
                           replayed.warnings.end());
  return observed;
}

}  // namespace weir::observed
