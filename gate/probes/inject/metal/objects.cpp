// Records of objects: which device, queue and kernel of the file they are.
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

uint32_t g_told;  // atomic; the reasons that standard error has heard

// Under g.lock.
void make_ready() {
  weir_probe::make_ready(&g, [] {
    open_file(&g.file, "metal", k_capacity);
    for (uint32_t i = 0; i < k_named; ++i) g.named[i] = add_counter(&g.file, k_names[i]);
    const char* timing = environment("WEIR_PROBE_TIMING");
    g.timing = timing != nullptr && timing[0] != 0 && strcmp(timing, "off") != 0;
  });
}

// The record at `object`'s address in `table`, zeroed if it is new. Null when memory is out.
template <class Record>
Record* record_at(Table* table, id object) {
  auto* record = known_or_fresh<Record>(table, key_of(object));
  if (record == nullptr) tell_flag(&g, WEIR_PROBE_OUT_OF_MEMORY);
  return record;
}

// Under g.lock.
Device* device_of(id object, const weir_probe_device& described) {
  auto* device = record_at<Device>(&g.devices, object);
  if (device == nullptr || device->entry != nullptr) return device;
  device->index = add_device(&g.file, described);
  device->entry = &g.file.devices[device->index];
  return device;
}

}  // namespace

void meet(Kind kind, id object) {
  if (object == nullptr) return;
  Class on = class_of(object);
  if (g.classes[kind].find(key_of(on)) != nullptr) return;
  const Locked locked(&g.lock);
  const bool room = put_hooks(*k_hooks[kind], object);
  g.classes[kind].insert(key_of(on), on);
  if (!room) tell_unseen(k_unseen_classes, "not every class of objects, of", "Metal");
}

void ensure_file() {
  if (is_ready(g)) return;
  const Locked locked(&g.lock);
  make_ready();
}

void tell_unseen(uint32_t reason, const char* what, const char* where) {
  tell_flag(&g, WEIR_PROBE_CALLS_UNSEEN);
  if ((__atomic_fetch_or(&g_told, reason, __ATOMIC_RELAXED) & reason) == 0) {
    complain("metal", what, where, 0);
  }
}

Queue* queue_of(id object) {
  if (object == nullptr) return nullptr;
  if (auto* known = g.queues.get<Queue>(key_of(object))) {
    // Null while another thread describes it: the one that made it shared it too early.
    if (__atomic_load_n(&known->device, __ATOMIC_ACQUIRE) != nullptr) return known;
  }
  id on = ask<id>(object, "device");
  const weir_probe_device described = describe(on);  // asked without the lock
  const Locked locked(&g.lock);
  make_ready();
  Device* device = device_of(on, described);
  Queue* queue = device == nullptr ? nullptr : record_at<Queue>(&g.queues, object);
  if (queue != nullptr && queue->device == nullptr) {
    queue->entry = &g.file.queues[add_queue(&g.file, device->index, 0, 0, 0)];
    __atomic_store_n(&queue->device, device, __ATOMIC_RELEASE);
  }
  return queue;
}

Buffer* new_buffer(id object, Queue* queue) {
  if (object == nullptr || queue == nullptr) return nullptr;
  auto* buffer = record_at<Buffer>(&g.buffers, object);
  if (buffer == nullptr) return nullptr;
  free(buffer->dispatches);
  *buffer = {};
  buffer->queue = queue;
  return buffer;
}

Buffer* buffer_of(id object) {
  auto* known = g.buffers.get<Buffer>(key_of(object));
  return known != nullptr ? known : new_buffer(object, queue_of(ask<id>(object, "commandQueue")));
}

Encoder* new_encoder(id object, Buffer* buffer) {
  if (object == nullptr || buffer == nullptr) return nullptr;
  auto* encoder = record_at<Encoder>(&g.encoders, object);
  if (encoder != nullptr) *encoder = {buffer, &g.file.kernels[0], {}};
  return encoder;
}

void new_pipeline(id object, const char* name) {
  if (object == nullptr) return;
  auto* pipeline = record_at<Pipeline>(&g.pipelines, object);
  if (pipeline == nullptr) return;
  const char* label = text_of(ask<id>(object, "label"));
  copy_text(pipeline->name, sizeof pipeline->name, label[0] != 0 ? label : name);
  __atomic_store_n(&pipeline->kernel, nullptr, __ATOMIC_RELEASE);
}

weir_probe_kernel* kernel_of(id object, const Device* device) {
  auto* pipeline = g.pipelines.get<Pipeline>(key_of(object));
  if (pipeline == nullptr) {  // made out of sight
    new_pipeline(object, "");
    pipeline = g.pipelines.get<Pipeline>(key_of(object));
  }
  if (pipeline == nullptr) return &g.file.kernels[0];
  weir_probe_kernel* kernel = __atomic_load_n(&pipeline->kernel, __ATOMIC_ACQUIRE);
  if (kernel != nullptr) return kernel;
  const Locked locked(&g.lock);
  kernel = &g.file.kernels[named_kernel(&g.file, device->index, pipeline->name)];
  __atomic_store_n(&pipeline->kernel, kernel, __ATOMIC_RELEASE);
  return kernel;
}

Event* new_event(id object) {
  if (object == nullptr) return nullptr;
  auto* event = record_at<Event>(&g.events, object);
  if (event != nullptr) *event = {};
  return event;
}

void count_wait(Queue* queue) {
  add(&queue->device->entry->counters[WEIR_COUNT_WAITS], 1);
  add(&queue->entry->counters[WEIR_COUNT_WAITS], 1);
}

void count_poll(Queue* queue) { add(&queue->device->entry->counters[WEIR_COUNT_POLLS], 1); }

}  // namespace weir_probe::metal
