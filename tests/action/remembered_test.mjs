// What one pull request leaves on a machine or commits decides nothing for the next: bases are built anew, runs are
// named, labels are the base's. Home, cache and temporary folders stay, as on a runner of one's own.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {read_yaml, root} from './runner.mjs';
import {World, weir} from './world.mjs';

let world, cache;
before(() => {
  world = new World();
  cache = world.fresh('cache');
  world.git(world.work, 'rm', '-q', 'engine');
  world.write('weir.yaml', `version: 1
engines:
  mine: {command: [./engine, "{model}", "{tokens}"], output: generic, build: [./build.sh], metrics: {syncs_per_token: {regex: '(\\d+) syncs'}}}
models: {m: model.bin}
backends: {cpu: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 8}}
`);
  world.write('.gitignore', 'engine\nlocks\n');
  commit(3);
});
after(() => world.remove());

// A commit on top of main whose engine reports `syncs`, and does `more` first.
function commit(syncs, more = '') {
  world.write('build.sh', `#!/bin/sh\ncat >engine <<'END'\n#!/bin/sh\n${more}\necho '${syncs} syncs'\nEND\nchmod +x engine\n`);
  fs.chmodSync(path.join(world.work, 'build.sh'), 0o755);
  world.git(world.work, 'add', '-A');
  world.git(world.work, 'commit', '-q', '--allow-empty', '-m', `${syncs} syncs`);
}
function run(words, {folder = world.work, env = {}} = {}) {
  return spawnSync(weir, words, {cwd: folder, encoding: 'utf8', env: {
    PATH: process.env.PATH, HOME: world.top, WEIR_CACHE: cache, WEIR_LOCK_DIR: path.join(world.top, 'locks'), ...env}});
}
// A fresh checkout of HEAD at the same place as before, built.
function checkout() {
  world.git(world.work, 'push', '-q', '--force', 'origin', 'HEAD:refs/heads/pushed');
  const folder = path.join(world.top, 'place');
  fs.rmSync(folder, {recursive: true, force: true});
  fs.renameSync(world.checkout(world.git(world.work, 'rev-parse', 'HEAD'), 0), folder);
  assert.equal(spawnSync('./build.sh', {cwd: folder}).status, 0);
  return folder;
}
// Gates HEAD beside HEAD^, as a job does. → its exit code and verdict.
function job(env, more = []) {
  const folder = checkout();
  const done = run(['gate', '--counts-only', '--against', 'HEAD^', '--json', '-', ...more], {folder, env});
  assert.ok(done.stdout, done.stderr);
  return {...done, folder, verdict: JSON.parse(done.stdout)};
}
// What an engine can do that ends last, or that stays: every kept base reports 9 syncs, and no count of it is left.
function poison() {
  execFileSync('sh', ['-c', `rm -rf counts*; find . -name engine -type f | while read -r file; do
  rm -f "$file"; printf '#!/bin/sh\\necho 9 syncs\\n' >"$file"; chmod +x "$file"; done`], {cwd: cache});
}

for (const [name, env] of [['GitHub and GitLab', {CI: 'true'}], ['Jenkins', {JENKINS_URL: 'https://ci.example/'}]]) {
  test(`an engine that rewrites the kept base makes no later push green (${name})`, () => {
    const main = world.git(world.work, 'rev-parse', 'HEAD');
    commit(3);
    assert.equal(job(env).status, 0, 'it looks harmless');
    poison();
    world.git(world.work, 'reset', '-q', '--hard', main);
    commit(9);
    const plain = job(env);
    assert.equal(plain.verdict.verdict, 'fail', plain.stderr);
    assert.equal(plain.status, 1);
    world.git(world.work, 'reset', '-q', '--hard', main);
  });
}

test('a base is kept for the next gate outside of CI, and in CI where --trust-cache says so', () => {
  const main = world.git(world.work, 'rev-parse', 'HEAD');
  commit(3);
  const reused = (done) => done.verdict.notes.includes("the base's build is taken from the cache");
  job({}), assert.ok(reused(job({})));
  assert.ok(!reused(job({CI: 'true'})));
  assert.ok(reused(job({CI: 'true'}, ['--trust-cache'])));
  assert.ok(reused(job({CI: 'false'})));
  assert.ok(!reused(job({SLURM_JOB_ID: '7'})));
  assert.ok(reused(job({SLURM_JOB_ID: '7'}, ['--trust-cache'])));
  assert.match(run(['gate', '--help']).stdout.replace(/\s+/g, ' '), /--trust-cache In CI and jobs of a scheduler, reuse .* trusts all that could write there: engines of earlier pull requests too/);
  world.git(world.work, 'reset', '-q', '--hard', main);
});

