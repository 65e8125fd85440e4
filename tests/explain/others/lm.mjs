// lm.mjs FILE TOKENS [NAME=VALUE …]: a small language model on WebGPU, as an engine in a page would run it, for Deno (wgpu) and for
// Node with npm's webgpu (Dawn): four layers of norm, query, key and value, rotation, attention, feed-forward; then the
// likeliest token, read back. NAME=VALUE, also in SETTINGS, makes one change each, as a commit would: see `on` below.
const deno = globalThis.Deno;
const [, tokens, ...given] = deno ? deno.args : process.argv.slice(2);
const env = (deno ? deno.env.get("SETTINGS") : process.env.SETTINGS) ?? "";
const own = Object.fromEntries([...given, ...env.split(" ").filter(Boolean)].map(setting => setting.split("=")));
const on = name => own[name] === "1";
let gpu = globalThis.navigator?.gpu;
if (!deno) {
  const {create, globals} = await import("webgpu");
  Object.assign(globalThis, globals);
  gpu = create(["backend=vulkan", "enable-dawn-features=use_user_defined_labels_in_backend"]);
}
const adapter = await gpu.requestAdapter();
if (adapter === null) throw new Error("no adapter");
const device = await adapter.requestDevice();
const layers = 4, width = 64, wide = 128, words = 256, context = Number(own.context ?? 64), group = Number(own.group ?? 64);
const {STORAGE, COPY_SRC, COPY_DST, MAP_READ} = GPUBufferUsage;
const buffer = (count, usage = STORAGE | COPY_SRC | COPY_DST) => device.createBuffer({size: 4 * count, usage});

// Each kernel reads a and b and writes c; what it computes is roughly the model's.
const bodies = {
  rms_norm: "c[i] = a[i] * inverseSqrt(1e-5 + a[i] * a[i]);",
  scale_by_weight: "c[i] = c[i] * b[i];",
  rms_norm_scale: "c[i] = a[i] * inverseSqrt(1e-5 + a[i] * a[i]) * b[i];",
  gemv: "var s = 0.0; for (var k = 0u; k < 64u; k++) { s += a[k] * b[k]; } c[i] = s;",
  gemv_vec4: "var s = vec4f(); for (var k = 0u; k < 64u; k += 4u) { s += vec4f(a[k], a[k + 1], a[k + 2], a[k + 3]) * b[k]; } c[i] = dot(s, vec4f(1));",
  gemv_qkv: "var s = vec3f(); for (var k = 0u; k < 64u; k++) { s += vec3f(a[k]) * b[k]; } c[i] = s.x + s.y + s.z;",
  gemv_silu: "var s = 0.0; for (var k = 0u; k < 64u; k++) { s += a[k] * b[k]; } c[i] = s / (1.0 + exp(-s));",
  silu: "c[i] = c[i] / (1.0 + exp(-c[i]));",
  gemv_add: "var s = c[i]; for (var k = 0u; k < 64u; k++) { s += a[k] * b[k]; } c[i] = s;",
  rotate: "let t = f32(i); c[i] = c[i] * cos(t) - a[i] * sin(t) + b[i];",
  attention: "var s = 0.0; for (var k = 0u; k < 64u; k++) { s += exp(a[k] * b[k]); } c[i] = s;",
  attention_scores: "c[i] = a[i] * b[i];",
  softmax: "c[i] = exp(c[i]);",
  softcap: "c[i] = 30.0 * tanh(c[i] / 30.0);",
  argmax: "var best = 0u; for (var k = 0u; k < 256u; k++) { if (a[k] > a[best]) { best = k; } } c[0] = f32(best) + b[0];",
};
const pipelines = {};
function kernel(label) {
  const head = ["read", "read", "read_write"].map((mode, i) => `@group(0) @binding(${i}) var<storage, ${mode}> ${"abc"[i]}: array<f32>;`).join("\n");
  const use = `let all = arrayLength(&a) + arrayLength(&b); if (i > all) { return; }`;
  const code = `${head}\n@compute @workgroup_size(${group}) fn main(@builtin(global_invocation_id) id: vec3u) { let i = id.x; ${use} ${bodies[label]} }`;
  const module = device.createShaderModule({code, label});
  return device.createComputePipeline({layout: "auto", compute: {module, entryPoint: "main"}, label});
}
const pipeline = label => on("compile_each") && label === "attention" ? kernel(label) : pipelines[label] ??= kernel(label);

