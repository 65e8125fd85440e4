// engines.mjs: what ci/engines knows of each engine. `packages`: of npm, below .cache/engines (ci/engines has their sums); `model`: how one is
// made; `config`: the engine in weir.yaml; `twins`: the descriptions it runs on; `change`: variables that change what the
// engine does, and the kind of finding that has to come first.
export const every_twin = ["amd-rx-580", "amd-rx-6900-xt", "amd-rx-7900-xtx", "apple-m2-moltenvk", "arm-mali-g720", "intel-arc-a770", "intel-arc-b580",
  "nvidia-rtx-2080", "nvidia-rtx-3090", "nvidia-rtx-4090", "nvidia-rtx-5090", "qualcomm-adreno-750"];
const two = ["amd-rx-7900-xtx", "nvidia-rtx-4090"];
const script = (...before) => ({command: ["node", ...before, "{model}", "{tokens}", "{args}"], output: "generic",
  facts: {generated_tokens: {regex: "^(\\d+) tokens"}}, metrics: {decode_tokens_per_second: {regex: "([\\d.]+) tokens/s"}}});
const on_ggml = {probes: ["vulkan", "ggml"], counted_env: {GGML_VK_DEBUG_MARKERS: "1"},
  cpu_ops_allowed: {GET_ROWS: "embedding row: one look-up is cheaper than a dispatch"}};
const settings = text => ({SETTINGS: text});

export const engines = {
  "llama-bench": {native: true, model: "gguf", config: {preset: "llama-bench", program: "{llama}/llama-bench"}, twins: two,
    change: {env: {GGML_VK_DISABLE_FUSION: "1"}, want: "fusion_lost"}},
  "llama-server": {native: true, model: "gguf", config: {preset: "llama-server", program: "{llama}/llama-server"}, twins: ["nvidia-rtx-4090"],
    prompts: {chat: {text: "The quick brown fox", tokens: 16}}, change: {env: {GGML_VK_DISABLE_FUSION: "1"}, want: "fusion_lost"}},
  "node-llama-cpp": {model: "gguf", config: {...script("node-llama-cpp.mjs"), ...on_ggml}, twins: two,
    change: {env: settings("gpuLayers=2"), want: "work_moved_to_cpu"}},
  "llama.node": {model: "gguf", config: {...script("llama.node.mjs"), ...on_ggml}, twins: two,
    change: {env: settings("flash_attn_type=off"), want: "fusion_lost"}},
  "whisper.node": {model: "whisper", config: {...script("whisper.node.mjs"), ...on_ggml}, args: ["useFlashAttn=1"], twins: ["nvidia-rtx-4090"],
    change: {env: settings("useFlashAttn=0"), want: "fusion_lost"}},
  "dawn": {config: {...script("dawn.mjs"), probes: ["vulkan"], command: ["node", "dawn.mjs", "{tokens}"]}, twins: every_twin,
    change: {env: settings("unfused"), want: "fusion_lost"}},
  "onnxruntime-web": {model: "onnx", config: {...script("--liftoff-only", "onnxruntime-web.mjs"), probes: ["vulkan"]}, twins: every_twin,
    change: {env: settings("graphOptimizationLevel=disabled"), want: "fusion_lost"}},
  "onnxruntime-node": {model: "onnx", config: {...script("onnxruntime-node.mjs"), probes: ["vulkan"]}, twins: two,
    change: {env: settings("graphOptimizationLevel=disabled"), want: "fusion_lost"}},
  "tfjs": {config: {...script("tfjs.mjs"), probes: ["vulkan"], command: ["node", "tfjs.mjs", "{tokens}"]}, twins: two,
    change: {env: settings("transposed=1"), want: "op_added"}},
  "jax-js": {config: {...script("jax.mjs"), probes: ["vulkan"], command: ["node", "jax.mjs", "{tokens}"]}, twins: two,
    change: {env: settings("extra=1"), want: "op_added"}},
  "clpeak": {native: true, prompts: {latency: {text: "--kernel-latency", tokens: 0}}, device: "opencl",
    config: {command: ["sh", "-c", "for i in $(seq $0); do clpeak $1 $SETTINGS; done", "{repeats}", "{prompt}"], output: "generic", probes: ["opencl"],
      metrics: {kernel_latency_seconds: {regex: "Kernel launch latency : ([\\d.]+) us", unit: "us", better: "lower"}}},
    change: {env: settings("--global-bandwidth"), want: "op_added"}},
};
