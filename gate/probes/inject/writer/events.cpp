// Writes the event file: hands out its blocks to threads, and appends their records.
#include "gate/probes/inject/writer/events.h"

#include <sys/resource.h>

#include "gate/probes/table.h"

namespace weir_probe {

bool g_events_on = false;

namespace {

static_assert(sizeof(weir_event) == 8 && sizeof(weir_events_header) <= WEIR_EVENTS_HEADER_SIZE);
static_assert(sizeof(weir_event_dispatch) == 24 && sizeof(weir_event_times) == 40);
static_assert(sizeof(weir_event_clock) == 40 && sizeof(weir_event_command) == 48);
static_assert(sizeof(weir_event_op) == 32);

#ifdef MAP_POPULATE
constexpr int k_populate = MAP_POPULATE;
#else
constexpr int k_populate = 0;
#endif
constexpr uint32_t k_room = WEIR_EVENTS_BLOCK_SIZE - sizeof(weir_events_block);

// The block that a thread writes to. Writers are never freed: a later thread takes over that of one
// that has ended.
struct Writer {
  Writer* next;
  uint32_t thread;
  char* block;  // null: none yet
  uint32_t used;
  uint32_t log;  // atomic; the process it belongs to: its g_log.generation
};

struct Log {
  pthread_mutex_t lock;
  Writer* writers;
  uint32_t generation;  // 1 more in each forked process
  uint64_t max_blocks;
  bool full;
  weir_events_header* header;
  char probe[16];
  SideFile at;
};
Log g_log = {PTHREAD_MUTEX_INITIALIZER, nullptr, 1, 0, true, nullptr, {}, {}};
weir_events_header g_nowhere;  // stands in for the header where there is no file

thread_local Writer* t_writer = nullptr;

// Ends recording, so that further events are dropped, and prints why. Returns null, for its callers
// to return. Under the lock.
char* stop(const char* what, int error) {
  g_log.full = true;
  __atomic_fetch_or(&g_log.header->flags, WEIR_EVENTS_DROPPED, __ATOMIC_RELAXED);
  print_line(STDERR_FILENO,
             "weir: the %s probe records no more events: %s%s%s; counts and program go on\n",
             g_log.probe, what, error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
  return nullptr;
}

// Makes the event file longer by a block and returns its mapping. Null when the file is full or
// cannot grow. Needs the lock.
char* add_block() {
  if (g_log.full) return nullptr;
  const uint64_t index = g_log.header->blocks;
  if (index >= g_log.max_blocks) {
    return stop("the file has the size that WEIR_PROBE_EVENTS allows", 0);
  }
  const off_t offset = static_cast<off_t>(WEIR_EVENTS_HEADER_SIZE + index * WEIR_EVENTS_BLOCK_SIZE);
  const int descriptor = reopen_side_file(g_log.at);
  if (descriptor < 0) return stop("its file is gone", errno);
  // Beyond this limit the kernel sends a signal that ends the engine.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
      limit.rlim_cur < static_cast<rlim_t>(offset) + WEIR_EVENTS_BLOCK_SIZE) {
    close(descriptor);
    return stop("the limit on file sizes is reached", 0);
  }
  // Allocate the disk's blocks first: otherwise a full disk shows as SIGBUS inside the engine.
  const int error = reserve_disk_space(descriptor, offset, WEIR_EVENTS_BLOCK_SIZE);
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = mmap(nullptr, WEIR_EVENTS_BLOCK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | k_populate,
                  descriptor, offset);
  }
  const int reason = error != 0 ? error : errno;
  close(descriptor);
  if (memory == MAP_FAILED) return stop("its file cannot grow", reason);
  __atomic_store_n(&g_log.header->blocks, static_cast<uint32_t>(index + 1), __ATOMIC_RELEASE);
  return static_cast<char*>(memory);
}

// Returns a writer whose thread has ended, or null. Under the lock.
Writer* find_abandoned_writer() {
  for (Writer* at = g_log.writers; at != nullptr; at = at->next) {
    if (thread_is_gone(at->thread)) return at;
  }
  return nullptr;
}

constexpr uint32_t padded(uint32_t bytes) { return (bytes + 7U) & ~7U; }

// Makes `bytes` that were filled in behind the writer's last record visible to readers.
void publish(Writer* writer, uint32_t bytes) {
  writer->used += bytes;
  __atomic_store_n(&reinterpret_cast<weir_events_block*>(writer->block)->used, writer->used,
                   __ATOMIC_RELEASE);
}

char* write_position(Writer* writer) {
  return writer->block + sizeof(weir_events_block) + writer->used;
}

// Appends one record, of `head` and `tail`, to the writer's block. The caller has checked that it
// fits.
void append(Writer* writer, uint16_t kind, uint32_t index, const void* head, uint32_t head_bytes,
            const void* tail, uint32_t tail_bytes) {
  const uint32_t bytes =
      static_cast<uint32_t>(sizeof(weir_event)) + padded(head_bytes + tail_bytes);
  char* position = write_position(writer);
  const weir_event event = {kind, static_cast<uint16_t>(bytes / 8), index};
  memcpy(position, &event, sizeof event);
  position += sizeof event;
  if (head_bytes != 0) memcpy(position, head, head_bytes);
  if (tail_bytes != 0) memcpy(position + head_bytes, tail, tail_bytes);
  // The padding is 0 already: blocks are fresh from the file system.
  publish(writer, bytes);
}

// Gives the writer a new block, which begins with its thread's number. False when there is none.
bool start_block(Writer* writer) {
  if (writer->block != nullptr) munmap(writer->block, WEIR_EVENTS_BLOCK_SIZE);
  writer->used = 0;
  writer->block = add_block();
  if (writer->block == nullptr) return false;
  append(writer, WEIR_EVENT_THREAD, writer->thread, nullptr, 0, nullptr, 0);
  return true;
}

// Returns a writer for this thread, one of an ended thread or a new one; null when memory is out.
// Needs the lock. In a block taken over, records continue behind those of the ended thread.
Writer* acquire_writer() {
  Writer* writer = find_abandoned_writer();
  if (writer == nullptr) {
    writer = static_cast<Writer*>(calloc(1, sizeof(Writer)));
    if (writer == nullptr) return nullptr;
    writer->next = g_log.writers;
    g_log.writers = writer;
  }
  writer->thread = thread_number();
  __atomic_store_n(&writer->log, g_log.generation, __ATOMIC_RELAXED);
  if (writer->block != nullptr) {
    // Pairs with publish(): the ended thread's records are complete.
    const auto* block = reinterpret_cast<const weir_events_block*>(writer->block);
    writer->used = __atomic_load_n(&block->used, __ATOMIC_ACQUIRE);
  }
  if (writer->block != nullptr && writer->used + sizeof(weir_event) <= k_room) {
    append(writer, WEIR_EVENT_THREAD, writer->thread, nullptr, 0, nullptr, 0);
  }
  return writer;
}

bool belongs_to_this_process(const Writer* writer) {
  return __atomic_load_n(&writer->log, __ATOMIC_RELAXED) == g_log.generation;
}

// Returns this thread's writer with room for `bytes`. Null, after counting a lost record, if there
// is no room.
Writer* writer_for(uint32_t bytes) {
  Writer* writer = t_writer;
  if (__builtin_expect(writer != nullptr && belongs_to_this_process(writer) &&
                           writer->block != nullptr && writer->used + bytes <= k_room,
                       1)) {
    return writer;
  }
  bool has_room = false;
  if (bytes <= k_max_event_bytes) {
    const KeepErrno keep_errno;
    const OwnTimeScope own_time_scope;
    const Locked locked(&g_log.lock);
    if (writer == nullptr || !belongs_to_this_process(writer)) {
      writer = acquire_writer();
      t_writer = writer;
    }
    has_room = writer != nullptr && ((writer->block != nullptr && writer->used + bytes <= k_room) ||
                                     start_block(writer));
  }
  if (has_room) return writer;
  __atomic_fetch_add(&g_log.header->dropped, 1, __ATOMIC_RELAXED);
  __atomic_fetch_or(&g_log.header->flags, WEIR_EVENTS_DROPPED, __ATOMIC_RELAXED);
  return nullptr;
}

// Creates the event file of this process. False on failure, with errno set to the reason or 0.
// Needs the caller's lock.
bool make_file(const File& file) {
  auto* header = static_cast<weir_events_header*>(
      create_side_file(file, WEIR_EVENTS_SUFFIX, WEIR_EVENTS_HEADER_SIZE, &g_log.at));
  if (header == nullptr) return false;
  header->version = WEIR_EVENTS_VERSION;
  header->header_size = WEIR_EVENTS_HEADER_SIZE;
  header->block_size = WEIR_EVENTS_BLOCK_SIZE;
  header->pid = static_cast<uint32_t>(getpid());
  if (timing_wanted() == Timing::serialized) header->flags |= WEIR_EVENTS_SERIALIZED;
  copy_text(header->probe, sizeof header->probe, g_log.probe);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy(header->magic, WEIR_EVENTS_MAGIC, sizeof header->magic);
  g_log.header = header;
  g_log.full = false;
  return true;
}

void start_log(const File& file) {
  g_events_on = make_file(file);
  if (!g_events_on) {
    g_log.header = &g_nowhere;
    stop("its file cannot be made", errno);
  }
}

}  // namespace

