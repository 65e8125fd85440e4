// The file of recorded kernels, and what is written into it.
#include <string.h>
#include <sys/resource.h>

#include "gate/probes/inject/vulkan/hooks.h"
#include "gate/probes/twin/structs.h"

namespace weir_probe {

Kept g_kept = Kept::nothing;
pthread_mutex_t g_kept_lock = PTHREAD_MUTEX_INITIALIZER;

namespace {

static_assert(sizeof(weir_kernels_header) <= WEIR_KERNELS_HEADER_SIZE);
static_assert(sizeof(weir_kernels_record) == 16 && sizeof(weir_kernels_pipeline) == 184);
static_assert(sizeof(weir_kernels_work) == 224 && sizeof(weir_kernels_buffer) == 24);
static_assert(sizeof(weir_kernels_descriptor) == 40);

constexpr uint64_t k_counts = WEIR_KERNELS_HEADER_SIZE;
constexpr uint64_t k_records = k_counts + uint64_t{WEIR_KERNELS_WORKS} * 8;

struct KeptFile {
  weir_kernels_header* header;
  uint64_t* counts;
  uint64_t most;    // bytes of the whole file
  uint64_t memory;  // that may still be taken
  bool full;
  Beside at;
};
// Where there is no file to count in: a forked child's.
weir_kernels_header g_nowhere_header;
uint64_t g_nowhere_counts[WEIR_KERNELS_WORKS];
constexpr uint64_t k_layouts_alone = 1U << 20;
KeptFile g_file = {&g_nowhere_header, g_nowhere_counts, 0, k_layouts_alone, true, {}};

// False.
bool stop(const char* what, int error) {
  if (g_file.full) return false;
  g_file.full = true;
  print_line(STDERR_FILENO,
             "weir: the vulkan probe records no more kernels: %s%s%s; the program goes on\n", what,
             error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
  return false;
}

bool make_file(const File& file) {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < g_file.most) {
    g_file.most = limit.rlim_cur;  // beyond it the kernel sends a signal that ends the engine
  }
  if (g_file.most < k_records) return false;
  void* memory = make_beside(file, WEIR_KERNELS_SUFFIX, k_records, &g_file.at);
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

void write_features(uint32_t index, uint32_t type, const void* values, uint32_t bytes) {
  const weir_kernels_features head = {type, bytes};
  (void)write_kept(WEIR_KERNELS_FEATURES, index, &head, sizeof head, values, bytes);
}

}  // namespace

void open_kept(const File& file) {
  if (g_file.most != 0) return;
  Kept wanted = Kept::dispatches;
  g_file.most = mebibytes_asked(WEIR_PROBE_KERNELS_VARIABLE, 1U << 12);
  if (g_file.most == 0) {
    wanted = Kept::code;
    g_file.most = mebibytes_asked(WEIR_PROBE_CODE_VARIABLE, 1U << 12);
  }
  if (g_file.most == 0 || !file.backed) return;
  g_file.memory = g_file.most;
  g_file.full = false;
  if (make_file(file)) {
    g_kept = wanted;
  } else {
    stop("its file cannot be made", errno);
  }
}

void detach_kept_after_fork() {
  pthread_mutex_init(&g_kept_lock, nullptr);
  if (!keeping_code()) return;
  // The file is the parent's: what a child does is not recorded.
  g_file.header = &g_nowhere_header;
  g_file.counts = g_nowhere_counts;
  g_file.full = true;
}

bool take_kept_bytes(uint64_t bytes) {
  if (bytes > g_file.memory) return false;
  g_file.memory -= bytes;
  return true;
}

bool write_kept(uint32_t kind, uint32_t index, const void* head, uint64_t head_bytes,
                const void* tail, uint64_t tail_bytes) {
  if (g_file.full) return false;
  const KeepErrno keep;
  const uint64_t bytes = head_bytes + tail_bytes;
  const uint64_t padded = (bytes + 7) & ~uint64_t{7};
  const uint64_t begin = k_records + g_file.header->used;
  const weir_kernels_record record = {kind, index, padded};
  if (begin + sizeof record + padded > g_file.most) {
    return stop(
        "the file has the size that WEIR_PROBE_KERNELS, WEIR_PROBE_CODE or the system allows", 0);
  }
  const int descriptor = reopen(g_file.at);
  if (descriptor < 0) return stop("its file is gone", errno);
  static const char zeros[8] = {};
  const uint64_t body = begin + sizeof record;
  const bool done = write_all(descriptor, &record, sizeof record, begin) &&
                    write_all(descriptor, head, head_bytes, body) &&
                    write_all(descriptor, tail, tail_bytes, body + head_bytes) &&
                    write_all(descriptor, zeros, padded - bytes, body + bytes);
  const int error = errno;
  close(descriptor);
  if (!done) return stop("its file cannot grow", error);
  __atomic_store_n(&g_file.header->used, g_file.header->used + sizeof record + padded,
                   __ATOMIC_RELEASE);
  return true;
}

void count_kept(uint32_t place, uint64_t amount) { add(&g_file.counts[place], amount); }
void count_left_out(uint32_t reason, uint64_t amount) {
  add(&g_file.header->left_out[reason], amount);
}

void keep_device(Device* device, const VkDeviceCreateInfo* info, uint32_t api_version) {
  device->kept = static_cast<KeptDevice*>(calloc(1, sizeof(KeptDevice)));
  if (device->kept == nullptr || !keeping_code()) return;
  const Locked locked(&g_kept_lock);
  const uint32_t index = device->index;
  const weir_kernels_device body = {api_version, 0};
  (void)write_kept(WEIR_KERNELS_DEVICE, index, &body, sizeof body);
  for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    const char* name = info->ppEnabledExtensionNames[i];
    const size_t length = strlen(name) + 1;
    if (length <= VK_MAX_EXTENSION_NAME_SIZE) {
      (void)write_kept(WEIR_KERNELS_EXTENSION, index, name, length);
    }
  }
  constexpr uint32_t k_core = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  if (info->pEnabledFeatures != nullptr) {
    write_features(index, k_core, info->pEnabledFeatures, sizeof *info->pEnabledFeatures);
  }
  for (auto at = static_cast<const VkBaseInStructure*>(info->pNext); at != nullptr;
       at = at->pNext) {
    if (at->sType == k_core) {
      write_features(index, k_core, at + 1, sizeof(VkPhysicalDeviceFeatures));
      continue;
    }
    for (uint32_t i = 0; i < weir_struct_count; ++i) {
      const weir_struct& known = weir_structs[i];
      if (known.chain != WEIR_CHAIN_FEATURES || known.type != static_cast<uint32_t>(at->sType)) {
        continue;
      }
      write_features(index, known.type, at + 1, known.size - static_cast<uint32_t>(sizeof *at));
      break;
    }
  }
}

void forget_kept_device(Device* device) {
  KeptDevice* kept = device->kept;
  if (kept == nullptr) return;
  Table* const tables[] = {&kept->buffers, &kept->layouts, &kept->pipeline_layouts,
                           &kept->pools,   &kept->sets,    &kept->templates};
  for (Table* table : tables) {
    if (table != &kept->layouts) table->each(free);  // those are kept once by content
    table->free_all();
  }
  free(kept);
  device->kept = nullptr;
}

}  // namespace weir_probe
