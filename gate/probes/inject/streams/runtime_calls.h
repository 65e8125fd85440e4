// Intercepts the calls that CUDA and HIP have in common, each by its name without the prefix: cudaX
// and hipX. Not a normal header: an API's interpose.cpp includes it once, after its definitions of:
//   WEIR_ALONE       the call of this name; WEIR_DRIVER: one that is the driver's in CUDA (cuX)
//   WEIR_PTSZ, WEIR_PTDS, WEIR_PTSZ_SPT, WEIR_PTDS_SPT
//                    the call, and its variant for per-thread default streams in CUDA (cudaX_ptsz,
//                    cudaX_ptds) and in HIP (hipX_spt)
//   WEIR_REGISTER_FUNCTION
//                    the function by which compiled code registers its kernels
//   WEIR_LIBRARIES, WEIR_LIBRARY_PRODUCTS
//                    lists of the functions that give handles of libraries a stream and that end
//                    them, and of those that compute
//   api::            functions and types where the two APIs differ

// --- launches
WEIR_COUNTED(WEIR_PTSZ_SPT, LaunchKernel,
             (const void* f, Size3 grid, Size3 block, void** args, size_t shared, void* stream),
             (f, grid, block, args, shared, stream),
             count_launch(actual_stream(stream), f, grid, block, shared))
WEIR_COUNTED(WEIR_PTSZ_SPT, LaunchCooperativeKernel,
             (const void* f, Size3 grid, Size3 block, void** args, api::CooperativeShared shared,
              void* stream),
             (f, grid, block, args, shared, stream),
             count_launch(actual_stream(stream), f, grid, block, shared))
WEIR_COUNTED(WEIR_PTSZ, LaunchKernelExC, (const LaunchConfig* config, const void* f, void** args),
             (config, f, args), api::count_launch(actual_stream(config->stream), f, *config))

// --- graphs
WEIR_COUNTED(WEIR_PTSZ_SPT, StreamBeginCapture, (void* stream, int mode), (stream, mode),
             note_capture(actual_stream(stream), nullptr))
WEIR_COUNTED(WEIR_PTSZ, StreamBeginCaptureToGraph,
             (void* stream, void* graph, const void* nodes, const void* edges, size_t number,
              int mode),
             (stream, graph, nodes, edges, number, mode),
             note_capture(actual_stream(stream), graph))
WEIR_ANSWERED(WEIR_PTSZ_SPT, StreamEndCapture, (void* stream, void** graph), (stream, graph),
              end_capture(actual_stream(stream), result == k_done ? *graph : nullptr))
WEIR_ENDED(WEIR_ALONE, GraphDestroy, (void* graph), (graph), forget_captured_graph(graph))
// Five and four words are passed on, whatever they mean: HIP has as many as CUDA, and CUDA 11 as
// many as later versions.
WEIR_COUNTED(WEIR_ALONE, GraphInstantiate, (void** exec, void* graph, size_t a, size_t b, size_t c),
             (exec, graph, a, b, c), note_instantiation(*exec, graph))
WEIR_COUNTED(WEIR_ALONE, GraphInstantiateWithFlags,
             (void** exec, void* graph, unsigned long long flags), (exec, graph, flags),
             note_instantiation(*exec, graph))
WEIR_COUNTED(WEIR_PTSZ, GraphInstantiateWithParams, (void** exec, void* graph, void* params),
             (exec, graph, params), note_instantiation(*exec, graph))
WEIR_COUNTED(WEIR_ALONE, GraphExecUpdate, (void* exec, void* graph, size_t a, size_t b),
             (exec, graph, a, b), add_executable(exec, graph))
WEIR_COUNTED(WEIR_PTSZ_SPT, GraphLaunch, (void* exec, void* stream), (exec, stream),
             count_graph_launch(actual_stream(stream), exec))
WEIR_ENDED(WEIR_ALONE, GraphExecDestroy, (void* exec), (exec), forget_graph(exec))

