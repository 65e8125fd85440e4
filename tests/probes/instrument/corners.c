/* An engine that does what few do, scene by scene: corners SCENE. Strict C11. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weir/instrument.h"

static uint32_t g_gpu, g_queue;

static void op(const char* name) {
  weir_op_begin(name, g_gpu, 0);
  weir_op_end();
}

/* --- One thread encodes and goes on, another one submits and knows the times. --- */
enum { k_handed = 20, k_first = 50, k_more = 3000 };
static _Atomic uint64_t g_handed;

static void* encode(void* unused) {
  (void)unused;
  for (int i = 0; i < k_handed; ++i) {
    const uint64_t buffer = weir_buffer_begin("handed over");
    for (int k = 0; k < k_first; ++k) weir_dispatch(g_queue, "first");
    atomic_store(&g_handed, buffer);
    for (int k = 0; k < k_more; ++k) weir_dispatch(g_queue, "more");
    while (atomic_load(&g_handed) != 0) continue;
  }
  return NULL;
}

static int run_handover(void) {
  /* Of the last one that of a dispatch is taken for which is encoded meanwhile, or is not yet. */
  uint64_t times[2 * (k_first + k_more)];
  for (uint64_t i = 0; i < k_first + k_more; ++i) {
    times[2 * i] = 10 * i;
    times[2 * i + 1] = 10 * i + 10;
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, encode, NULL) != 0) return 1;
  for (int i = 0; i < k_handed; ++i) {
    uint64_t buffer = 0;
    while ((buffer = atomic_load(&g_handed)) == 0) continue;
    weir_submit(g_queue, buffer);
    weir_buffer_times(g_queue, buffer, 0, 10 * (k_first + k_more), times, k_first + k_more);
    atomic_store(&g_handed, 0);
  }
  return pthread_join(thread, NULL);
}

/* --- Threads that end within a buffer, which another one submits. --- */
static _Atomic uint64_t g_left_open;

static void* leave_open(void* unused) {
  (void)unused;
  const uint64_t buffer = weir_buffer_begin("left open");
  for (int i = 0; i < 16000; ++i) weir_dispatch(g_queue, "k");
  atomic_store(&g_left_open, buffer);
  return NULL;
}

static long kibibytes(void) {
  struct rusage used;
  return getrusage(RUSAGE_SELF, &used) == 0 ? used.ru_maxrss : -1;
}

/* Prints by how many KiB the process grew after what is kept for the latest 256 buffers. */
static int run_left_open(void) {
  long before = 0;
  for (int i = 0; i < 1200; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, leave_open, NULL) != 0) return 1;
    pthread_join(thread, NULL);
    const uint64_t buffer = atomic_load(&g_left_open);
    weir_submit(g_queue, buffer);
    weir_buffer_times(g_queue, buffer, 1, 2, NULL, 0);
    if (i == 400) before = kibibytes();
  }
  printf("%ld\n", kibibytes() - before);
  return 0;
}

/* One literal is an op's name and a kernel's, on a queue whose number is that of nothing. */
static int run_names(void) {
  static const char name[] = "MUL_MAT";
  for (uint32_t queue = 0; queue < 1024; ++queue) {
    op(name);
    weir_dispatch(queue, name);
  }
  weir_dispatch(UINT32_MAX, name);
  return 0;
}

/* A buffer's times before the pair that tells the tick: 40 ms in a million ticks, always. */
static int run_late_clock(void) {
  weir_clock_pair(g_gpu, 1000000000, 500);
  const uint64_t early = weir_buffer_begin("early");
  weir_submit(g_queue, early);
  weir_buffer_times(g_queue, early, 500, 1000500, NULL, 0);
  for (uint64_t i = 1; i < 4; ++i) {
    weir_clock_pair(g_gpu, 1000000000 + i * 40000000, 500 + i * 1000000);
    const uint64_t buffer = weir_buffer_begin("late");
    weir_submit(g_queue, buffer);
    weir_buffer_times(g_queue, buffer, i * 1000000, (i + 1) * 1000000, NULL, 0);
  }
  printf("%llu\n", (unsigned long long)weir_ticks_to_nanoseconds(g_gpu, 4000500));
  return 0;
}

/* Switched off within a scope, more often than scopes may nest. */
static int run_switched(void) {
  for (int i = 0; i < 40; ++i) {
    weir_profile_enable(WEIR_PROFILE_OPS);
    weir_op_begin("CUT", g_gpu, 0);
    weir_profile_enable(0);
    weir_op_end();
  }
  weir_profile_enable(WEIR_PROFILE_OPS);
  weir_op_end(); /* of one that began while this was off */
  op("WHOLE");
  weir_profile_dump(1);
  return 0;
}

static void slow_op(void) {
  const struct timespec twenty_ms = {0, 20000000};
  weir_op_begin("OP", g_gpu, 0);
  nanosleep(&twenty_ms, NULL);
  weir_op_end();
  weir_token(1);
}

static void wait_for_queue(long milliseconds) {
  const struct timespec length = {0, milliseconds * 1000000};
  weir_wait_begin();
  nanosleep(&length, NULL);
  weir_sync(g_queue);
}

