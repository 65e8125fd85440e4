// What weir's figures of compiled kernels cost, and how often they are red for nothing:
//   node benchmarks/kernel_costs/measure.mjs --what unchanged|times|recording [--rounds N] [--mesa FOLDER] [--twin NAME] [--weir FILE] [--engine DIR]
// unchanged: gates over llama.cpp's decode and prefill of two models on a device twin, with every limit on
//   the code of kernels, again and again. Each tenth has a cache of its own, so that all is compiled anew.
//   A gate that fails, or tells of any change, is red: the exit code is 1.
// times: how long the kernels of f16, q4_k and q8_0 of two models, decode and prefill, take to compile for three
//   Radeon families: with an empty cache, and with what that left.
// recording: llama-bench under the counting layer, with and without recording code, in pairs of random order beside
//   one more without. On a device twin, where nothing is computed that would drown it; its share is that of the
//   same command on lavapipe.
// --mesa: a folder with icd.d/ (WEIR_MESA): that of ci/mesa, or /usr/share/vulkan. --rounds: gates, rounds, pairs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, homedir, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../..');
const given = { what: '', rounds: '', mesa: join(homedir(), '.cache/weir/mesa/25.0.7'), twin: 'amd-rx-7900-xtx',
                engine: join(root, 'engines/llama.cpp'), weir: join(root, 'build/weir') };
for (let i = 2; i < process.argv.length; i += 2) {
  const name = process.argv[i].replace(/^--/, '');
  if (!(name in given) || process.argv[i + 1] === undefined) {
    console.error(`measure.mjs: ${process.argv[i]}: options are ${Object.keys(given).map((one) => `--${one} VALUE`).join(' ')}`);
    process.exit(2);
  }
  given[name] = process.argv[i + 1];
}
for (const file of [given.weir, join(given.engine, 'llama-bench'), join(given.mesa, 'icd.d')]) {
  if (existsSync(file)) continue;
  console.error(`measure.mjs: no ${file}: ci/build, ci/llama.cpp and ci/mesa make what is needed`);
  process.exit(2);
}

const scratch = mkdtempSync(join(tmpdir(), 'weir-kernel-costs-'));
const cache = join(scratch, 'cache');
// bash knows what a program and all that it waited for took of the processor.
const timed = (words, env) => {
  const ended = spawnSync('/bin/bash', ['-c', 'TIMEFORMAT="%R %U %S"; time "$@" 2>err', 'bash', ...words],
                          { cwd: scratch, encoding: 'utf8', maxBuffer: 1 << 28, env: { ...process.env, ...env } });
  const [seconds, user, system] = ended.stderr.trim().split(' ').map(Number);
  return { status: ended.status, stdout: ended.stdout, stderr: readFileSync(join(scratch, 'err'), 'utf8'), seconds, processor: user + system };
};
const started = (words, env = {}) => timed([given.weir, ...words], { WEIR_MESA: given.mesa, WEIR_CACHE: cache, ...env });
const weir = (...words) => {
  const ended = started(words);
  if (ended.status !== 0) throw new Error(`weir ${words.join(' ')}: ${ended.stderr}${ended.stdout}`);
  return ended;
};
const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];
const spread = (values, digits = 2) => `${quantile(values, 0.5).toFixed(digits)} (${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)})`;

const configure = (models, twins, limits = '') => {
  for (const [name, options] of Object.entries(models)) weir('model', 'make', `${name}.gguf`, ...options);
  const backends = Object.entries(twins).map(([name, twin]) => `${name}: {device: vulkan, twin: ${twin}, args: [-ngl, '99', -fa, '1']}`);
  writeFileSync(join(scratch, 'weir.yaml'), `version: 1
engines: {llama.cpp: {command: ['${join(given.engine, 'llama-bench')}', -m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, '{repeats}', -o, json], output: llama-bench, probes: [vulkan]}}
models: {${Object.keys(models).map((name) => `${name}: ${name}.gguf`).join(', ')}}
backends: {${backends.join(', ')}}
prompts: {decode: {prompt_tokens: 0, tokens: 16}, prefill: {prompt_tokens: 64, tokens: 0}}
${limits}`);
};

