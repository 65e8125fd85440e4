// Records devices, streams, graphs and kernels of APIs with streams, and counts calls.
#include "gate/probes/inject/streams/streams.h"

#include <stdlib.h>

namespace weir_probe::streams {

Globals g = {};

namespace {

constexpr Capacity k_capacity{k_max_devices, 128, 4096, 16, 0, 0, 16, 4096, 4096, 0, 1024, 256};

// Under g.lock. Makes the file before the first count, also in a child.
void ensure_initialized() {
  weir_probe::ensure_initialized(&g, [] {
    open_file(&g.file, k_probe_name, k_capacity);
    for (int i = 0; i < k_counters; ++i) {
      if (k_counter_names[i] != nullptr) g.counters[i] = add_counter(&g.file, k_counter_names[i]);
    }
  });
}

// Returns the current device; devices beyond the limit share the last index.
int current_device_index() {
  const int device = current_device();
  return device < 0 || device >= k_max_devices ? k_max_devices - 1 : device;
}

// Returns the key of a stream: its handle, or device and kind for a default stream. Per-thread
// default streams of a device count as one.
uint64_t stream_key(void* handle, int device) {
  const uint64_t value = address_key(handle);
  if (value > k_thread_stream) return value;
  const uint64_t kind = value == k_thread_stream ? k_thread_stream : k_legacy_stream;
  return (static_cast<uint64_t>(device) + 1) << 4 | kind;
}

// Returns the record of a stream, adding it if it is new, and its device too. Null when memory is
// out.
Stream* find_or_add_stream(uint64_t key, int device) {
  const weir_probe_device device_entry = describe_device(device);  // may ask the driver: no lock
  const Locked locked(&g.lock);
  ensure_initialized();
  uint32_t& index = g.device_index[device];
  if (index == 0) index = add_device(&g.file, device_entry) + 1;
  auto* stream = get_or_create<Stream>(&g.streams, key);
  if (stream == nullptr) {
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
    return nullptr;
  }
  if (stream->device_entry != &g.file.devices[index - 1]) {
    stream->entry = &g.file.queues[add_queue(&g.file, index - 1, 0, 0, 0)];
    stream->device_entry = &g.file.devices[index - 1];
  }
  __atomic_store_n(&stream->device, device + 1, __ATOMIC_RELEASE);
  return stream;
}

uint64_t kernel_key(const void* function, int device) {
  return address_key(function) * 32 + static_cast<uint64_t>(device);
}

// Returns the entry of the launched kernel on the stream's device, adding it if it is new.
weir_probe_kernel* find_or_add_kernel(const Launch& launch, const Stream& on) {
  const uint64_t key = kernel_key(launch.function, on.device);
  if (auto* kernel = g.kernels.get<weir_probe_kernel>(key)) return kernel;
  const char* name = kernel_name(launch);
  const auto device = static_cast<uint32_t>(on.device_entry - g.file.devices);
  const Locked locked(&g.lock);
  name_process(&g.file);  // workers of vLLM name themselves when they know their rank
  auto* kernel = &g.file.kernels[find_or_add_named_kernel(&g.file, device, name)];
  if (name != nullptr && name[0] != 0) g.kernels.insert(key, kernel);
  return kernel;
}

// Measures what a kernel costs at this launch, and keeps it in `entry` if the occupancy is lower
// than before. Occupancy depends on the launch's sizes.
void update_costs(const Launch& launch, weir_probe_code* entry) {
  weir_probe_code measured{};
  measure_costs(launch, &measured);  // may ask the driver: no lock
  const Locked locked(&g.lock);
  const bool succeeded = measured.costs.registers != 0 && measured.costs.occupancy != 0;
  const bool is_lower =
      entry->costs.occupancy == 0 || measured.costs.occupancy < entry->costs.occupancy;
  if (entry->flags == 0 || (succeeded && is_lower)) {
    entry->costs = measured.costs;
  }
  __atomic_store_n(&entry->flags, measured.flags, __ATOMIC_RELEASE);
}

void note_kernel(LastKernel* last, uint32_t index) {
  __atomic_store_n(&last->writes, g.writes.count(), __ATOMIC_RELAXED);
  __atomic_store_n(&last->index, index, __ATOMIC_RELEASE);
}

// Returns the index of the kernel that may have written this memory last; 0 for a copy or a fill,
// and where no kernel ran.
uint32_t find_writer(const Stream& stream, const void* at, uint64_t bytes) {
  const LastKernel* last = &stream.last_kernel;
  if (__atomic_load_n(&last->index, __ATOMIC_ACQUIRE) == 0) last = &g.last_kernel;
  const uint32_t index = __atomic_load_n(&last->index, __ATOMIC_ACQUIRE);
  const uint64_t writes = __atomic_load_n(&last->writes, __ATOMIC_RELAXED);
  return g.writes.reached(address_key(at), bytes, writes) ? 0 : index;
}

// Counts a copy to the program if it is of few bytes, by the kernel that wrote them last.
void count_small_read(const Stream& stream, const Copy& copy) {
  constexpr uint64_t k_most_bytes = 64;
  const bool is_small = copy.bytes > 0 && copy.bytes <= k_most_bytes;
  if (!is_small || copy.direction != k_to_host || copy.from == nullptr) return;
  count(k_small_read_backs);
  const weir_probe_read read{0, find_writer(stream, copy.from, copy.bytes),
                             static_cast<uint32_t>(copy.bytes)};
  add(&find_or_add_read(&g.file, &g.lock, read)->count, 1);
}

// Counts one dispatch of a kernel on a stream, with its sizes, and with its code if that is known.
void count_dispatch(Stream* stream, const Launch& launch) {
  weir_probe_kernel* kernel = find_or_add_kernel(launch, *stream);
  weir_probe_launch sizes = launch.sizes;
  sizes.kernel = static_cast<uint32_t>(kernel - g.file.kernels);
  note_kernel(&stream->last_kernel, sizes.kernel);
  note_kernel(&g.last_kernel, sizes.kernel);
  add(&kernel->dispatches, 1);
  add(&stream->entry->counters[WEIR_COUNT_DISPATCHES], 1);
  count(launch.counter);
  const bool is_first = g.launches.count(&g.file, &g.lock, sizes);
  const uint64_t code = code_hash(launch);
  if (code == 0) return;
  weir_probe_code* entry =
      g.codes.count(&g.file, &g.lock, sizes.kernel, code, 1, group_count(sizes));
  const bool is_measured = __atomic_load_n(&entry->flags, __ATOMIC_ACQUIRE) != 0;
  if (entry->hash == code && (is_first || !is_measured)) update_costs(launch, entry);
}

// Counts a submit: in these APIs each call that gives work to a stream is one.
void count_submission(Stream* stream) {
  add(&stream->entry->counters[WEIR_COUNT_SUBMITS], 1);
  add(&stream->entry->counters[WEIR_COUNT_SUBMISSIONS], 1);
  __atomic_store_n(&stream->pending, 1, __ATOMIC_RELEASE);
  uint64_t* steady = g.counters[k_device_memory_steady_bytes];
  if (steady == nullptr) return;
  __atomic_store_n(steady, __atomic_load_n(&g.memory_used, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

void count_queue_wait(Stream* stream) {
  add(&stream->entry->counters[WEIR_COUNT_WAITS], 1);
  count_sync(stream);
}

// Counts a copy or fill of memory with its ends and bytes, and a wait if the program `is_waiting`
// for it. Returns the stream. Null if the call is only captured into a graph, or without memory.
Stream* count_transfer(void* handle, uint32_t kind, const char* from, const char* to,
                       uint64_t bytes, bool is_waiting) {
  Stream* stream = capture_copy(handle) ? nullptr : find_stream(handle);
  if (stream == nullptr) return nullptr;
  add(&stream->entry->counters[WEIR_COUNT_COPIES], 1);
  count_submission(stream);
  weir_probe_transfer ends{};
  ends.kind = kind;
  copy_text(ends.from, sizeof ends.from, from);
  copy_text(ends.to, sizeof ends.to, to);
  weir_probe_transfer* entry = find_or_add_transfer(&g.file, &g.lock, ends);  // few kinds
  add(&entry->calls, 1);
  add(&entry->bytes, bytes);
  if (is_waiting) count_wait(stream);
  return stream;
}

}  // namespace

Stream* find_stream(void* handle) {
  const int device = address_key(handle) > k_thread_stream ? -1 : current_device_index();
  const uint64_t key = stream_key(handle, device);
  if (is_ready(g)) {
    auto* stream = g.streams.get<Stream>(key);
    if (stream != nullptr && __atomic_load_n(&stream->device, __ATOMIC_ACQUIRE) != 0) return stream;
  }
  // A stream belongs to the device that was current at its creation, mostly also at its use.
  return find_or_add_stream(key, device < 0 ? current_device_index() : device);
}

void forget_stream(void* handle) {
  if (address_key(handle) <= k_thread_stream) return;
  auto* stream = g.streams.get<Stream>(address_key(handle));
  if (stream == nullptr) return;
  __atomic_store_n(&stream->pending, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&stream->device, 0, __ATOMIC_RELEASE);
}

void ensure_file() {
  const Locked locked(&g.lock);
  ensure_initialized();
}

void count(Counter what, uint64_t amount) {
  if (k_counter_names[what] == nullptr) return;
  if (!is_ready(g)) ensure_file();
  add(g.counters[what], amount);
}

// Returns a launch's sizes, counted in threads. Dimensions behind the last one that is larger than
// 1 are left out.
weir_probe_launch launch_sizes(Size3 grid, Size3 block, size_t shared) {
  weir_probe_launch sizes{};
  const uint32_t blocks[3] = {grid.x, grid.y, grid.z};
  const uint32_t threads[3] = {block.x, block.y, block.z};
  for (uint32_t i = 0; i < 3; ++i) {
    sizes.global[i] = static_cast<uint64_t>(blocks[i]) * threads[i];
    sizes.local[i] = threads[i];
    if (sizes.global[i] > 1) sizes.dimensions = i + 1;
  }
  if (sizes.dimensions == 0) sizes.dimensions = 1;
  sizes.shared = shared;
  return sizes;
}

void forget_kernels(const void* function) {
  for (int device = 1; device <= k_max_devices; ++device) {
    g.kernels.remove(kernel_key(function, device));
  }
}

Graph* renew_graph(void* exec) {
  forget_graph(exec);
  return get_or_create<Graph>(&g.graphs, address_key(exec));
}

void forget_graph(void* exec) {
  free_graph(static_cast<Graph*>(g.graphs.remove(address_key(exec))));
}

void free_graph(Graph* graph) {
  if (graph == nullptr) return;
  free(graph->launches);
  free(graph);
}

void append(Graph* to, const Launch& launch) {
  to->is_incomplete = to->is_incomplete ||
                      !make_room(&to->launches, &to->room, to->launch_count + 1, 16, UINT32_MAX);
  if (!to->is_incomplete) to->launches[to->launch_count++] = launch;
}

void count_launch(void* handle, const Launch& launch) {
  Stream* stream = capture_launch(handle, launch) ? nullptr : find_stream(handle);
  if (stream == nullptr) return;
  count_dispatch(stream, launch);
  count_submission(stream);
}

void count_launch(void* stream, const void* function, Size3 grid, Size3 block, size_t shared) {
  count_launch(stream, {function, nullptr, launch_sizes(grid, block, shared)});
}

void count_library_call(const char* name, void* stream, Counter counter) {
  count_launch(stream, {name, name, launch_sizes({1, 1, 1}, {1, 1, 1}, 0), 0, counter});
}

// Counts the launch of a CUDA or HIP graph (work recorded once and started as a whole) with all
// that was recorded for it. For an unknown graph it sets a flag in the file.
void count_graph_launch(void* handle, void* exec) {
  Stream* stream = capture_graph_launch(handle, exec) ? nullptr : find_stream(handle);
  if (stream == nullptr) return;
  const auto* graph = g.graphs.get<Graph>(address_key(exec));
  if (graph == nullptr || graph->is_incomplete) {
    // Made out of the probe's sight, or too large.
    set_flag(&g.file, WEIR_PROBE_CALLS_UNSEEN);
  } else {
    for (size_t i = 0; i < graph->launch_count; ++i) count_dispatch(stream, graph->launches[i]);
    add(&stream->entry->counters[WEIR_COUNT_COPIES], graph->copies);
  }
  count(k_graph_launches);
  add(&stream->entry->counters[WEIR_COUNT_COMMAND_BUFFERS], 1);
  count_submission(stream);
}

// Counts a copy between program and device. `copy.direction` says which way; one that is not known
// has no ends.
void count_copy(void* handle, const Copy& copy, bool is_waiting) {
  constexpr struct {
    uint32_t kind;
    const char *from, *to;
  } k_ways[] = {{WEIR_TRANSFER_COPY, "program", "program"},  // by Direction
                {WEIR_TRANSFER_SET, "program", "device"},
                {WEIR_TRANSFER_GET, "device", "program"},
                {WEIR_TRANSFER_COPY, "device", "device"},
                {WEIR_TRANSFER_COPY, "", ""}};
  constexpr int k_unknown = k_within + 1;
  const bool is_known = copy.direction >= 0 && copy.direction <= k_within;
  const auto& ends = k_ways[is_known ? copy.direction : k_unknown];
  // A copy within a device never makes the program wait.
  const Stream* stream = count_transfer(handle, ends.kind, ends.from, ends.to, copy.bytes,
                                        is_waiting && copy.direction != k_within);
  if (stream == nullptr) return;
  count_small_read(*stream, copy);
  // A copy of what a kernel wrote is that kernel's.
  const bool is_of_kernel =
      copy.direction == k_within && find_writer(*stream, copy.from, copy.bytes) != 0;
  const bool is_write = copy.direction == k_to_device || copy.direction == k_within;
  if (is_write && !is_of_kernel) g.writes.add(address_key(copy.to), copy.bytes);
}

void count_fill(void* handle, const void* at, uint64_t bytes) {
  const Stream* stream = count_transfer(handle, WEIR_TRANSFER_FILL, "program", "device", bytes,
                                        /*waits=*/false);
  if (stream != nullptr) g.writes.add(address_key(at), bytes);
}

void note_event_record(void* event, void* handle) {
  Stream* stream = is_captured(handle) ? nullptr : find_stream(handle);
  if (stream == nullptr) return;
  count(k_markers);
  g.events.insert(address_key(event), stream);
}

void count_barrier(void* handle) {
  Stream* stream = is_captured(handle) ? nullptr : find_stream(handle);
  if (stream != nullptr) add(&stream->entry->counters[WEIR_COUNT_BARRIERS], 1);
}

void count_wait(Stream* stream) {
  if (stream == nullptr) return;
  add(&stream->device_entry->counters[WEIR_COUNT_WAITS], 1);
  count_queue_wait(stream);
}

void count_device_wait() {
  Stream* null_stream = find_stream(nullptr);
  if (null_stream == nullptr) return;
  // One call, however many streams it was for.
  add(&null_stream->device_entry->counters[WEIR_COUNT_WAITS], 1);
  const Locked locked(&g.lock);  // no stream is added meanwhile
  g.streams.each([&](void* record) {
    auto* stream = static_cast<Stream*>(record);
    if (stream->device == null_stream->device) count_queue_wait(stream);
  });
}

void count_poll(Stream* stream, int result) {
  if (stream == nullptr) return;
  add(&stream->device_entry->counters[WEIR_COUNT_POLLS], 1);
  if (result == k_done) count_sync(stream);
}

Stream* find_event_stream(void* event) { return g.events.get<Stream>(address_key(event)); }

}  // namespace weir_probe::streams
