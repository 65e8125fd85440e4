// By which conditions the pinned llama.cpp's Vulkan backend chooses its kernels, as they stand in
// its source (ggml/src/ggml-vulkan/ggml-vulkan.cpp of the release that ci/llama.cpp pins; the
// functions' names are given at each), for the models that the tests run. No count or kernel list
// that was measured went into this: it is what measured ones are held against.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gate/probes/read/twins.hpp"

namespace weir::e2e {

// Vendors by their PCI numbers.
constexpr std::uint32_t k_amd = 0x1002, k_intel = 0x8086, k_nvidia = 0x10de, k_apple = 0x106b,
                        k_qualcomm = 0x5143;

// The properties of a device that the backend keeps (ggml_vk_get_device) and chooses by.
struct EngineView {
  // get_device_architecture.
  enum class Architecture { other, gcn, rdna1, rdna2, rdna3, xe1, xe2, pre_turing, turing };
  Architecture architecture = Architecture::other;
  std::uint32_t vendor = 0;
  bool uma = false;
  bool fp16 = false;
  bool integer_dot = false;
  bool coopmat = false;         // VK_KHR_cooperative_matrix, in a shape that it uses
  bool coopmat_f16acc = false;  // … with a 16-bit accumulator, too
  bool coopmat_flash = false;   // … for flash attention: 16x16x16, and full subgroups
  bool coopmat2 = false;        // VK_NV_cooperative_matrix2 and everything of it that it uses
  bool subgroup_arithmetic = false;
  std::uint32_t shared_memory = 0;  // bytes per workgroup
  std::uint32_t cores = 0;          // 0: it cannot learn how many there are
  friend bool operator==(const EngineView&, const EngineView&) = default;
};

// `switched_off`: names of the variables that are set (GGML_VK_DISABLE_COOPMAT, …).
[[nodiscard]] EngineView engine_view(const probes::Twin& device,
                                     const std::set<std::string>& switched_off = {});

// The work that is asked for. All models of the tests have 4 heads, 2 of keys and values, of 64
// each.
struct Work {
  std::string model;         // "tiny-llama", "tiny-gemma3", "wide" (below)
  std::uint32_t prompt = 0;  // tokens; 0: decoding
};

// A llama in Q4_K and Q6_K whose feed-forward part is as wide as in big models, since the backend
// looks at the length of rows: what `weir model make` takes.
[[nodiscard]] std::vector<std::string> wide_model_options();

// The names of the kernels of a decision, as a regular expression, and those that it must come to.
struct Decision {
  const char* what;
  const char* kernels;
  std::set<std::string> chosen;
};

[[nodiscard]] std::vector<Decision> decisions(const EngineView& view, const Work& work);

}  // namespace weir::e2e
