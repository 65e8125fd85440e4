// Reads recorded kernels: the file, then each record into its list of RecordedKernels.
#include "gate/probes/read/read_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "gate/base/find.hpp"
#include "gate/probes/read/bytes.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::uint64_t k_max_stored_code_bytes = std::uint64_t{16} << 20;
constexpr std::uint32_t k_max_bindings = 4096, k_max_constants = 16384;
constexpr std::uint64_t k_max_value_bytes = 1U << 20;  // bytes of specialization, or features

// Reads one record after the other into `out`. `counts`: 8 bytes for each work, how often it ran.
class KernelsReader {
 public:
  explicit KernelsReader(std::string_view counts) : counts_(counts) {}

  // Reads a record by its kind; unknown kinds are skipped.
  Result<void> read_record(const weir_kernels_record& record, std::string_view bytes) {
    using ReadBody = Result<void> (KernelsReader::*)(std::uint32_t, ByteReader);
    static constexpr std::pair<std::uint32_t, ReadBody> k_kinds[] = {
        {WEIR_KERNELS_DEVICE, &KernelsReader::read_device},
        {WEIR_KERNELS_EXTENSION, &KernelsReader::read_extension},
        {WEIR_KERNELS_FEATURES, &KernelsReader::read_features},
        {WEIR_KERNELS_CODE, &KernelsReader::read_code},
        {WEIR_KERNELS_PIPELINE, &KernelsReader::read_pipeline},
        {WEIR_KERNELS_WORK, &KernelsReader::read_work}};
    for (const auto& [kind, read_body] : k_kinds) {
      if (kind == record.kind) return (this->*read_body)(record.index, ByteReader(bytes));
    }
    return {};
  }
  RecordedKernels out;

 private:
  static tl::unexpected<Error> invalid_record(std::string_view what, std::uint32_t index) {
    return fail(Code::data, "recorded kernels: {} {} does not fit what it says of itself", what,
                index);
  }

  RecordedDevice* find_device(std::uint32_t index) {
    return find_first(out.devices,
                      [&](const RecordedDevice& device) { return device.index == index; });
  }

  Result<void> read_device(std::uint32_t index, ByteReader body) {
    weir_kernels_device head{};
    if (!body.read(&head)) return invalid_record("device", index);
    // Devices that found no room in the probe file share an index: the first one represents them.
    if (find_device(index) == nullptr) out.devices.push_back({index, head.api_version, {}, {}});
    return {};
  }
  Result<void> read_extension(std::uint32_t index, ByteReader body) {
    RecordedDevice* device = find_device(index);
    if (device == nullptr || body.rest().find('\0') == std::string_view::npos) {
      return invalid_record("extension of device", index);
    }
    const std::string name = printable_text(body.rest());
    if (!holds(device->extensions, name)) device->extensions.push_back(name);
    return {};
  }
  // Adds a struct of features to its device, once for each type.
  Result<void> read_features(std::uint32_t index, ByteReader body) {
    weir_kernels_features head{};
    RecordedDevice* device = find_device(index);
    RecordedFeatures features;
    if (device == nullptr || !body.read(&head) || head.bytes > k_max_value_bytes ||
        !body.read(&features.values, head.bytes)) {
      return invalid_record("features of device", index);
    }
    features.type = head.type;
    const bool is_duplicate =
        std::ranges::count(device->features, features.type, &RecordedFeatures::type) > 0;
    if (!is_duplicate) device->features.push_back(std::move(features));
    return {};
  }

  // Adds SPIR-V code: whole words, with the magic number, and at least the header's five.
  Result<void> read_code(std::uint32_t index, ByteReader body) {
    weir_kernels_code head{};
    RecordedCode code;
    constexpr std::uint32_t k_magic = 0x07230203;
    if (index != out.codes.size() || !body.read(&head) || head.bytes > k_max_stored_code_bytes ||
        head.bytes % 4 != 0 || !body.read(&code.words, head.bytes / 4) || code.words.size() < 5 ||
        code.words.front() != k_magic) {
      return invalid_record("code", index);
    }
    code.hash = head.hash;
    out.codes.push_back(std::move(code));
    return {};
  }

