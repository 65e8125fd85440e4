// The second stage (ci/post): a run's artifact, which anybody may have made, is judged again by the base's rules and
// posted. "gh" and weir are stand-ins that keep what they were asked; git asks a real repository.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {commands_in, release, root, run_action} from './runner.mjs';
import {World} from './world.mjs';
import {zip} from './zip.mjs';

const sha = 'a'.repeat(40);
let world, tip;
before(() => {
  world = new World();
  tip = world.git(world.work, 'rev-parse', 'main');
  world.git(world.work, 'push', '-q', 'origin', 'main:release', 'main:perf-baselines');
  fs.mkdirSync(path.join(world.top, 'o'));
  fs.symlinkSync(world.origin, path.join(world.top, 'o/r'));
});
after(() => world.remove());

const missing = /\|--missing-verdict=[^|]+\|token=/;
const program = (file, text) => fs.writeFileSync(file, `#!/bin/sh\n${text}`, {mode: 0o755});
const pull = (number, base, more = {}) => ({number, base: {ref: base}, head: {sha, repo: {full_name: 'stranger/r'}}, ...more});
const run_event = (more = {}) => ({event_name: 'workflow_run', event: {workflow_run: {
  id: '42', event: 'pull_request', head_sha: sha, head_branch: 'topic', head_repository: {full_name: 'stranger/r', owner: {login: 'stranger'}}, ...more}}});

// → run_action's answer, and `posts`, `judged`: the words of each "weir post", "weir gate"; what each had of tokens.
function run({members = {'run/run.jsonl': Buffer.from('{}\n')}, archive, artifacts, github = run_event(), inputs = {}, pulls = [pull(7, 'main')], code = 0}) {
  const folder = world.fresh('post');
  const [bin, temp, log] = ['bin', 'temp', 'log'].map((name) => path.join(folder, name));
  for (const place of [bin, temp]) fs.mkdirSync(place, {recursive: true});
  fs.writeFileSync(path.join(folder, 'zip'), archive ?? zip(members));
  fs.writeFileSync(path.join(folder, 'artifacts'), JSON.stringify({artifacts: artifacts ?? [{id: 7, size_in_bytes: 9, expired: false}]}));
  fs.writeFileSync(path.join(folder, 'pulls'), JSON.stringify(pulls));
  program(path.join(bin, 'gh'), `printf '%s\\n' "$*" >>'${log}.gh'
printf 'HTTP/2.0 200 OK\\n\\r\\n'
jq=.; last=; for word; do [ "$last" != --jq ] || jq=$word; last=$word; done
case "$*" in
  *artifacts/7/zip) cat '${folder}/zip' ;;
  *runs/42/artifacts*) jq -r "$jq" <'${folder}/artifacts' ;;
  *repos/o/r/pulls/7) jq '.[0]' '${folder}/pulls' ;;
  *repos/o/r/pulls\\ *) cat '${folder}/pulls' ;;
  *) echo "gh: Not Found (HTTP 404)" >&2; exit 1 ;;
esac\n`);
  program(path.join(bin, 'unzip'), `env >'${log}.unzip'; printf '%s\\n' "$*" >>'${log}.unzips'; exec /usr/bin/unzip "$@"\n`);
  const weir = release(folder, `[ "$1" != --version ] || { echo weir 0; exit; }
printf '%s|' "$@" "token=$GITHUB_TOKEN" >>'${log}'".$1"; echo >>'${log}'".$1"
[ "$1" = gate ] || exit 0
env >'${log}.env'; cat "$GITHUB_EVENT_PATH" >'${log}.event'; git rev-parse --verify -q "$(printf '%s\\n' "$@" | sed -n 's/^--rules-from=//p')" >'${log}.rules'
git ls-files >'${log}.tree'; ls -A | grep -v '^.git$' >>'${log}.tree'
for word; do case $word in --json=*) echo '{}' >"\${word#*=}" ;; esac; done
exit ${code}`);
  const done = run_action({
    action: path.join(root, 'ci/post'), workspace: folder, temp, inputs: {version: weir.version, ...inputs}, path: [bin, weir.bin],
    env: {GITHUB_SERVER_URL: `file://${world.top}`, HOME: world.top},
    github: {repository: 'o/r', run_id: '42', token: 'ghs_writes', action_ref: '', sha: tip, ref: 'refs/heads/main', ...github}});
  const read = (name) => fs.readFileSync(`${log}.${name}`, {encoding: 'utf8', flag: 'a+'}).trim();
  const lines = (name) => read(name).split('\n').filter(Boolean);
  return Object.assign(done, {folder, read, posts: lines('post'), judged: lines('gate'), gh_calls: read('gh')});
}

