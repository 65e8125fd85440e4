// The parts of ci/museum that are data: which releases have to be counted, and what weir says of each piece.
//   museum.mjs needs RUNS [NAME…] | judge WEIR RUNS [NAME…]     releases of llama.cpp
//   museum.mjs python WEIR CACHE [NAME…] | table CACHE          releases of Python engines
// A piece of pieces.json is {name, good, bad, cell, metric, cause, why, told}: releases of llama.cpp, the cell that
// shows it, a metric (or "placement") that must fail, the kind of finding that must come first, and where it was told.
// A piece of python/pieces.json has the same, except that its sides are packages of PyPI, and that it has a step of a
// script (python/SCRIPT.py) with settings, which `good_settings` and `bad_settings` add to. `expect` was written down
// before it ran: "red", "equal" or "unseen" (slower, but weir cannot see it). `cause` may name several kinds.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const here = new URL('.', import.meta.url).pathname;
const read = (name) => JSON.parse(readFileSync(join(here, name), 'utf8'));
const is_python = ['python', 'table'].includes(process.argv[2]);
const pieces = read(is_python ? 'python/pieces.json' : 'pieces.json');
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

// Gates both sides by the counts of the good one. A side is {config, run, folder}: the folder in which it was counted.
const gate_sides = (weir, cell, good, bad) => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-museum-'));
  try {
    const gate = ({ config, run, folder: cwd }) => {
      const ended = spawnSync(weir, ['gate', '-c', config, '--from', run, '--cell', cell, '--baselines', folder, '--json', '-', '--quiet'],
        { cwd, encoding: 'utf8', maxBuffer: 1 << 28 });
      if (ended.status === null || ended.status > 1) throw new Error(`weir gate ended with ${ended.status}: ${ended.stderr}`);
      return JSON.parse(ended.stdout).cells.find((one) => one.cell === cell);
    };
    execFileSync(weir, ['baseline', 'accept', '-c', good.config, '--counts-only', '--from-artifact', good.run, '--cell', cell, '--baselines', folder, '--quiet'],
      { cwd: good.folder, stdio: ['ignore', 'ignore', 'pipe'] });
    return { same: gate(good), regressed: gate(bad) };
  } finally {
    rmSync(folder, { recursive: true });
  }
};

// Lists what is not as the piece expects.
const find_problems = (piece, { same, regressed }) => {
  const problems = [];
  const expected = piece.expect === 'equal' || piece.expect === 'unseen' ? 'pass' : 'fail';
  if (same.verdict !== 'pass') problems.push(`${piece.good} on itself: ${same.verdict}, ${same.reason}`);
  if (regressed.verdict !== expected) problems.push(`${piece.bad}: ${regressed.verdict}, where ${expected} was expected`);
  if (expected === 'pass') return problems;
  const failed = regressed.judgements.filter(({ verdict }) => verdict === 'fail').map(({ subject }) => subject);
  if (!failed.includes(piece.metric)) problems.push(`${piece.metric} is not among what failed: ${failed.join(', ') || 'nothing'}`);
  const first = regressed.findings?.[0];
  if (!piece.cause.split(' ').includes(first?.kind)) problems.push(`first cause ${first?.kind}, where ${piece.cause} was expected`);
  return problems;
};

// Judges pieces whose sides `sides_of` gives, and prints a line for each.
const judge_pieces = (weir, names, sides_of, keep = () => {}) => {
  let bad = 0;
  for (const piece of chosen(names)) {
    let problems, gated, first;
    try {
      const [cell, good, regressed] = sides_of(piece);
      gated = gate_sides(weir, cell, good, regressed);
      problems = find_problems(piece, gated);
      first = gated.regressed.findings?.[0];
    } catch (error) {
      problems = [error.message];
    }
    keep(piece, problems, gated);
    console.log(`${problems.length === 0 ? 'ok ' : 'BAD'} ${piece.name}: ${piece.good} → ${piece.bad}${piece.cell ? `, ${piece.cell}` : ''}: ${(first?.text ?? '').split('\n')[0]}`);
    for (const problem of problems) console.log(`      ${problem}`);
    bad += problems.length > 0 ? 1 : 0;
  }
  const count = chosen(names).length;
  console.log(`${count - bad} of ${count} pieces: ${is_python ? 'as expected' : 'green on the good release, red on the bad one, right cause first'}`);
  process.exitCode = bad > 0 ? 1 : 0;
};

