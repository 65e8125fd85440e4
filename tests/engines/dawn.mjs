// dawn.mjs TOKENS [unfused]: what an engine on WebGPU does for each token, on Google's Dawn: two layers, each a norm with
// its weight and a product; a result that is read back. "unfused": norm and weight are two kernels.
import {create, globals} from "webgpu";
Object.assign(globalThis, globals);
const [tokens, unfused] = [Number(process.argv[2]), (process.argv[3] ?? process.env.SETTINGS) === "unfused"];
const gpu = create(["backend=vulkan", "enable-dawn-features=use_user_defined_labels_in_backend"]);
const adapter = await gpu.requestAdapter();
if (adapter === null) throw new Error("no adapter");
const device = await adapter.requestDevice();
const size = 64, bytes = 4 * size;
const kernel = (label, body) => {
  const code = `@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(${size}) fn main(@builtin(global_invocation_id) id: vec3u) { let i = id.x; ${body} }`;
  const module = device.createShaderModule({code, label});
  return device.createComputePipeline({layout: "auto", compute: {module, entryPoint: "main"}, label});
};
const norm = "x[i] = x[i] * inverseSqrt(1e-5 + x[i] * x[i]);", weight = "x[i] = x[i] * 1.5;";
const product = "var sum = 0.0; for (var j = 0u; j < 64u; j++) { sum += x[j]; } x[i + 64] = sum;";
const layer = unfused ? [kernel("rms_norm", norm), kernel("mul", weight), kernel("mul_mat_vec", product)]
  : [kernel("rms_norm_mul", norm + weight), kernel("mul_mat_vec", product)];
const made = (usage, length) => device.createBuffer({size: length, usage});
const state = made(GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC, 2 * bytes);
const seen = made(GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST, 4);
const from = performance.now();
for (let token = 0; token < tokens; ++token) {
  const work = device.createCommandEncoder();
  const pass = work.beginComputePass();
  for (const one of [...layer, ...layer]) {
    pass.setPipeline(one);
    pass.setBindGroup(0, device.createBindGroup({layout: one.getBindGroupLayout(0),
                                                 entries: [{binding: 0, resource: {buffer: state}}]}));
    pass.dispatchWorkgroups(1);
  }
  pass.end();
  work.copyBufferToBuffer(state, 0, seen, 0, 4);
  device.queue.submit([work.finish()]);
  await seen.mapAsync(GPUMapMode.READ);
  seen.unmap();
}
console.log(`${tokens} tokens, ${(1000 * tokens) / (performance.now() - from)} tokens/s`);
process.exit(0);
