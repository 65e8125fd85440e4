// Intercepts the calls that CUDA and HIP have in common, each by its name without the prefix: cudaX
// and hipX. Not a normal header: an API's interpose.cpp includes it once, after its definitions of:
//   WEIR_ALONE       the call of this name; WEIR_DRIVER: one that is the driver's in CUDA (cuX)
//   WEIR_PTSZ, WEIR_PTDS, WEIR_PTSZ_SPT, WEIR_PTDS_SPT
//                    the call, and its variant for per-thread default streams in CUDA (cudaX_ptsz,
//                    cudaX_ptds) and in HIP (hipX_spt)
//   api::            functions that count where the two APIs differ

// --- launches
WEIR_COUNTED(WEIR_PTSZ_SPT, LaunchKernel,
             (const void* f, Size3 grid, Size3 block, void** args, size_t shared, void* stream),
             (f, grid, block, args, shared, stream),
             api::count_launch(actual_stream(stream), f, grid, block, shared))
WEIR_COUNTED(WEIR_PTSZ, LaunchCooperativeKernel,
             (const void* f, Size3 grid, Size3 block, void** args, api::CooperativeShared shared,
              void* stream),
             (f, grid, block, args, shared, stream),
             api::count_launch(actual_stream(stream), f, grid, block, shared))
WEIR_COUNTED(WEIR_PTSZ, LaunchKernelExC, (const LaunchConfig* config, const void* f, void** args),
             (config, f, args), api::count_launch(actual_stream(config->stream), f, *config))

// --- graphs
WEIR_COUNTED(WEIR_PTSZ, StreamBeginCapture, (void* stream, int mode), (stream, mode),
             api::note_capture(actual_stream(stream)))
// Five and four words are passed on, whatever they mean: HIP has as many as CUDA, and CUDA 11 as
// many as later versions.
WEIR_COUNTED(WEIR_ALONE, GraphInstantiate, (void** exec, void* graph, size_t a, size_t b, size_t c),
             (exec, graph, a, b, c), api::note_instantiation(*exec, graph))
WEIR_COUNTED(WEIR_ALONE, GraphInstantiateWithFlags,
             (void** exec, void* graph, unsigned long long flags), (exec, graph, flags),
             api::note_instantiation(*exec, graph))
WEIR_COUNTED(WEIR_PTSZ, GraphInstantiateWithParams, (void** exec, void* graph, void* params),
             (exec, graph, params), api::note_instantiation(*exec, graph))
WEIR_COUNTED(WEIR_ALONE, GraphExecUpdate, (void* exec, void* graph, size_t a, size_t b),
             (exec, graph, a, b), api::add_executable(exec, graph))
WEIR_COUNTED(WEIR_PTSZ_SPT, GraphLaunch, (void* exec, void* stream), (exec, stream),
             api::count_executable_launch(actual_stream(stream), exec))
WEIR_ENDED(WEIR_ALONE, GraphExecDestroy, (void* exec), (exec), api::forget_executable(exec))

// --- waits
WEIR_COUNTED(WEIR_PTSZ_SPT, StreamSynchronize, (void* stream), (stream),
             count_wait(find_stream(actual_stream(stream))))
WEIR_COUNTED(WEIR_ALONE, EventSynchronize, (void* event), (event),
             count_wait(find_event_stream(event)))
WEIR_COUNTED(WEIR_ALONE, DeviceSynchronize, (), (), count_device_wait())
#define WEIR_POLLED(variants, name, handle, on) \
  variants(name, (void* handle), (handle), , api::is_answered(result), count_poll(on, result))
WEIR_POLLED(WEIR_PTSZ_SPT, StreamQuery, stream, find_stream(actual_stream(stream)))
WEIR_POLLED(WEIR_ALONE, EventQuery, event, find_event_stream(event))
WEIR_ENDED(WEIR_ALONE, StreamDestroy, (void* stream), (stream), forget_stream(stream))
WEIR_ENDED(WEIR_ALONE, EventDestroy, (void* event), (event), g.events.remove(key_of(event)))
WEIR_COUNTED(WEIR_PTSZ_SPT, EventRecord, (void* event, void* stream), (event, stream),
             api::note_event_record(event, actual_stream(stream)))
