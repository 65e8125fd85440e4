// How fast the reference engine decodes on the CPU, beside the real llama.cpp on the same model with as many threads,
// by turns in one run.
//   node benchmarks/engine_speed/measure.mjs [ROUNDS] [THREADS]      (7, 2; docs/reference/engine.md)
// Needs build/weir, build/weir-engine and ci/llama.cpp.
import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync, statSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';

const [rounds, threads] = [Number(process.argv[2] ?? 7), Number(process.argv[3] ?? 2)];
const TOKENS = 16;
const root = fileURLToPath(new URL('../..', import.meta.url));
const build = process.env.WEIR_BUILD ?? join(root, 'build');
// Weights that no cache holds, as real models have them: 85 million, 24 to 340 MB.
const SIZES = ['--arch', 'llama', '--layers', '8', '--embedding', '1024', '--ff', '2816', '--heads', '16',
  '--kv-heads', '16', '--vocab', '4096'];

function run(program, words) {
  return execFileSync(program, words, {encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 24});
}

// Tokens a second.
function ours(model) {
  const told = JSON.parse(run(join(build, 'weir-engine'),
    ['-m', model, '--backend', 'cpu', '-t', threads, '-p', '1', '-n', TOKENS, '--json']));
  const timing = told.timings.find(({metric}) => metric === 'decode_tokens_per_second');
  return Math.max(...timing.samples);
}

function theirs(model) {
  const [told] = JSON.parse(run(join(root, 'engines/llama.cpp/llama-bench'),
    ['-m', model, '-ngl', '0', '-t', threads, '-p', '0', '-n', TOKENS, '-r', '1', '-o', 'json']));
  return told.avg_ts;
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

const folder = mkdtempSync(join(tmpdir(), 'weir-speed-'));
console.log(`${rounds} rounds by turns, ${threads} threads, ${TOKENS} tokens; medians`);
console.log('type      MB   weir-engine/s   llama.cpp/s   ratio   lowest … highest');
try {
  for (const type of ['f32', 'f16', 'q8_0', 'q4_0']) {
    const model = join(folder, `${type}.gguf`);
    run(join(build, 'weir'), ['model', 'make', model, '--quantization', type, ...SIZES]);
    const [a, b, ratios] = [[], [], []];
    for (let round = 0; round < rounds; ++round) {
      const first = round % 2 === 0;
      const before = first ? ours(model) : theirs(model);
      const after = first ? theirs(model) : ours(model);
      a.push(first ? before : after);
      b.push(first ? after : before);
      ratios.push(a.at(-1) / b.at(-1));
    }
    const mb = (statSync(model).size / 1e6).toFixed(0);
    console.log(`${type.padEnd(5)} ${mb.padStart(6)} ${median(a).toFixed(1).padStart(15)} ${median(b).toFixed(1).padStart(13)} ` +
      `${median(ratios).toFixed(2).padStart(7)}   ${Math.min(...ratios).toFixed(2)} … ${Math.max(...ratios).toFixed(2)}`);
    rmSync(model);
  }
} finally {
  rmSync(folder, {recursive: true});
}
