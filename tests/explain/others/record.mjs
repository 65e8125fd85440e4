// record.mjs WEIR PACKAGES [SET…]: counts the engines of tests/engines on device twins, without and with switches of their own, and writes
// a file for each set below. The last column holds the kinds of finding that are true, written down before explain was asked,
// of the switch. PACKAGES/SET/node_modules, or else PACKAGES/node_modules, has the engine; llama.cpp for CUDA is in engines/. A switch that changes
// no count is no pair.
import {execFileSync, spawnSync} from "node:child_process";
import {cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {engines} from "../../engines/engines.mjs";
import {make_model} from "../../engines/onnx_model.mjs";

// NAME=VALUE in capitals is a variable, "model=NAME" a change of tests/engines/onnx_model.mjs, any other one a setting of the script.
const onnx = [
  ["graphOptimizationLevel=disabled", "fusion_lost"],  // Gemm comes apart
  ["model=scale", "op_added"],
  ["model=no-norm", "op_removed"],
  ["model=cpu", "sync_per_layer|sync_added"],  // an op without a kernel
  ["forceCpuNodeNames=layer0.softmax,layer1.softmax,layer2.softmax,layer3.softmax", "work_moved_to_cpu"],
  ["storageBufferCacheMode=disabled", "memory_changed"],
];
const sets = {
  // The 39: llama.cpp, llama.node, whisper.cpp and ONNX Runtime on WebGPU, in combinations of release, GPU, model and length that no other set has.
  "node-llama-cpp-3.2.0": {set: "held_out", engine: "node-llama-cpp", version: "3.2.0", twin: "nvidia-rtx-2080", make: ["--layers", "6"], changes: [
    ["gpuLayers=4", "work_moved_to_cpu"],
    ["contextSize=2048", "memory_changed"],
  ]},
  "node-llama-cpp-3.4.1": {set: "held_out", engine: "node-llama-cpp", version: "3.4.1, q4_0, two layers on the GPU", twin: "intel-arc-a770", from: ["gpuLayers=2"], make: ["--quantization", "q4_0"], changes: [
    ["gpuLayers=5", "work_moved_to_gpu"],
  ]},
  "node-llama-cpp-3.12.0": {set: "held_out", engine: "node-llama-cpp", version: "3.12.0, qwen3", twin: "apple-m2-moltenvk", make: ["--arch", "qwen3", "--quantization", "q8_0"], changes: [
    ["flashAttention=1", "fusion_gained"],
  ]},
  "node-llama-cpp-3.13.0": {set: "held_out", engine: "node-llama-cpp", version: "3.13.0, q4_0", twin: "amd-rx-6900-xt", make: ["--quantization", "q4_0"], changes: [
    ["GGML_VK_DISABLE_INTEGER_DOT_PRODUCT=1", "variant_changed|op_removed"],  // activations are quantized no more
    ["GGML_VK_DISABLE_OPTIMIZE_GRAPH=1", "batching_lost"],  // that release's name of it: ops are not reordered, so that more of them wait for the one before
  ]},
  "node-llama-cpp-3.15.1": {set: "held_out", engine: "node-llama-cpp", version: "3.15.1, gemma3, 32 tokens", twin: "nvidia-rtx-3090", from: ["flashAttention=1"], prompt: {prompt_tokens: 0, tokens: 32},
    make: ["--arch", "gemma3", "--quantization", "q4_0", "--layers", "6"], changes: [
    ["GGML_VK_DISABLE_COOPMAT2=1", "variant_changed"],  // another kernel of attention
    ["GGML_VK_DISABLE_GRAPH_OPTIMIZE=1", "batching_lost"],
  ]},
  "node-llama-cpp-3.16.2": {set: "held_out", engine: "node-llama-cpp", version: "3.16.2", twin: "qualcomm-adreno-750", changes: [
    ["GGML_VK_DISABLE_ASYNC=1", "sync_added"],
  ]},
  "node-llama-cpp-3.18.0": {set: "held_out", engine: "node-llama-cpp", version: "3.18.0, experts", twin: "nvidia-rtx-2080", make: ["--arch", "qwen3moe", "--quantization", "q8_0"], changes: [
    ["GGML_VK_DISABLE_FUSION=1", "fusion_lost"],
  ]},
  "node-llama-cpp-3.19.0": {set: "held_out", engine: "node-llama-cpp", version: "3.19.0, q8_0", twin: "amd-rx-7900-xtx", from: ["flashAttention=1"], make: ["--quantization", "q8_0", "--layers", "6"], changes: [
    ["flashAttention=0", "fusion_lost"],
    ["GGML_VK_MAX_NODES_PER_SUBMIT=12", "submits_changed"],
  ]},
  "node-llama-cpp-3.22.0": {set: "held_out", engine: "node-llama-cpp", version: "3.22.0, gemma3", twin: "intel-arc-a770", make: ["--arch", "gemma3", "--layers", "6"], changes: [
    ["GGML_VK_DISABLE_HOST_VISIBLE_VIDMEM=1", "extra_copies"],  // what is written needs a staging buffer
  ]},
  "node-llama-cpp-3.6.0-cuda": {set: "held_out", engine: "node-llama-cpp-cuda", version: "3.6.0 for CUDA", twin: "nvidia-rtx-3060", changes: [
    ["flashAttention=1", "fusion_gained"],
  ]},
  "node-llama-cpp-3.16.2-cuda": {set: "held_out", engine: "node-llama-cpp-cuda", version: "3.16.2 for CUDA, gemma3", twin: "nvidia-rtx-2080-ti", make: ["--arch", "gemma3", "--quantization", "q8_0", "--layers", "6"], changes: [
    ["GGML_CUDA_DISABLE_FUSION=1", "fusion_lost"],
  ]},
  "llama.cpp-vulkan-cache": {set: "held_out", engine: "llama.cpp-vulkan", version: "v0.5.0 for Vulkan, q4_0", twin: "amd-rx-6900-xt", from: ["-fa", "1"], make: ["--quantization", "q4_0"], changes: [
    ["-nkvo 1", "work_moved_to_cpu"],  // attention goes where the cache is
    ["-ctk q8_0 -ctv q8_0", "variant_changed|memory_changed|op_added"],  // keys and values are rotated before they are quantized
  ]},
  "llama.cpp-vulkan-batches": {set: "held_out", engine: "llama.cpp-vulkan", version: "v0.5.0 for Vulkan, qwen3, prefill of 48", twin: "nvidia-rtx-3090", prompt: {prompt_tokens: 48, tokens: 0},
    make: ["--arch", "qwen3"], changes: [
    ["-ub 12", "batches_changed"],
    ["GGML_VK_DISABLE_COOPMAT=1 GGML_VK_DISABLE_COOPMAT2=1", "variant_changed"],
  ]},
  "llama.cpp-vulkan-mixed": {set: "held_out", engine: "llama.cpp-vulkan", version: "v0.5.0 for Vulkan, q4_k_m, 12 tokens", twin: "arm-mali-g720", prompt: {prompt_tokens: 0, tokens: 12},
    make: ["--quantization", "q4_k_m", "--layers", "6"], changes: [
    ["GGML_VK_SERIALIZE_SUBMISSIONS=1", "sync_added"],
    ["-ot blk.[01].ffn_.*=CPU", "work_moved_to_cpu"],
  ]},
  "llama.cpp-cuda12-cache": {set: "held_out", engine: "llama.cpp-cuda", version: "v0.5.0, qwen3, 24 tokens", twin: "nvidia-h100", from: ["-fa", "1"], prompt: {prompt_tokens: 0, tokens: 24}, make: ["--arch", "qwen3"], changes: [
    ["-ctk q4_0 -ctv q4_0", "variant_changed|memory_changed|op_added"],  // keys and values are rotated before they are quantized
    ["GGML_CUDA_DISABLE_GRAPHS=1", "graphs_lost"],
  ]},
  "llama.cpp-cuda13-layers": {set: "held_out", engine: "llama.cpp-cuda", version: "v0.5.0 for CUDA 13, q8_0", twin: "nvidia-a100", make: ["--quantization", "q8_0", "--layers", "6"], changes: [
    ["-ngl 3", "work_moved_to_cpu"],
    ["-embd 1", "extra_copies"],  // embeddings are read as well as logits
  ]},
  "llama.cpp-cuda12-batches": {set: "held_out", engine: "llama.cpp-cuda", version: "v0.5.0, prefill of 96", twin: "nvidia-l4", prompt: {prompt_tokens: 96, tokens: 0}, make: ["--quantization", "q4_0"], changes: [
    ["-ub 32", "batches_changed"],
    ["-fa 0", "fusion_lost"],
  ]},
  "llama.node-1.4.3": {set: "held_out", engine: "llama.node", version: "1.4.3, q4_0", twin: "intel-arc-b580", make: ["--quantization", "q4_0"], changes: [
    ["flash_attn_type=off", "fusion_lost"],
  ]},
  "llama.node-1.7.15": {set: "held_out", engine: "llama.node", version: "1.7.15, q8_0", twin: "nvidia-rtx-2080", make: ["--quantization", "q8_0", "--layers", "6"], changes: [
    ["n_ctx=2048", "memory_changed"],
  ]},
  "whisper.node-1.1.1": {set: "held_out", engine: "whisper.node", version: "1.1.1", twin: "nvidia-rtx-2080", changes: [
    ["useGpu=0", "work_moved_to_cpu"],
    ["GGML_VK_PERF_LOGGER=1", "sync_added|batching_lost"],
  ]},
  "whisper.node-1.0.18": {set: "held_out", engine: "whisper.node", version: "1.0.18", twin: "apple-m2-moltenvk", changes: [
    ["GGML_VK_DISABLE_F16=1", "variant_changed|code_changed"],  // some kernels for floats have the name of those for halves
  ]},
  "onnxruntime-web-1.25.1": {set: "held_out", engine: "onnxruntime-web", version: "1.25.1", twin: "amd-rx-7900-xtx", changes: [
    ["graphOptimizationLevel=disabled", "fusion_lost"],  // Gemm comes apart
    ["forceCpuNodeNames=layer1.attended", "work_moved_to_cpu"],
    ["preferredOutputLocation=gpu-buffer", "copies_removed|sync_removed"],  // results are not read
  ]},
  "onnxruntime-web-1.21.1": {set: "held_out", engine: "onnxruntime-web", version: "1.21.1", twin: "intel-arc-b580", changes: [
    ["model=scale", "op_added"],
    ["model=cpu", "sync_per_layer|sync_added"],  // an op without a kernel
  ]},
  "onnxruntime-web-1.29.0-plain": {set: "held_out", engine: "onnxruntime-web", version: "1.29.0, not optimized", twin: "qualcomm-adreno-750", from: ["graphOptimizationLevel=disabled"], changes: [
    ["graphOptimizationLevel=all", "fusion_gained"],
    ["model=no-norm", "op_removed"],
  ]},
  // The last 37: the same engines at other releases, GPUs and models.
  "node-llama-cpp-3.5.0": {set: "development", engine: "node-llama-cpp", version: "3.5.0, q8_0", twin: "amd-rx-580", make: ["--quantization", "q8_0", "--layers", "6"], changes: [
    ["gpuLayers=5", "work_moved_to_cpu"],
    ["flashAttention=1", "work_moved_to_cpu"],  // a Vulkan kernel for cooperative matrices 2 alone
  ]},
  "node-llama-cpp-3.7.0": {set: "development", engine: "node-llama-cpp", version: "3.7.0, gemma3, two layers on the GPU", twin: "apple-m2-moltenvk", from: ["gpuLayers=2"],
    make: ["--arch", "gemma3", "--quantization", "q4_0"], changes: [
    ["gpuLayers=4", "work_moved_to_gpu"],
    ["GGML_VK_SUBALLOCATION_BLOCK_SIZE=500000", "memory_changed"],
  ]},
  "node-llama-cpp-3.14.2": {set: "development", engine: "node-llama-cpp", version: "3.14.2, experts", twin: "arm-mali-g720", make: ["--arch", "qwen3moe", "--quantization", "q8_0"], changes: [
    ["GGML_VK_DISABLE_FUSION=1", "fusion_lost"],
    ["flashAttention=1", "fusion_gained"],
  ]},
  "node-llama-cpp-3.17.1": {set: "development", engine: "node-llama-cpp", version: "3.17.1, gemma3", twin: "amd-rx-580", from: ["flashAttention=1"],
    make: ["--arch", "gemma3", "--quantization", "q8_0", "--layers", "6"], changes: [
    ["GGML_VK_PERF_LOGGER=1 GGML_VK_PERF_LOGGER_CONCURRENT=1", "sync_added"],  // waits at the end of each graph for its times, and not between ops
    ["GGML_VK_DISABLE_HOST_VISIBLE_VIDMEM=1", "extra_copies"],
  ]},
  "node-llama-cpp-3.19.1": {set: "development", engine: "node-llama-cpp", version: "3.19.1, qwen3", twin: "arm-mali-g720", make: ["--arch", "qwen3", "--quantization", "q4_0"], changes: [
    ["GGML_VK_DISABLE_GRAPH_OPTIMIZE=1", "batching_lost"],
  ]},
  "node-llama-cpp-3.21.1": {set: "development", engine: "node-llama-cpp", version: "3.21.1, experts, two layers on the GPU", twin: "apple-m2-moltenvk", from: ["gpuLayers=2"],
    make: ["--experts", "4", "--experts-used", "2"], changes: [
    ["gpuLayers=5", "work_moved_to_gpu"],
    ["GGML_VK_SERIALIZE_SUBMISSIONS=1", "sync_added"],
  ]},
  "node-llama-cpp-3.13.0-cuda": {set: "development", engine: "node-llama-cpp-cuda", version: "3.13.0 for CUDA", twin: "nvidia-a100", make: ["--quantization", "q4_0"], changes: [
    ["flashAttention=1", "fusion_gained"],
    ["GGML_CUDA_DISABLE_GRAPHS=1", "graphs_lost"],
  ]},
  "llama.cpp-vulkan-placed": {set: "development", engine: "llama.cpp-vulkan", version: "v0.5.0 for Vulkan, gemma3", twin: "qualcomm-adreno-750", make: ["--arch", "gemma3", "--quantization", "q8_0"], changes: [
    ["-ot token_embd.*=Vulkan0", "work_moved_to_gpu"],  // rows are looked up there
    ["-ctk q5_1 -ctv q5_1", "variant_changed|memory_changed|op_added"],  // keys and values are rotated before they are quantized
    ["--no-warmup", "made_late|fixed_cost_changed"],  // pipelines are made for the first token, and none is generated before
  ]},
  "llama.cpp-vulkan-experts": {set: "development", engine: "llama.cpp-vulkan", version: "v0.5.0 for Vulkan, qwen3moe", twin: "amd-rx-7900-xtx", make: ["--arch", "qwen3moe", "--quantization", "q8_0"], changes: [
    ["GGML_VK_MAX_NODES_PER_SUBMIT=10", "submits_changed"],
    ["-fa 0", "fusion_lost"],
  ]},
  "llama.cpp-vulkan-small": {set: "development", engine: "llama.cpp-vulkan", version: "v0.5.0 for Vulkan, prefill of 6", twin: "nvidia-rtx-5090", prompt: {prompt_tokens: 6, tokens: 0},
    make: ["--quantization", "q5_0"], changes: [
    ["GGML_VK_DISABLE_MMVQ=1", "variant_changed|op_removed"],  // activations are quantized no more
    ["-ub 3", "batches_changed"],
  ]},
  "llama.cpp-vulkan-copied": {set: "development", engine: "llama.cpp-vulkan", version: "v0.5.0 for Vulkan, prefill of 32", twin: "intel-arc-b580", prompt: {prompt_tokens: 32, tokens: 0},
    make: ["--layers", "6"], changes: [
    ["-ot ffn_down.*=CPU", "extra_copies"],  // 32 tokens are enough for the GPU to compute with weights of the CPU's, which are copied for it
  ]},
  "llama.cpp-cuda12-placed": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0", twin: "nvidia-v100", make: ["--quantization", "q8_0", "--layers", "6"], changes: [
    ["-ot ^output.weight=CPU", "work_moved_to_cpu"],
    ["-ot token_embd.*=CUDA0", "work_moved_to_gpu"],
    ["-lm none", "memory_changed|fixed_cost_changed"],  // weights are written through pinned buffers, not from a mapped file
  ]},
  "llama.cpp-cuda13-products": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0 for CUDA 13, prefill of 64", twin: "nvidia-rtx-5090", prompt: {prompt_tokens: 64, tokens: 0}, make: ["--layers", "6"], changes: [
    ["GGML_CUDA_CUBLAS_COMPUTE_TYPE=bf16", "variant_changed|op_added"],  // other products, for which weights are converted
    ["-ub 16", "batches_changed"],
  ]},
  "llama.cpp-cuda13-copied": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0 for CUDA 13, gemma3", twin: "nvidia-rtx-5090", from: ["-ngl", "2"], prompt: {prompt_tokens: 16, tokens: 0},
    make: ["--arch", "gemma3", "--quantization", "q4_0"], changes: [
    ["GGML_OP_OFFLOAD_MIN_BATCH=8", "work_moved_to_gpu|extra_copies"],
  ]},
  "llama.node-1.4.12": {set: "development", engine: "llama.node", version: "1.4.12, gemma3", twin: "nvidia-rtx-3090", from: ["n_ctx=2048"], make: ["--arch", "gemma3", "--quantization", "q8_0", "--layers", "6"], changes: [
    ["swa_full=1", "memory_changed"],  // layers with a window have a whole cache
    ["cache_type_k=q8_0 cache_type_v=q8_0", "variant_changed|memory_changed"],
    ["GGML_VK_DISABLE_GRAPH_OPTIMIZE=1", "batching_lost"],
  ]},
  "whisper.node-1.0.22": {set: "development", engine: "whisper.node", version: "1.0.22", twin: "nvidia-rtx-5090", changes: [
    ["GGML_VK_DISABLE_FUSION=1", "fusion_lost"],
  ]},
  "whisper.node-cuda-1.1.1": {set: "development", engine: "whisper.node-cuda", version: "1.1.1", twin: "nvidia-h100", from: ["useFlashAttn=1"], changes: [
    ["GGML_CUDA_FORCE_CUBLAS_COMPUTE_32F=1", "variant_changed|op_removed"],  // products of floats, whose results are converted no more
    ["GGML_CUDA_DISABLE_FUSION=1", "fusion_lost"],
  ]},
  "onnxruntime-web-1.29.0": {set: "development", engine: "onnxruntime-web", version: "1.29.0", twin: "nvidia-rtx-5090", changes: [
    ["preferredOutputLocation=gpu-buffer", "copies_removed|sync_removed"],  // results are not read
    ["forceCpuNodeNames=layer1.norm2,layer3.norm2", "work_moved_to_cpu"],
  ]},
  "onnxruntime-web-1.27.0": {set: "development", engine: "onnxruntime-web", version: "1.27.0, one op on the CPU", twin: "apple-m2-moltenvk", from: ["forceCpuNodeNames=layer2.softmax"], changes: [
    ["forceCpuNodeNames=", "work_moved_to_gpu"],
    ["model=no-norm", "op_removed"],
  ]},
  // The 40: other releases, GPUs, models and switches.
  "node-llama-cpp-3.9.0": {set: "development", engine: "node-llama-cpp", version: "3.9.0, gemma3", twin: "nvidia-rtx-2080",
    make: ["--arch", "gemma3", "--quantization", "q8_0", "--layers", "6"], changes: [
    ["gpuLayers=4", "work_moved_to_cpu"],
    ["flashAttention=1", "fusion_gained"],
    ["contextSize=2048", "memory_changed"],
  ]},
  "node-llama-cpp-3.16.0": {set: "development", engine: "node-llama-cpp", version: "3.16.0, qwen3", twin: "intel-arc-b580", make: ["--arch", "qwen3", "--quantization", "q4_0"], changes: [
    ["GGML_VK_FORCE_MMVQ=1", "variant_changed|op_added"],  // products of integers, for which activations are quantized first
    ["GGML_VK_DISABLE_FUSION=1", "fusion_lost"],
    ["flashAttention=1", "fusion_gained"],
  ]},
  "node-llama-cpp-3.20.0": {set: "development", engine: "node-llama-cpp", version: "3.20.0, experts", twin: "qualcomm-adreno-750",
    make: ["--arch", "qwen3moe", "--experts-used", "4", "--quantization", "q8_0"], changes: [
    ["GGML_VK_DISABLE_MULTI_ADD=1", "fusion_lost"],  // the sum of the experts comes apart
    ["gpuLayers=3", "work_moved_to_cpu"],
    ["GGML_VK_MAX_NODES_PER_SUBMIT=8", "submits_changed"],
  ]},
  "llama.cpp-vulkan": {set: "development", engine: "llama.cpp-vulkan", version: "v0.5.0 for Vulkan, qwen3", twin: "nvidia-rtx-4090", from: ["-fa", "1"], make: ["--arch", "qwen3"], changes: [
    ["-ctk q4_0 -ctv q4_0", "variant_changed|memory_changed|op_added"],  // keys and values are rotated before they are quantized
    ["-embd 1", "extra_copies"],  // embeddings are read as well as logits
  ]},
  "llama.cpp-vulkan-prefill": {set: "development", engine: "llama.cpp-vulkan", version: "v0.5.0 for Vulkan", twin: "intel-arc-a770", prompt: {prompt_tokens: 4, tokens: 0},
    make: ["--quantization", "q4_0"], changes: [
    ["GGML_VK_DISABLE_INTEGER_DOT_PRODUCT=1", "variant_changed|op_removed"],  // activations are quantized no more
    ["-b 2", "batches_changed"],
  ]},
  "llama.cpp-vulkan-offload": {set: "development", engine: "llama.cpp-vulkan", version: "v0.5.0 for Vulkan", twin: "amd-rx-580", from: ["-ngl", "2"], prompt: {prompt_tokens: 16, tokens: 0}, changes: [
    ["GGML_OP_OFFLOAD_MIN_BATCH=8", "work_moved_to_gpu|extra_copies"],  // the GPU computes layers of the CPU, and their weights are copied for it
  ]},
  "llama.cpp-cuda13-rotated": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0 for CUDA 13, gemma3", twin: "nvidia-rtx-4090", from: ["-fa", "1", "-ctk", "q8_0", "-ctv", "q8_0"],
    make: ["--arch", "gemma3", "--quantization", "q4_0", "--layers", "6"], changes: [
    ["LLAMA_ATTN_ROT_DISABLE=1", "op_removed|copies_removed"],  // no rotations, nor their matrix as an input
  ]},
  "llama.cpp-cuda13-experts": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0 for CUDA 13, qwen3moe", twin: "nvidia-l4", make: ["--arch", "qwen3moe", "--quantization", "q8_0"], changes: [
    ["-fa 0", "fusion_lost"],
    ["GGML_CUDA_ENABLE_UNIFIED_MEMORY=1", "memory_changed"],
  ]},
  "llama.cpp-cuda12-products": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0", twin: "nvidia-rtx-2080-ti", prompt: {prompt_tokens: 48, tokens: 0}, changes: [
    ["GGML_CUDA_CUBLAS_COMPUTE_TYPE=f32", "variant_changed|op_removed"],  // products of floats, for which activations are converted no more
    ["-b 24", "batches_changed"],
  ]},
  "llama.cpp-cuda12-offload": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0", twin: "nvidia-p40", from: ["-ngl", "2"], prompt: {prompt_tokens: 48, tokens: 0}, changes: [
    ["-nopo 1", "work_moved_to_cpu|copies_removed"],  // layers of the CPU are computed there, so that their weights are not copied
  ]},
  "whisper.node-1.0.19": {set: "development", engine: "whisper.node", version: "1.0.19", twin: "amd-rx-7900-xtx", changes: [
    ["useFlashAttn=0", "fusion_lost"],
    ["GGML_VK_DISABLE_COOPMAT=1", "variant_changed"],
  ]},
  "onnxruntime-web-1.22.0": {set: "development", engine: "onnxruntime-web", version: "1.22.0", twin: "intel-arc-a770", changes: [
    ["graphOptimizationLevel=disabled", "fusion_lost"],  // Gemm comes apart
    ["model=no-norm", "op_removed"],
    ["model=cpu", "sync_per_layer|sync_added"],
  ]},
  "onnxruntime-node-1.26.0": {set: "development", engine: "onnxruntime-node", version: "1.26.0", twin: "nvidia-rtx-4090", from: ["graphOptimizationLevel=disabled"], changes: [
    ["graphOptimizationLevel=all", "fusion_gained"],
    ["model=scale", "op_added"],
    ["forceCpuNodeNames=layer2.relu", "work_moved_to_cpu"],
    ["storageBufferCacheMode=simple", "memory_changed"],
  ]},
  "jax-js-0.1.10": {set: "development", engine: "jax-js", version: "0.1.10, not compiled", twin: "qualcomm-adreno-750", from: ["jit=0"], changes: [
    ["jit=1", "fusion_gained"],
    ["clip=1", "op_added"],
  ]},
  "jax-js-0.1.10-read": {set: "development", engine: "jax-js", version: "0.1.10, each layer read", twin: "nvidia-rtx-3090", from: ["read=1"], changes: [
    ["read=", "sync_removed|copies_removed"],
    ["norms=1", "op_removed"],
    ["extra=1", "op_added"],
  ]},
  "tfjs-4.19.0": {set: "development", engine: "tfjs", version: "4.19.0", twin: "nvidia-rtx-3090", from: ["apart=1"], changes: [
    ["apart=", "fusion_gained"],
    ["clip=1", "op_added"],
    ["norms=1", "op_removed"],
    ["WEBGPU_MATMUL_PROGRAM_TYPE=1", "variant_changed|op_added"],  // products in parts, whose sums are set to zero first
    ["WEBGPU_THRESHOLD_TO_INCREASE_WORKGROUPS_FOR_MATMUL=1", "variant_changed|fusion_gained"],  // another product, and patches in the same kernel as it
    ["WEBGPU_DEFERRED_SUBMIT_BATCH_SIZE=60", "submits_changed"],
  ]},
  // The 32: other releases, GPUs, models and switches of the engines below.
  "node-llama-cpp-3.12.4": {set: "development", engine: "node-llama-cpp", version: "3.12.4", twin: "amd-rx-7900-xtx", changes: [
    ["gpuLayers=2", "work_moved_to_cpu"],
    ["flashAttention=1", "fusion_gained"],
    ["GGML_VK_DISABLE_ASYNC=1", "sync_added"],
    ["GGML_VK_PERF_LOGGER=1", "sync_added|batching_lost"],
    ["GGML_VK_DISABLE_HOST_VISIBLE_VIDMEM=1", "extra_copies"],
    ["contextSize=1024", "memory_changed"],
    ["batchSize=32", "memory_changed"],
  ]},
  "node-llama-cpp-3.22.1": {set: "development", engine: "node-llama-cpp", version: "3.22.1", twin: "nvidia-rtx-5090", changes: [
    ["gpuLayers=0", "work_moved_to_cpu"],
    ["flashAttention=1", "fusion_gained"],
    ["GGML_VK_DISABLE_FUSION=1", "fusion_lost"],
    ["GGML_VK_DISABLE_GRAPH_OPTIMIZE=1", "batching_lost"],
    ["GGML_VK_DISABLE_COOPMAT=1 GGML_VK_DISABLE_COOPMAT2=1", "variant_changed"],
    ["GGML_VK_DISABLE_F16=1", "variant_changed"],
    ["GGML_VK_MAX_NODES_PER_SUBMIT=4", "submits_changed|batching_lost"],
    ["contextSize=512", "memory_changed"],
  ]},
  "llama.cpp-cuda13": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0 for CUDA 13, experts", twin: "nvidia-h100", from: ["-fa", "1"],
    make: ["--quantization", "q8_0", "--experts", "4", "--experts-used", "2", "--layers", "6"], changes: [
    ["-ngl 2", "work_moved_to_cpu"],
    ["-ot ffn_.*=CPU", "work_moved_to_cpu"],
    ["GGML_CUDA_DISABLE_FUSION=1", "fusion_lost"],
    ["GGML_CUDA_DISABLE_GRAPHS=1", "graphs_lost"],
  ]},
  "llama.cpp-cuda13-prefill": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0 for CUDA 13", twin: "nvidia-b200", prompt: {prompt_tokens: 32, tokens: 0}, changes: [
    ["-ub 8", "batches_changed"],
    ["-fa 0", "fusion_lost"],
  ]},
  "onnxruntime-web-1.26.0": {set: "development", engine: "onnxruntime-web", version: "1.26.0", twin: "nvidia-rtx-2080", changes: onnx.slice(0, 5)},
  "jax-js-0.1.11": {set: "development", engine: "jax-js", version: "0.1.11", twin: "amd-rx-580", changes: [
    ["jit=0", "fusion_lost"],
    ["norms=1", "op_removed"],
    ["extra=1", "op_added"],
    ["read=1", "sync_added|sync_per_layer|extra_copies"],
  ]},
  "tfjs-4.20.0": {set: "development", engine: "tfjs", version: "4.20.0", twin: "apple-m2-moltenvk", changes: [
    ["transposed=1", "op_added"],
    ["norms=1", "op_removed"],
    ["read=1", "sync_added|sync_per_layer|extra_copies"],
    ["WEBGPU_MATMUL_PROGRAM_TYPE=0", "variant_changed"],
    ["WEBGPU_MATMUL_PROGRAM_TYPE=2", "variant_changed"],
    ["WEBGPU_DEFERRED_SUBMIT_BATCH_SIZE=1", "submits_changed|batching_lost"],
  ]},
  // The first 37.
  "ffmpeg": {set: "development", engine: "ffmpeg", version: "5.1.9", changes: [
    ["FILTERS=avgblur_opencl=2,unsharp_opencl,sobel_opencl", "op_added"],
    ["FILTERS=avgblur_opencl=2", "op_removed"],
    ["FILTERS=avgblur_opencl=2,unsharp_opencl=lx=23:ly=23", "variant_changed"],  // too large for local memory
    ["FILTERS=avgblur_opencl=2,hwdownload,format=yuv420p,unsharp,format=yuv420p,hwupload", "work_moved_to_cpu"],
    ["FILTERS=avgblur_opencl=2,hwdownload,format=yuv420p,hwupload,unsharp_opencl", "extra_copies"],
    ["FILTERS=avgblur_opencl=2,unsharp_opencl,split,overlay_opencl", "op_added"],
    ["SIZE=128x128", "memory_changed"],
  ]},
  "cg": {set: "development", engine: "cg", version: "ViennaCL 1.7.1", changes: [
    ["library=1", "fusion_gained"],  // its solver has kernels that do several steps
    ["ell=1", "variant_changed"],  // another format of the same matrix
    ["preconditioned=1", "op_added"],
    ["fixed_steps=1", "op_removed"],  // no test of the remainder
    ["scaled_apart=1", "op_added|fusion_lost"],
    ["host=1", "work_moved_to_cpu"],
    ["finish=1", "sync_added|sync_per_layer"],
    ["logged=1", "sync_added|sync_per_layer|extra_copies"],  // the result so far is read
    ["kept=1", "extra_copies"],
    ["temporary=1", "memory_changed"],
  ]},
  "sim": {set: "development", engine: "sim", version: "webgpu 0.6.2", twin: "intel-arc-a770", changes: [
    ["forces_joined=1", "fusion_gained"],
    ["brute=1", "variant_changed"],  // another kernel for the same forces
    ["parts=4", "batching_lost"],
    ["collide=1", "op_added"],
    ["open=1", "op_removed"],
    ["sort_on_cpu=1", "work_moved_to_cpu"],
    ["kept=1", "extra_copies"],
    ["checked=1", "sync_added|sync_per_layer"],
    ["wide=64", "code_changed"],
    ["cells=65536", "memory_changed"],
  ]},
  "blas": {set: "development", engine: "blas", version: "CLBlast 1.5.3", changes: [
    ["loop=1", "batching_lost|fusion_lost"],  // a product for each head, not one for all
    ["indirect=1", "variant_changed|op_added"],  // another kernel, for which matrices are padded first
    ["tiles=1", "code_changed"],  // the same kernel with other constants
    ["clear=1", "made_late"],
    ["no_residual=1", "op_removed"],
    ["scale=1", "op_added"],
    ["host=1", "work_moved_to_cpu"],
    ["kept=1", "extra_copies"],
    ["finish=1", "sync_added|sync_per_layer"],
    ["read=1", "sync_added|sync_per_layer|extra_copies"],
    ["temporary=1", "memory_changed"],
  ]},
  // The 44: programs and device APIs that the sets below lack.
  "llama.cpp-cuda12": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0", twin: "nvidia-a100", changes: [
    ["GGML_CUDA_DISABLE_FUSION=1", "fusion_lost"],
    ["GGML_CUDA_DISABLE_GRAPHS=1", "graphs_lost"],
    ["-fa 0", "fusion_lost"],
    ["-ctk q8_0 -ctv q8_0", "variant_changed|memory_changed"],  // kernels for the other type, and less memory
    ["-ngl 2", "work_moved_to_cpu"],
    ["-nkvo 1", "work_moved_to_cpu"],  // attention goes where the cache is
  ]},
  "llama.cpp-cuda12-prefill": {set: "development", engine: "llama.cpp-cuda", version: "v0.5.0", twin: "nvidia-rtx-3060", prompt: {prompt_tokens: 16, tokens: 0}, changes: [
    ["-ub 4", "batches_changed"],
  ]},
  "whisper.node-cuda": {set: "development", engine: "whisper.node-cuda", version: "1.1.3", twin: "nvidia-l4", from: ["useFlashAttn=1"], changes: [
    ["useFlashAttn=0", "fusion_lost"],
    ["useGpu=0", "work_moved_to_cpu"],
    ["GGML_CUDA_DISABLE_GRAPHS=1", "graphs_lost"],
  ]},
  "whisper.node-cuda-plain": {set: "development", engine: "whisper.node-cuda", version: "1.1.3", twin: "nvidia-rtx-4090", changes: [
    ["useFlashAttn=1", "fusion_gained"],
  ]},
  "lm": {set: "development", engine: "lm", version: "webgpu 0.6.2", twin: "amd-rx-580", changes: [
    ["attention_apart=1", "fusion_lost"],
    ["qkv_joined=1", "fusion_gained"],
    ["wait_each=1", "sync_added|sync_per_layer"],  // after each layer
    ["check_each=1", "sync_added|sync_per_layer"],  // a number of each layer is read
    ["read_late=1", "sync_removed"],  // tokens are read at the end
    ["cache_copied=1", "extra_copies"],
    ["params_each=1", "extra_copies"],  // each kernel's parameters are written before it
    ["read_logits=1", "sync_added|extra_copies"],
    ["attention_on_cpu=1", "work_moved_to_cpu"],
    ["pieces=4", "batching_lost"],
    ["vec4=1", "variant_changed"],
    ["group=32", "code_changed"],
    ["submit_each=1", "submits_changed|batching_lost"],  // the same work in more submissions
    ["buffers_each=1", "memory_changed"],
    ["context=1024", "memory_changed"],
    ["compile_each=1", "made_late"],
    ["softcap=1", "op_added"],
    ["no_rotate=1", "op_removed"],
    ["warm=8", "fixed_cost_changed"],
  ]},
  "net": {set: "development", engine: "net", version: "PoCL 3.1", changes: [
    ["bias_apart=1", "fusion_lost"],
    ["direct=1", "fusion_gained"],  // patches and product in one kernel
    ["image=1", "variant_changed"],
    ["pieces=4", "batching_lost"],
    ["dropout=1", "op_added"],
    ["no_mean=1", "op_removed"],
    ["moved=1", "extra_copies"],
    ["read_all=1", "extra_copies"],  // the whole picture instead of its class
    ["finish_block=1", "sync_added|sync_per_layer"],
    ["finish_all=1", "sync_added|sync_per_layer"],
    ["relu_on_cpu=1", "work_moved_to_cpu"],
    ["fast_math=1", "code_changed"],
    ["local=64", "code_changed|variant_changed"],
    ["workspace=1", "memory_changed"],
    ["scratch_each=1", "memory_changed"],
    ["tuned=40", "fixed_cost_changed"],
  ]},

  "llama.node-radeon": {set: "development", engine: "llama.node", version: "1.7.15", twin: "amd-rx-7900-xtx", changes: [
    ["flash_attn_type=off", "fusion_lost"],
    ["n_gpu_layers=2", "work_moved_to_cpu"],
    ["GGML_VK_DISABLE_FUSION=1", "fusion_lost"],
    ["GGML_VK_DISABLE_F16=1", "variant_changed"],
    ["GGML_VK_DISABLE_HOST_VISIBLE_VIDMEM=1", "extra_copies"],  // what is written needs a staging buffer
    ["n_ctx=1024", "memory_changed"],
    ["GGML_VK_MAX_NODES_PER_SUBMIT=4", "submits_changed"],  // the same work in more submissions
  ]},
  "whisper.node-arc": {set: "development", engine: "whisper.node", version: "1.1.3", twin: "intel-arc-a770", changes: [
    ["useFlashAttn=0", "fusion_lost"],
    ["useGpu=0", "work_moved_to_cpu"],
    ["GGML_VK_DISABLE_F16=1", "variant_changed"],
    ["GGML_VK_SERIALIZE_SUBMISSIONS=1", "sync_added"],
  ]},
  "dawn": {set: "development", engine: "dawn", version: "0.6.2", twin: "qualcomm-adreno-750", changes: [["unfused", "fusion_lost"]]},
  "onnxruntime-web": {set: "development", engine: "onnxruntime-web", version: "1.30.0", twin: "amd-rx-6900-xt", changes: onnx},
  "onnxruntime-node": {set: "development", engine: "onnxruntime-node", version: "1.30.0", twin: "nvidia-rtx-3090", changes: onnx},

  // Without names of kernels another kernel and other code of one are the same sight.
  "node-llama-cpp-3.1.1": {set: "development", engine: "node-llama-cpp", version: "3.1.1", twin: "nvidia-rtx-4090", changes: [
    ["gpuLayers=2", "work_moved_to_cpu"],
    ["gpuLayers=0", "work_moved_to_cpu"],
    ["flashAttention=1", "work_moved_to_cpu"],  // no Vulkan kernel in that release
    ["GGML_VK_DISABLE_F16=1", "variant_changed|code_changed"],
    ["contextSize=1024", "memory_changed"],
    ["GGML_VK_FORCE_MAX_ALLOCATION_SIZE=4000000", "memory_changed|fixed_cost_changed"],
  ]},
  "node-llama-cpp-3.6.0-geforce": {set: "development", engine: "node-llama-cpp", version: "3.6.0", twin: "nvidia-rtx-4090", changes: [
    ["flashAttention=1", "fusion_gained"],  // by cooperative matrices 2
    ["GGML_VK_DISABLE_F16=1", "variant_changed|code_changed"],
    ["GGML_VK_PREFER_HOST_MEMORY=1", "copies_removed|memory_changed"],
    ["GGML_VK_SUBALLOCATION_BLOCK_SIZE=1000000", "memory_changed|fixed_cost_changed"],
  ]},
  "node-llama-cpp-3.10.0": {set: "development", engine: "node-llama-cpp", version: "3.10.0", twin: "intel-arc-a770", changes: [
    ["gpuLayers=2", "work_moved_to_cpu"],
    ["flashAttention=1", "fusion_gained"],
    ["GGML_VK_DISABLE_F16=1", "variant_changed|code_changed"],
    ["GGML_VK_PERF_LOGGER=1", "sync_added|batching_lost"],
    ["GGML_VK_PREFER_HOST_MEMORY=1", "copies_removed|memory_changed"],
    ["batchSize=32", "memory_changed"],
    ["contextSize=1024", "memory_changed"],
  ]},
  "node-llama-cpp-3.14.5": {set: "development", engine: "node-llama-cpp", version: "3.14.5", twin: "nvidia-rtx-3090", changes: [
    ["gpuLayers=2", "work_moved_to_cpu"],
    ["gpuLayers=0", "work_moved_to_cpu"],
    ["flashAttention=1", "fusion_gained"],
    ["GGML_VK_DISABLE_FUSION=1", "fusion_lost"],
    ["GGML_VK_DISABLE_GRAPH_OPTIMIZE=1", "batching_lost"],
    ["GGML_VK_PERF_LOGGER=1", "sync_added|batching_lost"],
    ["GGML_VK_DISABLE_ASYNC=1", "sync_added"],
    ["GGML_VK_DISABLE_F16=1", "variant_changed"],
    ["GGML_VK_DISABLE_HOST_VISIBLE_VIDMEM=1", "extra_copies"],
    ["contextSize=1024", "memory_changed"],
  ]},
  "node-llama-cpp-3.18.1": {set: "development", engine: "node-llama-cpp", version: "3.18.1", twin: "amd-rx-6900-xt", changes: [
    ["gpuLayers=2", "work_moved_to_cpu"],
    ["gpuLayers=0", "work_moved_to_cpu"],
    ["flashAttention=1", "fusion_gained"],
    ["GGML_VK_DISABLE_FUSION=1", "fusion_lost"],
    ["GGML_VK_DISABLE_GRAPH_OPTIMIZE=1", "batching_lost"],
    ["GGML_VK_PERF_LOGGER=1", "sync_added|batching_lost"],
    ["GGML_VK_DISABLE_ASYNC=1", "sync_added"],
    ["GGML_VK_DISABLE_HOST_VISIBLE_VIDMEM=1", "extra_copies"],
    ["contextSize=1024", "memory_changed"],
  ]},
  // Before it moved to the C++ of the runtime: kernels written in TypeScript. Its package.json was made to export "./webgpu" to Node.
  "onnxruntime-web-1.20.1": {set: "development", engine: "onnxruntime-web", version: "1.20.1", twin: "arm-mali-g720", changes: onnx.slice(0, 5)},
  "jax-js": {set: "development", engine: "jax-js", version: "0.1.25", twin: "nvidia-rtx-5090", changes: [
    ["jit=0", "fusion_lost"],
    ["clip=1", "variant_changed|code_changed|op_added"],  // fused into a kernel that was there
    ["norms=1", "op_removed"],
    ["extra=1", "op_added"],
    ["read=1", "sync_added|sync_per_layer|extra_copies"],
  ]},
  "tfjs": {set: "development", engine: "tfjs", version: "4.22.0", twin: "intel-arc-b580", changes: [
    ["apart=1", "fusion_lost"],
    ["transposed=1", "op_added"],
    ["clip=1", "op_added"],
    ["norms=1", "op_removed"],
    ["read=1", "sync_added|sync_per_layer|extra_copies"],
    ["WEBGPU_CPU_FORWARD=false", "op_added|work_moved_to_gpu"],
    ["WEBGPU_MATMUL_PROGRAM_TYPE=0", "variant_changed"],
    ["WEBGPU_MATMUL_PROGRAM_TYPE=3", "variant_changed"],
    ["WEBGPU_USE_NAIVE_CONV2D_DEBUG=true", "fusion_gained"],  // patches and product in one kernel
    ["WEBGPU_DEFERRED_SUBMIT_BATCH_SIZE=1", "submits_changed|batching_lost"],  // the same work in more submissions
  ]},
};

