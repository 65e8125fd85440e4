// sim.mjs FILE STEPS [NAME=VALUE …]: particles in a grid on WebGPU (npm's webgpu, which is Dawn): each step clears the grid, counts, sums,
// sorts, takes forces, moves, and every step a pressure is read back. NAME=VALUE, also in SETTINGS, makes one change each.
import {create, globals} from "webgpu";
Object.assign(globalThis, globals);
const [, , , steps, ...given] = process.argv;
const own = Object.fromEntries([...given, ...(process.env.SETTINGS ?? "").split(" ").filter(Boolean)].map(setting => setting.split("=")));
const on = name => own[name] === "1";
const adapter = await create(["backend=vulkan", "enable-dawn-features=use_user_defined_labels_in_backend"]).requestAdapter();
const device = await adapter.requestDevice();
const count = 1024, cells = Number(own.cells ?? 512), wide = Number(own.wide ?? 128);
const buffer = (numbers, usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST) => device.createBuffer({size: 4 * numbers, usage});
const [place, speed, grid, order, force, spare] = [count, count, cells, count, count, count].map(numbers => buffer(numbers));
const readback = buffer(count, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
const bodies = {
  clear_grid: "b[i % arrayLength(&b)] = 0.0;", count_cells: "b[i % arrayLength(&b)] += a[i];", prefix_sum: "b[i % arrayLength(&b)] += b[0] + a[0];",
  sort_particles: "b[i] = a[i] + 1.0;", near_forces: "var s = 0.0; for (var k = 0u; k < 32u; k++) { s += a[k]; } b[i] = s;",
  far_forces: "b[i] += a[i] * 0.1;", all_forces: "var s = 0.0; for (var k = 0u; k < 32u; k++) { s += a[k]; } b[i] = s + a[i] * 0.1;",
  integrate: "b[i] += a[i] * 0.01;", collide: "b[i] = abs(b[i]) + a[i];", wrap: "b[i] = fract(b[i] + a[i]);",
  brute_forces: "var s = 0.0; for (var k = 0u; k < 512u; k++) { s += a[k]; } b[i] = s;", pressure: "b[0] = a[i];",
};
const pipelines = {};
const pipeline = label => pipelines[label] ??= (code => device.createComputePipeline({label, layout: "auto",
  compute: {module: device.createShaderModule({label, code}), entryPoint: "main"}}))(`@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@compute @workgroup_size(${wide}) fn main(@builtin(global_invocation_id) id: vec3u) { let i = min(id.x, arrayLength(&a) - 1u); ${bodies[label]} }`);
let work;
const encoder = () => work ??= device.createCommandEncoder();
const submit = () => { if (work) device.queue.submit([work.finish()]); work = undefined; };
function run(label, a, b, size = count) {
  const pass = encoder().beginComputePass(), chosen = pipeline(label);
  pass.setPipeline(chosen);
  pass.setBindGroup(0, device.createBindGroup({layout: chosen.getBindGroupLayout(0), entries: [a, b].map((buffer, binding) => ({binding, resource: {buffer}}))}));
  pass.dispatchWorkgroups(Math.ceil(size / wide));
  pass.end();
}
async function read(from, numbers) {
  encoder().copyBufferToBuffer(from, 0, readback, 0, 4 * numbers);
  submit();
  await readback.mapAsync(GPUMapMode.READ);
  const got = new Float32Array(readback.getMappedRange(0, 4 * numbers).slice(0));
  readback.unmap();
  return got;
}
for (let step = 0; step < Number(steps); ++step) {
  run("clear_grid", place, grid, cells);
  run("count_cells", place, grid);
  run("prefix_sum", place, grid, cells);
  if (on("sort_on_cpu")) device.queue.writeBuffer(order, 0, (await read(place, count)).sort());
  else run("sort_particles", place, order);
  for (let part = 0, parts = Number(own.parts ?? 1); part < parts; ++part) {
    if (on("brute")) run("brute_forces", order, force, count / parts);
    else if (on("forces_joined")) run("all_forces", order, force, count / parts);
    else run("near_forces", order, force, count / parts);
  }
  if (!on("forces_joined")) run("far_forces", order, force);
  if (on("collide")) run("collide", order, speed);
  run("integrate", force, speed);
  run("integrate", speed, place);
  if (!on("open")) run("wrap", speed, place);
  if (on("kept")) encoder().copyBufferToBuffer(place, 0, spare, 0, 4 * count);
  if (on("checked")) submit(), await device.queue.onSubmittedWorkDone();
  run("pressure", place, spare, 1);
  await read(spare, 1);
}
console.log(`${steps} tokens, 1 tokens/s`);
process.exit(0);
