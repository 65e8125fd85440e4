#include "gate/probes/writer/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

namespace weir_probe {
namespace {

// What other processes and later versions read (docs/probe-format.md).
static_assert(sizeof(weir_probe_header) == 568 && offsetof(weir_probe_header, sections) == 184);
static_assert(sizeof(weir_probe_device) == 864 && sizeof(weir_probe_queue) == 160);
static_assert(sizeof(weir_probe_kernel) == 256 && sizeof(weir_probe_section) == 24);

constexpr uint32_t k_devices = 16;
constexpr uint32_t k_queues = 128;
constexpr uint32_t k_kernels = 4096;
constexpr size_t k_page = 4096;

constexpr size_t pages(size_t size) { return (size + k_page - 1) / k_page * k_page; }
constexpr size_t k_devices_at = pages(sizeof(weir_probe_header));
constexpr size_t k_queues_at = k_devices_at + pages(k_devices * sizeof(weir_probe_device));
constexpr size_t k_kernels_at = k_queues_at + pages(k_queues * sizeof(weir_probe_queue));
constexpr size_t k_size = k_kernels_at + pages(k_kernels * sizeof(weir_probe_kernel));
enum { k_devices_section = 0, k_queues_section = 1, k_kernels_section = 2 };

void complain(const char* probe, const char* what, const char* path, int error) {
  char line[512];
  const int length = snprintf(
      line, sizeof line, "weir: the %s probe is not counting: %s %s%s%s; the program goes on\n",
      probe, what, path, error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
  if (length <= 0) return;
  const size_t shown =
      static_cast<size_t>(length) < sizeof line ? static_cast<size_t>(length) : sizeof line - 1;
  if (write(STDERR_FILENO, line, shown) < 0) return;  // nobody is left to tell
}

// The descriptor of a fresh file with all its blocks, or -1 after a complaint. All blocks, because
// a full disk must show here and not as SIGBUS inside the engine.
int create_file(const char* probe) {
  const char* folder = secure_getenv(WEIR_PROBE_DIR_VARIABLE);
  if (folder == nullptr || folder[0] == '\0') {
    complain(probe, "no folder in", WEIR_PROBE_DIR_VARIABLE, 0);
    return -1;
  }
  // Beyond this limit the kernel sends a signal that ends the engine.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < k_size) {
    complain(probe, "the limit on file sizes is too low for", folder, 0);
    return -1;
  }
  char path[4096];
  for (int attempt = 0; attempt < 8; ++attempt) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) {
      random =
          static_cast<uint64_t>(getpid()) * 0x9e3779b97f4a7c15ULL + static_cast<unsigned>(attempt);
    }
    const int length = snprintf(path, sizeof path, "%s/%s-%ld-%016llx%s", folder, probe,
                                static_cast<long>(getpid()),
                                static_cast<unsigned long long>(random), WEIR_PROBE_SUFFIX);
    if (length <= 0 || static_cast<size_t>(length) >= sizeof path) {
      complain(probe, "the name is too long of", WEIR_PROBE_DIR_VARIABLE, 0);
      return -1;
    }
    const int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (descriptor < 0) {
      if (errno == EEXIST) continue;
      complain(probe, "cannot create", path, errno);
      return -1;
    }
    const int error = posix_fallocate(descriptor, 0, static_cast<off_t>(k_size));
    if (error == 0) return descriptor;
    complain(probe, "cannot reserve room for", path, error);
    unlink(path);
    close(descriptor);
    return -1;
  }
  complain(probe, "cannot find a free name in", folder, 0);
  return -1;
}

void set_section(weir_probe_header* header, uint32_t at, uint32_t kind, size_t entry, size_t offset,
                 uint32_t capacity) {
  weir_probe_section& section = header->sections[at];
  section.kind = kind;
  section.entry_size = static_cast<uint32_t>(entry);
  section.offset = offset;
  section.capacity = capacity;
  section.used = 0;
}

