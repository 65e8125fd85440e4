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

constexpr std::uint64_t k_most_entries = std::uint64_t{1} << 16;

// What the program itself would have to count to get here is far below; more is a broken file.
constexpr std::uint64_t k_most_count = std::uint64_t{1} << 62;

Result<void> check(const std::uint64_t (&counters)[WEIR_COUNTERS]) {
  for (std::size_t i = 0; i < std::size(counters); ++i) {
    if (counters[i] > k_most_count) {
      return fail(Code::data, "probe file: counter {} has the impossible value {}", i, counters[i]);
    }
  }
  return {};
}

Result<void> check_count(const char* of, std::uint64_t count) {
  if (count <= k_most_count) return {};
  return fail(Code::data, "probe file: {} has the impossible count {}", of, count);
}

// Each entry names one of `list` by its place.
template <class Entry, class Place, class Named>
Result<void> check_places(const char* what, const std::vector<Entry>& entries, Place Entry::*place,
                          const std::vector<Named>& list) {
  for (const Entry& one : entries) {
    if (one.*place >= list.size()) {
      return fail(Code::data, "probe file: {} {} of {}", what, one.*place, list.size());
    }
  }
  return {};
}

// Goes into file names: nothing else gets through.
std::string class_of(const weir_probe_device& entry) {
  std::string out = text_of(entry.device_class);
  for (char& c : out) {
    const bool fits = text::is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
    if (!fits) c = '-';
  }
  if (!out.empty() && out.front() == '.') out.front() = '-';
  return out;
}

// What the first version of an entry had: one that has grown since may end there.
template <class Entry>
constexpr std::size_t least_size() {
  return std::is_same_v<Entry, weir_probe_code> ? offsetof(weir_probe_code, costs) : sizeof(Entry);
}

// One section after the other into `out`.
class ProbeFileReader {
 public:
  explicit ProbeFileReader(std::string_view bytes) : bytes_(bytes) {}

  Result<void> take(const weir_probe_section& section) {
    using Take = Result<void> (ProbeFileReader::*)(const weir_probe_section&);
    static constexpr std::pair<std::uint32_t, Take> k_kinds[] = {
        {WEIR_SECTION_DEVICES, &ProbeFileReader::take_all<weir_probe_device>},
        {WEIR_SECTION_QUEUES, &ProbeFileReader::take_all<weir_probe_queue>},
        {WEIR_SECTION_KERNELS, &ProbeFileReader::take_all<weir_probe_kernel>},
        {WEIR_SECTION_COUNTERS, &ProbeFileReader::take_all<weir_probe_named_counter>},
        {WEIR_SECTION_OPS, &ProbeFileReader::take_all<weir_probe_op>},
        {WEIR_SECTION_GRAPHS, &ProbeFileReader::take_all<weir_probe_graph>},
        {WEIR_SECTION_TRANSFERS, &ProbeFileReader::take_all<weir_probe_transfer>},
        {WEIR_SECTION_LAUNCHES, &ProbeFileReader::take_all<weir_probe_launch>},
        {WEIR_SECTION_CODES, &ProbeFileReader::take_all<weir_probe_code>},
        {WEIR_SECTION_STEPS, &ProbeFileReader::take_all<weir_probe_step>}};
    for (const auto& [kind, take_entries] : k_kinds) {
      if (kind == section.kind) return (this->*take_entries)(section);
    }
    return {};
  }

  ProbeFile out;

 private:
  // The entries of a section, each cut to the shape that this program knows.
  template <class Entry>
  Result<void> take_all(const weir_probe_section& section) {
    const std::uint64_t used = section.used;
    if (used > section.capacity || used > k_most_entries) {
      return fail(Code::data, "probe file: section {} says that {} of {} entries are used",
                  section.kind, section.used, section.capacity);
    }
    constexpr std::size_t k_least = least_size<Entry>();
    if (section.entry_size < k_least) {
      return fail(Code::data,
                  "probe file: entries of section {} have {} bytes, at least {} expected",
                  section.kind, section.entry_size, k_least);
    }
    const std::size_t known = std::min<std::size_t>(section.entry_size, sizeof(Entry));
    const std::uint64_t size = used * section.entry_size;  // both 32 bits wide: no overflow
    if (section.offset > bytes_.size() || size > bytes_.size() - section.offset) {
      return fail(Code::data, "probe file: section {} does not lie within its {} bytes",
                  section.kind, bytes_.size());
    }
    for (std::uint64_t i = 0; i < used; ++i) {
      Entry entry{};
      std::memcpy(&entry, bytes_.data() + section.offset + i * section.entry_size, known);
      WEIR_CHECK(take(entry));
    }
    return {};
  }

  Result<void> take(const weir_probe_device& entry) {
    const std::string api = text_of(entry.api);
    // Engines that share memory with a GPU declare the processor as integrated.
    out.devices.push_back({.api = api,
                           .type = api == "cpu" ? api : text_of(entry.type),
                           .device_class = class_of(entry),
                           .name = text_of(entry.name),
                           .counters = std::to_array(entry.counters)});
    return check(entry.counters);
  }

