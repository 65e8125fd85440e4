// The program that the libraries of CUDA and HIP twins are tested with, and the probes in front of
// them: an engine of a few calls. Scenes have names; the answers to their calls go to standard
// output. Calls have CUDA's names here: under HIP cudaMalloc is hipMalloc.
//
//   runtime_twin_program cuda|hip LIBRARY SCENE
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

bool g_hip = false;
void* g_library = nullptr;  // the twin's

// The name of a call of CUDA's in the API of this run.
std::string name_of(std::string name) {
  if (!g_hip) return name;
  for (const auto& [cuda, hip] : {std::pair{"__cuda", "__hip"}, std::pair{"cublas", "hipblas"},
                                  std::pair{"cuda", "hip"}, std::pair{"cu", "hip"}}) {
    if (name.rfind(cuda, 0) != 0) continue;
    name = hip + name.substr(std::strlen(cuda));
    const bool is_blas = name.rfind("hipblas", 0) == 0;
    const std::size_t version = name.find("_v2");
    return is_blas ? name.substr(0, version) : name;
  }
  return name;
}

template <class R = int, class... A>
R call(const char* cuda_name, A... arguments) {
  const std::string name = name_of(cuda_name);
  void* function = dlsym(RTLD_DEFAULT, name.c_str());  // as the loader binds an engine's calls
  if (function == nullptr) {
    std::printf("no %s\n", name.c_str());
    std::exit(2);
  }
  return reinterpret_cast<R (*)(A...)>(function)(arguments...);
}

struct Size3 {
  unsigned x, y, z;
};

