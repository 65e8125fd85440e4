// Creates the probe file, lays out its sections, adds entries, and follows the process's forks.
#include "gate/probes/inject/writer/file.h"

#include <type_traits>

#include <sys/resource.h>

#include "gate/probes/inject/writer/system.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

// The layout that other processes and later versions read (docs/reference/probe-format.md).
static_assert(sizeof(weir_probe_header) == 568 && offsetof(weir_probe_header, sections) == 184);
static_assert(sizeof(weir_probe_device) == 864 && sizeof(weir_probe_queue) == 160);
static_assert(sizeof(weir_probe_kernel) == 256 && sizeof(weir_probe_section) == 24);

static_assert(sizeof(weir_probe_named_counter) == 40 && sizeof(weir_probe_op) == 592);
static_assert(sizeof(weir_probe_graph) == 112 && sizeof(weir_probe_transfer) == 120);
static_assert(sizeof(weir_probe_launch) == 72 && sizeof(weir_probe_code) == 64);
static_assert(sizeof(weir_probe_function) == 192);
static_assert(sizeof(weir_probe_step) == 8 && sizeof(weir_probe_name) == 768);

constexpr size_t k_page = 4096;
// Limit for the file of the largest probe; a larger one could not use g_static_memory.
constexpr size_t k_max_bytes = size_t{4} << 20;

constexpr size_t round_up_to_pages(size_t size) { return (size + k_page - 1) / k_page * k_page; }

// Prints why there is no file, and returns -1 for its callers to return.
int fail(const char* probe, const char* what, const char* path, int error) {
  report_not_counting(probe, what, path, error);
  return -1;
}

// Creates a file with a random name in the folder WEIR_PROBE_DIR and sets `file->stem` to that
// name. Returns the file's descriptor; -1 after a complaint. All blocks are allocated now: a full
// disk must show here, and not as SIGBUS inside the engine.
int create_file(const char* probe, size_t size, File* file) {
  const char* folder = environment(WEIR_PROBE_DIR_VARIABLE);
  if (folder == nullptr || folder[0] == '\0') {
    return fail(probe, "no folder in", WEIR_PROBE_DIR_VARIABLE, 0);
  }
  // Beyond this limit the kernel sends a signal that ends the engine.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size) {
    return fail(probe, "the limit on file sizes is too low for", folder, 0);
  }
  char path[4096];
  for (int attempt = 0; attempt < 8; ++attempt) {
    uint64_t random = 0;
    if (!random_number(&random)) {
      random =
          static_cast<uint64_t>(getpid()) * 0x9e3779b97f4a7c15ULL + static_cast<unsigned>(attempt);
    }
    snprintf(file->stem, sizeof file->stem, "%s-%ld-%016llx", probe, static_cast<long>(getpid()),
             static_cast<unsigned long long>(random));
    const int length =
        snprintf(path, sizeof path, "%s/%s%s", folder, file->stem, WEIR_PROBE_SUFFIX);
    if (length <= 0 || static_cast<size_t>(length) >= sizeof path) {
      return fail(probe, "the name is too long of", WEIR_PROBE_DIR_VARIABLE, 0);
    }
    const int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (descriptor < 0) {
      if (errno == EEXIST) continue;
      return fail(probe, "cannot create", path, errno);
    }
    const int error = reserve_disk_space(descriptor, 0, size);
    if (error == 0) return descriptor;
    unlink(path);
    close(descriptor);
    return fail(probe, "cannot reserve room for", path, error);
  }
  return fail(probe, "cannot find a free name in", folder, 0);
}

