// Memory and copies. Device memory has addresses that cannot be read, and contents in a sparse
// file: small copies and fills are kept there, and large ones are dropped, so that a model of any
// size fits. Reading what was never written gives WEIR_TWIN_FILL. Copies between host memory are
// real.
#include <linux/falloc.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gate/probes/inject/streams/device_memory.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/twin/blob.h"
#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

// The device's addresses: a range that cannot be read, and the blocks taken from it.
struct Arena {
  uint64_t begin, end;
  DeviceMemory memory;
  int contents;  // a file; the offset of a byte is its address - begin
};
Arena g_arena;

// Memory of another process that is mapped here: its contents are in that process's file.
struct ForeignBlock {
  uint64_t at, bytes;  // addresses here
  uint64_t offset;     // in the file
  int contents;
  ForeignBlock* next;
};
ForeignBlock* g_foreign;  // atomic; the first of a list that only grows. Unmapped: bytes is 0
DeviceMemory g_pinned;    // memory of the host, under g_lock
Table g_managed;          // memory that host and device share, by its address
// Larger copies to the device are not kept; nor are larger fills and copies within it.
constexpr size_t k_most_kept_from_host = 1 << 20, k_most_kept_within = 64 << 10;
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Once g_once;
int g_fill;

// Reserves addresses for the simulated GPU's memory, as many as the system allows, and reads the
// fill byte.
void reserve() {
  for (uint64_t bytes = uint64_t{8} << 40; bytes >= uint64_t{1} << 36; bytes /= 2) {
    void* address =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) continue;
    g_arena.begin = round_up_to(reinterpret_cast<uint64_t>(address), k_reservation_granularity);
    g_arena.end = reinterpret_cast<uint64_t>(address) + bytes;
    break;
  }
  const char* fill = getenv(WEIR_TWIN_FILL_VARIABLE);
  g_fill = fill == nullptr ? 0 : atoi(fill);
  g_arena.contents = static_cast<int>(syscall(SYS_memfd_create, "weir-twin", MFD_CLOEXEC));
  if (g_arena.contents >= 0 &&
      ftruncate(g_arena.contents, static_cast<off_t>(g_arena.end - g_arena.begin)) != 0) {
    close(g_arena.contents);
    g_arena.contents = -1;
  }
}
}  // namespace

LastWrites g_writes;

bool is_device_address(const void* at) {
  g_once.run(reserve);
  const auto number = reinterpret_cast<uint64_t>(at);
  return number >= g_arena.begin && number < g_arena.end;
}

