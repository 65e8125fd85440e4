// Merges what a probe counted in the processes of one engine run.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/code_facts.hpp"
#include "gate/probes/read/python.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/probes/read/read_events.hpp"
#include "gate/profile/replay.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/device_api.hpp"
#include "gate/unit/fusions.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_max_shapes = 64;
constexpr std::size_t k_max_ops = 8192;

constexpr std::pair<const char*, weir_probe_graph_sum> k_sums[] = {
    {"tensor_copies", WEIR_GRAPH_TENSOR_COPIES}, {"tensor_sets", WEIR_GRAPH_TENSOR_SETS},
    {"tensor_gets", WEIR_GRAPH_TENSOR_GETS},     {"copied_bytes", WEIR_GRAPH_COPIED_BYTES},
    {"backend_syncs", WEIR_GRAPH_BACKEND_SYNCS},
};

std::int64_t to_signed(std::uint64_t count) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(count, INT64_MAX));
}

void add_count(std::int64_t* sum, std::uint64_t amount) { add_capped(*sum, to_signed(amount)); }

// A text for each operand: "source,source->result".
template <class Describe>
std::string operands_text(const ProbeOp& op, Describe describe) {
  std::string out;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const bool is_result = i + 1 == op.operands.size();
    const char* separator = is_result ? "->" : ",";
    if (i > 0) out += separator;
    out += describe(op.operands[i]);
  }
  return out;
}

constexpr std::uint64_t k_max_bytes = std::uint64_t{64} << 20;
constexpr std::size_t k_max_files = 4096;
constexpr std::uint64_t k_max_code_bytes = std::uint64_t{512} << 20;  // in one process
constexpr std::string_view k_engine_marks = "instrument";

// Sums over processes of the work that engines computed: kinds of graphs, their ops, moved bytes.
// Returns the API of the device behind a backend; "" if that is not known.
std::string api_of(const ProbeDevice& device) {
  if (device.api != "ggml") return device.api;
  return std::string(unit::find_api_of_ggml_backend(device.name));
}

class Work {
 public:
  // Adds the graphs, ops and transfers of one process.
  void add(const ProbeFile& file) {
    std::vector<GraphKey> keys;
    for (const ProbeGraph& graph : file.graphs) {
      keys.emplace_back(graph.rows, graph.ops, graph.cpu_ops, graph.splits, graph.hash);
      if (graph.computed == 0) continue;
      profile::GraphCount& sum = graphs_[keys.back()];
      sum.rows = to_signed(graph.rows);
      sum.ops = to_signed(graph.ops);
      sum.cpu_ops = to_signed(graph.cpu_ops);
      sum.splits = to_signed(graph.splits);
      add_count(&sum.computed, graph.computed);
      for (const auto& [name, which] : k_sums) add_count(&sum.sums[name], graph.sums[which]);
    }
    set_fusible_rows(file, keys);
    for (const ProbeOp& op : file.ops) {
      // A graph is counted after its ops. If the process was killed while it counted a new graph,
      // the graph is left out, and so are its ops.
      if (op.count == 0 || file.graphs[op.graph].computed == 0) continue;
      const ProbeDevice& device = file.devices[op.device];
      Shapes& shapes = ops_[{keys[op.graph], op.op, type_text(op), device.name,
                             is_cpu_backend(device), api_of(device)}];
      add_count(&shapes[shape_text(op)], op.count);
    }
    for (const ProbeTransfer& transfer : file.transfers) {
      if (transfer.calls == 0 || transfer.kind > WEIR_TRANSFER_FILL) continue;
      auto& [calls, bytes] =
          transfers_[{std::string(transfer_name(transfer.kind)), transfer.from, transfer.to}];
      add_count(&calls, transfer.calls);
      add_count(&bytes, transfer.bytes);
    }
  }