test('what a fork measured is judged again by the tip of its base, and posted to where the event says', () => {
  const done = run({});
  assert.equal(done.success, true, done.log);
  assert.match(done.judged[0], /^gate\|--config=weir.yaml\|--baselines=baselines\|--from=[^|]+\/taken\/run\|--rules-from=refs\/remotes\/origin\/main\|--json=[^|]+\/verdict.json\|--waivers-ref=refs\/remotes\/origin\/perf-baselines\|--base=main\|token=\|$/);
  assert.equal(done.read('rules'), tip);
  assert.match(done.posts[0], /^post\|.*\/verdict.json\|--repo\|o\/r\|--event\|.*event.json\|--name\|gate\|--fail\|--judged-here\|token=ghs_writes/);
  assert.match(done.gh_calls, /-f head=stranger:topic/);
  assert.match(run({inputs: {name: 'gpu'}}).gh_calls, /-f name=weir-gpu/);
});

test('what judges and what unpacks has no token, and nothing of the pull request or the base is checked out', () => {
  const done = run({members: {'run/run.jsonl': Buffer.from('{}\n'), 'verdict.json': Buffer.from('{}'), 'weir.yaml': Buffer.from('version: 1')}});
  for (const name of ['env', 'unzip']) {
    assert.ok(done.read(name).includes('PATH='), name);
    assert.ok(!done.read(name).includes('ghs_writes'), name);
  }
  assert.equal(done.read('tree'), '');
  assert.ok(!done.ran.some((step) => step.includes('cache')), done.ran.join());
});

test('the base is the event\'s or the API\'s, never the artifact\'s', () => {
  const rules = (github, more = {}) => /--rules-from=([^|]+)/.exec(run({github, inputs: {'run-id': '42', sha}, ...more}).judged[0] ?? '')?.[1];
  const event = {pull_request: {number: 3, base: {ref: 'release'}}};
  assert.equal(rules({event_name: 'pull_request', event}), 'refs/remotes/origin/release');
  assert.equal(rules({event_name: 'issue_comment', event: {issue: {number: 7}}}), 'refs/remotes/origin/main');
  assert.equal(rules({event_name: 'merge_group', event: {merge_group: {base_sha: tip}}}), tip);
  assert.equal(rules({event_name: 'push', event: {}}), tip);
  assert.equal(rules(run_event(), {pulls: [pull(7, 'release')]}), 'refs/remotes/origin/release');
});

test('waivers are those of the pull request that was found, for the commit that was measured', () => {
  const comment = {event_name: 'issue_comment', event: {issue: {number: 7}}};
  const moved = pull(7, 'main', {head: {sha: 'b'.repeat(40), repo: {full_name: 'stranger/r'}}});
  for (const done of [run({}), run({github: comment, pulls: [moved], inputs: {'run-id': '42', sha}})]) {
    const {pull_request: event_pull, repository} = JSON.parse(done.read('event'));
    assert.deepEqual([event_pull.number, event_pull.head.sha, event_pull.base.ref, repository.full_name], [7, sha, 'main', 'o/r']);
    assert.match(done.read('env'), /^GITHUB_EVENT_NAME=pull_request$/m);
  }
  assert.match(run({github: {event_name: 'merge_group', event: {merge_group: {base_sha: tip}}}, inputs: {'run-id': '42'}}).read('env'), /^GITHUB_EVENT_NAME=merge_group$/m);
});

test('a head of no open pull request, or of two with other bases, is not judged', () => {
  const second_head = pull(8, 'main', {head: {sha: 'b'.repeat(40), repo: {full_name: 'stranger/r'}}});
  const theirs = pull(9, 'main', {head: {sha, repo: {full_name: 'another/r'}}});
  assert.equal(run({pulls: [pull(7, 'main'), second_head, theirs]}).judged.length, 1);
  for (const pulls of [[], [second_head], [theirs], [pull(7, 'main'), pull(8, 'release')]]) {
    const done = run({pulls});
    assert.deepEqual(done.judged, []);
    assert.match(done.posts[0], missing);
    assert.ok(!done.posts[0].includes('--judged-here'));
  }
});