const judge = (weir, runs, ...names) => judge_pieces(weir, names, ({ good, bad, cell }) => {
  const side = (release) => ({ config: join(here, '../../configs/llama.cpp-atlas.yaml'), run: join(runs, release) });
  return [cell, side(good), side(bad)];
});

// Installs pins into a folder of their own, once. PyTorch looks for NVIDIA's libraries beside itself.
const install = (cache, folder, pins) => {
  const path = join(cache, 'packages', folder), list = join(path, '.pins');
  if (existsSync(list) && readFileSync(list, 'utf8') === pins.join('\n')) return path;
  rmSync(path, { recursive: true, force: true });
  console.error(`ci/museum: installing ${folder}`);
  execFileSync('python3.11', ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', '--no-compile', '--target', path, ...pins],
    { stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, PIP_ROOT_USER_ACTION: 'ignore' } });
  if (folder.startsWith('torch==')) symlinkSync('../cuda-12/nvidia', join(path, 'nvidia'));
  writeFileSync(list, pins.join('\n'));
  return path;
};

// Makes a virtual environment of links to the folders of these packages and of what comes with them.
const make_environment = (cache, packages) => {
  const { folders, with: companions } = read('python/environments.json');
  const environment = join(cache, 'environments', packages.replaceAll(' ', '_'));
  if (existsSync(environment)) return environment;
  const own = packages.split(' ');
  const others = own.flatMap((name) => Object.entries(companions).filter(([pattern]) => new RegExp(`^${pattern}`).test(name)).flatMap(([, more]) => more));
  const paths = [...new Set([...own, ...others])].map((folder) => install(cache, folder, folders[folder] ?? [folder]));
  execFileSync('python3.11', ['-m', 'venv', '--without-pip', `${environment}.new`]);
  const site = join(`${environment}.new`, 'lib/python3.11/site-packages');
  for (const path of paths) {
    for (const name of readdirSync(path)) {
      if (name !== 'bin' && !name.startsWith('.') && !existsSync(join(site, name))) symlinkSync(join(path, name), join(site, name));
    }
  }
  execFileSync('mv', [`${environment}.new`, environment]);
  return environment;
};