namespace {

// The file and offset of an address.
struct Place {
  int contents;
  off_t offset;
};
Place find_place(uint64_t at) {
  const ForeignBlock* block = __atomic_load_n(&g_foreign, __ATOMIC_ACQUIRE);
  while (block != nullptr && at - block->at >= block->bytes) block = block->next;
  if (block == nullptr) return {g_arena.contents, static_cast<off_t>(at - g_arena.begin)};
  return {block->contents, static_cast<off_t>(block->offset + (at - block->at))};
}

void write_contents(uint64_t at, const void* from, size_t bytes) {
  const Place place = find_place(at);
  write_all(place.contents, from, bytes, static_cast<uint64_t>(place.offset));
}

// Makes a range of device memory one that was never written.
void forget_contents(uint64_t at, uint64_t bytes) {
  const Place place = find_place(at);
  fallocate(place.contents, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place.offset,
            static_cast<off_t>(bytes));
}

// Reads the simulated GPU's memory: what was written, and fill bytes for pages where nothing was.
void read_contents(char* to, uint64_t at, size_t bytes) {
  const auto [contents, begin] = find_place(at);
  if (g_fill != 0 || pread(contents, to, bytes, begin) < 0) memset(to, g_fill, bytes);
  const off_t end = begin + static_cast<off_t>(bytes);
  off_t data = g_fill == 0 ? end : lseek(contents, begin, SEEK_DATA);
  while (data >= 0 && data < end) {
    const off_t hole = lseek(contents, data, SEEK_HOLE);
    const off_t stop = hole < end ? hole : end;
    if (pread(contents, to + (data - begin), static_cast<size_t>(stop - data), data) < 0) return;
    data = lseek(contents, stop, SEEK_DATA);
  }
}

// The free memory of a device, in bytes.
uint64_t free_bytes_on(int index) {
  const uint64_t used = twin()->used_bytes + g_arena.memory.used(index);
  return used > twin()->total_bytes ? 0 : twin()->total_bytes - used;
}

// Reports once that memory ran out: llama-bench prints only "failed to load model".
void report_shortage(uint64_t requested, int index) {
  static bool reported = false;  // under g_lock
  if (reported) return;
  reported = true;
  constexpr uint64_t k_mib = 1 << 20;
  print_line(STDERR_FILENO,
             "weir: the " WEIR_API_TITLE
             " twin is out of memory: %lu MiB asked for, %lu MiB left of %lu\n",
             requested / k_mib, free_bytes_on(index) / k_mib, twin()->total_bytes / k_mib);
}

// Takes `bytes` of addresses in the first gap that is large enough, and `device_bytes` of memory
// of device `index`. Returns the address, or 0 if either runs out.
uint64_t allocate_addresses(uint64_t bytes, uint64_t device_bytes, int index) {
  g_once.run(reserve);
  const Locked locked(&g_lock);
  if (device_bytes > free_bytes_on(index)) {
    report_shortage(device_bytes, index);
    return 0;
  }
  const uint64_t granularity =
      device_bytes == 0 ? k_reservation_granularity : k_allocation_granularity;
  const uint64_t size = round_up_to(bytes, granularity);
  uint64_t address = g_arena.begin;
  DeviceMemory::Block** link = g_arena.memory.first();
  while (*link != nullptr && (*link)->at < address + size) {
    const uint64_t end = round_up_to((*link)->at + (*link)->bytes, granularity);
    if (end > address) address = end;
    link = &(*link)->next;
  }
  if (size > g_arena.end - address) return 0;
  return g_arena.memory.insert_block(link, address, size, device_bytes, index) ? address : 0;
}
bool free_block(uint64_t at) {
  const Locked locked(&g_lock);
  const DeviceMemory::Block* block = g_arena.memory.find(at);
  if (block == nullptr || block->at != at) return false;
  forget_contents(at, block->bytes);
  return g_arena.memory.give_back(at);
}

int allocate_device(void** out, size_t bytes) {
  if (twin() == nullptr) return fail(k_no_device);
  *out = nullptr;
  if (bytes == 0) return k_ok;
  *out = reinterpret_cast<void*>(
      allocate_addresses(bytes, round_up_to(bytes, k_allocation_granularity), device()));
  return success_if(*out != nullptr, k_out_of_memory);
}

// Notes memory of the host that the device can read.
int pin(const void* at, size_t bytes) {
  const Locked locked(&g_lock);
  return success_if(g_pinned.insert_block(address_key(at), bytes, device()), k_out_of_memory);
}
bool unpin(const void* at) {
  const Locked locked(&g_lock);
  return g_pinned.give_back(address_key(at));
}

int allocate_host(void** out, size_t bytes) {
  if (twin() == nullptr) return fail(k_no_device);
  constexpr size_t k_page = 4096;
  const size_t size = round_up_to(bytes == 0 ? 1 : bytes, k_page);
  *out = aligned_alloc(k_page, size);
  if (*out == nullptr) return fail(k_out_of_memory);
  return pin(*out, size);
}

// Reads device memory as a program gets it. `kernel`: the last one before, if it may have written a
// value here.
void read_value(char* to, uint64_t at, size_t bytes, const LastKernel& kernel) {
  read_contents(to, at, bytes);
  if (kernel.name != nullptr && !g_writes.reached(at, bytes, kernel.writes)) {
    answer_read(to, bytes, kernel.name);
  }
}

// Copies bytes between memory of the host and of the simulated GPU. Large copies to the GPU do
// nothing.
void copy_bytes(void* to, const void* from, size_t bytes, const LastKernel& kernel) {
  const bool to_device = is_device_address(to);
  if (!is_device_address(from)) {
    if (!to_device) {
      memmove(to, from, bytes);
      return;
    }
    if (bytes <= k_most_kept_from_host) {
      write_contents(address_key(to), from, bytes);
    }
    g_writes.add(address_key(to), bytes);
    return;
  }
  if (!to_device) {
    read_value(static_cast<char*>(to), address_key(from), bytes, kernel);
    return;
  }
  if (bytes > k_most_kept_within) return;
  char kept[k_most_kept_within];
  read_contents(kept, address_key(from), bytes);
  write_contents(address_key(to), kept, bytes);
  // A copy of what a kernel may have written is read as that kernel's.
  if (kernel.name == nullptr || g_writes.reached(address_key(from), bytes, kernel.writes)) {
    g_writes.add(address_key(to), bytes);
  }
}

// Fills device memory. Of large fills only those with 0 have an effect.
void fill_bytes(uint64_t at, int value, size_t bytes) {
  g_writes.add(at, bytes);
  if (bytes <= k_most_kept_within) {
    char kept[k_most_kept_within];
    memset(kept, value, bytes);
    write_contents(at, kept, bytes);
  } else if (value == 0) {
    forget_contents(at, bytes);
  }
}

struct Rows {
  size_t to_pitch, from_pitch, width, height;
};

// Copies rows of bytes, or adds the copy to the stream's capture; returns the API's error code. A
// copy that the program `is_waiting` for fails within a capture.
int copy(void* to, const void* from, const Rows& rows, void* stream, bool is_waiting) {
  if (twin() == nullptr) return fail(k_no_device);
  if (is_waiting) {
    const int wait_error = check_wait(stream);
    if (wait_error != k_ok) return wait_error;
  }
  int error = k_ok;
  if (runs_now(stream, k_copy_node, &error)) {
    const LastKernel kernel = last_kernel(stream);
    for (size_t row = 0; row < rows.height; ++row) {
      copy_bytes(static_cast<char*>(to) + row * rows.to_pitch,
                 static_cast<const char*>(from) + row * rows.from_pitch, rows.width, kernel);
    }
  }
  return error == k_ok ? error : fail(error);
}

// Fills memory of the GPU or of the host with the byte `value`; returns the API's error code. A
// stream that is captured only records it.
int set(void* to, int value, size_t bytes, void* stream) {
  if (twin() == nullptr) return fail(k_no_device);
  int error = k_ok;
  if (runs_now(stream, k_fill_node, &error)) {
    if (is_device_address(to)) {
      fill_bytes(address_key(to), value, bytes);
    } else {
      memset(to, value, bytes);
    }
  }
  return error == k_ok ? error : fail(error);
}

}  // namespace

