// Which calls of the runtime and the driver are counted, and how.
//
// A runtime's call may make the driver's: both are watched, and the outermost counts.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include "gate/probes/inject/cuda/cuda.h"
#include "gate/probes/inject/streams/streams.h"
#include "gate/probes/inject/writer/old_symbols.h"

namespace weir_probe::cuda {
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
  const void* function = nullptr;
  if constexpr (requires { p.func; }) {
    function = p.func;
  } else {
    function = p.f;
  }
  const char* name = call.data->symbolName;
  if constexpr (requires { p.config; }) {
    launched(call.stream(stream_in(*p.config)), {function, name, sizes_in(*p.config)});
  } else {
    launched(call.stream(stream_in(p)), {function, name, sizes_in(p)});
  }
}
template <class P>
void graph_launch(const Call& call) {
  const auto& p = call.params<P>();
  if constexpr (requires { p.graphExec; }) {
    launched_graph(call.stream(p.stream), p.graphExec);
  } else {
    launched_graph(call.stream(p.hStream), p.hGraph);
  }
}
template <class P>
void instantiate(const Call& call) {
  const auto& p = call.params<P>();
  if constexpr (requires { p.pGraphExec; }) {
    graph_was_made(*p.pGraphExec, p.graph);
  } else {
    graph_was_made(*p.phGraphExec, p.hGraph);
  }
}
template <class P>
void graph_update(const Call& call) {
  const auto& p = call.params<P>();
  graph_was_made(p.hGraphExec, p.hGraph);
}
void runtime_graph_end(const Call& call) {
  graph_ended(call.params<cudaGraphExecDestroy_v10000_params>().graphExec);
}
void driver_graph_end(const Call& call) {
  graph_ended(call.params<cuGraphExecDestroy_params>().hGraphExec);
}
void capture(const Call&) { capture_began(); }

// `direction`: of calls that do not name it.
template <class P, int direction = -1>
void copy(const Call& call) {
  const auto& p = call.params<P>();
  int way = direction;
  if constexpr (requires { p.kind; }) way = p.kind;
  copied(call.stream(stream_in(p)), way, bytes_in(p), !k_has_stream<P>);
}
template <class P>
void fill(const Call& call) {
  const auto& p = call.params<P>();
  filled(call.stream(stream_in(p)), p.count);
}
template <class P, int width>
void driver_fill(const Call& call) {
  const auto& p = call.params<P>();
  filled(call.stream(p.hStream), p.N * width);
}

template <class P>
void wait(const Call& call) {
  waited(awaited(call, call.params<P>()));
}
void device_wait(const Call&) { waited_for_device(); }
template <class P>
void poll(const Call& call) {
  polled(awaited(call, call.params<P>()), call.result);
}
template <class P>
void record(const Call& call) {
  const auto& p = call.params<P>();
  if constexpr (requires { p.event; }) {
    recorded(p.event, call.stream(p.stream));
  } else {
    recorded(p.hEvent, call.stream(p.hStream));
  }
}
template <class P>
void stream_waits(const Call& call) {
  waits_for_event(call.stream(stream_in(call.params<P>())));
}
void runtime_stream_end(const Call& call) {
  stream_ended(call.params<cudaStreamDestroy_v5050_params>().stream);
}

enum class When { succeeded, always };  // polls answer with other results than success
struct Known {
  uint32_t id;
  void (*count)(const Call& call);
  bool per_thread = false;
  When when = When::succeeded;
};

#define R(name) CUPTI_RUNTIME_TRACE_CBID_##name
#define D(name) CUPTI_DRIVER_TRACE_CBID_##name

