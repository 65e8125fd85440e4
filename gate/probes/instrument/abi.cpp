// The functions of the ABI behind the short forms of the header: a test and a jump. No frame,
// nothing saved, so that one that is off costs a call, a load, a test and a return.
#include "gate/probes/instrument/state.h"

#define WEIR_EXPORT extern "C" __attribute__((visibility("default")))
#define WEIR_ON(flags) __builtin_expect((weir_profile_flags & (flags)) != 0, 0)

WEIR_EXPORT void weir_dispatch(uint32_t queue, const char* kernel) {
  if (WEIR_ON(WEIR_PROFILE_COUNTS)) weir_dispatch_on(queue, kernel);
}

WEIR_EXPORT void weir_dispatch_groups(uint32_t queue, const char* kernel, uint32_t x, uint32_t y,
                                      uint32_t z) {
  if (WEIR_ON(WEIR_PROFILE_COUNTS)) weir_dispatch_groups_on(queue, kernel, x, y, z);
}

WEIR_EXPORT void weir_barrier(uint32_t queue) {
  if (WEIR_ON(WEIR_PROFILE_COUNTS)) weir_barrier_on(queue);
}

WEIR_EXPORT void weir_copy(uint32_t queue, uint32_t kind, uint64_t bytes) {
  if (WEIR_ON(WEIR_PROFILE_COUNTS)) weir_copy_on(queue, kind, bytes);
}

WEIR_EXPORT void weir_submit(uint32_t queue, uint64_t buffer) {
  if (WEIR_ON(WEIR_PROFILE_COUNTS)) weir_submit_on(queue, buffer);
}

WEIR_EXPORT void weir_wait_begin(void) {
  if (WEIR_ON(WEIR_PROFILE_COUNTS)) weir_wait_begin_on();
}

WEIR_EXPORT void weir_sync(uint32_t queue) {
  if (WEIR_ON(WEIR_PROFILE_COUNTS)) weir_sync_on(queue);
}

WEIR_EXPORT void weir_op_begin(const char* name, uint32_t device, int32_t layer) {
  if (WEIR_ON(WEIR_PROFILE_OPS)) weir_op_begin_on(name, device, layer);
}

WEIR_EXPORT void weir_op_operand(const char* type, const int64_t* ne) {
  if (WEIR_ON(WEIR_PROFILE_OPS)) weir_op_operand_on(type, ne);
}

WEIR_EXPORT void weir_op_end(void) {
  if (WEIR_ON(WEIR_PROFILE_OPS)) weir_op_end_on();
}

WEIR_EXPORT void weir_token(uint32_t rows) {
  if (WEIR_ON(WEIR_PROFILE_OPS)) weir_token_on(rows);
}
