// The parts of ci/museum that are data: which releases have to be counted for which cells, and what weir says of each piece.
//   museum.mjs needs RUNS [NAME…] | judge WEIR RUNS [NAME…]
// A piece of pieces.json is {name, good, bad, cell, metric, cause, why, told}: releases of llama.cpp, the cell that
// shows it, a metric (or "placement") that must fail, the kind of finding that must come first, and where it was told.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const pieces = JSON.parse(readFileSync(new URL('pieces.json', import.meta.url), 'utf8'));
const config = new URL('../../configs/llama.cpp-atlas.yaml', import.meta.url).pathname;
const chosen = (names) => {
  const unknown = names.find((name) => !pieces.some((piece) => piece.name === name));
  if (unknown) throw new Error(`no piece "${unknown}": ${pieces.map(({ name }) => name).join(', ')}`);
  return names.length > 0 ? pieces.filter(({ name }) => names.includes(name)) : pieces;
};

// Each release once, with the cells of all pieces that it is a side of. A run that has other cells is made anew.
const needs = (runs, ...names) => {
  const wanted = new Map();
  for (const { good, bad, cell } of chosen(names)) {
    for (const release of [good, bad]) wanted.set(release, new Set([...(wanted.get(release) ?? []), cell]));
  }
  for (const [release, cells] of wanted) {
    const file = join(runs, release, 'run.jsonl');
    const has = (existsSync(file) ? readFileSync(file, 'utf8') : '').split('\n').filter(Boolean).map((line) => JSON.parse(line))
      .filter(({ ended, exit_code }) => ended === 'exited' && !exit_code);
    if ([...cells].some((cell) => !has.some((record) => record.cell === cell))) console.log(join(runs, release), release, ...cells);
  }
};

const judge = (weir, runs, ...names) => {
  let bad = 0;
  for (const piece of chosen(names)) {
    const folder = mkdtempSync(join(tmpdir(), 'weir-museum-'));
    const problems = [];
    try {
      const gate = (release) => {
        const ended = spawnSync(weir, ['gate', '-c', config, '--from', join(runs, release), '--cell', piece.cell, '--baselines', folder, '--json', '-', '--quiet'],
          { encoding: 'utf8', maxBuffer: 1 << 28 });
        if (ended.status === null || ended.status > 1) throw new Error(`weir gate ended with ${ended.status}: ${ended.stderr}`);
        return JSON.parse(ended.stdout).cells.find(({ cell }) => cell === piece.cell);
      };
      execFileSync(weir, ['baseline', 'accept', '-c', config, '--counts-only', '--from-artifact', join(runs, piece.good),
        '--cell', piece.cell, '--baselines', folder, '--quiet'], { stdio: ['ignore', 'ignore', 'pipe'] });
      const same = gate(piece.good), regressed = gate(piece.bad);
      if (same.verdict !== 'pass') problems.push(`${piece.good} on itself: ${same.verdict}, ${same.reason}`);
      if (regressed.verdict !== 'fail') problems.push(`${piece.bad}: ${regressed.verdict}, where fail was expected`);
      const failed = regressed.judgements.filter(({ verdict }) => verdict === 'fail').map(({ subject }) => subject);
      if (!failed.includes(piece.metric)) problems.push(`${piece.metric} is not among what failed: ${failed.join(', ') || 'nothing'}`);
      const first = regressed.findings?.[0];
      if (first?.kind !== piece.cause) problems.push(`first cause ${first?.kind}, where ${piece.cause} was expected`);
      console.log(`${problems.length === 0 ? 'ok ' : 'BAD'} ${piece.name}: ${piece.good} → ${piece.bad}, ${piece.cell}: ${(first?.text ?? '').split('\n')[0]}`);
    } catch (error) {
      problems.push(error.message);
      console.log(`BAD ${piece.name}`);
    }
    for (const problem of problems) console.log(`      ${problem}`);
    bad += problems.length > 0 ? 1 : 0;
    rmSync(folder, { recursive: true });
  }
  console.log(`${chosen(names).length - bad} of ${chosen(names).length} pieces: green on the good release, red on the bad one, right cause first`);
  process.exitCode = bad > 0 ? 1 : 0;
};

const [what, ...words] = process.argv.slice(2);
try {
  ({ needs, judge })[what](...words);
} catch (error) {
  console.error(`ci/museum: ${error.message}`);
  process.exit(2);
}
