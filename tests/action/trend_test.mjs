// ci/trend: runs kept on a branch, where they changed, pages on another branch. "git push" goes to a
// bare repository; the runs are CSV's, exported by weir itself.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {commands_in, release, root, run_action} from './runner.mjs';
import {World, weir} from './world.mjs';
import {zip} from './zip.mjs';

let world, built;
before(() => {
  world = new World();
  built = release(world.fresh('release'), `exec '${weir}' "$@"`);
});
after(() => world.remove());

// A real run of the world's engine, in its own checkout.
function measured(sha) {
  const folder = world.checkout(sha, 0);
  execFileSync(weir, ['run', '--counts-only', '--out', 'weir-out', '-q'],
               {cwd: folder, env: {...process.env, HOME: world.top, WEIR_LOCK_DIR: path.join(world.top, 'locks')}, stdio: 'pipe'});
  const runs = fs.readdirSync(path.join(folder, 'weir-out')).filter((name) => /^\d/.test(name));
  return {folder, run: path.join('weir-out', runs[0])};
}

function trend({folder, run}, inputs = {}, more = {}) {
  return run_action({
    action: path.join(root, 'ci/trend'), workspace: folder, temp: world.fresh('temp'), path: [built.bin],
    inputs: {runs: run, notify: 'false', version: built.version, ...inputs},
    github: {repository: 'o/r', token: 'ghs_writes', action_ref: '', run_attempt: 1, run_id: '77', event_name: 'schedule',
             ref: 'refs/heads/main', sha: world.git(folder, 'rev-parse', 'HEAD'), event: {}},
    ...more});
}
const of_branch = (branch, file) => world.git(world.origin, 'show', `${branch}:${file}`);
const runs_in = (text) => text.split('\n').filter((line) => line.includes('"type":"run"')).length;

test('a run is kept on a branch that was not there, and pages are put on another', () => {
  const done = trend(measured(world.git(world.work, 'rev-parse', 'main')), {'pages-branch': 'gh-pages'});
  assert.equal(done.success, true, done.log);
  assert.equal(done.outputs.changed, 'false', done.log);
  assert.equal(runs_in(of_branch('perf-history', 'history.jsonl')), 1);
  assert.match(of_branch('gh-pages', 'index.html'), /<html/);
  assert.equal(of_branch('gh-pages', '.nojekyll'), '');
});

test('the next one is added, a count that grew is told, and the same one again changes nothing', () => {
  const sha = world.commit('slower', 9);
  world.git(world.work, 'push', '-q', 'origin', 'main');
  const next = measured(sha);
  const done = trend(next, {'pages-branch': 'none'});
  assert.equal(done.success, true, done.log);
  assert.equal(done.outputs.changed, 'true', done.log);
  assert.equal(done.outputs.changes, '1', done.log);
  assert.match(done.log, /WORSE +syncs\/token grew by 6/);
  const history = of_branch('perf-history', 'history.jsonl');
  assert.equal(runs_in(history), 2);
  assert.equal(trend(next, {'pages-branch': 'none'}).success, true);
  assert.equal(of_branch('perf-history', 'history.jsonl'), history);
});

test('who is refused by a push of another takes what is there and tries again', () => {
  const sha = world.commit('and again', 9);
  world.git(world.work, 'push', '-q', 'origin', 'main');
  const next = measured(sha);
  // The first push meets a branch that has moved on.
  const hook = path.join(world.origin, 'hooks/update');
  fs.writeFileSync(hook, `#!/bin/sh
[ -e '${world.top}/moved' ] && exit 0
touch '${world.top}/moved'
exit 1
`, {mode: 0o755});
  const done = trend(next, {'pages-branch': 'none'});
  fs.rmSync(hook);
  assert.equal(done.success, true, done.log);
  assert.equal(runs_in(of_branch('perf-history', 'history.jsonl')), 3);
});

