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

constexpr std::uint64_t k_most_code = std::uint64_t{16} << 20;
constexpr std::uint32_t k_most_bindings = 4096, k_most_constants = 16384;
constexpr std::uint64_t k_most_values = 1U << 20;  // of specialization, of features

class KernelsReader {
 public:
  explicit KernelsReader(std::string_view counts) : counts_(counts) {}

  Result<void> take(const weir_kernels_record& record, std::string_view bytes) {
    using Take = Result<void> (KernelsReader::*)(std::uint32_t, Bytes);
    static constexpr std::pair<std::uint32_t, Take> k_kinds[] = {
        {WEIR_KERNELS_DEVICE, &KernelsReader::device},
        {WEIR_KERNELS_EXTENSION, &KernelsReader::extension},
        {WEIR_KERNELS_FEATURES, &KernelsReader::features},
        {WEIR_KERNELS_CODE, &KernelsReader::code},
        {WEIR_KERNELS_PIPELINE, &KernelsReader::pipeline},
        {WEIR_KERNELS_WORK, &KernelsReader::work}};
    for (const auto& [kind, take_body] : k_kinds) {
      if (kind == record.kind) return (this->*take_body)(record.index, Bytes(bytes));
    }
    return {};
  }
  RecordedKernels out;

 private:
  static tl::unexpected<Error> wrong(std::string_view what, std::uint32_t index) {
    return fail(Code::data, "recorded kernels: {} {} does not fit what it says of itself", what,
                index);
  }

  RecordedDevice* device_of(std::uint32_t index) {
    return first_of(out.devices, [&](const RecordedDevice& one) { return one.index == index; });
  }

  Result<void> device(std::uint32_t index, Bytes body) {
    weir_kernels_device head{};
    if (!body.take(&head)) return wrong("device", index);
    // Devices beyond those of the probe file share an index there: the first one stands for it.
    if (device_of(index) == nullptr) out.devices.push_back({index, head.api_version, {}, {}});
    return {};
  }
  Result<void> extension(std::uint32_t index, Bytes body) {
    RecordedDevice* device = device_of(index);
    if (device == nullptr || body.left().find('\0') == std::string_view::npos) {
      return wrong("extension of device", index);
    }
    const std::string name = text_of(body.left());
    if (!holds(device->extensions, name)) device->extensions.push_back(name);
    return {};
  }
  Result<void> features(std::uint32_t index, Bytes body) {
    weir_kernels_features head{};
    RecordedDevice* device = device_of(index);
    RecordedFeatures one;
    if (device == nullptr || !body.take(&head) || head.bytes > k_most_values ||
        !body.take(&one.values, head.bytes)) {
      return wrong("features of device", index);
    }
    one.type = head.type;
    const bool known = std::ranges::count(device->features, one.type, &RecordedFeatures::type) > 0;
    if (!known) device->features.push_back(std::move(one));
    return {};
  }

  Result<void> code(std::uint32_t index, Bytes body) {
    weir_kernels_code head{};
    RecordedCode one;
    constexpr std::uint32_t k_magic = 0x07230203;
    if (index != out.codes.size() || !body.take(&head) || head.bytes > k_most_code ||
        head.bytes % 4 != 0 || !body.take(&one.words, head.bytes / 4) || one.words.size() < 5 ||
        one.words.front() != k_magic) {
      return wrong("code", index);
    }
    one.hash = head.hash;
    out.codes.push_back(std::move(one));
    return {};
  }

  Result<void> pipeline(std::uint32_t index, Bytes body) {
    RecordedPipeline one;
    if (index != out.pipelines.size() || !body.take(&one.head)) return wrong("pipeline", index);
    const auto& head = one.head;
    const RecordedDevice* device = device_of(head.device);
    if (head.code >= out.codes.size() || device == nullptr ||
        head.push_bytes > WEIR_KERNELS_PUSH_BYTES || head.sets > WEIR_KERNELS_SETS ||
        head.bindings > k_most_bindings || head.constants > k_most_constants ||
        head.data_bytes > k_most_values || !body.take(&one.bindings, head.bindings) ||
        !body.take(&one.constants, head.constants) || !body.take(&one.data, head.data_bytes)) {
      return wrong("pipeline", index);
    }
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    for (const auto& binding : one.bindings) {
      if (binding.set >= head.sets || !weir_kernels_is_buffer(binding.type) || binding.count == 0 ||
          binding.count > WEIR_KERNELS_DESCRIPTORS ||
          !seen.emplace(binding.set, binding.binding).second) {
        return wrong("pipeline", index);
      }
    }
    for (const auto& constant : one.constants) {
      if (constant.size > 8 || constant.offset > one.data.size() ||
          constant.size > one.data.size() - constant.offset) {
        return wrong("pipeline", index);
      }
    }
    const std::string_view field(head.entry_point, sizeof head.entry_point);
    if (field.find('\0') == std::string_view::npos) return wrong("pipeline", index);
    one.entry_point = field.substr(0, field.find('\0'));
    one.head.device = static_cast<std::uint32_t>(device - out.devices.data());
    out.pipelines.push_back(std::move(one));
    return {};
  }

