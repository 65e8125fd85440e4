// Writes a timeline as text and as JSON: device work, CPU calls, coverage and cost.
#include "gate/report/timeline_text.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/observed_text.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

using observed::Process;
using observed::WorkTime;

// Counts the work that a process gave to devices: "3 submissions", "2 commands", or both. Queues
// that repeat the work of others are left out.
std::string work_counts(const Process& process) {
  const std::vector<bool> repeated = observed::repeated_queues(process);
  const auto is_counted = [&](const auto& work) {
    return observed::is_counted_once(repeated, work.queue);
  };
  const auto submissions =
      static_cast<std::size_t>(std::ranges::count_if(process.submissions, is_counted));
  const auto commands =
      static_cast<std::size_t>(std::ranges::count_if(process.commands, is_counted));
  std::vector<std::string> counts;
  if (submissions > 0 || commands == 0) counts.push_back(text::plural(submissions, "submission"));
  if (commands > 0) counts.push_back(text::plural(commands, "command"));
  return text::join(counts);
}

// Adds a table of device work: time, share, calls, time of a call, name. Without any times only
// calls and names.
void add_device_table(Page& page, const std::vector<WorkTime>& rows, std::size_t max_rows) {
  double total = 0;
  for (const WorkTime& row : rows) total += row.seconds;
  const bool has_times = std::ranges::any_of(rows, [](const auto& row) { return row.timed != 0; });
  TextTable table{.headings = {"time", "share", "calls", "each", "work"},
                  .right_aligned = {true, true, true, true}};
  if (!has_times) table = {.headings = {"calls", "work"}, .right_aligned = {true}};
  for (const WorkTime& row : rows) {
    std::string name = printable_line(row.name, 160);
    if (row.bytes != 0)
      name += fmt::format(" ({})", unit::show_bytes(static_cast<double>(row.bytes)));
    const std::string calls = fmt::format("{}", row.calls);
    if (!has_times) {
      table.rows.push_back({calls, name});
    } else if (row.timed == 0) {
      table.rows.push_back({"", "", calls, "", name});
    } else {
      table.rows.push_back({brief_time(row.seconds), show_share(row.seconds, total), calls,
                            brief_time(row.seconds / static_cast<double>(row.timed)), name});
    }
  }
  page.add_first_rows(std::move(table), max_rows);
}

// Says how much of the command buffers' time their parts add up to, and what a large gap means.
void add_coverage(Page& page, const observed::Timeline& timeline) {
  const observed::Coverage coverage = observed::coverage(timeline);
  const auto gap = coverage.gap();
  if (!gap) return;
  constexpr double k_much = 0.10;
  std::string_view meaning;
  if (*gap > k_much) meaning = " The device idled between them, or did what was not timed.";
  if (*gap < -k_much) meaning = " They overlap, or a clock is at fault.";
  page.add_indented(2, "{} of {} timed; their parts add up to {:.1f} % of the whole.{}",
                    coverage.timed, text::plural(coverage.buffers, "command buffer"),
                    100 * (1 - *gap), meaning);
}

// Says if the busiest queue worked for less than half of the time by the clock, or for more than
// all of it. Simulated GPUs and probes that only count have no times.
void add_clock(Page& page, const observed::Timeline& timeline) {
  constexpr double k_too_much = 1.1, k_little = 0.5;
  const auto busy = observed::busy(timeline);
  if (!busy) return;
  const double share = busy->device / busy->wall;
  if (share > k_little && share <= k_too_much) return;
  page.add_indented(
      2, "The busiest queue worked {} of the {} from its first work to the last call: {}",
      brief_time(busy->device), brief_time(busy->wall),
      share > k_too_much ? "its work overlaps, or a clock is at fault."
                         : "most of that time is in nothing above.");
}

// Says how many dispatches belong to ops, and lists those that don't.
void add_alignment(Page& page, const observed::Timeline& timeline) {
  if (!timeline.alignment) return;
  const observed::Alignment& alignment = *timeline.alignment;
  if (alignment.unmatched_dispatches == 0 && alignment.unmatched_nodes == 0) {
    page.add_indented(2, "All {} dispatches belong to ops of {}: {} ops, some of them fused.",
                      alignment.dispatches, text::plural(alignment.graphs, "graph"),
                      alignment.nodes);
    return;
  }
  page.add_indented(
      2, "{} of {} dispatches and {} of {} ops do not match:", alignment.unmatched_dispatches,
      alignment.dispatches, alignment.unmatched_nodes, alignment.nodes);
  for (const std::string& line : alignment.left_over)
    page.add_indented(4, printable_line(line, 200));
}