// Calls visit(kind, its capacity, its entries, a function that clears an entry's counts) for each
// kind of section of the file. Launches are kernels with their group sizes, codes the machine code
// of kernels.
template <class Visit>
void for_each_section(Visit visit) {
  const auto clear_counters = [](auto* entry) {
    memset(entry->counters, 0, sizeof entry->counters);
  };
  const auto clear_count = [](auto* entry) { entry->count = 0; };
  visit(WEIR_SECTION_DEVICES, &Capacity::devices, &File::devices, clear_counters);
  visit(WEIR_SECTION_QUEUES, &Capacity::queues, &File::queues, clear_counters);
  visit(WEIR_SECTION_KERNELS, &Capacity::kernels, &File::kernels,
        [](weir_probe_kernel* entry) { entry->dispatches = 0; });
  visit(WEIR_SECTION_COUNTERS, &Capacity::counters, &File::counters,
        [](weir_probe_named_counter* entry) { entry->value = 0; });
  visit(WEIR_SECTION_OPS, &Capacity::ops, &File::ops, clear_count);
  visit(WEIR_SECTION_GRAPHS, &Capacity::graphs, &File::graphs, [](weir_probe_graph* entry) {
    entry->computed = 0;
    memset(entry->sums, 0, sizeof entry->sums);
  });
  visit(WEIR_SECTION_TRANSFERS, &Capacity::transfers, &File::transfers,
        [](weir_probe_transfer* entry) { entry->calls = entry->bytes = 0; });
  visit(WEIR_SECTION_LAUNCHES, &Capacity::launches, &File::launches, clear_count);
  visit(WEIR_SECTION_CODES, &Capacity::codes, &File::codes,
        [](weir_probe_code* entry) { entry->dispatches = entry->groups = 0; });
  visit(WEIR_SECTION_STEPS, &Capacity::steps, &File::steps, [](weir_probe_step*) {});
  visit(WEIR_SECTION_NAMES, &Capacity::names, &File::names, [](weir_probe_name*) {});
  visit(WEIR_SECTION_READS, &Capacity::reads, &File::reads, clear_count);
  visit(WEIR_SECTION_FUNCTIONS, &Capacity::functions, &File::functions,
        [](weir_probe_function* entry) {
          entry->calls = entry->calls_in_threads = entry->lines = 0;
          entry->sampled = entry->waited = 0;
        });
  visit(WEIR_SECTION_COMMANDS, &Capacity::commands, &File::commands, [](weir_probe_command*) {});
}

// Fills in the table of sections for that capacity, and the size of the file.
void lay_out(weir_probe_header* header, const Capacity& capacity) {
  memset(header, 0, sizeof *header);
  header->file_size = round_up_to_pages(sizeof *header);
  for_each_section([&](uint32_t kind, auto room, auto entries, auto) {
    if (capacity.*room == 0) return;
    const size_t size = sizeof *(static_cast<File*>(nullptr)->*entries);
    header->sections[header->section_count++] = {kind, static_cast<uint32_t>(size),
                                                 header->file_size, capacity.*room, 0};
    header->file_size += round_up_to_pages(size * capacity.*room);
  });
}

// Sets the pointers of `file` to the header and the sections in `memory`, which begins with a
// header from lay_out.
void set_pointers(File* file, void* memory) {
  file->header = static_cast<weir_probe_header*>(memory);
  for_each_section([&](uint32_t kind, auto, auto entries, auto) {
    const weir_probe_section* section = find_section(file, kind);
    void* at = section == nullptr ? nullptr : static_cast<char*>(memory) + section->offset;
    file->*entries = static_cast<std::remove_reference_t<decltype(file->*entries)>>(at);
  });
}

// Fills in the file's header, and the first entry of those sections that need one. The magic bytes
// come last, as they make the file valid.
void write_header(File* file, const char* probe) {
  weir_probe_header* header = file->header;
  header->version = WEIR_PROBE_VERSION;
  header->header_size = sizeof *header;
  header->pid = static_cast<uint32_t>(getpid());
  header->parent_pid = static_cast<uint32_t>(getppid());
  copy_text(header->probe, sizeof header->probe, probe);
  name_process(file);
  if (weir_probe_section* kernels = find_section(file, WEIR_SECTION_KERNELS)) {
    copy_text(file->kernels[0].name, sizeof file->kernels[0].name, "(other)");
    kernels->used = 1;
  }
  if (weir_probe_section* graphs = find_section(file, WEIR_SECTION_GRAPHS)) graphs->used = 1;
  if (weir_probe_section* launches = find_section(file, WEIR_SECTION_LAUNCHES)) launches->used = 1;
  if (weir_probe_section* functions = find_section(file, WEIR_SECTION_FUNCTIONS)) {
    copy_text(file->functions[0].name, sizeof file->functions[0].name, "(other)");
    functions->used = 1;
  }
  if (weir_probe_section* codes = find_section(file, WEIR_SECTION_CODES)) codes->used = 1;
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy(header->magic, WEIR_PROBE_MAGIC, sizeof header->magic);
}