Timing timing_wanted() {
  if (g_log.max_blocks == 0) return Timing::off;
  const char* text = environment(WEIR_PROBE_TIMING_VARIABLE);
  if (text == nullptr) return Timing::off;
  if (strcmp(text, "batched") == 0) return Timing::batched;
  return strcmp(text, "serialized") == 0 ? Timing::serialized : Timing::off;
}

void open_events(const File& file) {
  if (g_log.header != nullptr) return;
  g_log.header = &g_nowhere;
  g_log.max_blocks = read_mebibytes(WEIR_PROBE_EVENTS_VARIABLE, 1U << 20) / WEIR_EVENTS_BLOCK_SIZE;
  if (g_log.max_blocks == 0 || !file.has_disk_file) return;
  copy_text(g_log.probe, sizeof g_log.probe, file.header->probe);
  start_log(file);
}

void detach_events_after_fork() {
  if (!g_events_on) return;
  pthread_mutex_init(&g_log.lock, nullptr);
  // The blocks belong to the parent. Its few writers stay unused.
  g_log.writers = nullptr;
  ++g_log.generation;
  g_log.header = &g_nowhere;
  g_log.full = true;
}

void make_forked_events(const File& file) {
  if (!g_events_on || g_log.header != &g_nowhere) return;
  start_log(file);
}

