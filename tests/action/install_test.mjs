// Sources of weir: a release whose sum fits, or its own sources; "curl" and "cmake" are stand-ins.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {root, run_action} from './runner.mjs';

let top, count = 0, archive, sum;
const own = /project\(weir VERSION ([\d.]+)/.exec(fs.readFileSync(path.join(root, 'CMakeLists.txt'), 'utf8'))[1];
before(() => {
  top = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-install-'));
  const bin = path.join(top, 'made/weir-x/bin');
  fs.mkdirSync(bin, {recursive: true});
  fs.writeFileSync(path.join(bin, 'weir'), '#!/bin/sh\ncase $1 in --version) echo weir of the release ;; esac\n', {mode: 0o755});
  archive = path.join(top, 'weir.tar.gz');
  execFileSync('tar', ['-czf', archive, '-C', path.join(top, 'made'), 'weir-x']);
  sum = crypto.createHash('sha256').update(fs.readFileSync(archive)).digest('hex');
});
after(() => fs.rmSync(top, {recursive: true, force: true}));

// → run_action's answer and `fetched`, the addresses asked for.
function run({ref = '', version = '', inputs = {}, sum_text = `${sum}  weir.tar.gz\n`, archive_file = archive, left, action = root, glibc = '2.36', event = 'schedule'}) {
  const folder = path.join(top, String(++count));
  const [bin, temp] = ['bin', 'temp'].map((name) => path.join(folder, name));
  for (const place of [bin, temp]) fs.mkdirSync(place, {recursive: true});
  fs.writeFileSync(path.join(folder, 'sum'), sum_text);
  fs.writeFileSync(path.join(bin, 'curl'), `#!/bin/sh
while [ $# -gt 1 ]; do [ "$1" != --output ] || to=$2; shift; done
echo "$1" >>'${folder}/fetched'
case $1 in *.sha256) cp '${folder}/sum' "$to" ;; *.tar.gz) cp '${archive_file}' "$to" ;; *) exit 22 ;; esac\n`, {mode: 0o755});
  fs.writeFileSync(path.join(bin, 'uname'), '#!/bin/sh\ncase $1 in -s) echo Linux ;; -m) echo x86_64 ;; esac\n', {mode: 0o755});
  fs.writeFileSync(path.join(bin, 'getconf'), `#!/bin/sh\necho glibc ${glibc}\n`, {mode: 0o755});
  fs.writeFileSync(path.join(bin, 'cmake'), `#!/bin/sh
echo "$*" >>'${folder}/cmake'
case $1 in --install) mkdir -p "$4/bin"; cp '${top}/made/weir-x/bin/weir' "$4/bin/" ;; esac\n`, {mode: 0o755});
  // Puts there a program that an earlier job, or an engine in this one, left behind.
  const leave = (at) => {
    fs.mkdirSync(path.join(at, 'bin'), {recursive: true});
    fs.writeFileSync(path.join(at, 'bin/weir'), '#!/bin/sh\necho weir of an engine\n', {mode: 0o755});
  };
  if (left) for (const place of ['temp/weir', 'tools/weir']) leave(path.join(folder, place));
  const done = run_action({
    action, workspace: folder, temp, inputs: {version, ...(action === root ? {against: 'none'} : {}), ...inputs}, path: [bin],
    env: {RUNNER_TOOL_CACHE: path.join(folder, 'tools')}, cache: left && ((key, place) => leave(place)),
    github: {event_name: event, repository: 'me/engine', action_repository: 'o/weir', action_ref: ref, token: '', sha: 'a'.repeat(40), ref: 'refs/heads/main'}});
  const read = (name) => fs.readFileSync(path.join(folder, name), {encoding: 'utf8', flag: 'a+'}).split('\n').filter(Boolean);
  return Object.assign(done, {fetched: read('fetched'), built: read('cmake'), installed: (done.steps.install ?? done.steps['Install weir'])?.outcome === 'success'});
}

test('the Action of a release\'s tag takes that release', () => {
  const done = run({ref: 'v1'});
  assert.ok(done.installed, done.log);
  const place = `https://github.example/o/weir/releases/download/v${own}/weir-${own}-linux-x86-64.tar.gz`;
  assert.deepEqual(done.fetched, [place, `${place}.sha256`]);
  assert.match(done.log, /weir of the release/);
});

test('a version is taken as asked for, and a pinned sum stands over the release\'s own', () => {
  assert.match(run({version: '0.9.1'}).fetched[0], /v0\.9\.1\/weir-0\.9\.1-linux/);
  const pinned = run({version: `0.9.1@sha256:${sum}`, sum_text: 'nonsense'});
  assert.ok(pinned.installed, pinned.log);
  assert.equal(pinned.fetched.length, 1);
  assert.ok(!run({version: `0.9.1@sha256:${'0'.repeat(64)}`}).installed);
});

test('an archive whose sum is another, or that is not there, is not installed', () => {
  for (const given of [{sum_text: '0'.repeat(64)}, {sum_text: ''}, {archive_file: '/nowhere'}, {archive_file: '/etc/passwd', sum_text: sum}]) {
    const done = run({ref: 'v1', ...given});
    assert.ok(!done.installed, JSON.stringify(given));
    assert.ok(!done.ran.includes('Gate'));
  }
});

test('a release that lies there already, or in a cache, is fetched and compared with its sum again', () => {
  const done = run({ref: 'v1', left: true});
  assert.ok(done.installed, done.log);
  assert.equal(done.fetched.length, 2);
  assert.match(done.log, /weir of the release/);
  assert.ok(!done.log.includes('weir of an engine'));
});

test('the Action of a branch builds its sources, once for each state of them', () => {
  const done = run({ref: 'main'});
  assert.ok(done.installed, done.log);
  assert.ok(done.built.some((line) => line.includes('WEIR_STATIC=ON')), done.built.join('\n'));
  assert.match(done.saved, /^weir-Linux-x86_64-/);
  assert.ok(done.ran.indexOf('Keep the build') < done.ran.indexOf('Gate'), 'before an engine has run');
  const again = run({ref: '', version: 'source', left: true});
  assert.deepEqual([again.built, again.saved], [[], undefined]);
});

test('a pull request is measured by no weir that an earlier push of it could have saved', () => {
  for (const event of ['pull_request', 'merge_group', 'issue_comment']) {
    const done = run({ref: 'main', left: true, event});
    assert.ok(done.built.length > 0, done.log);
    assert.deepEqual([done.saved, done.log.includes('weir of an engine')], [undefined, false], event);
  }
});

test('what may write takes no cache: it fetches a release, or builds', () => {
  for (const name of ['post', 'waive', 'baseline', 'trend']) {
    const action = path.join(root, 'ci', name);
    assert.equal(run({ref: 'v1', left: true, action}).fetched.length, 2, name);
    const built = run({ref: 'main', left: true, action});
    assert.ok(built.built.length > 0, name);
    assert.ok(!built.log.includes('weir of an engine'), built.log);
  }
});

test('install-only puts weir on PATH, and measures and keeps nothing', () => {
  const done = run({version: `v0.2.0@sha256:${sum}`, inputs: {'install-only': 'true', 'working-directory': 'nowhere'}});
  assert.ok(done.success && done.installed, done.log);
  assert.deepEqual(done.ran, ['Look at the inputs', 'Install weir']);
  assert.ok(done.path.some((folder) => fs.existsSync(path.join(folder, 'weir'))), done.log);
  assert.ok(!run({inputs: {'install-only': 'yes'}}).success);
});

test('a system that releases do not start on is told in one sentence', () => {
  const done = run({ref: 'v1', glibc: '2.28'});
  assert.ok(!done.installed);
  assert.deepEqual(done.fetched, []);
  assert.match(done.log, /::error title=weir::this system has glibc 2\.28; weir needs glibc 2\.31 or newer .*; version: source builds weir instead/);
});