// Memory to count in when no anonymous memory can be had: a probe must not bring its host down.
alignas(k_page) char g_static_memory[k_max_bytes];

// Lays the file out in `memory`; if that is MAP_FAILED, in anonymous or static memory.
void attach_memory(File* file, const char* probe, const weir_probe_header& plan, void* memory) {
  const size_t size = plan.file_size;
  file->has_disk_file = memory != MAP_FAILED;
  if (!file->has_disk_file) {
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = g_static_memory;
  }
  memcpy(memory, &plan, sizeof plan);
  set_pointers(file, memory);
  write_header(file, probe);
}

// Copies all entries with their counts set to 0; `to` may be `from` itself.
void copy_without_counts(const File& from, const File& to) {
  for_each_section([&](uint32_t kind, auto, auto entries, auto reset) {
    const weir_probe_section* section = find_section(&from, kind);
    for (uint32_t i = 0; section != nullptr && i < section->used; ++i) {
      (to.*entries)[i] = (from.*entries)[i];
      reset(&(to.*entries)[i]);
    }
  });
}

OwnFile* g_own;  // once forks are handled
void (*g_in_child)();

// Gives a forked child memory of its own in place of its parent's file, at the same addresses. All
// counts in it are 0.
void detach_after_fork(File* file) {
  if (file->header == nullptr) return;
  if (!file->has_disk_file) {
    // Its memory is private already, perhaps that of a child that has not made its file yet.
    file->header->parent_pid = file->header->pid;
    file->header->pid = static_cast<uint32_t>(getpid());
    return;
  }
  const size_t size = file->header->file_size;
  void* copy = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return;
  memcpy(copy, file->header, sizeof *file->header);
  File own_file = *file;
  set_pointers(&own_file, copy);
  own_file.header->flags |= WEIR_PROBE_FORKED;
  own_file.header->hold = weir_probe_hold{};  // nobody would release a hold in this process
  own_file.header->parent_pid = file->header->pid;
  own_file.header->pid = static_cast<uint32_t>(getpid());
  copy_without_counts(*file, own_file);
  // Handles in the parent's memory point into the mapping: the copy takes its very place.
  move_mapping(copy, file->header, size);
  file->has_disk_file = false;
}

// Creates the file of a forked process and moves its counts there; does nothing in other
// processes. The flag WEIR_PROBE_FORKED asks for the file until it is made. Then it tells readers
// whose file it is.
void make_forked_file(File* file) {
  if (file->has_disk_file || (file->header->flags & WEIR_PROBE_FORKED) == 0) return;
  file->header->flags &= ~WEIR_PROBE_FORKED;  // a single attempt, even if it fails
  name_process(file);
  char probe[sizeof file->header->probe];
  copy_text(probe, sizeof probe, file->header->probe);
  const size_t size = file->header->file_size;
  const int descriptor = create_file(probe, size, file);
  if (descriptor < 0) return;
  // Written first and mapped afterwards, so that no mapping shows a half-copied file.
  if (write_all(descriptor, file->header, size, 0) &&
      mmap(file->header, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) !=
          MAP_FAILED) {
    file->has_disk_file = true;
    set_flag(file, WEIR_PROBE_FORKED);
  } else {
    report_not_counting(probe, "cannot fill its file in", WEIR_PROBE_DIR_VARIABLE, errno);
  }
  close(descriptor);
}

void before_fork() { pthread_mutex_lock(&g_own->lock); }
void after_fork_in_parent() { pthread_mutex_unlock(&g_own->lock); }
void after_fork_in_child() {
  const KeepErrno keep;
  pthread_mutex_init(&g_own->lock, nullptr);
  Table::unlock_after_fork();
  detach_after_fork(&g_own->file);
  g_own->ready = false;
  g_in_child();
}

}  // namespace

