// Describes devices, and records the objects that devices and queues create: queues, command
// buffers, pipelines, shared events.
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

// Writes the system's version and build to `out`: Metal's drivers are a part of macOS.
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

// Returns the PCI number of a device's vendor, by a word of the device's name; 0 if it is unknown.
uint32_t find_vendor(const char* name) {
  constexpr struct {
    const char* word;
    uint32_t vendor;
  } k_vendors[] = {{"Apple", 0x106b},
                   {"AMD", 0x1002},
                   {"Radeon", 0x1002},
                   {"Intel", 0x8086},
                   {"NVIDIA", 0x10de}};
  for (const auto& [word, vendor] : k_vendors) {
    if (strstr(name, word) != nullptr) return vendor;
  }
  return 0;
}

// Returns a hash of the device's GPU families, features, limits and architecture: equal devices
// have equal hashes.
uint64_t hash_features(id device) {
  // MTLGPUFamily: Apple1 to Apple12, Mac1 and 2, Common1 to 3, Metal3 and 4.
  constexpr struct {
    long first, last;
  } k_families[] = {{1001, 1012}, {2001, 2002}, {3001, 3003}, {5001, 5002}};
  Hash hash(k_recipe);
  for (const auto& range : k_families) {
    for (long family = range.first; family <= range.last; ++family) {
      hash.value(call_if_implemented<Bool>(device, "supportsFamily:", family) != 0 ? 1 : 0);
    }
  }
  constexpr const char* k_switches[] = {"hasUnifiedMemory", "supportsRaytracing",
                                        "supportsFunctionPointers",
                                        "areProgrammableSamplePositionsSupported"};
  for (const char* method : k_switches) {
    hash.value(call_if_implemented<Bool>(device, method) != 0 ? 1 : 0);
  }
  constexpr const char* k_numbers[] = {"maxThreadgroupMemoryLength", "readWriteTextureSupport",
                                       "argumentBuffersSupport"};
  for (const char* method : k_numbers) {
    hash.value(call_if_implemented<unsigned long>(device, method));
  }
  const char* architecture =
      string_text(call_if_implemented<id>(call_if_implemented<id>(device, "architecture"), "name"));
  hash.bytes(architecture, strlen(architecture));
  return hash.get();
}

const char* device_type(id device) {
  const bool has_shared_memory = call_if_implemented<Bool>(device, "hasUnifiedMemory") != 0;
  return has_shared_memory || call_if_implemented<Bool>(device, "isLowPower") != 0 ? "integrated"
                                                                                   : "discrete";
}

// --- hooked methods

template <class... A>
id new_queue(const Call<id, A...>& call, A... arguments) {
  id queue = call(arguments...);
  hook_class(k_queue, queue);
  find_or_add_queue(queue);
  return queue;
}

// Reports a queue of Metal 4: its buffers and encoders are other classes, which are not counted.
template <class... A>
id new_metal4_queue(const Call<id, A...>& call, A... arguments) {
  id queue = call(arguments...);
  if (queue != nullptr) report_uncounted(k_uncounted_queues, "what goes through queues of Metal 4");
  return queue;
}

id record_pipeline(id pipeline, id function) {
  if (pipeline != nullptr)
    add_pipeline(pipeline, string_text(call_if_implemented<id>(function, "name")));
  return pipeline;
}

template <class... A>
id new_pipeline(const Call<id, id, A...>& call, id function, A... arguments) {
  return record_pipeline(call(function, arguments...), function);
}
id new_pipeline_from_descriptor(const Call<id, id, unsigned long, id*, id*>& call, id descriptor,
                                unsigned long options, id* reflection, id* error) {
  return record_pipeline(call(descriptor, options, reflection, error),
                         call_if_implemented<id>(descriptor, "computeFunction"));
}

id new_shared_event(const Call<id>& call) {
  id event = call();
  hook_class(k_event, event);
  add_event(event);
  return event;
}

template <class... A>
id new_command_buffer(const Call<id, A...>& call, A... arguments) {
  id buffer = call(arguments...);
  hook_class(k_buffer, buffer);
  add_buffer(buffer, find_or_add_queue(call.self));
  return buffer;
}

constexpr Hook k_of_devices[] = {
    WEIR_HOOK("newCommandQueue", (new_queue<>)),
    WEIR_HOOK("newCommandQueueWithMaxCommandBufferCount:", (new_queue<unsigned long>)),
    WEIR_HOOK("newCommandQueueWithDescriptor:", (new_queue<id>)),
    WEIR_HOOK("newMTL4CommandQueue", (new_metal4_queue<>)),
    WEIR_HOOK("newMTL4CommandQueueWithDescriptor:error:", (new_metal4_queue<id, id*>)),
    WEIR_HOOK("newComputePipelineStateWithFunction:error:", (new_pipeline<id*>)),
    WEIR_HOOK("newComputePipelineStateWithFunction:options:reflection:error:",
              (new_pipeline<unsigned long, id*, id*>)),
    WEIR_HOOK("newComputePipelineStateWithDescriptor:options:reflection:error:",
              new_pipeline_from_descriptor),
    WEIR_HOOK("newSharedEvent", new_shared_event),
};

constexpr Hook k_of_queues[] = {
    WEIR_HOOK("commandBuffer", (new_command_buffer<>)),
    WEIR_HOOK("commandBufferWithUnretainedReferences", (new_command_buffer<>)),
    WEIR_HOOK("commandBufferWithDescriptor:", (new_command_buffer<id>)),
};

}  // namespace

// Returns the file's entry of a device: its names, and a class made from them and its features.
weir_probe_device describe_device(id device) {
  weir_probe_device entry{};
  copy_text(entry.api, sizeof entry.api, "metal");
  copy_text(entry.type, sizeof entry.type, device_type(device));
  copy_text(entry.name, sizeof entry.name, string_text(call_if_implemented<id>(device, "name")));
  read_system(entry.driver, sizeof entry.driver);
  entry.vendor = find_vendor(entry.name);
  entry.device = folded(hash_text(entry.name));
  entry.driver_version = folded(hash_text(entry.driver));
  entry.feature_hash = hash_features(device);
  snprintf(entry.device_class, sizeof entry.device_class, "metal-%04x-%08x-%x-%08x-%016llx",
           entry.vendor, entry.device, entry.driver_id, entry.driver_version,
           static_cast<unsigned long long>(entry.feature_hash));
  return entry;
}

extern const Hooks k_device_hooks = list_of(k_of_devices);
extern const Hooks k_queue_hooks = list_of(k_of_queues);

}  // namespace weir_probe::metal
