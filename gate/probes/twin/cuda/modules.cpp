// Modules of the driver's interface: code that a program brings at run time, as Triton's. The costs
// of a kernel are read from the machine code that is loaded.
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/writer/system.h"
#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {

extern "C" int weir_twin_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* kernel, int threads, size_t shared, unsigned flags);

namespace {

// A kernel of a module. The function is first: its address is the kernel's handle.
struct ModuleKernel {
  Function function;
  weir_runtime_kernel facts;
  ModuleKernel* next;
};
struct LoadedModule {
  Module module;
  ModuleKernel* kernels;  // under g_lock
  const char* code;       // the machine code as it was given; null for PTX
};
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

// The sections of an ELF file whose length is in its own header. Machine code comes from compilers
// that run on this machine.
struct Sections {
  const char* file;
  const Elf64_Shdr* first;
  size_t count;
  const char* names;
};
Sections sections_of(const char* code) {
  Elf64_Ehdr header;
  memcpy(&header, code, sizeof header);
  const auto* first = reinterpret_cast<const Elf64_Shdr*>(code + header.e_shoff);
  return {code, first, header.e_shnum, code + first[header.e_shstrndx].sh_offset};
}
const Elf64_Shdr* find_section(const Sections& in, const char* prefix, const char* name) {
  const size_t length = strlen(prefix);
  for (size_t i = 0; i < in.count; ++i) {
    const char* section = in.names + in.first[i].sh_name;
    if (strncmp(section, prefix, length) == 0 && strcmp(section + length, name) == 0) {
      return &in.first[i];
    }
  }
  return nullptr;
}

// Reads what the kernel `name` costs from machine code; false if it is not there. The number of
// registers is in its section's information.
bool read_facts(const char* code, const char* name, weir_runtime_kernel* out) {
  constexpr unsigned k_registers_shift = 24;
  const Sections sections = sections_of(code);
  const Elf64_Shdr* text = find_section(sections, ".text.", name);
  if (text == nullptr) return false;
  const Elf64_Shdr* shared = find_section(sections, ".nv.shared.", name);
  out->registers = text->sh_info >> k_registers_shift;
  out->shared_bytes = shared == nullptr ? 0 : static_cast<uint32_t>(shared->sh_size);
  out->code_bytes = static_cast<uint32_t>(text->sh_size);
  out->code = hash_bytes(k_hash_seed, code + text->sh_offset, text->sh_size);
  return true;
}

// Returns the newest PTX that a driver takes, as 90 for 9.0: release notes of the PTX ISA.
int newest_ptx(int driver) {
  constexpr int k_of_cuda_12[] = {80, 81, 82, 83, 84, 85, 85, 86, 87, 88};
  const int major = driver / 1000, minor = driver % 1000 / 10;
  if (major == 12 && minor < 10) return k_of_cuda_12[minor];
  return 10 * (major - 4) + minor;  // 7.8 of CUDA 11.8, 9.0 of 13.0
}

// Returns the version of PTX in a text, as 90 for ".version 9.0"; 0 if it names none.
int ptx_version(const char* text) {
  constexpr const char* k_key = ".version ";
  const char* at = strstr(text, k_key);
  if (at == nullptr) return 0;
  const char* digits = at + strlen(k_key);
  const auto value = [](char digit) { return digit >= '0' && digit <= '9' ? digit - '0' : 0; };
  return 10 * value(digits[0]) + (digits[1] == '.' ? value(digits[2]) : 0);
}

// Returns true if the driver refuses the text, which is said once.
bool refuses_ptx(const char* text) {
  static int s_is_said = 0;
  const int version = ptx_version(text), newest = newest_ptx(driver_version());
  if (version <= newest) return false;
  if (__atomic_exchange_n(&s_is_said, 1, __ATOMIC_RELAXED) == 0) {
    print_line(STDERR_FILENO,
               "weir: PTX %d.%d is newer than the driver of the CUDA twin takes, %d.%d\n",
               version / 10, version % 10, newest / 10, newest % 10);
  }
  return true;
}

// Loads an image of code as a module, and returns CUDA's error code. Copies machine code (ELF),
// whose kernels are looked up later; refuses PTX that is too new.
int load(void** out, const void* image) {
  if (twin() == nullptr) return k_no_device;
  if (image == nullptr) return k_invalid_value;
  auto* loaded = static_cast<LoadedModule*>(calloc(1, sizeof(LoadedModule)));
  if (loaded == nullptr) return k_out_of_memory;
  const int arch = 10 * attribute(k_major) + attribute(k_minor);
  const bool is_machine_code = memcmp(image, ELFMAG, SELFMAG) == 0;
  const char first = *static_cast<const char*>(image);
  const bool is_text = first == '.' || first == '/' || first == '\n';
  if (is_text && refuses_ptx(static_cast<const char*>(image))) {
    free(loaded);
    return k_new_ptx;
  }
  loaded->module = {arch, is_machine_code, 0};
  // The program may free the image once it is loaded.
  if (is_machine_code) {
    const auto* header = static_cast<const Elf64_Ehdr*>(image);
    const size_t size = header->e_shoff + size_t{header->e_shnum} * sizeof(Elf64_Shdr);
    const size_t with_segments = header->e_phoff + size_t{header->e_phnum} * sizeof(Elf64_Phdr);
    const size_t bytes = size > with_segments ? size : with_segments;
    auto* code = static_cast<char*>(malloc(bytes));
    if (code != nullptr) memcpy(code, image, bytes);
    loaded->code = code;
  }
  *out = loaded;
  return k_ok;
}

ModuleKernel* find_kernel(LoadedModule* in, const char* name) {
  const Locked locked(&g_lock);
  ModuleKernel* kernel = in->kernels;
  while (kernel != nullptr && strcmp(kernel->function.name, name) != 0) kernel = kernel->next;
  return kernel;
}

// Finds the module's kernel of this name, and returns CUDA's error code. If the module has machine
// code, the name must be in it.
int get_function(void** out, LoadedModule* in, const char* name) {
  *out = find_kernel(in, name);
  if (*out != nullptr) return k_ok;
  auto* kernel = static_cast<ModuleKernel*>(calloc(1, sizeof(ModuleKernel)));
  if (kernel == nullptr) return k_out_of_memory;
  const bool has_code = in->code != nullptr && read_facts(in->code, name, &kernel->facts);
  if (in->code != nullptr && !has_code) {
    free(kernel);
    return k_symbol_not_found;
  }
  kernel->function = {strdup(name), has_code ? &kernel->facts : nullptr, in->module, 0};
  if (kernel->function.name == nullptr) return k_out_of_memory;
  add_function(kernel, &kernel->function);
  const Locked locked(&g_lock);
  kernel->next = in->kernels;
  in->kernels = kernel;
  *out = kernel;
  return k_ok;
}

// CUfunction_attribute
enum FunctionAttribute : int {
  k_function_threads = 0,
  k_function_shared = 1,
  k_function_local = 3,
  k_function_registers = 4,
  k_function_ptx = 5,
  k_function_binary = 6,
  k_function_dynamic_shared = 8,
};

}  // namespace

