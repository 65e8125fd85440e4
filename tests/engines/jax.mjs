// jax.mjs RUNS [NAME=VALUE ...]: jax-js runs a small transformer RUNS times on WebGPU, which npm's webgpu (Dawn) gives Node. NAME=VALUE: jit=0
// (each op a kernel), clip=1 (one more op a layer), norms=1 (a norm less), read=1 (a result after each layer), extra=1 (one more product a layer).
import {create, globals} from "webgpu";

const [runs, ...given] = process.argv.slice(2);
const settings = [...given, ...(process.env.SETTINGS ?? "").split(" ").filter(Boolean)];
const own = Object.fromEntries(settings.map(one => one.split("=")));
Object.assign(globalThis, globals);
const gpu = create(["backend=vulkan"]);
Object.defineProperty(globalThis, "navigator", {value: {userAgent: "Node", gpu}, configurable: true});
const {init, defaultDevice, jit, nn, numpy: np} = await import("@jax-js/jax");
await init("webgpu");
defaultDevice("webgpu");

const [tokens, width, wide, layers] = [16, 64, 128, 4];
const weight = (...shape) => np.ones(shape).mul(0.01);
const norm = x => {
  const centred = x.ref.sub(np.mean(x, 1, {keepdims: true}));
  return centred.ref.div(np.sqrt(np.mean(np.square(centred), 1, {keepdims: true}).add(1e-5)));
};
const layer = (x, q, k, v, up, down) => {
  const seen = norm(x.ref);
  const scores = np.matmul(np.matmul(seen.ref, q), np.transpose(np.matmul(seen.ref, k)));
  let y = x.add(np.matmul(nn.softmax(scores, 1), np.matmul(seen, v)));
  if (own.clip) y = np.clip(y, -10, 10);
  return y.ref.add(np.matmul(nn.relu(np.matmul(own.norms ? y : norm(y), up)), down));
};
const run_layer = own.jit === "0" ? layer : jit(layer);
const weights = Array.from({length: layers}, () => [weight(width, width), weight(width, width), weight(width, width), weight(width, wide), weight(wide, width)]);
const from = performance.now();
for (let run = 0; run < Number(runs); ++run) {
  let x = np.ones([tokens, width]);
  for (const one of weights) {
    x = run_layer(x, ...one.map(w => w.ref));
    if (own.extra) x = np.matmul(x, one[0].ref);
    if (own.read) await x.ref.data();
  }
  await x.data();
}
console.log(`${runs} tokens, ${(1000 * runs) / (performance.now() - from)} tokens/s`);
process.exit(0);
