// The engine's rules for a device, as the engine sees it.
#include "tests/e2e/llama_rules.hpp"

namespace weir::e2e {
namespace {

using Architecture = EngineView::Architecture;

struct Row {  // for a matrix that is multiplied with one vector
  const char* type;
  std::uint32_t length;
  friend auto operator<=>(const Row&, const Row&) = default;
};

// The model recipe (gate/model/make.cpp) and llama.cpp's graph: in a prefill, what comes
// behind the last layer's attention is done for the last token alone.
std::vector<Row> vector_rows(const Work& work) {
  if (work.model == "tiny-llama") return {{"f16", 256}, {"f16", 768}};
  const std::uint32_t wide = work.model == "wide" ? 8192 : 768;
  std::vector<Row> rows{{"q4_k", 256}, {"q6_k", 256}, {"q6_k", wide}};
  if (work.prompt == 0) rows.push_back({"q4_k", wide});  // ffn_down of the less sensitive layers
  return rows;
}

// ggml_vk_should_use_mmvq, for Q4_K and Q6_K and one vector.
bool quantizes_vector(const EngineView& view, const Row& row) {
  const std::string type = row.type;
  if (!view.integer_dot || type == "f16") return false;
  if (type == "q6_k" && view.vendor != k_intel) return false;
  switch (view.vendor) {
    case k_nvidia:
      return row.length > 4096;
    case k_amd:
      return row.length >= 2048;
    case k_intel:
      return (view.architecture == Architecture::xe2 && type == "q6_k") || row.length >= 2048;
    default:
      return true;
  }
}

// ggml_vk_matmul_shmem_support for the large tile: two blocks of numbers must fit.
bool large_tile_fits(const EngineView& view) {
  const bool wider = view.vendor == k_intel && view.coopmat;
  const std::uint32_t edges = wider ? 128 + 256 : 128 + 128, depth = 32 + (view.coopmat ? 8 : 1);
  return edges * depth * (view.fp16 ? 2 : 4) <= view.shared_memory;
}

// Which of the tile sizes s, m and l there are (ggml_vk_get_device, "Disable matmul tile sizes
// early"; the middle one fits everywhere), and which is taken (ggml_vk_load_shaders,
// matmul_tile_selector) for a matrix of 128 rows or more. Its place among those that there are ends
// the kernel's name.
struct Tile {
  char size;
  int place;
};

Tile choose_tile(const EngineView& view, std::uint32_t columns) {
  if (view.coopmat2) return columns > 64 ? Tile{'m', 1} : Tile{'s', 0};
  if (view.vendor == k_apple) return {'m', 0};
  const bool no_large = ((view.vendor == k_amd || view.vendor == k_intel) && !view.coopmat) ||
                        view.vendor == k_qualcomm || !large_tile_fits(view);
  if (columns <= 32) return {'s', 0};
  return columns <= 64 || no_large ? Tile{'m', 1} : Tile{'l', 2};
}

// ggml_vk_guess_split_k for Q4_K, 256 rows of 8192.
bool splits_matrix(const EngineView& view, const Work& work) {
  if (work.model != "wide" || view.cores == 0) return false;
  const Tile tile = choose_tile(view, work.prompt);
  std::uint32_t rows = tile.size == 's' ? 32 : tile.size == 'm' ? 64 : 128;
  std::uint32_t columns = rows;
  if (view.coopmat2) {
    rows = tile.size == 's' ? 32 : 128;
    columns = tile.size == 's' ? 64 : 128;
  } else if (view.vendor == k_intel && view.coopmat && tile.size == 'l') {
    columns = 256;
  }
  const auto over = [](std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; };
  const std::uint32_t tiles = over(256, rows) * over(work.prompt, columns);
  return work.prompt >= columns && tiles <= view.cores * 2 / 3;
}

std::set<std::string> flash_kernels(const EngineView& view, const Work& work) {
  // get_fa_tuning_params. Decoding, too, has two rows: the heads that share keys and values.
  if (view.coopmat2) return {"flash_attn_f32_f16_aligned_f32acc_cm2"};
  // ggml_vk_flash_attn, xe_fa_opt: where the work is split over keys, which decoding always is.
  if (view.architecture == Architecture::xe2 && work.prompt == 0) {
    return {"xe_fa_decode_ph1", "xe_fa_decode_ph2", "f32_to_f16"};
  }
  if (view.coopmat_flash && view.architecture != Architecture::turing) {
    return {"flash_attn_f32_f16_aligned_cm1"};
  }
  return {"flash_attn_f32_f16_aligned"};
}

// ggml_vk_flash_attn, split_k: where there are fewer workgroups than twice the cores.
bool splits_flash(const EngineView& view, const Work& work) {
  const std::set<std::string> kernels = flash_kernels(view, work);
  if (work.prompt == 0) return !kernels.contains("xe_fa_decode_ph1");
  const bool cm2 = kernels.contains("flash_attn_f32_f16_aligned_f32acc_cm2");
  const bool cm1 = kernels.contains("flash_attn_f32_f16_aligned_cm1");
  const std::uint32_t rows = cm2 ? 64 : cm1 ? 16 : 4;  // block_rows, for up to 1023 keys
  const std::uint32_t groups = (work.prompt + rows - 1) / rows * 4;
  const bool doubled = view.vendor == k_intel && view.architecture != Architecture::xe2;
  const std::uint32_t cores = view.cores == 0 ? 16 : view.cores * (doubled ? 2 : 1);
  return groups < cores * 2 && cores * 2 / groups > 1;
}

// ggml_vk_get_mul_mat_mat_f16acc, ggml_vk_get_mul_mat_mat_pipeline_map and ggml_vk_mul_mat_q_f16.
std::set<std::string> matrix_kernels(const EngineView& view, const Work& work) {
  if (work.prompt == 0) return {};
  const std::string place = std::to_string(choose_tile(view, work.prompt).place);
  const bool quantized = work.model != "tiny-llama";
  const bool f16acc =
      (quantized && view.coopmat2) || (view.fp16 && (!view.coopmat || view.coopmat_f16acc));
  const std::string tail = (f16acc ? "_f16acc_aligned_" : "_aligned_") + place;
  if (!quantized) {
    return {view.coopmat2 ? "matmul_f16" + tail : "matmul_f16_f32" + tail};
  }
  if (view.coopmat2) return {"matmul_q4_k_f16" + tail, "matmul_quant_f16" + tail};
  if (view.coopmat) return {"matmul_quant_f16" + tail};
  if (view.integer_dot) return {"matmul_q4_k_q8_1_" + place, "matmul_q6_k_q8_1_" + place};
  return {"matmul_quant_f32" + tail};
}

// ggml_vk_mul_mat_q_f16, y_non_contig and quantize_y; ggml_vk_mul_mat_vec_q_f16, quantize_y.
std::set<std::string> input_kernels(const EngineView& view, const Work& work) {
  std::set<std::string> out;
  const bool quantized = work.model != "tiny-llama";
  if (work.prompt > 0 && (view.coopmat2 || (view.coopmat && quantized))) {
    out.insert("contig_cpy_f32_f16");
  } else if (work.prompt > 0 && quantized && view.integer_dot) {
    out.insert("quantize_q8_1_x4");
  }
  for (const Row& row : vector_rows(work)) {
    if (quantizes_vector(view, row)) out.insert("quantize_q8_1_x4");
  }
  return out;
}

std::set<std::string> vector_kernels(const EngineView& view, const Work& work) {
  std::set<std::string> out;
  for (const Row& row : vector_rows(work)) {
    out.insert(std::string("mul_mat_vec_") + row.type +
               (quantizes_vector(view, row) ? "_q8_1_f32" : "_f32_f32"));
  }
  return out;
}

// ggml_vk_build_graph, add_rms_fusion: one row, and not on Intel. (gemma3 adds behind norms.)
std::set<std::string> norm_kernels(const EngineView& view, const Work& work) {
  if (work.model == "tiny-gemma3") return {};
  const bool fuses = view.subgroup_arithmetic && view.vendor != k_intel;
  if (fuses) return {"add_rms_f32_f32_f32_norepeat", "rms_norm_mul_partials_f32"};
  return {};
}

}  // namespace

std::vector<std::string> wide_model_options() {
  return {"--arch", "llama", "--quantization", "q4_k_m", "--layers", "2", "--ff", "8192"};
}

std::vector<Decision> decisions(const EngineView& view, const Work& work) {
  const auto only_if = [](bool so, const char* kernel) {
    return so ? std::set<std::string>{kernel} : std::set<std::string>{};
  };
  return {
      {"flash attention", "flash_attn_.*|xe_fa_.*|f32_to_f16", flash_kernels(view, work)},
      {"flash attention split over keys", "fa_split_k_reduce",
       only_if(splits_flash(view, work), "fa_split_k_reduce")},
      {"matrix by matrix", "matmul_.*", matrix_kernels(view, work)},
      {"matrix by matrix split over rows", "split_k_reduce",
       only_if(work.prompt > 0 && splits_matrix(view, work), "split_k_reduce")},
      {"matrix by vector", "mul_mat_vec_.*", vector_kernels(view, work)},
      {"what becomes of the input first", "contig_cpy_.*|quantize_.*", input_kernels(view, work)},
      {"norms", "add_rms_.*|rms_norm_mul_partials_.*", norm_kernels(view, work)},
  };
}

}  // namespace weir::e2e
