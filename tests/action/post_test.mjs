// The second stage (ci/post): a workflow run's artifact, which anybody may have made, and the pull
// requests that its verdict is posted to. "gh" and "weir post" are stand-ins that keep what they were asked.
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

const program = (file, text) => fs.writeFileSync(file, `#!/bin/sh\n${text}`, {mode: 0o755});

// → run_action's answer, and `posts`: the words of each "weir post".
function run({members = {'verdict.json': Buffer.from('{}')}, archive, artifacts, pulls, event = {}, inputs = {}}) {
  const folder = path.join(top, String(++count));
  const [bin, temp, log] = ['bin', 'temp', 'log'].map((name) => path.join(folder, name));
  for (const place of [bin, temp]) fs.mkdirSync(place, {recursive: true});
  fs.writeFileSync(path.join(folder, 'zip'), archive ?? zip(members));
  fs.writeFileSync(path.join(folder, 'artifacts'), JSON.stringify({artifacts: artifacts ?? [{id: 7, size_in_bytes: 9, expired: false}]}));
  fs.writeFileSync(path.join(folder, 'pulls'), JSON.stringify(pulls ?? [{number: 5, head: {sha}}]));
  program(path.join(bin, 'gh'), `printf '%s\\n' "$*" >>'${log}.gh'
last=; for word; do [ "$last" != --jq ] || jq=$word; last=$word; done
case "$*" in
  *artifacts/7/zip) cat '${folder}/zip' ;;
  *runs/42/artifacts*) jq -r "$jq" <'${folder}/artifacts' ;;
  *repos/o/r/pulls*) jq -r "$jq" <'${folder}/pulls' ;;
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

test('the verdict is posted to the open pull request whose head was measured', () => {
  const done = run({pulls: [{number: 4, head: {sha: 'c'.repeat(40)}}, {number: 5, head: {sha}}]});
  assert.equal(done.success, true, done.log);
  assert.equal(done.posts.length, 1);
  assert.match(done.posts[0], new RegExp(`^post\\|.*/verdict.json\\|--repo\\|o/r\\|--sha\\|${sha}\\|--name\\|weir\\|--pr\\|5\\|token=ghs_writes`));
  assert.match(done.asked, /head=stranger:topic/);
});

test('without such a pull request the commit alone is told', () => {
  const done = run({pulls: [{number: 5, head: {sha: 'c'.repeat(40)}}]});
  assert.equal(done.success, true, done.log);
  assert.match(done.posts[0], /\|--no-comment\|/);
});

test('of a run that was attempted again the newest artifact counts, and an expired one is none', () => {
  const artifacts = [{id: 3, size_in_bytes: 9, expired: false}, {id: 7, size_in_bytes: 9, expired: false}, {id: 9, size_in_bytes: 9, expired: true}];
  assert.equal(run({artifacts}).success, true);
  assert.equal(run({artifacts: [artifacts[2]]}).success, false);
});

test('a cancelled or skipped run left no verdict: that is red, and nothing is posted', () => {
  const done = run({artifacts: []});
  assert.equal(done.success, false);
  assert.match(done.log, /cancelled, skipped, or ended/);
  assert.deepEqual(done.posts, []);
});

test('hostile archives are refused, or only their verdict.json is read', () => {
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
    assert.equal(done.success, false, what);
    assert.deepEqual(done.posts, [], what);
  }
  const done = run({members: {'../../../escaped': verdict, '/tmp/weir-escaped': verdict, 'verdict.json': verdict, 'bin/weir': verdict}});
  assert.equal(done.success, true, done.log);
  const files = path.join(done.folder, 'temp/weir-weir');
  assert.deepEqual(fs.readdirSync(files), ['verdict.json']);
  assert.ok(!fs.existsSync('/tmp/weir-escaped'));
});

test('hostile names of branches, owners and runs are text', () => {
  const event = {head_branch: '$(touch pwned)`touch pwned`\n::error::pwned', head_repository: {owner: {login: '$(touch pwned)'}}};
  const done = run({event, pulls: [{number: '5 $(touch pwned)', head: {sha}}]});
  assert.ok(!fs.existsSync(path.join(done.folder, 'pwned')));
  for (const line of commands_in(done.log)) assert.match(line, /^::(error|warning|notice) title=weir::/);
  for (const wrong of [{id: '42/../..'}, {head_sha: 'main'}, {head_repository: null}]) {
    assert.deepEqual(run({event: wrong}).posts, []);
  }
});