  // Adds a pipeline. Its device and code must exist, its bindings must be buffers, each once, and
  // its constants must lie within its data.
  Result<void> read_pipeline(std::uint32_t index, ByteReader body) {
    RecordedPipeline pipeline;
    if (index != out.pipelines.size() || !body.read(&pipeline.head)) {
      return invalid_record("pipeline", index);
    }
    const auto& head = pipeline.head;
    const RecordedDevice* device = find_device(head.device);
    if (head.code >= out.codes.size() || device == nullptr ||
        head.push_bytes > WEIR_KERNELS_PUSH_BYTES || head.sets > WEIR_KERNELS_MAX_SETS ||
        head.bindings > k_max_bindings || head.constants > k_max_constants ||
        head.data_bytes > k_max_value_bytes || !body.read(&pipeline.bindings, head.bindings) ||
        !body.read(&pipeline.constants, head.constants) ||
        !body.read(&pipeline.data, head.data_bytes)) {
      return invalid_record("pipeline", index);
    }
    std::set<std::pair<std::uint32_t, std::uint32_t>> bindings;
    for (const auto& binding : pipeline.bindings) {
      if (binding.set >= head.sets || !weir_kernels_is_buffer(binding.type) || binding.count == 0 ||
          binding.count > WEIR_KERNELS_DESCRIPTORS ||
          !bindings.emplace(binding.set, binding.binding).second) {
        return invalid_record("pipeline", index);
      }
    }
    for (const auto& constant : pipeline.constants) {
      if (constant.size > 8 || constant.offset > pipeline.data.size() ||
          constant.size > pipeline.data.size() - constant.offset) {
        return invalid_record("pipeline", index);
      }
    }
    const std::string_view field(head.entry_point, sizeof head.entry_point);
    if (field.find('\0') == std::string_view::npos) return invalid_record("pipeline", index);
    pipeline.entry_point = field.substr(0, field.find('\0'));
    pipeline.head.device = static_cast<std::uint32_t>(device - out.devices.data());
    out.pipelines.push_back(std::move(pipeline));
    return {};
  }

  // True if a descriptor lies within its buffer's span and the pipeline has a binding for it.
  // UINT32_MAX means that no buffer is bound.
  static bool is_valid(const weir_kernels_descriptor& descriptor, const RecordedWork& work,
                       const RecordedPipeline& pipeline) {
    if (descriptor.buffer != UINT32_MAX) {
      if (descriptor.buffer >= work.buffers.size() || descriptor.range == 0) return false;
      const std::uint64_t span = work.buffers[descriptor.buffer].span;
      if (descriptor.offset > span || descriptor.range > span - descriptor.offset) return false;
    }
    return std::ranges::any_of(pipeline.bindings, [&](const weir_kernels_binding& binding) {
      return binding.set == descriptor.set && binding.binding == descriptor.binding &&
             binding.type == descriptor.type && descriptor.element < binding.count;
    });
  }

  // Adds a dispatch with its buffers, descriptors and push constants. A count of 0 means that its
  // submission failed: it is left out.
  Result<void> read_work(std::uint32_t index, ByteReader body) {
    weir_kernels_work head{};
    RecordedWork work;
    if (index >= counts_.size() / 8 || !body.read(&head) || head.pipeline >= out.pipelines.size() ||
        head.push_bytes > WEIR_KERNELS_PUSH_BYTES || head.buffers > WEIR_KERNELS_DESCRIPTORS ||
        head.descriptors > WEIR_KERNELS_DESCRIPTORS || !body.read(&work.buffers, head.buffers) ||
        !body.read(&work.descriptors, head.descriptors) ||
        !body.read(&work.push, head.push_bytes)) {
      return invalid_record("work", index);
    }
    const RecordedPipeline& pipeline = out.pipelines[head.pipeline];
    for (const auto& buffer : work.buffers) {
      if (buffer.span == 0 || buffer.span > buffer.whole) return invalid_record("work", index);
    }
    std::set<std::array<std::uint32_t, 3>> elements;
    for (const auto& descriptor : work.descriptors) {
      if (!is_valid(descriptor, work, pipeline) ||
          !elements.insert({descriptor.set, descriptor.binding, descriptor.element}).second) {
        return invalid_record("work", index);
      }
    }
    if (work.push.size() > pipeline.head.push_bytes) return invalid_record("work", index);
    std::memcpy(&work.count, counts_.data() + std::size_t{index} * 8, sizeof work.count);
    if (work.count == 0) return {};
    if (work.count > std::uint64_t{1} << 60) return invalid_record("the count of work", index);
    work.name = printable_text({head.name, sizeof head.name});
    work.kernel = head.kernel;
    work.pipeline = head.pipeline;
    work.groups = {head.x, head.y, head.z};
    out.works.push_back(std::move(work));
    return {};
  }