constexpr Known k_runtime[] = {
    {R(cudaLaunchKernel_v7000), launch<cudaLaunchKernel_v7000_params>},
    {R(cudaLaunchKernel_ptsz_v7000), launch<cudaLaunchKernel_v7000_params>, true},
    {R(cudaLaunchCooperativeKernel_v9000), launch<cudaLaunchCooperativeKernel_v9000_params>},
    {R(cudaLaunchCooperativeKernel_ptsz_v9000), launch<cudaLaunchCooperativeKernel_v9000_params>,
     true},
    {R(cudaLaunchKernelExC_v11060), launch<cudaLaunchKernelExC_v11060_params>},
    {R(cudaLaunchKernelExC_ptsz_v11060), launch<cudaLaunchKernelExC_v11060_params>, true},
    {R(cudaGraphLaunch_v10000), graph_launch<cudaGraphLaunch_v10000_params>},
    {R(cudaGraphLaunch_ptsz_v10000), graph_launch<cudaGraphLaunch_v10000_params>, true},
    {R(cudaGraphInstantiate_v12000), instantiate<cudaGraphInstantiate_v12000_params>},
    {R(cudaGraphInstantiateWithFlags_v11040),
     instantiate<cudaGraphInstantiateWithFlags_v11040_params>},
    {R(cudaGraphExecUpdate_v10020), graph_update<cudaGraphExecUpdate_v10020_params>},
    {R(cudaGraphExecDestroy_v10000), runtime_graph_end},
    {R(cudaStreamBeginCapture_v10000), capture},
    {R(cudaStreamBeginCapture_ptsz_v10000), capture},
    {R(cudaMemcpy_v3020), copy<cudaMemcpy_v3020_params>},
    {R(cudaMemcpy_ptds_v7000), copy<cudaMemcpy_v3020_params>, true},
    {R(cudaMemcpyAsync_v3020), copy<cudaMemcpyAsync_v3020_params>},
    {R(cudaMemcpyAsync_ptsz_v7000), copy<cudaMemcpyAsync_v3020_params>, true},
    {R(cudaMemcpy2D_v3020), copy<cudaMemcpy2D_v3020_params>},
    {R(cudaMemcpy2DAsync_v3020), copy<cudaMemcpy2DAsync_v3020_params>},
    {R(cudaMemcpy2DAsync_ptsz_v7000), copy<cudaMemcpy2DAsync_v3020_params>, true},
    {R(cudaMemcpyPeerAsync_v4000), copy<cudaMemcpyPeerAsync_v4000_params, k_within>},
    {R(cudaMemset_v3020), fill<cudaMemset_v3020_params>},
    {R(cudaMemsetAsync_v3020), fill<cudaMemsetAsync_v3020_params>},
    {R(cudaMemsetAsync_ptsz_v7000), fill<cudaMemsetAsync_v3020_params>, true},
    {R(cudaDeviceSynchronize_v3020), device_wait},
    {R(cudaStreamSynchronize_v3020), wait<cudaStreamSynchronize_v3020_params>},
    {R(cudaStreamSynchronize_ptsz_v7000), wait<cudaStreamSynchronize_v3020_params>, true},
    {R(cudaEventSynchronize_v3020), wait<cudaEventSynchronize_v3020_params>},
    {R(cudaStreamQuery_v3020), poll<cudaStreamQuery_v3020_params>, false, When::always},
    {R(cudaStreamQuery_ptsz_v7000), poll<cudaStreamQuery_v3020_params>, true, When::always},
    {R(cudaEventQuery_v3020), poll<cudaEventQuery_v3020_params>, false, When::always},
    {R(cudaEventRecord_v3020), record<cudaEventRecord_v3020_params>},
    {R(cudaEventRecord_ptsz_v7000), record<cudaEventRecord_v3020_params>, true},
    {R(cudaEventRecordWithFlags_v11010), record<cudaEventRecordWithFlags_v11010_params>},
    {R(cudaStreamWaitEvent_v3020), stream_waits<cudaStreamWaitEvent_v3020_params>},
    {R(cudaStreamWaitEvent_ptsz_v7000), stream_waits<cudaStreamWaitEvent_v3020_params>, true},
    {R(cudaStreamDestroy_v5050), runtime_stream_end},
};

