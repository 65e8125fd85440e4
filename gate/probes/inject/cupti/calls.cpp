// Counts calls of CUDA's runtime and driver by CUPTI's callbacks.
//
// A call of the runtime may make calls of the driver: both are watched, and the outermost counts.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include "gate/probes/inject/cupti/cupti.h"
#include "gate/probes/inject/streams/streams.h"
#include "gate/probes/inject/writer/old_symbols.h"

namespace weir_probe::cupti {
namespace {

using namespace streams;

Size3 to_size3(const dim3& from) { return {from.x, from.y, from.z}; }

// A call that has returned.
struct Call {
  const CUpti_CallbackData* data;
  int result;
  bool per_thread;  // a variant for which a null stream means the thread's own

  template <class Params>
  [[nodiscard]] const Params& params() const {
    return *static_cast<const Params*>(data->functionParams);
  }
  [[nodiscard]] void* stream(void* handle) const {
    return handle == nullptr && per_thread ? reinterpret_cast<void*>(k_thread_stream) : handle;
  }
};

// The functions below read a parameter by its name in the call's struct, as the calls of runtime
// and driver name them differently. stream_param returns null if a call has no stream: such a copy
// waits.
template <class P>
void* stream_param(const P& p) {
  if constexpr (requires { p.stream; }) {
    return p.stream;
  } else if constexpr (requires { p.hStream; }) {
    return p.hStream;
  } else {
    return nullptr;
  }
}
// Defines a function that returns the member `a`, or `b` if there is none.
#define WEIR_EITHER(name, a, b)        \
  template <class P>                   \
  auto name(const P& p) {              \
    if constexpr (requires { p.a; }) { \
      return p.a;                      \
    } else {                           \
      return p.b;                      \
    }                                  \
  }
WEIR_EITHER(function_param, func, f)
WEIR_EITHER(graph_param, graph, hGraph)
WEIR_EITHER(event_param, event, hEvent)
WEIR_EITHER(launched_graph_param, graphExec, hGraph)
WEIR_EITHER(ended_graph_param, graphExec, hGraphExec)
WEIR_EITHER(new_graph_param, pGraphExec, phGraphExec)

template <class P>
constexpr bool k_has_stream = requires(P p) {
  p.stream;
}
|| requires(P p) { p.hStream; };
template <class P>
Stream* find_awaited_stream(const Call& call, const P& p) {
  if constexpr (requires { p.event; }) {
    return find_event_stream(p.event);
  } else if constexpr (requires { p.hEvent; }) {
    return find_event_stream(p.hEvent);
  } else {
    return find_stream(call.stream(stream_param(p)));
  }
}
template <class P>
uint64_t copy_bytes(const P& p) {
  if constexpr (requires { p.count; }) {
    return p.count;
  } else if constexpr (requires { p.ByteCount; }) {
    return p.ByteCount;
  } else {
    return p.width * p.height;
  }
}
template <class P>
weir_probe_launch launch_sizes_param(const P& p) {
  if constexpr (requires { p.sharedMem; }) {
    return launch_sizes(to_size3(p.gridDim), to_size3(p.blockDim), p.sharedMem);
  } else if constexpr (requires { p.dynamicSmemBytes; }) {
    return launch_sizes(to_size3(p.gridDim), to_size3(p.blockDim), p.dynamicSmemBytes);
  } else {
    return launch_sizes({p.gridDimX, p.gridDimY, p.gridDimZ},
                        {p.blockDimX, p.blockDimY, p.blockDimZ}, p.sharedMemBytes);
  }
}

// Counts a launch. Its grid and stream are parameters of the call, or members of `config`.
template <class P>
void launch(const Call& call) {
  const auto& p = call.params<P>();
  const auto launch_by = [&](const auto& config) {
    count_launch(call.stream(stream_param(config)),
                 {function_param(p), call.data->symbolName, launch_sizes_param(config)});
  };
  if constexpr (requires { p.config; }) {
    launch_by(*p.config);
  } else {
    launch_by(p);
  }
}
// Defines a function that counts a call with parameters `p`.
#define WEIR_COUNTS(name, ...)        \
  template <class P>                  \
  void name(const Call& call) {       \
    const auto& p = call.params<P>(); \
    __VA_ARGS__;                      \
  }
WEIR_COUNTS(graph_launch, count_graph_launch(call.stream(stream_param(p)), launched_graph_param(p)))
WEIR_COUNTS(instantiate, add_graph(*new_graph_param(p), graph_param(p)))
WEIR_COUNTS(graph_update, add_graph(p.hGraphExec, p.hGraph))
WEIR_COUNTS(graph_end, forget_graph(ended_graph_param(p)))
WEIR_COUNTS(stream_end, forget_stream(stream_param(p)))
WEIR_COUNTS(stream_waits, count_barrier(call.stream(stream_param(p))))
WEIR_COUNTS(record, note_event_record(event_param(p), call.stream(stream_param(p))))
WEIR_COUNTS(wait, count_wait(find_awaited_stream(call, p)))
WEIR_COUNTS(poll, count_poll(find_awaited_stream(call, p), call.result))
WEIR_COUNTS(fill, count_fill(call.stream(stream_param(p)), nullptr, p.count))
template <class>
void capture(const Call&) {
  note_capture();
}

// Counts a copy. `direction`: for calls that do not have it as a parameter.
template <class P, int direction = -1>
void copy(const Call& call) {
  const auto& p = call.params<P>();
  int actual_direction = direction;
  if constexpr (requires { p.kind; }) actual_direction = p.kind;
  count_copy(call.stream(stream_param(p)), {actual_direction, copy_bytes(p), nullptr, nullptr},
             !k_has_stream<P>);
}
template <class P, int width>
void driver_fill(const Call& call) {
  const auto& p = call.params<P>();
  count_fill(call.stream(p.hStream), nullptr, p.N * width);
}

void device_wait(const Call&) { count_device_wait(); }

// A call to watch, and the function that counts it.
struct CountedCall {
  uint32_t id;
  void (*count)(const Call& call);
  bool per_thread;
  bool polls;  // counts with other results than success as well
};
template <class P>
constexpr CountedCall counted_call(uint32_t id, void (*count)(const Call& call), bool per_thread) {
  return {id, count, per_thread, count == poll<P>};
}

// Entries for a call by its name, and in WEIR_R2 and WEIR_D2 for its variant with per-thread
// default streams: the function that counts it, and further template arguments of that function.
#define WEIR_CALL(number, name, per_thread, count, ...)                                        \
  counted_call<name##_params>(CUPTI_##number, count<name##_params __VA_OPT__(, ) __VA_ARGS__>, \
                              per_thread)
#define WEIR_R(name, ...) WEIR_CALL(RUNTIME_TRACE_CBID_##name, name, false, __VA_ARGS__)
#define WEIR_R2(name, variant, ...) \
  WEIR_R(name, __VA_ARGS__), WEIR_CALL(RUNTIME_TRACE_CBID_##variant, name, true, __VA_ARGS__)
#define WEIR_D(name, ...) WEIR_CALL(DRIVER_TRACE_CBID_##name, name, false, __VA_ARGS__)
#define WEIR_D2(name, ...) \
  WEIR_D(name, __VA_ARGS__), WEIR_CALL(DRIVER_TRACE_CBID_##name##_ptsz, name, true, __VA_ARGS__)

constexpr CountedCall k_runtime[] = {
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

constexpr CountedCall k_driver[] = {
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

constexpr uint32_t k_max_ids = 2048;  // more than either API has
const CountedCall* g_runtime[k_max_ids];
const CountedCall* g_driver_calls[k_max_ids];

// initial-exec: read in two instructions, and no part of the C library that could allocate.
__thread int t_depth __attribute__((tls_model("initial-exec")));

// Counts calls of the CUDA runtime and driver; CUPTI calls this at the begin and end of each. Only
// outermost calls that succeeded count, and polls, which fail until the work is done.
void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          const void* untyped) {
  const auto* data = static_cast<const CUpti_CallbackData*>(untyped);
  const CountedCall** calls_by_id =
      domain == CUPTI_CB_DOMAIN_RUNTIME_API ? g_runtime : g_driver_calls;
  const CountedCall* call = id < k_max_ids ? calls_by_id[id] : nullptr;
  if (call == nullptr) return;
  if (data->callbackSite == CUPTI_API_ENTER) {
    ++t_depth;
    return;
  }
  --t_depth;
  if (t_depth != 0) return;
  const int result = data->functionReturnValue == nullptr
                         ? 0
                         : *static_cast<const int*>(data->functionReturnValue);
  if (result != k_done && !call->polls) return;
  ++t_depth;  // calls that the probe makes of the driver do not count
  call->count({data, result, call->per_thread});
  --t_depth;
}

// --- start: the driver loads the library in CUDA_INJECTION64_PATH and calls InitializeInjection
// before the program's first call. CUPTI then calls on_callback around each watched call.

#define WEIR_TEXT_OF(x) #x
#define WEIR_TEXT(x) WEIR_TEXT_OF(x)

decltype(&cuptiSubscribe) g_subscribe;
decltype(&cuptiEnableCallback) g_enable;
CUpti_SubscriberHandle g_subscriber;

// Loads CUPTI, NVIDIA's profiling library, preferably of the toolkit that this was built with;
// null if there is none. Later versions are compatible.
void* find_cupti() {
  constexpr const char* k_names[] = {
      "libcupti.so." WEIR_TEXT(WEIR_CUDA_MAJOR),
      "libcupti.so",
      "/usr/local/cuda/lib64/libcupti.so",
      "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
  };
  for (const char* name : k_names) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

// Enables the callbacks of the calls in `list`. True if at least one could be.
template <size_t count>
bool enable_all(const CountedCall (&list)[count], const CountedCall** by_id,
                CUpti_CallbackDomain domain) {
  bool any_enabled = false;
  for (const CountedCall& call : list) {
    if (call.id >= k_max_ids) continue;
    by_id[call.id] = &call;
    any_enabled = g_enable(1, g_subscriber, domain, call.id) == CUPTI_SUCCESS || any_enabled;
  }
  return any_enabled;
}

// Starts to watch CUDA calls. Returns null, or an error text.
const char* begin() {
  void* cupti = find_cupti();
  if (cupti == nullptr) return "cannot load libcupti.so";
  g_subscribe = reinterpret_cast<decltype(g_subscribe)>(dlsym(cupti, "cuptiSubscribe"));
  g_enable = reinterpret_cast<decltype(g_enable)>(dlsym(cupti, "cuptiEnableCallback"));
  if (g_subscribe == nullptr || g_enable == nullptr) return "libcupti.so lacks functions";
  switch (g_subscribe(&g_subscriber, on_callback, nullptr)) {
    case CUPTI_SUCCESS:
      break;
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_MAX_LIMIT_REACHED:
      return "another profiler holds CUPTI";
    default:
      return "CUPTI saw no device";
  }
  const bool has_runtime_calls = enable_all(k_runtime, g_runtime, CUPTI_CB_DOMAIN_RUNTIME_API);
  const bool has_driver_calls = enable_all(k_driver, g_driver_calls, CUPTI_CB_DOMAIN_DRIVER_API);
  return has_driver_calls || has_runtime_calls ? nullptr : "CUPTI offers none of the calls";
}

}  // namespace
}  // namespace weir_probe::cupti

// Called by the driver. Always reports success, so that the program goes on.
WEIR_EXPORTED int InitializeInjection() {
  static bool begun;
  if (__atomic_exchange_n(&begun, true, __ATOMIC_ACQ_REL)) return 1;
  const char* problem = weir_probe::cupti::begin();
  if (problem == nullptr) return 1;
  weir_probe::report_not_counting(weir_probe::streams::k_probe_name, problem, "", 0);
  // The flag in the file keeps the empty counts from being taken for counts of 0.
  weir_probe::streams::ensure_file();
  weir_probe::set_flag(&weir_probe::streams::g.file, WEIR_PROBE_BLOCKED);
  return 1;
}
