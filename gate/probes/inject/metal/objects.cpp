// Finds and adds the records of objects, and the entries of devices, queues and kernels in the
// file.
#include <stdlib.h>

#include "gate/probes/inject/metal/state.h"
#include "gate/probes/inject/writer/system.h"

namespace weir_probe::metal {

Globals g = {};

namespace {

constexpr Capacity k_capacity{16, 128, 4096, k_named, 0, 0, 0, 4096};
constexpr const char* k_names[k_named] = {"encoders",       "fence_updates", "fence_waits",
                                          "event_signals",  "event_waits",   "completed_handlers",
                                          "gpu_nanoseconds"};
constexpr const Hooks* k_hooks[k_kinds] = {&k_device_hooks, &k_queue_hooks, &k_buffer_hooks,
                                           &k_encoder_hooks, &k_event_hooks};

uint32_t g_reported;  // atomic; a bit for each kind that was printed on standard error

// Under g.lock.
void ensure_initialized() {
  weir_probe::ensure_initialized(&g, [] {
    open_file(&g.file, "metal", k_capacity);
    for (uint32_t i = 0; i < k_named; ++i) g.named[i] = add_counter(&g.file, k_names[i]);
    const char* timing = environment("WEIR_PROBE_TIMING");
    g.timing = timing != nullptr && timing[0] != 0 && strcmp(timing, "off") != 0;
  });
}

// Returns the record for `object`'s address in `table`, zeroed if it is new. Null when memory is
// out.
template <class Record>
Record* find_or_add_record(Table* table, id object) {
  auto* record = get_or_create<Record>(table, address_key(object));
  if (record == nullptr) raise_flag(&g, WEIR_PROBE_OUT_OF_MEMORY);
  return record;
}

// Returns a device's record and adds `entry` to the file if it is new; null when memory is out.
// Under g.lock.
Device* find_or_add_device(id object, const weir_probe_device& entry) {
  auto* device = find_or_add_record<Device>(&g.devices, object);
  if (device == nullptr || device->entry != nullptr) return device;
  device->index = add_device(&g.file, entry);
  device->entry = &g.file.devices[device->index];
  return device;
}

}  // namespace

void hook_class(Kind kind, id object) {
  if (object == nullptr) return;
  Class object_type = object_class(object);
  if (g.classes[kind].find(address_key(object_type)) != nullptr) return;
  const Locked locked(&g.lock);
  const bool has_room = put_hooks(*k_hooks[kind], object);
  g.classes[kind].insert(address_key(object_type), object_type);
  if (!has_room) report_uncounted(k_uncounted_classes, "not every class of objects, of Metal");
}

void ensure_file() {
  if (is_ready(g)) return;
  const Locked locked(&g.lock);
  ensure_initialized();
}

void report_uncounted(uint32_t kind, const char* what) {
  raise_flag(&g, WEIR_PROBE_CALLS_UNSEEN);
  const uint32_t reported_before = __atomic_fetch_or(&g_reported, kind, __ATOMIC_RELAXED);
  if ((reported_before & kind) == 0) report_not_counting("metal", what, "", 0);
}

// Returns a command queue's record, and adds it and its device if they are new; null when memory
// is out.
Queue* find_or_add_queue(id object) {
  if (object == nullptr) return nullptr;
  if (auto* existing = g.queues.get<Queue>(address_key(object))) {
    // Its device is null while another thread adds it: the creator shared the queue too early.
    if (__atomic_load_n(&existing->device, __ATOMIC_ACQUIRE) != nullptr) return existing;
  }
  id device_object = call_if_implemented<id>(object, "device");
  const weir_probe_device entry = describe_device(device_object);  // calls methods: no lock
  const Locked locked(&g.lock);
  ensure_initialized();
  Device* device = find_or_add_device(device_object, entry);
  Queue* queue = device == nullptr ? nullptr : find_or_add_record<Queue>(&g.queues, object);
  if (queue != nullptr && queue->device == nullptr) {
    queue->entry = &g.file.queues[add_queue(&g.file, device->index, 0, 0, 0)];
    __atomic_store_n(&queue->device, device, __ATOMIC_RELEASE);
  }
  return queue;
}

Buffer* add_buffer(id object, Queue* queue) {
  if (object == nullptr || queue == nullptr) return nullptr;
  auto* buffer = find_or_add_record<Buffer>(&g.buffers, object);
  if (buffer == nullptr) return nullptr;
  free(buffer->dispatches);
  *buffer = {};
  buffer->queue = queue;
  return buffer;
}

Buffer* find_or_add_buffer(id object) {
  if (auto* buffer = g.buffers.get<Buffer>(address_key(object))) return buffer;
  return add_buffer(object, find_or_add_queue(call_if_implemented<id>(object, "commandQueue")));
}

Encoder* add_encoder(id object, Buffer* buffer) {
  if (object == nullptr || buffer == nullptr) return nullptr;
  auto* encoder = find_or_add_record<Encoder>(&g.encoders, object);
  if (encoder != nullptr) *encoder = {buffer, &g.file.kernels[0], {}};
  return encoder;
}

// Records a pipeline under its label, or under `name` if it has none.
void add_pipeline(id object, const char* name) {
  if (object == nullptr) return;
  auto* pipeline = find_or_add_record<Pipeline>(&g.pipelines, object);
  if (pipeline == nullptr) return;
  const char* label = string_text(call_if_implemented<id>(object, "label"));
  copy_text(pipeline->name, sizeof pipeline->name, label[0] != 0 ? label : name);
  __atomic_store_n(&pipeline->kernel, nullptr, __ATOMIC_RELEASE);
}

// Returns the file's entry of the kernel that a pipeline runs, and caches it. A pipeline whose
// creation was not seen is added by its label.
weir_probe_kernel* find_or_add_kernel(id object, const Device* device) {
  auto* pipeline = g.pipelines.get<Pipeline>(address_key(object));
  if (pipeline == nullptr) {  // its creation was not seen
    add_pipeline(object, "");
    pipeline = g.pipelines.get<Pipeline>(address_key(object));
  }
  if (pipeline == nullptr) return &g.file.kernels[0];
  weir_probe_kernel* kernel = __atomic_load_n(&pipeline->kernel, __ATOMIC_ACQUIRE);
  if (kernel != nullptr) return kernel;
  const Locked locked(&g.lock);
  kernel = &g.file.kernels[find_or_add_named_kernel(&g.file, device->index, pipeline->name)];
  __atomic_store_n(&pipeline->kernel, kernel, __ATOMIC_RELEASE);
  return kernel;
}

Event* add_event(id object) {
  if (object == nullptr) return nullptr;
  auto* event = find_or_add_record<Event>(&g.events, object);
  if (event != nullptr) *event = {};
  return event;
}

void count_wait(Queue* queue) {
  add(&queue->device->entry->counters[WEIR_COUNT_WAITS], 1);
  add(&queue->entry->counters[WEIR_COUNT_WAITS], 1);
}

void count_poll(Queue* queue) { add(&queue->device->entry->counters[WEIR_COUNT_POLLS], 1); }

}  // namespace weir_probe::metal
