// Who may push can make a tag, and a commit can hold a folder that looks like a repository: neither chooses what judges.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {release, root, run_action} from './runner.mjs';
import {World, weir} from './world.mjs';
import {zip} from './zip.mjs';

let world;
before(() => {
  world = new World();
  fs.mkdirSync(path.join(world.top, 'o'));
  fs.symlinkSync(world.origin, path.join(world.top, 'o/r'));
});
after(() => world.remove());

const rev = (folder, name) => world.git(folder, 'rev-parse', '--verify', name);
const call = (folder, ...words) => spawnSync(weir, words, {cwd: folder, encoding: 'utf8', env: {
  PATH: process.env.PATH, HOME: world.top, WEIR_CACHE: path.join(world.top, 'cache'), WEIR_LOCK_DIR: path.join(world.top, 'locks')}});
const verdict_of = (done) => JSON.parse(fs.readFileSync(done.outputs['verdict-file']));
// A commit whose rules let its own counts through, with a tag "origin/main" on it; a full checkout with all tags.
function tagged(name) {
  world.git(world.work, 'checkout', '-q', '-B', name, 'main');
  fs.appendFileSync(path.join(world.work, 'weir.yaml'), 'limits: [{metrics: syncs_per_token, exact: false}]\n');
  const sha = world.commit('lax', 9);
  world.git(world.work, 'push', '-q', '--force', 'origin', `HEAD:refs/heads/${name}`, 'HEAD:refs/tags/origin/main');
  world.git(world.work, 'checkout', '-q', 'main');
  const folder = world.checkout(sha, 0);
  world.git(folder, 'fetch', '-q', 'origin', '+refs/tags/*:refs/tags/*');
  return {folder, sha};
}

test('a tag named like the base is refused by name wherever a REF decides what judges', () => {
  const {folder, sha} = tagged('lax');
  assert.equal(rev(folder, 'origin/main'), sha, 'git takes the tag');
  for (const words of [['--rules-from', 'origin/main'], ['--against', 'origin/main'], ['--baselines-ref', 'origin/main'],
                       ['--waivers-ref', 'origin/main', '--pr', '7']]) {
    const done = call(folder, 'gate', '--counts-only', ...words);
    assert.equal(done.status, 2, done.stdout + done.stderr);
    assert.match(done.stderr, /refs\/tags\/origin\/main and refs\/remotes\/origin\/main/, words.join(' '));
    assert.match(done.stderr, /write refs\/remotes\/origin\/main/);
  }
  const whole = call(folder, 'gate', '--counts-only', '--rules-from', 'refs/remotes/origin/main', '--against', 'refs/remotes/origin/main');
  assert.equal(whole.status, 1, whole.stderr);
});

test('the Action reads the branch of origin, whatever tags there are', () => {
  const {folder, sha} = tagged('lax-too');
  const github = {event_name: 'workflow_dispatch', ref: 'refs/heads/lax-too', sha, event: {}};
  for (const prefix of ['origin/', 'refs/remotes/origin/']) {
    const done = world.run(folder, github, {'counts-only': 'true', against: `${prefix}main`, 'rules-from': `${prefix}main`});
    assert.equal(done.outputs.verdict, 'fail', done.log);
    assert.equal(verdict_of(done).rules.commit, rev(world.work, 'main'));
  }
  // git completes a full name that is not there to a tag.
  world.git(folder, 'update-ref', '-d', 'refs/remotes/origin/main');
  world.git(folder, 'update-ref', 'refs/tags/refs/remotes/origin/main', sha);
  const done = world.run(folder, github, {'counts-only': 'true', against: 'origin/main', 'rules-from': 'origin/main'});
  assert.equal(done.outputs.verdict, 'fail', done.log);
});

test('a folder of the pull request named like the base is not the base', () => {
  world.git(world.work, 'checkout', '-q', '-B', 'folder', 'main');
  for (const name of ['origin/main', 'refs/remotes/origin/main']) {
    fs.mkdirSync(path.join(world.work, name), {recursive: true});
    world.write(`${name}/engine`, '#!/bin/sh\necho "9 syncs"\n');
  }
  const sha = world.commit('slower', 9);
  world.git(world.work, 'push', '-q', '--force', 'origin', 'HEAD:refs/heads/folder');
  world.git(world.work, 'checkout', '-q', 'main');
  const done = world.run(world.checkout(sha, 0), {event_name: 'workflow_dispatch', ref: 'refs/heads/folder', sha, event: {}},
                         {'counts-only': 'true', against: 'origin/main'});
  assert.equal(done.outputs.verdict, 'fail', done.log);
  assert.match(call(world.checkout(sha, 0), 'gate', '--counts-only', '--against', 'origin/main').stderr, /write \.\/origin\/main/);
});