void set_events_flag(uint32_t flag) {
  if (g_log.header != nullptr) __atomic_fetch_or(&g_log.header->flags, flag, __ATOMIC_RELAXED);
}

void report_untimed(const char* what, const char* why) {
  static uint32_t reported = 0;
  set_events_flag(WEIR_EVENTS_UNTIMED);
  if (__atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED) != 0) return;
  print_line(STDERR_FILENO, "weir: the %s probe %s without times: %s; the program goes on\n",
             g_log.probe, what, why);
}

bool write_event(uint16_t kind, uint32_t index, const void* head, uint32_t head_bytes,
                 const void* tail, uint32_t tail_bytes) {
  if (tail_bytes > k_max_event_bytes || head_bytes > k_max_event_bytes) return false;
  Writer* writer =
      writer_for(static_cast<uint32_t>(sizeof(weir_event)) + padded(head_bytes + tail_bytes));
  if (writer == nullptr) return false;
  const SampledOwnTimeScope own_time_scope;
  append(writer, kind, index, head, head_bytes, tail, tail_bytes);
  return true;
}

__thread uint32_t t_recording_depth __attribute__((tls_model("initial-exec")));
__thread uint32_t t_sample_count __attribute__((tls_model("initial-exec")));

void note_recording(uint64_t nanoseconds) {
  __atomic_fetch_add(&g_log.header->recording, nanoseconds, __ATOMIC_RELAXED);
}

// Writes when the device ran a command buffer, in as many records as its groups of commands take.
// `pairs`: begin and end of each group. All times are in ticks.
void write_times(uint32_t queue, uint64_t serial, uint32_t order, uint64_t begin, uint64_t end,
                 const uint64_t* pairs, uint32_t groups) {
  constexpr uint32_t k_pair = 2 * sizeof(uint64_t);
  constexpr uint32_t k_max_groups = (k_max_event_bytes - 64) / k_pair;
  uint32_t first = 0;
  do {
    const uint32_t count = groups - first < k_max_groups ? groups - first : k_max_groups;
    const weir_event_times times = {serial, order, first, begin, end, count, 0};
    write_event(WEIR_EVENT_TIMES, queue, &times, sizeof times,
                count == 0 ? nullptr : pairs + size_t{2} * first, count * k_pair);
    first += count;
  } while (first < groups);
}

void write_wait(uint32_t queue, uint32_t kind, uint64_t begin, bool sync) {
  const uint64_t now = now_nanoseconds();
  const weir_event_wait wait = {begin != 0 ? begin : now, now, kind, sync ? WEIR_WAIT_SYNC : 0};
  write_event(WEIR_EVENT_WAIT, queue, &wait, sizeof wait);
}

char* reserve_event_bytes(uint32_t bytes) {
  Writer* writer = writer_for(bytes);
  return writer == nullptr ? nullptr : write_position(writer);
}

void commit_event_bytes(uint32_t bytes) { publish(t_writer, bytes); }

}  // namespace weir_probe