  // Appends graphs, ops and transfers to `out`, sorted, so that equal work gives equal text. At
  // most k_max_ops ops are listed; the rest becomes a warning.
  void write_to(profile::ProbeCounts* out) const {
    std::map<GraphKey, std::int64_t> graph_index;
    for (const auto& [key, graph] : graphs_) {
      graph_index[key] = static_cast<std::int64_t>(out->graphs.size());
      out->graphs.push_back(graph);
    }
    bool is_full = false;
    for (const auto& [key, shapes] : ops_) {
      profile::OpCount op{.op = key.op,
                          .type = key.type,
                          .shape = "",
                          .backend = key.backend,
                          .on_cpu = key.on_cpu,
                          .graph = graph_index.at(key.graph),
                          .api = key.api};
      for (const auto& [shape, count] : limit_shapes(shapes)) {
        is_full = is_full || out->ops.size() == k_max_ops;
        if (is_full) break;
        op.shape = shape;
        op.count = count;
        out->ops.push_back(op);
      }
    }
    if (is_full) {
      out->warnings.push_back(fmt::format(
          "more than {} kinds of ops: the list ends there, the counts do not", k_max_ops));
    }
    for (const auto& [key, sums] : transfers_) {
      const auto& [kind, from, to] = key;
      out->transfers.push_back(
          {.kind = kind, .from = from, .to = to, .calls = sums.first, .bytes = sums.second});
    }
  }

 private:
  // rows, ops, cpu_ops, splits, hash. Rows come first, as people look for the graph of one token.
  using GraphKey =
      std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
  struct OpKey {
    GraphKey graph;
    std::string op, type, backend;
    bool on_cpu = false;
    std::string api;
    auto operator<=>(const OpKey&) const = default;
  };
  using Shapes = std::map<std::string, std::int64_t>;  // shape -> count

  // Ops in very many shapes (such as a context that grows by one each time) become one, with the
  // shape "*".
  static Shapes limit_shapes(const Shapes& shapes) {
    if (shapes.size() <= k_max_shapes) return shapes;
    std::int64_t sum = 0;
    for (const auto& [shape, count] : shapes) {
      add_count(&sum, static_cast<std::uint64_t>(count));
    }
    return {{std::string(profile::k_any_shape), sum}};
  }

  // Finds the rows of ops that devices compute back to back and could fuse. Graphs whose steps are
  // not all known get none.
  void set_fusible_rows(const ProbeFile& file, const std::vector<GraphKey>& keys) {
    std::vector<std::vector<unit::OpInRow>> steps(file.graphs.size());
    for (const ProbeStep& step : file.steps) {
      const ProbeOp& op = file.ops[step.op];
      const bool on_cpu = is_cpu_backend(file.devices[op.device]);
      steps[op.graph].push_back({on_cpu ? std::string_view() : std::string_view(op.op),
                                 (step.flags & WEIR_STEP_FOLLOWS) != 0});
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const ProbeGraph& graph = file.graphs[i];
      if (graph.computed == 0 || steps[i].empty() || steps[i].size() != graph.ops) continue;
      graphs_[keys[i]].fusible = unit::count_fusible_rows(steps[i], graph.rows == 1);
    }
  }

  std::map<GraphKey, profile::GraphCount> graphs_;
  std::map<OpKey, Shapes> ops_;
  // kind, from, to -> calls, bytes
  std::map<std::tuple<std::string, std::string, std::string>, std::pair<std::int64_t, std::int64_t>>
      transfers_;
};

// Adds what a kernel's machine code costs to its counts: registers, memory, occupancy.
void add_costs(const ProbeCode& code, profile::ProbeCounts* out) {
  if ((code.flags & WEIR_CODE_EXAMINED) == 0) return;
  profile::CodeFacts& facts = out->code_facts[profile::code_hash(code.hash)];
  const weir_probe_code_costs& costs = code.costs;
  if ((code.flags & WEIR_CODE_NOT_COMPILED) != 0) {
    facts.not_compiled = "only PTX fits this GPU: its machine code is the driver's to make";
  }
  if (costs.registers == 0) return;
  out->compiler = "machine code";  // whatever GPU each kernel's was made for
  if (costs.architecture != 0) {
    facts.options["architecture"] = fmt::format("sm_{}", costs.architecture);
  }
  const std::tuple<const char*, std::uint32_t, bool> values[] = {
      {"registers", costs.registers, true},
      {"scratch_bytes", costs.local_bytes, true},
      {"shared_memory_bytes", costs.shared_bytes, true},
      {"code_bytes", costs.code_bytes, costs.code_bytes != 0},
      {"occupancy", costs.occupancy, costs.occupancy != 0},
      {"spilled_registers", costs.spilled_registers, (code.flags & WEIR_CODE_SPILLS_KNOWN) != 0}};
  for (const auto& [name, value, is_known] : values) {
    if (!is_known) continue;
    const auto [cost, inserted] = facts.costs.try_emplace(name, value);
    // Occupancy depends on the launch, so the same code may have several: keep the least.
    if (!inserted) cost->second = std::min<std::int64_t>(cost->second, value);
  }
}

