// Indices that the host reads from a device twin.
//
// A twin computes nothing, so a program reads garbage from it. ggml uses some results as indices:
// the CPU looks up experts by the ids that a GPU chose, and the scheduler copies the weights of
// those experts alone. Garbage ends the program there. Whole numbers that an op computed are
// therefore made valid after they are read: positions in a row that was sorted, 0 from any other op
// (the id of a token). Other results stay as they are.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/table.h"
#include "gate/probes/twin/blob.h"
#include "gate/probes/twin/cuda/blob.h"

namespace weir_probe {
namespace {

constexpr uint64_t k_most_late = 4096;

// One read of a tensor: `copies` pieces of `size` bytes.
struct Read {
  Backend* backend;  // null: it is over
  char* data;
  size_t size, copies, stride;
  uint64_t at, step;  // of the first piece in the op's result, and from one to the next; in bytes
  uint64_t row;       // elements of a sorted row; 0: no op sorted them
};

// Asynchronous reads, whose bytes may come only when the program waits for the backend. Under
// g.lock.
Read* g_late;
uint64_t g_late_room, g_late_count;  // the count is atomic

// The tensor that an op computed, of which `tensor` may be a view. Null where none did.
const Tensor* computed(const Functions& ggml, const Tensor* tensor) {
  if (does_work(ggml, tensor)) return tensor;
  const Tensor* whole = TensorView(tensor).view_of();
  return whole != nullptr && does_work(ggml, whole) ? whole : nullptr;
}

bool is_on_device(const Functions& ggml, const Tensor* tensor) {
  BufferType* memory = memory_of(ggml, tensor);
  return memory != nullptr && ggml.backend_buft_is_host != nullptr &&
         !ggml.backend_buft_is_host(memory);
}

bool holds_whole_numbers(const Functions& ggml, const Tensor* tensor) {
  const char* type = ask(ggml.type_name, TensorView(tensor).type());
  return type != nullptr && strcmp(type, "i32") == 0;
}

void write_indices(const Read& read) {
  for (size_t copy = 0; copy < read.copies; ++copy) {
    const uint64_t first = (read.at + copy * read.step) / sizeof(int32_t);
    for (size_t i = 0; i < read.size / sizeof(int32_t); ++i) {
      const auto index = static_cast<int32_t>(read.row == 0 ? 0 : (first + i) % read.row);
      memcpy(read.data + copy * read.stride + i * sizeof index, &index, sizeof index);
    }
  }
}

}  // namespace

// Read each time: this may be asked before any constructor of ours ran.
bool on_twin() {
  return getenv(WEIR_TWIN_VARIABLE) != nullptr || getenv(WEIR_CUDA_TWIN_VARIABLE) != nullptr;
}

void make_indices_valid(Backend* backend, const Tensor* from, void* data, size_t offset,
                        size_t size, size_t copies, size_t stride_tensor, size_t stride_data) {
  if (!g.on_twin) return;
  Library* const library = t_meant;
  const Functions& ggml = library->ggml;
  if (ggml.op_desc == nullptr || !readable(library, from) || !holds_whole_numbers(ggml, from) ||
      !is_on_device(ggml, from)) {
    return;
  }
  const Tensor* result = computed(ggml, from);
  if (result == nullptr) return;
  const char* op = ggml.op_desc(result);
  const bool sorts = strcmp(op, "ARGSORT") == 0 || strcmp(op, "TOP_K") == 0;
  const uint64_t in_result = result == from ? 0 : TensorView(from).offset_in_view();
  const Read read = {backend,       static_cast<char*>(data),
                     size,          copies,
                     stride_data,   in_result + offset,
                     stride_tensor, sorts ? static_cast<uint64_t>(TensorView(result).ne()[0]) : 0};
  write_indices(read);
  set_flag(&g.file, WEIR_PROBE_INDICES_GIVEN);
  if (backend == nullptr) return;
  const Locked locked(&g.lock);
  if (!make_room(&g_late, &g_late_room, g_late_count + 1, 16, k_most_late)) return;
  g_late[g_late_count] = read;
  __atomic_add_fetch(&g_late_count, 1, __ATOMIC_RELEASE);
}

void make_late_indices_valid(Backend* backend) {
  if (__atomic_load_n(&g_late_count, __ATOMIC_ACQUIRE) == 0) return;
  const Locked locked(&g.lock);
  uint64_t kept = 0;
  for (uint64_t i = 0; i < g_late_count; ++i) {
    if (backend == nullptr || g_late[i].backend == backend) {
      write_indices(g_late[i]);
    } else {
      g_late[kept++] = g_late[i];
    }
  }
  __atomic_store_n(&g_late_count, kept, __ATOMIC_RELEASE);
}

void forget_late_indices() {
  const Locked locked(&g.lock);
  __atomic_store_n(&g_late_count, 0, __ATOMIC_RELEASE);
}

}  // namespace weir_probe