function unchanged(rounds) {
  configure({ llama: ['--quantization', 'f16'], gemma3: ['--arch', 'gemma3', '--quantization', 'q4_k'] }, { radeon: given.twin },
            `limits:
- {metrics: kernel_code, exact: true}
- {metrics: ["spilled_registers:*", "scratch_bytes:*", "registers:*", "throughput_cycles:*", "latency_cycles:*", "kernel_instructions:*", "code_bytes:*"], max_increase: 0}
- {metrics: "occupancy:*", max_decrease: 0}
- {metrics: ["estimated_cycles_*", "spilled_registers_*", "kernel_instructions_*"], max_increase: 0}
`);
  weir('baseline', 'accept', '--counts-only', '--baselines', 'base');
  const base = readdirSync(join(scratch, 'base'), { recursive: true }).filter((name) => name.endsWith('.json'));
  console.log(`${base.length} cells by ${JSON.parse(readFileSync(join(scratch, 'base', base[0]), 'utf8')).compiler}`);
  const seconds = { cached: [], anew: [] };
  let red = 0, compared = 0;
  for (let round = 1; round <= rounds; ++round) {
    const anew = round % 10 === 0;
    const own = join(scratch, 'own-cache');
    const gate = started(['gate', '--counts-only', '--json', '-', '--baselines', 'base'], anew ? { WEIR_CACHE: own } : {});
    seconds[anew ? 'anew' : 'cached'].push(gate.seconds);
    const told = [];
    let costs = 0;
    try {
      for (const cell of JSON.parse(gate.stdout).cells) {
        if (!cell.judgements.some((one) => one.subject === 'kernel_code')) told.push(`${cell.cell}: no code of kernels`);
        told.push(...cell.warnings, ...cell.notes);
        for (const one of cell.judgements) {
          const name = one.subject;
          if (name.includes(':') || name.startsWith('estimated_cycles')) ++costs;
          if (!['pass', 'info'].includes(one.verdict)) told.push(`${cell.cell}: ${name} ${one.verdict}: ${one.reason}`);
        }
      }
    } catch (error) {
      told.push(`no verdict: ${error.message}: ${gate.stderr}`);
    }
    compared += costs;
    if (costs === 0) told.push('no cost was compared');
    if (gate.status !== 0 || told.length > 0) {
      ++red;
      console.log(`gate ${round}: exit code ${gate.status}: ${told.join('; ')}`);
    }
    rmSync(own, { recursive: true, force: true });
    rmSync(join(scratch, 'weir-out'), { recursive: true, force: true });
    if (round % 50 === 0 || round === rounds) {
      console.log(`${round} gates: ${red} red, ${compared} figures of kernels compared; s each: cached ${spread(seconds.cached)}` +
                  `${seconds.anew.length > 0 ? `, compiled anew (${seconds.anew.length}) ${spread(seconds.anew)}` : ''}; load ${loadavg()[0].toFixed(1)}`);
    }
  }
  return red === 0;
}

// A run of each twin records its kernels; weir kernels compiles those of each for its family.
function times(rounds) {
  const twins = { 'amd-rx-7900-xtx': 'radv-navi31', 'amd-rx-6900-xt': 'radv-navi21', 'amd-rx-580': 'radv-polaris10' };
  const models = {};
  for (const quantization of ['f16', 'q4_k', 'q8_0']) {
    for (const arch of ['llama', 'gemma3']) models[`${arch}-${quantization}`] = ['--arch', arch, '--quantization', quantization];
  }
  configure(models, Object.fromEntries(Object.keys(twins).map((twin) => [twin, twin])));
  const ran = weir('run', '--counts-only');
  console.log(`${Object.keys(models).length * 2 * 3} cells recorded and compiled in ${ran.seconds.toFixed(1)} s, engines included`);
  const all = { cold: { seconds: [], processor: [] }, cached: { seconds: [], processor: [] } };
  const codes = new Set(), left_out = new Set();
  for (let round = 0; round < rounds; ++round) {
    for (const file of readdirSync(join(cache, 'kernels'))) {
      if (file.startsWith('codes-')) rmSync(join(cache, 'kernels', file)); // and the code itself stays
    }
    for (const when of ['cold', 'cached']) {
      const each = Object.entries(twins).map(([twin, target]) => {
        const made = weir('kernels', '--cell', `*/${twin}/*`, '--target', target, '--json', '-');
        for (const cell of JSON.parse(made.stdout).cells) {
          for (const kernel of cell.kernels) (kernel.not_compiled ? left_out : codes).add(`${target} ${kernel.code} ${kernel.not_compiled ?? ''}`);
        }
        return made;
      });
      for (const what of ['seconds', 'processor']) all[when][what].push(each.reduce((sum, one) => sum + one[what], 0));
      console.log(`${when}: ${each.map((one, at) => `${Object.values(twins)[at]} ${one.seconds.toFixed(2)} s (processor ${one.processor.toFixed(2)} s)`).join(', ')}; load ${loadavg()[0].toFixed(1)}`);
    }
  }
  console.log(`${codes.size} pipelines compiled, ${left_out.size} not; s in all: cold ${spread(all.cold.seconds)}, of the processor ` +
              `${spread(all.cold.processor)}; cached ${spread(all.cached.seconds)}, of the processor ${spread(all.cached.processor)}`);
  for (const one of left_out) console.log(`  not compiled: ${one}`);
  return true;
}