WEIR_EXPORTED int cuModuleLoadData(void** out, const void* image) { return load(out, image); }
WEIR_EXPORTED int cuModuleLoadDataEx(void** out, const void* image, unsigned, int*, void**) {
  return load(out, image);
}
WEIR_EXPORTED int cuModuleLoad(void** out, const char* path) {
  size_t bytes = 0;
  const void* image = map_file(path, &bytes);
  constexpr int k_file_not_found = 301;
  return image == nullptr ? k_file_not_found : load(out, image);
}
WEIR_EXPORTED int cuModuleUnload(void*) { return k_ok; }  // launches may still name its kernels
WEIR_EXPORTED int cuModuleGetLoadingMode(int* out) {
  *out = 1;
  return k_ok;
}
WEIR_EXPORTED int cuModuleGetFunction(void** out, void* module, const char* name) {
  WEIR_THROUGH_PROBE(cuModuleGetFunction, out, module, name)
  return get_function(out, static_cast<LoadedModule*>(module), name);
}
WEIR_EXPORTED int cuModuleGetGlobal_v2(uint64_t*, size_t*, void*, const char*) {
  return k_symbol_not_found;
}
// A library is a module here, and a kernel a function.
WEIR_EXPORTED int cuLibraryLoadData(void** out, const void* image, int*, void**, unsigned, int*,
                                    void**, unsigned) {
  return load(out, image);
}
WEIR_EXPORTED int cuLibraryUnload(void*) { return k_ok; }
WEIR_EXPORTED int cuLibraryGetKernel(void** out, void* library, const char* name) {
  WEIR_THROUGH_PROBE(cuLibraryGetKernel, out, library, name)
  return get_function(out, static_cast<LoadedModule*>(library), name);
}
WEIR_EXPORTED int cuLibraryGetModule(void** out, void* library) {
  *out = library;
  return k_ok;
}
WEIR_EXPORTED int cuKernelGetFunction(void** out, void* kernel) {
  *out = kernel;
  return k_ok;
}

