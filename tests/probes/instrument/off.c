/* Marks that are off, a hundred of each kind, for counting instructions. A barrier for the compiler
 * keeps each one a test of its own, as it is where an engine does something between them. */
#include "weir/instrument.h"

#define AGAIN __asm__ volatile("" ::: "memory");
#define TEN(mark)                                                                              \
  mark AGAIN mark AGAIN mark AGAIN mark AGAIN mark AGAIN mark AGAIN mark AGAIN mark AGAIN mark \
      AGAIN mark AGAIN
#define HUNDRED(mark) TEN(TEN_(mark))
#define TEN_(mark)                                                                             \
  mark AGAIN mark AGAIN mark AGAIN mark AGAIN mark AGAIN mark AGAIN mark AGAIN mark AGAIN mark \
      AGAIN mark
#define SCENE(name, mark) \
  __attribute__((noinline)) void name(void) { HUNDRED(mark) }

SCENE(off_nothing, (void)0;)
SCENE(off_op_begin, weir_op_begin("MUL_MAT", 0, 1);)
SCENE(off_op_end, weir_op_end();)
SCENE(off_wait_begin, weir_wait_begin();)
SCENE(off_dispatch, weir_dispatch(0, "mul_mat");)
SCENE(off_barrier, weir_barrier(0);)
SCENE(off_submit, weir_submit(0, 0);)
SCENE(off_sync, weir_sync(0);)
SCENE(off_token, weir_token(1);)

int main(void) {
  off_nothing();
  off_op_begin();
  off_op_end();
  off_wait_begin();
  off_dispatch();
  off_barrier();
  off_submit();
  off_sync();
  off_token();
  return 0;
}
