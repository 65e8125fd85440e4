// Collects facts about the code of recorded kernels, and writes recordings of one kernel.
#include "gate/probes/read/code_facts.hpp"

#include "gate/base/text.hpp"

namespace weir::probes {
namespace {

// The constant as a signed integer, whatever type the shader gives it.
std::string constant_text(const weir_kernels_constant& constant, const std::string& data) {
  std::int64_t value = 0;
  std::memcpy(&value, data.data() + constant.offset, constant.size);
  if (constant.size == 4) value = static_cast<std::int32_t>(value);
  return fmt::format("{}", value);
}

// Lists what specializes a pipeline's code, by name: constants, and options that differ from the
// default.
std::map<std::string, std::string> list_options(const RecordedPipeline& pipeline) {
  std::map<std::string, std::string> options;
  const auto add_unless_zero = [&](const char* name, std::uint64_t value) {
    if (value != 0) options[name] = fmt::format("{}", value);
  };
  for (const weir_kernels_constant& constant : pipeline.constants) {
    options[fmt::format("constant {}", constant.id)] = constant_text(constant, pipeline.data);
  }
  std::uint64_t descriptors = 0;
  for (const weir_kernels_binding& binding : pipeline.bindings) descriptors += binding.count;
  add_unless_zero("subgroup size", pipeline.head.subgroup_size);
  add_unless_zero("pipeline flags", pipeline.head.flags);
  add_unless_zero("stage flags", pipeline.head.stage_flags);
  add_unless_zero("descriptors", descriptors);
  add_unless_zero("push constant bytes", pipeline.head.push_bytes);
  if (pipeline.entry_point != "main")
    options["entry point"] = text::printable(pipeline.entry_point);
  return options;
}

// Writes a file of recorded kernels, as the Vulkan layer does: a header and records.
class RecordWriter {
 public:
  template <class Head>
  void add(std::uint32_t kind, std::uint32_t index, const Head& head, std::string_view tail = {}) {
    add(kind, index, std::string(reinterpret_cast<const char*>(&head), sizeof head).append(tail));
  }
  void add(std::uint32_t kind, std::uint32_t index, std::string body) {
    body.resize((body.size() + 7) / 8 * 8);
    const weir_kernels_record record{kind, index, body.size()};
    records_.append(reinterpret_cast<const char*>(&record), sizeof record).append(body);
  }
  [[nodiscard]] std::string file() const {
    weir_kernels_header header{};
    std::memcpy(header.magic, WEIR_KERNELS_MAGIC, sizeof header.magic);
    header.version = WEIR_KERNELS_VERSION;
    header.header_size = WEIR_KERNELS_HEADER_SIZE;
    header.used = records_.size();
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.resize(WEIR_KERNELS_HEADER_SIZE);
    return bytes + records_;
  }

 private:
  std::string records_;
};

template <class T>
std::string_view raw_bytes(const std::vector<T>& list) {
  return {reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T)};
}

}  // namespace

std::string pipeline_hash(const RecordedPipeline& pipeline) {
  return profile::code_hash(pipeline.head.identity);
}

std::map<std::string, profile::CodeFacts> code_facts(const RecordedKernels& recorded) {
  std::map<std::string, profile::CodeFacts> facts;
  for (const RecordedPipeline& pipeline : recorded.pipelines) {
    profile::CodeFacts& entry = facts[pipeline_hash(pipeline)];
    entry.source = profile::code_hash(recorded.codes[pipeline.head.code].hash);
    entry.options = list_options(pipeline);
  }
  return facts;
}

// Returns the bytes of a recording with pipeline number `index` alone: records of its device,
// extensions, features and code, and the pipeline itself.
std::string single_pipeline_recording(const RecordedKernels& recorded, std::size_t index) {
  const RecordedPipeline& pipeline = recorded.pipelines[index];
  const RecordedDevice& device = recorded.devices[pipeline.head.device];
  const RecordedCode& code = recorded.codes[pipeline.head.code];
  RecordWriter out;
  out.add(WEIR_KERNELS_DEVICE, 0, weir_kernels_device{device.api_version, 0});
  for (const std::string& name : device.extensions) {
    out.add(WEIR_KERNELS_EXTENSION, 0, name + '\0');
  }
  for (const RecordedFeatures& features : device.features) {
    const auto bytes = static_cast<std::uint32_t>(features.values.size());
    out.add(WEIR_KERNELS_FEATURES, 0, weir_kernels_features{features.type, bytes}, features.values);
  }
  out.add(WEIR_KERNELS_CODE, 0, weir_kernels_code{code.hash, code.words.size() * 4},
          raw_bytes(code.words));
  weir_kernels_pipeline head = pipeline.head;
  head.code = 0;
  head.device = 0;
  out.add(WEIR_KERNELS_PIPELINE, 0, head,
          std::string(raw_bytes(pipeline.bindings)).append(raw_bytes(pipeline.constants)) +
              pipeline.data);
  return out.file();
}

}  // namespace weir::probes
