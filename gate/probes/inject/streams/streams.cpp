// Devices, streams, graphs and kernels: which entry of the file they are, and what calls count.
#include "gate/probes/inject/streams/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace weir_probe::streams {

Globals g = {};

namespace {

constexpr Capacity k_capacity{k_most_devices, 128, 4096, 16, 0, 0, 16, 4096, 4096};

// Under g.lock. Makes the file before the first count, also in a child.
void make_ready() {
  weir_probe::make_ready(&g, [] {
    open_file(&g.file, k_probe_name, k_capacity);
    g.markers = add_counter(&g.file, "markers");
  });
}

int known_device() {
  const int device = current_device();
  return device < 0 || device >= k_most_devices ? k_most_devices - 1 : device;
}

// The named streams are one per device; the per-thread ones are counted together.
uint64_t stream_key(void* handle, int device) {
  const uint64_t number = key_of(handle);
  if (number > k_thread_stream) return number;
  const uint64_t kind = number == k_thread_stream ? k_thread_stream : k_legacy_stream;
  return (static_cast<uint64_t>(device) + 1) << 4 | kind;
}

Stream* describe_stream(uint64_t key, int device) {
  const weir_probe_device described = describe(device);  // asked without the lock
  const Locked locked(&g.lock);
  make_ready();
  uint32_t& index = g.device_index[device];
  if (index == 0) index = add_device(&g.file, described) + 1;
  auto* stream = known_or_fresh<Stream>(&g.streams, key);
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
  return key_of(function) * 32 + static_cast<uint64_t>(device);
}

weir_probe_kernel* kernel_of(const Launch& launch, void* stream, const Stream& on) {
  const uint64_t key = kernel_key(launch.function, on.device);
  if (void* known = g.kernels.find(key)) return static_cast<weir_probe_kernel*>(known);
  const char* name = name_of(launch, stream);
  const auto device = static_cast<uint32_t>(on.device_entry - g.file.devices);
  const Locked locked(&g.lock);
  auto* kernel = &g.file.kernels[named_kernel(&g.file, device, name)];
  if (name != nullptr && name[0] != 0) g.kernels.insert(key, kernel);
  return kernel;
}

// What a multiprocessor holds depends on the launch: the least is kept.
void keep_costs(const Launch& launch, weir_probe_code* entry) {
  weir_probe_code found{};
  measure(launch, &found);  // asked without the lock
  const Locked locked(&g.lock);
  const bool known = found.costs.registers != 0 && found.costs.occupancy != 0;  // else it failed
  const bool fewer = entry->costs.occupancy == 0 || found.costs.occupancy < entry->costs.occupancy;
  if (entry->flags == 0 || (known && fewer)) {
    entry->costs = found.costs;
  }
  __atomic_store_n(&entry->flags, found.flags, __ATOMIC_RELEASE);
}

void dispatch(void* handle, Stream* stream, const Launch& launch) {
  weir_probe_kernel* kernel = kernel_of(launch, handle, *stream);
  weir_probe_launch sizes = launch.sizes;
  sizes.kernel = static_cast<uint32_t>(kernel - g.file.kernels);
  add(&kernel->dispatches, 1);
  add(&stream->entry->counters[WEIR_COUNT_DISPATCHES], 1);
  const bool first = g.launches.count(&g.file, &g.lock, sizes);
  const uint64_t code = code_of(launch);
  if (code == 0) return;
  weir_probe_code* entry = g.codes.count(&g.file, &g.lock, sizes.kernel, code, 1, groups_of(sizes));
  const bool asked = __atomic_load_n(&entry->flags, __ATOMIC_ACQUIRE) != 0;
  if (entry->hash == code && (first || !asked)) keep_costs(launch, entry);
}

// One call that hands work to a stream is one submit: HIP has nothing in between.
void submitted(Stream* stream) {
  add(&stream->entry->counters[WEIR_COUNT_SUBMITS], 1);
  add(&stream->entry->counters[WEIR_COUNT_SUBMISSIONS], 1);
  __atomic_store_n(&stream->pending, 1, __ATOMIC_RELEASE);
  if (g.memory_steady == nullptr) return;
  __atomic_store_n(g.memory_steady, __atomic_load_n(&g.memory_used, __ATOMIC_RELAXED),
                   __ATOMIC_RELAXED);
}

void count_wait(Stream* stream) {
  add(&stream->entry->counters[WEIR_COUNT_WAITS], 1);
  count_sync(stream);
}

// Null where memory is out, and while it is being captured: then nothing is counted.
Stream* running_stream(void* handle) {
  const bool ask = __atomic_load_n(&g.capturing, __ATOMIC_ACQUIRE);
  return ask && is_captured(handle) ? nullptr : stream_of(handle);
}

void count_copy(void* handle, uint32_t kind, const char* from, const char* to, uint64_t bytes,
                bool waits) {
  Stream* stream = running_stream(handle);
  if (stream == nullptr) return;
  add(&stream->entry->counters[WEIR_COUNT_COPIES], 1);
  submitted(stream);
  weir_probe_transfer wanted{};
  wanted.kind = kind;
  copy_text(wanted.from, sizeof wanted.from, from);
  copy_text(wanted.to, sizeof wanted.to, to);
  weir_probe_transfer* entry = transfer_entry(&g.file, &g.lock, wanted);  // few kinds
  add(&entry->calls, 1);
  add(&entry->bytes, bytes);
  if (waits) waited(stream);
}

// --- what a graph does each time it is launched: read once, when it is made ready for that

constexpr size_t k_most_nodes = size_t{1} << 20;
constexpr int k_deepest = 8;  // graphs within graphs

bool append(Graph* to, const Launch& launch) {
  if (!make_room(&to->launches, &to->room, to->launch_count + 1, 1, UINT32_MAX)) return false;
  to->launches[to->launch_count++] = launch;
  return true;
}

bool add_nodes(Graph* to, void* graph, int depth);

bool add_node(Graph* to, void* node, int depth) {
  const int type = type_of(node);
  if (type == k_copy_node || type == k_fill_node) ++to->copies;
  if (type == k_child_node) {
    void* child = child_of(node);
    return child != nullptr && add_nodes(to, child, depth + 1);
  }
  if (type != k_kernel_node) return type >= 0;
  Launch launch{};
  return launch_of(node, &launch) && append(to, launch);
}

bool add_nodes(Graph* to, void* graph, int depth) {
  size_t count = 0;
  if (depth > k_deepest || !nodes_of(graph, nullptr, &count) || count > k_most_nodes) return false;
  if (count == 0) return true;
  auto** nodes = static_cast<void**>(calloc(count, sizeof(void*)));
  if (nodes == nullptr) return false;
  bool whole = nodes_of(graph, nodes, &count);
  for (size_t i = 0; whole && i < count; ++i) whole = add_node(to, nodes[i], depth);
  free(nodes);
  return whole;
}

}  // namespace

