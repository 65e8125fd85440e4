// Processes of one engine run, put together.
#include <algorithm>
#include <set>

#include "gate/base/text.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/probes/read/work.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::uint64_t k_most_bytes = std::uint64_t{64} << 20;
constexpr std::size_t k_most_files = 4096;
constexpr std::string_view k_marks = "instrument";

std::uint64_t count_of(const Counters& counters, weir_probe_counter which) {
  return counters[static_cast<std::size_t>(which)];
}

// Of probes that stand in front of an API nothing arrives without a submission; an engine may mark
// its dispatches alone.
bool got_work(const ProbeQueue& queue) {
  return count_of(queue.counters, WEIR_COUNT_SUBMISSIONS) > 0 ||
         count_of(queue.counters, WEIR_COUNT_DISPATCHES) > 0 ||
         count_of(queue.counters, WEIR_COUNT_COPIES) > 0;
}

// An op kind that ran on a device is work that it did.
std::vector<bool> devices_that_worked(const ProbeFile& file) {
  std::vector<bool> worked(file.devices.size(), false);
  for (const ProbeQueue& queue : file.queues) {
    if (got_work(queue)) worked[queue.device] = true;
  }
  for (const ProbeOp& op : file.ops) {
    if (op.count > 0) worked[op.device] = true;
  }
  return worked;
}

bool counts_ops(std::string_view counter) {
  return counter == "ops" || counter == "cpu_ops" || counter == "splits";
}

void drop_zero(std::map<std::string, std::int64_t>* counts, const char* name) {
  const auto found = counts->find(name);
  if (found != counts->end() && found->second == 0) counts->erase(found);
}

void add_named(const ProbeFile& file, profile::ProbeCounts* out) {
  for (const auto& [name, count] : file.counters) {
    add_count(&out->counts[name], did_work(file) ? count : 0);
  }
}

void add_warnings(const ProbeFile& file, std::set<std::string>* warnings) {
  const auto warn = [&](std::uint32_t flag, std::string_view what) {
    if ((file.flags & flag) != 0) {
      warnings->insert(fmt::format("{} probe in {}: {}", file.probe, file.process, what));
    }
  };
  warn(WEIR_PROBE_DEVICES_OVERFLOWED, "more devices than it can keep apart");
  warn(WEIR_PROBE_QUEUES_OVERFLOWED, "more queues than it can keep apart");
  warn(WEIR_PROBE_KERNELS_OVERFLOWED, "kernel table overflowed: further kernels are in (other)");
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
  warn(WEIR_PROBE_OUT_OF_MEMORY, "out of memory: some work was not counted");
}

}  // namespace

bool did_work(const ProbeFile& file) {
  const auto graphs = file.counters.find("graphs");
  if (graphs != file.counters.end() && graphs->second > 0) return true;
  return std::any_of(file.queues.begin(), file.queues.end(), got_work);
}