void report_not_counting(const char* probe, const char* reason, const char* place, int error) {
  const char* blank = *place == 0 ? "" : " ";
  const char* colon = error != 0 ? ": " : "";
  const char* error_text = error != 0 ? strerror(error) : "";
  print_line(STDERR_FILENO, "weir: the %s probe is not counting: %s%s%s%s%s; the program goes on\n",
             probe, reason, blank, place, colon, error_text);
}

weir_probe_section* find_section(const File* file, uint32_t kind) {
  for (uint32_t i = 0; i < file->header->section_count; ++i) {
    if (file->header->sections[i].kind == kind) return &file->header->sections[i];
  }
  return nullptr;
}

void name_process(File* file) {
  copy_text(file->header->process, sizeof file->header->process, program_name());
  weir_probe_section* commands = find_section(file, WEIR_SECTION_COMMANDS);
  if (commands == nullptr) return;
  read_command_line(file->commands->text, sizeof file->commands->text);
  commands->used = 1;
}

bool copy_text(char* to, size_t size, const char* from) {
  if (from == nullptr) from = "";
  const size_t length = strnlen(from, size);
  const bool fits = length < size;
  const size_t copied = fits ? length : size - 1;
  memcpy(to, from, copied);
  memset(to + copied, 0, size - copied);
  return fits;
}

uint64_t hash_text(const char* text) { return hash_bytes(k_hash_seed, text, strlen(text)); }

void set_flag(File* file, uint32_t flag) {
  __atomic_fetch_or(&file->header->flags, flag, __ATOMIC_RELAXED);
}

// Creates and maps the probe's file of this process, with room for `capacity`. If that fails, it
// complains and uses memory without a file.
void open_file(File* file, const char* probe, const Capacity& capacity) {
  weir_probe_header plan;
  lay_out(&plan, capacity);
  const size_t size = plan.file_size;
  const int descriptor = create_file(probe, size, file);
  void* memory = MAP_FAILED;
  if (descriptor >= 0) {
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
      report_not_counting(probe, "cannot map its file in", WEIR_PROBE_DIR_VARIABLE, errno);
    close(descriptor);
  }
  attach_memory(file, probe, plan, memory);
}

void open_memory(File* file, const char* probe, const Capacity& capacity) {
  weir_probe_header plan;
  lay_out(&plan, capacity);
  file->stem[0] = '\0';
  attach_memory(file, probe, plan, MAP_FAILED);
}

void clear_counts(File* file) { copy_without_counts(*file, *file); }

// Creates the probe's file with `open` and installs the handlers for forks, both once. A forked
// process gets a file of its own; `renew` makes its further files.
void ensure_initialized(OwnFile* own, void (*open)(), void (*in_child)(),
                        void (*renew)(const File&)) {
  if (own->file.header == nullptr) {
    open();
    g_own = own;
    g_in_child = in_child;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }
  make_forked_file(&own->file);
  renew(own->file);
  __atomic_store_n(&own->ready, true, __ATOMIC_SEQ_CST);
  set_flag(&own->file, __atomic_load_n(&own->flags, __ATOMIC_SEQ_CST));  // after `ready`: tell_flag
}

bool raise_flag(OwnFile* own, uint32_t flag) {
  const bool first = (__atomic_fetch_or(&own->flags, flag, __ATOMIC_SEQ_CST) & flag) == 0;
  if (__atomic_load_n(&own->ready, __ATOMIC_SEQ_CST)) set_flag(&own->file, flag);
  return first;
}

// Creates a file named like the probe's `file` but for its ending, and maps its first `bytes`.
// Null on failure, with errno set to the reason or 0; then nothing is left behind.
void* create_side_file(const File& file, const char* suffix, size_t bytes, SideFile* out) {
  errno = 0;
  const char* folder = environment(WEIR_PROBE_DIR_VARIABLE);
  if (folder == nullptr || !file.has_disk_file) return nullptr;
  const int length = snprintf(out->path, sizeof out->path, "%s/%s%s", folder, file.stem, suffix);
  if (length <= 0 || static_cast<size_t>(length) >= sizeof out->path) return nullptr;
  const int descriptor = open(out->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) return nullptr;
  void* memory = MAP_FAILED;
  out->inode = read_inode(descriptor);
  int error = out->inode == 0 ? errno : reserve_disk_space(descriptor, 0, bytes);
  if (out->inode != 0 && error == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    error = errno;
  }
  close(descriptor);
  if (memory != MAP_FAILED) return memory;
  unlink(out->path);
  errno = error;
  return nullptr;
}