/* Waits of 200 ms in an op and of 100 ms in one within it. Prints how long it all took. */
static int run_waiting(void) {
  weir_profile_enable(WEIR_PROFILE_OPS);
  const uint64_t begin = weir_now();
  weir_op_begin("OUTER", g_gpu, 0);
  wait_for_queue(200);
  weir_op_begin("INNER", g_gpu, 0);
  wait_for_queue(100);
  weir_op_end();
  weir_op_end();
  const uint64_t end = weir_now();
  weir_profile_dump(1);
  printf("%llu us\n", (unsigned long long)(end - begin) / 1000);
  return 0;
}

static int run_reset(void) {
  weir_profile_enable(WEIR_PROFILE_OPS);
  for (int i = 0; i < 3; ++i) slow_op();
  weir_profile_reset();
  op("OP");
  weir_token(1);
  weir_profile_dump(1);
  return 0;
}

static int run_fork_reset(void) {
  weir_profile_enable(WEIR_PROFILE_OPS);
  for (int i = 0; i < 3; ++i) slow_op();
  const pid_t child = fork();
  if (child == 0) {
    op("OP");
    weir_token(1);
    weir_profile_dump(1);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

static int run_fork_twice(void) {
  weir_dispatch(g_queue, "parent");
  const pid_t child = fork();
  if (child != 0) return waitpid(child, NULL, 0) == child ? 0 : 1;
  const pid_t grandchild = fork(); /* the child marks nothing */
  if (grandchild != 0) {
    printf("%ld %ld\n", (long)getpid(), (long)grandchild);
    fflush(stdout);
    _exit(waitpid(grandchild, NULL, 0) == grandchild ? 0 : 1);
  }
  weir_dispatch(g_queue, "grandchild");
  _exit(0);
}

/* Tables into a pipe that nobody reads. */
static int run_pipe(void) {
  int ends[2];
  if (pipe(ends) != 0 || close(ends[0]) != 0) return 1;
  signal(SIGPIPE, SIG_DFL);
  weir_profile_enable(WEIR_PROFILE_OPS);
  op("OP");
  weir_profile_dump(ends[1]);
  if (dup2(ends[1], 2) != 2) return 1;
  weir_warn_once("that nobody hears");
  /* One of the program's own is left alone. */
  sigset_t pipes, pending;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  sigprocmask(SIG_BLOCK, &pipes, NULL);
  raise(SIGPIPE);
  weir_profile_dump(ends[1]);
  sigpending(&pending);
  printf("alive, %s\n", sigismember(&pending, SIGPIPE) == 1 ? "pending" : "taken");
  return 0;
}

static void mark_everything(int from, int to) {
  char name[32];
  for (int i = from; i < to; ++i) {
    snprintf(name, sizeof name, "name %d", i);
    const uint64_t buffer = weir_buffer_begin(name);
    weir_dispatch(g_queue, name);
    op(name);
    weir_submit(g_queue, buffer);
    weir_sync(g_queue);
    weir_buffer_times(g_queue, buffer, 1, 2, NULL, 0);
    weir_token(1);
  }
}

/* Four labels, of four equal dispatches each. */
static int run_labels(void) {
  for (uint64_t layer = 0; layer < 4; ++layer) {
    char name[16];
    snprintf(name, sizeof name, "layer%d", (int)layer);
    const uint64_t buffer = weir_buffer_begin(name), begin = (layer + 1) * 100;
    uint64_t parts[8];
    for (uint64_t i = 0; i < 4; ++i) {
      weir_dispatch(g_queue, "gemv");
      parts[2 * i] = begin + 2 * i;
      parts[2 * i + 1] = begin + 2 * i + 1;
    }
    weir_submit(g_queue, buffer);
    weir_buffer_times(g_queue, buffer, begin, begin + 8, parts, 4);
  }
  return 0;
}

static void* keep_errno(void* unused) {
  (void)unused;
  errno = 4711;
  mark_everything(0, 400);
  if (errno != 4711) printf("a thread's: %d\n", errno);
  return NULL;
}

static int run_errno(void) {
  errno = 4711;
  mark_everything(0, 5);
  weir_warn_once("once");
  weir_profile_dump(-1);
  if (errno != 4711) printf("the first thread's: %d\n", errno);
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, keep_errno, NULL) != 0) return 1;
    pthread_join(thread, NULL);
  }
  const pid_t child = fork();
  errno = 4711;
  mark_everything(400, 405);
  if (errno != 4711) printf("a fork's: %d\n", errno);
  if (child == 0) _exit(0);
  return waitpid(child, NULL, 0) == child ? 0 : 1;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int (*run)(void);
  } k_scenes[] = {
      {"handover", run_handover},     {"left-open", run_left_open},   {"names", run_names},
      {"late-clock", run_late_clock}, {"switched", run_switched},     {"reset", run_reset},
      {"fork-reset", run_fork_reset}, {"fork-twice", run_fork_twice}, {"pipe", run_pipe},
      {"errno", run_errno},           {"labels", run_labels},         {"waiting", run_waiting},
  };
  g_gpu = weir_device_declare("metal", "discrete", "Sample GPU", "sample-1002-0-0-1-0");
  g_queue = weir_queue_declare(g_gpu);
  for (size_t i = 0; argc > 1 && i < sizeof k_scenes / sizeof *k_scenes; ++i) {
    if (strcmp(argv[1], k_scenes[i].name) == 0) return k_scenes[i].run();
  }
  return 2;
}