  std::string_view counts_;
};

}  // namespace

// Reads a recording of dispatches: the header, how often each ran, then the records.
Result<RecordedKernels> read_recorded_kernels(std::string_view bytes) {
  WEIR_TRY(const weir_kernels_header header,
           read_header<weir_kernels_header>(bytes, WEIR_KERNELS_HEADER_SIZE, WEIR_KERNELS_MAGIC,
                                            WEIR_KERNELS_VERSION, "recorded kernels"));
  const std::uint64_t counts = std::uint64_t{header.works} * 8;
  if (header.header_size < sizeof header || header.header_size > bytes.size() ||
      counts > bytes.size() - header.header_size ||
      header.used > bytes.size() - header.header_size - counts) {
    return fail(Code::data,
                "recorded kernels: {} bytes, {} works and {} bytes of records do not fit",
                bytes.size(), header.works, header.used);
  }
  bytes.remove_prefix(header.header_size);
  KernelsReader reader(bytes.substr(0, counts));
  reader.out.pid = header.pid;
  reader.out.left_out = std::to_array(header.left_out);
  bytes = bytes.substr(counts, header.used);
  while (!bytes.empty()) {
    weir_kernels_record record{};
    if (bytes.size() < sizeof record) return fail(Code::data, "recorded kernels: half a record");
    std::memcpy(&record, bytes.data(), sizeof record);
    bytes.remove_prefix(sizeof record);
    if (record.bytes > bytes.size()) {
      return fail(Code::data, "recorded kernels: a record of {} bytes with {} left", record.bytes,
                  bytes.size());
    }
    WEIR_CHECK(reader.read_record(record, bytes.substr(0, record.bytes)));
    bytes.remove_prefix(record.bytes);
  }
  return std::move(reader.out);
}

Result<RecordedKernels> read_recording(const sys::Files& files, const std::string& path,
                                       std::uint64_t max_bytes) {
  return files.read(path, max_bytes)
      .and_then([](const std::string& bytes) { return read_recorded_kernels(bytes); })
      .map_error(with_prefix(text::printable(sys::file_name_of(path))));
}

// Returns a text for the reason why dispatches were not recorded; `reason` is one of
// weir_kernels_left.
std::string_view left_out_reason(std::size_t reason) {
  // Indexed by weir_kernels_left.
  constexpr std::string_view k_reasons[] = {
      "its group counts lie in the device's memory (indirect)",
      "its pipeline's code or layout is not known",
      "it binds more than plain buffers",
      "not all that it binds is known",
      "its groups are not counted from 0",
      "beyond the limits of the recording",
      "its code takes addresses of memory",
      "for a reason that this weir does not know"};
  return k_reasons[std::min(reason, std::size(k_reasons) - 1)];
}

Result<std::vector<std::string>> recorded_kernel_files(const sys::Files& files,
                                                       const std::string& folder) {
  WEIR_TRY(std::vector<std::string> out, list_files(files, folder, "", WEIR_KERNELS_SUFFIX));
  if (out.empty()) return fail(Code::data, "{}: no recorded kernels in it", folder);
  return out;
}

}  // namespace weir::probes
