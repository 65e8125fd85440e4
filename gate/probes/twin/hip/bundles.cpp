// The code of HIP that a runtime would load, its limits at a launch, and its occupancy.
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "gate/probes/amd_target.h"
#include "gate/probes/inject/writer/old_symbols.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

// --- Bundles, after clang's ClangOffloadBundler: entries name the targets that they have code for.
constexpr char k_begin[] = "__CLANG_OFFLOAD_BUNDLE__", k_packed_begin[] = "CCOB";
struct BundleHead {
  char magic[sizeof k_begin - 1];
  uint64_t entries;
};
struct BundleEntry {
  uint64_t offset, bytes, name_bytes;
  // char name[name_bytes]
};

bool begins_with(const char* bytes, const char* magic) {
  return memcmp(bytes, magic, strlen(magic)) == 0;
}

// Returns the target of an entry's name: "gfx90a:xnack-" of
// "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-".
const char* find_target(const char* name, size_t length) {
  constexpr char k_gfx[] = "gfx";
  return static_cast<const char*>(memmem(name, length, k_gfx, sizeof k_gfx - 1));
}

// Calls `visit(target, length)` for each entry with a target, until it returns true.
template <class Visit>
bool any_target(const char* bundle, Visit visit) {
  BundleHead head;
  memcpy(&head, bundle, sizeof head);
  constexpr uint64_t k_max_entries = 1000, k_max_name_bytes = 1000;
  const char* position = bundle + sizeof head;
  for (uint64_t i = 0; i < head.entries && i < k_max_entries; ++i) {
    BundleEntry entry;
    memcpy(&entry, position, sizeof entry);
    if (entry.name_bytes > k_max_name_bytes) return false;
    const char* name = position + sizeof entry;
    const char* target = find_target(name, entry.name_bytes);
    position = name + entry.name_bytes;
    if (target != nullptr && visit(target, static_cast<size_t>(position - target))) return true;
  }
  return false;
}

bool is_own_target(const char* name, size_t length) {
  return runs_on(name, length, target(), strlen(target()));
}

char g_targets[256];  // of the first bundle without code for this GPU, for people
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

// Keeps the names of the GPUs that a bundle (code for several GPUs) has code for.
void note_targets(const char* bundle) {
  const Locked locked(&g_lock);
  if (g_targets[0] != 0) return;
  size_t used = 0;
  any_target(bundle, [&](const char* target, size_t length) {
    if (used + length + 3 > sizeof g_targets) return true;
    if (used != 0) {
      memcpy(g_targets + used, ", ", 2);
      used += 2;
    }
    memcpy(g_targets + used, target, length);
    used += length;
    return false;
  });
}

uint64_t round_up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }
uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

// The vector registers of a SIMD for one lane of a wave, and in which units they are given out
// (LLVM's AMDGPUBaseInfo, clr's rocdevice.cpp). Of RDNA for waves of 32.
struct RegisterFile {
  uint64_t registers, unit;
};
struct TargetFile {
  const char* prefix;
  RegisterFile file;
};
RegisterFile find_register_file(const char* target) {
  constexpr TargetFile k_files[] = {{"gfx90a", {512, 8}},    {"gfx94", {512, 8}},
                                    {"gfx95", {512, 8}},     {"gfx9", {256, 4}},
                                    {"gfx10", {1024, 16}},   {"gfx1100", {1536, 24}},
                                    {"gfx1101", {1536, 24}}, {"gfx1151", {1536, 24}},
                                    {"gfx1200", {1536, 24}}, {"gfx1201", {1536, 24}}};
  for (const TargetFile& entry : k_files) {
    if (begins_with(target, entry.prefix)) return entry.file;
  }
  return {1024, 16};
}

}  // namespace

// Chooses the code for this GPU in a program's fat binary; a module with arch 0 if there is none.
// Compressed code is taken unread, as the table of kernels tells if it fits: see check_launch().
Module choose_image(const void* binary) {
  const auto* wrapper = static_cast<const BundleWrapper*>(binary);
  Dl_info file{};
  if (wrapper == nullptr || wrapper->magic != k_bundle_magic || wrapper->bundle == nullptr ||
      dladdr(wrapper->bundle, &file) == 0) {
    report_not_counting("hip twin", "a fat binary that it cannot read", "", 0);
    return {};
  }
  const auto* bundle = static_cast<const char*>(wrapper->bundle);
  const auto container = static_cast<uint64_t>(bundle - static_cast<const char*>(file.dli_fbase));
  const Module loaded{1, true, container};
  if (begins_with(bundle, k_packed_begin)) return loaded;
  if (begins_with(bundle, k_begin) && any_target(bundle, is_own_target)) return loaded;
  if (begins_with(bundle, k_begin)) note_targets(bundle);
  return {0, false, container};
}

void print_no_image() {
  print_line(STDERR_FILENO,
             "weir: the HIP twin is %s: no kernel image is available, the engine has code for %s\n",
             target(), g_targets[0] == 0 ? "other GPUs" : g_targets);
}

// Returns the error that HIP would give for a launch, 0 if it would run it. The rules are those of
// clr's hip_module.cpp.
int check_launch(const Function& function, Size3 grid, Size3 block, size_t shared) {
  if (function.module.arch == 0) return report_no_image();
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool is_empty = threads == 0 || grid.x == 0 || grid.y == 0 || grid.z == 0;
  const weir_runtime_kernel* facts = function.facts;
  const size_t static_shared = facts == nullptr ? 0 : facts->shared_bytes;
  if (is_empty || threads > static_cast<uint64_t>(attribute(k_max_threads_per_block)) ||
      shared + static_shared > static_cast<size_t>(attribute(k_shared_per_block))) {
    return k_invalid_value;
  }
  return threads > static_cast<uint64_t>(max_block_threads(function)) ? k_launch_failed : int{k_ok};
}

// Returns how many blocks a processor of the GPU runs at once, computed as clr (hip_platform.cpp)
// does. It has four SIMDs; a wave gets registers in whole units; shared memory is not rounded.
int resident_blocks(const Function& function, int block_threads, size_t dynamic_shared) {
  constexpr uint64_t k_simds = 4, k_scalar_registers = 800, k_scalar_unit = 16;
  const weir_runtime_kernel* facts = function.facts;
  const auto threads = static_cast<uint64_t>(block_threads);
  const auto wave = static_cast<uint64_t>(attribute(k_warp_size));
  if (block_threads <= 0 || block_threads > max_block_threads(function)) return 0;
  const RegisterFile file = find_register_file(target());
  const uint64_t registers = facts == nullptr ? k_guessed_registers : facts->registers;
  uint64_t waves = attribute(k_major) <= 9 ? 8 : 16;
  if (registers > 0) waves = min(waves, file.registers / round_up(registers, file.unit));
  if (facts != nullptr && facts->scalar_registers > 0) {
    waves = min(waves, k_scalar_registers / round_up(facts->scalar_registers, k_scalar_unit));
  }
  uint64_t blocks = k_simds * waves * wave / round_up(threads, wave);
  const uint64_t shared = dynamic_shared + (facts == nullptr ? 0 : facts->shared_bytes);
  if (shared > 0)
    blocks = min(blocks, static_cast<uint64_t>(attribute(k_shared_per_block)) / shared);
  return static_cast<int>(blocks);
}

}  // namespace weir_probe::runtime_twin