// Probes of an API count a submission for all work; an engine may mark dispatches or copies alone.
bool got_work(const ProbeQueue& queue) {
  return queue.counters[WEIR_COUNT_SUBMISSIONS] > 0 || queue.counters[WEIR_COUNT_DISPATCHES] > 0 ||
         queue.counters[WEIR_COUNT_COPIES] > 0;
}

// True for each device that a queue sent work to, or that computed an op.
std::vector<bool> find_working_devices(const ProbeFile& file) {
  std::vector<bool> worked(file.devices.size(), false);
  for (const ProbeQueue& queue : file.queues) {
    if (got_work(queue)) worked[queue.device] = true;
  }
  for (const ProbeOp& op : file.ops) {
    if (op.count > 0) worked[op.device] = true;
  }
  return worked;
}

// Returns the process's command line, or its program's name if that is unknown.
const std::string& process_name(const ProbeFile& file) {
  return file.command.empty() ? file.process : file.command;
}

// The first word of a process's name, for people.
std::string short_name(const ProbeFile& file) {
  constexpr std::size_t k_max_name_bytes = 64;
  const std::string& name = process_name(file);
  return text::shortened(name.substr(0, name.find(' ')), k_max_name_bytes);
}

// Returns those processes of a role in weir.yaml (such as "server") that did any work, sorted by
// name.
std::vector<const ProbeFile*> find_processes(std::string_view probe,
                                             std::span<const ProbeFile> files,
                                             const config::ProcessRole& role) {
  std::vector<const ProbeFile*> named;
  const std::string pattern = fmt::format("*{}*", role.pattern);
  for (const ProbeFile& file : files) {
    const bool is_named =
        text::glob_match(pattern, file.command) || text::glob_match(pattern, file.process);
    if (file.probe == probe && is_named && did_work(file)) named.push_back(&file);
  }
  std::ranges::stable_sort(named, {}, [](const ProbeFile* file) {
    return std::pair(process_name(*file).size(), process_name(*file));  // TP2 before TP10
  });
  return named;
}

constexpr const char* k_rank_differences = "rank_differences";
constexpr std::size_t k_max_listed = 64;  // processes and differences

// Adds to `counts` where two processes of one role differ: what `other` counted more or less than
// `first`.
void add_differences(const ProbeFile& first, const ProbeFile& other,
                     const profile::ProbeCounts& other_counts, profile::ProbeCounts& counts) {
  // Dispatches are compared kernel by kernel. Submits follow, and polls depend on times.
  constexpr const char* k_compared[] = {"copies", "syncs", "barriers", "graph_launches",
                                        "allocations"};
  std::map<std::string, std::int64_t> differences = counts.kernels;
  for (const auto& [kernel, calls] : other_counts.kernels) differences[kernel] -= calls;
  for (const char* base : k_compared) {
    differences[base] = look_up(counts.counts, base, 0) - look_up(other_counts.counts, base, 0);
  }
  for (const auto& [what, difference] : differences) {
    if (difference == 0) continue;
    const std::int64_t size = difference < 0 ? -difference : difference;
    add_capped(counts.counts[k_rank_differences], size);
    if (counts.warnings.size() >= k_max_listed) continue;
    counts.warnings.push_back(
        fmt::format("{} differs from {} in {}", short_name(other), short_name(first), what));
    add_capped(counts.functions[fmt::format("{}{} and {}: {}", profile::k_rank_difference,
                                            short_name(first), short_name(other), what)],
               size);
  }
}

