// Masks of attention, read before a graph is computed: which of their places are looked at, and by
// how many rows alone.
#include <string.h>

#include "gate/probes/inject/ggml/mask.h"
#include "gate/probes/inject/ggml/state.h"

namespace weir_probe {
namespace {

constexpr int32_t k_flag_input = 1;         // GGML_TENSOR_FLAG_INPUT
constexpr int64_t k_most_places = 1 << 22;  // of a mask

// The name of what a tensor is the scheduler's copy of, on another backend: "Vulkan0#inp_pos#0" is
// one of "inp_pos". False where it is none.
bool copied_name(const Functions& ggml, const Tensor* tensor, char (&out)[64]) {
  const char* name = ask(ggml.get_name, tensor);
  const char* first = name == nullptr ? nullptr : strchr(name, '#');
  const char* last = first == nullptr ? nullptr : strrchr(name, '#');
  if (first == last || last - first > static_cast<ptrdiff_t>(sizeof out)) return false;
  const auto size = static_cast<size_t>(last - first) - 1;
  memcpy(out, first + 1, size);
  out[size] = '\0';
  return size > 0;
}

// What the program writes and the graph makes a mask of; null where that cannot be followed.
const Tensor* input_of(const Functions& ggml, Graph* graph, const Tensor* tensor) {
  for (int i = 0; tensor != nullptr && i < 8; ++i) {
    const TensorView view(tensor);
    if (view.op() != 0) {
      tensor = view.source(0);
      continue;
    }
    if ((view.flags() & k_flag_input) != 0) return tensor;
    char name[64];
    if (!copied_name(ggml, tensor, name)) return nullptr;
    tensor = ask(ggml.graph_get_tensor, graph, name);
  }
  return nullptr;
}

// A mask is used by many nodes in a row.
struct LastMask {
  const Tensor* tensor;
  uint64_t open, all, apart;
};

template <class Value>
LastMask values_of(const Tensor* mask, const void* data, Value closed, bool counts_places) {
  const int64_t* ne = TensorView(mask).ne();
  const MaskValues<Value> values{static_cast<const Value*>(data), closed, ne[0], ne[1],
                                 ne[2] * ne[3]};
  const auto all = static_cast<uint64_t>(ne[0] * ne[1] * ne[2] * ne[3]);
  return {mask, counts_places ? values.open() : 0, counts_places ? all : 0, values.rows_apart()};
}

LastMask read_mask(const Functions& ggml, const Tensor* mask, bool counts_places) {
  const LastMask unknown{mask, 0, 0, 0};
  const int64_t count = ggml.nelements(mask);
  const uint64_t bytes = ask(ggml.nbytes, mask);
  const void* data = ggml.get_data(mask);
  if (data == nullptr || count <= 0 || count > k_most_places) return unknown;
  BufferType* memory = memory_of(ggml, mask);
  if (memory == nullptr || !ask(ggml.backend_buft_is_host, memory)) return unknown;
  const auto size = static_cast<uint64_t>(count);
  if (bytes == size * 4) return values_of<uint32_t>(mask, data, 0xFF800000U, counts_places);
  if (bytes == size * 2) return values_of<uint16_t>(mask, data, 0xFC00U, counts_places);
  return unknown;
}

}  // namespace

__thread Masks t_masks __attribute__((tls_model("initial-exec")));

bool is_input(const Functions& ggml, const Tensor* tensor) {
  char name[64];
  return (TensorView(tensor).flags() & k_flag_input) != 0 || copied_name(ggml, tensor, name);
}

void look_at_masks(Library* library, Graph* graph) {
  if (!events_on()) return;
  const Recorded recorded;
  t_masks = {};
  const Functions& ggml = library->ggml;
  if (!lists_nodes(ggml)) return;
  const int nodes = ggml.graph_n_nodes(graph);
  const bool counts_places = replay_wanted();
  LastMask last{};
  for (int i = 0; i < nodes; ++i) {
    const Tensor* node = ggml.graph_node(graph, i);
    const char* op = node == nullptr ? nullptr : ggml.op_desc(node);
    if (op == nullptr) continue;
    const bool attention = strcmp(op, "FLASH_ATTN_EXT") == 0;
    if ((!attention && strcmp(op, "SOFT_MAX") != 0) || !readable(library, node)) continue;
    const Tensor* mask = input_of(ggml, graph, TensorView(node).source(attention ? 3 : 1));
    if (mask == nullptr || !readable(library, mask)) continue;
    const bool first = last.tensor == nullptr;
    if (mask != last.tensor) last = read_mask(ggml, mask, counts_places);
    t_masks.open += last.open;
    t_masks.all += last.all;
    t_masks.apart = first || t_masks.apart == last.apart ? last.apart : 0;
  }
}

}  // namespace weir_probe
