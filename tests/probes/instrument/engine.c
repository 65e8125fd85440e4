/* A small engine of C that marks its own work, with counts known by hand. Strict C11, so that the
 * header stays so.
 *
 *   engine tokens N [API]   a prefill of 8 tokens, then N of one; API: cpu, metal, …
 *   engine SCENE
 *
 * SAMPLE_EXTRA_BARRIER in the environment adds a barrier to each layer.
 *
 * Start: 2 copies, 1 submit, 1 sync. The prefill has what a token has. A token: 2 layers of 3
 * dispatches (rms_norm, and mul_mat twice) and 1 barrier; 1 copy; 1 submit; 1 sync; 7 ops, one of
 * them on the CPU. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weir/instrument.h"

enum { k_layers = 2 };

static uint32_t g_gpu, g_cpu, g_queue;
static int g_extra_barrier, g_no_barriers;

static void begin_op(const char* name, uint32_t device, int32_t layer, int64_t rows) {
  const int64_t weights[4] = {64, 32, 1, 1}, in[4] = {64, rows, 1, 1}, out[4] = {32, rows, 1, 1};
  weir_op_begin(name, device, layer);
  if (strcmp(name, "MUL_MAT") == 0) weir_op_operand("q4_0", weights);
  weir_op_operand("f32", in);
  weir_op_operand("f32", out);
}

static void op(const char* name, uint32_t device, int32_t layer, int64_t rows) {
  begin_op(name, device, layer, rows);
  weir_op_end();
}

static void op_on_gpu(const char* name, int32_t layer, int64_t rows, const char* kernel) {
  begin_op(name, g_gpu, layer, rows);
  weir_dispatch_groups(g_queue, kernel, 4, (uint32_t)rows, 1);
  weir_op_end();
}

static void evaluate(uint32_t rows) {
  const uint64_t buffer = weir_buffer_begin("token");
  op("GET_ROWS", g_cpu, WEIR_LAYER_UNKNOWN, rows);
  weir_copy(g_queue, WEIR_COPY_TO_DEVICE, 256);
  for (int layer = 0; layer < k_layers; ++layer) {
    op_on_gpu("RMS_NORM", layer, rows, "rms_norm");
    if (!g_no_barriers) weir_barrier(g_queue);
    if (g_extra_barrier) weir_barrier(g_queue);
    op_on_gpu("MUL_MAT", layer, rows, "mul_mat");
    op_on_gpu("MUL_MAT", layer, rows, "mul_mat");
  }
  weir_submit(g_queue, buffer);
  weir_wait_begin();
  weir_sync(g_queue);
  weir_sync(g_queue); /* the same work: one sync */
  if (buffer != 0) {
    /* As if each dispatch took 10 ticks, one after the other. */
    uint64_t times[2 * 3 * k_layers];
    const uint64_t begin = weir_now();
    for (uint64_t i = 0; i < 3 * k_layers; ++i) {
      times[2 * i] = begin + 10 * i;
      times[2 * i + 1] = begin + 10 * i + 10;
    }
    weir_buffer_times(g_queue, buffer, begin, begin + 60, times, 3 * k_layers);
  }
  weir_token(rows);
}

static void open_devices(const char* api) {
  const char* type = getenv("SAMPLE_DEVICE_TYPE");
  const char* device_class = getenv("SAMPLE_DEVICE_CLASS");
  g_cpu = weir_device_declare("cpu", "cpu", "this processor", "");
  g_gpu = strcmp(api, "cpu") == 0 ? g_cpu
                                  : weir_device_declare(api, type == NULL ? "discrete" : type,
                                               "Sample GPU",
                                     device_class == NULL ? "sample-1002-0-0-1-0" : device_class);
  g_queue = weir_queue_declare(g_gpu);
}

static void load(void) {
  weir_copy(g_queue, WEIR_COPY_TO_DEVICE, 1 << 20);
  weir_copy(g_queue, WEIR_COPY_TO_DEVICE, 1 << 20);
  weir_submit(g_queue, 0);
  weir_sync(g_queue);
}

static void generate(int tokens) {
  load();
  evaluate(8);
  for (int i = 0; i < tokens; ++i) evaluate(1);
}

static void* marks_of_a_thread(void* unused) {
  (void)unused;
  for (int i = 0; i < 10000; ++i) {
    weir_dispatch(g_queue, "shared");
    op("ADD", g_gpu, 0, 1);
  }
  return NULL;
}

static int run_threads(int count) {
  pthread_t threads[64];
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], NULL, marks_of_a_thread, NULL) != 0) return 1;
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  weir_token(1);
  return 0;
}

