// Draws what a record has much of: each family is a part of a record that a pull request can make
// as large as it likes, and several together may multiply.
#include "tests/hostile_records/draw.hpp"

#include <array>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/baseline/baseline.hpp"
#include "gate/verdict/waiver.hpp"

#include "tests/hostile_records/draft.hpp"

namespace weir::hostile {
namespace {

using profile::Pass;
using profile::ProbeCounts;
using profile::RunRecord;
using profile::Side;

constexpr std::array k_sides{Side::candidate, Side::base};
constexpr std::array k_gpus{"vulkan", "cuda", "metal"};
constexpr std::size_t k_record_bytes = 330;  // of a record with its step, about

// What two sides of a table of counts have in common.
enum class Change { none, counts, renamed, halves, all };

// Counts by name of the candidate and of the base.
struct Table {
  std::map<std::string, std::int64_t> candidate, base;
  [[nodiscard]] const std::map<std::string, std::int64_t>& of(Side side) const {
    return side == Side::base ? base : candidate;
  }
};

// Returns names with counts that take about `room` bytes on each side.
Table draw_table(Draft& draft, std::size_t room, NameStyle style) {
  constexpr std::array k_changes{Change::none, Change::counts, Change::renamed, Change::halves,
                                 Change::all};
  const Change change = draft.random.pick(k_changes);
  const std::int64_t count = draft.random.chance(80) ? 3 : INT64_MAX / 4;
  Table table;
  std::size_t used = 0;
  for (std::size_t i = 0; used < room; ++i) {
    const std::string name = draft.name(style, i);
    used += name.size() + 6;
    table.candidate[name] = count + static_cast<std::int64_t>(i % 5);
    switch (change) {
      case Change::none:
        table.base[name] = table.candidate[name];
        break;
      case Change::counts:
        table.base[name] = table.candidate[name] + 1;
        break;
      case Change::renamed:
        table.base[name + "2"] = table.candidate[name];
        break;
      case Change::halves:
        table.base[i % 2 == 0 ? name : name + "_f16"] = count;
        break;
      case Change::all:
        table.base[draft.name(style, i + 1'000'000)] = count;
        break;
    }
  }
  return table;
}

// The processes of a counted pass, and which of them list the names of a table.
struct Passes {
  std::size_t lengths = 3, rounds = 1;
  enum class List { all, first, apart } list = List::all;

