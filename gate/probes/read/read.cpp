// Reads a probe's file: the header, then each section into its list of a ProbeFile.
#include "gate/probes/read/read.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "gate/base/text.hpp"
#include "gate/probes/read/bytes.hpp"
#include "gate/probes/read/kernel_names.hpp"

namespace weir::probes {
namespace {

constexpr std::uint64_t k_max_entries = std::uint64_t{1} << 16;

// No program can count this far; a higher value means a broken file.
constexpr std::uint64_t k_max_count = std::uint64_t{1} << 62;

Result<void> check_counters(const std::uint64_t (&counters)[WEIR_COUNTERS]) {
  for (std::size_t i = 0; i < std::size(counters); ++i) {
    if (counters[i] > k_max_count) {
      return fail(Code::data, "probe file: counter {} has the impossible value {}", i, counters[i]);
    }
  }
  return {};
}

Result<void> check_count(const char* owner, std::uint64_t count) {
  if (count <= k_max_count) return {};
  return fail(Code::data, "probe file: {} has the impossible count {}", owner, count);
}

// Fails if the member `index` of an entry lies beyond the end of `list`.
template <class Entry, class Index, class Item>
Result<void> check_indices(const char* what, const std::vector<Entry>& entries, Index Entry::*index,
                           const std::vector<Item>& list) {
  for (const Entry& entry : entries) {
    if (entry.*index >= list.size()) {
      return fail(Code::data, "probe file: {} {} of {}", what, entry.*index, list.size());
    }
  }
  return {};
}

// The entry's device class. It becomes a part of file names: all but letters, digits and "-_."
// becomes '-', as does a dot at the start.
std::string read_device_class(const weir_probe_device& entry) {
  std::string out = printable_text(entry.device_class);
  for (char& c : out) {
    const bool is_allowed = text::is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
    if (!is_allowed) c = '-';
  }
  if (!out.empty() && out.front() == '.') out.front() = '-';
  return out;
}

// The size of an entry's first version. An entry that has grown since may end there.
template <class Entry>
constexpr std::size_t min_entry_bytes() {
  return std::is_same_v<Entry, weir_probe_code> ? offsetof(weir_probe_code, costs) : sizeof(Entry);
}

// Reads one section after the other into `out`.
class ProbeFileReader {
 public:
  explicit ProbeFileReader(std::string_view bytes) : bytes_(bytes) {}

  // Reads a section by its kind; unknown kinds are skipped.
  Result<void> read_section(const weir_probe_section& section) {
    using ReadEntries = Result<void> (ProbeFileReader::*)(const weir_probe_section&);
    static constexpr std::pair<std::uint32_t, ReadEntries> k_kinds[] = {
        {WEIR_SECTION_DEVICES, &ProbeFileReader::read_entries<weir_probe_device>},
        {WEIR_SECTION_QUEUES, &ProbeFileReader::read_entries<weir_probe_queue>},
        {WEIR_SECTION_KERNELS, &ProbeFileReader::read_entries<weir_probe_kernel>},
        {WEIR_SECTION_COUNTERS, &ProbeFileReader::read_entries<weir_probe_named_counter>},
        {WEIR_SECTION_OPS, &ProbeFileReader::read_entries<weir_probe_op>},
        {WEIR_SECTION_GRAPHS, &ProbeFileReader::read_entries<weir_probe_graph>},
        {WEIR_SECTION_TRANSFERS, &ProbeFileReader::read_entries<weir_probe_transfer>},
        {WEIR_SECTION_LAUNCHES, &ProbeFileReader::read_entries<weir_probe_launch>},
        {WEIR_SECTION_CODES, &ProbeFileReader::read_entries<weir_probe_code>},
        {WEIR_SECTION_STEPS, &ProbeFileReader::read_entries<weir_probe_step>},
        {WEIR_SECTION_NAMES, &ProbeFileReader::read_entries<weir_probe_name>},
        {WEIR_SECTION_READS, &ProbeFileReader::read_entries<weir_probe_read>},
        {WEIR_SECTION_FUNCTIONS, &ProbeFileReader::read_entries<weir_probe_function>},
        {WEIR_SECTION_COMMANDS, &ProbeFileReader::read_entries<weir_probe_command>}};
    for (const auto& [kind, read] : k_kinds) {
      if (kind == section.kind) return (this->*read)(section);
    }
    return {};
  }