// --- waits
WEIR_COUNTED(WEIR_PTSZ_SPT, StreamSynchronize, (void* stream), (stream),
             count_wait(find_stream(actual_stream(stream))))
WEIR_COUNTED(WEIR_ALONE, EventSynchronize, (void* event), (event),
             count_wait(find_event_stream(event)))
WEIR_COUNTED(WEIR_ALONE, DeviceSynchronize, (), (), count_device_wait())
#define WEIR_POLLED(variants, name, handle, on)                                       \
  variants(name, (void* handle), (handle), , result == k_ok || result == k_not_ready, \
           count_poll(on, result))
WEIR_POLLED(WEIR_PTSZ_SPT, StreamQuery, stream, find_stream(actual_stream(stream)))
WEIR_POLLED(WEIR_ALONE, EventQuery, event, find_event_stream(event))
WEIR_ENDED(WEIR_ALONE, StreamDestroy, (void* stream), (stream), forget_stream(stream))
WEIR_ENDED(WEIR_ALONE, EventDestroy, (void* event), (event), g.events.remove(address_key(event)))
WEIR_COUNTED(WEIR_PTSZ_SPT, EventRecord, (void* event, void* stream), (event, stream),
             note_event_record(event, actual_stream(stream)))
WEIR_COUNTED(WEIR_PTSZ, EventRecordWithFlags, (void* event, void* stream, unsigned flags),
             (event, stream, flags), note_event_record(event, actual_stream(stream)))
// A dependency between streams: the nearest that they have to a barrier.
WEIR_COUNTED(WEIR_PTSZ_SPT, StreamWaitEvent, (void* stream, void* event, unsigned flags),
             (stream, event, flags), count_barrier(actual_stream(stream)))

// --- copies and fills
WEIR_COUNTED(WEIR_PTDS_SPT, Memcpy, (void* to, const void* from, size_t bytes, int direction),
             (to, from, bytes, direction),
             count_copy(actual_stream(nullptr),
                        {find_direction(direction, to, from), bytes, to, from},
                        /*waits=*/true))
