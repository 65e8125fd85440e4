// The class of a device, and what devices and queues make: queues, command buffers, pipelines,
// shared events.
#include <stdio.h>

#include "gate/probes/inject/metal/state.h"
#ifdef __APPLE__
#include <sys/sysctl.h>
#else
#include <sys/utsname.h>  // where the probe is tested
#endif

namespace weir_probe::metal {
namespace {

constexpr uint64_t k_recipe = 1;

// Drivers come with the system: its build is their version.
void read_system(char* out, size_t size) {
#ifdef __APPLE__
  char version[64] = "", build[64] = "";
  size_t room = sizeof version - 1;
  sysctlbyname("kern.osproductversion", version, &room, nullptr, 0);
  room = sizeof build - 1;
  sysctlbyname("kern.osversion", build, &room, nullptr, 0);
  snprintf(out, size, "macOS %s (%s)", version, build);
#else
  utsname name;
  if (uname(&name) == 0) snprintf(out, size, "%.64s %.64s", name.sysname, name.release);
#endif
}

// PCI's numbers; Metal tells names alone.
uint32_t vendor_of(const char* name) {
  constexpr struct {
    const char* word;
    uint32_t vendor;
  } k_vendors[] = {{"Apple", 0x106b},
                   {"AMD", 0x1002},
                   {"Radeon", 0x1002},
                   {"Intel", 0x8086},
                   {"NVIDIA", 0x10de}};
  for (const auto& one : k_vendors) {
    if (strstr(name, one.word) != nullptr) return one.vendor;
  }
  return 0;
}

uint64_t hash_features(id device) {
  // MTLGPUFamily: Apple1 to Apple12, Mac1 and 2, Common1 to 3, Metal3 and 4.
  constexpr struct {
    long first, last;
  } k_families[] = {{1001, 1012}, {2001, 2002}, {3001, 3003}, {5001, 5002}};
  Hash hash(k_recipe);
  for (const auto& range : k_families) {
    for (long family = range.first; family <= range.last; ++family) {
      hash.value(ask<Bool>(device, "supportsFamily:", family) != 0 ? 1 : 0);
    }
  }
  constexpr const char* k_switches[] = {"hasUnifiedMemory", "supportsRaytracing",
                                        "supportsFunctionPointers",
                                        "areProgrammableSamplePositionsSupported"};
  for (const char* one : k_switches) hash.value(ask<Bool>(device, one) != 0 ? 1 : 0);
  constexpr const char* k_numbers[] = {"maxThreadgroupMemoryLength", "readWriteTextureSupport",
                                       "argumentBuffersSupport"};
  for (const char* one : k_numbers) hash.value(ask<unsigned long>(device, one));
  const char* architecture = text_of(ask<id>(ask<id>(device, "architecture"), "name"));
  hash.bytes(architecture, strlen(architecture));
  return hash.get();
}

const char* type_of(id device) {
  const bool shared = ask<Bool>(device, "hasUnifiedMemory") != 0;
  return shared || ask<Bool>(device, "isLowPower") != 0 ? "integrated" : "discrete";
}

// --- what stands in front of methods

template <class... A>
id new_queue(const Call<id, A...>& call, A... arguments) {
  id queue = call(arguments...);
  meet(k_queue, queue);
  queue_of(queue);
  return queue;
}

// Metal 4 has other queues, buffers and encoders.
template <class... A>
id new_queue_of_metal4(const Call<id, A...>& call, A... arguments) {
  id made = call(arguments...);
  if (made != nullptr) tell_unseen(k_unseen_queues, "what goes through queues of", "Metal 4");
  return made;
}

id made_pipeline(id pipeline, id function) {
  if (pipeline != nullptr) new_pipeline(pipeline, text_of(ask<id>(function, "name")));
  return pipeline;
}

template <class... A>
id new_pipeline_of(const Call<id, id, A...>& call, id function, A... arguments) {
  return made_pipeline(call(function, arguments...), function);
}
id new_pipeline_described(const Call<id, id, unsigned long, id*, id*>& call, id descriptor,
                          unsigned long options, id* reflection, id* error) {
  return made_pipeline(call(descriptor, options, reflection, error),
                       ask<id>(descriptor, "computeFunction"));
}

id new_shared_event(const Call<id>& call) {
  id made = call();
  meet(k_event, made);
  new_event(made);
  return made;
}

template <class... A>
id command_buffer(const Call<id, A...>& call, A... arguments) {
  id buffer = call(arguments...);
  meet(k_buffer, buffer);
  new_buffer(buffer, queue_of(call.self));
  return buffer;
}

constexpr Hook k_of_devices[] = {
    WEIR_HOOK("newCommandQueue", (new_queue<>)),
    WEIR_HOOK("newCommandQueueWithMaxCommandBufferCount:", (new_queue<unsigned long>)),
    WEIR_HOOK("newCommandQueueWithDescriptor:", (new_queue<id>)),
    WEIR_HOOK("newMTL4CommandQueue", (new_queue_of_metal4<>)),
    WEIR_HOOK("newMTL4CommandQueueWithDescriptor:error:", (new_queue_of_metal4<id, id*>)),
    WEIR_HOOK("newComputePipelineStateWithFunction:error:", (new_pipeline_of<id*>)),
    WEIR_HOOK("newComputePipelineStateWithFunction:options:reflection:error:",
              (new_pipeline_of<unsigned long, id*, id*>)),
    WEIR_HOOK("newComputePipelineStateWithDescriptor:options:reflection:error:",
              new_pipeline_described),
    WEIR_HOOK("newSharedEvent", new_shared_event),
};

constexpr Hook k_of_queues[] = {
    WEIR_HOOK("commandBuffer", (command_buffer<>)),
    WEIR_HOOK("commandBufferWithUnretainedReferences", (command_buffer<>)),
    WEIR_HOOK("commandBufferWithDescriptor:", (command_buffer<id>)),
};

}  // namespace

weir_probe_device describe(id device) {
  weir_probe_device out{};
  copy_text(out.api, sizeof out.api, "metal");
  copy_text(out.type, sizeof out.type, type_of(device));
  copy_text(out.name, sizeof out.name, text_of(ask<id>(device, "name")));
  read_system(out.driver, sizeof out.driver);
  out.vendor = vendor_of(out.name);
  out.device = folded(hash_text(out.name));
  out.driver_version = folded(hash_text(out.driver));
  out.feature_hash = hash_features(device);
  snprintf(out.device_class, sizeof out.device_class, "metal-%04x-%08x-%x-%08x-%016llx", out.vendor,
           out.device, out.driver_id, out.driver_version,
           static_cast<unsigned long long>(out.feature_hash));
  return out;
}

extern const Hooks k_device_hooks = list_of(k_of_devices);
extern const Hooks k_queue_hooks = list_of(k_of_queues);

}  // namespace weir_probe::metal