// The files of a repository whose rules let everything through, and whose settings run a program, in a commit.
function with_repository_of_files(name, settings) {
  world.git(world.work, 'checkout', '-q', '-B', name, 'main');
  const sub = path.join(world.work, 'sub'), ran = path.join(world.top, `ran-${name}`), program = path.join(world.top, `program-${name}`);
  fs.writeFileSync(program, `#!/bin/sh\ntouch '${ran}'\ncat\n`, {mode: 0o755});
  const lax = world.fresh('lax');
  fs.cpSync(path.join(world.work, 'weir.yaml'), path.join(lax, 'weir.yaml'));
  fs.appendFileSync(path.join(lax, 'weir.yaml'), 'limits: [{metrics: syncs_per_token, exact: false}]\n');
  world.git(lax, 'init', '-q', '-b', 'base');
  world.git(lax, 'add', '-A');
  world.git(lax, 'commit', '-q', '-m', 'lax');
  for (const part of ['HEAD', 'index', 'objects', 'refs']) fs.cpSync(path.join(lax, '.git', part), path.join(sub, part), {recursive: true});
  fs.writeFileSync(path.join(sub, 'config'), `[core]\nrepositoryformatversion = 0\n${settings}\nfsmonitor = ${program}\n[filter "x"]\nclean = ${program}\n`);
  fs.mkdirSync(path.join(sub, 'refs/tags'), {recursive: true});
  fs.writeFileSync(path.join(sub, 'refs/tags/keep'), fs.readFileSync(path.join(sub, 'refs/heads/base')));
  for (const file of ['weir.yaml', 'model.bin', 'engine']) fs.cpSync(path.join(world.work, file), path.join(sub, file));
  fs.mkdirSync(path.join(sub, 'baselines'));
  fs.writeFileSync(path.join(sub, 'baselines/x.json'), '{}');
  fs.writeFileSync(path.join(sub, '.gitattributes'), '* filter=x\n');
  world.git(world.work, 'add', '-A', '-f');
  world.git(world.work, 'commit', '-q', '-m', 'a repository of files');
  const sha = rev(world.work, 'HEAD');
  world.git(world.work, 'push', '-q', '--force', 'origin', `HEAD:refs/heads/${name}`);
  world.git(world.work, 'checkout', '-q', 'main');
  return {folder: world.checkout(sha, 0), sha, ran};
}

test('a folder that looks like a repository is not asked, and runs nothing', () => {
  for (const [name, settings] of [['itself', 'worktree = ../sub'], ['around', 'worktree = ..'], ['bare', 'bare = true']]) {
    const {folder, sha, ran} = with_repository_of_files(name, settings);
    for (const words of [['--rules-from', 'base'], ['--against', 'base'], ['--from', 'weir-out/x', '--rules-from', 'base']]) {
      const done = call(folder, 'gate', '--counts-only', '-c', 'sub/weir.yaml', '--baselines', 'sub/baselines', ...words);
      assert.equal(done.status, 2, done.stdout + done.stderr);
      assert.match(done.stderr, /looks like a repository/, `${name} ${words}`);
    }
    const done = world.run(folder, {event_name: 'workflow_dispatch', ref: 'refs/heads/x', sha, event: {}},
                           {'counts-only': 'true', 'working-directory': 'sub', 'rules-from': 'base'});
    assert.equal(done.success, false);
    assert.match(done.log, /looks like a repository/);
    assert.ok(!fs.existsSync(ran), name);
  }
});