// Engines that only pairs are made of. "args" stand before a change's.
const script = engines.dawn.config, bench = {output: "llama-bench", probes: ["cuda", "ggml"],
  command: ["{root}/engines/llama.cpp-cuda12/llama-bench", "-m", "{model}", "-p", "{prompt_tokens}", "-n", "{tokens}", "-r", "{repeats}", "-o", "json", "{args}"]};
const others = {
  "llama.cpp-cuda": {config: bench, model: "gguf", native: true, device: "cuda"},
  "llama.cpp-vulkan": {config: {...bench, probes: ["vulkan", "ggml"], counted_env: {GGML_VK_DEBUG_MARKERS: "1"}, command: bench.command.with(0, "{root}/engines/llama.cpp/llama-bench")},
    model: "gguf", native: true},
  "node-llama-cpp-cuda": {config: {...script, command: ["node", "node-llama-cpp.mjs", "{model}", "{tokens}", "{args}"], probes: ["cuda", "ggml"],
    gpu_code: "node_modules/@node-llama-cpp/linux-x64-cuda/bins/linux-x64-cuda/libggml-cuda.so"}, model: "gguf", device: "cuda", args: ["gpu=cuda"]},
  "whisper.node-cuda": {config: {...script, command: ["node", "whisper.node.mjs", "{model}", "{tokens}", "{args}"], probes: ["cuda", "ggml"],
    gpu_code: "node_modules/@fugood/node-whisper-linux-x64-cuda/index.node"}, model: "whisper", device: "cuda", args: ["lib_variant=cuda"]},
  "ffmpeg": {config: {...script, probes: ["opencl"], command: ["sh", "-c", "ffmpeg -v error -init_hw_device opencl=gpu -filter_hw_device gpu -f lavfi -i testsrc=size=${SIZE:-64x64} " +
    "-vf format=yuv420p,hwupload,${FILTERS:-avgblur_opencl=2,unsharp_opencl},hwdownload,format=yuv420p -frames:v $0 -f null - && echo $0 tokens, 1 tokens/s", "{tokens}"]}, device: "opencl"},
  ...Object.fromEntries(["lm", "sim"].map(name => [name, {config: {...script, command: ["node", `${name}.mjs`, "{model}", "{tokens}", "{args}"]}}])),
  ...Object.fromEntries(["net", "cg", "blas"].map(name => [name, {config: {...script, command: [`./${name}`, "{tokens}", "{args}"], probes: ["opencl"]}, device: "opencl"}])),
};