void write_header(File* file, const char* probe) {
  weir_probe_header* header = file->header;
  header->version = WEIR_PROBE_VERSION;
  header->header_size = sizeof *header;
  header->file_size = k_size;
  header->pid = static_cast<uint32_t>(getpid());
  header->parent_pid = static_cast<uint32_t>(getppid());
  copy_text(header->probe, sizeof header->probe, probe);
  copy_text(header->process, sizeof header->process, program_invocation_short_name);
  set_section(header, k_devices_section, WEIR_SECTION_DEVICES, sizeof *file->devices, k_devices_at,
              k_devices);
  set_section(header, k_queues_section, WEIR_SECTION_QUEUES, sizeof *file->queues, k_queues_at,
              k_queues);
  set_section(header, k_kernels_section, WEIR_SECTION_KERNELS, sizeof *file->kernels, k_kernels_at,
              k_kernels);
  header->section_count = 3;
  copy_text(file->kernels[0].name, sizeof file->kernels[0].name, "(other)");
  header->sections[k_kernels_section].used = 1;
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy(header->magic, WEIR_PROBE_MAGIC, sizeof header->magic);
}

void point_at(File* file, void* memory) {
  char* base = static_cast<char*>(memory);
  file->header = reinterpret_cast<weir_probe_header*>(base);
  file->devices = reinterpret_cast<weir_probe_device*>(base + k_devices_at);
  file->queues = reinterpret_cast<weir_probe_queue*>(base + k_queues_at);
  file->kernels = reinterpret_cast<weir_probe_kernel*>(base + k_kernels_at);
}

// The last resort when not even anonymous memory can be had: a probe must not bring its host down.
alignas(k_page) char g_static_memory[k_size];

}  // namespace

bool copy_text(char* to, size_t size, const char* from) {
  const size_t length = strnlen(from, size);
  const bool fits = length < size;
  const size_t kept = fits ? length : size - 1;
  memcpy(to, from, kept);
  memset(to + kept, 0, size - kept);
  return fits;
}

uint64_t hash_bytes(uint64_t seed, const void* bytes, size_t size) {
  const unsigned char* at = static_cast<const unsigned char*>(bytes);
  uint64_t hash = seed ^ (size * 0x9e3779b97f4a7c15ULL);
  for (; size >= sizeof(uint64_t); at += sizeof(uint64_t), size -= sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
    hash ^= hash >> 35;
  }
  uint64_t rest = 0;
  memcpy(&rest, at, size);
  hash = (hash ^ rest) * 0x9fb21c651e98df25ULL;
  return hash ^ (hash >> 32);
}

void set_flag(File* file, uint32_t flag) {
  __atomic_fetch_or(&file->header->flags, flag, __ATOMIC_RELAXED);
}

void open_file(File* file, const char* probe) {
  const int descriptor = create_file(probe);
  void* memory = MAP_FAILED;
  if (descriptor >= 0) {
    memory = mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
      complain(probe, "cannot map its file in", WEIR_PROBE_DIR_VARIABLE, errno);
    close(descriptor);
  }
  file->backed = memory != MAP_FAILED;
  if (!file->backed) {
    memory = mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = g_static_memory;
  }
  point_at(file, memory);
  write_header(file, probe);
}

void detach_after_fork(File* file) {
  if (file->header == nullptr || !file->backed) return;
  void* copy = mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return;
  File mine = *file;
  point_at(&mine, copy);
  memcpy(mine.header, file->header, sizeof *mine.header);
  mine.header->flags |= WEIR_PROBE_FORKED;
  mine.header->parent_pid = file->header->pid;
  mine.header->pid = static_cast<uint32_t>(getpid());
  const weir_probe_section* sections = file->header->sections;
  for (uint32_t i = 0; i < sections[k_devices_section].used; ++i) {
    mine.devices[i] = file->devices[i];
    memset(mine.devices[i].counters, 0, sizeof mine.devices[i].counters);
  }
  for (uint32_t i = 0; i < sections[k_queues_section].used; ++i) {
    mine.queues[i] = file->queues[i];
    memset(mine.queues[i].counters, 0, sizeof mine.queues[i].counters);
  }
  for (uint32_t i = 0; i < sections[k_kernels_section].used; ++i) {
    mine.kernels[i] = file->kernels[i];
    mine.kernels[i].dispatches = 0;
  }
  // Handles in the parent's memory point into the mapping: the copy takes its very place.
  mremap(copy, k_size, k_size, MREMAP_MAYMOVE | MREMAP_FIXED, file->header);
  file->backed = false;
}