// Adds a warning for each flag of the file that tells of lost or unsure counts.
void add_warnings(const ProbeFile& file, std::set<std::string>* warnings) {
  const auto warn = [&](std::uint32_t flag, std::string_view text) {
    if ((file.flags & flag) != 0) {
      warnings->insert(fmt::format("{} probe in {}: {}", file.probe, file.process, text));
    }
  };
  warn(WEIR_PROBE_DEVICES_OVERFLOWED, "more devices than it can keep apart");
  warn(WEIR_PROBE_QUEUES_OVERFLOWED, "more queues than it can keep apart");
  warn(WEIR_PROBE_KERNELS_OVERFLOWED, "kernel table overflowed: further kernels are in (other)");
  warn(WEIR_PROBE_CODES_OVERFLOWED, "more code than it can keep apart: some kernels have none");
  warn(WEIR_PROBE_NAMES_TRUNCATED, "a kernel name was cut");
  warn(WEIR_PROBE_OPS_OVERFLOWED, "more kinds of ops than it can keep apart: shapes are missing");
  warn(WEIR_PROBE_GRAPHS_OVERFLOWED, "more kinds of graphs than it can keep apart");
  warn(WEIR_PROBE_TRANSFERS_OVERFLOWED, "more kinds of transfers than it can keep apart");
  warn(WEIR_PROBE_SHAPES_UNKNOWN,
       "tensors of this ggml are laid out in a way it does not know: no shapes, no directions");
  warn(WEIR_PROBE_OPS_UNSEEN,
       "this ggml does not tell the ops of a graph or where they run: they are not counted");
  warn(WEIR_PROBE_CALLS_UNSEEN,
       "the program may use calls that it cannot see: counts may be too low (its stderr says "
       "which)");
  warn(WEIR_PROBE_INDICES_GIVEN,
       "a device twin computes no values: expert ids that the host read were set to 0, 1, 2, …, "
       "other indices to 0. Counts that depend on which experts a real device chooses can differ");
  warn(WEIR_PROBE_OUT_OF_MEMORY, "out of memory: some work was not counted");
}

}  // namespace

std::string type_text(const ProbeOp& op) {
  return operands_text(op, [](const ProbeOperand& operand) { return operand.type; });
}

std::string shape_text(const ProbeOp& op) {
  return operands_text(op,
                       [](const ProbeOperand& operand) { return profile::sizes_text(operand.ne); });
}

bool is_cpu_backend(const ProbeDevice& device) {
  return device.type == "cpu" && (device.api == "cpu" || device.api == "ggml");
}

bool did_work(const ProbeFile& file) {
  return look_up(file.counters, "graphs", 0U) > 0 || std::ranges::any_of(file.queues, got_work);
}

// "read back 8 bytes of reduce_kernel", or "read back 8 bytes that no kernel wrote".
std::string read_back_name(std::uint32_t bytes, const std::string& kernel) {
  return fmt::format("{}{} {}", profile::k_read_back, text::plural(bytes, "byte"),
                     kernel.empty() ? "that no kernel wrote" : "of " + kernel);
}