WEIR_COUNTED(WEIR_PTSZ, EventRecordWithFlags, (void* event, void* stream, unsigned flags),
             (event, stream, flags), api::note_event_record(event, actual_stream(stream)))
// A dependency between streams: the nearest that they have to a barrier.
WEIR_COUNTED(WEIR_PTSZ, StreamWaitEvent, (void* stream, void* event, unsigned flags),
             (stream, event, flags), api::count_barrier(actual_stream(stream)))

// --- copies and fills
WEIR_COUNTED(WEIR_PTDS_SPT, Memcpy, (void* to, const void* from, size_t bytes, int direction),
             (to, from, bytes, direction),
             api::count_copy(actual_stream(nullptr), to, from, direction, bytes, /*waits=*/true))
WEIR_COUNTED(WEIR_PTSZ_SPT, MemcpyAsync,
             (void* to, const void* from, size_t bytes, int direction, void* stream),
             (to, from, bytes, direction, stream),
             api::count_copy(actual_stream(stream), to, from, direction, bytes, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemcpyPeerAsync,
             (void* to, int there, const void* from, int here, size_t bytes, void* stream),
             (to, there, from, here, bytes, stream),
             api::count_copy(stream, to, from, k_within, bytes, /*waits=*/false))
WEIR_COUNTED(WEIR_PTDS, Memcpy2D,
             (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
              size_t height, int direction),
             (to, to_pitch, from, from_pitch, width, height, direction),
             api::count_copy(actual_stream(nullptr), to, from, direction, width* height,
                             /*waits=*/true))
WEIR_COUNTED(WEIR_PTSZ, Memcpy2DAsync,
             (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
              size_t height, int direction, void* stream),
             (to, to_pitch, from, from_pitch, width, height, direction, stream),
             api::count_copy(actual_stream(stream), to, from, direction, width* height,
                             /*waits=*/false))
WEIR_COUNTED(WEIR_PTDS, Memset, (void* to, int value, size_t bytes), (to, value, bytes),
             api::count_fill(actual_stream(nullptr), bytes))
WEIR_COUNTED(WEIR_PTSZ, MemsetAsync, (void* to, int value, size_t bytes, void* stream),
             (to, value, bytes, stream), api::count_fill(actual_stream(stream), bytes))

// --- memory
WEIR_ANSWERED(WEIR_ALONE, Malloc, (void** at, size_t bytes), (at, bytes),
              api::count_allocation(result, at, bytes))
WEIR_ANSWERED(WEIR_PTSZ, MallocAsync, (void** at, size_t bytes, void* stream), (at, bytes, stream),
              api::count_allocation(result, at, bytes))
WEIR_ENDED(WEIR_ALONE, Free, (void* at), (at), free_memory(at))
WEIR_ENDED(WEIR_PTSZ, FreeAsync, (void* at, void* stream), (at, stream), free_memory(at))
WEIR_ENDED(WEIR_ALONE, DeviceReset, (), (), reset_memory(current_device()))
// Handles and addresses are numbers here.
WEIR_ANSWERED(WEIR_DRIVER, MemCreate,
              (uint64_t * handle, size_t bytes, const void* properties, unsigned long long flags),
              (handle, bytes, properties, flags),
              api::count_created_memory(result, handle, bytes, properties))
WEIR_ENDED(WEIR_DRIVER, MemRelease, (uint64_t handle), (handle), release_memory(handle))
WEIR_COUNTED(WEIR_DRIVER, MemMap,
             (uint64_t at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags),
             (at, bytes, offset, handle, flags), map_memory(handle, at))
WEIR_ENDED(WEIR_DRIVER, MemUnmap, (uint64_t at, size_t bytes), (at, bytes), unmap_memory(at, bytes))