bool find_block(const void* at, uint64_t* begin, uint64_t* bytes, int* device) {
  const Locked locked(&g_lock);
  const DeviceMemory::Block* block = g_arena.memory.find(address_key(at));
  if (block == nullptr) return false;
  *begin = block->at;
  *bytes = block->bytes;
  *device = block->device;
  return true;
}
bool is_pinned(const void* at) {
  const Locked locked(&g_lock);
  return g_pinned.find(address_key(at)) != nullptr;
}

WEIR_RUNTIME(Malloc, (void** out, size_t bytes)) { return allocate_device(out, bytes); }
WEIR_RUNTIME(MallocAsync, (void** out, size_t bytes, void*)) { return allocate_device(out, bytes); }
WEIR_RUNTIME(Free, (void* at)) {
  if (at != nullptr && g_managed.remove(reinterpret_cast<uint64_t>(at)) != nullptr) {
    free(at);
    return k_ok;
  }
  return success_if(at == nullptr || free_block(reinterpret_cast<uint64_t>(at)), k_invalid_value);
}
WEIR_RUNTIME(FreeAsync, (void* at, void*)) {
  return success_if(at == nullptr || free_block(reinterpret_cast<uint64_t>(at)), k_invalid_value);
}
WEIR_RUNTIME(MallocManaged, (void** out, size_t bytes, unsigned)) {
  if (const int error = allocate_host(out, bytes)) return error;
  g_managed.insert(reinterpret_cast<uint64_t>(*out), *out);
  return k_ok;
}
WEIR_RUNTIME(MallocHost, (void** out, size_t bytes)) { return allocate_host(out, bytes); }
WEIR_RUNTIME(HostAlloc, (void** out, size_t bytes, unsigned)) { return allocate_host(out, bytes); }
WEIR_RUNTIME(FreeHost, (void* at)) {
  unpin(at);
  free(at);
  return k_ok;
}
WEIR_RUNTIME(HostRegister, (void* at, size_t bytes, unsigned)) { return pin(at, bytes); }
WEIR_RUNTIME(HostUnregister, (void* at)) {
  unpin(at);
  return k_ok;
}
WEIR_RUNTIME(HostGetDevicePointer, (void** out, void* at, unsigned)) {
  *out = at;
  return k_ok;
}
WEIR_RUNTIME(MemGetInfo, (size_t * free_bytes, size_t* total)) {
  if (twin() == nullptr) return fail(k_no_device);
  const Locked locked(&g_lock);
  // Either may be null: llama.cpp b8352 passes one alone.
  if (free_bytes != nullptr) *free_bytes = free_bytes_on(device());
  if (total != nullptr) *total = twin()->total_bytes;
  return k_ok;
}