test('a submodule that takes the place of a folder brings no rules', () => {
  const lax = world.fresh('module');
  for (const file of ['weir.yaml', 'model.bin', 'engine']) fs.cpSync(path.join(world.work, file), path.join(lax, file));
  world.git(lax, 'init', '-q', '-b', 'base');
  world.git(lax, 'add', '-A');
  world.git(lax, 'commit', '-q', '-m', 'lax');
  const folder = world.checkout(rev(world.work, 'main'), 0);
  world.git(folder, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', lax, 'sub');
  for (const words of [['--rules-from', 'base'], ['--baselines-ref', 'base'], ['--waivers-ref', 'base', '--pr', '7']]) {
    const done = call(folder, 'gate', '--counts-only', '-c', 'sub/weir.yaml', ...words);
    assert.equal(done.status, 2, done.stdout + done.stderr);
    assert.match(done.stderr, /is a submodule/, words.join(' '));
  }
});

// → what ci/post made of a run that was measured against the commit `against`, by the built weir: {verdict, words}.
// `forged` makes its records of those that were written.
function posted(against, forged = (records) => records) {
  const folder = world.fresh('post');
  const [bin, temp, log] = ['bin', 'temp', 'log'].map((name) => path.join(folder, name));
  for (const place of [bin, temp]) fs.mkdirSync(place, {recursive: true});
  const measured = world.checkout(rev(world.work, 'refs/heads/slow'), 0);
  const done = call(measured, 'gate', '--counts-only', '--against', against);
  assert.ok([0, 1].includes(done.status), done.stderr);
  const [run] = fs.readdirSync(path.join(measured, 'weir-out')).filter((name) => fs.existsSync(path.join(measured, 'weir-out', name, 'run.jsonl')));
  fs.writeFileSync(path.join(folder, 'zip'), zip({'run/run.jsonl': Buffer.from(forged(fs.readFileSync(path.join(measured, 'weir-out', run, 'run.jsonl'), 'utf8')))}));
  const sha = rev(world.work, 'refs/heads/slow');
  fs.writeFileSync(path.join(folder, 'pulls'), JSON.stringify([{number: 7, base: {ref: 'main', sha: rev(world.work, 'main')}, head: {sha, repo: {full_name: 'o/r'}}}]));
  fs.writeFileSync(path.join(bin, 'gh'), `#!/bin/sh
printf 'HTTP/2.0 200 OK\\n\\r\\n'
jq=.; last=; for word; do [ "$last" != --jq ] || jq=$word; last=$word; done
case "$*" in
  *artifacts/7/zip) cat '${folder}/zip' ;;
  *runs/42/artifacts*) echo '{"artifacts": [{"id": 7, "size_in_bytes": 9, "expired": false}]}' | jq -r "$jq" ;;
  *) cat '${folder}/pulls' ;;
esac\n`, {mode: 0o755});
  const program = release(folder, `case $1 in --version) echo weir 0 ;; post) cp "$2" '${log}'; printf '%s|' "$@" >'${log}.words' ;; *) exec '${weir}' "$@" ;; esac`);
  const answer = run_action({
    action: path.join(root, 'ci/post'), workspace: folder, temp, inputs: {version: program.version, 'counts-only': 'true'}, path: [bin, program.bin],
    env: {GITHUB_SERVER_URL: `file://${world.top}`, HOME: world.top},
    github: {repository: 'o/r', run_id: '42', token: 'ghs_writes', action_ref: '', sha: rev(world.work, 'main'), ref: 'refs/heads/main', event_name: 'workflow_run',
             event: {workflow_run: {id: '42', event: 'pull_request', head_sha: sha, head_branch: 'slow', head_repository: {full_name: 'o/r', owner: {login: 'o'}}}}}});
  assert.equal(answer.success, true, answer.log);
  return {verdict: JSON.parse(fs.readFileSync(log)), words: fs.readFileSync(`${log}.words`, 'utf8'), log: answer.log};
}

test('ci/post judges a run only if its base is the merge-base with the base branch', () => {
  world.branch('slow', 9);
  const honest = posted(rev(world.work, 'main'));
  assert.equal(honest.verdict.verdict, 'fail', honest.log);
  assert.equal(honest.verdict.unjudged, null);
  const own = posted('HEAD');
  assert.equal(own.verdict.verdict, 'error', own.log);
  assert.match(own.verdict.unjudged, /no commit of refs\/remotes\/origin\/main/);
  assert.match(own.words, /--judged-here/);
  const older = posted(rev(world.work, 'main~1'));
  assert.equal(older.verdict.verdict, 'fail', older.log);
  assert.match(older.verdict.unjudged, /its merge-base with refs\/remotes\/origin\/main is /);
});

test('ci/post looks for edits of model files in the head that GitHub names, whatever commit a run says it is of', () => {
  world.write('model.bin', 'no model at ALL');
  const head = world.branch('slow', 3);
  const done = posted(rev(world.work, 'main'), (records) => records.replaceAll(head, rev(world.work, 'main')));
  assert.equal(done.verdict.verdict, 'error', done.log);
  assert.match(JSON.stringify(done.verdict.cells), /than the base does: file model\.bin/);
});