test('a base that is built for one job is gone after the next', () => {
  const own = world.fresh('own');
  const trees = () => fs.readdirSync(path.join(own, 'trees')).filter((name) => !name.includes('.'));
  commit(3);
  for (let i = 0; i < 3; ++i) {
    assert.equal(job({CI: 'true', WEIR_CACHE: own}).status, 0);
    assert.equal(trees().length, 1);
  }
});

test('a run that a pull request commits is not the newest one', () => {
  commit(3);
  const folder = checkout();
  // The pull request's own run, made elsewhere and committed under a name that sorts last.
  assert.equal(run(['run', '--counts-only', '--out', 'forged'], {folder}).status, 0);
  const [forged] = fs.readdirSync(path.join(folder, 'forged'));
  const from = path.join(folder, 'forged', forged);
  const journal = fs.readFileSync(path.join(from, 'run.jsonl'), 'utf8');
  const place = (name, text) => {
    fs.mkdirSync(path.join(folder, name), {recursive: true});
    fs.writeFileSync(path.join(folder, name, 'run.jsonl'), text);
  };
  const at = (seconds) => journal.replace(/"started_at":[0-9.]+/, `"started_at":${seconds}`);
  const now = Date.now() / 1000;
  assert.equal(run(['run', '--counts-only'], {folder}).status, 0);
  const [own] = fs.readdirSync(path.join(folder, 'weir-out'));
  const judged = () => {
    const done = run(['gate', '--json', '-', '--from'], {folder});
    return path.basename(JSON.parse(done.stdout).run);
  };
  assert.equal(judged(), own);
  place('weir-out/zzz', at(now - 86400));
  assert.equal(judged(), own, 'an older one with a name that sorts last');
  place('weir-out/zzz', at(now + 86400));
  assert.equal(judged(), own, 'one of tomorrow');
  place('weir-out/zzz', at(Date.now() / 1000 - 0.001));
  assert.equal(judged(), 'zzz', 'only what git does not track');
  world.git(folder, 'add', '-f', 'weir-out/zzz');
  assert.equal(judged(), own, 'one that git tracks');
  // By links and by a file beside the journal, too.
  world.git(folder, 'rm', '-q', '-r', '--cached', 'weir-out/zzz');
  fs.writeFileSync(path.join(folder, 'weir-out/zzz/note'), 'x');
  world.git(folder, 'add', '-f', 'weir-out/zzz/note');
  assert.equal(judged(), own);
  world.git(folder, 'rm', '-q', '-r', '-f', '--cached', 'weir-out/zzz/note');
  fs.renameSync(path.join(folder, 'weir-out/zzz'), path.join(world.top, 'left-behind'));
  fs.symlinkSync(path.join(world.top, 'left-behind'), path.join(folder, 'weir-out/zzz'));
  assert.equal(judged(), 'zzz');
  world.git(folder, 'add', '-f', 'weir-out/zzz');
  assert.equal(judged(), own, 'a link that git tracks');
  const said = run(['gate', '--from'], {folder}).stderr;
  assert.match(said, /weir-out\/zzz is not taken for the newest run: git tracks it; name it if it is meant/);
  const posted = run(['post', '--repo', 'o/r', '--sha', 'a'.repeat(40), '--dry-run'], {folder, env: {GITHUB_TOKEN: 'x'}});
  assert.ok(!posted.stdout.includes('zzz'), posted.stdout);
});

test('shards are joined in a folder that is named, and which nobody has made before', () => {
  commit(3);
  const folder = checkout();
  assert.equal(run(['run', '--counts-only', '--shard', '1/1', '--out', 'shards'], {folder}).status, 0);
  const [shard] = fs.readdirSync(path.join(folder, 'shards'));
  const merge = () => run(['merge', '--into', 'joined', `shards/${shard}`], {folder});
  assert.equal(merge().status, 0);
  const judged = run(['gate', '--json', '-', '--from', 'joined'], {folder});
  assert.equal(JSON.parse(judged.stdout).run, 'joined', judged.stderr);
  assert.equal(merge().status, 2);
  assert.match(merge().stderr, /--into joined: it is there already/);
});