// Says what computing graphs node by node showed and what it cost; else how many ops ran on the CPU
// without times.
void add_node_by_node(Page& page, const observed::Timeline& timeline) {
  if (const auto node_by_node = observed::node_by_node(timeline)) {
    page.add_indented(
        2,
        "{} of {} ran node by node. A graph of {} took {}, {:.1f} % of it in ops, {:.1f} % "
        "in transfers (medians).",
        node_by_node->graphs,
        text::plural(node_by_node->graphs + node_by_node->whole_graphs, "graph"),
        text::plural(node_by_node->rows, "row"), brief_time(node_by_node->each),
        100 * node_by_node->ops, 100 * node_by_node->transfers);
    if (const auto cost = node_by_node->cost()) {
      page.add_indented(2, "Left whole it takes {}: serializing costs {:+.1f} %.",
                        brief_time(*node_by_node->whole_graph_seconds), 100 * *cost);
    }
    return;
  }
  std::uint64_t ops = 0, on_cpu = 0;
  for (const Process& process : timeline.processes) {
    for (const observed::GraphRun& run : process.graph_runs) {
      if (run.graph >= process.graphs.size()) continue;
      const auto& nodes = process.graphs[run.graph].nodes;
      ops += nodes.size();
      on_cpu += static_cast<std::uint64_t>(std::ranges::count_if(nodes, &observed::Node::on_cpu));
    }
  }
  if (on_cpu == 0) return;
  page.add_indented(2, "{} of {} ran on the CPU and have no times{}", on_cpu,
                    text::plural(ops, "op"),
                    timeline.dispatches_serialized ? "." : ": --timing serialized gives them.");
}

// Says how much processor time the probes took.
void add_recording_cost(Page& page, const observed::Timeline& timeline) {
  const auto cost = observed::recording_cost(timeline);
  if (!cost) return;
  const bool has_timestamps = observed::coverage(timeline).timed != 0;
  page.add_indented(2, "Recording took about {} of processor time in {}: {:.2f} %{}.",
                    brief_time(cost->seconds), brief_time(cost->wall),
                    100 * cost->seconds / cost->wall,
                    has_timestamps ? ", without what timestamps cost the device" : "");
}

// Adds the table of device work by kernel. Any other grouping, and a timeline of marks alone, takes
// the rows of the same timeline as an observed document.
void add_work(Page& page, const observed::Timeline& timeline, const std::vector<WorkTime>& work,
              const TimelineStyle& style) {
  if (style.by == "kernel" && !work.empty()) {
    page.add_lines("\ndevices\n");
    return add_device_table(page, work, style.max_rows);
  }
  ObservedStyle rows{columns_of(style.width), style.max_rows};
  (void)set_grouping(rows, style.by);
  observed::Observed observed = observed::to_observed(timeline);
  observed.cpu_calls.clear();  // they have a table of their own
  if (style.peak != nullptr) observed::compare_with_peak(observed, *style.peak);
  page.add_lines(observed_rows(observed, rows));
}

Json to_json(const WorkTime& row) {
  Json entry = {{"name", row.name}, {"copy", row.copy}, {"calls", row.calls}, {"timed", row.timed}};
  if (row.timed != 0) {
    entry["seconds"] = row.seconds;
    entry["least"] = row.min_seconds;
    entry["most"] = row.max_seconds;
  }
  if (row.bytes != 0) entry["bytes"] = row.bytes;
  return entry;
}

}  // namespace

