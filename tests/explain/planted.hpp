// Generates engines, models and changes: the kernels that a token runs on an invented engine, and
// the effect of an injected change. All is derived from a seed and the same on every machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/explain/build.hpp"

namespace weir::explain::test {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}
  // Returns a number from 0 to below - 1.
  std::int64_t roll(std::int64_t below) {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return static_cast<std::int64_t>((state_ >> 11U) % static_cast<std::uint64_t>(below));
  }
  // Returns a roughly normal number with standard deviation 1.
  double noise() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(roll(1'000'000)) / 1e6;
    return sum - 6;
  }

 private:
  std::uint64_t state_;
};

// Names that an engine gives to its kernels.
struct Names {
  std::string gemv, norm, norm_mul, mul, rope, attention, attention_variant, softmax, add, glu, ssm,
      conv, copy;
};
inline const Names& names_of(std::int64_t engine) {
  static const std::vector<Names> k_names = {
      {"mul_mat_vec_q4_k_f32_f32", "rms_norm_f32", "rms_norm_mul_f32", "mul_f32_f32_f32",
       "rope_neox_f32", "flash_attn_f32_f16_aligned", "flash_attn_f32_f16_aligned_cm1",
       "soft_max_f32", "add_f32_f32_f32", "swiglu_f32", "gated_delta_net_f32", "ssm_conv_f32",
       "contig_cpy_f32_f32"},
      {"kernel_mul_mv_q4_K_f32", "kernel_rms_norm_f32_4", "kernel_rms_norm_mul_f32_4",
       "kernel_mul_fuse_f32", "kernel_rope_norm_f16", "kernel_flash_attn_ext_vec_f16_dk128_dv128",
       "kernel_flash_attn_ext_f16_dk128_dv128", "kernel_soft_max_f32_4", "kernel_add_f32_4",
       "kernel_swiglu_f32", "kernel_ssm_scan_f32", "kernel_ssm_conv_f32_f32", "kernel_cpy_f32_f16"},
      {"void mul_mat_vec_q<(ggml_type)12, 1>(void const*)", "void rms_norm_f32<1024, false>(float)",
       "void rms_norm_mul<1024, true>(float)", "void mul<float>(float const*)",
       "void rope_norm<true, float>(int)", "void flash_attn_ext_vec_f16<128, 1>(char const*)",
       "void flash_attn_ext_vec_f16<128, 2>(char const*)", "void soft_max_f32<true>(float)",
       "void add<float>(float const*)", "void silu_mul<float>(float)",
       "void ssm_scan_f32<128>(float)", "void ssm_conv_f32<4>(float)",
       "void cpy_flt<float, half>(char const*)"}};
  return k_names.at(static_cast<std::size_t>(engine));
}

struct World {
  Counts per_token, kernels, cpu_ops;
  Names names;
  ModelFacts model;
  std::vector<std::int64_t> ssm;  // layers with ssm_* tensors
  std::int64_t layers = 0;

  [[nodiscard]] std::int64_t some() const {
    return ssm.empty() ? layers : static_cast<std::int64_t>(ssm.size());
  }
  static void add(Counts& counts, const std::string& name, std::int64_t by) {
    Rational& count = counts[name];
    count = count.plus(by).value_or(count);
    if (count == Rational(0)) counts.erase(name);
  }
  void kernel(const std::string& name, std::int64_t by) {
    add(kernels, name, by);
    add(per_token, "dispatches", by);
  }
  [[nodiscard]] Side side() const { return test::side(per_token, kernels, cpu_ops); }
};

// Draws the names of one to three engines and a dense, hybrid or mixture model of 16 to 80 layers.
inline World world(Dice& dice) {
  World world;
  world.names = names_of(dice.roll(3));
  const bool hybrid = dice.roll(2) == 0;
  const std::int64_t k_layers[] = {16, 24, 28, 32, 36, 48, 64, 80};
  world.layers = k_layers[dice.roll(8)];
  std::vector<std::string> tensors;
  const std::int64_t every = 3 + dice.roll(3);  // one layer in so many attends
  for (std::int64_t i = 0; i < world.layers; ++i) {
    const bool ssm = hybrid && i % every != every - 1;
    if (ssm) world.ssm.push_back(i);
    for (const char* name : {"attn_norm", "ffn_up", "ffn_down"}) {
      tensors.push_back("blk." + std::to_string(i) + "." + name + ".weight");
    }
    for (const char* name : {"ssm_a", "ssm_conv1d"}) {
      if (ssm) tensors.push_back("blk." + std::to_string(i) + "." + name);
    }
    if (!ssm) tensors.push_back("blk." + std::to_string(i) + ".attn_q.weight");
  }
  world.model = model_facts(header(tensors));
  const std::int64_t n = world.layers, s = static_cast<std::int64_t>(world.ssm.size());
  world.kernel(world.names.gemv, 6 * n + s + 1);
  world.kernel(world.names.norm_mul, 2 * n + 1);
  world.kernel(world.names.add, 2 * n);
  world.kernel(world.names.glu, n);
  world.kernel(world.names.rope, 2 * (n - s));
  world.kernel(world.names.attention, n - s);
  if (s > 0) {
    world.kernel(world.names.ssm, s);
    world.kernel(world.names.conv, s);
  }
  world.per_token["barriers"] = 8 * n + 3;
  world.per_token["syncs"] = 1;
  world.per_token["copies"] = 2;
  world.per_token["splits"] = 2;
  world.per_token["cpu_ops"] = 1;
  world.cpu_ops["GET_ROWS"] = 1;
  return world;
}

