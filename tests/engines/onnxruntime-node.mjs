// onnxruntime-node.mjs MODEL RUNS [NAME=VALUE ...]: onnxruntime-node runs a model RUNS times. provider=webgpu|cpu; any other NAME=VALUE
// goes to the session and its provider: graphOptimizationLevel=disabled, forceCpuNodeNames=NAME,NAME.
import ort from "onnxruntime-node";

const [file, runs, ...given] = process.argv.slice(2);
const settings = [...given, ...(process.env.SETTINGS ?? "").split(" ").filter(Boolean)];
const {provider = "webgpu", ...own} = Object.fromEntries(settings.map(one => one.split("=")));
const given_to = {name: provider, ...(own.storageBufferCacheMode && {storageBufferCacheMode: own.storageBufferCacheMode}),
  ...(own.forceCpuNodeNames && {forceCpuNodeNames: own.forceCpuNodeNames.split(",")})};
const session = await ort.InferenceSession.create(file, {executionProviders: [given_to], intraOpNumThreads: 1, ...own});
const x = new ort.Tensor("float32", Float32Array.from({length: 16 * 64}, (_, i) => Math.sin(i)), [16, 64]);
const from = performance.now();
for (let run = 0; run < Number(runs); ++run) await session.run({x});
console.log(`${runs} tokens, ${(1000 * runs) / (performance.now() - from)} tokens/s`);