test('records that can not be judged are no verdict; a verdict with fails is one', () => {
  for (const code of [2, 130, 137]) {
    const done = run({code});
    assert.match(done.posts[0], missing);
    assert.ok(!fs.existsSync(path.join(done.folder, 'temp/weir-gate/verdict.json')));
  }
  for (const code of [1, 3, 4]) assert.match(run({code}).posts[0], /--judged-here/);
});

test('a pull request whose head is a merge queue\'s commit posts nothing to it; the queue\'s own run does', () => {
  const branch = 'refs/heads/gh-readonly-queue/main/pr-6-' + sha;
  const at = (head) => [pull(7, 'main', {head: {sha: head, repo: {full_name: 'stranger/r'}}})];
  world.git(world.work, 'push', '-q', 'origin', `main:${branch}`);
  const merge_group = {event_name: 'merge_group', event: {merge_group: {base_sha: tip}}};
  for (const artifacts of [undefined, []]) {
    const done = run({artifacts, github: run_event({head_sha: tip}), pulls: at(tip)});
    assert.equal(done.success, false);
    assert.match(done.log, /is a merge queue's/);
    assert.deepEqual([done.judged, done.posts], [[], []]);
    assert.deepEqual(run({artifacts, github: {event_name: 'issue_comment', event: {issue: {number: 7}}}, inputs: {'run-id': '42', sha: tip}}).posts, []);
    assert.deepEqual(run({artifacts, github: {event_name: 'pull_request', event: {pull_request: at(tip)[0]}}, inputs: {'run-id': '42'}}).posts, []);
  }
  assert.match(run({github: merge_group, inputs: {'run-id': '42'}}).posts[0], /--judged-here/);
  assert.match(run({}).posts[0], /--judged-here/, 'another commit is none of the queue, though the branch\'s name has it');
  world.git(world.work, 'push', '-q', 'origin', `:${branch}`);
});

test('a comment\'s event takes the commit that was measured from its own workflow', () => {
  const comment = {event_name: 'issue_comment', event: {issue: {number: 7}}};
  assert.match(run({github: comment, inputs: {'run-id': '42', sha}}).posts[0], new RegExp(`--sha=${sha}`));
  assert.deepEqual(run({github: comment, inputs: {'run-id': '42'}}).posts, []);
});

test('of a run that was attempted again the newest artifact counts, and an expired one is none', () => {
  const artifacts = [{id: 3, size_in_bytes: 9, expired: false}, {id: 7, size_in_bytes: 9, expired: false}, {id: 9, size_in_bytes: 9, expired: true}];
  assert.match(run({artifacts}).gh_calls, /artifacts\/7\/zip/);
  assert.match(run({artifacts: [artifacts[2]]}).posts[0], missing);
});

test('when a comment is made is the base\'s rules\' to say, unless the workflow does', () => {
  assert.ok(!run({}).posts[0].includes('--comment'));
  assert.match(run({inputs: {comment: 'never'}}).posts[0], /\|--comment=never\|--judged-here/);
  assert.match(run({artifacts: [], inputs: {comment: 'always'}}).posts[0], /\|--comment=always\|--missing-verdict/);
  const done = run({inputs: {comment: 'seldom'}});
  assert.equal(done.success, false);
  assert.match(done.log, /input "comment": "seldom" is none of changed, always, never/);
  assert.deepEqual([done.judged, done.posts], [[], []]);
});

test('a cancelled or skipped run left no records: that is posted', () => {
  const done = run({artifacts: []});
  assert.equal(done.success, true, done.log);
  assert.match(done.posts[0], missing);
});

test('of hostile archives the records alone are read, or nothing', () => {
  const records = Buffer.from('{}\n');
  const cases = [
    ['a bomb', {members: {'run/run.jsonl': Buffer.alloc(130 << 20)}}],
    ['no archive', {archive: Buffer.from('<html>not found</html>')}],
    ['nothing', {archive: Buffer.alloc(0)}],
    ['no records', {members: {'verdict.json': records, 'run/run.jsonl.exe': records}}],
    ['too big by its own account', {artifacts: [{id: 7, size_in_bytes: 2 ** 40, expired: false}]}],
    ['no number', {artifacts: [{id: '7; touch pwned', size_in_bytes: 9, expired: false}]}]];
  for (const [what, given] of cases) {
    const done = run(given);
    assert.deepEqual(done.judged, [], what);
    assert.match(done.posts[0], missing, what);
  }
  const taken = (members) => {
    const done = run({members});
    assert.equal(done.success, true, done.log);
    const folder = path.join(done.folder, 'temp/weir-gate/taken');
    return {done, files: fs.readdirSync(folder, {recursive: true}).filter((name) => fs.lstatSync(path.join(folder, name)).isFile()).sort()};
  };
  const counted = 'run/base-counts/e/m/cpu/p@d256/cpu-x86.json';
  const pairs = 'run/confirm/20260131-120000-002/run.jsonl';
  const hostile = ['../../../escaped', '/tmp/weir-escaped', 'run/rules/baselines/x.json', 'run/base-counts/../../../../x.json', 'run/base-counts/e/m/*/p/x.json',
                   'run/base-counts/e/m/../p/x.json', 'run/base-counts/e/m/cpu/p/x.json\nrun/run.jsonl', 'run/base-counts/e/m/cpu/p/[x].json', 'xrun/run.jsonl',
                   'run/confirm/../run.jsonl', 'run/confirm/*/run.jsonl', 'run/confirm/a/b/run.jsonl', 'run/confirm/run.jsonl'];
  assert.deepEqual(taken(Object.fromEntries([...hostile, 'run/run.jsonl', pairs, counted].map((name) => [name, records]))).files,
                   [counted, pairs, 'run/run.jsonl']);
  const many = run({members: {'run/run.jsonl': records, ...Object.fromEntries(Array.from({length: 2001}, (_, i) => [`run/base-counts/e/m/b/p/${i}.json`, records]))}});
  assert.match(many.posts[0], missing);
  assert.ok(!fs.existsSync('/tmp/weir-escaped'));
});

test('a member that is refused uses up the archive\'s limit, so that two thousand of them are not unpacked one by one', () => {
  const bomb = Buffer.alloc((128 << 20) + 1), records = Buffer.from('{}\n');
  const bombs = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [`run/base-counts/e/m/b/p/${name}.json`, bomb]));
  const done = run({members: {...bombs, 'run/run.jsonl': records}});
  assert.equal(done.success, true, done.log);
  const unpacked = done.read('unzips').split('\n').filter((words) => words.startsWith('-p'));
  assert.equal(unpacked.length, 2, `one of the records, and why there are none: ${unpacked.join('; ')}`);
  assert.deepEqual(done.judged, []);
  assert.match(done.posts[0], missing);
});

