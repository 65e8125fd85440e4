// How the CUDA driver enters: it loads what CUDA_INJECTION64_PATH names and calls
// InitializeInjection before the program's first call. CUPTI then calls back round each call that
// is counted.
#include <cupti.h>
#include <dlfcn.h>

#include "gate/probes/inject/cuda/cuda.h"
#include "gate/probes/inject/streams/streams.h"

#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
#endif

namespace weir_probe::cuda {
namespace {

#define WEIR_TEXT_OF(x) #x
#define WEIR_TEXT(x) WEIR_TEXT_OF(x)

decltype(&cuptiSubscribe) g_subscribe;
decltype(&cuptiEnableCallback) g_enable;
CUpti_SubscriberHandle g_subscriber;

// The CUPTI of the toolkit that this was built with; a later one keeps what is used of it.
void* find_cupti() {
  constexpr const char* k_names[] = {
      "libcupti.so." WEIR_TEXT(WEIR_CUDA_MAJOR),
      "libcupti.so",
      "/usr/local/cuda/lib64/libcupti.so",
      "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
  };
  for (const char* name : k_names) {
    if (void* found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
  }
  return nullptr;
}

void CUPTIAPI called_back(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          const void* data) {
  on_call(domain == CUPTI_CB_DOMAIN_RUNTIME_API, id, data);
}

bool enable(bool runtime_api, uint32_t id) {
  const auto domain = runtime_api ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
  return g_enable(1, g_subscriber, domain, id) == CUPTI_SUCCESS;
}

// In words, what went wrong; null when calls are watched.
const char* begin() {
  void* cupti = find_cupti();
  if (cupti == nullptr) return "cannot load libcupti.so";
  g_subscribe = reinterpret_cast<decltype(g_subscribe)>(dlsym(cupti, "cuptiSubscribe"));
  g_enable = reinterpret_cast<decltype(g_enable)>(dlsym(cupti, "cuptiEnableCallback"));
  if (g_subscribe == nullptr || g_enable == nullptr) return "libcupti.so lacks functions";
  switch (g_subscribe(&g_subscriber, called_back, nullptr)) {
    case CUPTI_SUCCESS:
      break;
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_MAX_LIMIT_REACHED:
      return "another profiler holds CUPTI";
    default:
      return "CUPTI saw no device";
  }
  return enable_calls(enable) ? nullptr : "CUPTI offers none of the calls";
}

}  // namespace
}  // namespace weir_probe::cuda

// Always answers that all is well: the program shall go on.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  static bool begun;
  if (__atomic_exchange_n(&begun, true, __ATOMIC_ACQ_REL)) return 1;
  const char* problem = weir_probe::cuda::begin();
  if (problem == nullptr) return 1;
  weir_probe::complain(weir_probe::streams::k_probe_name, problem, "", 0);
  // Said in the file too: nothing counted is not a count of nothing.
  weir_probe::streams::ensure_file();
  weir_probe::set_flag(&weir_probe::streams::g.file, WEIR_PROBE_BLOCKED);
  return 1;
}
