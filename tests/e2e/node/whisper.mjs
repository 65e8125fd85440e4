// whisper.mjs MODEL WINDOWS: whisper.node transcribes WINDOWS times 30 s of silence on CUDA.
import {initWhisper} from "@fugood/whisper.node";
const [filePath, windows] = [process.argv[2], Number(process.argv[3])];
const context = await initWhisper({filePath, useGpu: true}, "cuda");
const silence = new ArrayBuffer(30 * 16000 * 2);
const settings = {language: "en", maxThreads: 1, maxContext: 0, temperature: 0, temperatureInc: 0};
const from = performance.now();
let generated = 0;
for (let i = 0; i < windows; ++i) {
  generated += (await context.transcribeData(silence, settings).promise).result.length;
}
console.log(`${generated} tokens, ${(1000 * generated) / (performance.now() - from)} tokens/s`);
await context.release();