WEIR_RUNTIME(Memcpy, (void* to, const void* from, size_t bytes, int)) {
  return copy(to, from, {0, 0, bytes, 1}, nullptr, /*waits=*/true);
}
WEIR_RUNTIME(MemcpyAsync, (void* to, const void* from, size_t bytes, int, void* stream)) {
  return copy(to, from, {0, 0, bytes, 1}, stream, /*waits=*/false);
}
WEIR_RUNTIME(MemcpyPeerAsync, (void* to, int, const void* from, int, size_t bytes, void* stream)) {
  return copy(to, from, {0, 0, bytes, 1}, stream, /*waits=*/false);
}
WEIR_RUNTIME(Memcpy2D, (void* to, size_t to_pitch, const void* from, size_t from_pitch,
                        size_t width, size_t height, int)) {
  return copy(to, from, {to_pitch, from_pitch, width, height}, nullptr, /*waits=*/true);
}
WEIR_RUNTIME(Memcpy2DAsync, (void* to, size_t to_pitch, const void* from, size_t from_pitch,
                             size_t width, size_t height, int, void* stream)) {
  return copy(to, from, {to_pitch, from_pitch, width, height}, stream, /*waits=*/false);
}
// Supports copies that engines use: one plane, between memory and not arrays.
WEIR_RUNTIME(Memcpy3DPeerAsync, (const PeerCopy* request, void* stream)) {
  if (request->from.array != nullptr || request->to.array != nullptr || request->depth != 1) {
    return fail(k_invalid_value);
  }
  const auto start = [](const PeerCopy::End& end) {
    return end.at + (end.position[2] * end.height + end.position[1]) * end.pitch + end.position[0];
  };
  return copy(start(request->to), start(request->from),
              {request->to.pitch, request->from.pitch, request->width, request->height}, stream,
              /*waits=*/false);
}
WEIR_RUNTIME(Memset, (void* to, int value, size_t bytes)) { return set(to, value, bytes, nullptr); }
WEIR_RUNTIME(MemsetAsync, (void* to, int value, size_t bytes, void* stream)) {
  return set(to, value, bytes, stream);
}

// --- Pools: one for all, without settings.
WEIR_RUNTIME(DeviceGetDefaultMemPool, (void** out, int index)) {
  static int pool;
  if (const int error = check_device(index)) return error;
  *out = &pool;
  return k_ok;
}
WEIR_RUNTIME(DeviceGetMemPool, (void** out, int index)) {
  return WEIR_CALL(DeviceGetDefaultMemPool)(out, index);
}
WEIR_RUNTIME(MemPoolSetAttribute, (void*, int, void*)) { return k_ok; }
WEIR_RUNTIME(MemPoolGetAttribute, (void*, int, void* value)) {
  memset(value, 0, sizeof(uint64_t));
  return k_ok;
}
WEIR_RUNTIME(MemPoolSetAccess, (void*, const void*, size_t)) { return k_ok; }
WEIR_RUNTIME(MemPoolTrimTo, (void*, size_t)) { return k_ok; }
WEIR_RUNTIME(DeviceSetGraphMemAttribute, (int, int, void*)) { return k_ok; }
WEIR_RUNTIME(DeviceGetGraphMemAttribute, (int, int, void* value)) {
  memset(value, 0, sizeof(uint64_t));
  return k_ok;
}

