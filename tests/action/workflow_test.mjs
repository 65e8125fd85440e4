// Runs the workflow that `weir init --ci github` writes as a runner does: the engine is built, the model made, the base
// compared with, baselines stored. Each job has a fresh checkout at the same place, as on hosted runners.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {filled} from './expressions.mjs';
import {read_yaml, release, root, run_action} from './runner.mjs';
import {World, weir} from './world.mjs';
import {zip} from './zip.mjs';

const config = `version: 1
engines:
  mine:
    command: [./engine, "{model}", "{tokens}"]
    output: generic
    metrics: {syncs_per_token: {regex: '(\\d+) syncs'}}
    build: [./build.sh]
models: {m: models/tiny.gguf}
backends: {cpu: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 8}}
`;

let world, workflow, built;
before(() => {
  world = new World();
  // Stores what would be posted.
  built = release(world.fresh('release'), `[ "$1" != post ] || { printf '%s|' "$@"; cat "$2" 2>/dev/null >'${world.top}/posted'; exit; }
exec '${weir}' "$@"`);
  fs.mkdirSync(path.join(world.top, 'o'));
  fs.symlinkSync(world.origin, path.join(world.top, 'o/r'));
  world.git(world.work, 'rm', '-q', 'engine', 'model.bin');
  fs.mkdirSync(path.join(world.work, 'models'));
  execFileSync(weir, ['model', 'make', 'models/tiny.gguf', '--layers', '2', '--embedding', '128'], {cwd: world.work, stdio: 'pipe'});
  world.write('weir.yaml', config);
  world.write('syncs', '3\n');
  // No engine: what builds it counts how often it was built.
  world.write('build.sh', `#!/bin/sh\nset -e\necho . >>"$BUILDS"\nprintf '#!/bin/sh\\ntest -e "$1" && echo "%s syncs"\\n' "$(cat syncs)" >engine\nchmod +x engine\n`);
  world.write('.gitignore', 'weir-out/\nengine\nmodels/\n');
  execFileSync('./build.sh', {cwd: world.work, env: {...process.env, BUILDS: '/dev/null'}});
  world.git(world.work, 'add', '-A');  // git knows what it holds, and what not
  const done = spawnSync(weir, ['init', '--ci', 'github'], {
    cwd: world.work, encoding: 'utf8', env: {PATH: process.env.PATH, HOME: world.top, WEIR_LOCK_DIR: path.join(world.top, 'locks')}});
  assert.equal(done.status, 0, done.stderr + done.stdout);
  assert.doesNotMatch(done.stdout, /where these come from|build:/, 'nothing is left to fill in');
  world.git(world.work, 'add', '-A');
  world.git(world.work, 'commit', '-q', '-m', 'weir');
  world.git(world.work, 'push', '-q', 'origin', 'main');
  workflow = read_yaml(path.join(world.work, '.github/workflows/weir.yml'));
});
after(() => world.remove());

// A pull request that makes the engine say `syncs`.
function pull_request(name, syncs, number) {
  world.git(world.work, 'checkout', '-q', '-B', name, 'main');
  world.write('syncs', `${syncs}\n`);
  world.write('note', name);
  world.git(world.work, 'add', '-A');
  world.git(world.work, 'commit', '-q', '-m', name);
  const head = world.git(world.work, 'rev-parse', 'HEAD');
  world.git(world.work, 'checkout', '-q', 'main');
  const sha = world.merge(name, number);
  const base = world.git(world.work, 'rev-parse', 'main');
  return {event_name: 'pull_request', ref: `refs/pull/${number}/merge`, sha, base_ref: 'main', head_ref: name,
          event: {number, pull_request: {number, title: name, head: {sha: head, ref: name, repo: {full_name: 'o/r'}},
                                         base: {sha: base, ref: 'main', repo: {full_name: 'o/r'}}}}};
}
const by_hand = () => ({event_name: 'workflow_dispatch', ref: 'refs/heads/main', ref_name: 'main',
                        sha: world.git(world.work, 'rev-parse', 'main'), event: {repository: {default_branch: 'main'}}});