// Counts one side, unless it was counted before. Both sides have the same weir.yaml; side.json says how they differ.
const count_side = (weir, cache, piece, which) => {
  const side = {
    step: piece.step.split('.')[1],
    settings: { ...piece.settings, ...piece[`${which}_settings`] },
    environment: { HF_HUB_OFFLINE: '1', ...piece.environment, ...piece[`${which}_environment`] },
  };
  const script = `${piece.step.split('.')[0]}.py`, packages = piece[which];
  // tinygrad compiles its kernels at run time, so no file has their code: NVRTC is named in its place.
  const code = /^tinygrad/.test(packages) ? ', gpu_code: environment/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12, env: {LD_PRELOAD: libcuda.so.1}' : '';
  // generate() asks if all sequences have ended: the script counts tokens instead.
  const reads = script === 'generation.py' ? ', reads: {CompareEqFunctor: "0"}' : '';
  const config = `version: 1
engines: {python: {preset: torch-script, program: environment/bin/python, timeout: 600s${code}${reads}}}
backends: {gpu: {device: cuda, twin: ${piece.twin ?? 'nvidia-rtx-4090'}}}
prompts: {step: {prompt_tokens: 0, tokens: 12}}
`;
  const texts = ['museum.py', script].map((name) => readFileSync(join(here, 'python', name), 'utf8'));
  const key = createHash('sha256').update(JSON.stringify([packages, side, config, ...texts])).digest('hex').slice(0, 16);
  const folder = join(cache, 'sides', key), out = join(folder, 'out');
  const find_run = () => (existsSync(out) ? readdirSync(out) : []).map((name) => join(out, name)).find((path) => existsSync(join(path, 'run.jsonl')));
  const found = { config: 'weir.yaml', folder, run: find_run(), seconds: 0 };
  if (found.run && existsSync(join(folder, 'counted'))) return { ...found, seconds: Number(readFileSync(join(folder, 'counted'), 'utf8')) };
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(here, 'python/museum.py'), join(folder, 'museum.py'));
  copyFileSync(join(here, 'python', script), join(folder, 'engine.py'));
  writeFileSync(join(folder, 'side.json'), JSON.stringify(side));
  writeFileSync(join(folder, found.config), config);
  symlinkSync(make_environment(cache, packages), join(folder, 'environment'));
  const start = Date.now();
  const ended = spawnSync(weir, ['run', '--counts-only', '--out', 'out', '--quiet'], { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (ended.status !== 0) throw new Error(`${packages}: weir run ended with ${ended.status} in ${folder}: ${ended.stdout.slice(-1500)}${ended.stderr.slice(-500)}`);
  const seconds = Math.round((Date.now() - start) / 1000);
  writeFileSync(join(folder, 'counted'), String(seconds));
  return { ...found, run: find_run(), seconds };
};

const python = (weir, cache, ...names) => {
  mkdirSync(join(cache, 'results'), { recursive: true });
  mkdirSync(join(cache, 'environments'), { recursive: true });
  judge_pieces(weir, names, (piece) => ['python/none/gpu/step', count_side(weir, cache, piece, 'good'), count_side(weir, cache, piece, 'bad')],
    (piece, problems, gated) => {
      const changed = (gated?.regressed.judgements ?? []).filter(({ baseline, current }) => baseline !== current);
      writeFileSync(join(cache, 'results', `${piece.name}.json`), JSON.stringify({
        problems, verdict: gated?.regressed.verdict, causes: (gated?.regressed.findings ?? []).map(({ kind, text }) => [kind, text.split('\n')[0]]), changed,
      }, null, 1));
    });
};

// Prints the pieces as Markdown, with what they showed when they ran last.
const table = (cache) => {
  const short = (packages) => packages.replaceAll('==', ' ').replaceAll(' transformers', ', transformers').replaceAll(' triton', ', triton');
  const counts = ({ changed }) => (changed ?? []).filter(({ verdict, subject }) => verdict === 'fail' && /_per_token$/.test(subject) && !/^(kernels|submits|device_memory)/.test(subject))
    .map(({ subject, baseline, current }) => `${subject.replace('_per_token', '').replaceAll('_', ' ')} ${baseline} → ${current}`).join(', ');
  for (const expect of ['red', 'equal', 'unseen']) {
    const rows = pieces.filter((piece) => piece.expect === expect).map((piece) => {
      const file = join(cache, 'results', `${piece.name}.json`);
      const result = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { verdict: 'not run' };
      const sides = piece.good === piece.bad ? `${short(piece.good)}, two settings` : `${short(piece.good)} → ${short(piece.bad)}`;
      const why = piece.told ? `[${piece.why}](${piece.told})` : piece.why;
      if (expect !== 'red') return [piece.name, sides, why, result.verdict ?? 'error'];
      return [piece.name, sides, why, counts(result) || result.verdict || 'error', result.causes?.[0] ? `\`${result.causes[0][0]}\`` : '', piece.first ? `\`${piece.first}\`` : ''];
    });
    const head = expect === 'red' ? ['piece', 'good → bad', 'why', 'a step', 'first cause', 'first run'] : ['piece', 'pair', 'why', 'verdict'];
    for (const row of [head, head.map(() => '---'), ...rows]) console.log(`| ${row.join(' | ')} |`);
    console.log();
  }
};

const [what, ...words] = process.argv.slice(2);
try {
  ({ needs, judge, python, table })[what](...words);
} catch (error) {
  console.error(`ci/museum: ${error.message}`);
  process.exit(2);
}
