#include "gate/probes/read.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::uint64_t k_most_bytes = std::uint64_t{64} << 20;
constexpr std::size_t k_most_files = 4096;
constexpr std::uint64_t k_most_entries = std::uint64_t{1} << 16;

// What the program itself would have to count to get here is far below; more is a broken file.
constexpr std::uint64_t k_most_count = std::uint64_t{1} << 62;

template <class T>
T load(std::string_view bytes, std::uint64_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

template <std::size_t size>
std::string text_of(const char (&field)[size]) {
  const char* end = static_cast<const char*>(std::memchr(field, 0, size));
  return text::printable(
      std::string_view(field, end == nullptr ? size : static_cast<std::size_t>(end - field)));
}

// The entries of a section, each cut or filled up to the shape that this program knows.
template <class T>
Result<std::vector<T>> entries(std::string_view bytes, const weir_probe_section& section) {
  std::vector<T> out;
  const std::uint64_t used = section.used;
  if (used > section.capacity || used > k_most_entries) {
    return fail(Code::data, "probe file: section {} says that {} of {} entries are used",
                section.kind, section.used, section.capacity);
  }
  if (section.entry_size < sizeof(T)) {
    return fail(Code::data, "probe file: entries of section {} have {} bytes, at least {} expected",
                section.kind, section.entry_size, sizeof(T));
  }
  const std::uint64_t size = used * section.entry_size;  // both 32 bits wide: no overflow
  if (section.offset > bytes.size() || size > bytes.size() - section.offset) {
    return fail(Code::data, "probe file: section {} does not lie within its {} bytes", section.kind,
                bytes.size());
  }
  out.reserve(used);
  for (std::uint64_t i = 0; i < used; ++i) {
    out.push_back(load<T>(bytes, section.offset + i * section.entry_size));
  }
  return out;
}

Result<Counters> counters_of(const std::uint64_t (&from)[WEIR_COUNTERS]) {
  Counters out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (from[i] > k_most_count) {
      return fail(Code::data, "probe file: counter {} has the impossible value {}", i, from[i]);
    }
    out[i] = from[i];
  }
  return out;
}

// Goes into file names: nothing else gets through.
std::string class_of(const weir_probe_device& entry) {
  std::string out = text_of(entry.device_class);
  for (char& c : out) {
    const bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '_' || c == '.';
    if (!fits) c = '-';
  }
  if (!out.empty() && out.front() == '.') out.front() = '-';
  return out;
}

Result<void> take_devices(std::string_view bytes, const weir_probe_section& section,
                          ProbeFile* out) {
  WEIR_TRY(const auto found, entries<weir_probe_device>(bytes, section));
  for (const weir_probe_device& entry : found) {
    WEIR_TRY(const Counters counters, counters_of(entry.counters));
    out->devices.push_back({.api = text_of(entry.api),
                            .type = text_of(entry.type),
                            .device_class = class_of(entry),
                            .name = text_of(entry.name),
                            .driver = text_of(entry.driver),
                            .vendor = entry.vendor,
                            .device = entry.device,
                            .driver_id = entry.driver_id,
                            .driver_version = entry.driver_version,
                            .feature_hash = entry.feature_hash,
                            .counters = counters});
  }
  return {};
}

Result<void> take_queues(std::string_view bytes, const weir_probe_section& section,
                         ProbeFile* out) {
  WEIR_TRY(const auto found, entries<weir_probe_queue>(bytes, section));
  for (const weir_probe_queue& entry : found) {
    WEIR_TRY(const Counters counters, counters_of(entry.counters));
    out->queues.push_back({.device = entry.device,
                           .family = entry.family,
                           .index = entry.index,
                           .flags = entry.flags,
                           .counters = counters});
  }
  return {};
}

Result<void> take_kernels(std::string_view bytes, const weir_probe_section& section,
                          ProbeFile* out) {
  WEIR_TRY(const auto found, entries<weir_probe_kernel>(bytes, section));
  for (const weir_probe_kernel& entry : found) {
    if (entry.dispatches > k_most_count) {
      return fail(Code::data, "probe file: a kernel has the impossible count {}", entry.dispatches);
    }
    out->kernels.push_back({.name = text_of(entry.name),
                            .entry_point = text_of(entry.entry_point),
                            .device = entry.device,
                            .named = (entry.flags & WEIR_KERNEL_NAMED) != 0,
                            .hash = entry.hash,
                            .dispatches = entry.dispatches});
  }
  return {};
}