test('git has the token where it asks origin, and nothing that reads what was measured has it', () => {
  const {folder, run} = measured(world.git(world.work, 'rev-parse', 'main'));
  const temp = world.fresh('temp'), bin = world.fresh('bin'), url = 'https://github.example/o/r';
  world.git(folder, 'remote', 'set-url', 'origin', url);
  fs.writeFileSync(path.join(bin, 'zip'), zip({'run/run.jsonl': fs.readFileSync(path.join(folder, run, 'run.jsonl'))}));
  const program = (name, text) => fs.writeFileSync(path.join(bin, name), `#!/bin/bash\n${text}\n`, {mode: 0o755});
  program('gh', `printf 'HTTP/2.0 200 OK\\n\\r\\n'; case "$*" in */zip) cat '${bin}/zip' ;; *) echo 7 9 ;; esac`);
  program('git', `env | grep -Eq "ghs_|GIT_CONFIG_VALUE_[0-9]+=AUTHORIZATION" && had=token || had=none\nwords=" $* "
for word in ls-remote fetch push; do [[ $words != *" $word "* ]] || echo "git $word $had" >>'${bin}/log'; done
exec ${execFileSync('which', ['git'], {encoding: 'utf8'}).trim()} "\${@/#${url.replaceAll('/', '\\/')}/file://${world.origin}}"`);
  const spy = release(world.fresh('release'), `env | grep -Eq "ghs_|AUTHORIZATION" && echo "weir token" >>'${bin}/log' || echo "weir $1 none" >>'${bin}/log'\nexec '${weir}' "$@"`);
  const more = {path: [bin, spy.bin], env: {WEIR_CACHE: path.join(temp, 'cache')}};
  for (const [action, inputs] of [['trend', {notify: 'false', branch: 'spied', 'pages-branch': 'spied-pages'}], ['baseline', {branch: 'spied-baselines'}]]) {
    // After a push ci/baseline stores what was waived; by hand, what was counted.
    fs.writeFileSync(path.join(bin, 'log'), '');
    const github = {repository: 'o/r', token: 'ghs_writes', action_ref: '', run_id: '77', event_name: action === 'trend' ? 'push' : 'workflow_dispatch', ref: 'refs/heads/main', sha: '', event: {}};
    const done = run_action({action: path.join(root, 'ci', action), workspace: folder, temp: world.fresh('temp'), inputs: {...inputs, version: spy.version}, github, ...more});
    assert.equal(done.success, true, done.log);
    const log = fs.readFileSync(path.join(bin, 'log'), 'utf8').split('\n');
    assert.ok(log.includes('git ls-remote token') && log.includes('git push token') && log.some((line) => /^weir .* none/.test(line)), log.join());
    for (const bad of ['weir token', 'git ls-remote none', 'git fetch none', 'git push none']) assert.ok(!log.includes(bad), `${action}: ${bad}`);
  }
});

test('a branch with pages of somebody else is left as it is', () => {
  world.git(world.work, 'checkout', '-q', '--orphan', 'theirs');
  world.write('index.html', '<html>the manual</html>');
  world.git(world.work, 'add', '-A');
  world.git(world.work, 'commit', '-q', '-m', 'manual');
  world.git(world.work, 'push', '-q', 'origin', 'theirs');
  world.git(world.work, 'checkout', '-q', '-f', 'main');
  const done = trend(measured(world.git(world.work, 'rev-parse', 'main')), {'pages-branch': 'theirs'});
  assert.equal(done.success, false);
  assert.match(done.log, /holds something else/);
  assert.match(of_branch('theirs', 'index.html'), /the manual/);
});

test('pages are put over those of the night before', () => {
  const done = trend(measured(world.git(world.work, 'rev-parse', 'main')), {'pages-branch': 'gh-pages'});
  assert.equal(done.success, true, done.log);
  assert.equal(world.git(world.origin, 'rev-list', '--count', 'gh-pages'), '1');
});

test('pages name commits by their messages unless they shall not', () => {
  const run = measured(world.git(world.work, 'rev-parse', 'main'));
  const words = () => world.git(world.origin, 'grep', '--count', '--fixed-strings', 'and again', 'gh-pages');
  assert.equal(trend(run, {'pages-branch': 'gh-pages'}).success, true);
  assert.match(words(), /data/);
  assert.equal(trend(run, {'pages-branch': 'gh-pages', subjects: 'false'}).success, true);
  assert.throws(words); // nothing is found
});

test('names that were measured are no commands to the runner', () => {
  const run = measured(world.git(world.work, 'rev-parse', 'main'));
  fs.writeFileSync(path.join(run.folder, 'odd.csv'), 'cell,metric,time,value\n' +
    [1, 2, 3, 4].map((time) => `"::error::x",syncs_per_token,${time},${time}\n"##[error]y",syncs_per_token,${time},${time}\n`).join(''));
  execFileSync(weir, ['trend', 'import', '--csv', 'odd.csv', '--db', 'odd.db'], {cwd: run.folder});
  execFileSync(weir, ['trend', 'export', '--db', 'odd.db', '--output', 'odd.jsonl'], {cwd: run.folder});
  world.git(world.work, 'checkout', '-q', '--orphan', 'odd');
  world.git(world.work, 'rm', '-rqf', '.');
  fs.copyFileSync(path.join(run.folder, 'odd.jsonl'), path.join(world.work, 'history.jsonl'));
  world.git(world.work, 'add', 'history.jsonl');
  world.git(world.work, 'commit', '-q', '-m', 'odd');
  world.git(world.work, 'push', '-q', 'origin', 'odd');
  world.git(world.work, 'checkout', '-q', '-f', 'main');
  const done = trend(run, {'pages-branch': 'none', branch: 'odd'});
  assert.equal(done.success, true, done.log);
  assert.deepEqual(commands_in(done.log), []);
});

test('wrong inputs end it before anything is written', () => {
  const run = measured(world.git(world.work, 'rev-parse', 'main'));
  for (const inputs of [{branch: '-x'}, {branch: 'a..b'}, {branch: 'x', 'pages-branch': 'x'}, {'pages-branch': 'a b'}, {notify: 'perhaps'}, {subjects: 'few'}, {runs: 'nowhere'}]) {
    const done = trend(run, {'pages-branch': 'none', ...inputs});
    assert.equal(done.success, false, JSON.stringify(inputs));
  }
  assert.throws(() => of_branch('-x', 'history.jsonl'));
});
