// Tests of messages about missing kernels.
#include <gmock/gmock.h>

#include "gate/adapters/format.hpp"

#include "tests/adapters/read_data.hpp"

namespace weir::adapters {
namespace missing_kernel_test {

struct Case {
  const char* who;
  std::string err;
  const char* message;  // "": none
};

// The source of each form comes first. Forms of ggml are the formats in its sources, filled in.
TEST(MissingKernel, IsKnownFromAnyEngine) {
  const Case k_cases[] = {
      {"Agave's book, missing kernel policy",
       "thread 1 panic: Metal MLX 6-bit GEMV not implemented \xE2\x80\x94 use --backend cpu or "
       "convert to 4-bit\n/src/backend/metal.zig:77:13: 0x1 in gemvMlxQ (agave)\n",
       "Metal MLX 6-bit GEMV not implemented \xE2\x80\x94 use --backend cpu or convert to 4-bit"},
      {"Agave's book, the other branch", "thread 1 panic: Unsupported MLX bit width\n",
       "Unsupported MLX bit width"},
      // Printed by the program itself (03a2b5c).
      {"Agave, with its place behind", read_data("agave-error-vulkan-q8-panic.stderr.txt"),
       "Vulkan embLookup: unsupported dtype"},
      {"weir-engine",
       "weir-engine: vulkan: matrix-vector product of BF16 (output.weight) not implemented "
       "\xE2\x80\x94 use --backend cpu or convert to Q8_0\n",
       "weir-engine: vulkan: matrix-vector product of BF16 (output.weight) not implemented "
       "\xE2\x80\x94 use --backend cpu or convert to Q8_0"},
      {"ggml-backend.cpp",
       "ggml-backend.cpp:941: pre-allocated tensor (cache_k_l0) in a buffer (Vulkan0) that cannot "
       "run the operation (SET_ROWS)\n",
       "ggml-backend.cpp:941: pre-allocated tensor (cache_k_l0) in a buffer (Vulkan0) that cannot "
       "run the operation (SET_ROWS)"},
      {"ggml-vulkan.cpp",
       "ggml_vulkan: Error: Missing op: CONV_3D for f16 and f32 to f32\nAborted\n",
       "ggml_vulkan: Error: Missing op: CONV_3D for f16 and f32 to f32"},
      {"ggml-cuda.cu", "ggml_cuda_graph_evaluate_and_capture: op not supported a (TRI)\n",
       "ggml_cuda_graph_evaluate_and_capture: op not supported a (TRI)"},
      {"ggml-metal-ops.cpp", "ggml_metal_op_encode_impl: error: unsupported op 'TRI'\n",
       "ggml_metal_op_encode_impl: error: unsupported op 'TRI'"},
      {"a warning of an engine that then dies of something else",
       "warning: speculative decoding is not implemented for this model\nsegfault\n", ""},
      {"nothing", "", ""},
      {"another error", "error: failed to open model.gguf\n", ""},
  };
  for (const Case& c : k_cases) {
    EXPECT_EQ(missing_kernel(c.err).value_or(""), c.message) << c.who;
  }
}

TEST(MissingKernel, TakesTheLastOfSeveral) {
  EXPECT_EQ(missing_kernel("x: error: unsupported op 'A'\nx: error: unsupported op 'B'\nbye\n"),
            "x: error: unsupported op 'B'");
}

TEST(MissingKernel, IsCutInLengthAndFitToShow) {
  const auto message = missing_kernel("panic: unsupported \x1b[31m" + std::string(5000, 'x'));
  ASSERT_TRUE(message);
  EXPECT_LE(message->size(), 303U);  // 300, and the three bytes of an ellipsis
  EXPECT_EQ(message->find('\x1b'), std::string::npos);
}

TEST(MissingKernel, IsNotWhatAProgramWentOnWithout) {
  EXPECT_FALSE(
      missing_kernel("warning: flash attention -- not implemented, using the plain one\n"
                     "error: cannot open model.bin\n"));
  std::string long_ago = "vulkan: SCAN not implemented \xE2\x80\x94 use the CPU\n";
  for (int i = 0; i < 100; ++i) long_ago += "token\n";
  EXPECT_FALSE(missing_kernel(long_ago));
}

}  // namespace missing_kernel_test
}  // namespace weir::adapters