struct Change {
  const char* name;
  const char* want;
  void (*plant)(World&, Dice&);
};

// Effects of a change; each looks as such a regression did in a real engine.
inline const std::vector<Change>& changes() {
  static const std::vector<Change> k_changes = {
      {"an op of some layers to the CPU", "work_moved_to_cpu",
       [](World& w, Dice&) {
         const std::string kernel = w.ssm.empty() ? w.names.glu : w.names.ssm;
         w.kernel(kernel, -w.some());
         World::add(w.cpu_ops, w.ssm.empty() ? "SWIGLU" : "GATED_DELTA_NET", w.some());
         World::add(w.per_token, "cpu_ops", w.some());
         for (const char* base : {"syncs", "copies", "splits"}) {
           World::add(w.per_token, base, 2 * w.some());
         }
       }},
      {"an op to the CPU, unseen by any probe of ops", "work_moved_to_cpu",
       [](World& w, Dice&) {
         w.cpu_ops.clear();
         w.per_token.erase("cpu_ops");
         w.kernel(w.names.attention, Rational(w.kernels[w.names.attention]).numerator() * -1);
         World::add(w.per_token, "syncs", w.layers);
         World::add(w.per_token, "copies", 2 * w.layers);
         World::add(w.per_token, "barriers", -2 * w.layers);
       }},
      {"half of the layers to the CPU", "work_moved_to_cpu",
       [](World& w, Dice&) {
         for (const auto& [name, count] : Counts(w.kernels)) {
           w.kernel(name, -count.numerator() / 2);
         }
         World::add(w.cpu_ops, "MUL_MAT", 3 * w.layers);
         World::add(w.per_token, "cpu_ops", 3 * w.layers);
         World::add(w.per_token, "barriers", -4 * w.layers);
       }},
      {"an op back to the GPU", "work_moved_to_gpu",
       [](World& w, Dice&) {
         w.kernel("get_rows_f32", 1);
         World::add(w.cpu_ops, "GET_ROWS", -1);
         World::add(w.per_token, "cpu_ops", -1);
         World::add(w.per_token, "splits", -1);
       }},
      {"norm and mul apart", "fusion_lost",
       [](World& w, Dice&) {
         const std::int64_t n = 2 * w.layers + 1;
         w.kernel(w.names.norm_mul, -n);
         w.kernel(w.names.norm, n);
         w.kernel(w.names.mul, n);
         World::add(w.per_token, "barriers", n);
       }},
      {"flash attention off", "fusion_lost",
       [](World& w, Dice&) {
         const std::int64_t n = w.kernels[w.names.attention].numerator();
         w.kernel(w.names.attention, -n);
         w.kernel(w.names.gemv, 2 * n);
         w.kernel(w.names.softmax, n);
         w.kernel(w.names.copy, n);
         World::add(w.per_token, "barriers", 3 * n);
       }},
      {"norm and add fused", "fusion_gained",
       [](World& w, Dice&) {
         w.kernel(w.names.norm_mul, -w.layers);
         w.kernel(w.names.add, -w.layers);
         w.kernel("add_rms_norm_mul_f32", w.layers);
         World::add(w.per_token, "barriers", -w.layers);
       }},
      {"a sync in each layer of a kind", "sync_per_layer",
       [](World& w, Dice& dice) {
         World::add(w.per_token, "syncs", (1 + dice.roll(2)) * w.some());
         World::add(w.per_token, "barriers", 2 * w.some());
       }},
      {"one more sync", "sync_added",
       [](World& w, Dice& dice) { World::add(w.per_token, "syncs", 1 + dice.roll(3)); }},
      {"a barrier after each op", "batching_lost",
       [](World& w, Dice& dice) {
         World::add(w.per_token, "barriers", (1 + dice.roll(4)) * w.layers);
       }},
      {"barriers dropped", "batching_gained",
       [](World& w, Dice& dice) {
         World::add(w.per_token, "barriers", -(1 + dice.roll(4)) * w.layers);
       }},
      {"another variant of attention", "variant_changed",
       [](World& w, Dice&) {
         const std::int64_t n = w.kernels[w.names.attention].numerator();
         w.kernel(w.names.attention, -n);
         w.kernel(w.names.attention_variant, n);
       }},
      {"copies in each layer", "extra_copies",
       [](World& w, Dice& dice) {
         World::add(w.per_token, "copies", (1 + dice.roll(2)) * w.layers);
       }},
      {"the graph cut up", "splits_changed",
       [](World& w, Dice& dice) {
         const std::int64_t more = 2 + 2 * dice.roll(4);
         World::add(w.per_token, "splits", more);
         World::add(w.per_token, "copies", more);
       }},
      {"a conversion in each layer", "op_added",
       [](World& w, Dice& dice) {
         w.kernel("fwht_f32", (1 + dice.roll(2)) * w.some());
         World::add(w.per_token, "barriers", w.some());
       }},
      {"an op that is gone", "op_removed",
       [](World& w, Dice&) { w.kernel(w.names.add, -w.layers); }},
      {"dispatches for each token of context", "grows_with_context",
       [](World& w, Dice&) {
         w.per_token["dispatches_per_context_token"] = *Rational::make(1, 16);
       }},
      {"more at the start", "fixed_cost_changed",
       [](World& w, Dice& dice) {
         World::add(w.per_token, "dispatches_fixed", 10 + dice.roll(90));
       }},
      {"nothing", "", [](World&, Dice&) {}},
  };
  return k_changes;
}

}  // namespace weir::explain::test
