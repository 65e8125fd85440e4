// Reads attention masks before a graph is computed: the places that rows attend to, and the rows
// that attend to a place alone.
#include <string.h>

#include "gate/probes/inject/ggml/mask.h"
#include "gate/probes/inject/ggml/state.h"

namespace weir_probe {
namespace {

constexpr int32_t k_flag_input = 1;  // GGML_TENSOR_FLAG_INPUT
constexpr int64_t k_max_mask_elements = 1 << 22;
// Bits of a place that is not attended.
constexpr uint32_t k_minus_infinity_f32 = 0xFF800000U;
constexpr uint16_t k_minus_infinity_f16 = 0xFC00U;

// Gives the name of the original if the tensor is a scheduler's copy for another backend:
// "Vulkan0#inp_pos#0" is a copy of "inp_pos". False if it is not a copy.
bool original_name(const Functions& ggml, const Tensor* tensor, char (&out)[64]) {
  const char* name = call_if_present(ggml.get_name, tensor);
  const char* first = name == nullptr ? nullptr : strchr(name, '#');
  const char* last = first == nullptr ? nullptr : strrchr(name, '#');
  if (first == last || last - first > static_cast<ptrdiff_t>(sizeof out)) return false;
  const auto size = static_cast<size_t>(last - first) - 1;
  memcpy(out, first + 1, size);
  out[size] = '\0';
  return size > 0;
}

// Returns the input tensor, written by the program, from which the graph computes a mask. Follows
// up to 8 ops and copies; null if that does not reach an input.
const Tensor* find_input(const Functions& ggml, Graph* graph, const Tensor* tensor) {
  for (int step = 0; tensor != nullptr && step < 8; ++step) {
    const TensorView view(tensor);
    if (view.op() != 0) {
      tensor = view.source(0);
      continue;
    }
    if ((view.flags() & k_flag_input) != 0) return tensor;
    char name[64];
    if (!original_name(ggml, tensor, name)) return nullptr;
    tensor = call_if_present(ggml.graph_get_tensor, graph, name);
  }
  return nullptr;
}

// The counts of one mask. Cached, as many nodes in a row use the same mask.
struct MaskSummary {
  const Tensor* tensor;
  uint64_t attended, places, independent_rows;
};

// Counts places and rows in the values of a mask; places only if `wants_position_counts`.
template <class Value>
MaskSummary read_values(const Tensor* mask, const void* data, Value closed,
                        bool wants_position_counts) {
  const int64_t* ne = TensorView(mask).ne();
  const MaskValues<Value> values{static_cast<const Value*>(data), closed, ne[0], ne[1],
                                 ne[2] * ne[3]};
  const auto places = static_cast<uint64_t>(ne[0] * ne[1] * ne[2] * ne[3]);
  return {mask, wants_position_counts ? values.attended_places() : 0,
          wants_position_counts ? places : 0, values.independent_rows()};
}

// Counts the places of an attention mask that are open, if it consists of 32-bit or 16-bit floats
// in the host's memory; zeros for any other mask.
MaskSummary read_mask(const Functions& ggml, const Tensor* mask, bool wants_position_counts) {
  const MaskSummary unknown{.tensor = mask, .attended = 0, .places = 0, .independent_rows = 0};
  const int64_t count = ggml.nelements(mask);
  const uint64_t bytes = call_if_present(ggml.nbytes, mask);
  const void* data = ggml.get_data(mask);
  if (data == nullptr || count <= 0 || count > k_max_mask_elements) return unknown;
  BufferType* memory = memory_type(ggml, mask);
  if (memory == nullptr || !call_if_present(ggml.backend_buft_is_host, memory)) return unknown;
  const auto size = static_cast<uint64_t>(count);
  if (bytes == size * 4)
    return read_values<uint32_t>(mask, data, k_minus_infinity_f32, wants_position_counts);
  if (bytes == size * 2)
    return read_values<uint16_t>(mask, data, k_minus_infinity_f16, wants_position_counts);
  return unknown;
}

}  // namespace

__thread Masks t_masks __attribute__((tls_model("initial-exec")));

bool is_input(const Functions& ggml, const Tensor* tensor) {
  char name[64];
  return (TensorView(tensor).flags() & k_flag_input) != 0 || original_name(ggml, tensor, name);
}

// Sums up the masks of the graph's attention nodes into t_masks, if events are recorded.
void read_masks(Library* library, Graph* graph) {
  if (!is_recording_events()) return;
  const OwnTimeScope own_time_scope;
  t_masks = {};
  const Functions& ggml = library->ggml;
  if (!lists_nodes(ggml)) return;
  const int nodes = ggml.graph_n_nodes(graph);
  const bool wants_position_counts = records_replay();
  MaskSummary mask_summary{};
  for (int i = 0; i < nodes; ++i) {
    const Tensor* node = ggml.graph_node(graph, i);
    const char* op = node == nullptr ? nullptr : ggml.op_desc(node);
    if (op == nullptr) continue;
    const bool is_flash_attention = strcmp(op, "FLASH_ATTN_EXT") == 0;
    if ((!is_flash_attention && strcmp(op, "SOFT_MAX") != 0) || !is_readable(library, node))
      continue;
    const Tensor* mask =
        find_input(ggml, graph, TensorView(node).source(is_flash_attention ? 3 : 1));
    if (mask == nullptr || !is_readable(library, mask)) continue;
    const bool is_first = mask_summary.tensor == nullptr;
    if (mask != mask_summary.tensor) mask_summary = read_mask(ggml, mask, wants_position_counts);
    t_masks.attended += mask_summary.attended;
    t_masks.places += mask_summary.places;
    t_masks.independent_rows = is_first || t_masks.independent_rows == mask_summary.independent_rows
                                   ? mask_summary.independent_rows
                                   : 0;
  }
}

}  // namespace weir_probe
