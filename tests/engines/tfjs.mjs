// tfjs.mjs RUNS [NAME=VALUE ...]: TensorFlow.js runs a small transformer RUNS times on WebGPU, which npm's webgpu (Dawn) gives Node.
// NAME=VALUE is a flag of its own (WEBGPU_CPU_FORWARD=false) or a change of the model: apart=1 (bias and relu in ops of
// their own), transposed=1 (keys transposed by an op), read=1 (a result after each layer), clip=1 (one more op a layer), norms=1 (one less).
import {create, globals} from "webgpu";

const [runs, ...given] = process.argv.slice(2);
const settings = [...given, ...(process.env.SETTINGS ?? "").split(" ").filter(Boolean)];
const own = Object.fromEntries(settings.map(one => one.split("=")));
Object.assign(globalThis, globals);
// Labels become names of kernels with this feature of Dawn's alone.
const gpu = create(["backend=vulkan", "enable-dawn-features=use_user_defined_labels_in_backend"]);
Object.defineProperty(globalThis, "navigator", {value: {...globalThis.navigator, gpu}, configurable: true});
GPUAdapter.prototype.requestAdapterInfo ??= async function () { return this.info; };  // asked by releases before 4.22
const {default: tf} = await import("@tensorflow/tfjs-core");
await import("@tensorflow/tfjs-backend-webgpu");
for (const [name, value] of Object.entries(own)) if (name.startsWith("WEBGPU_")) tf.env().set(name, isNaN(value) ? value === "true" : Number(value));
await tf.setBackend("webgpu");
await tf.ready();

const [tokens, width, wide, layers] = [16, 64, 128, 4];
const weight = (...shape) => tf.randomUniform(shape, -0.1, 0.1, "float32", 1);
const filter = weight(3, 3, 4, width);
const weights = Array.from({length: layers}, () => ({
  parts: Array.from({length: 4}, () => [weight(width, width), weight(width)]), up: [weight(width, wide), weight(wide)], down: [weight(wide, width), weight(width)]}));
const linear = (a, [b, bias], activation = "linear") => {
  if (!own.apart) return tf.fused.matMul({a, b, bias, activation});
  const sum = tf.add(tf.matMul(a, b), bias);
  return activation === "relu" ? tf.relu(sum) : sum;
};
const norm = x => {
  const {mean, variance} = tf.moments(x, 1, true);
  return tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5)));
};
const layer = (x, {parts, up, down}, mask) => {
  const [q, k, v] = parts.slice(0, 3).map(one => linear(norm(x), one));
  const scores = own.transposed ? tf.matMul(q, tf.transpose(k)) : tf.matMul(q, k, false, true);
  x = tf.add(x, linear(tf.matMul(tf.softmax(tf.add(scores, mask)), v), parts[3]));
  if (own.clip) x = tf.clipByValue(x, -10, 10);
  return tf.add(x, linear(linear(own.norms ? x : norm(x), up, "relu"), down));
};
const from = performance.now();
for (let run = 0; run < Number(runs); ++run) {
  tf.engine().startScope();
  const image = tf.zeros([1, 8, 8, 4]), mask = tf.mul(tf.sub(tf.tensor1d(Array.from({length: tokens}, (_, i) => i)), tf.scalar(run)), tf.scalar(0.01));
  let x = tf.reshape(tf.conv2d(image, filter, 2, "same"), [tokens, width]);
  for (const one of weights) {
    x = layer(x, one, mask);
    if (own.read) await x.data();
  }
  await x.data();
  tf.engine().endScope();
}
console.log(`${runs} tokens, ${(1000 * runs) / (performance.now() - from)} tokens/s`);
process.exit(0);