  // Completes the names of kernels, and makes them readable.
  Result<void> finish_names() {
    for (const weir_probe_name& rest : rests_of_names_) {
      if (rest.kernel >= out.kernels.size()) {
        return fail(Code::data, "probe file: a name of kernel {} of {}", rest.kernel,
                    out.kernels.size());
      }
      out.kernels[rest.kernel].name += printable_text(rest.rest);
    }
    for (auto& kernel : out.kernels) kernel.name = readable_kernel_name(kernel.name);
    return {};
  }

  ProbeFile out;

 private:
  // Reads the entries of a section. Entries of a newer probe may be longer: the end that this
  // program does not know is ignored.
  template <class Entry>
  Result<void> read_entries(const weir_probe_section& section) {
    const std::uint64_t used = section.used;
    if (used > section.capacity || used > k_max_entries) {
      return fail(Code::data, "probe file: section {} says that {} of {} entries are used",
                  section.kind, section.used, section.capacity);
    }
    constexpr std::size_t k_min_entry_bytes = min_entry_bytes<Entry>();
    if (section.entry_size < k_min_entry_bytes) {
      return fail(Code::data,
                  "probe file: entries of section {} have {} bytes, at least {} expected",
                  section.kind, section.entry_size, k_min_entry_bytes);
    }
    const std::size_t copied = std::min<std::size_t>(section.entry_size, sizeof(Entry));
    const std::uint64_t size = used * section.entry_size;  // both 32 bits wide: no overflow
    if (section.offset > bytes_.size() || size > bytes_.size() - section.offset) {
      return fail(Code::data, "probe file: section {} does not lie within its {} bytes",
                  section.kind, bytes_.size());
    }
    for (std::uint64_t i = 0; i < used; ++i) {
      Entry entry{};
      std::memcpy(&entry, bytes_.data() + section.offset + i * section.entry_size, copied);
      WEIR_CHECK(add(entry));
    }
    return {};
  }

  Result<void> add(const weir_probe_device& entry) {
    const std::string api = printable_text(entry.api);
    // Engines whose CPU and GPU share memory declare the CPU as "integrated".
    out.devices.push_back({.api = api,
                           .type = api == "cpu" ? api : printable_text(entry.type),
                           .device_class = read_device_class(entry),
                           .name = printable_text(entry.name),
                           .counters = std::to_array(entry.counters)});
    return check_counters(entry.counters);
  }

  Result<void> add(const weir_probe_queue& entry) {
    out.queues.push_back(entry);
    return check_counters(entry.counters);
  }

  Result<void> add(const weir_probe_kernel& entry) {
    out.kernels.push_back({.name = printable_text(entry.name),
                           .device = entry.device,
                           .named = (entry.flags & WEIR_KERNEL_NAMED) != 0,
                           .dispatches = entry.dispatches});
    return check_count("a kernel", entry.dispatches);
  }

  Result<void> add(const weir_probe_name& entry) {
    rests_of_names_.push_back(entry);
    return {};
  }

  // Adds a counter that the probe names itself. weir's probes use names of metrics alone.
  Result<void> add(const weir_probe_named_counter& entry) {
    const std::string name = printable_text(entry.name);
    const bool is_metric_name =
        !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    if (!is_metric_name) return fail(Code::data, "probe file: a counter has a name that is none");
    if (entry.value > k_max_count) {
      return fail(Code::data, "probe file: {} has the impossible value {}", name, entry.value);
    }
    out.counters[name] = entry.value;
    return {};
  }

  // Adds a kind of op, with its operands if the probe knew them.
  Result<void> add(const weir_probe_op& entry) {
    if (entry.count > k_max_count || entry.sources > WEIR_OP_SOURCES) {
      return fail(Code::data, "probe file: an op with {} sources was counted {} times",
                  entry.sources, entry.count);
    }
    ProbeOp op{.op = printable_text(entry.op),
               .graph = entry.graph,
               .device = entry.device,
               .shaped = (entry.flags & WEIR_OP_SHAPED) != 0,
               .operands = {},
               .count = entry.count,
               .hash = entry.hash};
    const auto add_operand = [&](const weir_probe_operand& operand) {
      op.operands.push_back({printable_text(operand.type), std::to_array(operand.ne)});
    };
    if (op.shaped) {
      for (std::uint32_t i = 0; i < entry.sources; ++i) add_operand(entry.source[i]);
      add_operand(entry.result);
    }
    out.ops.push_back(std::move(op));
    return {};
  }

