#include "gate/observed/replayed.hpp"

#include "gate/observed/totals.hpp"
#include "gate/profile/profile.hpp"

namespace weir::observed {
namespace {

ObservedOp row_of(const profile::ReplayStep& step, const profile::ReplayNode& node,
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
  op.least = times.least;
  op.most = times.most;
  fill_from_shape(op);
  return op;
}

// "CPU, Vulkan0"
std::string places_text(const profile::ReplayStep& step, const Replayed& replayed) {
  std::set<std::string> places;
  for (std::size_t i = 0; i < step.nodes.size() && i < replayed.nodes.size(); ++i) {
    if (replayed.nodes[i].median) places.insert(step.nodes[i].backend);
  }
  return fmt::format("{}", fmt::join(places, ", "));
}

ObservedTiming timing_of(const char* name, double seconds) {
  const auto metric =
      unit::custom_metric(name, unit::Kind::time, unit::Unit::seconds, unit::Better::lower);
  return {metric, {}, seconds, std::nullopt};
}

}  // namespace

std::optional<double> ReplaySums::ratio() const {
  if (!recorded || !replayed || *recorded <= 0) return std::nullopt;
  return *replayed / *recorded;
}

ReplaySums sums_of(const profile::ReplayStep& step, const Replayed& replayed) {
  ReplaySums sums;
  sums.recorded = profile::median_of(step.seconds);
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

std::vector<std::string> leave_outs(const profile::ReplayStep& step, const Replayed& replayed) {
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  for (std::size_t i = 0; i < step.nodes.size() && i < replayed.nodes.size(); ++i) {
    if (replayed.nodes[i].median) continue;
    counts[{step.nodes[i].description, replayed.nodes[i].left_out}] += step.nodes[i].count;
  }
  std::vector<std::pair<std::int64_t, std::string>> lines;
  for (const auto& [what, count] : counts) {
    lines.emplace_back(-count, fmt::format("{} \u00d7 {}: {}", count, what.first, what.second));
  }
  std::ranges::sort(lines);
  std::vector<std::string> out;
  for (auto& [order, line] : lines) out.push_back(std::move(line));
  return out;
}

Observed observed_of(const profile::Replay& replay, const profile::ReplayStep& step,
                     const Replayed& replayed, bool whole) {
  Observed out;
  out.format = "weir-replay";
  out.version = "1";
  out.context.engine = replayed.engine;
  if (!replayed.version.empty()) {
    out.context.engine_build = replayed.commit.empty()
                                   ? replayed.version
                                   : fmt::format("{} ({})", replayed.version, replayed.commit);
  }
  out.context.backend = places_text(step, replayed);
  out.context.device = replayed.library;
  out.context.facts["recorded_program"] = replay.program;
  if (replayed.threads) out.context.facts["threads"] = fmt::format("{}", *replayed.threads);
  const ReplaySums sums = sums_of(step, replayed);
  const auto tokens = step.rows > 0 ? std::optional<std::int64_t>(step.rows) : std::nullopt;
  out.steps.push_back({"replayed step", phase_of_rows(step.rows), tokens, sums.replayed});
  for (std::size_t i = 0; i < step.nodes.size() && i < replayed.nodes.size(); ++i) {
    if (replayed.nodes[i].median) {
      out.ops.push_back(row_of(step, step.nodes[i], replayed.nodes[i]));
    }
  }
  if (sums.replayed) out.timings.push_back(timing_of("replay_seconds", *sums.replayed));
  if (whole && sums.recorded) {
    out.timings.push_back(timing_of("recorded_step_seconds", *sums.recorded));
  }
  out.warnings = replay.warnings;
  for (const std::string& line : leave_outs(step, replayed)) {
    out.warnings.push_back("left out: " + line);
  }
  out.warnings.insert(out.warnings.end(), replayed.warnings.begin(), replayed.warnings.end());
  return out;
}

}  // namespace weir::observed
