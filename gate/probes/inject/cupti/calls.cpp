// Which calls of the runtime and the driver are counted, and how.
//
// A runtime's call may make the driver's: both are watched, and the outermost counts.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include "gate/probes/inject/cupti/cupti.h"
#include "gate/probes/inject/streams/streams.h"
#include "gate/probes/inject/writer/old_symbols.h"

namespace weir_probe::cupti {
namespace {

using namespace streams;

Size3 size(const dim3& from) { return {from.x, from.y, from.z}; }

// What is known of a call that has ended.
struct Call {
  const CUpti_CallbackData* data;
  int result;
  bool per_thread;  // a variant for which no stream means the thread's own

  template <class Params>
  [[nodiscard]] const Params& params() const {
    return *static_cast<const Params*>(data->functionParams);
  }
  [[nodiscard]] void* stream(void* given) const {
    return given == nullptr && per_thread ? reinterpret_cast<void*>(k_thread_stream) : given;
  }
};

// The runtime's and the driver's calls, and their variants, name alike what they are about. Null
// where a call has no stream: it waits.
template <class P>
void* stream_in(const P& p) {
  if constexpr (requires { p.stream; }) {
    return p.stream;
  } else if constexpr (requires { p.hStream; }) {
    return p.hStream;
  } else {
    return nullptr;
  }
}
// The member `a`, or `b` where there is none.
#define WEIR_EITHER(name, a, b)        \
  template <class P>                   \
  auto name(const P& p) {              \
    if constexpr (requires { p.a; }) { \
      return p.a;                      \
    } else {                           \
      return p.b;                      \
    }                                  \
  }
WEIR_EITHER(function_in, func, f)
WEIR_EITHER(graph_in, graph, hGraph)
WEIR_EITHER(event_in, event, hEvent)
WEIR_EITHER(launched_in, graphExec, hGraph)
WEIR_EITHER(ended_in, graphExec, hGraphExec)
WEIR_EITHER(made_in, pGraphExec, phGraphExec)

template <class P>
constexpr bool k_has_stream = requires(P p) {
  p.stream;
}
|| requires(P p) { p.hStream; };
template <class P>
Stream* awaited(const Call& call, const P& p) {
  if constexpr (requires { p.event; }) {
    return stream_of_event(p.event);
  } else if constexpr (requires { p.hEvent; }) {
    return stream_of_event(p.hEvent);
  } else {
    return stream_of(call.stream(stream_in(p)));
  }
}
template <class P>
uint64_t bytes_in(const P& p) {
  if constexpr (requires { p.count; }) {
    return p.count;
  } else if constexpr (requires { p.ByteCount; }) {
    return p.ByteCount;
  } else {
    return p.width * p.height;
  }
}
template <class P>
weir_probe_launch sizes_in(const P& p) {
  if constexpr (requires { p.sharedMem; }) {
    return sizes_of(size(p.gridDim), size(p.blockDim), p.sharedMem);
  } else if constexpr (requires { p.dynamicSmemBytes; }) {
    return sizes_of(size(p.gridDim), size(p.blockDim), p.dynamicSmemBytes);
  } else {
    return sizes_of({p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ},
                    p.sharedMemBytes);
  }
}

template <class P>
void launch(const Call& call) {
  const auto& p = call.params<P>();
  const auto launch_by = [&](const auto& config) {
    launched(call.stream(stream_in(config)),
             {function_in(p), call.data->symbolName, sizes_in(config)});
  };
  if constexpr (requires { p.config; }) {
    launch_by(*p.config);
  } else {
    launch_by(p);
  }
}
// What counts a call, by its parameters `p`.
#define WEIR_COUNTS(name, ...)        \
  template <class P>                  \
  void name(const Call& call) {       \
    const auto& p = call.params<P>(); \
    __VA_ARGS__;                      \
  }
WEIR_COUNTS(graph_launch, launched_graph(call.stream(stream_in(p)), launched_in(p)))
WEIR_COUNTS(instantiate, graph_was_made(*made_in(p), graph_in(p)))
WEIR_COUNTS(graph_update, graph_was_made(p.hGraphExec, p.hGraph))
WEIR_COUNTS(graph_end, graph_ended(ended_in(p)))
WEIR_COUNTS(stream_end, stream_ended(stream_in(p)))
WEIR_COUNTS(stream_waits, waits_for_event(call.stream(stream_in(p))))
WEIR_COUNTS(record, recorded(event_in(p), call.stream(stream_in(p))))
WEIR_COUNTS(wait, waited(awaited(call, p)))
WEIR_COUNTS(poll, polled(awaited(call, p), call.result))
WEIR_COUNTS(fill, filled(call.stream(stream_in(p)), p.count))
template <class>
void capture(const Call&) {
  capture_began();
}

// `direction`: of calls that do not name it.
template <class P, int direction = -1>
void copy(const Call& call) {
  const auto& p = call.params<P>();
  int way = direction;
  if constexpr (requires { p.kind; }) way = p.kind;
  copied(call.stream(stream_in(p)), way, bytes_in(p), !k_has_stream<P>);
}
template <class P, int width>
void driver_fill(const Call& call) {
  const auto& p = call.params<P>();
  filled(call.stream(p.hStream), p.N * width);
}

void device_wait(const Call&) { waited_for_device(); }

struct Known {
  uint32_t id;
  void (*count)(const Call& call);
  bool per_thread;
  bool polls;  // and so answers with other results than success
};
template <class P>
constexpr Known known_call(uint32_t id, void (*count)(const Call& call), bool per_thread) {
  return {id, count, per_thread, count == poll<P>};
}

// A call by its name, and for per-thread default streams by its variant's too; what counts it, and
// more of that one's template arguments.
#define WEIR_CALL(number, name, per_thread, count, ...)                                      \
  known_call<name##_params>(CUPTI_##number, count<name##_params __VA_OPT__(, ) __VA_ARGS__>, \
                            per_thread)
#define WEIR_R(name, ...) WEIR_CALL(RUNTIME_TRACE_CBID_##name, name, false, __VA_ARGS__)
#define WEIR_R2(name, variant, ...) \
  WEIR_R(name, __VA_ARGS__), WEIR_CALL(RUNTIME_TRACE_CBID_##variant, name, true, __VA_ARGS__)
#define WEIR_D(name, ...) WEIR_CALL(DRIVER_TRACE_CBID_##name, name, false, __VA_ARGS__)
#define WEIR_D2(name, ...) \
  WEIR_D(name, __VA_ARGS__), WEIR_CALL(DRIVER_TRACE_CBID_##name##_ptsz, name, true, __VA_ARGS__)

constexpr Known k_runtime[] = {
    WEIR_R2(cudaLaunchKernel_v7000, cudaLaunchKernel_ptsz_v7000, launch),
    WEIR_R2(cudaLaunchCooperativeKernel_v9000, cudaLaunchCooperativeKernel_ptsz_v9000, launch),
    WEIR_R2(cudaLaunchKernelExC_v11060, cudaLaunchKernelExC_ptsz_v11060, launch),
    WEIR_R2(cudaGraphLaunch_v10000, cudaGraphLaunch_ptsz_v10000, graph_launch),
    WEIR_R(cudaGraphInstantiate_v12000, instantiate),
    WEIR_R(cudaGraphInstantiateWithFlags_v11040, instantiate),
    WEIR_R(cudaGraphExecUpdate_v10020, graph_update),
    WEIR_R(cudaGraphExecDestroy_v10000, graph_end),
    WEIR_R2(cudaStreamBeginCapture_v10000, cudaStreamBeginCapture_ptsz_v10000, capture),
    WEIR_R2(cudaMemcpy_v3020, cudaMemcpy_ptds_v7000, copy),
    WEIR_R2(cudaMemcpyAsync_v3020, cudaMemcpyAsync_ptsz_v7000, copy),
    WEIR_R(cudaMemcpy2D_v3020, copy),
    WEIR_R2(cudaMemcpy2DAsync_v3020, cudaMemcpy2DAsync_ptsz_v7000, copy),
    WEIR_R(cudaMemcpyPeerAsync_v4000, copy, k_within),
    WEIR_R(cudaMemset_v3020, fill),
    WEIR_R2(cudaMemsetAsync_v3020, cudaMemsetAsync_ptsz_v7000, fill),
    {CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020, device_wait, false, false},
    WEIR_R2(cudaStreamSynchronize_v3020, cudaStreamSynchronize_ptsz_v7000, wait),
    WEIR_R(cudaEventSynchronize_v3020, wait),
    WEIR_R2(cudaStreamQuery_v3020, cudaStreamQuery_ptsz_v7000, poll),
    WEIR_R(cudaEventQuery_v3020, poll),
    WEIR_R2(cudaEventRecord_v3020, cudaEventRecord_ptsz_v7000, record),
    WEIR_R(cudaEventRecordWithFlags_v11010, record),
    WEIR_R2(cudaStreamWaitEvent_v3020, cudaStreamWaitEvent_ptsz_v7000, stream_waits),
    WEIR_R(cudaStreamDestroy_v5050, stream_end),
};

constexpr Known k_driver[] = {
    WEIR_D2(cuLaunchKernel, launch),
    WEIR_D2(cuLaunchCooperativeKernel, launch),
    WEIR_D2(cuLaunchKernelEx, launch),
    WEIR_D2(cuGraphLaunch, graph_launch),
    WEIR_D(cuGraphInstantiateWithFlags, instantiate),
    WEIR_D(cuGraphInstantiateWithParams, instantiate),
    WEIR_D(cuGraphExecUpdate_v2, graph_update),
    WEIR_D(cuGraphExecDestroy, graph_end),
    WEIR_D2(cuStreamBeginCapture_v2, capture),
    WEIR_D(cuMemcpyHtoD_v2, copy, k_to_device),
    WEIR_D(cuMemcpyDtoH_v2, copy, k_to_host),
    WEIR_D(cuMemcpyDtoD_v2, copy, k_within),
    WEIR_D2(cuMemcpyHtoDAsync_v2, copy, k_to_device),
    WEIR_D2(cuMemcpyDtoHAsync_v2, copy, k_to_host),
    WEIR_D2(cuMemcpyDtoDAsync_v2, copy, k_within),
    WEIR_D2(cuMemcpyAsync, copy),
    WEIR_D(cuMemsetD8Async, driver_fill, 1),
    WEIR_D(cuMemsetD32Async, driver_fill, 4),
    {CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, device_wait, false, false},
    WEIR_D2(cuStreamSynchronize, wait),
    WEIR_D(cuEventSynchronize, wait),
    WEIR_D2(cuStreamQuery, poll),
    WEIR_D(cuEventQuery, poll),
    WEIR_D2(cuEventRecord, record),
    WEIR_D2(cuStreamWaitEvent, stream_waits),
};

constexpr uint32_t k_most_ids = 2048;  // more than either API has
const Known* g_runtime[k_most_ids];
const Known* g_driver_calls[k_most_ids];

// initial-exec: read in two instructions, and no part of the C library that could allocate.
__thread int t_depth __attribute__((tls_model("initial-exec")));

void CUPTIAPI called_back(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          const void* untyped) {
  const auto* data = static_cast<const CUpti_CallbackData*>(untyped);
  const Known** by_id = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? g_runtime : g_driver_calls;
  const Known* known = id < k_most_ids ? by_id[id] : nullptr;
  if (known == nullptr) return;
  if (data->callbackSite == CUPTI_API_ENTER) {
    ++t_depth;
    return;
  }
  if (--t_depth != 0) return;
  const int result = data->functionReturnValue == nullptr
                         ? 0
                         : *static_cast<const int*>(data->functionReturnValue);
  if (result != k_done && !known->polls) return;
  ++t_depth;  // what is asked of the driver meanwhile is not the program's doing
  known->count({data, result, known->per_thread});
  --t_depth;
}

// --- how calls come here: the driver loads what CUDA_INJECTION64_PATH names and calls
// InitializeInjection before the program's first call. CUPTI then calls back round each call that
// is counted.

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

template <size_t count>
bool enable_all(const Known (&list)[count], const Known** by_id, CUpti_CallbackDomain domain) {
  bool any = false;
  for (const Known& known : list) {
    if (known.id >= k_most_ids) continue;
    by_id[known.id] = &known;
    any = g_enable(1, g_subscriber, domain, known.id) == CUPTI_SUCCESS || any;
  }
  return any;
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
  const bool runtime = enable_all(k_runtime, g_runtime, CUPTI_CB_DOMAIN_RUNTIME_API);
  const bool driver = enable_all(k_driver, g_driver_calls, CUPTI_CB_DOMAIN_DRIVER_API);
  return driver || runtime ? nullptr : "CUPTI offers none of the calls";
}

}  // namespace
}  // namespace weir_probe::cupti

// Always answers that all is well: the program shall go on.
WEIR_EXPORTED int InitializeInjection() {
  static bool begun;
  if (__atomic_exchange_n(&begun, true, __ATOMIC_ACQ_REL)) return 1;
  const char* problem = weir_probe::cupti::begin();
  if (problem == nullptr) return 1;
  weir_probe::complain(weir_probe::streams::k_probe_name, problem, "", 0);
  // Said in the file too: nothing counted is not a count of nothing.
  weir_probe::streams::ensure_file();
  weir_probe::set_flag(&weir_probe::streams::g.file, WEIR_PROBE_BLOCKED);
  return 1;
}
