// Which counts of the host's path repeat, and what counting them costs, on the real llama.cpp:
//   node benchmarks/host/measure.mjs --what repeats|cost|record [--rounds N] [--cells LIST] [--weir FILE] [--engine DIR]
// repeats: `weir run --counts-only`, N times. For each cell and count: how many different values it had at
//   one number of tokens, and the range at the longest. Exit code 1 where one that is judged had two.
// cost: a traced process beside the same command with nothing attached, on one core, in an order drawn for each
//   round: tokens/s as the engine reports them, and the whole process.
// record: what N timed processes took, for `decision_quality --trace`: OUT/CELL-METRIC.txt, a process a line. To counts one is
//   added for each token, as gates add it.
// --cells: of cpu/t1, cpu/t2, vulkan/t1 (lavapipe; the number is that of threads), by commas.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(new URL('.', import.meta.url).pathname, '../..');
const given = { what: '', rounds: '200', cells: 'cpu/t1,cpu/t2,vulkan/t1', weir: join(root, 'build/weir'), engine: join(root, 'engines/llama.cpp'), out: 'traces' };
for (let i = 2; i < process.argv.length; i += 2) {
  const name = process.argv[i].replace(/^--/, '');
  if (!(name in given) || process.argv[i + 1] === undefined) {
    console.error(`measure.mjs: ${process.argv[i]}: options are ${Object.keys(given).map((one) => `--${one} VALUE`).join(' ')}`);
    process.exit(2);
  }
  given[name] = process.argv[i + 1];
}
const bench = join(given.engine, 'llama-bench');
const model = join(root, 'models/tiny-llama.gguf');
const scratch = mkdtempSync(join(tmpdir(), 'weir-host-'));
writeFileSync(join(scratch, 'weir.yaml'), `version: 1
engines: {llama.cpp: {command: ['${bench}', -m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, '{repeats}', -t, '{threads}', -o, json],
                      output: llama-bench, probes: [host]}}
models: {tiny: '${model}'}
backends: {cpu: {args: [-ngl, '0', -dev, none]}, vulkan: {args: [-ngl, '99'], env: {GGML_VK_VISIBLE_DEVICES: '0'}}}
prompts: {t1: {prompt_tokens: 0, tokens: 32, threads: 1}, t2: {prompt_tokens: 0, tokens: 32, threads: 2}}
`);
const cells = given.cells.split(',').map((cell) => `llama.cpp/tiny/${cell}`);
const of = { 'cpu': [['-ngl', '0', '-dev', 'none'], {}], 'vulkan': [['-ngl', '99'], { GGML_VK_VISIBLE_DEVICES: '0' }] };

// The records of a run of the cell; with `core`, all of it on that one.
const run = (cell, more, core) => {
  const words = [...(core === undefined ? [] : ['taskset', '-c', String(core)]), given.weir, 'run', ...more, '--cell', cell];
  const ended = spawnSync(words[0], words.slice(1), { cwd: scratch, encoding: 'utf8' });
  if (ended.status !== 0) throw new Error(`weir run ended with ${ended.status}: ${ended.stderr}${ended.stdout}`);
  const runs = join(scratch, 'weir-out');
  const text = readFileSync(join(runs, readdirSync(runs)[0], 'run.jsonl'), 'utf8');
  rmSync(runs, { recursive: true });
  return text.trim().split('\n').map((line) => JSON.parse(line));
};
const traced = (cell, core) => run(cell, ['--counts-only'], core).filter((record) => record.host);
const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const spread = (values) => `${middle(values).toFixed(2)} (${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)})`;

const repeats = () => {
  let judged_differ = false;
  for (const cell of cells) {
    const seen = {};   // count -> tokens -> value -> times
    const add = (count, tokens, value) => {
      const values = ((seen[count] ??= {})[tokens] ??= new Map());
      values.set(value, (values.get(value) ?? 0) + 1);
    };
    let threads = 0;
    for (let round = 0; round < Number(given.rounds); ++round) {
      for (const record of traced(cell)) {
        const probe = record.probes[0];
        threads = Math.max(threads, probe.counts.threads_peak);
        for (const [count, value] of Object.entries(probe.counts)) add(count, record.asked.tokens, value);
        for (const [call, value] of Object.entries(probe.functions)) add(call, record.asked.tokens, value);
      }
    }
    console.log(`\n${cell}, ${given.rounds} runs of three lengths each, load ${loadavg()[0].toFixed(1)}\n\n| count | values at one length | at the longest |\n| --- | ---: | ---: |`);
    for (const [count, lengths] of Object.entries(seen)) {
      const most = Math.max(...Object.values(lengths).map((values) => values.size));
      const judged = ['system_calls', 'opened_files', 'read_bytes', 'mapped_file_bytes'].includes(count) || (threads === 1 && count.startsWith('futex_'));
      judged_differ ||= judged && most > 1;
      const is_call = count.startsWith('system call ');
      if (is_call && most === 1) continue;
      const longest = [...Object.values(lengths).at(-1).keys()];
      console.log(`| ${count} | ${most} | ${Math.min(...longest)}${longest.length > 1 ? ` to ${Math.max(...longest)}` : ''} |`);
    }
  }
  return judged_differ ? 1 : 0;
};

const cost = () => {
  for (const cell of cells) {
    const [args, env] = of[cell.split('/')[2]];
    const rates = [], walls = [];
    for (let round = 0; round < Number(given.rounds); ++round) {
      const tokens = 24;  // the longest of the three
      const longest = () => traced(cell, 0).find((one) => one.asked.tokens === tokens);
      const first = Math.random() < 0.5;
      let record = first ? longest() : undefined;
      const begun = performance.now();
      const plain = spawnSync('taskset', ['-c', '0', bench, '-m', model, '-p', '0', '-n', String(tokens), '-r', '1', '-t', cell.at(-1), '-o', 'json', ...args],
                              { encoding: 'utf8', env: { ...process.env, ...env } });
      const wall = (performance.now() - begun) / 1000;
      const alone = JSON.parse(plain.stdout)[0].samples_ts[0];
      record ??= longest();
      rates.push(record.report.times[0].samples[0] / alone);
      walls.push(record.wall_seconds / wall);
    }
    console.log(`${cell}: tokens/s ${spread(rates)} of those with nothing attached, the whole process ${spread(walls)} times as long (${given.rounds} rounds, load ${loadavg()[0].toFixed(1)})`);
  }
  return 0;
};

const record = () => {
  mkdirSync(given.out, { recursive: true });
  for (const cell of cells) {
    const timed = run(cell, ['--runs', given.rounds]).filter((one) => one.took);
    const tokens = timed[0].asked.tokens;
    const taken = { cpu_ns: (one) => Math.round(one.cpu_seconds * 1e9), switches: (one) => one.took.voluntary_switches + tokens, faults: (one) => one.took.minor_faults + tokens };
    for (const [name, of] of Object.entries(taken)) writeFileSync(join(given.out, `${cell.split('/').slice(2).join('-')}-${name}.txt`), timed.map((one) => `${of(one)}\n`).join(''));
    console.log(`${cell}: ${timed.length} processes of ${tokens} tokens, load ${loadavg()[0].toFixed(1)}`);
  }
  return 0;
};

const measures = { repeats, cost, record };
const status = given.what in measures ? measures[given.what]() : 2;
if (status === 2) console.error('measure.mjs: --what repeats, cost or record');
rmSync(scratch, { recursive: true });
process.exit(status);