int reopen_side_file(const SideFile& beside) {
  const int descriptor = open(beside.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return -1;
  if (read_inode(descriptor) == beside.inode) return descriptor;
  close(descriptor);
  errno = ESTALE;
  return -1;
}

uint64_t read_mebibytes(const char* variable, uint64_t limit) {
  const char* text = environment(variable);
  if (text == nullptr) return 0;
  char* end = nullptr;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*end != '\0') return 0;
  return (value < limit ? value : limit) << 20;
}

uint32_t add_device(File* file, const weir_probe_device& device) {
  weir_probe_section* section = find_section(file, WEIR_SECTION_DEVICES);
  if (!has_room(file, section, WEIR_PROBE_DEVICES_OVERFLOWED)) return section->capacity - 1;
  file->devices[section->used] = device;
  return publish_entry(section);
}

uint32_t add_queue(File* file, uint32_t device, uint32_t family, uint32_t index, uint32_t flags) {
  weir_probe_section* section = find_section(file, WEIR_SECTION_QUEUES);
  if (!has_room(file, section, WEIR_PROBE_QUEUES_OVERFLOWED)) return section->capacity - 1;
  file->queues[section->used] = {device, family, index, flags, {}, {}};
  return publish_entry(section);
}

// Keeps what of a kernel's name does not fit into its entry. False where it does not fit either.
static bool add_rest_of_name(File* file, uint32_t kernel, const char* rest) {
  weir_probe_section* section = find_section(file, WEIR_SECTION_NAMES);
  if (section == nullptr || section->used == section->capacity) return false;
  weir_probe_name& entry = file->names[section->used];
  entry.kernel = kernel;
  const bool fits = copy_text(entry.rest, sizeof entry.rest, rest);
  publish_entry(section);
  return fits;
}

// Returns the index in the file of the kernel (device, hash, is_named), adding it if it is new; 0
// without room. `is_named`: `name` is the program's, not made up from a hash.
uint32_t kernel_index(File* file, uint32_t device, uint64_t hash, bool is_named, const char* name,
                      const char* entry_point) {
  weir_probe_section* section = find_section(file, WEIR_SECTION_KERNELS);
  for (uint32_t i = 1; i < section->used; ++i) {
    const weir_probe_kernel& kernel = file->kernels[i];
    if (kernel.hash == hash && kernel.device == device &&
        ((kernel.flags & WEIR_KERNEL_NAMED) != 0) == is_named) {
      return i;
    }
  }
  if (!has_room(file, section, WEIR_PROBE_KERNELS_OVERFLOWED)) return 0;
  weir_probe_kernel& entry = file->kernels[section->used];
  entry.hash = hash;
  entry.device = device;
  entry.flags = is_named ? WEIR_KERNEL_NAMED : 0;
  const bool fits = copy_text(entry.name, sizeof entry.name, name);
  if (!fits && !add_rest_of_name(file, section->used, name + sizeof entry.name - 1)) {
    entry.flags |= WEIR_KERNEL_TRUNCATED;
    set_flag(file, WEIR_PROBE_NAMES_TRUNCATED);
  }
  copy_text(entry.entry_point, sizeof entry.entry_point, entry_point);
  return publish_entry(section);
}

uint32_t find_or_add_named_kernel(File* file, uint32_t device, const char* name) {
  if (name == nullptr || name[0] == '\0') return 0;
  return kernel_index(file, device, hash_text(name), /*named=*/true, name, "");
}

uint64_t* add_counter(File* file, const char* name) {
  weir_probe_section* section = find_section(file, WEIR_SECTION_COUNTERS);
  weir_probe_named_counter& entry = file->counters[section->used];
  copy_text(entry.name, sizeof entry.name, name);
  publish_entry(section);
  return &entry.value;
}

}  // namespace weir_probe
