// Makes the file of recorded kernels and appends records to it.
#include <string.h>
#include <sys/resource.h>

#include "gate/probes/inject/vulkan/hooks.h"
#include "gate/probes/twin/structs.h"

namespace weir_probe {

CaptureMode g_capture_mode = CaptureMode::nothing;
pthread_mutex_t g_capture_lock = PTHREAD_MUTEX_INITIALIZER;

namespace {

static_assert(sizeof(weir_kernels_header) <= WEIR_KERNELS_HEADER_SIZE);
static_assert(sizeof(weir_kernels_record) == 16 && sizeof(weir_kernels_pipeline) == 184);
static_assert(sizeof(weir_kernels_work) == 224 && sizeof(weir_kernels_buffer) == 24);
static_assert(sizeof(weir_kernels_descriptor) == 40);

constexpr uint64_t k_counts = WEIR_KERNELS_HEADER_SIZE;
constexpr uint64_t k_records = k_counts + uint64_t{WEIR_KERNELS_WORKS} * 8;

struct CaptureFile {
  weir_kernels_header* header;
  uint64_t* counts;
  uint64_t max_bytes;  // size limit of the file
  uint64_t memory;     // bytes that captures may still take
  bool full;
  SideFile at;
};
// Counts go here where there is no file, as in a forked child.
weir_kernels_header g_nowhere_header;
uint64_t g_nowhere_counts[WEIR_KERNELS_WORKS];
constexpr uint64_t k_layouts_alone = 1U << 20;
CaptureFile g_file = {&g_nowhere_header, g_nowhere_counts, 0, k_layouts_alone, true, {}};

// Ends recording and prints why, once. Returns false, for its callers to return.
bool stop(const char* what, int error) {
  if (g_file.full) return false;
  g_file.full = true;
  print_line(STDERR_FILENO,
             "weir: the vulkan probe records no more kernels: %s%s%s; the program goes on\n", what,
             error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
  return false;
}

// Creates and maps the file of captured dispatches, with its header. False, with errno set, if
// that fails.
bool make_file(const File& file) {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < g_file.max_bytes) {
    g_file.max_bytes = limit.rlim_cur;  // beyond it the kernel sends a signal that ends the engine
  }
  if (g_file.max_bytes < k_records) return false;
  void* memory = create_side_file(file, WEIR_KERNELS_SUFFIX, k_records, &g_file.at);
  if (memory == nullptr) return false;
  auto* header = static_cast<weir_kernels_header*>(memory);
  header->version = WEIR_KERNELS_VERSION;
  header->header_size = WEIR_KERNELS_HEADER_SIZE;
  header->pid = static_cast<uint32_t>(getpid());
  header->works = WEIR_KERNELS_WORKS;
  copy_text(header->probe, sizeof header->probe, "vulkan");
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy(header->magic, WEIR_KERNELS_MAGIC, sizeof header->magic);
  g_file.header = header;
  g_file.counts = reinterpret_cast<uint64_t*>(static_cast<char*>(memory) + k_counts);
  return true;
}

// Records one feature struct that the device was created with.
void write_features(uint32_t index, uint32_t type, const void* values, uint32_t bytes) {
  const weir_kernels_features head = {type, bytes};
  (void)write_capture_record(WEIR_KERNELS_FEATURES, index, &head, sizeof head, values, bytes);
}

}  // namespace

// Reads from the environment what to capture, and creates the file for it. Only the first call
// does so.
void open_capture(const File& file) {
  if (g_file.max_bytes != 0) return;
  CaptureMode mode = CaptureMode::dispatches;
  g_file.max_bytes = read_mebibytes(WEIR_PROBE_KERNELS_VARIABLE, 1U << 12);
  if (g_file.max_bytes == 0) {
    mode = CaptureMode::code;
    g_file.max_bytes = read_mebibytes(WEIR_PROBE_CODE_VARIABLE, 1U << 12);
  }
  if (g_file.max_bytes == 0 || !file.has_disk_file) return;
  g_file.memory = g_file.max_bytes;
  g_file.full = false;
  if (make_file(file)) {
    g_capture_mode = mode;
  } else {
    stop("its file cannot be made", errno);
  }
}

void detach_capture_after_fork() {
  pthread_mutex_init(&g_capture_lock, nullptr);
  if (!captures_code()) return;
  // The file belongs to the parent; a child's work is not recorded.
  g_file.header = &g_nowhere_header;
  g_file.counts = g_nowhere_counts;
  g_file.full = true;
}

bool reserve_capture_memory(uint64_t bytes) {
  if (bytes > g_file.memory) return false;
  g_file.memory -= bytes;
  return true;
}

// Appends a record of `head`, `tail` and padding to 8 bytes. False after a failure, when recording
// ends. Needs g_capture_lock.
bool write_capture_record(uint32_t kind, uint32_t index, const void* head, uint64_t head_bytes,
                          const void* tail, uint64_t tail_bytes) {
  if (g_file.full) return false;
  const KeepErrno keep_errno;
  const uint64_t bytes = head_bytes + tail_bytes;
  const uint64_t padded = (bytes + 7) & ~uint64_t{7};
  const uint64_t begin = k_records + g_file.header->used;
  const weir_kernels_record header = {kind, index, padded};
  if (begin + sizeof header + padded > g_file.max_bytes) {
    return stop(
        "the file has the size that WEIR_PROBE_KERNELS, WEIR_PROBE_CODE or the system allows", 0);
  }
  const int descriptor = reopen_side_file(g_file.at);
  if (descriptor < 0) return stop("its file is gone", errno);
  static const char zeros[8] = {};
  const uint64_t body = begin + sizeof header;
  const bool written = write_all(descriptor, &header, sizeof header, begin) &&
                       write_all(descriptor, head, head_bytes, body) &&
                       write_all(descriptor, tail, tail_bytes, body + head_bytes) &&
                       write_all(descriptor, zeros, padded - bytes, body + bytes);
  const int error = errno;
  close(descriptor);
  if (!written) return stop("its file cannot grow", error);
  __atomic_store_n(&g_file.header->used, g_file.header->used + sizeof header + padded,
                   __ATOMIC_RELEASE);
  return true;
}

void count_captured_work(uint32_t place, uint64_t amount) { add(&g_file.counts[place], amount); }
void count_left_out(uint32_t reason, uint64_t amount) {
  add(&g_file.header->left_out[reason], amount);
}

// Creates the device's capture, and writes the extensions and features that the program enabled.
void capture_device(Device* device, const VkDeviceCreateInfo* info, uint32_t api_version) {
  device->capture = static_cast<DeviceCapture*>(calloc(1, sizeof(DeviceCapture)));
  if (device->capture == nullptr || !captures_code()) return;
  const Locked locked(&g_capture_lock);
  const uint32_t index = device->index;
  const weir_kernels_device body = {api_version, 0};
  (void)write_capture_record(WEIR_KERNELS_DEVICE, index, &body, sizeof body);
  for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    const char* name = info->ppEnabledExtensionNames[i];
    const size_t length = strlen(name) + 1;
    if (length <= VK_MAX_EXTENSION_NAME_SIZE) {
      (void)write_capture_record(WEIR_KERNELS_EXTENSION, index, name, length);
    }
  }
  constexpr uint32_t k_core_features = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  if (info->pEnabledFeatures != nullptr) {
    write_features(index, k_core_features, info->pEnabledFeatures, sizeof *info->pEnabledFeatures);
  }
  for (auto next = static_cast<const VkBaseInStructure*>(info->pNext); next != nullptr;
       next = next->pNext) {
    if (next->sType == k_core_features) {
      write_features(index, k_core_features, next + 1, sizeof(VkPhysicalDeviceFeatures));
      continue;
    }
    for (uint32_t i = 0; i < weir_struct_count; ++i) {
      const weir_struct& entry = weir_structs[i];
      if (entry.chain != WEIR_CHAIN_FEATURES || entry.type != static_cast<uint32_t>(next->sType)) {
        continue;
      }
      write_features(index, entry.type, next + 1, entry.size - static_cast<uint32_t>(sizeof *next));
      break;
    }
  }
}

// Frees a device's capture with the records of all its objects.
void free_device_capture(Device* device) {
  DeviceCapture* capture = device->capture;
  if (capture == nullptr) return;
  Table* const tables[] = {&capture->buffers, &capture->layouts, &capture->pipeline_layouts,
                           &capture->pools,   &capture->sets,    &capture->templates};
  for (Table* table : tables) {
    if (table != &capture->layouts) table->each(free);  // layouts are shared by content
    table->free_all();
  }
  free(capture);
  device->capture = nullptr;
}

}  // namespace weir_probe