void graph_was_made(void* exec, void* graph) {
  graph_ended(exec);
  auto* record = fresh_record<Graph>(&g.graphs, key_of(exec));
  if (record != nullptr && !add_nodes(record, graph, 0)) graph_ended(exec);
}

void graph_ended(void* exec) {
  auto* record = static_cast<Graph*>(g.graphs.remove(key_of(exec)));
  if (record == nullptr) return;
  free(record->launches);
  free(record);
}

uint64_t name_device(weir_probe_device* device, bool told) {
  copy_text(device->api, sizeof device->api, k_api_name);
  if (!told) copy_text(device->name, sizeof device->name, "unknown");
  const uint64_t name = hash_text(device->name);
  device->device = folded(name);
  return name;
}

void classify_device(weir_probe_device* device) {
  snprintf(device->device_class, sizeof device->device_class, "%s-%04x-%08x-0-%x-%016llx",
           k_api_name, device->vendor, device->device, device->driver_version,
           static_cast<unsigned long long>(device->feature_hash));
}

Stream* stream_of(void* handle) {
  const int device = key_of(handle) > k_thread_stream ? -1 : known_device();
  const uint64_t key = stream_key(handle, device);
  if (is_ready(g)) {
    auto* known = g.streams.get<Stream>(key);
    if (known != nullptr && __atomic_load_n(&known->device, __ATOMIC_ACQUIRE) != 0) return known;
  }
  // A stream belongs to the device that is current where it is made, and mostly where it is used.
  return describe_stream(key, device < 0 ? known_device() : device);
}

void stream_ended(void* handle) {
  if (key_of(handle) <= k_thread_stream) return;
  auto* stream = g.streams.get<Stream>(key_of(handle));
  if (stream == nullptr) return;
  __atomic_store_n(&stream->pending, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&stream->device, 0, __ATOMIC_RELEASE);
}

