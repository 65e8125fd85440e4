// Submission (recorded work is multiplied out) and waiting (syncs).
#pragma once

#include <vulkan/vulkan.h>

#include "gate/probes/inject/vulkan/state.h"

namespace weir_probe {

VKAPI_ATTR VkResult VKAPI_CALL queue_submit(VkQueue, uint32_t, const VkSubmitInfo*, VkFence);
VKAPI_ATTR VkResult VKAPI_CALL queue_submit2(VkQueue, uint32_t, const VkSubmitInfo2*, VkFence);
VKAPI_ATTR VkResult VKAPI_CALL queue_submit2_khr(VkQueue, uint32_t, const VkSubmitInfo2*, VkFence);
VKAPI_ATTR VkResult VKAPI_CALL queue_bind_sparse(VkQueue, uint32_t, const VkBindSparseInfo*,
                                                 VkFence);

VKAPI_ATTR VkResult VKAPI_CALL queue_wait_idle(VkQueue);
VKAPI_ATTR VkResult VKAPI_CALL device_wait_idle(VkDevice);
VKAPI_ATTR void VKAPI_CALL destroy_fence(VkDevice, VkFence, const VkAllocationCallbacks*);
VKAPI_ATTR VkResult VKAPI_CALL wait_for_fences(VkDevice, uint32_t, const VkFence*, VkBool32,
                                               uint64_t);
VKAPI_ATTR VkResult VKAPI_CALL get_fence_status(VkDevice, VkFence);
VKAPI_ATTR VkResult VKAPI_CALL create_semaphore(VkDevice, const VkSemaphoreCreateInfo*,
                                                const VkAllocationCallbacks*, VkSemaphore*);
VKAPI_ATTR void VKAPI_CALL destroy_semaphore(VkDevice, VkSemaphore, const VkAllocationCallbacks*);
VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice, const VkSemaphoreWaitInfo*, uint64_t);
VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores_khr(VkDevice, const VkSemaphoreWaitInfo*, uint64_t);
VKAPI_ATTR VkResult VKAPI_CALL get_semaphore_counter_value(VkDevice, VkSemaphore, uint64_t*);
VKAPI_ATTR VkResult VKAPI_CALL get_semaphore_counter_value_khr(VkDevice, VkSemaphore, uint64_t*);
VKAPI_ATTR VkResult VKAPI_CALL signal_semaphore(VkDevice, const VkSemaphoreSignalInfo*);
VKAPI_ATTR VkResult VKAPI_CALL signal_semaphore_khr(VkDevice, const VkSemaphoreSignalInfo*);

// Notes that `queue` (null: the host) is to bring the semaphore to `value`. Binary ones are
// ignored.
void note_signal(Device* device, VkSemaphore semaphore, uint64_t value, Queue* queue);

}  // namespace weir_probe