// Writes a timeline: work of devices by time, what the CPU waited for, and warnings.
std::string timeline_text(const observed::Timeline& timeline, const TimelineStyle& style) {
  Page page(columns_of(style.width));
  for (const Process& process : timeline.processes) {
    page.add_text("{} ({}): {}, {}", printable_line(process.name, 100), process.pid,
                  work_counts(process), text::plural(process.graph_runs.size(), "graph"));
  }
  const std::vector<WorkTime> work = observed::work_times(timeline);
  if (work.empty() && observed::to_observed(timeline).ops.empty()) {
    page.add_text("No probe saw a device do anything.");
  } else {
    add_work(page, timeline, work, style);
  }
  add_coverage(page, timeline);
  add_clock(page, timeline);
  add_alignment(page, timeline);
  if (timeline.dispatches_serialized) {
    page.add_indented(2,
                      "Serialized: commands were kept apart, so their sum is more than they take.");
  }
  add_node_by_node(page, timeline);
  add_recording_cost(page, timeline);
  std::vector<observed::CpuCall> calls = observed::cpu_calls(timeline);
  if (!calls.empty()) {
    page.add_lines("\nCPU\n");
    std::ranges::stable_sort(calls, std::greater{}, &observed::CpuCall::seconds);
    TextTable table{.headings = {"time", "calls", "syncs", "call"},
                    .right_aligned = {true, true, true, false}};
    for (const observed::CpuCall& row : calls) {
      table.rows.push_back(
          {brief_time(row.seconds), fmt::format("{}", row.calls),
           row.syncs == 0 ? "" : fmt::format("{}", row.syncs),
           printable_line(row.name, 100) +
               (row.bytes == 0 ? ""
                               : " (" + unit::show_bytes(static_cast<double>(row.bytes)) + ")")});
    }
    page.add_first_rows(std::move(table), style.max_rows);
  }
  for (const std::string& warning : timeline.warnings) {
    page.add_text("warning: " + printable_line(warning, 600));
  }
  return page.finish();
}

Json timeline_json(const observed::Timeline& timeline) {
  Json work = write_fields(observed::to_observed(timeline));
  for (const char* member : {"warnings", "cpu_calls"}) work.erase(member);  // they are below
  const auto work_rows = [&](observed::By by) {
    Json rows = Json::array();
    for (const WorkTime& row : observed::work_times(timeline, by)) rows.push_back(to_json(row));
    return rows;
  };
  Json cpu = Json::array();
  for (const observed::CpuCall& row : observed::cpu_calls(timeline)) {
    Json entry = {{"name", row.name},       {"category", row.category}, {"calls", row.calls},
                  {"seconds", row.seconds}, {"least", row.min_seconds}, {"most", row.max_seconds},
                  {"syncs", row.syncs}};
    if (row.seconds_without_nested < row.seconds)
      entry["own_seconds"] = std::max(row.seconds_without_nested, 0.0);
    if (row.bytes != 0) entry["bytes"] = row.bytes;
    cpu.push_back(std::move(entry));
  }
  const observed::Coverage coverage = observed::coverage(timeline);
  Json out = {{"schema", "weir.timeline/1"},
              {"serialized", timeline.dispatches_serialized},
              {"kernels", work_rows(observed::By::kernel)},
              {"ops", timeline.alignment ? work_rows(observed::By::op) : Json(nullptr)},
              {"cpu_calls", cpu},
              {"command_buffers", coverage.buffers},
              {"command_buffers_timed", coverage.timed},
              {"warnings", timeline.warnings},
              {"work", std::move(work)}};
  if (const auto node_by_node = observed::node_by_node(timeline)) {
    out["by_node"] = {
        {"graphs", node_by_node->graphs},
        {"whole", node_by_node->whole_graphs},
        {"rows", node_by_node->rows},
        {"seconds", node_by_node->each},
        {"ops", node_by_node->ops},
        {"transfers", node_by_node->transfers},
        {"seconds_whole",
         node_by_node->whole_graph_seconds ? Json(*node_by_node->whole_graph_seconds) : Json()}};
  }
  if (timeline.alignment) {
    const observed::Alignment& alignment = *timeline.alignment;
    out["alignment"] = {{"graphs", alignment.graphs},
                        {"dispatches", alignment.dispatches},
                        {"dispatches_left", alignment.unmatched_dispatches},
                        {"nodes", alignment.nodes},
                        {"nodes_left", alignment.unmatched_nodes},
                        {"left_over", alignment.left_over}};
  }
  const auto gap = coverage.gap();
  out["time_not_in_parts"] = gap ? Json(*gap) : Json(nullptr);
  if (const auto busy = observed::busy(timeline)) {
    out["busiest_queue"] = {{"device_seconds", busy->device}, {"wall_seconds", busy->wall}};
  }
  if (const auto cost = observed::recording_cost(timeline)) {
    out["recording"] = {{"seconds", cost->seconds}, {"wall_seconds", cost->wall}};
  }
  return out;
}

}  // namespace weir::report
