// Makes indices valid that the host reads from a device twin.
//
// A twin computes nothing, so a program reads garbage from it. ggml uses some results as indices:
// the CPU looks up experts by the ids that a GPU chose, and the scheduler copies the weights of
// those experts alone. Garbage would end the program there. So integers that an op computed are
// replaced after they are read: by positions in a row that was sorted, by 0 from any other op (the
// id of a token). Other results stay as they are.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/table.h"
#include "gate/probes/twin/blob.h"
#include "gate/probes/twin/runtime/blob.h"

namespace weir_probe {
namespace {

constexpr uint64_t k_max_late = 4096;

// One read of a tensor: `copies` pieces of `size` bytes.
struct TensorRead {
  Backend* backend;  // null: it is complete
  char* data;
  size_t size, copies, stride;
  uint64_t at, step;  // bytes: offset of the first piece in the op's result, and between pieces
  uint64_t row;       // elements of a sorted row; 0: no op sorted them
};

// Asynchronous reads: their bytes may arrive as late as the program's wait for the backend. Under
// g.lock.
TensorRead* g_late;
uint64_t g_late_room, g_late_count;  // the count is atomic

// Returns the tensor that an op computed: `tensor` or the one that it is a view of. Null if no op
// did.
const Tensor* find_computed_tensor(const Functions& ggml, const Tensor* tensor) {
  if (does_work(ggml, tensor)) return tensor;
  const Tensor* viewed = TensorView(tensor).view_of();
  return viewed != nullptr && does_work(ggml, viewed) ? viewed : nullptr;
}

bool is_on_device(const Functions& ggml, const Tensor* tensor) {
  BufferType* memory = memory_type(ggml, tensor);
  return memory != nullptr && ggml.backend_buft_is_host != nullptr &&
         !ggml.backend_buft_is_host(memory);
}

bool is_integer_tensor(const Functions& ggml, const Tensor* tensor) {
  const char* type = call_if_present(ggml.type_name, TensorView(tensor).type());
  return type != nullptr && strcmp(type, "i32") == 0;
}

// Fills the bytes of a read with valid indices.
void write_indices(const TensorRead& read) {
  for (size_t copy = 0; copy < read.copies; ++copy) {
    const uint64_t first = (read.at + copy * read.step) / sizeof(int32_t);
    for (size_t i = 0; i < read.size / sizeof(int32_t); ++i) {
      const auto index = static_cast<int32_t>(read.row == 0 ? 0 : (first + i) % read.row);
      memcpy(read.data + copy * read.stride + i * sizeof index, &index, sizeof index);
    }
  }
}

}  // namespace

// Not cached: it may be called before any constructor of this library ran.
bool is_on_twin() {
  return getenv(WEIR_TWIN_VARIABLE) != nullptr || getenv(WEIR_RUNTIME_TWIN_VARIABLE) != nullptr;
}

// On a twin (simulated GPU), which computes nothing, replaces integers that the program read back
// by valid indices. An asynchronous read (with a `backend`) is replaced again when its bytes
// arrive.
void fix_indices(Backend* backend, const Tensor* from, void* data, size_t offset, size_t size,
                 size_t copies, size_t stride_tensor, size_t stride_data) {
  if (!g.is_on_twin) return;
  Library* const library = t_library;
  const Functions& ggml = library->ggml;
  if (ggml.op_desc == nullptr || !is_readable(library, from) || !is_integer_tensor(ggml, from) ||
      !is_on_device(ggml, from)) {
    return;
  }
  const Tensor* result = find_computed_tensor(ggml, from);
  if (result == nullptr) return;
  const char* op = ggml.op_desc(result);
  const bool is_sort_op = strcmp(op, "ARGSORT") == 0 || strcmp(op, "TOP_K") == 0;
  const uint64_t offset_in_result = result == from ? 0 : TensorView(from).offset_in_view();
  TensorRead read = {};
  read.backend = backend;
  read.data = static_cast<char*>(data);
  read.size = size;
  read.copies = copies;
  read.stride = stride_data;
  read.at = offset_in_result + offset;
  read.step = stride_tensor;
  read.row = is_sort_op ? static_cast<uint64_t>(TensorView(result).ne()[0]) : 0;
  write_indices(read);
  set_flag(&g.file, WEIR_PROBE_INDICES_GIVEN);
  if (backend == nullptr) return;
  const Locked locked(&g.lock);
  if (!make_room(&g_late, &g_late_room, g_late_count + 1, 16, k_max_late)) return;
  g_late[g_late_count] = read;
  __atomic_add_fetch(&g_late_count, 1, __ATOMIC_RELEASE);
}

// Replaces the integers of asynchronous reads of `backend` (null: of all) once more, as their
// bytes have arrived by now, and forgets these reads.
void fix_late_indices(Backend* backend) {
  if (__atomic_load_n(&g_late_count, __ATOMIC_ACQUIRE) == 0) return;
  const Locked locked(&g.lock);
  uint64_t remaining = 0;
  for (uint64_t i = 0; i < g_late_count; ++i) {
    if (backend == nullptr || g_late[i].backend == backend) {
      write_indices(g_late[i]);
    } else {
      g_late[remaining++] = g_late[i];
    }
  }
  __atomic_store_n(&g_late_count, remaining, __ATOMIC_RELEASE);
}

void forget_late_indices() {
  const Locked locked(&g.lock);
  __atomic_store_n(&g_late_count, 0, __ATOMIC_RELEASE);
}

}  // namespace weir_probe