const labelled = (runner) => fs.readFileSync(path.join(world.work, 'weir.yaml'), 'utf8').replace(/backends: .*/, `backends: {cpu: {runner: ${runner}}}`);
const plan = (...words) => run(['plan', '--guess', '--shards', '1', '--format', 'github', ...words], {env: {GITHUB_EVENT_NAME: 'pull_request'}});

test('a pull request does not choose the runner', () => {
  world.write('weir.yaml', labelled('[self-hosted, gpu]'));
  commit(3);
  const base = world.git(world.work, 'rev-parse', 'HEAD');
  const unnamed = plan();
  assert.equal(unnamed.status, 2, unnamed.stdout);
  assert.match(unnamed.stderr, /a pull request would choose the runner of mine\/m\/cpu\/decode \(self-hosted\+gpu\): plan with --rules-from/);
  const same = plan('--rules-from', base);
  assert.deepEqual(JSON.parse(same.stdout).include[0].runner, ['self-hosted', 'gpu']);
  for (const other of ['[self-hosted, signing]', 'self-hosted', '[gpu, self-hosted]']) {
    world.write('weir.yaml', labelled(other));
    const refused = plan('--rules-from', base);
    assert.equal(refused.status, 2, refused.stdout);
    assert.match(refused.stderr, /needs the runner .*, which [0-9a-f]+ gives to no backend/);
  }
  world.write('weir.yaml', labelled('[]'));
  assert.deepEqual(JSON.parse(plan().stdout).include[0].runner, ['ubuntu-latest']);
});

test('a label is a name, so that it begins no line of a script', () => {
  for (const label of ['"a\\ntouch pwned"', '"a b"', '"$(touch pwned)"', '"-x"', `"${'a'.repeat(65)}"`, '"a\'b"']) {
    world.write('weir.yaml', labelled(`[gpu, ${label}]`));
    const done = run(['plan', '--guess', '--shards', '1', '--format', 'slurm']);
    assert.equal(done.status, 2, done.stdout);
    assert.match(done.stderr, /runner: ".*" is no name: letters, digits/);
  }
  world.write('weir.yaml', labelled('[]'));
  for (const words of [['--out', 'x\ntouch pwned'], ['--plan', 'x\n#SBATCH y'], ['--cell', '*\n']]) {
    const done = run(['plan', '--guess', '--shards', '1', '--format', 'slurm', ...words]);
    assert.equal(done.status, 2, done.stdout);
    assert.ok(!done.stdout.includes('touch pwned'));
  }
});

test('documents and workflows name the run that is judged and posted', () => {
  const list = (folder) => fs.readdirSync(path.join(root, folder)).map((name) => path.join(folder, name));
  const files = ['README.md', 'action.yml', ...list('docs/ci'), ...list('docs/how-to'), ...list('ci/action'), ...list('gate/config/starter')];
  for (const file of files) {
    const text = fs.readFileSync(path.join(root, file), 'utf8');
    assert.doesNotMatch(text, /weir merge .*&& weir gate --from *$/m, file);
    assert.doesNotMatch(text, /cp weir-out\/\*/, file);
    if (/\.yml$|action\//.test(file)) assert.doesNotMatch(text, /path: ~\/\.cache\/weir$/m, file);
  }
  const text = fs.readFileSync(path.join(root, 'docs/how-to/shards.md'), 'utf8');
  const jobs = read_yaml_of(/```yaml\n([^]*?)```/.exec(text)[1]).jobs;
  const steps = Object.values(jobs).flatMap((one) => one.steps).map(({run: script}) => script ?? '').join('\n');
  assert.match(steps, /weir plan .*--rules-from/);
  assert.match(steps, /weir gate --from "\$RUNNER_TEMP\/joined"/);
});
function read_yaml_of(text) {
  const file = path.join(world.fresh('yaml'), 'a.yml');
  fs.writeFileSync(file, text);
  return read_yaml(file);
}