function recording(pairs) {
  weir('model', 'make', 'model.gguf');
  const twin = Object.fromEntries(weir('device', 'compile', given.twin, '--output', 'twin').stdout.trim().split('\n').map((line) => line.split(/=(.*)/s, 2)));
  const lavapipe = { GGML_VK_VISIBLE_DEVICES: '0', VK_LOADER_DRIVERS_SELECT: '*lvp*', LP_NUM_THREADS: '1' };
  const run = (device, code) => {
    const folder = join(scratch, 'probe');
    mkdirSync(folder);
    const ended = timed([join(given.engine, 'llama-bench'), '-m', 'model.gguf', '-p', '64', '-n', '32', '-r', '1', '-ngl', '99', '-t', '1', '-o', 'json'],
                        { ...device, WEIR_PROBE_DIR: folder, VK_LAYER_PATH: join(given.weir, '../lib/weir/probes'), VK_INSTANCE_LAYERS: 'VK_LAYER_WEIR_probe',
                          GGML_VK_DEBUG_MARKERS: '1', ...(code ? { WEIR_PROBE_CODE: '256' } : {}) });
    const kept = readdirSync(folder).some((name) => name.endsWith('.weirkernels'));
    if (ended.status !== 0 || kept !== code) throw new Error(`${ended.stderr}\nfiles: ${readdirSync(folder).join(', ')}`);
    rmSync(folder, { recursive: true });
    return 1000 * ended.processor;
  };
  const plain = [], code = [], again = [];
  for (let pair = 1; pair <= pairs; ++pair) {
    const order = ['plain', 'again', 'code'].map((name) => [Math.random(), name]).sort().map(([, name]) => name);
    const one = Object.fromEntries(order.map((name) => [name, run(twin, name === 'code')]));
    plain.push(one.plain);
    code.push(one.code - one.plain);
    again.push(one.again - one.plain);
  }
  const whole = [1, 2, 3].map(() => run(lavapipe, false));
  const words = (values) => `${quantile(values, 0.5).toFixed(1)} ms (quartiles ${quantile(values, 0.25).toFixed(1)} to ${quantile(values, 0.75).toFixed(1)})`;
  console.log(`processor time, ${pairs} pairs on ${given.twin}: without ${words(plain)}; code costs ${words(code)}, another run without ${words(again)}; ` +
              `on lavapipe ${quantile(whole, 0.5).toFixed(0)} ms: ${(100 * quantile(code, 0.5) / quantile(whole, 0.5)).toFixed(3)} %`);
  return true;
}

const parts = { unchanged: [unchanged, 1000], times: [times, 5], recording: [recording, 40] };
let well = false;
try {
  if (!(given.what in parts)) throw new Error(`--what ${given.what}: it takes ${Object.keys(parts).join(', ')}`);
  const [part, rounds] = parts[given.what];
  console.log(`${given.what}: ${cpus().length} cores of ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)}`);
  well = part(Number(given.rounds || rounds));
} catch (error) {
  console.error(`measure.mjs: ${error.message}`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exitCode = well ? 0 : 1;
