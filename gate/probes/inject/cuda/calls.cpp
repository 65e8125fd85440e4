// Which calls of the runtime and the driver are counted, and how.
//
// A runtime's call may make the driver's: both are watched, and the outermost counts.
#include <cuda_runtime_api.h>
#include <cupti.h>

#include "gate/probes/inject/cuda/cuda.h"
#include "gate/probes/inject/streams/streams.h"

namespace weir_probe::cuda {
namespace {

using namespace streams;

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
  void launch(const void* function, Size3 grid, Size3 block, size_t shared, void* on) const {
    launched(stream(on), {function, data->symbolName, sizes_of(grid, block, shared)});
  }
};

Size3 size(const dim3& from) { return {from.x, from.y, from.z}; }

// Most parameters have the same names in all variants of a call.
template <class P>
void runtime_launch(const Call& call) {
  const auto& p = call.params<P>();
  call.launch(p.func, size(p.gridDim), size(p.blockDim), p.sharedMem, p.stream);
}
void runtime_launch_config(const Call& call) {
  const auto& p = call.params<cudaLaunchKernelExC_v11060_params>();
  call.launch(p.func, size(p.config->gridDim), size(p.config->blockDim), p.config->dynamicSmemBytes,
              p.config->stream);
}
template <class P>
void driver_launch(const Call& call) {
  const auto& p = call.params<P>();
  call.launch(p.f, {p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ},
              p.sharedMemBytes, p.hStream);
}
void driver_launch_config(const Call& call) {
  const auto& p = call.params<cuLaunchKernelEx_params>();
  const CUlaunchConfig& c = *p.config;
  call.launch(p.f, {c.gridDimX, c.gridDimY, c.gridDimZ}, {c.blockDimX, c.blockDimY, c.blockDimZ},
              c.sharedMemBytes, c.hStream);
}

void runtime_graph_launch(const Call& call) {
  const auto& p = call.params<cudaGraphLaunch_v10000_params>();
  launched_graph(call.stream(p.stream), p.graphExec);
}
void driver_graph_launch(const Call& call) {
  const auto& p = call.params<cuGraphLaunch_params>();
  launched_graph(call.stream(p.hStream), p.hGraph);
}
template <class P>
void runtime_instantiate(const Call& call) {
  const auto& p = call.params<P>();
  graph_was_made(*p.pGraphExec, p.graph);
}
template <class P>
void driver_instantiate(const Call& call) {
  const auto& p = call.params<P>();
  graph_was_made(*p.phGraphExec, p.hGraph);
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

template <class P>
void runtime_copy(const Call& call) {
  const auto& p = call.params<P>();
  if constexpr (requires { p.stream; }) {
    copied(call.stream(p.stream), p.kind, p.count, false);
  } else {
    copied(call.stream(nullptr), p.kind, p.count, true);
  }
}
template <class P>
void runtime_copy_2d(const Call& call) {
  const auto& p = call.params<P>();
  if constexpr (requires { p.stream; }) {
    copied(call.stream(p.stream), p.kind, p.width * p.height, false);
  } else {
    copied(call.stream(nullptr), p.kind, p.width * p.height, true);
  }
}
void runtime_copy_peer(const Call& call) {
  const auto& p = call.params<cudaMemcpyPeerAsync_v4000_params>();
  copied(call.stream(p.stream), k_within, p.count, false);
}
template <class P, int direction>
void driver_copy(const Call& call) {
  const auto& p = call.params<P>();
  if constexpr (requires { p.hStream; }) {
    copied(call.stream(p.hStream), direction, p.ByteCount, false);
  } else {
    copied(call.stream(nullptr), direction, p.ByteCount, true);
  }
}
template <class P>
void runtime_fill(const Call& call) {
  const auto& p = call.params<P>();
  if constexpr (requires { p.stream; }) {
    filled(call.stream(p.stream), p.count);
  } else {
    filled(call.stream(nullptr), p.count);
  }
}
template <class P, int width>
void driver_fill(const Call& call) {
  const auto& p = call.params<P>();
  filled(call.stream(p.hStream), p.N * width);
}

template <class P>
void runtime_wait(const Call& call) {
  waited(stream_of(call.stream(call.params<P>().stream)));
}
template <class P>
void driver_wait(const Call& call) {
  waited(stream_of(call.stream(call.params<P>().hStream)));
}
void device_wait(const Call&) { waited_for_device(); }
void runtime_event_wait(const Call& call) {
  waited(stream_of_event(call.params<cudaEventSynchronize_v3020_params>().event));
}
void driver_event_wait(const Call& call) {
  waited(stream_of_event(call.params<cuEventSynchronize_params>().hEvent));
}
void runtime_stream_poll(const Call& call) {
  polled(stream_of(call.stream(call.params<cudaStreamQuery_v3020_params>().stream)), call.result);
}
void driver_stream_poll(const Call& call) {
  polled(stream_of(call.stream(call.params<cuStreamQuery_params>().hStream)), call.result);
}
void runtime_event_poll(const Call& call) {
  polled(stream_of_event(call.params<cudaEventQuery_v3020_params>().event), call.result);
}
void driver_event_poll(const Call& call) {
  polled(stream_of_event(call.params<cuEventQuery_params>().hEvent), call.result);
}
template <class P>
void runtime_record(const Call& call) {
  const auto& p = call.params<P>();
  recorded(p.event, call.stream(p.stream));
}
template <class P>
void driver_record(const Call& call) {
  const auto& p = call.params<P>();
  recorded(p.hEvent, call.stream(p.hStream));
}
void runtime_stream_waits(const Call& call) {
  waits_for_event(call.stream(call.params<cudaStreamWaitEvent_v3020_params>().stream));
}
void driver_stream_waits(const Call& call) {
  waits_for_event(call.stream(call.params<cuStreamWaitEvent_params>().hStream));
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
    {R(cudaLaunchKernel_v7000), runtime_launch<cudaLaunchKernel_v7000_params>},
    {R(cudaLaunchKernel_ptsz_v7000), runtime_launch<cudaLaunchKernel_v7000_params>, true},
    {R(cudaLaunchCooperativeKernel_v9000),
     runtime_launch<cudaLaunchCooperativeKernel_v9000_params>},
    {R(cudaLaunchCooperativeKernel_ptsz_v9000),
     runtime_launch<cudaLaunchCooperativeKernel_v9000_params>, true},
    {R(cudaLaunchKernelExC_v11060), runtime_launch_config},
    {R(cudaLaunchKernelExC_ptsz_v11060), runtime_launch_config, true},
    {R(cudaGraphLaunch_v10000), runtime_graph_launch},
    {R(cudaGraphLaunch_ptsz_v10000), runtime_graph_launch, true},
    {R(cudaGraphInstantiate_v12000), runtime_instantiate<cudaGraphInstantiate_v12000_params>},
    {R(cudaGraphInstantiateWithFlags_v11040),
     runtime_instantiate<cudaGraphInstantiateWithFlags_v11040_params>},
    {R(cudaGraphExecUpdate_v10020), graph_update<cudaGraphExecUpdate_v10020_params>},
    {R(cudaGraphExecDestroy_v10000), runtime_graph_end},
    {R(cudaStreamBeginCapture_v10000), capture},
    {R(cudaStreamBeginCapture_ptsz_v10000), capture},
    {R(cudaMemcpy_v3020), runtime_copy<cudaMemcpy_v3020_params>},
    {R(cudaMemcpy_ptds_v7000), runtime_copy<cudaMemcpy_v3020_params>, true},
    {R(cudaMemcpyAsync_v3020), runtime_copy<cudaMemcpyAsync_v3020_params>},
    {R(cudaMemcpyAsync_ptsz_v7000), runtime_copy<cudaMemcpyAsync_v3020_params>, true},
    {R(cudaMemcpy2D_v3020), runtime_copy_2d<cudaMemcpy2D_v3020_params>},
    {R(cudaMemcpy2DAsync_v3020), runtime_copy_2d<cudaMemcpy2DAsync_v3020_params>},
    {R(cudaMemcpy2DAsync_ptsz_v7000), runtime_copy_2d<cudaMemcpy2DAsync_v3020_params>, true},
    {R(cudaMemcpyPeerAsync_v4000), runtime_copy_peer},
    {R(cudaMemset_v3020), runtime_fill<cudaMemset_v3020_params>},
    {R(cudaMemsetAsync_v3020), runtime_fill<cudaMemsetAsync_v3020_params>},
    {R(cudaMemsetAsync_ptsz_v7000), runtime_fill<cudaMemsetAsync_v3020_params>, true},
    {R(cudaDeviceSynchronize_v3020), device_wait},
    {R(cudaStreamSynchronize_v3020), runtime_wait<cudaStreamSynchronize_v3020_params>},
    {R(cudaStreamSynchronize_ptsz_v7000), runtime_wait<cudaStreamSynchronize_v3020_params>, true},
    {R(cudaEventSynchronize_v3020), runtime_event_wait},
    {R(cudaStreamQuery_v3020), runtime_stream_poll, false, When::always},
    {R(cudaStreamQuery_ptsz_v7000), runtime_stream_poll, true, When::always},
    {R(cudaEventQuery_v3020), runtime_event_poll, false, When::always},
    {R(cudaEventRecord_v3020), runtime_record<cudaEventRecord_v3020_params>},
    {R(cudaEventRecord_ptsz_v7000), runtime_record<cudaEventRecord_v3020_params>, true},
    {R(cudaEventRecordWithFlags_v11010), runtime_record<cudaEventRecordWithFlags_v11010_params>},
    {R(cudaStreamWaitEvent_v3020), runtime_stream_waits},
    {R(cudaStreamWaitEvent_ptsz_v7000), runtime_stream_waits, true},
    {R(cudaStreamDestroy_v5050), runtime_stream_end},
};

constexpr Known k_driver[] = {
    {D(cuLaunchKernel), driver_launch<cuLaunchKernel_params>},
    {D(cuLaunchKernel_ptsz), driver_launch<cuLaunchKernel_params>, true},
    {D(cuLaunchCooperativeKernel), driver_launch<cuLaunchCooperativeKernel_params>},
    {D(cuLaunchCooperativeKernel_ptsz), driver_launch<cuLaunchCooperativeKernel_params>, true},
    {D(cuLaunchKernelEx), driver_launch_config},
    {D(cuLaunchKernelEx_ptsz), driver_launch_config, true},
    {D(cuGraphLaunch), driver_graph_launch},
    {D(cuGraphLaunch_ptsz), driver_graph_launch, true},
    {D(cuGraphInstantiateWithFlags), driver_instantiate<cuGraphInstantiateWithFlags_params>},
    {D(cuGraphInstantiateWithParams), driver_instantiate<cuGraphInstantiateWithParams_params>},
    {D(cuGraphExecUpdate_v2), graph_update<cuGraphExecUpdate_v2_params>},
    {D(cuGraphExecDestroy), driver_graph_end},
    {D(cuStreamBeginCapture_v2), capture},
    {D(cuStreamBeginCapture_v2_ptsz), capture},
    {D(cuMemcpyHtoD_v2), driver_copy<cuMemcpyHtoD_v2_params, k_to_device>},
    {D(cuMemcpyDtoH_v2), driver_copy<cuMemcpyDtoH_v2_params, k_to_host>},
    {D(cuMemcpyDtoD_v2), driver_copy<cuMemcpyDtoD_v2_params, k_within>},
    {D(cuMemcpyHtoDAsync_v2), driver_copy<cuMemcpyHtoDAsync_v2_params, k_to_device>},
    {D(cuMemcpyHtoDAsync_v2_ptsz), driver_copy<cuMemcpyHtoDAsync_v2_params, k_to_device>, true},
    {D(cuMemcpyDtoHAsync_v2), driver_copy<cuMemcpyDtoHAsync_v2_params, k_to_host>},
    {D(cuMemcpyDtoHAsync_v2_ptsz), driver_copy<cuMemcpyDtoHAsync_v2_params, k_to_host>, true},
    {D(cuMemcpyDtoDAsync_v2), driver_copy<cuMemcpyDtoDAsync_v2_params, k_within>},
    {D(cuMemcpyDtoDAsync_v2_ptsz), driver_copy<cuMemcpyDtoDAsync_v2_params, k_within>, true},
    {D(cuMemcpyAsync), driver_copy<cuMemcpyAsync_params, -1>},
    {D(cuMemcpyAsync_ptsz), driver_copy<cuMemcpyAsync_params, -1>, true},
    {D(cuMemsetD8Async), driver_fill<cuMemsetD8Async_params, 1>},
    {D(cuMemsetD32Async), driver_fill<cuMemsetD32Async_params, 4>},
    {D(cuCtxSynchronize), device_wait},
    {D(cuStreamSynchronize), driver_wait<cuStreamSynchronize_params>},
    {D(cuStreamSynchronize_ptsz), driver_wait<cuStreamSynchronize_params>, true},
    {D(cuEventSynchronize), driver_event_wait},
    {D(cuStreamQuery), driver_stream_poll, false, When::always},
    {D(cuStreamQuery_ptsz), driver_stream_poll, true, When::always},
    {D(cuEventQuery), driver_event_poll, false, When::always},
    {D(cuEventRecord), driver_record<cuEventRecord_params>},
    {D(cuEventRecord_ptsz), driver_record<cuEventRecord_params>, true},
    {D(cuStreamWaitEvent), driver_stream_waits},
    {D(cuStreamWaitEvent_ptsz), driver_stream_waits, true},
};

constexpr uint32_t k_most_ids = 2048;  // more than either API has
const Known* g_runtime[k_most_ids];
const Known* g_driver_calls[k_most_ids];

// initial-exec: read in two instructions, and no part of the C library that could allocate.
__thread int t_depth __attribute__((tls_model("initial-exec")));

template <size_t count>
bool enable_all(const Known (&list)[count], const Known** by_id, bool runtime_api, Enable enable) {
  bool any = false;
  for (const Known& known : list) {
    if (known.id >= k_most_ids) continue;
    by_id[known.id] = &known;
    any = enable(runtime_api, known.id) || any;
  }
  return any;
}

}  // namespace

bool enable_calls(Enable enable) {
  const bool runtime = enable_all(k_runtime, g_runtime, true, enable);
  return enable_all(k_driver, g_driver_calls, false, enable) || runtime;
}

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

}  // namespace weir_probe::cuda