void make_forked_file(File* file) {
  if (file->backed || (file->header->flags & WEIR_PROBE_FORKED) == 0) return;
  file->header->flags &= ~WEIR_PROBE_FORKED;  // one attempt, whatever becomes of it
  char probe[sizeof file->header->probe];
  copy_text(probe, sizeof probe, file->header->probe);
  const int descriptor = create_file(probe);
  if (descriptor < 0) return;
  // Through the descriptor, then mapped over: nobody sees a half-copied file as a mapping.
  size_t written = 0;
  const char* from = reinterpret_cast<const char*>(file->header);
  while (written < k_size) {
    const ssize_t step =
        pwrite(descriptor, from + written, k_size - written, static_cast<off_t>(written));
    if (step <= 0) break;
    written += static_cast<size_t>(step);
  }
  if (written == k_size && mmap(file->header, k_size, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_FIXED, descriptor, 0) != MAP_FAILED) {
    file->backed = true;
    set_flag(file, WEIR_PROBE_FORKED);
  } else {
    complain(probe, "cannot fill its file in", WEIR_PROBE_DIR_VARIABLE, errno);
  }
  close(descriptor);
}

uint32_t add_device(File* file, const weir_probe_device& device) {
  uint32_t& used = file->header->sections[k_devices_section].used;
  if (used == k_devices) {
    set_flag(file, WEIR_PROBE_DEVICES_OVERFLOWED);
    return k_devices - 1;
  }
  file->devices[used] = device;
  const uint32_t index = used;
  __atomic_store_n(&used, index + 1, __ATOMIC_RELEASE);
  return index;
}

uint32_t add_queue(File* file, uint32_t device, uint32_t family, uint32_t index, uint32_t flags) {
  uint32_t& used = file->header->sections[k_queues_section].used;
  if (used == k_queues) {
    set_flag(file, WEIR_PROBE_QUEUES_OVERFLOWED);
    return k_queues - 1;
  }
  weir_probe_queue& entry = file->queues[used];
  entry.device = device;
  entry.family = family;
  entry.index = index;
  entry.flags = flags;
  const uint32_t at = used;
  __atomic_store_n(&used, at + 1, __ATOMIC_RELEASE);
  return at;
}

uint32_t kernel_entry(File* file, uint32_t device, uint64_t hash, bool named, const char* name,
                      const char* entry_point) {
  uint32_t& used = file->header->sections[k_kernels_section].used;
  for (uint32_t i = 1; i < used; ++i) {
    const weir_probe_kernel& known = file->kernels[i];
    if (known.hash == hash && known.device == device &&
        ((known.flags & WEIR_KERNEL_NAMED) != 0) == named) {
      return i;
    }
  }
  if (used == k_kernels) {
    set_flag(file, WEIR_PROBE_KERNELS_OVERFLOWED);
    return 0;
  }
  weir_probe_kernel& entry = file->kernels[used];
  entry.hash = hash;
  entry.device = device;
  entry.flags = named ? WEIR_KERNEL_NAMED : 0;
  if (!copy_text(entry.name, sizeof entry.name, name)) {
    entry.flags |= WEIR_KERNEL_TRUNCATED;
    set_flag(file, WEIR_PROBE_NAMES_TRUNCATED);
  }
  copy_text(entry.entry_point, sizeof entry.entry_point, entry_point);
  const uint32_t at = used;
  __atomic_store_n(&used, at + 1, __ATOMIC_RELEASE);
  return at;
}

}  // namespace weir_probe