std::uint64_t count_of(const Counters& counters, weir_probe_counter which) {
  return counters[static_cast<std::size_t>(which)];
}

// Sums stay below 2^63 whatever files say.
void add_count(std::int64_t* sum, std::uint64_t amount) {
  const auto room = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - *sum);
  *sum += static_cast<std::int64_t>(std::min(amount, room));
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
  warn(WEIR_PROBE_OUT_OF_MEMORY, "out of memory: some work was not counted");
}

}  // namespace

Result<ProbeFile> read_probe_file(std::string_view bytes) {
  if (bytes.size() < sizeof(weir_probe_header)) {
    return fail(Code::data, "probe file: {} bytes are too few", bytes.size());
  }
  const auto header = load<weir_probe_header>(bytes, 0);
  if (std::memcmp(header.magic, WEIR_PROBE_MAGIC, sizeof header.magic) != 0) {
    return fail(Code::data, "probe file: not one, or its process ended while it was made");
  }
  if (header.version != WEIR_PROBE_VERSION) {
    return fail(Code::data,
                "probe file: version {}, this weir reads {} (probe and weir must be of one build)",
                header.version, WEIR_PROBE_VERSION);
  }
  if (header.section_count > WEIR_PROBE_SECTIONS) {
    return fail(Code::data, "probe file: {} sections, at most {} expected", header.section_count,
                WEIR_PROBE_SECTIONS);
  }
  ProbeFile out;
  out.probe = text_of(header.probe);
  out.process = text_of(header.process);
  out.pid = header.pid;
  out.parent_pid = header.parent_pid;
  out.flags = header.flags;
  for (std::uint32_t i = 0; i < header.section_count; ++i) {
    const weir_probe_section& section = header.sections[i];
    if (section.kind == WEIR_SECTION_DEVICES) WEIR_CHECK(take_devices(bytes, section, &out));
    if (section.kind == WEIR_SECTION_QUEUES) WEIR_CHECK(take_queues(bytes, section, &out));
    if (section.kind == WEIR_SECTION_KERNELS) WEIR_CHECK(take_kernels(bytes, section, &out));
  }
  for (const ProbeQueue& queue : out.queues) {
    if (queue.device >= out.devices.size()) {
      return fail(Code::data, "probe file: a queue of device {} of {}", queue.device,
                  out.devices.size());
    }
  }
  return out;
}

bool did_work(const ProbeFile& file) {
  return std::any_of(file.queues.begin(), file.queues.end(), [](const ProbeQueue& queue) {
    return count_of(queue.counters, WEIR_COUNT_SUBMISSIONS) > 0;
  });
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
  bool any_kernel = false;
  bool all_named = true;
  for (const ProbeFile& file : files) {
    if (file.probe != probe) continue;
    std::vector<bool> worked(file.devices.size(), false);
    for (const ProbeQueue& queue : file.queues) {
      if (count_of(queue.counters, WEIR_COUNT_SUBMISSIONS) > 0) worked[queue.device] = true;
    }
    for (std::size_t i = 0; i < file.devices.size(); ++i) {
      const ProbeDevice& device = file.devices[i];
      (worked[i] ? out.devices : idle)
          .push_back({device.api, device.name, device.type, device.device_class});
    }
    if (!did_work(file)) continue;
    for (const auto& [name, which] : k_of_queues) {
      for (const ProbeQueue& queue : file.queues) {
        add_count(&out.counts[name], count_of(queue.counters, which));
      }
    }
    for (const auto& [name, which] : k_of_devices) {
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
  if (!out.devices.empty() && out.counts.empty()) {
    for (const auto& [name, which] : k_of_queues) out.counts[name] = 0;
    for (const auto& [name, which] : k_of_devices) out.counts[name] = 0;
  }
  out.kernels_named = any_kernel && all_named;
  out.warnings.assign(warnings.begin(), warnings.end());
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