  static bool fits(const weir_kernels_descriptor& one, const RecordedWork& work,
                   const RecordedPipeline& pipeline) {
    if (one.buffer != UINT32_MAX) {
      if (one.buffer >= work.buffers.size() || one.range == 0) return false;
      const std::uint64_t span = work.buffers[one.buffer].span;
      if (one.offset > span || one.range > span - one.offset) return false;
    }
    return std::ranges::any_of(pipeline.bindings, [&](const weir_kernels_binding& binding) {
      return binding.set == one.set && binding.binding == one.binding && binding.type == one.type &&
             one.element < binding.count;
    });
  }

  Result<void> work(std::uint32_t index, Bytes body) {
    weir_kernels_work head{};
    RecordedWork one;
    if (index >= counts_.size() / 8 || !body.take(&head) || head.pipeline >= out.pipelines.size() ||
        head.push_bytes > WEIR_KERNELS_PUSH_BYTES || head.buffers > WEIR_KERNELS_DESCRIPTORS ||
        head.descriptors > WEIR_KERNELS_DESCRIPTORS || !body.take(&one.buffers, head.buffers) ||
        !body.take(&one.descriptors, head.descriptors) || !body.take(&one.push, head.push_bytes)) {
      return wrong("work", index);
    }
    const RecordedPipeline& pipeline = out.pipelines[head.pipeline];
    std::set<std::array<std::uint32_t, 3>> seen;
    for (const auto& buffer : one.buffers) {
      if (buffer.span == 0 || buffer.span > buffer.whole) return wrong("work", index);
    }
    for (const auto& descriptor : one.descriptors) {
      if (!fits(descriptor, one, pipeline) ||
          !seen.insert({descriptor.set, descriptor.binding, descriptor.element}).second) {
        return wrong("work", index);
      }
    }
    if (one.push.size() > pipeline.head.push_bytes) return wrong("work", index);
    std::memcpy(&one.count, counts_.data() + std::size_t{index} * 8, sizeof one.count);
    if (one.count == 0) return {};  // its submission failed
    if (one.count > std::uint64_t{1} << 60) return wrong("the count of work", index);
    one.name = text_of({head.name, sizeof head.name});
    one.kernel = head.kernel;
    one.pipeline = head.pipeline;
    one.groups = {head.x, head.y, head.z};
    out.works.push_back(std::move(one));
    return {};
  }

  std::string_view counts_;
};

}  // namespace

Result<RecordedKernels> read_recorded_kernels(std::string_view bytes) {
  WEIR_TRY(const weir_kernels_header header,
           header_of<weir_kernels_header>(bytes, WEIR_KERNELS_HEADER_SIZE, WEIR_KERNELS_MAGIC,
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
    WEIR_CHECK(reader.take(record, bytes.substr(0, record.bytes)));
    bytes.remove_prefix(record.bytes);
  }
  return std::move(reader.out);
}

Result<RecordedKernels> read_recording(const sys::Files& files, const std::string& path,
                                       std::uint64_t most_bytes) {
  return files.read(path, most_bytes)
      .and_then([](const std::string& bytes) { return read_recorded_kernels(bytes); })
      .map_error(in_context(text::printable(sys::file_name_of(path))));
}

std::string_view left_out_words(std::size_t reason) {
  // By weir_kernels_left.
  constexpr std::string_view k_words[] = {"its group counts lie in the device's memory (indirect)",
                                          "its pipeline's code or layout is not known",
                                          "it binds more than plain buffers",
                                          "not all that it binds is known",
                                          "its groups are not counted from 0",
                                          "beyond the limits of the recording",
                                          "its code takes addresses of memory",
                                          "for a reason that this weir does not know"};
  return k_words[std::min(reason, std::size(k_words) - 1)];
}

Result<std::vector<std::string>> recorded_kernel_files(const sys::Files& files,
                                                       const std::string& folder) {
  WEIR_TRY(std::vector<std::string> out, files_named(files, folder, "", WEIR_KERNELS_SUFFIX));
  if (out.empty()) return fail(Code::data, "{}: no recorded kernels in it", folder);
  return out;
}

}  // namespace weir::probes