test('where there are no records, the job that measures may say why, in one inert line', () => {
  const said = 'weir: weir.yaml:3:1: unknown key "modles"\n::error::not this';
  const done = run({members: {why: Buffer.from(said)}});
  assert.match(done.posts[0], /--missing-verdict=there are no records in the artifact; the job that measures says: weir: weir\.yaml:3:1: unknown key "modles"\|/);
  assert.deepEqual(commands_in(done.log).filter((line) => /not this/.test(line)), []);
});

test('GitHub that does not answer is no word about the run', () => {
  const done = run({github: run_event({id: '43'})});
  assert.equal(done.success, false);
  assert.deepEqual(done.posts, []);
});

test('hostile names of branches, owners and runs are text', () => {
  const more = {head_branch: '$(touch pwned)`touch pwned`\n::error::pwned', head_repository: {full_name: '$(touch pwned)/r', owner: {login: '$(touch pwned)'}}};
  for (const done of [run({github: run_event(more)}), run({pulls: [pull(7, '--upload-pack=touch pwned\n::error::pwned')]})]) {
    assert.ok(!fs.existsSync(path.join(done.folder, 'pwned')));
    assert.deepEqual(done.judged, []);
    for (const line of commands_in(done.log)) assert.match(line, /^::(error|warning|notice) title=weir::/);
  }
  assert.deepEqual(run({github: run_event({id: '42/../..'})}).posts, []);
});