constexpr Known k_driver[] = {
    {D(cuLaunchKernel), launch<cuLaunchKernel_params>},
    {D(cuLaunchKernel_ptsz), launch<cuLaunchKernel_params>, true},
    {D(cuLaunchCooperativeKernel), launch<cuLaunchCooperativeKernel_params>},
    {D(cuLaunchCooperativeKernel_ptsz), launch<cuLaunchCooperativeKernel_params>, true},
    {D(cuLaunchKernelEx), launch<cuLaunchKernelEx_params>},
    {D(cuLaunchKernelEx_ptsz), launch<cuLaunchKernelEx_params>, true},
    {D(cuGraphLaunch), graph_launch<cuGraphLaunch_params>},
    {D(cuGraphLaunch_ptsz), graph_launch<cuGraphLaunch_params>, true},
    {D(cuGraphInstantiateWithFlags), instantiate<cuGraphInstantiateWithFlags_params>},
    {D(cuGraphInstantiateWithParams), instantiate<cuGraphInstantiateWithParams_params>},
    {D(cuGraphExecUpdate_v2), graph_update<cuGraphExecUpdate_v2_params>},
    {D(cuGraphExecDestroy), driver_graph_end},
    {D(cuStreamBeginCapture_v2), capture},
    {D(cuStreamBeginCapture_v2_ptsz), capture},
    {D(cuMemcpyHtoD_v2), copy<cuMemcpyHtoD_v2_params, k_to_device>},
    {D(cuMemcpyDtoH_v2), copy<cuMemcpyDtoH_v2_params, k_to_host>},
    {D(cuMemcpyDtoD_v2), copy<cuMemcpyDtoD_v2_params, k_within>},
    {D(cuMemcpyHtoDAsync_v2), copy<cuMemcpyHtoDAsync_v2_params, k_to_device>},
    {D(cuMemcpyHtoDAsync_v2_ptsz), copy<cuMemcpyHtoDAsync_v2_params, k_to_device>, true},
    {D(cuMemcpyDtoHAsync_v2), copy<cuMemcpyDtoHAsync_v2_params, k_to_host>},
    {D(cuMemcpyDtoHAsync_v2_ptsz), copy<cuMemcpyDtoHAsync_v2_params, k_to_host>, true},
    {D(cuMemcpyDtoDAsync_v2), copy<cuMemcpyDtoDAsync_v2_params, k_within>},
    {D(cuMemcpyDtoDAsync_v2_ptsz), copy<cuMemcpyDtoDAsync_v2_params, k_within>, true},
    {D(cuMemcpyAsync), copy<cuMemcpyAsync_params>},
    {D(cuMemcpyAsync_ptsz), copy<cuMemcpyAsync_params>, true},
    {D(cuMemsetD8Async), driver_fill<cuMemsetD8Async_params, 1>},
    {D(cuMemsetD32Async), driver_fill<cuMemsetD32Async_params, 4>},
    {D(cuCtxSynchronize), device_wait},
    {D(cuStreamSynchronize), wait<cuStreamSynchronize_params>},
    {D(cuStreamSynchronize_ptsz), wait<cuStreamSynchronize_params>, true},
    {D(cuEventSynchronize), wait<cuEventSynchronize_params>},
    {D(cuStreamQuery), poll<cuStreamQuery_params>, false, When::always},
    {D(cuStreamQuery_ptsz), poll<cuStreamQuery_params>, true, When::always},
    {D(cuEventQuery), poll<cuEventQuery_params>, false, When::always},
    {D(cuEventRecord), record<cuEventRecord_params>},
    {D(cuEventRecord_ptsz), record<cuEventRecord_params>, true},
    {D(cuStreamWaitEvent), stream_waits<cuStreamWaitEvent_params>},
    {D(cuStreamWaitEvent_ptsz), stream_waits<cuStreamWaitEvent_params>, true},
};

constexpr uint32_t k_most_ids = 2048;  // more than either API has
const Known* g_runtime[k_most_ids];
const Known* g_driver_calls[k_most_ids];

// initial-exec: read in two instructions, and no part of the C library that could allocate.
__thread int t_depth __attribute__((tls_model("initial-exec")));

void on_call(bool runtime_api, uint32_t id, const void* untyped) {
  const auto* data = static_cast<const CUpti_CallbackData*>(untyped);
  const Known* known = id < k_most_ids ? (runtime_api ? g_runtime : g_driver_calls)[id] : nullptr;
  if (known == nullptr) return;
  if (data->callbackSite == CUPTI_API_ENTER) {
    ++t_depth;
    return;
  }
  if (--t_depth != 0) return;
  const int result = data->functionReturnValue == nullptr
                         ? 0
                         : *static_cast<const int*>(data->functionReturnValue);
  if (result != k_done && known->when == When::succeeded) return;
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

void CUPTIAPI called_back(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          const void* data) {
  on_call(domain == CUPTI_CB_DOMAIN_RUNTIME_API, id, data);
}

bool enable(bool runtime_api, uint32_t id) {
  const auto domain = runtime_api ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
  return g_enable(1, g_subscriber, domain, id) == CUPTI_SUCCESS;
}

template <size_t count>
bool enable_all(const Known (&list)[count], const Known** by_id, bool runtime_api) {
  bool any = false;
  for (const Known& known : list) {
    if (known.id >= k_most_ids) continue;
    by_id[known.id] = &known;
    any = enable(runtime_api, known.id) || any;
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
  const bool runtime = enable_all(k_runtime, g_runtime, true);
  return enable_all(k_driver, g_driver_calls, false) || runtime ? nullptr
                                                                : "CUPTI offers none of the calls";
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