const here = dirname(fileURLToPath(import.meta.url)), root = join(here, "../../.."), scripts = join(here, "../../engines");
const [weir, packages, ...chosen] = process.argv.slice(2);

// A run's profile, without what tells of a machine.
function counted(folder, native, config_of, change) {
  const words = change.split(" ").filter(Boolean), is_variable = word => /^(GGML_|LLAMA_|FILTERS|SIZE)/.test(word);
  const own = words.filter(word => !is_variable(word) && !word.startsWith("model="));
  const env = Object.fromEntries(words.filter(is_variable).map(word => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]));
  if (!native) env.SETTINGS = own.join(" ");
  writeFileSync(join(folder, "weir.yaml"), JSON.stringify(config_of(native ? own : [])));
  const model = words.find(word => word.startsWith("model="))?.slice(6);
  if (existsSync(join(folder, "onnx"))) writeFileSync(join(folder, "model"), make_model(4, model));
  spawnSync(weir, ["run", "--counts-only", "--quiet", "--json", "run.json"], {cwd: folder, env: {...process.env, ...env}, stdio: ["ignore", "ignore", "inherit"]});
  const [profile] = JSON.parse(readFileSync(join(folder, "run.json"))).profiles;
  if (profile.errors.length > 0) throw new Error(`${change}: ${JSON.stringify(profile.errors)} ${profile.stderr_tail}`);
  const {device_class, lengths} = profile.provenance;
  profile.provenance = {device_class, device_name: "", engine_build: "", fingerprint: "", fingerprint_parts: {}, lengths,
    machine_class: "", machine_name: "", seen_class: "", seen_name: ""};
  delete profile.stderr_tail;
  delete profile.code_facts;  // what is said of code, not whether it is another
  profile.warnings = [];
  return profile;
}