void capture_began() { __atomic_store_n(&g.capturing, true, __ATOMIC_RELEASE); }

void ensure_file() {
  const Locked locked(&g.lock);
  make_ready();
}

weir_probe_launch sizes_of(Size3 grid, Size3 block, size_t shared) {
  weir_probe_launch out{};
  const uint32_t blocks[3] = {grid.x, grid.y, grid.z};
  const uint32_t threads[3] = {block.x, block.y, block.z};
  for (uint32_t i = 0; i < 3; ++i) {
    out.global[i] = static_cast<uint64_t>(blocks[i]) * threads[i];
    out.local[i] = threads[i];
    if (out.global[i] > 1) out.dimensions = i + 1;
  }
  if (out.dimensions == 0) out.dimensions = 1;
  out.shared = shared;
  return out;
}

void forget_function(const void* function) {
  for (int device = 1; device <= k_most_devices; ++device) {
    g.kernels.remove(kernel_key(function, device));
  }
}

void function_is(const void* function, const char* name) {
  // It may have been another function's address, of a library that is gone. The old name is left to
  // itself: another thread may be reading it.
  forget_function(function);
  if (char* copy = strdup(name)) g.names.insert(key_of(function), copy);
}

void launched(void* handle, const Launch& launch) {
  Stream* stream = running_stream(handle);
  if (stream == nullptr) return;
  dispatch(handle, stream, launch);
  submitted(stream);
}

void launched_graph(void* handle, void* exec) {
  Stream* stream = running_stream(handle);
  if (stream == nullptr) return;
  auto* graph = g.graphs.get<Graph>(key_of(exec));
  if (graph == nullptr) {
    // Made where the probe could not see it, or too large to be kept.
    set_flag(&g.file, WEIR_PROBE_CALLS_UNSEEN);
  } else {
    for (size_t i = 0; i < graph->launch_count; ++i) dispatch(handle, stream, graph->launches[i]);
    add(&stream->entry->counters[WEIR_COUNT_COPIES], graph->copies);
  }
  add(&stream->entry->counters[WEIR_COUNT_COMMAND_BUFFERS], 1);
  submitted(stream);
}

void copied(void* stream, int direction, uint64_t bytes, bool waits) {
  constexpr struct {
    uint32_t kind;
    const char *from, *to;
  } k_ways[] = {{WEIR_TRANSFER_COPY, "program", "program"},  // by Direction
                {WEIR_TRANSFER_SET, "program", "device"},
                {WEIR_TRANSFER_GET, "device", "program"},
                {WEIR_TRANSFER_COPY, "device", "device"},
                {WEIR_TRANSFER_COPY, "", ""}};
  const auto& way = k_ways[direction >= 0 && direction <= k_within ? direction : k_within + 1];
  // Within a device the program does not wait for it, whatever the call is named.
  count_copy(stream, way.kind, way.from, way.to, bytes, waits && direction != k_within);
}

void filled(void* stream, uint64_t bytes) {
  count_copy(stream, WEIR_TRANSFER_FILL, "program", "device", bytes, false);
}

void recorded(void* event, void* handle) {
  Stream* stream = running_stream(handle);
  if (stream == nullptr) return;
  add(g.markers, 1);
  g.events.insert(key_of(event), stream);
}

void waits_for_event(void* handle) {
  Stream* stream = running_stream(handle);
  if (stream != nullptr) add(&stream->entry->counters[WEIR_COUNT_BARRIERS], 1);
}

void waited(Stream* stream) {
  if (stream == nullptr) return;
  add(&stream->device_entry->counters[WEIR_COUNT_WAITS], 1);
  count_wait(stream);
}

void waited_for_device() {
  Stream* null_stream = stream_of(nullptr);
  if (null_stream == nullptr) return;
  // One call, however many streams it was for.
  add(&null_stream->device_entry->counters[WEIR_COUNT_WAITS], 1);
  const Locked locked(&g.lock);  // no stream is added meanwhile
  g.streams.each([&](void* known) {
    auto* stream = static_cast<Stream*>(known);
    if (stream->device == null_stream->device) count_wait(stream);
  });
}

void polled(Stream* stream, int result) {
  if (stream == nullptr) return;
  add(&stream->device_entry->counters[WEIR_COUNT_POLLS], 1);
  if (result == k_done) count_sync(stream);
}

Stream* stream_of_event(void* event) { return g.events.get<Stream>(key_of(event)); }

}  // namespace weir_probe::streams