// A job's steps. → what the last one, which is weir's, did; with `builds` and the artifacts of it.
function job(name, given, more = {}) {
  const github = {repository: 'o/r', token: 'ghs_reads', action_ref: '', run_attempt: 1, run_id: '77', workflow: 'weir', ...given};
  const home = world.fresh('home');
  const place = path.join(world.top, 'runner', 'r');  // as /home/runner/work/r/r
  const builds = path.join(home, 'builds');
  fs.writeFileSync(builds, '');
  const env = {HOME: home, BUILDS: builds, WEIR_CACHE: path.join(home, '.cache/weir'), ...more.env};
  let done;
  for (const step of (more.of ?? workflow).jobs[name].steps) {
    const inputs = Object.fromEntries(Object.entries(step.with ?? {}).map(([key, value]) => [key, filled(String(value), {github})]));
    if (step.uses?.startsWith('actions/checkout@')) {
      assert.equal(inputs['fetch-depth'], '0');
      fs.rmSync(place, {recursive: true, force: true});
      fs.mkdirSync(path.dirname(place), {recursive: true});
      fs.renameSync(world.checkout(github.sha, 0), place);
    } else if (step.uses === 'OWNER/weir@v1') {
      done = world.run(place, github, inputs, {env});
    } else if (step.uses === 'OWNER/weir/ci/post@v1') {
      done = run_action({action: path.join(root, 'ci/post'), workspace: world.fresh('empty'), temp: world.fresh('temp'),
                         inputs: {...inputs, version: built.version}, github: {...github, token: 'ghs_writes'},
                         env: {HOME: home, GITHUB_SERVER_URL: `file://${world.top}`}, path: [...more.path, built.bin]});
    } else if (step.uses === 'OWNER/weir/ci/baseline@v1') {
      done = run_action({action: path.join(root, 'ci/baseline'), workspace: place, temp: world.fresh('temp'),
                         inputs: {...inputs, version: built.version}, github: {...github, token: 'ghs_writes'},
                         env: {...env, ...more.env}, path: [...more.path, built.bin]});
    } else {
      assert.ok(step.run && !step.uses, JSON.stringify(step));
      execFileSync('bash', ['-eo', 'pipefail', '-c', step.run], {cwd: place, env: {...process.env, ...env}, stdio: 'pipe'});
    }
  }
  return {...done, builds: fs.readFileSync(builds, 'utf8').length / 2, place};
}

test('the first pull request is judged beside its base, without any stored baseline', () => {
  const same = job('measure', pull_request('same', 3, 1));
  assert.equal(same.success, true, same.log);
  assert.equal(same.outputs.verdict, 'pass', same.log);
  assert.equal(same.builds, 2, 'the head and its base');
  assert.match(same.log, /origin has no branch perf-baselines yet/);
  assert.ok(fs.existsSync(path.join(same.place, 'models/tiny.gguf')), 'git does not hold it');
});

test('a pull request that adds syncs is red, and its base is built anew', () => {
  const red = job('measure', pull_request('slower', 5, 2));
  assert.equal(red.success, false);
  assert.equal(red.outputs.verdict, 'fail', red.log);
  assert.match(red.summary, /syncs\/token \| 3\u00a0\u2192\u00a0\*\*5\*\*/);
  assert.equal(red.builds, 2, red.log);
});

// gh brings the artifact of this workflow run, and the pull requests that are open.
function artifact_of({artifacts}, more = {}, pulls = []) {
  const bin = world.fresh('bin');
  fs.writeFileSync(path.join(bin, 'zip'), zip({...artifacts['weir-gate'], ...more}));
  fs.writeFileSync(path.join(bin, 'pulls'), JSON.stringify(pulls));
  fs.writeFileSync(path.join(bin, 'gh'), `#!/bin/sh\nprintf 'HTTP/2.0 200 OK\\n\\r\\n'\ncase "$*" in */zip) cat '${bin}/zip' ;; */pulls\\ *) cat '${bin}/pulls' ;; *) echo 7 9 ;; esac\n`, {mode: 0o755});
  return bin;
}
// The verdict that a job posts.
function posted(github, more) {
  fs.rmSync(path.join(world.top, 'posted'), {force: true});
  const done = job('post', github, more);
  assert.equal(done.success, true, done.log);
  assert.match(done.log, /--judged-here\|/);
  return JSON.parse(fs.readFileSync(path.join(world.top, 'posted'), 'utf8'));
}

