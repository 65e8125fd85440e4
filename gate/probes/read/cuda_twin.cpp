// Compiles the CUDA part of a GPU's description, with tables of attributes and capabilities.
#include "gate/probes/read/cuda_twin.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/twin_values.hpp"
#include "gate/probes/twin/runtime/blob.h"

namespace weir::probes {
namespace {

constexpr std::array k_attributes{
    CudaAttribute{1, "MAX_THREADS_PER_BLOCK", 1024},
    CudaAttribute{2, "MAX_BLOCK_DIM_X", 1024},
    CudaAttribute{3, "MAX_BLOCK_DIM_Y", 1024},
    CudaAttribute{4, "MAX_BLOCK_DIM_Z", 64},
    CudaAttribute{5, "MAX_GRID_DIM_X", 0x7fffffff},
    CudaAttribute{6, "MAX_GRID_DIM_Y", 65535},
    CudaAttribute{7, "MAX_GRID_DIM_Z", 65535},
    CudaAttribute{8, "MAX_SHARED_MEMORY_PER_BLOCK", 48 << 10},
    CudaAttribute{9, "TOTAL_CONSTANT_MEMORY", 64 << 10},
    CudaAttribute{10, "WARP_SIZE", 32},
    CudaAttribute{11, "MAX_PITCH", 0x7fffffff},
    CudaAttribute{12, "MAX_REGISTERS_PER_BLOCK", 65536},
    CudaAttribute{13, "CLOCK_RATE", 0},
    CudaAttribute{14, "TEXTURE_ALIGNMENT", 512},
    CudaAttribute{15, "GPU_OVERLAP", 1},
    CudaAttribute{16, "MULTIPROCESSOR_COUNT", 0},
    CudaAttribute{17, "KERNEL_EXEC_TIMEOUT", 0},
    CudaAttribute{18, "INTEGRATED", 0},
    CudaAttribute{19, "CAN_MAP_HOST_MEMORY", 1},
    CudaAttribute{20, "COMPUTE_MODE", 0},
    CudaAttribute{30, "SURFACE_ALIGNMENT", 512},
    CudaAttribute{31, "CONCURRENT_KERNELS", 1},
    CudaAttribute{32, "ECC_ENABLED", 0},
    CudaAttribute{33, "PCI_BUS_ID", 1},
    CudaAttribute{34, "PCI_DEVICE_ID", 0},
    CudaAttribute{35, "TCC_DRIVER", 0},
    CudaAttribute{36, "MEMORY_CLOCK_RATE", 0},
    CudaAttribute{37, "GLOBAL_MEMORY_BUS_WIDTH", 0},
    CudaAttribute{38, "L2_CACHE_SIZE", 0},
    CudaAttribute{39, "MAX_THREADS_PER_MULTIPROCESSOR", 0},
    CudaAttribute{40, "ASYNC_ENGINE_COUNT", 2},
    CudaAttribute{41, "UNIFIED_ADDRESSING", 1},
    CudaAttribute{50, "PCI_DOMAIN_ID", 0},
    CudaAttribute{51, "TEXTURE_PITCH_ALIGNMENT", 32},
    CudaAttribute{75, "COMPUTE_CAPABILITY_MAJOR", 0},
    CudaAttribute{76, "COMPUTE_CAPABILITY_MINOR", 0},
    CudaAttribute{78, "STREAM_PRIORITIES_SUPPORTED", 1},
    CudaAttribute{79, "GLOBAL_L1_CACHE_SUPPORTED", 1},
    CudaAttribute{80, "LOCAL_L1_CACHE_SUPPORTED", 1},
    CudaAttribute{81, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", 0},
    CudaAttribute{82, "MAX_REGISTERS_PER_MULTIPROCESSOR", 65536},
    CudaAttribute{83, "MANAGED_MEMORY", 1},
    CudaAttribute{87, "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO", 0},
    CudaAttribute{88, "PAGEABLE_MEMORY_ACCESS", 0},
    CudaAttribute{89, "CONCURRENT_MANAGED_ACCESS", 1},
    CudaAttribute{90, "COMPUTE_PREEMPTION_SUPPORTED", 1},
    CudaAttribute{91, "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM", 1},
    CudaAttribute{95, "COOPERATIVE_LAUNCH", 1},
    CudaAttribute{96, "COOPERATIVE_MULTI_DEVICE_LAUNCH", 1},
    CudaAttribute{97, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", 0},
    CudaAttribute{99, "HOST_REGISTER_SUPPORTED", 1},
    CudaAttribute{102, "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", 1},
    CudaAttribute{106, "MAX_BLOCKS_PER_MULTIPROCESSOR", 0},
    CudaAttribute{108, "MAX_PERSISTING_L2_CACHE_SIZE", 0},
    CudaAttribute{109, "MAX_ACCESS_POLICY_WINDOW_SIZE", 0},
    CudaAttribute{111, "RESERVED_SHARED_MEMORY_PER_BLOCK", 0},
    CudaAttribute{115, "MEMORY_POOLS_SUPPORTED", 1},
    CudaAttribute{120, "CLUSTER_LAUNCH", 0},
    CudaAttribute{125, "IPC_EVENT_SUPPORTED", 1},
    CudaAttribute{129, "UNIFIED_FUNCTION_POINTERS", 0},
};

// Limits of a multiprocessor, by compute capability; shared memory in KiB.
struct Capability {
  int major, minor, threads, blocks, shared, shared_of_block, reserved;
  [[nodiscard]] std::string text() const { return fmt::format("{}.{}", major, minor); }
};
constexpr std::array k_capabilities{
    Capability{5, 0, 2048, 32, 64, 48, 0},    Capability{5, 2, 2048, 32, 96, 48, 0},
    Capability{6, 0, 2048, 32, 64, 48, 0},    Capability{6, 1, 2048, 32, 96, 48, 0},
    Capability{7, 0, 2048, 32, 96, 96, 0},    Capability{7, 5, 1024, 16, 64, 64, 0},
    Capability{8, 0, 2048, 32, 164, 163, 1},  Capability{8, 6, 1536, 16, 100, 99, 1},
    Capability{8, 7, 1536, 16, 164, 163, 1},  Capability{8, 9, 1536, 24, 100, 99, 1},
    Capability{9, 0, 2048, 32, 228, 227, 1},  Capability{10, 0, 2048, 32, 228, 227, 1},
    Capability{10, 3, 2048, 32, 228, 227, 1}, Capability{11, 0, 1536, 24, 228, 227, 1},
    Capability{12, 0, 1536, 24, 100, 99, 1},  Capability{12, 1, 1536, 24, 100, 99, 1},
};

// Writes the CUDA part of a description to the bytes that the twin's libraries map.
class Compiler {
 public:
  Compiler(const Twin& twin, CudaTwin& out)
      : cuda_(twin.cuda), read_(cuda_, fmt::format("{}: weir.cuda", twin.name)), out_(out) {}

  // Compiles a twin with `devices` GPUs.
  Result<void> compile(std::int64_t devices) {
    blob_.magic = WEIR_RUNTIME_TWIN_MAGIC;
    blob_.bytes = sizeof blob_;
    blob_.devices = static_cast<std::uint32_t>(devices);
    out_.name = text::printable(read_.string("name")).substr(0, sizeof blob_.name - 1);
    std::memcpy(blob_.name, out_.name.data(), out_.name.size());
    blob_.total_bytes = to_unsigned(read_.integer("memory_bytes"));
    blob_.used_bytes = to_unsigned(read_.optional_integer("used_bytes").value_or(0));
    constexpr std::int64_t k_driver = 13000;
    blob_.driver_version = static_cast<std::int32_t>(std::clamp<std::int64_t>(
        read_.optional_integer("driver_version").value_or(k_driver), 0, 99999));
    blob_.peers = read_.optional_boolean("peer_access").value_or(false) ? 1 : 0;
    WEIR_CHECK(read_capability());
    set("MULTIPROCESSOR_COUNT", to_unsigned(read_.integer("multiprocessors")));
    WEIR_CHECK(read_attributes());
    if (auto problem = read_.problem()) return tl::unexpected(std::move(*problem));
    out_.blob.assign(reinterpret_cast<const char*>(&blob_), sizeof blob_);
    return {};
  }

 private:
  // The value, or 0 for a negative one.
  static std::uint64_t to_unsigned(std::int64_t value) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
  }
  // Sets an attribute of the table, at most to the largest int.
  void set(std::string_view name, std::uint64_t value) {
    const auto* attribute = find_named(k_attributes, name);
    blob_.attributes[attribute->number] =
        static_cast<std::int32_t>(std::min<std::uint64_t>(value, 0x7fffffff));
  }

  // Sets all attributes to their defaults, then those that depend on the compute capability.
  Result<void> read_capability() {
    const std::string text = read_.string("compute_capability");
    if (auto problem = read_.problem()) return tl::unexpected(std::move(*problem));
    const auto* capability = std::ranges::find_if(
        k_capabilities, [&](const Capability& row) { return row.text() == text; });
    if (capability == k_capabilities.end()) {
      return fail(Code::data, "weir.cuda.compute_capability: \"{}\"; known here: {}",
                  text::printable(text),
                  text::join(weir::collect<std::string>(k_capabilities, &Capability::text)));
    }
    out_.major = capability->major;
    out_.minor = capability->minor;
    for (const CudaAttribute& attribute : k_attributes) {
      blob_.attributes[attribute.number] = attribute.value;
    }
    constexpr int k_kib = 1 << 10;
    const auto number = [](int value) { return static_cast<std::uint64_t>(value); };
    set("COMPUTE_CAPABILITY_MAJOR", number(capability->major));
    set("COMPUTE_CAPABILITY_MINOR", number(capability->minor));
    set("MAX_THREADS_PER_MULTIPROCESSOR", number(capability->threads));
    set("MAX_BLOCKS_PER_MULTIPROCESSOR", number(capability->blocks));
    set("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", number(capability->shared * k_kib));
    set("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", number(capability->shared_of_block * k_kib));
    set("RESERVED_SHARED_MEMORY_PER_BLOCK", number(capability->reserved * k_kib));
    set("CLUSTER_LAUNCH", capability->major >= 9 ? 1 : 0);
    return {};
  }

  // Sets the attributes that the description overrides.
  Result<void> read_attributes() {
    const Json& attributes = member_or_null(cuda_, "attributes");
    if (attributes.is_null()) return {};
    if (!attributes.is_object()) return fail(Code::data, "weir.cuda.attributes: no object");
    for (const auto& [name, value] : attributes.items()) {
      if (find_named(k_attributes, name) == nullptr) {
        return fail(Code::data, "weir.cuda.attributes: \"{}\" is none that is known here",
                    text::printable(name));
      }
      if (!value.is_number_unsigned()) {
        return fail(Code::data, "weir.cuda.attributes.{}: no whole number", name);
      }
      set(name, value.get<std::uint64_t>());
    }
    return {};
  }

  const Json& cuda_;
  JsonReader read_;
  CudaTwin& out_;
  weir_runtime_twin blob_{};
};

}  // namespace

std::span<const CudaAttribute> cuda_attributes() { return k_attributes; }

Result<CudaTwin> compile_cuda_twin(const Twin& twin, std::int64_t devices) {
  if (!twin.cuda.is_object()) {
    return fail(Code::data, "{}: it is described for Vulkan alone (no weir.cuda)", twin.name);
  }
  CudaTwin out;
  WEIR_CHECK(Compiler(twin, out).compile(devices));
  return out;
}

}  // namespace weir::probes
