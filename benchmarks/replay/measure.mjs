// How near the sum of replayed ops comes to the step that was recorded (docs/how-to/replay.md):
//   node benchmarks/replay/measure.mjs [--on cpu|vulkan|weir-engine] [--rounds N] [--threads 1,2] [--model NAME] [--engine DIR]
// Makes its models, records llama-bench's decoding of each on the CPU or, whole, on the first Vulkan
// device (lavapipe: GGML_VK_VISIBLE_DEVICES=0), and replays what was recorded right after it, where it
// ran, so that both see the same machine. With --on weir-engine, what ggml's CPU kernels take for the ops
// that weir-engine has kernels for stands in place of the step. Prints a line for each round, then a table of medians.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../..');
const given = { on: 'cpu', rounds: '3', threads: '1', model: '', engine: join(root, 'engines/llama.cpp'), weir: join(root, 'build/weir') };
for (let i = 2; i < process.argv.length; i += 2) {
  const name = process.argv[i].replace(/^--/, '');
  if (!(name in given) || process.argv[i + 1] === undefined) {
    console.error(`measure.mjs: ${process.argv[i]}: options are ${Object.keys(given).map((one) => `--${one} VALUE`).join(' ')}`);
    process.exit(2);
  }
  given[name] = process.argv[i + 1];
}
if (!['cpu', 'vulkan', 'weir-engine'].includes(given.on)) {
  console.error(`measure.mjs: --on ${given.on}: it takes cpu, vulkan or weir-engine`);
  process.exit(2);
}
for (const file of [given.weir, join(given.engine, 'llama-bench')]) {
  if (existsSync(file)) continue;
  console.error(`measure.mjs: no ${file}: ci/build and ci/llama.cpp make it`);
  process.exit(2);
}

// Bigger than a processor's caches (0.3 GB), and one that lies in them.
const shape = ['--layers', '12', '--embedding', '1536', '--ff', '4096', '--heads', '12', '--kv-heads', '4', '--vocab', '8192'];
const models = {
  'tiny-f16': ['--quantization', 'f16'],
  'big-q8_0': [...shape, '--quantization', 'q8_0'],
  'big-q4_0': [...shape, '--quantization', 'q4_0'],
  'big-q4_k_m': [...shape, '--quantization', 'q4_k_m'],
};

const beside = given.on === 'weir-engine' ? 'ggml' : 'step';
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const ms = (seconds) => (seconds * 1000).toPrecision(3);
const scratch = mkdtempSync(join(tmpdir(), 'weir-replay-'));
const weir = (...words) => execFileSync(given.weir, words, { cwd: scratch, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 });
const table = [];
try {
  for (const [name, options] of Object.entries(models)) {
    if (given.model !== '' && given.model !== name) continue;
    weir('model', 'make', `${name}.gguf`, ...options);
    for (const threads of given.threads.split(',')) {
      const rounds = [];
      for (let round = 0; round < Number(given.rounds); ++round) {
        weir('replay', '--record', 'ops.json', '--', join(given.engine, 'llama-bench'), '-m', `${name}.gguf`,
             '-p', '0', '-n', '32', '-r', '1', '-t', threads, '-o', 'json', '-ngl',
             ...(given.on === 'vulkan' ? ['99'] : ['0', '-dev', 'none']));
        const replay = (...where) => {
          weir('replay', 'ops.json', ...where, '--json', 'replayed.json');
          return JSON.parse(readFileSync(join(scratch, 'replayed.json'), 'utf8'));
        };
        const replayed = replay('--engine', given.engine);
        const time = (of, wanted) => of.timings.find((one) => one.metric.name === wanted).mean;
        let one = { step: time(replayed, 'recorded_step_seconds'), sum: time(replayed, 'replay_seconds') };
        if (given.on === 'weir-engine') {
          const ours = replay('--on', 'weir-engine');
          const key = (op) => [op.op, op.type, op.shape].join(' ');
          const both = new Set(ours.ops.map(key));
          const step = replayed.ops.filter((op) => both.has(key(op))).reduce((sum, op) => sum + op.seconds, 0);
          one = { step, sum: time(ours, 'replay_seconds') };
        }
        rounds.push(one);
        console.log(`${name} ${threads} thread(s): ${beside} ${ms(one.step)} ms, replayed ${ms(one.sum)} ms, ` +
                    `${(100 * one.sum / one.step).toFixed(0)} %; load ${loadavg()[0].toFixed(1)}`);
        for (const warning of replayed.warnings ?? []) console.log(`  ${warning}`);
      }
      table.push([name, threads, ms(median(rounds.map((one) => one.step))), ms(median(rounds.map((one) => one.sum))),
                  rounds.map((one) => `${(100 * one.sum / one.step).toFixed(0)} %`).join(', ')]);
    }
    rmSync(join(scratch, `${name}.gguf`));
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`\n| model | threads | ${beside}, ms | replayed, ms | replayed / ${beside}, each round |\n| --- | ---: | ---: | ---: | --- |`);
for (const row of table) console.log(`| ${row.join(' | ')} |`);
