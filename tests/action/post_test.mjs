// The second stage (ci/post): a workflow run's artifact, which anybody may have made. "gh" and
// "weir post" are stand-ins that keep what they were asked.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {commands_in, root, run_action} from './runner.mjs';
import {zip} from './zip.mjs';

const sha = 'a'.repeat(40);
let top, count = 0;
before(() => { top = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-post-')); });
after(() => fs.rmSync(top, {recursive: true, force: true}));

const missing = /\|--missing-verdict=[^|]+\|token=/;
const program = (file, text) => fs.writeFileSync(file, `#!/bin/sh\n${text}`, {mode: 0o755});

// → run_action's answer, and `posts`: the words of each "weir post".
function run({members = {'verdict.json': Buffer.from('{}')}, archive, artifacts, event = {}, inputs = {}}) {
  const folder = path.join(top, String(++count));
  const [bin, temp, log] = ['bin', 'temp', 'log'].map((name) => path.join(folder, name));
  for (const place of [bin, temp]) fs.mkdirSync(place, {recursive: true});
  fs.writeFileSync(path.join(folder, 'zip'), archive ?? zip(members));
  fs.writeFileSync(path.join(folder, 'artifacts'), JSON.stringify({artifacts: artifacts ?? [{id: 7, size_in_bytes: 9, expired: false}]}));
  program(path.join(bin, 'gh'), `printf '%s\\n' "$*" >>'${log}.gh'
last=; for word; do [ "$last" != --jq ] || jq=$word; last=$word; done
case "$*" in
  *artifacts/7/zip) cat '${folder}/zip' ;;
  *runs/42/artifacts*) jq -r "$jq" <'${folder}/artifacts' ;;
  *) echo "gh: Not Found (HTTP 404)" >&2; exit 1 ;;
esac\n`);
  const cache = (key, prefix) => {
    fs.mkdirSync(path.join(prefix, 'bin'), {recursive: true});
    program(path.join(prefix, 'bin/weir'), `case "$*" in --version) echo weir 0; exit ;; *--help) exit ;; esac
printf '%s|' "$@" "token=$GITHUB_TOKEN" >>'${log}'; echo >>'${log}'\n`);
  };
  const done = run_action({
    action: path.join(root, 'ci/post'), workspace: folder, temp, inputs, cache, path: [bin],
    github: {event_name: 'workflow_run', repository: 'o/r', token: 'ghs_writes', action_ref: '', sha: 'b'.repeat(40),
             ref: 'refs/heads/main', event: {workflow_run: {
               id: '42', head_sha: sha, head_branch: 'topic', head_repository: {owner: {login: 'stranger'}}, ...event}}}});
  done.posts = fs.existsSync(log) ? fs.readFileSync(log, 'utf8').trim().split('\n') : [];
  done.asked = fs.readFileSync(`${log}.gh`, {encoding: 'utf8', flag: 'a+'});
  done.folder = folder;
  return done;
}

test('the verdict is posted to where the event says', () => {
  const done = run({});
  assert.equal(done.success, true, done.log);
  assert.match(done.posts[0], /^post\|.*\/verdict.json\|--repo\|o\/r\|--event\|.*event.json\|--name\|gate\|--fail\|token=ghs_writes/);
  assert.match(done.asked, /-f name=weir-gate/);
  assert.match(run({inputs: {name: 'gpu'}}).asked, /-f name=weir-gpu/);
});

test('of a run that was attempted again the newest artifact counts, and an expired one is none', () => {
  const artifacts = [{id: 3, size_in_bytes: 9, expired: false}, {id: 7, size_in_bytes: 9, expired: false}, {id: 9, size_in_bytes: 9, expired: true}];
  assert.match(run({artifacts}).asked, /artifacts\/7\/zip/);
  assert.match(run({artifacts: [artifacts[2]]}).posts[0], missing);
});

test('a cancelled or skipped run left no verdict: that is posted', () => {
  const done = run({artifacts: []});
  assert.equal(done.success, true, done.log);
  assert.match(done.posts[0], missing);
});

test('hostile archives have no verdict, or only their verdict.json is read', () => {
  const verdict = Buffer.from('{"schema": "weir.verdict/1"}');
  const cases = [
    ['a bomb', {members: {'verdict.json': Buffer.alloc(80 << 20)}}],
    ['no archive', {archive: Buffer.from('<html>not found</html>')}],
    ['nothing', {archive: Buffer.alloc(0)}],
    ['no verdict', {members: {'run/verdict.json.exe': verdict}}],
    ['too big by its own account', {artifacts: [{id: 7, size_in_bytes: 2 ** 40, expired: false}]}],
    ['no number', {artifacts: [{id: '7; touch pwned', size_in_bytes: 9, expired: false}]}]];
  for (const [what, given] of cases) {
    const done = run(given);
    assert.match(done.posts[0], missing, what);
    assert.ok(!fs.existsSync(path.join(done.folder, 'temp/weir-gate/verdict.json')), what);
  }
  const done = run({members: {'../../../escaped': verdict, '/tmp/weir-escaped': verdict, 'verdict.json': verdict, 'bin/weir': verdict}});
  assert.equal(done.success, true, done.log);
  const files = path.join(done.folder, 'temp/weir-gate');
  assert.deepEqual(fs.readdirSync(files), ['verdict.json']);
  assert.ok(!fs.existsSync('/tmp/weir-escaped'));
});

test('GitHub that does not answer is no word about the run', () => {
  const done = run({event: {id: '43'}});
  assert.equal(done.success, false);
  assert.deepEqual(done.posts, []);
});

test('hostile names of branches, owners and runs are text', () => {
  const event = {head_branch: '$(touch pwned)`touch pwned`\n::error::pwned', head_repository: {owner: {login: '$(touch pwned)'}}};
  const done = run({event, artifacts: []});
  assert.ok(!fs.existsSync(path.join(done.folder, 'pwned')));
  for (const line of commands_in(done.log)) assert.match(line, /^::(error|warning|notice) title=weir::/);
  assert.deepEqual(run({event: {id: '42/../..'}}).posts, []);
});