profile::ProbeCounts merge(std::string_view probe, std::span<const ProbeFile> files) {
  profile::ProbeCounts out;
  out.probe = probe;
  constexpr std::pair<const char*, weir_probe_counter> k_of_queues[] = {
      {"dispatches", WEIR_COUNT_DISPATCHES},
      {"barriers", WEIR_COUNT_BARRIERS},
      {"copies", WEIR_COUNT_COPIES},
      {"submits", WEIR_COUNT_SUBMITS},
      {"syncs", WEIR_COUNT_SYNCS},
      {"indirect_dispatches", WEIR_COUNT_INDIRECT_DISPATCHES},
      {"command_buffers", WEIR_COUNT_COMMAND_BUFFERS},
  };
  constexpr std::pair<const char*, weir_probe_counter> k_of_devices[] = {
      {"waits", WEIR_COUNT_WAITS},
      {"polls", WEIR_COUNT_POLLS},
  };
  std::set<std::string> warnings;
  std::vector<profile::DeviceSeen> idle;
  Work work;
  bool ops_unseen = false;
  bool any_work = false, any_queue = false;
  bool any_kernel = false;
  bool all_named = true;
  for (const ProbeFile& file : files) {
    if (file.probe != probe) continue;
    const std::vector<bool> worked = devices_that_worked(file);
    for (std::size_t i = 0; i < file.devices.size(); ++i) {
      const ProbeDevice& device = file.devices[i];
      (worked[i] ? out.devices : idle)
          .push_back({device.api, device.name, device.type, device.device_class});
    }
    add_named(file, &out);
    any_queue = any_queue || !file.queues.empty();
    if (!did_work(file)) continue;
    any_work = true;
    ops_unseen = ops_unseen || (file.flags & WEIR_PROBE_OPS_UNSEEN) != 0;
    work.add(file);
    for (const auto& [name, which] : k_of_queues) {
      for (const ProbeQueue& queue : file.queues) {
        add_count(&out.counts[name], count_of(queue.counters, which));
      }
    }
    for (const auto& [name, which] : k_of_devices) {
      if (file.queues.empty()) break;  // this probe's devices have none to wait for
      for (const ProbeDevice& device : file.devices) {
        add_count(&out.counts[name], count_of(device.counters, which));
      }
    }
    for (const ProbeKernel& kernel : file.kernels) {
      if (kernel.dispatches == 0) continue;
      any_kernel = true;
      all_named = all_named && kernel.named;
      add_count(&out.kernels[kernel.name], kernel.dispatches);
    }
    add_warnings(file, &warnings);
  }
  if (out.devices.empty()) out.devices = std::move(idle);
  std::sort(out.devices.begin(), out.devices.end(),
            [](const profile::DeviceSeen& a, const profile::DeviceSeen& b) {
              return std::tie(a.device_class, a.name) < std::tie(b.device_class, b.name);
            });
  out.devices.erase(std::unique(out.devices.begin(), out.devices.end()), out.devices.end());
  // Made and left idle: nothing was done, and that is a count. A probe of another kind has none.
  if (!out.devices.empty() && !any_work && (any_queue || out.counts.empty())) {
    for (const auto& [name, which] : k_of_queues) out.counts[name] = 0;
    for (const auto& [name, which] : k_of_devices) out.counts[name] = 0;
  }
  if (ops_unseen)
    std::erase_if(out.counts, [](const auto& item) { return counts_ops(item.first); });
  // What an engine never marks it does not count: no number, not 0.
  if (probe == k_marks) {
    for (const auto& [name, which] : k_of_queues) drop_zero(&out.counts, name);
    for (const auto& [name, which] : k_of_devices) drop_zero(&out.counts, name);
  }
  out.kernels_named = any_kernel && all_named;
  work.tell(&out);
  out.warnings.insert(out.warnings.end(), warnings.begin(), warnings.end());
  return out;
}

Result<profile::ProbeCounts> collect(const sys::Files& files, const std::string& folder,
                                     std::string_view probe) {
  WEIR_TRY(const std::vector<std::string> names, files.list(folder));
  std::vector<ProbeFile> found;
  std::vector<std::string> warnings;
  for (const std::string& name : names) {
    if (!name.starts_with(fmt::format("{}-", probe)) || !name.ends_with(WEIR_PROBE_SUFFIX)) {
      continue;
    }
    if (found.size() == k_most_files) {
      warnings.push_back(fmt::format("more than {} processes: the rest is left out", k_most_files));
      break;
    }
    const auto bytes = files.read(sys::join_path(folder, name), k_most_bytes);
    if (!bytes) {
      warnings.push_back(bytes.error().message);
      continue;
    }
    auto file = read_probe_file(*bytes);
    if (file && (file->flags & WEIR_PROBE_BLOCKED) != 0) {
      return fail(Code::unavailable,
                  "the {} probe could not count in {}: standard error of the engine says why\n"
                  "  (another profiler may hold the interface that it listens to)",
                  probe, file->process);
    }
    if (file) {
      found.push_back(std::move(*file));
    } else {
      warnings.push_back(with_context(text::printable(name), std::move(file).error()).message);
    }
  }
  profile::ProbeCounts out = merge(probe, found);
  out.warnings.insert(out.warnings.end(), warnings.begin(), warnings.end());
  return out;
}

}  // namespace weir::probes