static int run_fork(void) {
  generate(1);
  const pid_t child = fork();
  if (child == 0) {
    evaluate(1);
    evaluate(1);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  evaluate(1);
  return status;
}

/* More of everything than there is room for. */
static int run_overflow(void) {
  char name[64];
  for (int i = 0; i < 100; ++i) {
    snprintf(name, sizeof name, "device %d", i);
    weir_queue_declare(weir_device_declare("metal", "discrete", name, name));
  }
  for (int i = 0; i < 5000; ++i) {
    const int64_t ne[4] = {i, 1, 1, 1};
    snprintf(name, sizeof name, "kernel %d", i);
    weir_dispatch((uint32_t)i, name);
    weir_op_begin("GROWS", (uint32_t)i, 0);
    for (int k = 0; k < 20; ++k) weir_op_operand("f32", ne);
    weir_op_end();
    if (i % 10 == 0) weir_token((uint32_t)i);
  }
  for (int i = 0; i < 40; ++i) weir_op_begin("DEEP", g_gpu, 0);
  for (int i = 0; i < 50; ++i) weir_op_end();
  weir_token(1);
  return 0;
}

static int run_clock(void) {
  const uint32_t device = weir_device_declare("metal", "discrete", "clock", "");
  printf("%llu", (unsigned long long)weir_ticks_to_nanoseconds(device, 12345));
  weir_clock_pair(device, 1000000000, 500);
  printf(" %llu", (unsigned long long)weir_ticks_to_nanoseconds(device, 600));
  weir_clock_pair(device, 1000000100, 700); /* too near to tell a rate */
  printf(" %llu", (unsigned long long)weir_ticks_to_nanoseconds(device, 600));
  weir_clock_pair(device, 1040000000, 1000500); /* 40 ms in a million ticks */
  printf(" %llu", (unsigned long long)weir_ticks_to_nanoseconds(device, 1000600));
  printf(" %llu", (unsigned long long)weir_ticks_to_nanoseconds(device, 500));
  const uint32_t rated = weir_device_declare("vulkan", "discrete", "rated", "");
  weir_clock_rate(rated, 10.0);
  weir_clock_pair(rated, 5000, 100);
  printf(" %llu %llu\n", (unsigned long long)weir_ticks_to_nanoseconds(rated, 103),
         (unsigned long long)weir_ticks_to_nanoseconds(rated, 97));
  return 0;
}

static int run_nonsense(void) {
  weir_op_end();
  weir_op_operand(NULL, NULL);
  weir_dispatch(77, NULL);
  weir_op_begin(NULL, 99, -7);
  weir_op_operand(NULL, NULL);
  weir_op_end();
  weir_sync(1000);
  weir_submit(1000, 123456);
  weir_buffer_times(9, 42, 10, 5, NULL, 7);
  weir_record(NULL, 1);
  weir_warn_once("said once");
  weir_warn_once("said once");
  weir_warn_once(NULL);
  weir_token(0);
  return 0;
}

static int run_enabled_by_itself(void) {
  generate(1);
  weir_profile_enable(WEIR_PROFILE_OPS | WEIR_PROFILE_DISPATCH);
  evaluate(1);
  weir_profile_reset();
  evaluate(1);
  weir_record("by the engine", 1000000);
  weir_profile_dump(1);
  weir_profile_enable(0);
  evaluate(1);
  return 0;
}

static int run_sleep(void) {
  const struct timespec thirty_ms = {0, 30000000};
  weir_profile_enable(WEIR_PROFILE_OPS);
  weir_op_begin("SLEEP", g_gpu, 0);
  nanosleep(&thirty_ms, NULL);
  weir_op_end();
  weir_profile_dump(1);
  return 0;
}

int main(int argc, char** argv) {
  g_extra_barrier = getenv("SAMPLE_EXTRA_BARRIER") != NULL;
  g_no_barriers = getenv("SAMPLE_NO_BARRIERS") != NULL;
  /* Marks that are on without a probe's folder are somebody else's. */
  if (getenv("SAMPLE_REFUSES_MARKS") != NULL && getenv("WEIR_PROFILE") != NULL &&
      getenv("WEIR_PROBE_DIR") == NULL) {
    return 3;
  }
  const char* scene = argc > 1 ? argv[1] : "tokens";
  if (weir_instrument_abi() != WEIR_INSTRUMENT_ABI) return 2;
  if (strcmp(scene, "nonsense") == 0) return run_nonsense();
  if (strcmp(scene, "overflow") == 0) return run_overflow();
  open_devices(argc > 3 ? argv[3] : "metal");
  if (strcmp(scene, "tokens") == 0) {
    const int tokens = argc > 2 ? atoi(argv[2]) : 1;
    generate(tokens);
    printf("generated %d tokens (100.0 tok/s)\n", tokens);
    return 0;
  }
  if (strcmp(scene, "threads") == 0) return run_threads(16);
  if (strcmp(scene, "fork") == 0) return run_fork();
  if (strcmp(scene, "clock") == 0) return run_clock();
  if (strcmp(scene, "sleep") == 0) return run_sleep();
  if (strcmp(scene, "enabled") == 0) return run_enabled_by_itself();
  if (strcmp(scene, "killed") == 0) {
    generate(2);
    weir_dispatch(g_queue, "last");
    raise(9);
  }
  return 2;
}
