// ci/packaging/publish: a release is published once; "gh", "npm", "npx", "skopeo" and "podman" are stand-ins.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {root} from './runner.mjs';

let top, count = 0;
before(() => { top = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-publish-')); });
after(() => fs.rmSync(top, {recursive: true, force: true}));

// → {status, stderr, did (each call of a stand-in, a line)}
function publish(what, tag, files, programs, {without, rest = process.env.PATH} = {}) {
  const folder = path.join(top, String(++count));
  for (const place of ['bin', 'dist']) fs.mkdirSync(path.join(folder, place), {recursive: true});
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, 'dist', name), text);
  for (const name of ['gh', 'npm', 'npx', 'skopeo', 'podman'].filter((program) => program !== without)) {
    fs.writeFileSync(path.join(folder, 'bin', name), `#!/bin/bash\necho "${name} $*" >>'${folder}/did'\n${programs[name] ?? ''}\n`, {mode: 0o755});
  }
  const ended = spawnSync(path.join(root, 'ci/packaging/publish'), [what, tag, path.join(folder, 'dist')], {
    encoding: 'utf8', env: {PATH: `${folder}/bin:${rest}`, GITHUB_REPOSITORY: 'Owner/weir'}});
  return {...ended, did: fs.readFileSync(path.join(folder, 'did'), {encoding: 'utf8', flag: 'a+'})};
}

// A release on GitHub: draft is "true" or "false", published its files.
const github = (draft, published = {}) => ({gh: `case "$*" in
  *view*) ${draft === undefined ? 'echo "release not found" >&2; exit 1' : `echo ${draft}`} ;;
  *download*) mkdir -p "$5"; ${Object.entries(published).map(([name, text]) => `printf %s '${text}' >"$5/${name}"`).join('; ') || ':'} ;;
esac`});

test('a draft is made and written over; a published release keeps its files', () => {
  const files = {'weir.tar.gz': 'new', 'weir.tar.gz.sigstore.json': 'signed now'};
  const first = publish('draft', 'v1.2.3', files, github());
  assert.equal(first.status, 0, first.stderr);
  assert.match(first.did, /release create v1\.2\.3 --draft[^]*release upload v1\.2\.3 .*--clobber/);
  assert.match(publish('draft', 'v1.2.3', files, github('true')).did, /release upload/);
  for (const published of [{'weir.tar.gz': 'old'}, {}]) {
    const again = publish('draft', 'v1.2.3', files, github('false', published));
    assert.equal(again.status, 1);
    assert.match(again.stderr, /v1\.2\.3 is published, and its weir\.tar\.gz is another file: nothing was replaced/);
    assert.ok(!again.did.includes('upload'));
  }
  const same = publish('draft', 'v1.2.3', files, github('false', {'weir.tar.gz': 'new', 'weir.tar.gz.sigstore.json': 'signed before'}));
  assert.deepEqual([same.status, same.did.includes('upload')], [0, false], same.stderr);
  const silent = publish('draft', 'v1.2.3', files, {gh: 'echo "HTTP 502" >&2; exit 1'});
  assert.deepEqual([silent.status, silent.did.includes('upload')], [1, false]);
});

test('a program that is missing is named before anything is done', () => {
  const few = fs.mkdtempSync(path.join(top, 'few-'));
  for (const name of ['bash', 'dirname', 'jq']) fs.symlinkSync(spawnSync('which', [name], {encoding: 'utf8'}).stdout.trim(), path.join(few, name));
  const none = publish('image', 'v1.2.3', {}, {}, {without: 'skopeo', rest: few});
  assert.deepEqual([none.status, none.did], [1, '']);
  assert.match(none.stderr, /skopeo is missing: nothing is published/);
});

const names = ['weir-gate-linux-x64', 'weir-gate-linux-arm64', 'weir-gate-darwin-arm64', 'weir-gate'];
const packages = Object.fromEntries(names.map((name) => [`${name}-1.2.3.tgz`, name]));
const integrity = (text) => `sha512-${crypto.createHash('sha512').update(text).digest('base64')}`;
const registry = (there, latest) => ({npm: `case "$*" in
  *dist.integrity) ${there} ;; *dist-tags.latest) ${latest ? `echo ${latest}` : 'echo "npm error code E404" >&2; exit 1'} ;; esac`});

test('a version of a package is published once, and "latest" does not move to an older one', () => {
  const first = publish('npm', 'v1.2.3', packages, registry('echo "npm error code E404" >&2; exit 1'));
  assert.equal(first.status, 0, first.stderr);
  assert.deepEqual(first.did.split('\n').filter((line) => line.startsWith('npx')).map((line) => /--tag (\S+) \.\/(\S+)/.exec(line).slice(1)),
                   names.map((name) => ['latest', `${name}-1.2.3.tgz`]));
  const late = publish('npm', 'v1.2.3', packages, registry('', '1.10.0'));
  assert.match(late.did, /npx .*--tag older/);
  assert.ok(!late.did.includes('--tag latest'));
  assert.match(publish('npm', 'v1.2.3', packages, registry('', '1.2.2')).did, /--tag latest/);
  const conflicting = publish('npm', 'v1.2.3', packages, registry('echo sha512-other', '1.2.3'));
  assert.equal(conflicting.status, 1);
  assert.match(conflicting.stderr, /published with other bytes/);
  assert.ok(!conflicting.did.includes('npx'));
  const same = publish('npm', 'v1.2.3', Object.fromEntries(Object.keys(packages).map((name) => [name, 'x'])), registry(`echo ${integrity('x')}`, '1.2.3'));
  assert.deepEqual([same.status, same.did.includes('npx')], [0, false], same.stderr);
  assert.equal(publish('npm', 'v1.2.3', packages, registry('echo ETIMEDOUT >&2; exit 1')).status, 1);
});

const images = {'weir-1.2.3-image-amd64.tar': 'a', 'weir-1.2.3-image-arm64.tar': 'b'};
const containers = (tags, there = 'mine') => ({skopeo: `case "$*" in
  list-tags*) ${tags ? `echo '${JSON.stringify({Tags: tags})}'` : 'echo "name unknown" >&2; exit 1'} ;; *oci-archive*) echo mine ;; *docker://*) echo ${there} ;; esac`});

test('a version of an image is pushed once, and "latest" does not move to an older one', () => {
  const pushed = (done) => [...done.did.matchAll(/docker:\/\/ghcr\.io\/owner\/weir:(\S+)$/gm)].map((match) => match[1]).filter((tag) => done.did.includes(`push --all ghcr.io/owner/weir:1.2.3 docker://ghcr.io/owner/weir:${tag}`));
  assert.deepEqual(pushed(publish('image', 'v1.2.3', images, containers())), ['1.2.3', 'latest']);
  assert.deepEqual(pushed(publish('image', 'v1.2.3', images, containers(['1.2.2', 'latest']))), ['1.2.3', 'latest']);
  assert.deepEqual(pushed(publish('image', 'v1.2.3', images, containers(['1.10.0', 'latest']))), ['1.2.3']);
  const conflicting = publish('image', 'v1.2.3', images, containers(['1.2.3', 'latest'], 'theirs'));
  assert.equal(conflicting.status, 1);
  assert.deepEqual(pushed(conflicting), []);
  // No answer, and who may not ask, is no word about what is published.
  for (const message of ['503', 'bash: skopeo: command not found', 'requested access to the resource is denied', 'host not found']) {
    const silent = publish('image', 'v1.2.3', images, {skopeo: `echo "${message}" >&2; exit 1`});
    assert.deepEqual([silent.status, pushed(silent)], [1, []], message);
  }
});
