// llama.node.mjs MODEL TOKENS [NAME=VALUE ...]: @fugood/llama.node (llama.cpp for Node) generates. NAME=VALUE goes to
// loadModel(): flash_attn_type=off, n_gpu_layers=2.
import {loadModel} from "@fugood/llama.node";
const [model, tokens, ...given] = process.argv.slice(2);
const settings = [...given, ...(process.env.SETTINGS ?? "").split(" ").filter(Boolean)];
const own = Object.fromEntries(settings.map(one => one.split("=")).map(([name, value]) => [name, isNaN(value) ? value : Number(value)]));
const context = await loadModel({model, lib_variant: "vulkan", n_ctx: 256, n_gpu_layers: 99, n_threads: 1, ...own});
const from = performance.now();
const done = await context.completion({prompt: "a", n_predict: Number(tokens), ignore_eos: true, temperature: 1, seed: 1});
const generated = done.tokens_predicted;
console.log(`${generated} tokens, ${(1000 * generated) / (performance.now() - from)} tokens/s`);
await context.release();
