// whisper.node.mjs MODEL WINDOWS [NAME=VALUE ...]: @fugood/whisper.node (whisper.cpp for Node) transcribes 30 s of silence WINDOWS times.
// useFlashAttn=1,
// useGpu=0, lib_variant=default: of initWhisper().
import {initWhisper} from "@fugood/whisper.node";

const [filePath, windows, ...given] = process.argv.slice(2);
const settings = [...given, ...(process.env.SETTINGS ?? "").split(" ").filter(Boolean)];
const own = Object.fromEntries(settings.map(one => one.split("=")));
const context = await initWhisper({filePath, useGpu: own.useGpu !== "0", useFlashAttn: own.useFlashAttn === "1"}, own.lib_variant ?? "vulkan");
const silence = new ArrayBuffer(30 * 16000 * 2);
const from = performance.now();
for (let window = 0; window < Number(windows); ++window) {
  await context.transcribeData(silence, {language: "en", maxThreads: 1, maxContext: 0, temperature: 0, temperatureInc: 0}).promise;
}
// What is counted is windows: how many tokens one has is the model's.
console.log(`${windows} tokens, ${(1000 * windows) / (performance.now() - from)} tokens/s`);
await context.release();