// --- Memory of other processes
struct SharedBlock {  // in a handle of 64 bytes
  uint64_t offset, bytes;
  int process, contents;  // the latter a descriptor of that process
  char reserved[40];
};
WEIR_RUNTIME(IpcGetMemHandle, (SharedBlock * out, void* at)) {
  uint64_t begin = 0, bytes = 0;
  int index = 0;
  if (!find_block(at, &begin, &bytes, &index)) return fail(k_invalid_value);
  const Place place = find_place(begin);
  *out = {
      static_cast<uint64_t>(place.offset), bytes, static_cast<int>(getpid()), place.contents, {}};
  return k_ok;
}
// The block's addresses take no memory here.
WEIR_RUNTIME(IpcOpenMemHandle, (void** out, SharedBlock shared, unsigned)) {
  if (twin() == nullptr) return fail(k_no_device);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", shared.process, shared.contents);
  const int contents = open(path, O_RDWR | O_CLOEXEC);
  auto* block = static_cast<ForeignBlock*>(calloc(1, sizeof(ForeignBlock)));
  const uint64_t at = contents < 0 ? 0 : allocate_addresses(shared.bytes, 0, device());
  if (at == 0 || block == nullptr) {
    if (contents >= 0) close(contents);
    free(block);
    return fail(k_invalid_value);
  }
  *block = {at, shared.bytes, shared.offset, contents, nullptr};
  const Locked locked(&g_lock);
  block->next = g_foreign;
  __atomic_store_n(&g_foreign, block, __ATOMIC_RELEASE);
  *out = reinterpret_cast<void*>(at);
  return k_ok;
}
WEIR_RUNTIME(IpcCloseMemHandle, (void* at)) {
  ForeignBlock* block = __atomic_load_n(&g_foreign, __ATOMIC_ACQUIRE);
  while (block != nullptr && (block->at != address_key(at) || block->bytes == 0))
    block = block->next;
  if (block == nullptr) return fail(k_invalid_value);
  __atomic_store_n(&block->bytes, uint64_t{0}, __ATOMIC_RELEASE);
  close(block->contents);
  const Locked locked(&g_lock);
  return success_if(g_arena.memory.give_back(address_key(at)), k_invalid_value);
}

// --- Virtual memory: addresses and memory are allocated separately. A handle is a block of memory.
WEIR_DRIVER(MemGetAllocationGranularity, (size_t * out, const void*, int)) {
  *out = k_reservation_granularity;
  return k_ok;
}
WEIR_DRIVER(MemAddressReserve,
            (uint64_t * out, size_t bytes, size_t, uint64_t, unsigned long long)) {
  if (twin() == nullptr) return k_no_device;
  *out = allocate_addresses(bytes, 0, device());
  return *out == 0 ? int{k_out_of_memory} : int{k_ok};
}
WEIR_DRIVER(MemAddressFree, (uint64_t at, size_t)) {
  return free_block(at) ? int{k_ok} : int{k_invalid_value};
}
WEIR_DRIVER(MemCreate, (uint64_t * out, size_t bytes, const AllocationProperties* properties,
                        unsigned long long)) {
  if (twin() == nullptr) return k_no_device;
  const int index = properties->location;
  if (index < 0 || index >= device_count()) return k_invalid_device;
  *out = allocate_addresses(bytes, round_up_to(bytes, k_reservation_granularity), index);
  return *out == 0 ? int{k_out_of_memory} : int{k_ok};
}
WEIR_DRIVER(MemRelease, (uint64_t handle)) {
  const Locked locked(&g_lock);
  g_arena.memory.release(handle);
  return k_ok;
}
WEIR_DRIVER(MemMap, (uint64_t at, size_t, size_t, uint64_t handle, unsigned long long)) {
  const Locked locked(&g_lock);
  return g_arena.memory.map(handle, at) ? int{k_ok} : int{k_invalid_value};
}
WEIR_DRIVER(MemUnmap, (uint64_t at, size_t bytes)) {
  const Locked locked(&g_lock);
  g_arena.memory.unmap(at, bytes);
  return k_ok;
}
WEIR_DRIVER(MemSetAccess, (uint64_t, size_t, const void*, size_t)) { return k_ok; }

// Writes one attribute of an address; others than those above are 0.
WEIR_DRIVER(PointerGetAttribute, (void* out, int number, uint64_t address)) {
  const void* at = reinterpret_cast<const void*>(address);
  uint64_t begin = 0, bytes = 0;
  int index = 0;
  const bool is_in_block = find_block(at, &begin, &bytes, &index);
  const bool is_of_host = is_pinned(at);
  if (!is_in_block && !is_device_address(at) && !is_of_host) return k_invalid_value;
  const auto write = [out](auto value) { memcpy(out, &value, sizeof value); };
  switch (number) {
    case k_pointer_type:
      write(is_of_host ? k_host_memory : k_device_memory);
      break;
    case k_pointer_on_device:
    case k_pointer_on_host:
      write(at);
      break;
    case k_pointer_device:
      write(index);
      break;
    case k_pointer_block_begin:
      write(begin);
      break;
    case k_pointer_block_bytes:
      write(bytes);
      break;
    default:
      write(0);
      break;
  }
  return k_ok;
}

}  // namespace weir_probe::runtime_twin