  Result<void> take(const weir_probe_queue& entry) {
    out.queues.push_back(entry);
    return check(entry.counters);
  }

  Result<void> take(const weir_probe_kernel& entry) {
    out.kernels.push_back({.name = kernel_of_symbol(text_of(entry.name)),
                           .device = entry.device,
                           .named = (entry.flags & WEIR_KERNEL_NAMED) != 0,
                           .dispatches = entry.dispatches});
    return check_count("a kernel", entry.dispatches);
  }

  // Counts with names of their own. One that could not be a metric's name is not one of weir's.
  Result<void> take(const weir_probe_named_counter& entry) {
    const std::string name = text_of(entry.name);
    const bool fits =
        !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    if (!fits) return fail(Code::data, "probe file: a counter has a name that is none");
    if (entry.value > k_most_count) {
      return fail(Code::data, "probe file: {} has the impossible value {}", name, entry.value);
    }
    out.counters[name] = entry.value;
    return {};
  }

  Result<void> take(const weir_probe_op& entry) {
    if (entry.count > k_most_count || entry.sources > WEIR_OP_SOURCES) {
      return fail(Code::data, "probe file: an op with {} sources was counted {} times",
                  entry.sources, entry.count);
    }
    ProbeOp op{.op = text_of(entry.op),
               .graph = entry.graph,
               .device = entry.device,
               .shaped = (entry.flags & WEIR_OP_SHAPED) != 0,
               .operands = {},
               .count = entry.count,
               .hash = entry.hash};
    const auto add = [&](const weir_probe_operand& operand) {
      op.operands.push_back({text_of(operand.type), std::to_array(operand.ne)});
    };
    if (op.shaped) {
      for (std::uint32_t i = 0; i < entry.sources; ++i) add(entry.source[i]);
      add(entry.result);
    }
    out.ops.push_back(std::move(op));
    return {};
  }

  Result<void> take(const weir_probe_graph& graph) {
    const auto most = std::max({graph.computed, graph.rows, graph.ops, graph.cpu_ops, graph.splits,
                                *std::ranges::max_element(graph.sums)});
    out.graphs.push_back(graph);
    return check_count("a graph", most);
  }

  Result<void> take(const weir_probe_transfer& entry) {
    out.transfers.push_back(
        {entry.kind, text_of(entry.from), text_of(entry.to), entry.calls, entry.bytes});
    return check_count("a transfer", std::max(entry.calls, entry.bytes));
  }

  Result<void> take(const weir_probe_launch& entry) {
    if (entry.count > k_most_count || entry.dimensions > 3) {
      return fail(Code::data, "probe file: a launch in {} dimensions was counted {} times",
                  entry.dimensions, entry.count);
    }
    out.launches.push_back(entry);
    return {};
  }

  Result<void> take(const weir_probe_code& entry) {
    out.codes.push_back(entry);
    WEIR_CHECK(check_count("code", entry.dispatches));
    return check_count("groups of code", entry.groups);
  }

  Result<void> take(const weir_probe_step& entry) {
    out.steps.push_back(entry);
    return {};
  }

  std::string_view bytes_;
};

}  // namespace

Result<ProbeFile> read_probe_file(std::string_view bytes) {
  WEIR_TRY(const weir_probe_header header,
           header_of<weir_probe_header>(bytes, sizeof(weir_probe_header), WEIR_PROBE_MAGIC,
                                        WEIR_PROBE_VERSION, "probe file"));
  if (header.section_count > WEIR_PROBE_SECTIONS) {
    return fail(Code::data, "probe file: {} sections, at most {} expected", header.section_count,
                WEIR_PROBE_SECTIONS);
  }
  ProbeFileReader reader(bytes);
  ProbeFile& out = reader.out;
  out.probe = text_of(header.probe);
  out.process = text_of(header.process);
  out.pid = header.pid;
  out.parent_pid = header.parent_pid;
  out.flags = header.flags;
  for (std::uint32_t i = 0; i < header.section_count; ++i) {
    WEIR_CHECK(reader.take(header.sections[i]));
  }
  WEIR_CHECK(check_places("a queue of device", out.queues, &ProbeQueue::device, out.devices));
  WEIR_CHECK(check_places("a launch of kernel", out.launches, &ProbeLaunch::kernel, out.kernels));
  WEIR_CHECK(check_places("code of kernel", out.codes, &ProbeCode::kernel, out.kernels));
  for (const ProbeOp& op : out.ops) {
    if (op.device >= out.devices.size() || op.graph >= out.graphs.size()) {
      return fail(Code::data, "probe file: an op of device {} of {} in graph {} of {}", op.device,
                  out.devices.size(), op.graph, out.graphs.size());
    }
  }
  WEIR_CHECK(check_places("a step of op", out.steps, &ProbeStep::op, out.ops));
  return std::move(out);
}

}  // namespace weir::probes
