// Builds evidence and models for tests in a few words.
#pragma once

#include <map>
#include <string>

#include "gate/explain/explain.hpp"

namespace weir::explain::test {

using Counts = std::map<std::string, Rational>;

inline Side side(const Counts& per_token, const Counts& kernels = {}, const Counts& cpu_ops = {}) {
  Side side;
  for (const auto& [base, count] : per_token) {
    side.metrics[unit::find_metric(base) ? base : base + "_per_token"].exact = count;
  }
  for (const auto& [name, count] : kernels) {
    Work work;
    work.name = name;
    work.times = count;
    side.works.push_back(work);
  }
  for (const auto& [name, count] : cpu_ops) {
    Work work;
    work.kind = Work::Kind::op;
    work.name = name;
    work.on_cpu = true;
    work.times = count;
    side.works.push_back(work);
  }
  return side;
}

inline Evidence evidence(Side before, Side after) {
  Evidence evidence;
  evidence.cell = "llama.cpp/tiny/vulkan/decode";
  evidence.device = "vulkan";
  const auto any = [](const Side& side, Work::Kind kind) {
    for (const Work& work : side.works) {
      if (work.kind == kind) return true;
    }
    return false;
  };
  evidence.kernels_known = any(before, Work::Kind::kernel) || any(after, Work::Kind::kernel);
  evidence.cpu_ops_known = any(before, Work::Kind::op) || any(after, Work::Kind::op);
  evidence.before = std::move(before);
  evidence.after = std::move(after);
  return evidence;
}

// Counts of dispatches, barriers and syncs, as in "690 / 690 / 1".
inline Side counts(std::int64_t dispatches, std::int64_t barriers, std::int64_t syncs) {
  return side({{"dispatches", dispatches}, {"barriers", barriers}, {"syncs", syncs}});
}

// Builds a header with tensors of these names.
inline model::GgufHeader header(const std::vector<std::string>& tensors) {
  model::GgufHeader gguf_header;
  gguf_header.metadata.emplace_back("general.architecture", model::GgufValue::string("test"));
  for (const std::string& name : tensors) gguf_header.tensors.push_back({name, {256}, 0, 0});
  return gguf_header;
}

// Builds a model of 24 layers as in Qwen3.5: every third layer has attention (8), the others are
// DeltaNet with tensors ssm_* (16).
inline ModelFacts qwen(std::int64_t layers = 24) {
  std::vector<std::string> tensors = {"token_embd.weight", "output.weight"};
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    const auto add = [&](std::initializer_list<const char*> names) {
      for (const char* name : names) tensors.push_back(block + name + ".weight");
    };
    add({"attn_norm", "ffn_up", "ffn_gate", "ffn_down", "post_attention_norm"});
    if (i % 3 == 2) {
      add({"attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm", "attn_k_norm"});
    } else {
      add({"attn_qkv", "attn_gate", "ssm_a", "ssm_conv1d", "ssm_alpha", "ssm_beta", "ssm_out"});
    }
  }
  return model_facts(header(tensors));
}

inline ModelFacts plain_model(std::int64_t layers) {
  ModelFacts facts;
  facts.layers = layers;
  return facts;
}

inline Explanation explained(Side before, Side after, const ModelFacts* model = nullptr) {
  return explain(evidence(std::move(before), std::move(after)), model, {default_bands(), {}});
}

inline const Finding* best(const Explanation& explanation) {
  return explanation.findings.empty() ? nullptr : &explanation.findings.front();
}

}  // namespace weir::explain::test