// Gives an attribute of a kernel from the facts about its code, or a guess if there is no code to
// read.
WEIR_EXPORTED int cuFuncGetAttribute(int* out, int number, void* kernel) {
  Function* function = nullptr;
  if (const int error = find_loaded_function(kernel, &function)) return error;
  const weir_runtime_kernel* facts = function->facts;
  const auto fact = [facts](uint32_t weir_runtime_kernel::*of, int guess) {
    return facts == nullptr ? guess : static_cast<int>(facts->*of);
  };
  switch (number) {
    case k_function_threads:
      *out = max_block_threads(*function);
      break;
    case k_function_shared:
      *out = fact(&weir_runtime_kernel::shared_bytes, 0);
      break;
    case k_function_local:
      *out = fact(&weir_runtime_kernel::local_bytes, 0);
      break;
    case k_function_registers:
      *out = fact(&weir_runtime_kernel::registers, k_guessed_registers);
      break;
    case k_function_ptx:
    case k_function_binary:
      *out = function->module.arch;
      break;
    case k_function_dynamic_shared:
      *out = __atomic_load_n(&function->dynamic_shared, __ATOMIC_RELAXED);
      break;
    default:
      *out = 0;
      break;
  }
  return k_ok;
}
WEIR_EXPORTED int cuFuncSetAttribute(void* kernel, int number, int value) {
  return set_function_attribute(kernel, number, value);
}
WEIR_EXPORTED int cuFuncSetCacheConfig(void*, int) { return k_ok; }
WEIR_EXPORTED int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, void* kernel, int threads,
                                                              size_t shared) {
  return weir_twin_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, kernel, threads,
                                                                          shared, 0);
}
WEIR_EXPORTED int cuOccupancyMaxActiveClusters(int* out, void* kernel,
                                               const DriverLaunchConfig* config) {
  Function* function = nullptr;
  if (const int error = find_loaded_function(kernel, &function)) return error;
  const auto threads = static_cast<int>(config->block.x * config->block.y * config->block.z);
  *out = resident_blocks(*function, threads, config->shared) * attribute(k_processors);
  return k_ok;
}

WEIR_EXPORTED int cuLaunchKernel(void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z,
                                 unsigned shared, void* stream, void** args, void** more) {
  WEIR_THROUGH_PROBE(cuLaunchKernel, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                     shared, stream, args, more)
  return launch(kernel, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream);
}
WEIR_EXPORTED int cuLaunchCooperativeKernel(void* kernel, unsigned grid_x, unsigned grid_y,
                                            unsigned grid_z, unsigned block_x, unsigned block_y,
                                            unsigned block_z, unsigned shared, void* stream,
                                            void** args) {
  WEIR_THROUGH_PROBE(cuLaunchCooperativeKernel, kernel, grid_x, grid_y, grid_z, block_x, block_y,
                     block_z, shared, stream, args)
  return launch(kernel, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream);
}
WEIR_EXPORTED int cuLaunchKernelEx(const DriverLaunchConfig* config, void* kernel, void** args,
                                   void** more) {
  WEIR_THROUGH_PROBE(cuLaunchKernelEx, config, kernel, args, more)
  return launch(kernel, config->grid, config->block, config->shared, config->stream);
}
// Describes a tile of memory for a kernel's loads: 128 bytes that only kernels read.
WEIR_EXPORTED int cuTensorMapEncodeTiled(void* out, int, unsigned, void*, const uint64_t*,
                                         const uint64_t*, const uint32_t*, const uint32_t*, int,
                                         int, int, int) {
  constexpr size_t k_tensor_map = 128;
  memset(out, 0, k_tensor_map);
  return k_ok;
}

}  // namespace weir_probe::runtime_twin
