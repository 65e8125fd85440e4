/* Level Zero without a device (-DLOADER, a library of its own), and an engine that computes by it: tinybench with
 * three kernels, a copy and a wait a token (-DEXTRA_SYNC: one copy and wait more). */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kernel_description {
  uint32_t type;
  const void* next;
  uint32_t flags;
  const char* name;
};
struct groups {
  uint32_t x, y, z;
};
int zeKernelCreate(void* module, const struct kernel_description* about, void** kernel);
int zeCommandListAppendLaunchKernel(void* list, void* kernel, const struct groups* groups, void* signal,
                                    uint32_t waits, void** events);
int zeCommandListAppendMemoryCopy(void* list, void* to, const void* from, size_t bytes, void* signal,
                                  uint32_t waits, void** events);
int zeCommandListHostSynchronize(void* list, uint64_t timeout);

#ifdef LOADER
int zeKernelCreate(void* module, const struct kernel_description* about, void** kernel) {
  (void)module;
  *kernel = strdup(about->name);
  return 0;
}
int zeCommandListAppendLaunchKernel(void* list, void* kernel, const struct groups* groups, void* signal,
                                    uint32_t waits, void** events) {
  (void)list, (void)kernel, (void)groups, (void)signal, (void)waits, (void)events;
  return 0;
}
int zeCommandListAppendMemoryCopy(void* list, void* to, const void* from, size_t bytes, void* signal,
                                  uint32_t waits, void** events) {
  (void)list, (void)signal, (void)waits, (void)events;
  memcpy(to, from, bytes);
  return 0;
}
int zeCommandListHostSynchronize(void* list, uint64_t timeout) {
  (void)list, (void)timeout;
  return 0;
}
#else
int main(int count, char** words) {
  int prompt = 0, tokens = 0;
  for (int i = 1; i + 1 < count; ++i) {
    if (strcmp(words[i], "--prompt") == 0) prompt = atoi(words[i + 1]);
    if (strcmp(words[i], "-n") == 0) tokens = atoi(words[i + 1]);
  }
  const char* names[] = {"attention", "matmul", "norm"};
  void* kernels[3];
  for (int i = 0; i < 3; ++i) {
    const struct kernel_description about = {0, NULL, 0, names[i]};
    zeKernelCreate(NULL, &about, &kernels[i]);
  }
  void* const list = malloc(64); /* an immediate command list */
  float logits[4] = {0}, copy[4];
  for (int token = 0; token < tokens; ++token) {
    for (int i = 0; i < 3; ++i) {
      const struct groups groups = {64, 1, 1};
      zeCommandListAppendLaunchKernel(list, kernels[i], &groups, NULL, 0, NULL);
    }
    zeCommandListAppendMemoryCopy(list, copy, logits, sizeof copy, NULL, 0, NULL);
    zeCommandListHostSynchronize(list, UINT64_MAX);
#ifdef EXTRA_SYNC
    zeCommandListAppendMemoryCopy(list, copy, logits, sizeof copy, NULL, 0, NULL);
    zeCommandListHostSynchronize(list, UINT64_MAX);
#endif
  }
  printf("tinybench 1.0, prompt %d, generate %d\n", prompt, tokens);
  if (prompt > 0) printf("prefill 1000.0 tok/s\n");
  if (tokens > 0) printf("decode 41.5 tok/s\n");
  return 0;
}
#endif