  Result<void> add(const weir_probe_graph& graph) {
    const auto largest_count = std::max({graph.computed, graph.rows, graph.ops, graph.cpu_ops,
                                         graph.splits, *std::ranges::max_element(graph.sums)});
    out.graphs.push_back(graph);
    return check_count("a graph", largest_count);
  }

  Result<void> add(const weir_probe_transfer& entry) {
    out.transfers.push_back({entry.kind, printable_text(entry.from), printable_text(entry.to),
                             entry.calls, entry.bytes});
    return check_count("a transfer", std::max(entry.calls, entry.bytes));
  }

  Result<void> add(const weir_probe_launch& entry) {
    if (entry.count > k_max_count || entry.dimensions > 3) {
      return fail(Code::data, "probe file: a launch in {} dimensions was counted {} times",
                  entry.dimensions, entry.count);
    }
    out.launches.push_back(entry);
    return {};
  }

  Result<void> add(const weir_probe_code& entry) {
    out.codes.push_back(entry);
    WEIR_CHECK(check_count("code", entry.dispatches));
    return check_count("groups of code", entry.groups);
  }

  Result<void> add(const weir_probe_step& entry) {
    out.steps.push_back(entry);
    return {};
  }

  Result<void> add(const weir_probe_read& entry) {
    out.reads.push_back(entry);
    return check_count("reads", entry.count);
  }

  Result<void> add(const weir_probe_function& entry) {
    out.functions.push_back({printable_text(entry.name), entry.flags, entry.calls,
                             entry.calls_in_threads, entry.lines,
                             entry.waited != 0 && 2U * entry.waited >= entry.sampled});
    return check_count("a function", std::max({entry.calls, entry.calls_in_threads, entry.lines}));
  }
  Result<void> add(const weir_probe_command& entry) {
    out.command = printable_text(entry.text);
    return {};
  }

  std::string_view bytes_;
  std::vector<weir_probe_name> rests_of_names_;
};

}  // namespace

// Reads a probe's file, the counts of one process: its header, each section, and a check that all
// indices exist.
Result<ProbeFile> read_probe_file(std::string_view bytes) {
  WEIR_TRY(const weir_probe_header header,
           read_header<weir_probe_header>(bytes, sizeof(weir_probe_header), WEIR_PROBE_MAGIC,
                                          WEIR_PROBE_VERSION, "probe file"));
  if (header.section_count > WEIR_PROBE_SECTIONS) {
    return fail(Code::data, "probe file: {} sections, at most {} expected", header.section_count,
                WEIR_PROBE_SECTIONS);
  }
  ProbeFileReader reader(bytes);
  ProbeFile& out = reader.out;
  out.probe = printable_text(header.probe);
  out.process = printable_text(header.process);
  out.pid = header.pid;
  out.parent_pid = header.parent_pid;
  out.flags = header.flags;
  for (std::uint32_t i = 0; i < header.section_count; ++i) {
    WEIR_CHECK(reader.read_section(header.sections[i]));
  }
  WEIR_CHECK(reader.finish_names());
  WEIR_CHECK(check_indices("a queue of device", out.queues, &ProbeQueue::device, out.devices));
  WEIR_CHECK(check_indices("a launch of kernel", out.launches, &ProbeLaunch::kernel, out.kernels));
  WEIR_CHECK(check_indices("code of kernel", out.codes, &ProbeCode::kernel, out.kernels));
  WEIR_CHECK(check_indices("a read of kernel", out.reads, &ProbeRead::kernel, out.kernels));
  for (const ProbeOp& op : out.ops) {
    if (op.device >= out.devices.size() || op.graph >= out.graphs.size()) {
      return fail(Code::data, "probe file: an op of device {} of {} in graph {} of {}", op.device,
                  out.devices.size(), op.graph, out.graphs.size());
    }
  }
  WEIR_CHECK(check_indices("a step of op", out.steps, &ProbeStep::op, out.ops));
  return std::move(out);
}

}  // namespace weir::probes