// What of a profile is another: fields, and metrics by their name.
function differs(base, profile) {
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const changed = Object.fromEntries(Object.entries(profile).filter(([field, value]) => !same(value, base[field])));
  const old = Object.fromEntries(base.metrics.map(entry => [entry.metric, entry])), now = new Set(profile.metrics.map(entry => entry.metric));
  const gone = base.metrics.filter(entry => !now.has(entry.metric)).map(entry => ({metric: entry.metric, gone: true}));
  if (changed.metrics) changed.metrics = [...profile.metrics.filter(entry => !same(entry, old[entry.metric])), ...gone];
  return changed;
}

for (const name of chosen.length > 0 ? chosen : Object.keys(sets)) {
  const {set, engine, version, twin, changes, from = [], prompt = {prompt_tokens: 0, tokens: 16}, make = []} = sets[name];
  const {config, model, args = [], native, device = "vulkan"} = engines[engine] ?? others[engine];
  const folder = mkdtempSync(join(tmpdir(), "weir-pairs-"));
  try {
    for (const [of, file] of [scripts, here].flatMap(of => readdirSync(of).map(file => [of, file]))) if (file.endsWith(".mjs")) cpSync(join(of, file), join(folder, file));
    const own = join(packages, name, "node_modules");
    symlinkSync(existsSync(own) ? own : join(packages, "node_modules"), join(folder, "node_modules"));
    if (model === "gguf") execFileSync(weir, ["model", "make", join(folder, "model"), ...make]);
    if (model === "whisper") execFileSync("node", [join(here, "../../e2e/node/hollow_whisper.mjs"), join(folder, "model")]);
    if (model === "onnx") writeFileSync(join(folder, "onnx"), "");
    const source = [["net.c", "cc"], ["cg.cpp", "c++"], ["blas.cpp", "c++"]].find(([file]) => file.startsWith(`${engine}.`));
    if (source) execFileSync(source[1], ["-O1", "-w", "-o", join(folder, engine), join(here, source[0]), ...(engine === "blas" ? ["-lclblast"] : []), "-lOpenCL"]);
    const written = JSON.parse(JSON.stringify(config).replaceAll("{root}", root).replaceAll("cuda12", name.includes("cuda13") ? "cuda13" : "cuda12"));
    const config_of = more => ({version: 1, engines: {[engine]: written}, models: model ? {tiny: "model"} : {none: "/dev/null"},
      backends: {[twin ?? device]: {device, ...(twin && {twin}), ...(device === "vulkan" && {compile: "off"}), args: [...args, ...from, ...more]}},
      prompts: {[prompt.tokens > 0 ? "decode" : "prefill"]: prompt}});
    const take = change => counted(folder, native, config_of, change);
    const base = take("");
    const list = [];
    for (const [change, want] of changes) {
      let profile;
      try { profile = take(change); } catch (error) {
        console.log(`${name}: left out: ${error.message}`);
        continue;
      }
      if (JSON.stringify(profile) === JSON.stringify(base)) console.log(`${name}: ${change} changes nothing: left out`);
      else list.push({switch: change, want, differs: differs(base, profile)});
    }
    const text = JSON.stringify({base, changes: list, device: twin ? `simulated ${twin}` : device, model: engine,
      layers: model === "whisper" ? 2 : others[engine] && !model ? 0 : make.includes("--layers") ? 6 : 4,
      prompt: `decode of ${version}`});
    mkdirSync(join(here, set), {recursive: true});
    writeFileSync(join(here, set, `${name}.json`), text.replaceAll('{"switch"', '\n{"switch"') + "\n");
    console.log(`${name}: ${list.length} pairs`);
  } finally {
    rmSync(folder, {recursive: true, force: true});
  }
}
