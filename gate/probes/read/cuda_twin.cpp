// Lists what CUDA's twins have of their own: attributes of devices, libraries, and what follows
// from the compute capability by NVIDIA's tables (CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability").
#include <algorithm>
#include <array>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/runtime_api.hpp"
#include "gate/probes/read/runtime_kernels.hpp"
#include "gate/probes/read/twins.hpp"

namespace weir::probes {
namespace {

// CUdevice_attribute; names without CU_DEVICE_ATTRIBUTE_.
constexpr std::array k_cuda_attributes{
    RuntimeAttribute{1, "MAX_THREADS_PER_BLOCK", 1024},
    RuntimeAttribute{2, "MAX_BLOCK_DIM_X", 1024},
    RuntimeAttribute{3, "MAX_BLOCK_DIM_Y", 1024},
    RuntimeAttribute{4, "MAX_BLOCK_DIM_Z", 64},
    RuntimeAttribute{5, "MAX_GRID_DIM_X", 0x7fffffff},
    RuntimeAttribute{6, "MAX_GRID_DIM_Y", 65535},
    RuntimeAttribute{7, "MAX_GRID_DIM_Z", 65535},
    RuntimeAttribute{8, "MAX_SHARED_MEMORY_PER_BLOCK", 48 << 10},
    RuntimeAttribute{9, "TOTAL_CONSTANT_MEMORY", 64 << 10},
    RuntimeAttribute{10, "WARP_SIZE", 32},
    RuntimeAttribute{11, "MAX_PITCH", 0x7fffffff},
    RuntimeAttribute{12, "MAX_REGISTERS_PER_BLOCK", 65536},
    RuntimeAttribute{13, "CLOCK_RATE", 0},
    RuntimeAttribute{14, "TEXTURE_ALIGNMENT", 512},
    RuntimeAttribute{15, "GPU_OVERLAP", 1},
    RuntimeAttribute{16, "MULTIPROCESSOR_COUNT", 0},
    RuntimeAttribute{17, "KERNEL_EXEC_TIMEOUT", 0},
    RuntimeAttribute{18, "INTEGRATED", 0},
    RuntimeAttribute{19, "CAN_MAP_HOST_MEMORY", 1},
    RuntimeAttribute{20, "COMPUTE_MODE", 0},
    RuntimeAttribute{30, "SURFACE_ALIGNMENT", 512},
    RuntimeAttribute{31, "CONCURRENT_KERNELS", 1},
    RuntimeAttribute{32, "ECC_ENABLED", 0},
    RuntimeAttribute{33, "PCI_BUS_ID", 1},
    RuntimeAttribute{34, "PCI_DEVICE_ID", 0},
    RuntimeAttribute{35, "TCC_DRIVER", 0},
    RuntimeAttribute{36, "MEMORY_CLOCK_RATE", 0},
    RuntimeAttribute{37, "GLOBAL_MEMORY_BUS_WIDTH", 0},
    RuntimeAttribute{38, "L2_CACHE_SIZE", 0},
    RuntimeAttribute{39, "MAX_THREADS_PER_MULTIPROCESSOR", 0},
    RuntimeAttribute{40, "ASYNC_ENGINE_COUNT", 2},
    RuntimeAttribute{41, "UNIFIED_ADDRESSING", 1},
    RuntimeAttribute{50, "PCI_DOMAIN_ID", 0},
    RuntimeAttribute{51, "TEXTURE_PITCH_ALIGNMENT", 32},
    RuntimeAttribute{75, "COMPUTE_CAPABILITY_MAJOR", 0},
    RuntimeAttribute{76, "COMPUTE_CAPABILITY_MINOR", 0},
    RuntimeAttribute{78, "STREAM_PRIORITIES_SUPPORTED", 1},
    RuntimeAttribute{79, "GLOBAL_L1_CACHE_SUPPORTED", 1},
    RuntimeAttribute{80, "LOCAL_L1_CACHE_SUPPORTED", 1},
    RuntimeAttribute{81, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", 0},
    RuntimeAttribute{82, "MAX_REGISTERS_PER_MULTIPROCESSOR", 65536},
    RuntimeAttribute{83, "MANAGED_MEMORY", 1},
    RuntimeAttribute{87, "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO", 0},
    RuntimeAttribute{88, "PAGEABLE_MEMORY_ACCESS", 0},
    RuntimeAttribute{89, "CONCURRENT_MANAGED_ACCESS", 1},
    RuntimeAttribute{90, "COMPUTE_PREEMPTION_SUPPORTED", 1},
    RuntimeAttribute{91, "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM", 1},
    RuntimeAttribute{95, "COOPERATIVE_LAUNCH", 1},
    RuntimeAttribute{96, "COOPERATIVE_MULTI_DEVICE_LAUNCH", 1},
    RuntimeAttribute{97, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", 0},
    RuntimeAttribute{99, "HOST_REGISTER_SUPPORTED", 1},
    RuntimeAttribute{102, "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", 1},
    RuntimeAttribute{106, "MAX_BLOCKS_PER_MULTIPROCESSOR", 0},
    RuntimeAttribute{108, "MAX_PERSISTING_L2_CACHE_SIZE", 0},
    RuntimeAttribute{109, "MAX_ACCESS_POLICY_WINDOW_SIZE", 0},
    RuntimeAttribute{111, "RESERVED_SHARED_MEMORY_PER_BLOCK", 0},
    RuntimeAttribute{115, "MEMORY_POOLS_SUPPORTED", 1},
    RuntimeAttribute{120, "CLUSTER_LAUNCH", 0},
    RuntimeAttribute{125, "IPC_EVENT_SUPPORTED", 1},
    RuntimeAttribute{129, "UNIFIED_FUNCTION_POINTERS", 0},
};

// Limits of a multiprocessor, by compute capability; shared memory in KiB.
struct Capability {
  int major, minor, threads, blocks, shared, shared_of_block, reserved;
  [[nodiscard]] std::string text() const { return fmt::format("{}.{}", major, minor); }
};
constexpr std::array k_cuda_capabilities{
    Capability{5, 0, 2048, 32, 64, 48, 0},    Capability{5, 2, 2048, 32, 96, 48, 0},
    Capability{6, 0, 2048, 32, 64, 48, 0},    Capability{6, 1, 2048, 32, 96, 48, 0},
    Capability{7, 0, 2048, 32, 96, 96, 0},    Capability{7, 5, 1024, 16, 64, 64, 0},
    Capability{8, 0, 2048, 32, 164, 163, 1},  Capability{8, 6, 1536, 16, 100, 99, 1},
    Capability{8, 7, 1536, 16, 164, 163, 1},  Capability{8, 9, 1536, 24, 100, 99, 1},
    Capability{9, 0, 2048, 32, 228, 227, 1},  Capability{10, 0, 2048, 32, 228, 227, 1},
    Capability{10, 3, 2048, 32, 228, 227, 1}, Capability{11, 0, 1536, 24, 228, 227, 1},
    Capability{12, 0, 1536, 24, 100, 99, 1},  Capability{12, 1, 1536, 24, 100, 99, 1},
};

// Returns the attributes that all GPUs of one compute capability, such as "8.6", share. Fails for
// unknown ones.
Result<RuntimeGeneration> find_cuda_generation(const std::string& capability) {
  const auto* row = std::ranges::find_if(
      k_cuda_capabilities, [&](const Capability& entry) { return entry.text() == capability; });
  if (row == k_cuda_capabilities.end()) {
    return fail(Code::data, "\"{}\"; known here: {}", text::printable(capability),
                text::join(weir::collect<std::string>(k_cuda_capabilities, &Capability::text)));
  }
  constexpr int k_kib = 1 << 10;
  const auto number = [](int value) { return static_cast<std::uint64_t>(value); };
  return RuntimeGeneration{
      {row->major, row->minor},
      {{"COMPUTE_CAPABILITY_MAJOR", number(row->major)},
       {"COMPUTE_CAPABILITY_MINOR", number(row->minor)},
       {"MAX_THREADS_PER_MULTIPROCESSOR", number(row->threads)},
       {"MAX_BLOCKS_PER_MULTIPROCESSOR", number(row->blocks)},
       {"MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", number(row->shared * k_kib)},
       {"MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", number(row->shared_of_block * k_kib)},
       {"RESERVED_SHARED_MEMORY_PER_BLOCK", number(row->reserved * k_kib)},
       {"CLUSTER_LAUNCH", row->major >= 9 ? 1U : 0U}}};
}

// --- libraries

// NVRTC, nvJitLink and ptxas stay real: they need no GPU.
constexpr std::array k_cuda_names = {
    "libcudart.so.12",   "libcudart.so.13",   "libcublas.so.12",   "libcublas.so.13",
    "libcublasLt.so.12", "libcublasLt.so.13", "libcuda.so.1",      "libnccl.so.2",
    "libnvidia-ml.so.1", "libcudnn.so.9",     "libcufft.so.11",    "libcufft.so.12",
    "libcusolver.so.11", "libcusolver.so.12", "libcusparse.so.12", "libcusparseLt.so.0",
    "libcufile.so.0",    "libcupti.so.12",    "libcupti.so.13",    "libnvshmem_host.so.3"};
constexpr std::array k_cuda_opened = {"libcuda.so.1", "libnvidia-ml.so.1"};
constexpr std::array<std::string_view, 15> k_cuda_stems = {
    "libcuda.so",   "libcudart.so", "libcublas", "libnccl.so",      "libcufft",
    "libcusparse",  "libcusolver",  "libcurand", "libcudnn",        "libnvrtc",
    "libnvJitLink", "libcufile",    "libcupti",  "libnvshmem_host", "libnvidia-ml.so"};
constexpr std::array<std::string_view, 5> k_cuda_prefixes = {"cu", "__cuda", "nccl", "nvml",
                                                             "nvshmem"};

bool is_cuda_function(std::string_view name) {
  const bool is_driver_call =
      name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
  constexpr std::array<std::string_view, 11> k_starts = {"cuda",  "__cuda",   "cublas",   "cudnn",
                                                         "cufft", "cusolver", "cusparse", "cupti",
                                                         "nccl",  "nvml",     "nvshmem"};
  return is_driver_call || std::ranges::any_of(k_starts, [&](std::string_view start) {
           return name.starts_with(start);
         });
}

}  // namespace

const RuntimeApi k_cuda_runtime{
    .name = "cuda",
    .title = "CUDA",
    .section = &Twin::cuda,
    .generation_key = "compute_capability",
    .find_generation = find_cuda_generation,
    .driver_version = 13000,
    .multiprocessors = "MULTIPROCESSOR_COUNT",
    .attributes = k_cuda_attributes,
    .library = "libweir_twin_cuda.so",
    .names = k_cuda_names,
    .opened = k_cuda_opened,
    .stems = k_cuda_stems,
    .runtime = "libcudart.so",
    .prefixes = k_cuda_prefixes,
    .is_function = is_cuda_function,
    .link_advice = "nvcc --cudart shared; CMake: CUDA_RUNTIME_LIBRARY Shared",
    .code_section = k_cuda_code_section,
    .reader = k_cuda_reader,
    .read_kernels = read_cuda_kernels};

}  // namespace weir::probes
