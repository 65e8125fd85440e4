// llama.mjs MODEL TOKENS: node-llama-cpp generates on CUDA.
import {getLlama} from "node-llama-cpp";
const [modelPath, tokens] = [process.argv[2], Number(process.argv[3])];
const llama = await getLlama({gpu: "cuda", build: "never"});
const model = await llama.loadModel({modelPath, gpuLayers: "max"});
const context = await model.createContext({contextSize: 256});
const from = performance.now();
let generated = 0;
for await (const token of context.getSequence().evaluate([model.tokens.bos])) {
  if (++generated === tokens) break;
}
console.log(`${generated} tokens, ${(1000 * generated) / (performance.now() - from)} tokens/s`);
await llama.dispose();