const weights = buffer(wide * width), x = buffer(words), y = buffer(words), z = buffer(words), best = buffer(1);
const cache = Array.from({length: layers}, () => buffer(context * width));
const spare = buffer(context * width), readback = buffer(words, MAP_READ | COPY_DST), params = buffer(16);
let work, pass;
const begin = () => work ??= device.createCommandEncoder();
const close = () => { pass?.end(); pass = undefined; };
function submit() {
  close();
  if (work) device.queue.submit([work.finish()]);
  work = undefined;
}
function run(label, a, b, c, size = width) {
  if (on("params_each")) submit(), device.queue.writeBuffer(params, 0, new Float32Array(16));
  const compute = pass ??= begin().beginComputePass(), chosen = pipeline(label);
  compute.setPipeline(chosen);
  const entries = [a, b, c].map((buffer, binding) => ({binding, resource: {buffer}}));
  compute.setBindGroup(0, device.createBindGroup({layout: chosen.getBindGroupLayout(0), entries}));
  compute.dispatchWorkgroups(Math.ceil(size / group));
}
async function read(from, count) {
  close();
  begin().copyBufferToBuffer(from, 0, readback, 0, 4 * count);
  submit();
  await readback.mapAsync(GPUMapMode.READ);
  const got = new Float32Array(readback.getMappedRange(0, 4 * count).slice(0));
  readback.unmap();
  return got;
}
const norm = (from, to) => on("norm_apart") ? (run("rms_norm", from, weights, to), run("scale_by_weight", from, weights, to))
  : run("rms_norm_scale", from, weights, to);
const gemv = on("vec4") ? "gemv_vec4" : "gemv";
async function layer(kv) {
  norm(x, y);
  if (on("qkv_joined")) run("gemv_qkv", y, weights, kv, 3 * width);
  else for (const to of [z, kv, kv]) run(gemv, y, weights, to);
  if (!on("no_rotate")) run("rotate", y, weights, z), run("rotate", y, weights, kv);
  if (on("cache_copied")) close(), begin().copyBufferToBuffer(kv, 0, spare, 0, 4 * width);
  if (on("attention_apart")) run("attention_scores", kv, z, y), run("softmax", kv, z, y), run("gemv", kv, z, y);
  else if (on("attention_on_cpu")) device.queue.writeBuffer(y, 0, (await read(kv, width)).map(Math.exp));
  else run("attention", kv, z, y);
  run("gemv_add", y, weights, x);
  norm(x, y);
  if (on("silu_apart")) run(gemv, y, weights, z, wide), run("silu", y, weights, z, wide);
  else for (let from = 0, part = wide / Number(own.pieces ?? 1); from < wide; from += part) run("gemv_silu", y, weights, z, part);
  run("gemv_add", z, weights, x);
  if (on("softcap")) run("softcap", y, weights, x);
  if (on("submit_each")) submit();
  if (on("wait_each")) submit(), await device.queue.onSubmittedWorkDone();
  if (on("check_each")) await read(x, 1);
}
for (let warm = 0; warm < Number(own.warm ?? 0); ++warm) for (const kv of cache) await layer(kv), submit();
const from = performance.now();
for (let token = 0; token < Number(tokens); ++token) {
  if (on("buffers_each")) for (let i = 0; i < layers; ++i) cache[i] = buffer(context * width);
  for (const kv of cache) await layer(kv);
  norm(x, y);
  run(gemv, y, weights, z, words);
  if (on("sample_on_cpu")) (await read(z, words)).indexOf(0);
  else {
    run("argmax", z, weights, best, 1);
    if (on("read_late") && token + 1 < Number(tokens)) submit();
    else await read(best, 1);
  }
  if (on("read_logits")) await read(z, words);
}
console.log(`${tokens} tokens, ${(1000 * Number(tokens)) / (performance.now() - from)} tokens/s`);
deno ? deno.exit(0) : process.exit(0);