// A fat binary as nvcc makes it: machine code of compute capability 8.9 and PTX of 9.0, both empty.
struct __attribute__((packed)) Entry {
  std::uint16_t kind, version = 0x101;
  std::uint32_t header = 64;
  std::uint64_t bytes = 0;
  std::uint32_t packed_bytes = 0, unknown = 0;
  std::uint16_t minor = 8, major = 1;
  std::uint32_t arch;
  std::uint32_t names[2] = {};
  std::uint64_t flags = 0x11, zero = 0, unpacked_bytes = 0;
};
struct __attribute__((packed, aligned(8))) Fat {
  std::uint32_t magic = 0xba55ed50;
  std::uint16_t version = 1, header = 16;
  std::uint64_t bytes = 2 * sizeof(Entry);
  Entry code{.kind = 2, .arch = 89};
  Entry ptx{.kind = 1, .arch = 90};
};
// A bundle as clang makes it, with code for gfx90a and gfx1100, both empty. It lies in the
// program's own memory: where it lies there is part of what a kernel is known by.
char g_bundle[4096];
void write_bundle() {
  std::string bytes = "__CLANG_OFFLOAD_BUNDLE__";
  const auto number = [&](std::uint64_t value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  number(2);
  for (const std::string target : {"gfx90a:xnack-", "gfx1100"}) {
    const std::string name = "hipv4-amdgcn-amd-amdhsa--" + target;
    for (const std::uint64_t value : {std::uint64_t{4096}, std::uint64_t{0}, name.size()})
      number(value);
    bytes += name;
  }
  std::memcpy(g_bundle, bytes.data(), bytes.size());
}
struct Wrapper {
  std::uint32_t magic = 0x466243b1, version = 1;
  const void* data;
  void* linked = nullptr;
};

char g_scale, g_add;  // their addresses stand for functions of the host

void* load() {
  static const Fat k_fat;
  static const Wrapper k_cuda{.data = &k_fat};
  static const Wrapper k_hip{.magic = 0x48495046, .data = g_bundle};
  write_bundle();
  void** module = call<void**>("__cudaRegisterFatBinary", g_hip ? &k_hip : &k_cuda);
  void* const none = nullptr;
  for (const auto& [host, name] : {std::pair{&g_scale, "_Z5scalePf"},
                                   std::pair{&g_add, "_ZN19_INTERNAL_0123abcd_3addIiEEvPT_"}}) {
    call<void>("__cudaRegisterFunction", module, static_cast<const char*>(host),
               const_cast<char*>(name), name, -1, none, none, none, none,
               static_cast<int*>(nullptr));
  }
  if (!g_hip) call<int>("__cudaRegisterFatBinaryEnd", module);
  return module;
}

int launch(const void* function, void* stream, Size3 block = {32, 1, 1}, std::size_t shared = 0) {
  return call("cudaLaunchKernel", function, Size3{4, 1, 1}, block, static_cast<void**>(nullptr),
              shared, stream);
}
void* new_stream() {
  void* stream = nullptr;
  call("cudaStreamCreateWithFlags", &stream, 1U);
  return stream;
}
void* captured(void* stream, int launches) {
  void* graph = nullptr;
  call("cudaStreamBeginCapture", stream, 2);
  for (int i = 0; i < launches; ++i) launch(&g_add, stream);
  call("cudaMemsetAsync", static_cast<void*>(nullptr), 0, std::size_t{0}, stream);
  call("cudaStreamEndCapture", stream, &graph);
  return graph;
}
void* ready(void* graph) {
  void* exec = nullptr;
  call("cudaGraphInstantiate", &exec, graph, 0ULL);
  return exec;
}

int update(void* exec, void* graph) {
  struct {
    int result;
    void *node, *from;
  } cuda_result{};
  void* node = nullptr;
  int hip_result = 0;
  return g_hip ? call("cudaGraphExecUpdate", exec, graph, &node, &hip_result)
               : call("cudaGraphExecUpdate", exec, graph, &cuda_result);
}

void counts() {
  void *stream = new_stream(), *second_stream = new_stream(), *event = nullptr, *memory = nullptr;
  launch(&g_scale, stream);
  launch(&g_scale, stream);
  call("cudaStreamSynchronize", stream);  // sync 1
  call("cudaStreamSynchronize", stream);  // for nothing
  void* exec = ready(captured(stream, 3));
  for (int i = 0; i < 4; ++i) call("cudaGraphLaunch", exec, stream);
  call("cudaEventCreateWithFlags", &event, 2U);
  call("cudaEventRecord", event, stream);
  call("cudaStreamWaitEvent", second_stream, event, 0U);  // barrier
  call("cudaEventSynchronize", event);                    // sync 2
  char bytes[48] = {1};
  call("cudaMalloc", &memory, sizeof bytes);
  call("cudaMemcpyAsync", memory, static_cast<void*>(bytes), sizeof bytes, 1, stream);
  call("cudaMemcpyAsync", static_cast<void*>(bytes), memory, sizeof bytes, 2, stream);
  call("cudaStreamSynchronize", stream);  // sync 3
  std::printf("read back %d\n", bytes[0]);
  void* handle = nullptr;
  call("cublasCreate_v2", &handle);
  call("cublasSetStream_v2", handle, stream);
  call("cublasGemmEx", handle);
}

void errors() {
  void *stream = new_stream(), *graph = nullptr, *memory = nullptr, *more = nullptr;
  std::printf("unknown function %d\n", launch(&graph, stream));
  std::printf("block of 2048 threads %d\n", launch(&g_scale, stream, {2048, 1, 1}));
  std::printf("60 KiB shared %d\n", launch(&g_scale, stream, {32, 1, 1}, 60 << 10));
  call("cudaFuncSetAttribute", static_cast<const void*>(&g_scale), 8, 64 << 10);
  std::printf("allowed %d\n", launch(&g_scale, stream, {32, 1, 1}, 60 << 10));
  std::printf("last error %d", call("cudaGetLastError"));
  std::printf(", then %d\n", call("cudaGetLastError"));
  call("cudaStreamBeginCapture", stream, 2);
  std::printf("wait within a capture %d\n", call("cudaStreamSynchronize", stream));
  std::printf("launch behind it %d\n", launch(&g_scale, stream));
  std::printf("its end %d", call("cudaStreamEndCapture", stream, &graph));
  std::printf(", graph %s\n", graph == nullptr ? "none" : "made");
  call("cudaStreamBeginCapture", stream, 2);
  std::printf("wait for the device within one %d", call("cudaDeviceSynchronize"));
  std::printf(", its end %d\n", call("cudaStreamEndCapture", stream, &graph));
  void* exec = ready(captured(stream, 3));
  std::printf("update by the same shape %d", update(exec, captured(stream, 3)));
  std::printf(", by another %d\n", update(exec, captured(stream, 4)));
  std::size_t free_bytes = 0, total = 0;
  call("cudaMemGetInfo", &free_bytes, &total);
  call("cudaMemGetInfo", &free_bytes, static_cast<std::size_t*>(nullptr));
  std::printf("memory %zu of %zu MiB\n", free_bytes >> 20, total >> 20);
  std::printf("all of it %d", call("cudaMalloc", &memory, free_bytes));
  std::printf(", a byte more %d", call("cudaMalloc", &more, std::size_t{1}));
  std::printf(", freed %d", call("cudaFree", memory));
  std::printf(", again %d", call("cudaMalloc", &memory, free_bytes));
  call("cudaFree", memory);
  std::printf(", freed twice %d\n", call("cudaFree", memory));
  std::uint64_t at = 0, handle = 0;
  call("cuMemAddressReserve", &at, std::size_t{1} << 35, std::size_t{0}, std::uint64_t{0}, 0ULL);
  const int properties[4] = {1, 0, 1, 0};
  call("cuMemCreate", &handle, std::size_t{1} << 30, static_cast<const void*>(properties), 0ULL);
  call("cuMemMap", at, std::size_t{1} << 30, std::size_t{0}, handle, 0ULL);
  call("cuMemRelease", handle);
  call("cudaMemGetInfo", &free_bytes, &total);
  std::printf("with 1 GiB mapped %zu", free_bytes >> 20);
  call("cuMemUnmap", at, std::size_t{1} << 30);
  call("cudaMemGetInfo", &free_bytes, &total);
  std::printf(", without %zu MiB\n", free_bytes >> 20);
  int blocks = 0;
  call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", &blocks,
       static_cast<const void*>(&g_scale), 256, std::size_t{0}, 0U);
  std::printf("blocks of 256 threads %d", blocks);
  call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", &blocks,
       static_cast<const void*>(&g_scale), 2048, std::size_t{0}, 0U);
  std::printf(", of 2048 %d\n", blocks);
  call("cudaMallocManaged", &memory, std::size_t{4096}, 1U);
  std::printf("managed memory freed %d", call("cudaFree", memory));
  std::printf(", %zu bytes %d\n", SIZE_MAX, call("cudaMalloc", &memory, SIZE_MAX));
}

