#include "gate/report/timeline_text.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "gate/report/layout.hpp"
#include "gate/report/observed_text.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

using observed::Process;
using observed::WorkTime;

// What it gave to devices: submissions, single commands, or both.
std::string asked_of(const Process& process) {
  const std::vector<bool> again = observed::repeated_queues(process);
  const auto once = [&](const auto& one) { return observed::told_once(again, one.queue); };
  const auto sent = static_cast<std::size_t>(std::ranges::count_if(process.submissions, once));
  const auto alone = static_cast<std::size_t>(std::ranges::count_if(process.commands, once));
  const std::string submissions = plural(sent, "submission");
  if (alone == 0) return submissions;
  const std::string commands = plural(alone, "command");
  return sent == 0 ? commands : submissions + ", " + commands;
}

std::string short_bytes(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1U << 20) return fmt::format("{:.1f} MiB", value / (1 << 20));
  if (bytes >= 1U << 10) return fmt::format("{:.1f} KiB", value / (1 << 10));
  return fmt::format("{} B", bytes);
}

void device_table(Page& page, const std::vector<WorkTime>& rows, std::size_t most_rows) {
  double total = 0;
  for (const WorkTime& row : rows) total += row.seconds;
  const bool timed = std::ranges::any_of(rows, [](const auto& row) { return row.timed != 0; });
  TextTable table{{"time", "share", "calls", "each", "work"}, {true, true, true, true}};
  if (!timed) table = {{"calls", "work"}, {true}};
  for (const WorkTime& row : rows) {
    std::string name = one_line(row.name, 160);
    if (row.bytes != 0) name += fmt::format(" ({})", short_bytes(row.bytes));
    const std::string calls = fmt::format("{}", row.calls);
    if (!timed) {
      table.rows.push_back({calls, name});
    } else if (row.timed == 0) {
      table.rows.push_back({"", "", calls, "", name});
    } else {
      table.rows.push_back({brief_time(row.seconds),
                            total > 0 ? fmt::format("{:.1f} %", 100 * row.seconds / total) : "",
                            calls, brief_time(row.seconds / static_cast<double>(row.timed)), name});
    }
  }
  page.rows(std::move(table), most_rows);
}

void coverage_words(Page& page, const observed::Timeline& timeline) {
  const observed::Coverage covered = observed::coverage(timeline);
  const auto gap = covered.gap();
  if (!gap) return;
  constexpr double k_much = 0.10;
  page.say(2, "{} of {} timed; their parts add up to {:.1f} % of the whole.{}", covered.timed,
           plural(covered.buffers, "command buffer"), 100 * (1 - *gap),
           *gap > k_much    ? " The device idled between them, or did what was not timed."
           : *gap < -k_much ? " They overlap, or a clock is at fault."
                            : "");
}

// The device's time beside the clock's; twins and what only counts have none.
void clock_words(Page& page, const observed::Timeline& timeline) {
  constexpr double k_too_much = 1.1, k_little = 0.5;
  const auto busy = observed::busy(timeline);
  if (!busy) return;
  const double share = busy->device / busy->wall;
  if (share > k_little && share <= k_too_much) return;
  page.say(2, "The busiest queue worked {} of the {} from its first work to the last call: {}",
           brief_time(busy->device), brief_time(busy->wall),
           share > k_too_much ? "its work overlaps, or a clock is at fault."
                              : "most of that time is in nothing above.");
}

void alignment_words(Page& page, const observed::Timeline& timeline) {
  if (!timeline.alignment) return;
  const observed::Alignment& all = *timeline.alignment;
  if (all.dispatches_left == 0 && all.nodes_left == 0) {
    page.say(2, "All {} dispatches belong to ops of {}: {} ops, some of them fused.",
             all.dispatches, plural(all.graphs, "graph"), all.nodes);
    return;
  }
  page.say(2, "{} of {} dispatches and {} of {} ops do not match:", all.dispatches_left,
           all.dispatches, all.nodes_left, all.nodes);
  for (const std::string& one : all.left_over) page.say(4, one_line(one, 200));
}

