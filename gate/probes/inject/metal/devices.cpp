// What devices and queues make: queues, command buffers, pipelines, shared events.
#include "gate/probes/inject/metal/state.h"

namespace weir_probe::metal {
namespace {

id made_queue(id queue) {
  meet(k_queue, queue);
  queue_of(queue);
  return queue;
}

id new_queue(const Call<id>& call) { return made_queue(call()); }
id new_queue_of_size(const Call<id, unsigned long>& call, unsigned long most) {
  return made_queue(call(most));
}
id new_queue_described(const Call<id, id>& call, id descriptor) {
  return made_queue(call(descriptor));
}

// Metal 4 has other queues, buffers and encoders.
id new_queue_of_metal4(const Call<id>& call) {
  id made = call();
  if (made != nullptr) tell_unseen(k_unseen_queues, "what goes through queues of", "Metal 4");
  return made;
}
id new_queue_of_metal4_described(const Call<id, id, id*>& call, id descriptor, id* error) {
  id made = call(descriptor, error);
  if (made != nullptr) tell_unseen(k_unseen_queues, "what goes through queues of", "Metal 4");
  return made;
}

id made_pipeline(id pipeline, id function) {
  if (pipeline != nullptr) new_pipeline(pipeline, text_of(ask<id>(function, "name")));
  return pipeline;
}

id new_pipeline_of(const Call<id, id, id*>& call, id function, id* error) {
  return made_pipeline(call(function, error), function);
}
id new_pipeline_reflected(const Call<id, id, unsigned long, id*, id*>& call, id function,
                          unsigned long options, id* reflection, id* error) {
  return made_pipeline(call(function, options, reflection, error), function);
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

id made_buffer(id queue, id buffer) {
  meet(k_buffer, buffer);
  new_buffer(buffer, queue_of(queue));
  return buffer;
}

id command_buffer(const Call<id>& call) { return made_buffer(call.self, call()); }
id command_buffer_described(const Call<id, id>& call, id descriptor) {
  return made_buffer(call.self, call(descriptor));
}

constexpr Hook k_of_devices[] = {
    WEIR_HOOK("newCommandQueue", new_queue),
    WEIR_HOOK("newCommandQueueWithMaxCommandBufferCount:", new_queue_of_size),
    WEIR_HOOK("newCommandQueueWithDescriptor:", new_queue_described),
    WEIR_HOOK("newMTL4CommandQueue", new_queue_of_metal4),
    WEIR_HOOK("newMTL4CommandQueueWithDescriptor:error:", new_queue_of_metal4_described),
    WEIR_HOOK("newComputePipelineStateWithFunction:error:", new_pipeline_of),
    WEIR_HOOK("newComputePipelineStateWithFunction:options:reflection:error:",
              new_pipeline_reflected),
    WEIR_HOOK("newComputePipelineStateWithDescriptor:options:reflection:error:",
              new_pipeline_described),
    WEIR_HOOK("newSharedEvent", new_shared_event),
};

constexpr Hook k_of_queues[] = {
    WEIR_HOOK("commandBuffer", command_buffer),
    WEIR_HOOK("commandBufferWithUnretainedReferences", command_buffer),
    WEIR_HOOK("commandBufferWithDescriptor:", command_buffer_described),
};

}  // namespace

extern const Hooks k_device_hooks = hooks_of(k_of_devices);
extern const Hooks k_queue_hooks = hooks_of(k_of_queues);

}  // namespace weir_probe::metal