WEIR_COUNTED(WEIR_PTSZ_SPT, MemcpyAsync,
             (void* to, const void* from, size_t bytes, int direction, void* stream),
             (to, from, bytes, direction, stream),
             count_copy(actual_stream(stream),
                        {find_direction(direction, to, from), bytes, to, from},
                        /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemcpyPeerAsync,
             (void* to, int there, const void* from, int here, size_t bytes, void* stream),
             (to, there, from, here, bytes, stream),
             count_copy(stream, {k_within, bytes, to, from}, /*waits=*/false))
WEIR_COUNTED(WEIR_PTDS_SPT, Memcpy2D,
             (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
              size_t height, int direction),
             (to, to_pitch, from, from_pitch, width, height, direction),
             count_copy(actual_stream(nullptr),
                        {find_direction(direction, to, from), width* height, to, from},
                        /*waits=*/true))
WEIR_COUNTED(WEIR_PTSZ_SPT, Memcpy2DAsync,
             (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
              size_t height, int direction, void* stream),
             (to, to_pitch, from, from_pitch, width, height, direction, stream),
             count_copy(actual_stream(stream),
                        {find_direction(direction, to, from), width* height, to, from},
                        /*waits=*/false))
WEIR_COUNTED(WEIR_PTDS_SPT, Memset, (void* to, int value, size_t bytes), (to, value, bytes),
             count_fill(actual_stream(nullptr), to, bytes))
WEIR_COUNTED(WEIR_PTSZ_SPT, MemsetAsync, (void* to, int value, size_t bytes, void* stream),
             (to, value, bytes, stream), count_fill(actual_stream(stream), to, bytes))

// --- memory
WEIR_ANSWERED(WEIR_ALONE, Malloc, (void** at, size_t bytes), (at, bytes),
              count_allocation(result, at, bytes))
WEIR_ANSWERED(WEIR_PTSZ, MallocAsync, (void** at, size_t bytes, void* stream), (at, bytes, stream),
              count_allocation(result, at, bytes))
WEIR_ENDED(WEIR_ALONE, Free, (void* at), (at), free_memory(at))
WEIR_ENDED(WEIR_PTSZ, FreeAsync, (void* at, void* stream), (at, stream), free_memory(at))
WEIR_ENDED(WEIR_ALONE, DeviceReset, (), (), reset_memory(current_device()))
// Handles and addresses are numbers here.
WEIR_ANSWERED(WEIR_DRIVER, MemCreate,
              (uint64_t * handle, size_t bytes, const AllocationProperties* properties,
               unsigned long long flags),
              (handle, bytes, properties, flags),
              count_created_memory(result, handle, bytes, properties))
WEIR_ENDED(WEIR_DRIVER, MemRelease, (uint64_t handle), (handle), release_memory(handle))
WEIR_COUNTED(WEIR_DRIVER, MemMap,
             (uint64_t at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags),
             (at, bytes, offset, handle, flags), map_memory(handle, at))
WEIR_ENDED(WEIR_DRIVER, MemUnmap, (uint64_t at, size_t bytes), (at, bytes), unmap_memory(at, bytes))

// --- functions by name
WEIR_EXPORTED void WEIR_REGISTER_FUNCTION(void** handle, const char* host, char* device,
                                          const char* name, int limit, void* a, void* b, void* c,
                                          void* d, int* e) {
  static void* slot;
  const auto next =
      reinterpret_cast<decltype(&WEIR_REGISTER_FUNCTION)>(next_function(&slot, __func__));
  if (next == nullptr) return;
  next(handle, host, device, name, limit, a, b, c, d, e);
  name_function(host, name, api::find_container(handle));
}

// --- libraries. Their functions have at most 30 arguments, numbers and pointers. Only the handle
// is read, or the stream where it is one of them; 30 words are passed on as they came, and a
// function ignores those beyond its own.
#define WEIR_WORDS(X)                                                                             \
  X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10), X(11), X(12), X(13), X(14), X(15), \
      X(16), X(17), X(18), X(19), X(20), X(21), X(22), X(23), X(24), X(25), X(26), X(27), X(28),  \
      X(29)
#define WEIR_WORD(i) size_t w##i
#define WEIR_SAME_WORD(i) w##i
#define WEIR_PRODUCT_ON(name, stream)                                             \
  WEIR_COUNTED(WEIR_INTERCEPT_NAMED, name, (void* handle, WEIR_WORDS(WEIR_WORD)), \
               (handle, WEIR_WORDS(WEIR_SAME_WORD)),                              \
               count_library_call(#name, stream, k_library_calls))
#define WEIR_PRODUCT(name) WEIR_PRODUCT_ON(name, g.library_streams.find(address_key(handle)))
WEIR_LIBRARY_PRODUCTS(WEIR_PRODUCT)
#define WEIR_LIBRARY(set_stream, destroy)                                                        \
  WEIR_COUNTED(WEIR_INTERCEPT_NAMED, set_stream, (void* handle, void* stream), (handle, stream), \
               g.library_streams.insert(address_key(handle), stream))                            \
  WEIR_ENDED(WEIR_INTERCEPT_NAMED, destroy, (void* handle), (handle),                            \
             g.library_streams.remove(address_key(handle)))
WEIR_LIBRARIES(WEIR_LIBRARY)
#define WEIR_COLLECTIVE(name, parameters, ...)                        \
  WEIR_COUNTED(WEIR_INTERCEPT_NAMED, name, parameters, (__VA_ARGS__), \
               count_collective(#name, number, type, communicator, stream))
WEIR_NCCL_COLLECTIVES(WEIR_COLLECTIVE)
