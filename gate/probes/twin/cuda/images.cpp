// The code of CUDA that a driver would load, its limits at a launch, and its occupancy.
#include <unistd.h>

#include "gate/probes/inject/writer/system.h"
#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

int round_up(int value, int step) { return (value + step - 1) / step * step; }
int min(int a, int b) { return a < b ? a : b; }

// --- Images. A fat binary contains code for several GPUs. Each entry is machine code for one
// (ELF), or PTX, which the driver compiles for that GPU and newer ones. The format is not
// documented; this one was derived from binaries of nvcc 12.4 to 13.1.
struct FatHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;
};
struct FatEntry {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;
  uint32_t compressed_bytes, unknown;
  uint16_t minor, major;
  uint32_t arch;
};
struct FatWrapper {
  uint32_t magic, version;
  const FatHeader* data;
  void* linked;
};
constexpr uint32_t k_wrapper_magic = 0x466243b1, k_fat_magic = 0xba55ed50;
enum Kind : uint16_t { k_ptx = 1, k_machine_code = 2 };

}  // namespace

// Chooses the image (code for one GPU) that a driver would load: the newest machine code of the
// same major and at most this minor version. Else it is the newest PTX that is not newer than the
// GPU.
Module choose_image(const void* binary) {
  Module best{};
  const auto* wrapper = static_cast<const FatWrapper*>(binary);
  if (wrapper == nullptr || wrapper->magic != k_wrapper_magic || wrapper->data == nullptr ||
      wrapper->data->magic != k_fat_magic) {
    report_not_counting("cuda twin", "a fat binary that it cannot read", "", 0);
    return best;
  }
  const int major = attribute(k_major);
  const int gpu_arch = 10 * major + attribute(k_minor);
  const FatHeader* fat = wrapper->data;
  const auto* position = reinterpret_cast<const char*>(fat) + fat->header_bytes;
  const char* const end = position + fat->bytes;
  while (position + sizeof(FatEntry) <= end) {
    const auto* entry = reinterpret_cast<const FatEntry*>(position);
    const int arch = static_cast<int>(entry->arch);
    const bool is_code = entry->kind == k_machine_code;
    const bool has_usable_kind = is_code ? arch / 10 == major : entry->kind == k_ptx;
    const bool fits = has_usable_kind && arch <= gpu_arch;
    const bool is_better = is_code != best.machine_code ? is_code : arch > best.arch;
    if (fits && (best.arch == 0 || is_better)) best = {arch, is_code, 0};
    if (entry->header_bytes == 0) break;
    position += entry->header_bytes + entry->bytes;
  }
  return best;
}

void print_no_image() {
  print_line(STDERR_FILENO,
             "weir: the CUDA twin has compute capability %d.%d: no kernel image is available, the "
             "engine has no code for it\n",
             attribute(k_major), attribute(k_minor));
}

// Returns the error that NVIDIA's driver would give for a launch; 0 if it would run it. Looks at
// sizes of grid and block, shared memory and registers.
int check_launch(const Function& function, Size3 grid, Size3 block, size_t shared) {
  if (function.module.arch == 0) return report_no_image();
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const uint64_t max_blocks[3] = {static_cast<uint64_t>(attribute(k_max_grid_x)), 65535, 65535};
  if (threads == 0 || threads > static_cast<uint64_t>(attribute(k_max_threads_per_block)) ||
      grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > max_blocks[0] ||
      grid.y > max_blocks[1] || grid.z > max_blocks[2]) {
    return k_invalid_configuration;
  }
  const weir_runtime_kernel* facts = function.facts;
  const int allowed = __atomic_load_n(&function.dynamic_shared, __ATOMIC_RELAXED);
  const size_t static_shared = facts == nullptr ? 0 : facts->shared_bytes;
  const auto default_limit = static_cast<size_t>(attribute(k_shared_per_block));
  if (shared + static_shared > default_limit && shared > static_cast<size_t>(allowed)) {
    return k_invalid_value;
  }
  if (!is_exact(facts)) return k_ok;
  const auto registers = static_cast<uint64_t>(attribute(k_registers_per_block));
  if (threads * facts->registers > registers ||
      (facts->max_threads != 0 && threads > facts->max_threads)) {
    return k_out_of_resources;
  }
  return k_ok;
}

// Returns how many blocks of `threads` a multiprocessor runs at once; 0 if none fits. As NVIDIA's
// occupancy calculator: warps get registers in units of 256. Blocks get shared memory in units of
// 128 bytes (256 before compute capability 8.0), plus the system's 1 KiB since then.
int resident_blocks(const Function& function, int threads, size_t dynamic_shared) {
  constexpr int k_warp = 32, k_unit = 256;
  const int major = attribute(k_major);
  const int parts = major == 6 && attribute(k_minor) == 0 ? 2 : 4;
  const int64_t shared_unit = major < 8 ? 256 : 128;
  const weir_runtime_kernel* facts = function.facts;
  const int registers = facts == nullptr ? k_guessed_registers : static_cast<int>(facts->registers);
  const int warps = round_up(threads, k_warp) / k_warp;
  const int64_t static_shared = facts == nullptr ? 0 : facts->shared_bytes;
  if (warps <= 0 || threads > max_block_threads(function) ||
      dynamic_shared > static_cast<size_t>(attribute(k_shared_per_block_optin)) ||
      (is_exact(facts) && static_cast<int64_t>(dynamic_shared) + static_shared >
                              attribute(k_shared_per_block_optin))) {
    return 0;
  }
  int blocks =
      min(attribute(k_blocks_per_processor), attribute(k_threads_per_processor) / k_warp / warps);
  if (registers > 0) {
    const int warp_registers = round_up(registers * k_warp, k_unit);
    const int resident_warps =
        attribute(k_registers_per_processor) / warp_registers / parts * parts;
    blocks = min(blocks, resident_warps / warps);
  }
  const int64_t shared =
      static_cast<int64_t>(dynamic_shared) + static_shared + attribute(k_reserved_shared);
  if (shared > 0) {
    const int64_t block_shared = (shared + shared_unit - 1) / shared_unit * shared_unit;
    blocks = min(blocks, static_cast<int>(attribute(k_shared_per_processor) / block_shared));
  }
  return blocks;
}

}  // namespace weir_probe::runtime_twin