// As many streams as threads, each with its own graphs.
void threads() {
  std::vector<std::thread> all;
  for (int t = 0; t < 64; ++t) {
    all.emplace_back([] {
      void* stream = new_stream();
      void* memory = nullptr;
      for (int i = 0; i < 20; ++i) {
        launch(&g_scale, stream);
        void* graph = captured(stream, 2);
        void* exec = ready(graph);
        call("cudaGraphLaunch", exec, stream);
        call("cudaStreamSynchronize", stream);
        call("cudaGraphExecDestroy", exec);
        call("cudaGraphDestroy", graph);
        call("cudaMalloc", &memory, std::size_t{4096});
        call("cudaFree", memory);
      }
      call("cudaStreamDestroy", stream);
    });
  }
  for (std::thread& thread : all) thread.join();
}

// Handles and addresses of what ended are another thread's at once, where the allocator does so.
void reuse() {
  std::vector<std::thread> all;
  for (int t = 0; t < 16; ++t) {
    all.emplace_back([t] {
      void* stream = new_stream();
      for (int i = 0; i < 200; ++i) {
        void* graph = captured(stream, 3);
        void* exec = ready(graph);
        call("cudaGraphLaunch", exec, stream);
        call("cudaGraphExecDestroy", exec);
        call("cudaGraphDestroy", graph);
        void* memory = nullptr;
        call("cudaMalloc", &memory, std::size_t{1} << 20);
        if (t > 0 || i + 1 < 200) call("cudaFree", memory);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  // Memory that the first thread kept, and memory that is asked for now.
  void* memory = nullptr;
  call("cudaMalloc", &memory, std::size_t{64} << 20);
}

// Variants of programs whose streams are the threads' own, captures into a graph that is there, and
// graphs that were not captured.
void variants() {
  void* const none = nullptr;
  void *graph = nullptr, *exec = nullptr, *stream = new_stream();
  call("cudaStreamBeginCapture", stream, 2);
  launch(&g_add, stream);
  call("cudaStreamEndCapture", stream, &graph);
  call("cudaStreamBeginCaptureToGraph", stream, graph, none, none, std::size_t{0}, 2);
  launch(&g_scale, stream);
  call("cudaStreamEndCapture", stream, &graph);
  call("cudaGraphLaunch", ready(graph), stream);
  call("cudaStreamBeginCapture", stream, 2);
  call("cudaGraphLaunch", ready(captured(new_stream(), 2)), stream);  // within it
  call("cudaStreamEndCapture", stream, &graph);
  exec = ready(graph);
  call("cudaGraphLaunch", exec, stream);
  call("cudaDeviceReset");
}

// One kernel by plain launches, and by others that ask for more.
void attributes() {
  struct Attribute {
    int id;
    char pad[4] = {};
    union {
      int number;
      Size3 size;
      char bytes[64];
    } value = {};
  };
  struct Config {
    Size3 grid, block;
    std::size_t shared;
    void* stream;
    const Attribute* attributes;
    unsigned count;
  };
  void* stream = new_stream();
  const auto launches = [&](int times, std::vector<Attribute> wanted) {
    const Config config{{8, 1, 1}, {32, 1, 1},    0,
                        stream,    wanted.data(), static_cast<unsigned>(wanted.size())};
    for (int i = 0; i < times; ++i) {
      call("cudaLaunchKernelExC", &config, static_cast<const void*>(&g_scale),
           static_cast<void**>(nullptr));
    }
  };
  Attribute programmatic{.id = 6}, serial{.id = 6}, pair{.id = 4}, four{.id = 4}, alone{.id = 4};
  programmatic.value.number = 1;
  pair.value.size = {2, 1, 1};
  four.value.size = {2, 2, 1};
  alone.value.size = {1, 1, 1};
  launch(&g_scale, stream);
  launches(2, {});
  launches(4, {serial, alone});  // the same
  launches(8, {programmatic});
  launches(16, {pair});
  launches(32, {four});
  launches(64, {pair, programmatic});
  launches(128, {programmatic, pair});  // the same
  void* graph = nullptr;
  call("cudaStreamBeginCapture", stream, 2);
  launches(256, {programmatic});
  call("cudaStreamEndCapture", stream, &graph);
  call("cudaGraphLaunch", ready(graph), stream);
}

// Blocks of other sizes, whose fewest warps are those of the third.
void costs() {
  void* stream = new_stream();
  launch(&g_scale, stream, {256, 1, 1});
  launch(&g_scale, stream, {32, 1, 1});
  launch(&g_scale, stream, {64, 1, 1}, 40 << 10);
  launch(&g_scale, stream, {128, 1, 1});
}

// As llama.cpp was until 2025: it looks for its kernels in a captured graph and changes their
// parameters, and it copies between GPUs with a pitch.
void nodes() {
  struct Kernel {
    const void* function;
    Size3 grid, block;
    unsigned shared;
    void **parameters, **more;
  } kernel{};
  struct End {
    void* array;
    std::size_t position[3];
    void* at;
    std::size_t pitch, width, height;
    int device;
  };
  struct {
    End from, to;
    std::size_t width, height, depth;
  } copy{};
  void *stream = new_stream(), *graph = captured(stream, 1), *list[2] = {}, *memory = nullptr;
  std::size_t count = 2;
  call("cudaGraphGetNodes", graph, static_cast<void**>(list), &count);
  for (void* node : list) {
    int type = -1;
    call("cudaGraphNodeGetType", node, &type);
    std::printf("node of type %d, its kernel %d\n", type,
                call("cudaGraphKernelNodeGetParams", node, &kernel));
  }
  std::printf("the one that was launched: %d", kernel.function == &g_add);
  *static_cast<void**>(kernel.parameters[1]) = stream;
  kernel.parameters[1] = nullptr;
  std::printf(", changed %d\n", call("cudaGraphKernelNodeSetParams", list[0], &kernel));
  char rows[2][8] = {"abcdefg", "hijklmn"}, to[2][4] = {};
  call("cudaMalloc", &memory, sizeof rows);
  copy.from.at = rows;
  copy.from.pitch = 8;
  copy.to.at = to;
  copy.to.pitch = 4;
  copy.width = 4;
  copy.height = 2;
  copy.depth = 1;
  std::printf("copy %d: %.4s %.4s\n", call("cudaMemcpy3DPeerAsync", &copy, stream), to[0], to[1]);
  copy.from.array = memory;
  std::printf("of an array %d\n", call("cudaMemcpy3DPeerAsync", &copy, stream));
}

void forked() {
  void* stream = new_stream();
  launch(&g_scale, stream);
  const pid_t child = fork();
  if (child == 0) {
    launch(&g_add, stream);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", status);
}

// Where the bundle lies in the loaded program.
void texts() {
  for (const int error : {2, 100, 209, 400, 500}) {
    std::printf("%d %s: %s\n", error, call<const char*>("cudaGetErrorName", error),
                call<const char*>("cudaGetErrorString", error));
  }
}

// Asks for the type of memory at two addresses, as a probe does for a copy without direction.
void addresses() {
  constexpr int k_memory_type = 2;
  void* memory = nullptr;
  call("cudaMalloc", &memory, std::size_t{64});
  unsigned type = 0;
  const int of_device = call("cuPointerGetAttribute", &type, k_memory_type, memory);
  const int of_host =
      call("cuPointerGetAttribute", &type, k_memory_type, static_cast<void*>(&type));
  std::printf("memory of the device %d, type %u, of the program %d\n", of_device, type, of_host);
}

void container() {
  Dl_info program{};
  dladdr(g_bundle, &program);
  std::printf("container %td\n", g_bundle - static_cast<const char*>(program.dli_fbase));
}

void killed() {
  void* stream = new_stream();
  for (int i = 0; i < 7; ++i) launch(&g_scale, stream);
  raise(SIGKILL);
}

struct Handle {  // cudaIpcMemHandle_t
  char bytes[64];
};

// Reads, in another process, what this one wrote to memory, and the other way round.
void shared() {
  int to_child[2], to_parent[2];
  if (pipe(to_child) != 0 || pipe(to_parent) != 0) std::exit(2);
  const auto value_at = [](void* at) {
    char value = 0;
    call("cudaMemcpy", static_cast<void*>(&value), at, std::size_t{1}, 4);
    return int{value};
  };
  Handle handle{};
  void* memory = nullptr;
  if (const pid_t child = fork(); child == 0) {
    if (read(to_child[0], &handle, sizeof handle) != sizeof handle) _exit(2);
    call("cudaIpcOpenMemHandle", &memory, handle, 1U);
    std::printf("in another process %d\n", value_at(memory));
    call("cudaMemset", memory, 2, std::size_t{1024});
    std::printf("closed %d, again %d\n", call("cudaIpcCloseMemHandle", memory),
                call("cudaIpcCloseMemHandle", memory));
    std::printf("no handle %d\n", call("cudaIpcOpenMemHandle", &memory, Handle{}, 1U));
    std::fflush(stdout);
    _exit(0);
  } else {
    call("cudaMalloc", &memory, std::size_t{1024});
    call("cudaMemset", memory, 1, std::size_t{1024});
    call("cudaIpcGetMemHandle", &handle, memory);
    if (write(to_child[1], &handle, sizeof handle) != sizeof handle) std::exit(2);
    waitpid(child, nullptr, 0);
  }
  std::printf("back %d\n", value_at(memory));
}

// Each rank's collectives succeed without the others.
void collectives() {
  struct Id {
    char bytes[128];
  } id{};
  constexpr int k_bf16 = 9, k_sum = 0;
  void *communicator = nullptr, *stream = new_stream();
  const int refused = call("ncclCommInitRank", &communicator, 2, id, 2);
  const int made = call("ncclCommInitRank", &communicator, 2, id, 1);
  int ranks = 0, rank = 0;
  call("ncclCommCount", communicator, &ranks);
  call("ncclCommUserRank", communicator, &rank);
  std::printf("refused %d, made %d: %d of %d\n", refused, made, rank, ranks);
  void* const nothing = nullptr;
  for (const std::size_t number : {256, 256, 512}) {
    call("ncclAllReduce", nothing, nothing, number, k_bf16, k_sum, communicator, stream);
  }
  // By its address, around the probe.
  const auto around = reinterpret_cast<int (*)(const void*, void*, std::size_t, int, void*, void*)>(
      dlsym(g_library, "ncclAllGather"));
  std::printf("gathered %d\n", around(nothing, nothing, 64, 42, communicator, stream));
}

// What copies and fills wrote is read back; what a kernel would have written follows rules.
void values() {
  void* stream = new_stream();
  char* memory = nullptr;
  call("cudaMalloc", &memory, std::size_t{4096});
  const auto read = [&](std::size_t at) {
    int value = -1;
    call("cudaMemcpyAsync", static_cast<void*>(&value), static_cast<void*>(memory + at),
         sizeof value, 2, stream);
    return value;
  };
  std::printf("fresh %d\n", read(0));
  const int seven = 7;
  call("cudaMemcpyAsync", static_cast<void*>(memory + 8), &seven, sizeof seven, 1, stream);
  call("cudaMemcpyAsync", static_cast<void*>(memory + 16), static_cast<void*>(memory + 8),
       sizeof seven, 3, stream);
  call("cudaMemsetAsync", static_cast<void*>(memory + 32), 1, std::size_t{4}, stream);
  std::printf("copied %d, within %d, filled %#x\n", read(8), read(16), read(32));
  call("cudaFree", memory);
  call("cudaMalloc", &memory, std::size_t{4096});
  std::printf("after it was freed %d\n", read(8));
  // Reserved addresses begin behind all blocks, however small these are.
  char* blocks[3]{};
  for (char*& block : blocks) call("cudaMalloc", &block, std::size_t{3} << 20);
  call("cudaFree", blocks[1]);
  std::uint64_t reserved = 0;
  call("cuMemAddressReserve", &reserved, std::size_t{64} << 20, std::size_t{0}, std::uint64_t{0},
       0ULL);
  const auto last = reinterpret_cast<std::uint64_t>(blocks[2]);
  std::printf("reserved apart %d, freed %d\n",
              reserved >= last + (3U << 20) || reserved + (64U << 20) <= last,
              call("cudaFree", blocks[2]));
  launch(&g_scale, stream);
  const int first = read(8), second = read(8), third = read(8);
  std::printf("of a kernel %d %d %d\n", first, second, third);
  // What was written after the kernel is no kernel's, and a copy of a kernel's value is.
  const auto copy_within = [&](std::size_t to, std::size_t from) {
    call("cudaMemcpyAsync", static_cast<void*>(memory + to), static_cast<void*>(memory + from),
         sizeof seven, 3, stream);
  };
  call("cudaMemcpyAsync", static_cast<void*>(memory + 8), &seven, sizeof seven, 1, stream);
  call("cudaMemsetAsync", static_cast<void*>(memory + 32), 1, std::size_t{4}, stream);
  copy_within(64, 8);
  std::printf("written after it %d %#x %d\n", read(8), read(32), read(64));
  launch(&g_scale, stream);
  copy_within(128, 8);
  std::printf("after another %d, beside it %d\n", read(128), read(12));
  void* other_stream = new_stream();
  int value = -1;
  call("cudaMemcpyAsync", &value, static_cast<void*>(memory + 8), sizeof value, 2, other_stream);
  std::printf("on a stream without kernels %d\n", value);
  void* pinned = nullptr;
  call("cudaHostAlloc", &pinned, std::size_t{64}, 0U);
  struct {
    int type, device;
    void *on_device, *on_host;
    long more[8];
  } attributes[3]{};
  call("cudaPointerGetAttributes", &attributes[0], memory + 100);
  call("cudaPointerGetAttributes", &attributes[1], static_cast<char*>(pinned) + 10);
  call("cudaPointerGetAttributes", &attributes[2], static_cast<const void*>(&seven));
  std::printf("types %d %d %d\n", attributes[0].type, attributes[1].type, attributes[2].type);
}

void wait_for_a_value() {
  void* stream = new_stream();
  void* memory = nullptr;
  call("cudaMalloc", &memory, std::size_t{4});
  launch(&g_scale, stream);
  int value = 0;
  while (value == 0) call("cudaMemcpyAsync", &value, memory, sizeof value, 2, stream);
}

// Machine code of one kernel, `triton_add`: 40 registers, 1 KiB of shared memory.
std::string cubin() {
  const std::string names = std::string(1, '\0') + ".text.triton_add" + '\0' +
                            ".nv.shared.triton_add" + '\0' + ".shstrtab" + '\0';
  std::string file(64, '\0');
  file.replace(0, 8,
               "\x7f"
               "ELF\x02\x01\x01\0",
               8);
  const std::size_t code = file.size();
  file += std::string(32, 'c');
  const std::size_t text = file.size();
  file += names;
  file.resize((file.size() + 7) / 8 * 8);
  const std::uint64_t sections = file.size();
  const auto section = [&](std::uint32_t name, std::uint64_t at, std::uint64_t size,
                           std::uint32_t info) {
    const std::uint32_t head[2] = {name, 1};
    const std::uint64_t middle[4] = {0, 0, at, size};
    const std::uint32_t links[2] = {0, info};
    const std::uint64_t end[2] = {1, 0};
    file.append(reinterpret_cast<const char*>(head), sizeof head);
    file.append(reinterpret_cast<const char*>(middle), sizeof middle);
    file.append(reinterpret_cast<const char*>(links), sizeof links);
    file.append(reinterpret_cast<const char*>(end), sizeof end);
  };
  section(0, 0, 0, 0);
  section(1, code, 32, 40U << 24);
  section(18, 0, 1024, 0);
  section(40, text, names.size(), 0);
  const std::uint16_t counts[3] = {64, 4, 3};
  file.replace(40, 8, reinterpret_cast<const char*>(&sections), 8);
  file.replace(58, 6, reinterpret_cast<const char*>(counts), 6);
  return file;
}

// Launches a kernel of a module by functions that are looked up, as Triton does.
void modules() {
  const std::string code = cubin();
  const auto look_up = [](const char* name) {
    void* function = nullptr;
    int result = -1;
    call("cudaGetDriverEntryPointByVersion", name, &function, 12000U, 0ULL, &result);
    return function;
  };
  void *module = nullptr, *kernel = nullptr, *none = nullptr;
  const int loaded = reinterpret_cast<int (*)(void**, const void*)>(look_up("cuModuleLoadData"))(
      &module, code.data());
  const auto get =
      reinterpret_cast<int (*)(void**, void*, const char*)>(look_up("cuModuleGetFunction"));
  const int found = get(&kernel, module, "triton_add");
  std::printf("loaded %d, found %d, another %d\n", loaded, found, get(&none, module, "nothing"));
  const auto attribute = reinterpret_cast<int (*)(int*, int, void*)>(look_up("cuFuncGetAttribute"));
  int registers = 0, shared = 0;
  attribute(&registers, 4, kernel);
  attribute(&shared, 1, kernel);
  std::printf("registers %d, shared %d\n", registers, shared);
  const auto launch_kernel =
      reinterpret_cast<int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, void*, void**, void**)>(look_up("cuLaunchKernel"));
  void* stream = new_stream();
  for (int i = 0; i < 3; ++i) {
    std::printf("launched %d\n",
                launch_kernel(kernel, 4, 1, 1, 64, 1, 1, 0, stream, nullptr, nullptr));
  }
  // By the address that the library itself has, which goes around a probe.
  void* const own = dlsym(g_library, "cuLaunchKernel");
  std::printf("launched %d\n", reinterpret_cast<decltype(launch_kernel)>(own)(
                                   kernel, 4, 1, 1, 64, 1, 1, 0, stream, nullptr, nullptr));
  // PTX has any kernel, here one with a long name.
  void *text = nullptr, *named = nullptr;
  const auto load_text =
      reinterpret_cast<int (*)(void**, const void*)>(look_up("cuModuleLoadData"));
  for (const char* version : {"//\n.version 9.0", "//\n.version 9.1"}) {
    const int result = load_text(&text, version);
    std::printf("%s: %d %s\n", version + 3, result, call<const char*>("cudaGetErrorName", result));
  }
  load_text(&text, ".version 8");
  get(&named, text, std::string(300, 'k').c_str());
  launch_kernel(named, 4, 1, 1, 64, 1, 1, 0, stream, nullptr, nullptr);
  const auto unknown = reinterpret_cast<int (*)()>(look_up("cuGreenCtxCreate"));
  std::printf("what it lacks %d\n", unknown());
}

// Takes memory, copies and waits by the driver's own functions, as tinygrad does.
void driver() {
  void *context = nullptr, *event = nullptr;
  int major = 0, minor = 0;
  std::printf("context %d", call("cuCtxCreate_v2", &context, 0U, 0));
  call("cuDeviceComputeCapability", &major, &minor, 0);
  std::printf(", of %d.%d\n", major, minor);
  std::uint64_t memory = 0;
  std::printf("taken %d\n", call("cuMemAlloc_v2", &memory, std::size_t{64}));
  std::uint32_t value = 7;
  call("cuMemcpyHtoDAsync_v2", memory, static_cast<void*>(&value), sizeof value,
       static_cast<void*>(nullptr));
  std::printf("waited %d\n", call("cuCtxSynchronize"));
  value = 0;
  call("cuMemcpyDtoH_v2", static_cast<void*>(&value), memory, sizeof value);
  call("cuEventCreate", &event, 0U);
  call("cuEventRecord", event, static_cast<void*>(nullptr));
  std::printf("copied %u, happened %d, freed %d\n", value, call("cuEventSynchronize", event),
              call("cuMemFree_v2", memory));
}

}  // namespace

int main(int, char** words) {
  g_hip = words[1] == std::string("hip");
  g_library = dlopen(words[2], RTLD_NOW | RTLD_GLOBAL);
  if (g_library == nullptr) {
    std::printf("%s\n", dlerror());
    return 2;
  }
  int devices = 0;
  std::printf("devices %d", call("cudaGetDeviceCount", &devices));
  std::printf(": %d\n", devices);
  void* module = load();
  const std::string scene = words[3];
  if (scene == "container") container();
  if (scene == "counts") counts();
  if (scene == "errors") errors();
  if (scene == "texts") texts();
  if (scene == "addresses") addresses();
  if (scene == "threads") threads();
  if (scene == "reuse") reuse();
  if (scene == "variants") variants();
  if (scene == "nodes") nodes();
  if (scene == "attributes") attributes();
  if (scene == "costs") costs();
  if (scene == "forked") forked();
  if (scene == "killed") killed();
  if (scene == "values") values();
  if (scene == "waits for a value") wait_for_a_value();
  if (scene == "modules") modules();
  if (scene == "driver") driver();
  if (scene == "shared") shared();
  if (scene == "collectives") collectives();
  if (scene == "launch") std::printf("launch %d\n", launch(&g_scale, new_stream()));
  call<int>("__cudaUnregisterFatBinary", module);
  return 0;
}
