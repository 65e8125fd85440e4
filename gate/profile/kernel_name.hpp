// Reads names of kernels and ops: "rms_norm_mul_f32" does what rms_norm and mul do, on f32.
//
// Types, tile sizes and tricks follow the work in a name; these are its variant.
// One vocabulary (kernel_name.cpp) says which work a word means and how large that is.
// Names come from strangers and may be anything. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::profile {

struct KernelName {
  std::vector<std::string> words;  // words of its work, lower case: {"rms", "norm", "mul"}
  std::string variant;             // the rest: "f32"
  // ggml's op of each known work: {"RMS_NORM", "MUL"}; empty: none is known.
  std::vector<std::string> works{};
  std::string part{};  // the part or the way of it: "ffn", "vec"; all words if no work is known
  enum class Size { unknown, small, large };
  Size size = Size::unknown;

  [[nodiscard]] std::string base() const;  // "rms_norm_mul"
  [[nodiscard]] std::string work() const;  // "RMS_NORM_MUL"; its base where no work is known
};
[[nodiscard]] KernelName kernel_name(std::string_view name);

// The op in capitals that a name begins with, without its types and shapes: "MUL_MAT" of
// "MUL_MAT q4_0,f32->f32 256x64,256->64". Empty for other names.
[[nodiscard]] std::string_view op_of(std::string_view name);

// Returns true if both compute the same by their names: they differ in the variant alone.
[[nodiscard]] bool same_work(const KernelName& a, const KernelName& b);

// The names of at least two of `parts` follow one another within the joined one; answers which, in
// that order.
// Nothing where the name tells no such thing. Of some works the vocabulary knows the parts: flash
// attention is matrix multiplications and a softmax.
[[nodiscard]] std::vector<std::size_t> find_fused_parts(const KernelName& joined,
                                                        const std::vector<KernelName>& parts);

// Returns true for a matrix multiplication.
[[nodiscard]] bool is_matmul(const KernelName& name);

// Returns true for a matmul or attention: most of a model's time, and never part of a small kernel.
[[nodiscard]] bool is_large_work(const KernelName& name);

// Returns true for element-wise or smaller work, which engines like to fuse into its neighbours.
[[nodiscard]] bool is_small_work(const KernelName& name);

// Returns true if it copies or converts, and does nothing else.
[[nodiscard]] bool is_copy(const KernelName& name);

// A kernel beside flash attention, which sums up what that computed in pieces: llama.cpp's
// "fa_split_k_reduce".
[[nodiscard]] bool finishes_attention(const KernelName& name);

// Returns whether it multiplies by the GPU's matrix cores (tensor cores, WMMA, MFMA); nothing if
// its name does not tell. llama.cpp's "mul_mat_q" has one name for both.
[[nodiscard]] std::optional<bool> uses_matrix_cores(std::string_view name);

// Returns true for a kernel that adds up the parts of tiles that stream-k cut: llama.cpp's
// "mul_mat_q_stream_k_fixup".
[[nodiscard]] bool adds_up_tiles(std::string_view name);

// The name that releases of an engine agree on: llama.cpp's tiles of products were letters once
// ("matmul_f16_aligned_m") and are numbers now ("matmul_f16_aligned_1").
[[nodiscard]] std::string stable_name(std::string_view name);

// The name without what only says how the work is cut up: numbers among template arguments, and
// switches that are off ("flash_attn_ext_f16<64, 64, 2, false>"), a number at the end
// ("mul_mat_vec_f16_1") that is no tile of a product. Types stay: "(ggml_type)8", "half", "f16"; so
// do switches that are on.
[[nodiscard]] std::string untuned_name(std::string_view name);

// The work of one name, or of several that were timed together.
struct Role {
  std::string work;     // "MUL_MAT", "RMS_NORM_MUL"; "" of an empty name alone
  std::string part;     // "ffn", "vec"; "" where the name adds nothing
  std::string variant;  // as in KernelName: "q4_0_f32_f32"
  std::vector<std::string>
      works{};  // each work of `work`: {"RMS_NORM", "MUL"}; empty: none is known

  friend bool operator==(const Role&, const Role&) = default;
};
[[nodiscard]] Role parse_role(std::string_view name);

}  // namespace weir::profile