// What computing graphs node by node showed, and what it cost; else which ops have no times.
void node_words(Page& page, const observed::Timeline& timeline) {
  if (const auto all = observed::by_node(timeline)) {
    page.say(2,
             "{} of {} ran node by node. A graph of {} took {}, {:.1f} % of it in ops, {:.1f} % "
             "in transfers (medians).",
             all->graphs, plural(all->graphs + all->whole, "graph"), plural(all->rows, "row"),
             brief_time(all->each), 100 * all->ops, 100 * all->transfers);
    if (const auto cost = all->cost()) {
      page.say(2, "Left whole it takes {}: serializing costs {:+.1f} %.",
               brief_time(*all->each_whole), 100 * *cost);
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
  page.say(2, "{} of {} ran on the CPU and have no times{}", on_cpu, plural(ops, "op"),
           timeline.serialized ? "." : ": --timing serialized gives them.");
}

void recording_words(Page& page, const observed::Timeline& timeline) {
  const auto cost = observed::recording_cost(timeline);
  if (!cost) return;
  const bool stamps = observed::coverage(timeline).timed != 0;
  page.say(2, "Recording took about {} of processor time in {}: {:.2f} %{}.",
           brief_time(cost->seconds), brief_time(cost->wall), 100 * cost->seconds / cost->wall,
           stamps ? ", without what timestamps cost the device" : "");
}

// By kernel what devices did, as it is; by anything else, and of marks alone, the rows added up.
void work_table(Page& page, const observed::Timeline& timeline, const std::vector<WorkTime>& work,
                const TimelineStyle& style) {
  if (style.by == "kernel" && !work.empty()) {
    page.add("\ndevices\n");
    return device_table(page, work, style.most_rows);
  }
  ObservedStyle rows{columns_of(style.width), style.most_rows};
  (void)set_grouping(rows, style.by);
  observed::Observed observed = observed::observed_of(timeline);
  observed.cpu_calls.clear();  // they have a table of their own
  if (style.peak != nullptr) observed::compare_with_peak(observed, *style.peak);
  page.add(observed_rows(observed, rows));
}

Json to_json(const WorkTime& row) {
  Json one = {{"name", row.name}, {"copy", row.copy}, {"calls", row.calls}, {"timed", row.timed}};
  if (row.timed != 0) {
    one["seconds"] = row.seconds;
    one["least"] = row.least;
    one["most"] = row.most;
  }
  if (row.bytes != 0) one["bytes"] = row.bytes;
  return one;
}

}  // namespace

std::string timeline_text(const observed::Timeline& timeline, const TimelineStyle& style) {
  Page page(columns_of(style.width));
  for (const Process& process : timeline.processes) {
    page.say(0, "{} ({}): {}, {}", one_line(process.name, 100), process.pid, asked_of(process),
             plural(process.graph_runs.size(), "graph"));
  }
  const std::vector<WorkTime> work = observed::work_times(timeline);
  if (work.empty() && observed::observed_of(timeline).ops.empty()) {
    page.say(0, "No probe saw a device do anything.");
  } else {
    work_table(page, timeline, work, style);
  }
  coverage_words(page, timeline);
  clock_words(page, timeline);
  alignment_words(page, timeline);
  if (timeline.serialized) {
    page.say(2, "Serialized: commands were kept apart, so their sum is more than they take.");
  }
  node_words(page, timeline);
  recording_words(page, timeline);
  std::vector<observed::CpuCall> calls = observed::cpu_calls(timeline);
  if (!calls.empty()) {
    page.add("\nCPU\n");
    std::ranges::stable_sort(calls, std::greater{}, &observed::CpuCall::seconds);
    TextTable table{{"time", "calls", "syncs", "call"}, {true, true, true, false}};
    for (const observed::CpuCall& row : calls) {
      table.rows.push_back(
          {brief_time(row.seconds), fmt::format("{}", row.calls),
           row.syncs == 0 ? "" : fmt::format("{}", row.syncs),
           one_line(row.name, 100) + (row.bytes == 0 ? "" : " (" + short_bytes(row.bytes) + ")")});
    }
    page.rows(std::move(table), style.most_rows);
  }
  for (const std::string& warning : timeline.warnings) {
    page.say(0, "warning: " + one_line(warning, 600));
  }
  return page.finish();
}

Json timeline_json(const observed::Timeline& timeline) {
  Json work = write_fields(observed::observed_of(timeline));
  for (const char* of_all : {"warnings", "cpu_calls"}) work.erase(of_all);  // they are below
  const auto rows_of = [&](observed::By by) {
    Json rows = Json::array();
    for (const WorkTime& row : observed::work_times(timeline, by)) rows.push_back(to_json(row));
    return rows;
  };
  Json cpu = Json::array();
  for (const observed::CpuCall& row : observed::cpu_calls(timeline)) {
    Json one = {{"name", row.name},       {"category", row.category}, {"calls", row.calls},
                {"seconds", row.seconds}, {"least", row.least},       {"most", row.most},
                {"syncs", row.syncs}};
    if (row.own_seconds < row.seconds) one["own_seconds"] = std::max(row.own_seconds, 0.0);
    if (row.bytes != 0) one["bytes"] = row.bytes;
    cpu.push_back(std::move(one));
  }
  const observed::Coverage covered = observed::coverage(timeline);
  Json out = {{"schema", "weir.timeline/1"},
              {"serialized", timeline.serialized},
              {"kernels", rows_of(observed::By::kernel)},
              {"ops", timeline.alignment ? rows_of(observed::By::op) : Json(nullptr)},
              {"cpu_calls", cpu},
              {"command_buffers", covered.buffers},
              {"command_buffers_timed", covered.timed},
              {"warnings", timeline.warnings},
              {"work", std::move(work)}};
  if (const auto all = observed::by_node(timeline)) {
    out["by_node"] = {{"graphs", all->graphs},
                      {"whole", all->whole},
                      {"rows", all->rows},
                      {"seconds", all->each},
                      {"ops", all->ops},
                      {"transfers", all->transfers},
                      {"seconds_whole", all->each_whole ? Json(*all->each_whole) : Json()}};
  }
  if (timeline.alignment) {
    const observed::Alignment& all = *timeline.alignment;
    out["alignment"] = {{"graphs", all.graphs},
                        {"dispatches", all.dispatches},
                        {"dispatches_left", all.dispatches_left},
                        {"nodes", all.nodes},
                        {"nodes_left", all.nodes_left},
                        {"left_over", all.left_over}};
  }
  const auto gap = covered.gap();
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