// Sums one probe's counts over processes: devices, counters, kernels, code and work. See read.hpp.
profile::ProbeCounts merge(std::string_view probe, std::span<const ProbeFile> files) {
  profile::ProbeCounts out;
  out.probe = probe;
  constexpr struct {
    const char* name;
    weir_probe_counter which;
    bool is_of_devices = false;  // else of queues
  } k_counters[] = {{"dispatches", WEIR_COUNT_DISPATCHES},
                    {"barriers", WEIR_COUNT_BARRIERS},
                    {"copies", WEIR_COUNT_COPIES},
                    {"submits", WEIR_COUNT_SUBMITS},
                    {"syncs", WEIR_COUNT_SYNCS},
                    {"indirect_dispatches", WEIR_COUNT_INDIRECT_DISPATCHES},
                    {"command_buffers", WEIR_COUNT_COMMAND_BUFFERS},
                    {"waits", WEIR_COUNT_WAITS, true},
                    {"polls", WEIR_COUNT_POLLS, true}};
  std::set<std::string> warnings;
  std::vector<profile::ProbedDevice> idle;
  Work work;
  bool any_work = false, any_queue = false, any_kernel = false;
  bool all_named = true, ops_unseen = false, shapes_unknown = false;
  for (const ProbeFile& file : files) {
    if (file.probe != probe) continue;
    const std::vector<bool> worked = find_working_devices(file);
    for (std::size_t i = 0; i < file.devices.size(); ++i) {
      const ProbeDevice& device = file.devices[i];
      std::vector<profile::ProbedDevice>& list = worked[i] ? out.devices : idle;
      list.push_back({device.api, device.name, device.type, device.device_class});
    }
    for (const auto& [name, count] : file.counters) {
      // A process that found no memory may have done no work; its count matters nevertheless.
      const bool is_counted = did_work(file) || name == "out_of_memory";
      add_count(&out.counts[name], is_counted ? count : 0);
    }
    any_queue = any_queue || !file.queues.empty();
    if (!did_work(file)) continue;
    any_work = true;
    shapes_unknown = shapes_unknown || (file.flags & WEIR_PROBE_SHAPES_UNKNOWN) != 0;
    ops_unseen = ops_unseen || (file.flags & WEIR_PROBE_OPS_UNSEEN) != 0;
    work.add(file);
    const auto add_all = [&](const auto& entries, bool are_devices) {
      for (const auto& [name, which, is_of_devices] : k_counters) {
        if (is_of_devices != are_devices) continue;
        for (const auto& entry : entries) add_count(&out.counts[name], entry.counters[which]);
      }
    };
    add_all(file.queues, /*are_devices=*/false);
    // Without queues there is nothing to wait for on a device.
    if (!file.queues.empty()) add_all(file.devices, /*are_devices=*/true);
    for (const ProbeKernel& kernel : file.kernels) {
      if (kernel.dispatches == 0) continue;
      any_kernel = true;
      all_named = all_named && kernel.named;
      add_count(&out.kernels[kernel.name], kernel.dispatches);
    }
    // A name that the probe made up holds the code's hash already.
    for (const ProbeCode& code : file.codes) {
      const ProbeKernel& kernel = file.kernels[code.kernel];
      if (code.dispatches == 0 || !kernel.named) continue;
      const std::string key = profile::code_key(kernel.name, code.hash);
      add_count(&out.codes[key], code.dispatches);
      add_count(&out.code_groups[key], code.groups);
      add_costs(code, &out);
    }
    for (const ProbeRead& read : file.reads) {
      const std::string& kernel = file.kernels[read.kernel].name;
      add_count(&out.functions[read_back_name(read.bytes, read.kernel == 0 ? "" : kernel)],
                read.count);
    }
    add_warnings(file, &warnings);
  }
  if (out.devices.empty()) out.devices = std::move(idle);
  std::ranges::sort(out.devices, {}, [](const profile::ProbedDevice& device) {
    return std::tie(device.device_class, device.name);
  });
  out.devices.erase(std::unique(out.devices.begin(), out.devices.end()), out.devices.end());
  // Devices that were created and stayed idle have counts of 0, if the probe counts such things.
  if (!out.devices.empty() && !any_work && (any_queue || out.counts.empty())) {
    for (const auto& counter : k_counters) out.counts[counter.name] = 0;
  }
  if (shapes_unknown) out.counts.erase("uploaded_bytes");
  if (ops_unseen) {
    for (const char* name : {"ops", "cpu_ops", "splits"}) out.counts.erase(name);
  }
  // An engine that never marks a thing does not count it: leave the count out instead of 0.
  if (probe == k_engine_marks) {
    for (const auto& counter : k_counters) {
      if (look_up(out.counts, counter.name, 0) == 0) out.counts.erase(counter.name);
    }
  }
  out.kernels_named = any_kernel && all_named;
  work.write_to(&out);
  out.warnings.insert(out.warnings.end(), warnings.begin(), warnings.end());
  return out;
}

Result<std::vector<std::string>> list_files(const sys::Files& files, const std::string& folder,
                                            std::string_view begin, std::string_view end) {
  WEIR_TRY(std::vector<std::string> names, files.list(folder));
  std::erase_if(names, [&](const std::string& name) {
    return !name.starts_with(begin) || !name.ends_with(end);
  });
  for (std::string& name : names) name = sys::join_path(folder, name);
  return names;
}

// Merges the counts of a probe's processes, each role of weir.yaml (such as "server") apart. See
// read.hpp.
std::vector<profile::ProbeCounts> merge_by_role(std::string_view probe,
                                                std::span<const ProbeFile> files,
                                                std::span<const config::ProcessRole> roles) {
  std::vector<profile::ProbeCounts> out;
  for (const config::ProcessRole& role : roles) {
    std::vector<const ProbeFile*> processes = find_processes(probe, files, role);
    if (processes.empty()) continue;
    profile::ProbeCounts counts = merge(probe, {processes.front(), 1});
    counts.counts["processes"] = std::ssize(processes);
    if (processes.size() > 1) counts.counts[k_rank_differences] = 0;
    for (const ProbeFile* process : std::span(processes).subspan(1)) {
      add_differences(*processes.front(), *process, merge(probe, {process, 1}), counts);
    }
    if (!out.empty()) counts.probe = profile::probe_of_role(probe, role.name);
    out.push_back(std::move(counts));
  }
  if (!out.empty()) return out;
  out.push_back(merge(probe, roles.empty() ? files : std::span<const ProbeFile>()));
  for (const ProbeFile& file : files) {
    if (roles.empty() || file.probe != probe || !did_work(file)) continue;
    if (out.front().warnings.size() >= k_max_listed) break;
    out.front().warnings.push_back(fmt::format(
        "a process that is none of `processes` worked, and is not counted: {}", short_name(file)));
  }
  return out;
}

