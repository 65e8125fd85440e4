// onnxruntime-web.mjs MODEL RUNS [NAME=VALUE ...]: onnxruntime-web runs a model RUNS times on WebGPU, which npm's webgpu (Dawn) gives Node.
// NAME=VALUE goes to the session and its provider: graphOptimizationLevel=disabled, forceCpuNodeNames=NAME,NAME. Start Node with --liftoff-only: without it V8 spends minutes on
// optimising the runtime's WebAssembly.
import {readFileSync} from "node:fs";
import {create, globals} from "webgpu";
import * as ort from "onnxruntime-web/webgpu";

const [file, runs, ...given] = process.argv.slice(2);
const settings = [...given, ...(process.env.SETTINGS ?? "").split(" ").filter(Boolean)];
Object.assign(globalThis, globals);
// Labels become names of kernels with this feature of Dawn's alone.
const gpu = create(["backend=vulkan", "enable-dawn-features=use_user_defined_labels_in_backend"]);
Object.defineProperty(globalThis, "navigator", {value: {...globalThis.navigator, gpu}, configurable: true});
// The runtime's memory is shared between threads, which Dawn's Node binding does not take.
const write = GPUQueue.prototype.writeBuffer;
GPUQueue.prototype.writeBuffer = function (buffer, at, data, from, size) {
  const view = ArrayBuffer.isView(data) ? data : new Uint8Array(data);
  return write.call(this, buffer, at, view.slice(from ?? 0, size === undefined ? undefined : (from ?? 0) + size));
};
ort.env.wasm.numThreads = 1;
const own = Object.fromEntries(settings.map(one => one.split("=")));
const provider = {name: "webgpu", ...(own.storageBufferCacheMode && {storageBufferCacheMode: own.storageBufferCacheMode}),
  ...(own.forceCpuNodeNames && {forceCpuNodeNames: own.forceCpuNodeNames.split(",")})};
const session = await ort.InferenceSession.create(readFileSync(file), {executionProviders: [provider], ...own});
const x = new ort.Tensor("float32", Float32Array.from({length: 16 * 64}, (_, i) => Math.sin(i)), [16, 64]);
const from = performance.now();
for (let run = 0; run < Number(runs); ++run) await session.run({x});
console.log(`${runs} tokens, ${(1000 * runs) / (performance.now() - from)} tokens/s`);
process.exit(0);
