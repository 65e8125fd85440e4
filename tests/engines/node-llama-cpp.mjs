// node-llama-cpp.mjs MODEL TOKENS [NAME=VALUE ...]: node-llama-cpp generates. gpu=vulkan|cuda|false, gpuLayers=2,
// flashAttention=1, contextSize=1024, batchSize=32: as it has them.
import {getLlama} from "node-llama-cpp";

const [modelPath, tokens, ...given] = process.argv.slice(2);
const settings = [...given, ...(process.env.SETTINGS ?? "").split(" ").filter(Boolean)];
const own = Object.fromEntries(settings.map(one => one.split("=")));
const llama = await getLlama({gpu: own.gpu === "false" ? false : own.gpu ?? "vulkan", build: "never"});
const model = await llama.loadModel({modelPath, gpuLayers: own.gpuLayers === undefined ? "max" : Number(own.gpuLayers)});
const context = await model.createContext({contextSize: Number(own.contextSize ?? 256), flashAttention: own.flashAttention === "1",
  ...(own.batchSize && {batchSize: Number(own.batchSize)})});
const from = performance.now();
let generated = 0;
for await (const token of context.getSequence().evaluate([model.tokens.bos])) {
  if (++generated === Number(tokens)) break;
}
console.log(`${generated} tokens, ${(1000 * generated) / (performance.now() - from)} tokens/s`);
await llama.dispose();