  [[nodiscard]] std::size_t processes() const { return lengths * rounds; }
  // Returns how often a name is written on one side.
  [[nodiscard]] std::size_t times_written() const { return list == List::all ? processes() : 1; }
  [[nodiscard]] bool has_name(std::size_t process, std::size_t name) const {
    if (list == List::first) return process == 0;
    return list == List::all || name % processes() == process;
  }
  [[nodiscard]] std::int64_t length(std::size_t process) const {
    return static_cast<std::int64_t>(4 + 4 * (process % lengths));
  }
};

Passes draw_passes(Draft& draft, std::size_t room) {
  constexpr std::array k_lists{Passes::List::all, Passes::List::first, Passes::List::apart};
  Passes passes;
  if (draft.random.chance(60)) return passes;
  passes.lengths = draft.random.size(std::max<std::size_t>(3, room / 4 / k_record_bytes));
  if (draft.random.chance(30)) {
    passes.rounds = passes.lengths;
    passes.lengths = 1 + draft.random.below(3);
  }
  passes.list = draft.random.pick(k_lists);
  return passes;
}

// Returns a counted record of `cell` whose engine made as many tokens as it was asked for.
RunRecord& add_counted(Draft& draft, std::size_t cell, Side side, std::int64_t length) {
  RunRecord& record = draft.add_record(cell, Pass::counted, side);
  record.parameters.tokens = length;
  record.report.emplace().generated_tokens = length;
  return record;
}

ProbeCounts& add_probe(RunRecord& record, const std::string& name) {
  ProbeCounts& probe = record.probes.emplace_back();
  probe.probe = name;
  return probe;
}

using Member = std::map<std::string, std::int64_t> ProbeCounts::*;

// Adds a counted pass of both sides whose probe has a table of names.
void add_counted_table(Draft& draft, std::size_t room, std::size_t cell, const std::string& probe,
                       Member member, const std::function<void(RunRecord&)>& finish) {
  const Passes passes = draw_passes(draft, room);
  const std::size_t records = 2 * passes.processes() * k_record_bytes;
  const std::size_t left = room > records ? room - records : room / 8;
  const Table table = draw_table(draft, left / 2 / passes.times_written(), draft.draw_style());
  for (const Side side : k_sides) {
    for (std::size_t process = 0; process < passes.processes(); ++process) {
      const std::int64_t length = passes.length(process);
      RunRecord& record = add_counted(draft, cell, side, length);
      ProbeCounts& counts = add_probe(record, probe);
      std::size_t i = 0;
      for (const auto& [name, count] : table.of(side)) {
        if (!passes.has_name(process, i++)) continue;
        (counts.*member)[name] = count > INT32_MAX ? count : count * length + 1;
      }
      if (finish) finish(record);
    }
  }
}

void add_device_counts(Draft& draft, RunRecord& record, const std::string& device) {
  ProbeCounts& counts = record.probes.back();
  const std::int64_t length = record.parameters.tokens;
  counts.counts["dispatches"] = 65 * length + (record.side == Side::base ? 0 : length);
  counts.counts["syncs"] = 2 * length;
  counts.kernels_named = true;
  counts.devices.push_back({device, "A card", "discrete", device + "-1-2-3-4-5"});
  if (draft.random.chance(1)) counts.warnings.push_back(draft.text(2000));
}

void add_kernels(Draft& draft, std::size_t room) {
  const std::string device = draft.random.pick(k_gpus);
  const std::size_t cell = draft.some_cell(device);
  add_counted_table(draft, room, cell, device, &ProbeCounts::kernels,
                    [&](RunRecord& record) { add_device_counts(draft, record, device); });
}

// Kernels with the hashes of their code, its facts and its costs.
void add_codes(Draft& draft, std::size_t room) {
  const std::string device = draft.random.pick(k_gpus);
  const std::size_t cell = draft.some_cell(device);
  const bool same_hashes = draft.random.chance(30), has_costs = draft.random.chance(60);
  const std::size_t per_name = 1 + draft.random.below(4);
  add_counted_table(draft, room / 4, cell, device, &ProbeCounts::kernels, [&](RunRecord& record) {
    add_device_counts(draft, record, device);
    ProbeCounts& counts = record.probes.back();
    std::uint64_t hash = record.side == Side::base ? 7 : 9;
    for (const auto& [name, count] : counts.kernels) {
      for (std::size_t k = 0; k < per_name; ++k) {
        if (!same_hashes) ++hash;
        const std::string key = profile::code_key(name, hash);
        counts.codes[key] = count;
        counts.code_groups[key] = 64 * count;
        if (!has_costs) continue;
        profile::CodeFacts& facts = counts.code_facts[profile::code_hash(hash)];
        facts.costs["registers"] = static_cast<std::int64_t>(hash % 200);
        facts.options["constant 0"] = std::to_string(hash % 3);
      }
    }
    counts.compiler = "radv, Mesa 25";
  });
}

// Graphs of ops with shapes, on a device and on the CPU.
void add_ops(Draft& draft, std::size_t room) {
  const std::string device = draft.random.chance(50) ? "cpu" : "vulkan";
  const std::size_t cell = draft.some_cell(device);
  const Passes passes = draw_passes(draft, room);
  const std::size_t graphs = draft.random.size(64);
  const NameStyle style = draft.draw_style();
  const bool grows = draft.random.chance(30), has_fusible = draft.random.chance(30);
  const std::size_t ops = room / 2 / passes.times_written() / (90 + draft.name(style, 1000).size());
  if (device != "cpu") {
    for (std::size_t i = draft.random.size(200); i > 0; --i) {
      draft.cells[cell].cpu_ops_allowed[draft.name(style, i)] = "cheaper";
      draft.cells[cell].cpu_ops_when[draft.name(style, i)] = {"ne0 < 128", "ne1 == 1 and ne2 < 4"};
    }
  }
  for (const Side side : k_sides) {
    for (std::size_t process = 0; process < passes.processes(); ++process) {
      const std::int64_t length = passes.length(process);
      RunRecord& record = add_counted(draft, cell, side, length);
      ProbeCounts& probe = add_probe(record, "ggml");
      probe.counts["graphs"] = length;
      probe.counts["cpu_ops"] = 0;
      for (std::size_t i = 0; i < graphs; ++i) {
        profile::GraphCount& graph = probe.graphs.emplace_back();
        graph.rows = static_cast<std::int64_t>(1 + i % 3);
        graph.computed = length;
        if (has_fusible) graph.fusible = {{draft.name(style, i), 3}};
      }
      for (std::size_t i = 0; i < ops; ++i) {
        if (!passes.has_name(process, i)) continue;
        profile::OpCount& op = probe.ops.emplace_back();
        op.op = draft.name(style, side == Side::base ? i : i + i / 3);
        op.type = "q4_0,f32->f32";
        op.shape = fmt::format("{}x{},256->{}", 1 + i, grows ? length : 64, 1 + i);
        op.on_cpu = i % 3 == 0;
        op.backend = op.on_cpu ? "CPU" : "Vulkan0";
        op.graph = static_cast<std::int64_t>(i % graphs);
        op.count = length * static_cast<std::int64_t>(1 + i % 7);
      }
    }
  }
}

// Instructions by function, and system calls.
void add_functions(Draft& draft, std::size_t room) {
  const bool host = draft.random.chance(50);
  const std::size_t cell = draft.some_cell("");
  add_counted_table(
      draft, room, cell, host ? "host" : "valgrind", &ProbeCounts::functions,
      [&](RunRecord& record) {
        record.counts = host ? profile::Counts::system_calls : profile::Counts::instructions;
        ProbeCounts& probe = record.probes.back();
        probe.counts[host ? "system_calls" : "instructions"] = 1'000'000 * record.parameters.tokens;
      });
}

// Counters that the engine printed, some of them with metrics of their own.
void add_own_counts(Draft& draft, std::size_t room) {
  const std::size_t cell = draft.some_cell("");
  const Passes passes = draw_passes(draft, room);
  NameStyle style = draft.draw_style();
  if (style == NameStyle::longest) style = NameStyle::words;
  const std::string_view prefix =
      draft.random.pick(std::array{"", "op_calls:", "kernel_calls:", "registers:", "buffers:"});
  const bool has_metrics = draft.random.chance(20), has_shares = draft.random.chance(20);
  const Table table = draw_table(draft,
                                 room / 2 / passes.times_written() /
                                     (has_metrics  ? 8
                                      : has_shares ? 3
                                                   : 2),
                                 style);
  for (const Side side : k_sides) {
    for (std::size_t process = 0; process < passes.processes(); ++process) {
      RunRecord& record = add_counted(draft, cell, side, passes.length(process));
      std::size_t i = 0;
      for (const auto& [name, count] : table.of(side)) {
        if (!passes.has_name(process, i++)) continue;
        const std::string metric = unit::work_name(prefix, name);
        record.report->counts[metric] = count;
        if (has_shares) record.report->shares[metric] = *Rational::make(count, 7);
        if (has_metrics) {
          record.report->count_metrics[metric] = unit::custom_metric(
              metric, unit::Kind::count, unit::Unit::count, unit::Better::lower);
        }
      }
    }
  }
}

// Counts that lie on no line over many lengths.
void add_lengths(Draft& draft, std::size_t room) {
  const std::string device = draft.random.pick(k_gpus);
  const std::size_t cell = draft.some_cell(device);
  const std::size_t lengths = draft.random.size(room / 2 / (k_record_bytes + 300));
  const std::size_t bases = draft.random.size(unit::count_bases().size());
  for (const Side side : k_sides) {
    for (std::size_t i = 0; i < lengths; ++i) {
      const std::int64_t length = static_cast<std::int64_t>(i + 1);
      RunRecord& record = add_counted(draft, cell, side, length);
      add_probe(record, device);
      add_device_counts(draft, record, device);
      const bool all = i == 0 || lengths < 100;
      for (std::size_t k = 0; all && k < bases; ++k) {
        record.probes.back().counts[unit::count_bases()[k]] = length * length + 1;
      }
    }
  }
}

// Sets times of a process: those that weir knows, or many of their own.
void set_times(Draft& draft, RunRecord& record, std::size_t metrics, std::size_t samples) {
  using profile::EngineReport;
  EngineReport& report = record.report.emplace();
  for (std::size_t i = 0; i < metrics; ++i) {
    EngineReport::Series& series = report.times.emplace_back();
    series.metric = i == 0
                        ? *unit::find_metric("decode_tokens_per_second")
                        : *unit::find_metric(fmt::format("op:{}", draft.name(NameStyle::brief, i)));
    for (std::size_t k = 0; k < samples; ++k) {
      series.samples.push_back(static_cast<double>(50 + draft.random.below(20)));
    }
  }
  record.wall_seconds = static_cast<double>(1 + draft.random.below(3));
  record.peak_rss_bytes = 1 << 28;
  if (draft.random.chance(20)) {
    record.system_usage.emplace();
    record.cpu_seconds = 3;
  }
}

// Timed processes: many of them, many metrics, or many samples.
void add_timed(Draft& draft, std::size_t room) {
  const std::size_t cell = draft.some_cell("");
  constexpr std::size_t k_metric_bytes = 45;
  const std::size_t each = room / 2;
  const std::size_t processes = draft.random.size(each / (k_record_bytes + k_metric_bytes));
  const std::size_t left = each / processes;
  const std::size_t metrics = draft.random.size(std::max<std::size_t>(1, left / k_metric_bytes));
  const std::size_t samples = draft.random.size(std::max<std::size_t>(1, left / metrics / 5));
  for (const Side side : k_sides) {
    for (std::size_t i = 0; i < processes; ++i) {
      // The metrics of the first process are listed again by none, or by all.
      const bool has_all = i == 0 || processes * metrics * k_metric_bytes < each;
      set_times(draft, draft.add_record(cell, Pass::timed, side), has_all ? metrics : 1, samples);
    }
  }
}

// Pairs of processes beside a base program.
void add_pairs(Draft& draft, std::size_t room) {
  const std::size_t cell = draft.some_cell("");
  constexpr std::size_t k_metric_bytes = 45;
  const std::size_t pairs = draft.random.size(room / 2 / (k_record_bytes + k_metric_bytes));
  const std::size_t left = room - pairs * 2 * k_record_bytes;
  const std::size_t metrics =
      draft.random.size(std::max<std::size_t>(1, left / 2 / k_metric_bytes));
  const bool fails = draft.random.chance(10);
  for (std::size_t pair = 0; pair <= pairs; ++pair) {
    for (const Side side : k_sides) {
      RunRecord& record = draft.add_record(cell, Pass::timed, side);
      record.pair = static_cast<std::int64_t>(pair);
      const bool has_all = pair == 0 || pairs * metrics * k_metric_bytes < left / 2;
      set_times(draft, record, has_all ? metrics : 1, 1);
      if (fails && pair > 0) record.ended = profile::Ended::timed_out;
    }
  }
}

// Many cells without much in them.
void add_cells(Draft& draft, std::size_t room) {
  const std::string device = draft.random.chance(50) ? "cpu" : "vulkan";
  const std::size_t records = draft.random.below(4);
  for (std::size_t used = 0; used < room;) {
    const std::size_t cell = draft.add_cell(device);
    used += 700;
    for (std::size_t i = 0; i < records; ++i) {
      for (const Side side : k_sides) {
        RunRecord& record = add_counted(draft, cell, side, static_cast<std::int64_t>(4 + 4 * i));
        if (device != "cpu") {
          add_probe(record, device);
          add_device_counts(draft, record, device);
        } else {
          record.report->counts["syncs_per_token"] = 3;
        }
        used += k_record_bytes + 200;
      }
    }
  }
}

// Cells that differ in depth, threads or concurrency alone.
void add_lists(Draft& draft, std::size_t room) {
  const std::size_t kind = draft.random.below(3);
  const std::size_t lines = draft.random.chance(50) ? 1 : draft.random.size(room / 4000);
  const bool timed = draft.random.chance(60), pairs = timed && draft.random.chance(40);
  const std::string device = draft.random.chance(50) ? "cpu" : "vulkan";
  std::size_t used = 0;
  for (std::size_t i = 0; used < room; ++i) {
    const std::size_t cell = draft.add_cell(device);
    profile::CellKey& key = draft.cells[cell].cell;
    key.model = "l";
    key.prompt = "q" + std::to_string(i % lines);
    const auto number = static_cast<std::int64_t>(i / lines);
    if (kind == 0) key.depth = number;
    if (kind == 1) key.threads = number;
    if (kind == 2) {
      key.depth = number % 2;
      key.concurrency = number / 2;
    }
    used += 700;
    for (const Side side : k_sides) {
      if (timed) {
        for (std::int64_t pair = 0; pair < (pairs ? 3 : 1); ++pair) {
          RunRecord& record = draft.add_record(cell, Pass::timed, side);
          if (pairs) record.pair = pair;
          set_times(draft, record, 1, 1);
          used += k_record_bytes + 100;
        }
      }
      RunRecord& record = add_counted(draft, cell, side, 8);
      record.report->counts["dispatches_per_token"] = 60 + number;
      used += k_record_bytes;
    }
  }
}

// Cells on device twins, beside the same cells on the device that they describe.
void add_twins(Draft& draft, std::size_t room) {
  const std::size_t real_names = draft.random.size(room / 24);
  std::size_t used = 0;
  for (std::size_t i = 0; used < room; ++i) {
    const bool is_real = i == 0 || (i % 5 == 0 && draft.random.chance(30));
    const std::size_t cell = draft.add_cell("vulkan");
    profile::CellFacts& facts = draft.cells[cell];
    facts.cell.engine = "t";
    facts.cell.model = "t";
    facts.cell.prompt = "t";
    facts.cell.backend = (is_real ? "r" : "w") + std::to_string(i);
    if (!is_real) facts.provenance.device_class = "twin-a";
    used += 700;
    for (const Side side : k_sides) {
      RunRecord& record = add_counted(draft, cell, side, 8);
      add_probe(record, "vulkan");
      add_device_counts(draft, record, "vulkan");
      used += k_record_bytes + 200;
      for (std::size_t k = 0; is_real && i == 0 && k < real_names; ++k) {
        const std::string name = draft.name(NameStyle::brief, k);
        record.report->counts["kernel_calls:" + name] = 3;
        record.probes.back().kernels[name] = 3;
        used += 24 + 2 * name.size();
      }
    }
  }
}

// Limits with many entries, patterns and conditions on cells.
void add_limits(Draft& draft, std::size_t room) {
  constexpr std::array k_prefixes{"kernel_calls:", "kernel_calls:", "op_calls:", "op_calls:",
                                  "op:",           "registers:",    "buffers:",  ""};
  const std::size_t per_entry = draft.random.size(100);
  const std::string_view prefix = draft.random.pick(k_prefixes);
  const NameStyle style = draft.random.chance(50) ? NameStyle::brief : NameStyle::shared_prefix;
  const std::size_t stars = draft.random.below(6);
  const bool has_match = draft.random.chance(40), has_bounds = draft.random.chance(50);
  std::size_t used = 0, patterns = 0;
  for (std::size_t i = 0; used < room && patterns < 1990 && draft.limits.size() < 1000; ++i) {
    std::vector<std::string> metrics;
    for (std::size_t k = 0; k < per_entry && patterns < 1990; ++k, ++patterns) {
      std::string pattern(prefix);
      if (stars == 0) {
        pattern += prefix.empty() ? fmt::format("dispatches_at_{}", patterns + 1)
                                  : draft.name(style, patterns);
      } else {
        pattern += "*";
        for (std::size_t star = 1; star < stars; ++star) pattern += "a*";
        if (!prefix.empty()) pattern += draft.name(style, patterns) + "*";
      }
      metrics.push_back("'" + pattern + "'");
    }
    std::string entry = fmt::format("metrics: [{}]", text::join(metrics));
    if (has_match) entry += fmt::format(", match: {{engine: '*{}*'}}", i % 7 == 0 ? "e" : "");
    const bool is_time = prefix == "op:" || prefix == "kernel:";
    entry += is_time ? ", max_increase: 5%" : has_bounds ? ", max: 1" : ", mode: report";
    draft.limits.push_back("{" + entry + "}");
    used += entry.size() + 3;
  }
}

// Limits without metrics, which apply to all.
void add_wide_limits(Draft& draft, std::size_t room) {
  const std::size_t each = room / 1000;
  for (std::size_t i = 0; draft.limits.size() < 1000; ++i) {
    std::string entry = i % 3 == 0 ? std::string("match: {engine: '*e*'}, exact: true")
                                   : std::string("max_increase: 1%");
    if (entry.size() < each) entry += fmt::format(", reason: '{}'", std::string(each, 'r'));
    draft.limits.push_back("{" + entry + "}");
  }
}

// Texts: warnings, errors, last words, names of devices.
void add_texts(Draft& draft, std::size_t room) {
  const std::size_t cell = draft.some_cell("");
  const std::size_t lines = draft.random.size(room / 16);
  const std::size_t each = room / lines;
  const std::size_t kind = draft.random.below(7);
  RunRecord& record = add_counted(draft, cell, Side::candidate, 8);
  record.report->counts["syncs_per_token"] = 3;
  for (std::size_t i = 0; i < lines; ++i) {
    const std::string line = draft.text(each) + std::to_string(i);
    if (kind == 0) record.warnings.push_back(line);
    if (kind == 1) record.report->warnings.push_back(line);
    if (kind == 2) record.report->uncounted[line] = line;
    if (kind == 3) draft.notes.push_back(line);
    if (kind == 4) {
      RunRecord& failed = draft.add_record(cell, Pass::timed, Side::candidate);
      failed.error = line;
      failed.stderr_tail = line;
    }
    if (kind == 5) record.error = record.error.value_or("") + line + "\n";
  }
  if (kind == 6) {
    record.stderr_tail = draft.text(room / 2);
    record.error = draft.text(room / 4);
    draft.cells[cell].provenance.device_name = draft.text(room / 8);
    draft.cells[cell].counts_skip_reason = draft.text(room / 8);
  }
}

// What a server reports of its load.
void add_server(Draft& draft, std::size_t room) {
  const std::size_t cell = draft.some_cell("");
  const std::size_t kind = draft.random.below(4);
  for (const Side side : k_sides) {
    RunRecord& record = draft.add_record(cell, Pass::timed, side);
    set_times(draft, record, 3, 2);
    profile::EngineReport& report = *record.report;
    report.requests = 100;
    const std::size_t each = room / 2;
    if (kind == 0) {
      for (std::size_t i = 0; i < each / 60; ++i) {
        report.server.push_back({draft.name(NameStyle::words, i),
                                 profile::ServerFigure::Kind::gauge, static_cast<double>(i)});
      }
    }
    if (kind == 1) {
      for (std::size_t i = 0; i < each / 5; ++i) {
        report.latencies.push_back(static_cast<std::int64_t>(draft.random.below(9999)));
      }
    }
    if (kind == 2) {
      for (std::size_t i = 0, used = 0; used < each; ++i, used += 40) {
        profile::LikelyTokens& tokens = report.likely.emplace_back();
        tokens.token = std::to_string(i);
        const std::size_t names = draft.random.size(each / 16);
        for (std::size_t k = 0; k < names && used < each; ++k, used += 14) {
          tokens.likely[std::to_string(k)] = -1.5;
        }
      }
    }
    if (kind == 3) {
      draft.cells[cell].sweep = profile::Sweep::burst;
      RunRecord& counted = add_counted(draft, cell, side, 8);
      counted.held = 2;
      ProbeCounts& probe = add_probe(counted, "ggml");
      probe.counts["graphs"] = 3;
      for (std::size_t i = 0; i < each / 60; ++i) {
        profile::GraphCount& graph = probe.graphs.emplace_back();
        graph.rows = static_cast<std::int64_t>(i + 1);
        graph.computed = 1 + static_cast<std::int64_t>(i % 9);
      }
    }
  }
}

// Rules, waivers and shards that the journal says it was judged by.
void add_rules(Draft& draft, std::size_t room) {
  const std::size_t kind = draft.random.below(4);
  if (kind == 0) {
    Json held = Json::array();
    for (std::size_t i = 0; i < room / 60; ++i) {
      const std::string cell = fmt::format("e/m/cpu/p{}", i);
      held.push_back({{"cell", cell}, {"shown", cell}, {"now", i % 3 == 0 ? "" : cell}});
    }
    draft.extra["rules"] = {{"baselines", ""},
                            {"baselines_commit", ""},
                            {"config_text", draft.random.chance(50) ? "" : draft.config()},
                            {"proposals", Json::array()},
                            {"held", std::move(held)}};
  }
  if (kind == 1) {
    Json list = Json::array();
    for (std::size_t i = 0; i < room / 4 / 400; ++i) list.push_back(draft.text(380));
    draft.extra["rules"] = {{"baselines", ""},    {"baselines_commit", ""},
                            {"config_text", ""},  {"proposals", Json::array()},
                            {"not_judged", list}, {"notes", list}};
  }
  if (kind == 2) {
    std::vector<verdict::Waiver> waivers;
    for (std::size_t i = 0; i < room / 220; ++i) {
      verdict::Waiver& waiver = waivers.emplace_back();
      waiver.what = {"ea/ma/cpu/p" + std::to_string(i % 50), "kernel_calls:" + std::to_string(i),
                     "3", "4"};
      waiver.pull_request = 1;
      waiver.reason = "r";
      waiver.who = "w";
      waiver.until = "2099-01-01";
    }
    draft.extra["waivers"] = {{"pull_request", 1},
                              {"head", std::string(40, 'a')},
                              {"today", "2026-11-20"},
                              {"list", verdict::to_text(1, std::move(waivers))}};
  }
  if (kind == 3) {
    Json names = Json::array(), shard = Json::array();
    for (std::size_t i = 0; i < draft.cells.size(); ++i) {
      names.push_back(draft.cells[i].cell.str());
      shard.push_back(i);
    }
    draft.extra["shard"] = {
        {"index", 0}, {"plan", "0011223344556677"}, {"cells", names}, {"shards", {shard}}};
  }
}

// A weir.yaml that is large or that comes to much.
void add_config(Draft& draft, std::size_t room) {
  const std::size_t kind = draft.random.below(7);
  std::vector<std::string> items;
  const auto fill = [&](const std::function<std::string(std::size_t)>& item) {
    std::size_t used = 0;
    for (std::size_t i = 0; used < room; ++i) {
      items.push_back(item(i));
      used += items.back().size() + 2;
    }
  };
  if (kind == 0) {
    const std::string text = std::string(draft.random.size(40), '-');
    std::string prompt = "secret: {tokens: 8, private: true, text: \"";
    for (std::size_t i = 1; prompt.size() < room; ++i) {
      prompt += std::string(8 + i % 200, draft.random.chance(80) ? '-' : 'a') + text + "b\\n";
    }
    draft.prompts.push_back(prompt + "\"}");
    draft.engines.push_back(
        "'hidden': {private: true, command: ['./------', '{tokens}'], output: "
        "llama-bench}");
  }
  if (kind == 1) {
    fill([&](std::size_t i) {
      return fmt::format("{{when: {{kernel: '*{}*{}*'}}, say: s}}", "aaaa", i);
    });
    if (items.size() > 200) items.resize(200);
    draft.explain_rules = items;
  }
  if (kind == 2) {
    draft.engines.push_back(
        "big: &big {command: [x, '{model}', '{tokens}'], output: generic, "
        "metrics: {syncs_per_token: {regex: '(.*)'}}}");
    fill([&](std::size_t i) { return fmt::format("b{}: *big", i); });
    items.resize(std::min<std::size_t>(items.size(), draft.random.size(990)));
    draft.engines.insert(draft.engines.end(), items.begin(), items.end());
  }
  if (kind == 3) {
    for (std::size_t i = 0; i < draft.random.size(100); ++i) items.push_back(std::to_string(i));
    const std::size_t prompts = draft.random.size(40);
    for (std::size_t i = 0; i < prompts; ++i) {
      draft.prompts.push_back(fmt::format("many{}: {{tokens: 8, depth: [{}], threads: [1, 2]}}", i,
                                          text::join(items, ",")));
    }
  }
  if (kind == 4) {
    const std::size_t depth = draft.random.size(draft.random.chance(50) ? 30 : room / 2);
    draft.more_config += "x: " + std::string(depth, '[') + std::string(depth, ']') + "\n";
  }
  if (kind == 5) {
    fill([&](std::size_t i) {
      return fmt::format("m{}: {{metric: '{}', regex: '({}*)'}}", i,
                         draft.name(NameStyle::brief, i), std::string(20, 'a'));
    });
    items.resize(std::min<std::size_t>(items.size(), 100));
    draft.engines.push_back(fmt::format(
        "g: {{command: [x, '{{model}}', '{{tokens}}'], output: generic, metrics: {{{}}}}}",
        text::join(items)));
  }
  if (kind == 6 && draft.random.chance(20)) {
    fill([&](std::size_t i) {
      return fmt::format("k{}: &a{} [{}]", i, i, i == 0 ? "1" : fmt::format("*a{0}, *a{0}", i - 1));
    });
    draft.more_config += fmt::format("x: {{{}}}\n", text::join(items));
  }
}

// A journal that is large in itself: values that nobody reads, steps, lines that are torn.
void add_journal(Draft& draft, std::size_t room) {
  const std::size_t kind = draft.random.below(5);
  if (kind == 0) {
    Json list = Json::array();
    for (std::size_t i = 0; i < room / 4; ++i) list.push_back(Json::array());
    draft.extra["much"] = std::move(list);
  }
  if (kind == 1) {
    while (draft.lines.size() < room) draft.lines += "{\"torn\n";
  }
  if (kind == 2) {
    for (std::size_t i = 0; i < room / 40; ++i) {
      draft.unavailable[fmt::format("e/m/cpu/p{}", i)] = "no device";
    }
  }
  if (kind == 3) draft.lines += "{\"steps\":" + std::string(60, '[') + std::string(60, ']') + "}\n";
  if (kind == 4) {
    const std::size_t cell = draft.some_cell("");
    for (std::size_t i = 0; i < room / k_record_bytes; ++i) {
      RunRecord& record = draft.add_record(cell, Pass::timed, Side::candidate);
      record.attempt = static_cast<std::int64_t>(i + 1);
      record.error = draft.random.chance(50) ? std::to_string(i) : "exit 1";
    }
  }
}

// Many devices, transfers, probes and counts of one record.
void add_parts(Draft& draft, std::size_t room) {
  const std::string device = draft.random.pick(k_gpus);
  const std::size_t cell = draft.some_cell(device);
  const std::size_t records = draft.random.size(room / 2 / (k_record_bytes + 400));
  const std::size_t kind = draft.random.below(3);
  for (const Side side : k_sides) {
    for (std::size_t i = 0; i < records; ++i) {
      RunRecord& record = add_counted(draft, cell, side, static_cast<std::int64_t>(4 + i % 3));
      add_probe(record, device);
      add_device_counts(draft, record, device);
      const std::size_t left = room / 2 / records - k_record_bytes;
      ProbeCounts& probe = record.probes.back();
      for (std::size_t k = 0; kind == 0 && k < std::min<std::size_t>(250, left / 70); ++k) {
        probe.devices.push_back(
            {device, "d" + std::to_string(k), "discrete", fmt::format("{}-{}-{}", device, i, k)});
      }
      for (std::size_t k = 0; kind == 1 && k < left / 60; ++k) {
        probe.transfers.push_back({"copy", std::to_string(k), "CPU", 3, 1 << 20});
      }
      for (std::size_t k = 0; kind == 2 && k < std::min<std::size_t>(250, left / 40); ++k) {
        add_probe(record, "p" + std::to_string(k)).counts["dispatches"] = 3;
      }
    }
  }
}

struct Family {
  const char* name;
  void (*add)(Draft&, std::size_t);
};
constexpr Family k_families[] = {
    {"kernels", add_kernels},
    {"codes", add_codes},
    {"ops", add_ops},
    {"functions", add_functions},
    {"counters", add_own_counts},
    {"lengths", add_lengths},
    {"times", add_timed},
    {"pairs", add_pairs},
    {"cells", add_cells},
    {"lists", add_lists},
    {"twins", add_twins},
    {"limits", add_limits},
    {"wide-limits", add_wide_limits},
    {"texts", add_texts},
    {"server", add_server},
    {"rules", add_rules},
    {"config", add_config},
    {"journal", add_journal},
    {"parts", add_parts},
};

// --- changes of any part of a journal
// --------------------------------------------------------------

// The values of a JSON text of one type, without those that a journal cannot be read without.
void collect_values(Json& json, Json::value_t type, std::vector<Json*>& values) {
  constexpr std::array k_kept{"config_text", "schema", "pass", "side", "ended", "cell", "asked"};
  if (json.type() == type || (type == Json::value_t::number_float && json.is_number())) {
    values.push_back(&json);
  }
  if (!json.is_structured()) return;
  for (auto& [key, value] : json.items()) {
    if (json.is_array() || std::ranges::find(k_kept, key) == k_kept.end()) {
      collect_values(value, type, values);
    }
  }
}

// Returns a copy whose first text and numbers are others than those of the `i`-th copy before.
Json vary(Json value, std::size_t i) {
  if (value.is_string()) return value.get<std::string>() + std::to_string(i);
  if (value.is_number_integer()) return value.get<std::int64_t>() + static_cast<std::int64_t>(i);
  if (!value.is_structured()) return value;
  for (auto& [key, part] : value.items()) {
    if (part.is_structured()) continue;
    part = vary(part, i);
    break;
  }
  return value;
}

// Makes one value of `json` about `room` bytes larger: a text longer, a list or an object fuller;
// or a number as large or small as it can be.
void grow(Draft& draft, Json& json, std::size_t room) {
  constexpr std::array k_types{Json::value_t::string, Json::value_t::string, Json::value_t::array,
                               Json::value_t::object, Json::value_t::number_float};
  std::vector<Json*> values;
  collect_values(json, draft.random.pick(k_types), values);
  std::erase(values, &json);
  if (values.empty()) return;
  Json& value = *draft.random.pick(values);
  if (value.is_string()) {
    value = draft.text(room);
  } else if (value.is_number()) {
    constexpr std::array k_numbers{0.0, -1.0, 1e300, -1e300, 1e-300, 0.5};
    value = draft.random.chance(40) ? Json(INT64_MAX) : Json(draft.random.pick(k_numbers));
  } else if (!value.empty()) {
    const auto item =
        std::next(value.begin(), static_cast<std::ptrdiff_t>(draft.random.below(value.size())));
    const Json copied = *item;
    const std::string key = value.is_object() ? item.key() : "";
    const std::size_t each = dump_json(copied).size() + key.size() + 8;
    const bool varies = draft.random.chance(80);
    for (std::size_t i = 0; i < room / each; ++i) {
      if (value.is_array()) {
        value.push_back(varies ? vary(copied, i) : copied);
      } else {
        value[key + std::to_string(i)] = copied;
      }
    }
  }
}

// Changes the first line of a journal, or some of its records.
std::string mutate(Draft& draft, const std::string& journal, std::size_t room) {
  std::vector<std::string> lines = text::split(journal, '\n');
  const std::size_t changes = 1 + draft.random.below(3);
  for (std::size_t i = 0; i < changes; ++i) {
    std::string& line = lines[draft.random.chance(50) ? 0 : draft.random.below(lines.size())];
    auto json = parse_json(line);
    if (!json || !json->is_object()) continue;
    grow(draft, *json, room / changes);
    line = dump_json(*json);
  }
  return text::join(lines, "\n");
}

// Makes the draft's weir.yaml one whose matrix has the draft's cells.
void make_product(Draft& draft) {
  for (const profile::CellFacts& facts : draft.cells) {
    if (facts.cell.depth || facts.cell.threads || facts.cell.concurrency) return;
  }
  draft.is_product = true;
  if (draft.random.chance(70)) draft.limits.clear();
}

// Returns the stored baselines that accepting the base's records makes, by path.
std::map<std::string, std::string> make_baselines(const Draft& draft) {
  std::map<std::string, std::string> files;
  std::size_t bytes = 0;
  for (const profile::CellFacts& facts : draft.cells) {
    const profile::Profile base = profile::assemble(facts, draft.records, Side::base);
    if (!base.errors.empty()) continue;
    const baseline::Baseline stored = baseline::accept(base, std::nullopt, {});
    const auto path = baseline::path_of(facts.cell, stored.device_class);
    if (!path) continue;
    std::string text = baseline::to_text(stored);
    bytes += text.size();
    if (bytes > k_max_bytes) break;
    files[*path] = std::move(text);
  }
  return files;
}

// Draws a record whose parts have about `room` bytes.
DrawnRecord draw_with_room(std::uint64_t seed, std::size_t room) {
  Draft draft(seed);
  DrawnRecord drawn;
  const std::size_t families = draft.random.chance(30) ? 1 : 2 + draft.random.below(2);
  std::size_t left = room, for_changes = 0;
  if (draft.random.chance(40)) {
    for_changes = room / 8 + draft.random.below(room / 2);
    left -= for_changes;
  }
  for (std::size_t i = 0; i < families; ++i) {
    const Family& family = draft.random.pick(k_families);
    const std::size_t share =
        i + 1 == families ? left : left / 4 + draft.random.below(left / 2 + 1);
    family.add(draft, share);
    left -= share;
    drawn.families += (i == 0 ? "" : " ") + std::string(family.name);
  }
  if (draft.cells.empty()) draft.add_cell("cpu");
  if (draft.random.chance(30)) draft.limits.emplace_back("{metrics: '*', exact: true}");
  if (draft.random.chance(10)) draft.limits.emplace_back("{metrics: 'op:*', max_increase: 5%}");
  enum { alone, beside_base, stored, compared, by_rules };
  const std::size_t how = draft.random.below(5);
  if (how == compared) {
    drawn.command = Command::compare;
    for (const bool is_base : {false, true}) {
      std::string& journal = drawn.files[is_base ? "base/run.jsonl" : "run/run.jsonl"];
      journal = draft.journal(is_base ? Draft::Sides::base : Draft::Sides::candidate);
      if (for_changes > 0) journal = mutate(draft, journal, for_changes);
    }
    if (for_changes > 0) drawn.families += " changed";
    drawn.families += ", compared";
    return drawn;
  }
  if (how == stored) {
    for (auto& [path, text] : make_baselines(draft)) {
      drawn.files["run/rules/baselines/" + path] = std::move(text);
    }
    if (!draft.extra.contains("rules")) {
      draft.extra["rules"] = {{"baselines", "stored baselines"},
                              {"baselines_commit", ""},
                              {"config_text", ""},
                              {"proposals", Json::array()}};
    }
  }
  if (how == by_rules) {
    drawn.command = Command::from_rules;
    make_product(draft);
  }
  const bool has_base = how == beside_base || (how == by_rules && draft.random.chance(50));
  std::string& journal = drawn.files["run/run.jsonl"];
  journal = draft.journal(has_base ? Draft::Sides::both : Draft::Sides::candidate);
  if (for_changes > 0) {
    journal = mutate(draft, journal, for_changes);
    drawn.families += " changed";
  }
  constexpr std::array k_names{"alone", "beside a base", "stored", "compared", "by rules"};
  drawn.families += fmt::format(", {}", k_names[how]);
  return drawn;
}

}  // namespace

// Draws with more or less room until the largest file has nearly k_max_bytes.
DrawnRecord draw_record(std::uint64_t seed) {
  constexpr double k_max_room = static_cast<double>(k_max_bytes), k_enough = 0.85, k_goal = 0.95;
  DrawnRecord best;
  double best_size = 0, room = k_max_room;
  for (int attempt = 0; attempt < 5 || best_size == 0; ++attempt) {
    DrawnRecord drawn = draw_with_room(seed, static_cast<std::size_t>(room));
    double size = 1;
    for (const auto& [path, text] : drawn.files) {
      size = std::max(size, static_cast<double>(text.size()));
    }
    if (size <= k_max_room && size > best_size) {
      best = std::move(drawn);
      best_size = size;
    }
    if (best_size >= k_enough * k_max_room) break;
    room *= std::clamp(k_goal * k_max_room / size, 0.1, 2.0);
  }
  return best;
}

}  // namespace weir::hostile