// Reads a probe's files in `folder`, one a process. Files that cannot be read become warnings. A
// probe that could not count is an error.
Result<std::vector<ProbeFile>> read_processes(const sys::Files& files, const std::string& folder,
                                              std::string_view probe,
                                              std::vector<std::string>& warnings) {
  WEIR_TRY(const std::vector<std::string> paths,
           list_files(files, folder, fmt::format("{}-", probe), WEIR_PROBE_SUFFIX));
  std::vector<ProbeFile> probe_files;
  for (const std::string& path : paths) {
    if (probe_files.size() == k_max_files) {
      warnings.push_back(fmt::format("more than {} processes: the rest is left out", k_max_files));
      break;
    }
    const auto bytes = files.read(path, k_max_bytes);
    if (!bytes) {
      warnings.push_back(bytes.error().message);
      continue;
    }
    auto file = read_probe_file(*bytes);
    if (!file) {
      warnings.push_back(
          add_prefix(text::printable(sys::file_name_of(path)), std::move(file).error()).message);
      continue;
    }
    if ((file->flags & WEIR_PROBE_BLOCKED) != 0) {
      return fail(Code::unavailable,
                  "the {} probe could not count in {}: standard error of the engine says why\n"
                  "  (another profiler may hold the interface that it listens to)",
                  probe, file->process);
    }
    probe_files.push_back(std::move(*file));
  }
  return probe_files;
}

// Reads a probe's files in `folder`, and merges those of processes with one role as `roles` sort
// them. Files that cannot be read become warnings. A probe that could not count is an error.
Result<std::vector<profile::ProbeCounts>> collect_by_role(
    const sys::Files& files, const std::string& folder, std::string_view probe,
    std::span<const config::ProcessRole> roles) {
  std::vector<std::string> warnings;
  WEIR_TRY(const std::vector<ProbeFile> probe_files,
           read_processes(files, folder, probe, warnings));
  std::vector<profile::ProbeCounts> out = merge_by_role(probe, probe_files, roles);
  WEIR_TRY(const auto recordings,
           list_files(files, folder, fmt::format("{}-", probe), WEIR_KERNELS_SUFFIX));
  for (const std::string& path :
       std::span(recordings).first(std::min(recordings.size(), k_max_files))) {
    const auto recording = read_recording(files, path, k_max_code_bytes);
    if (recording) {
      for (auto& counts : out) counts.code_facts.merge(code_facts(*recording));
    } else {
      warnings.push_back(recording.error().message);
    }
  }
  out.front().warnings.insert(out.front().warnings.end(), warnings.begin(), warnings.end());
  return out;
}

Result<profile::ProbeCounts> collect(const sys::Files& files, const std::string& folder,
                                     std::string_view probe) {
  return collect_by_role(files, folder, probe, {}).map([](auto all) {
    return std::move(all.front());
  });
}

// Collects the counts of several probes, each followed by those of its check.
Result<std::vector<profile::ProbeCounts>> collect_all(const sys::Files& files,
                                                      const std::string& folder,
                                                      std::span<const std::string> names,
                                                      std::span<const config::ProcessRole> roles) {
  std::vector<profile::ProbeCounts> counts;
  for (const std::string& name : names) {
    if (name == profile::k_python) {
      WEIR_TRY_SET(counts.emplace_back(), collect_python(files, folder, names));
      continue;
    }
    WEIR_TRY(auto by_role, collect_by_role(files, folder, name, roles));
    const std::size_t first = counts.size();
    std::ranges::move(by_role, std::back_inserter(counts));
    const unit::DeviceApi* api = unit::find_device_api(name);
    if (api == nullptr || api->check.empty()) continue;
    // A second probe of the API checks the counts, or replaces them if it alone saw a device.
    auto check = collect_by_role(files, folder, api->check, roles).map([](auto all) {
      return std::move(all.front());
    });
    profile::ProbeCounts& own = counts[first];
    if (!check) {
      own.warnings.push_back(
          fmt::format("it could not be held against {}: {}", api->check, check.error().message));
    } else if (own.devices.empty() && !check->devices.empty()) {
      check->probe = name;
      check->warnings.push_back(
          fmt::format("counted by {} alone: the engine calls {} past the probe in front of it, as "
                      "with a runtime that is linked in",
                      api->check, api->title));
      own = std::move(*check);
    } else if (!check->devices.empty()) {
      counts.push_back(std::move(*check));
    }
  }
  return counts;
}

}  // namespace weir::probes
