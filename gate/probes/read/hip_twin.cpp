// Lists what HIP's twins have of their own: attributes of devices, libraries, and what follows from
// the GPU's target. Sources: ROCm 6.3's hip_runtime_api.h for the numbers; ROCm/clr for the answers
// (hipamd/src/hip_device.cpp, rocclr/device/rocm/rocdevice.cpp), where not said otherwise.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/runtime_api.hpp"
#include "gate/probes/read/runtime_kernels.hpp"
#include "gate/probes/read/twins.hpp"

namespace weir::probes {
namespace {

// hipDeviceAttribute_t; names without hipDeviceAttribute. AMD's own, from 10000, are left out.
constexpr std::array k_hip_attributes{
    RuntimeAttribute{0, "EccEnabled", 0},
    RuntimeAttribute{1, "AccessPolicyMaxWindowSize", 0},
    RuntimeAttribute{2, "AsyncEngineCount", 8},
    RuntimeAttribute{3, "CanMapHostMemory", 1},
    RuntimeAttribute{4, "CanUseHostPointerForRegisteredMem", 0},
    RuntimeAttribute{5, "ClockRate", 0},
    RuntimeAttribute{6, "ComputeMode", 0},
    RuntimeAttribute{7, "ComputePreemptionSupported", 0},
    RuntimeAttribute{8, "ConcurrentKernels", 1},
    RuntimeAttribute{9, "ConcurrentManagedAccess", 1},
    RuntimeAttribute{10, "CooperativeLaunch", 1},
    RuntimeAttribute{11, "CooperativeMultiDeviceLaunch", 1},
    RuntimeAttribute{12, "DeviceOverlap", 1},
    RuntimeAttribute{13, "DirectManagedMemAccessFromHost", 0},
    RuntimeAttribute{14, "GlobalL1CacheSupported", 1},
    RuntimeAttribute{15, "HostNativeAtomicSupported", 1},
    RuntimeAttribute{16, "Integrated", 0},
    RuntimeAttribute{17, "IsMultiGpuBoard", 0},
    RuntimeAttribute{18, "KernelExecTimeout", 0},
    RuntimeAttribute{19, "L2CacheSize", 0},
    RuntimeAttribute{20, "LocalL1CacheSupported", 1},
    RuntimeAttribute{23, "ComputeCapabilityMajor", 0},
    RuntimeAttribute{24, "ManagedMemory", 1},
    RuntimeAttribute{25, "MaxBlocksPerMultiProcessor", 2},
    RuntimeAttribute{26, "MaxBlockDimX", 1024},
    RuntimeAttribute{27, "MaxBlockDimY", 1024},
    RuntimeAttribute{28, "MaxBlockDimZ", 1024},
    RuntimeAttribute{29, "MaxGridDimX", 0x7fffffff},
    RuntimeAttribute{30, "MaxGridDimY", 65535},
    RuntimeAttribute{31, "MaxGridDimZ", 65535},
    RuntimeAttribute{39, "MaxTexture1DWidth", 16384},
    RuntimeAttribute{43, "MaxTexture2DWidth", 16384},
    RuntimeAttribute{44, "MaxTexture2DHeight", 16384},
    RuntimeAttribute{49, "MaxTexture3DWidth", 16384},
    RuntimeAttribute{50, "MaxTexture3DHeight", 16384},
    RuntimeAttribute{51, "MaxTexture3DDepth", 8192},
    RuntimeAttribute{56, "MaxThreadsPerBlock", 1024},
    RuntimeAttribute{57, "MaxThreadsPerMultiProcessor", 0},
    RuntimeAttribute{58, "MaxPitch", 0x7fffffff},
    RuntimeAttribute{59, "MemoryBusWidth", 0},
    RuntimeAttribute{60, "MemoryClockRate", 0},
    RuntimeAttribute{61, "ComputeCapabilityMinor", 0},
    RuntimeAttribute{63, "MultiprocessorCount", 0},
    RuntimeAttribute{65, "PageableMemoryAccess", 0},
    RuntimeAttribute{66, "PageableMemoryAccessUsesHostPageTables", 0},
    RuntimeAttribute{67, "PciBusId", 1},
    RuntimeAttribute{68, "PciDeviceId", 0},
    RuntimeAttribute{69, "PciDomainID", 0},
    RuntimeAttribute{70, "PersistingL2CacheMaxSize", 0},
    RuntimeAttribute{71, "MaxRegistersPerBlock", 65536},
    RuntimeAttribute{72, "MaxRegistersPerMultiprocessor", 65536},
    RuntimeAttribute{73, "ReservedSharedMemPerBlock", 0},
    RuntimeAttribute{74, "MaxSharedMemoryPerBlock", 0},
    RuntimeAttribute{75, "SharedMemPerBlockOptin", 0},
    // clr of ROCm 6 multiplies it by the number of multiprocessors.
    RuntimeAttribute{76, "SharedMemPerMultiprocessor", 0},
    RuntimeAttribute{78, "StreamPrioritiesSupported", 1},
    RuntimeAttribute{79, "SurfaceAlignment", 256},
    RuntimeAttribute{80, "TccDriver", 0},
    RuntimeAttribute{81, "TextureAlignment", 256},
    RuntimeAttribute{82, "TexturePitchAlignment", 256},
    RuntimeAttribute{83, "TotalConstantMemory", 0x7fffffff},
    RuntimeAttribute{85, "UnifiedAddressing", 1},
    RuntimeAttribute{87, "WarpSize", 0},
    RuntimeAttribute{88, "MemoryPoolsSupported", 1},
    RuntimeAttribute{89, "VirtualMemoryManagementSupported", 1},
    RuntimeAttribute{90, "HostRegisterSupported", 1},
    RuntimeAttribute{91, "MemoryPoolSupportedHandleTypes", 1},
};

// Answers of HIP for targets that begin so; the first that fits counts. Shared memory in KiB. A
// multiprocessor of gfx10 and later is two compute units (WGP mode).
struct HipGeneration {
  std::string_view target;
  int threads_per_wave, threads, shared_kib;
};
constexpr std::array k_hip_generations{
    HipGeneration{"gfx950", 64, 2048, 160}, HipGeneration{"gfx90a", 64, 2048, 64},
    HipGeneration{"gfx94", 64, 2048, 64},   HipGeneration{"gfx90", 64, 2560, 64},
    HipGeneration{"gfx101", 32, 2560, 64},  HipGeneration{"gfx103", 32, 2048, 64},
    HipGeneration{"gfx11", 32, 2048, 64},   HipGeneration{"gfx120", 32, 2048, 64},
};

// Returns the compute capability that HIP gives a GPU: "gfx90a" is 9.0, "gfx1151" is 11.5. Nothing
// for names of several GPUs, such as "gfx11-generic".
std::optional<std::pair<int, int>> read_capability(std::string_view target) {
  constexpr std::string_view k_prefix = "gfx", k_digits = "0123456789abcdef",
                             k_features = "abcdefghijklmnopqrstuvwxyz0123456789+-:";
  constexpr std::size_t k_longest = 63;
  if (!target.starts_with(k_prefix) || target.size() > k_longest ||
      target.find_first_not_of(k_features) != std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view number = target.substr(0, target.find(':'));
  number.remove_prefix(k_prefix.size());
  const bool is_number = number.find_first_not_of(k_digits) == std::string_view::npos;
  if (!is_number || number.size() < 3 || number.size() > 4) return std::nullopt;
  const std::size_t minor_at = number.size() - 2;  // the last digit is the stepping
  int major = 0;
  for (const char digit : number.substr(0, minor_at)) {
    major = 10 * major + static_cast<int>(k_digits.find(digit));
  }
  return std::pair(major, static_cast<int>(k_digits.find(number[minor_at])));
}

// Returns the attributes that all GPUs of one target, such as "gfx90a", share. Fails for unknown
// ones.
Result<RuntimeGeneration> find_hip_generation(const std::string& target) {
  const auto capability = read_capability(target);
  const auto* row = std::ranges::find_if(k_hip_generations, [&](const HipGeneration& entry) {
    return target.starts_with(entry.target);
  });
  if (!capability || row == k_hip_generations.end()) {
    std::vector<std::string> targets;
    for (const HipGeneration& entry : k_hip_generations) targets.emplace_back(entry.target);
    return fail(Code::data, "\"{}\"; known here: targets that begin with {}",
                text::printable(target), text::join(targets));
  }
  const auto number = [](int value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t shared_bytes = number(row->shared_kib) * 1024;
  return RuntimeGeneration{{capability->first, capability->second, target},
                           {{"ComputeCapabilityMajor", number(capability->first)},
                            {"ComputeCapabilityMinor", number(capability->second)},
                            {"WarpSize", number(row->threads_per_wave)},
                            {"MaxThreadsPerMultiProcessor", number(row->threads)},
                            {"MaxSharedMemoryPerBlock", shared_bytes},
                            {"SharedMemPerBlockOptin", shared_bytes},
                            {"SharedMemPerMultiprocessor", shared_bytes}}};
}

// --- libraries

constexpr std::array k_hip_names = {"libamdhip64.so.6",  "libamdhip64.so.7", "libhipblas.so.2",
                                    "libhipblas.so.3",   "librocblas.so.4",  "librocblas.so.5",
                                    "libhipblaslt.so.0", "libhipblaslt.so.1"};
// Wheels hold copies of other names: "libamdhip64-1ce46982.so.6".
constexpr std::array<std::string_view, 15> k_hip_stems = {
    "libamdhip64",  "libhipblas", "librocblas",   "libhsa-runtime64", "libhiprtc",
    "libhipfft",    "librocfft",  "libhipsparse", "librocsparse",     "libhipsolver",
    "librocsolver", "libhiprand", "librocrand",   "libMIOpen",        "librccl"};
constexpr std::array<std::string_view, 4> k_hip_prefixes = {"hip", "__hip", "rocblas_", "nccl"};

bool is_hip_function(std::string_view name) {
  const bool is_runtime_call =
      name.size() > 3 && name.starts_with("hip") && name[3] >= 'A' && name[3] <= 'Z';
  return is_runtime_call || name.starts_with("__hip") || name.starts_with("hipblas") ||
         name.starts_with("rocblas_") || name.starts_with("nccl");
}

}  // namespace

const RuntimeApi k_hip_runtime{.name = "hip",
                               .title = "HIP",
                               .section = &Twin::hip,
                               .generation_key = "target",
                               .find_generation = find_hip_generation,
                               .driver_version = 60300000,
                               .multiprocessors = "MultiprocessorCount",
                               .attributes = k_hip_attributes,
                               .library = "libweir_twin_hip.so",
                               .names = k_hip_names,
                               .opened = {},
                               .stems = k_hip_stems,
                               .runtime = "libamdhip64",
                               .prefixes = k_hip_prefixes,
                               .is_function = is_hip_function,
                               .link_advice = "libamdhip64.so, not libamdhip64.a",
                               .code_section = k_hip_code_section,
                               .reader = k_hip_reader,
                               .read_kernels = read_hip_kernels};

}  // namespace weir::probes