const refused = spawnSync(weir, ['gate', '--from=.', '--rules-from=HEAD'], {encoding: 'utf8', cwd: '/'}).stderr.includes('leave --rules-from out');
test('the job that posts judges the records by the base\'s rules, whatever the artifact says of itself', {skip: refused && 'this weir judges no run by other rules'}, () => {
  const same = pull_request('as-before', 3, 4);
  const pass = posted(same, {path: [artifact_of(job('measure', same))]});
  assert.equal(pass.verdict, 'pass');
  assert.equal(pass.rules.commit, world.git(world.work, 'rev-parse', 'main'));
  const slower = pull_request('slower-still', 6, 5);
  const red = job('measure', slower);
  const forged = Buffer.from(JSON.stringify({...pass, verdict: 'pass'}));
  const fail = posted(slower, {path: [artifact_of(red, {'verdict.json': forged, 'run/verdict.json': forged, 'weir.yaml': Buffer.from('limits: []')})]});
  assert.equal(fail.verdict, 'fail');
  assert.equal(fail.cells[0].judgements.find(({subject}) => subject === 'syncs_per_token').current, 6);
});

test('a fork is measured by one workflow and judged by the other', {skip: refused && 'this weir judges no run by other rules'}, () => {
  const place = world.fresh('forks');
  fs.cpSync(world.work, place, {recursive: true});
  fs.rmSync(path.join(place, '.github'), {recursive: true});
  const done = spawnSync(weir, ['init', '--ci', 'github', '--forks'], {
    cwd: place, encoding: 'utf8', env: {PATH: process.env.PATH, HOME: world.top, WEIR_LOCK_DIR: path.join(world.top, 'locks')}});
  assert.match(done.stdout, /wrote \.github\/workflows\/weir\.yml\nwrote \.github\/workflows\/weir-post\.yml\n/, done.stderr);
  const [measures, posts] = ['weir.yml', 'weir-post.yml'].map((name) => read_yaml(path.join(place, '.github/workflows', name)));
  assert.deepEqual([Object.keys(measures.jobs), posts.on.workflow_run.workflows], [['measure', 'baselines'], [measures.name]]);
  const fork = pull_request('from-afar', 7, 9);
  const pull = fork.event.pull_request;
  pull.head.repo.full_name = 'stranger/r';
  const measured = job('measure', fork, {of: measures});
  assert.equal(measured.outputs.verdict, 'fail', measured.log);
  const ended = {event_name: 'workflow_run', ref: 'refs/heads/main', sha: pull.base.sha, event: {workflow_run: {
    id: '77', event: 'pull_request', head_sha: pull.head.sha, head_branch: pull.head.ref, head_repository: {full_name: 'stranger/r', owner: {login: 'stranger'}}}}};
  const verdict = posted(ended, {of: posts, path: [artifact_of(measured, {}, [pull])]});
  assert.deepEqual([verdict.verdict, verdict.rules.commit], ['fail', pull.base.sha]);
});

test('an engine that steals finds nothing that writes, and what it leaves behind reaches no job that posts', () => {
  const spy = path.join(world.top, 'spy'), temps = path.join(world.top, 'temp');
  fs.mkdirSync(spy);
  fs.writeFileSync(path.join(spy, 'evil.sh'), `{ echo "in $RUNNER_TEMP"; env; } >>'${spy}/ran'\n`);
  // Its own environment, its parents', git's credentials, the runner's files, weir itself and the baselines.
  const thief = `#!/bin/sh
{ env; pid=$$
  while [ "$pid" -gt 1 ]; do tr '\\0' '\\n' <"/proc/$pid/environ"; pid=$(sed -n 's/^PPid:.//p' "/proc/$pid/status"); done
  cat .git/config ~/.git-credentials ~/.netrc; } >>'${spy}/seen' 2>/dev/null
for file in ${temps}*/file-env; do echo 'BASH_ENV=${spy}/evil.sh' >>"$file"; done
for file in ${temps}*/file-path; do echo '${spy}' >>"$file"; done
for file in ${temps}*/weir/bin/weir; do rm -f "$file"; printf '#!/bin/sh\\necho stolen weir >>${spy}/ran\\n' >"$file"; chmod +x "$file"; done
echo 3 syncs
`;
  world.git(world.work, 'checkout', '-q', '-B', 'thief', 'main');
  world.write('build.sh', `#!/bin/sh\necho . >>"$BUILDS"\ncat >engine <<'END'\n${thief}END\nchmod +x engine\n`);
  world.git(world.work, 'commit', '-q', '-am', 'faster');
  const head = world.git(world.work, 'rev-parse', 'HEAD');
  world.git(world.work, 'checkout', '-q', 'main');
  const pull = {number: 6, title: 'faster', head: {sha: head, ref: 'thief', repo: {full_name: 'o/r'}},
                base: {sha: world.git(world.work, 'rev-parse', 'main'), ref: 'main', repo: {full_name: 'o/r'}}};
  const github = {event_name: 'pull_request', ref: 'refs/pull/6/merge', sha: world.merge('thief', 6), base_ref: 'main', head_ref: 'thief',
                  event: {number: 6, pull_request: pull}};
  const measured = job('measure', github);
  const read = (name) => fs.readFileSync(path.join(spy, name), {encoding: 'utf8', flag: 'a+'});
  assert.match(read('seen'), /^GITHUB_OUTPUT=/m, 'it sees its parents');
  assert.match(read('ran'), /^in /m, 'it runs inside later steps of its own job');
  const before = read('ran');
  const artifacts = measured.artifacts['weir-gate'] ? measured : {artifacts: {'weir-gate': {'run/run.jsonl': Buffer.from('{}')}}};
  const done = job('post', github, {path: [artifact_of(artifacts)]});
  assert.ok(done.ran.includes('Post the verdict'), done.log);
  assert.equal(read('ran'), before, 'and in no step of the job that posts');
  for (const name of ['seen', 'ran']) assert.ok(!/ghs_/.test(read(name)), /.*ghs_.*/.exec(read(name))?.[0]);
});

test('by hand it stores what the default branch does, and judges by it from then on', () => {
  const counted = job('measure', by_hand());
  assert.equal(counted.success, true, counted.log);
  assert.match(counted.summary, /nothing was compared: no baseline is stored/);
  const bin = artifact_of(counted);
  const stored = job('baselines', by_hand(), {path: [bin]});
  assert.equal(stored.success, true, stored.log);
  assert.equal(stored.builds, 0, 'no engine runs beside a token that may write');
  assert.match(world.git(world.origin, 'ls-tree', '-r', '--name-only', 'perf-baselines'), /mine\/m\/cpu\/decode\/.*\.json/);
  const again = job('measure', by_hand());
  assert.equal(again.outputs.verdict, 'pass', again.log);
  // The same twice makes no second commit.
  const commits = () => world.git(world.origin, 'rev-list', '--count', 'perf-baselines');
  const before = commits();
  assert.equal(job('baselines', by_hand(), {path: [bin]}).success, true);
  assert.equal(commits(), before);
});

test('a base whose program nothing builds is told in one sentence', () => {
  world.write('weir.yaml', config.replace('    build: [./build.sh]\n', ''));
  world.git(world.work, 'commit', '-q', '-am', 'no build');
  world.git(world.work, 'push', '-q', 'origin', 'main');
  const done = job('measure', pull_request('unbuilt', 3, 3));
  assert.equal(done.success, false);
  assert.match(done.log, /a base is a fresh checkout, so its engine in weir\.yaml needs the command that makes it/);
});
