// docs/ci/gitlab.yml: its gate, and its note, with "curl" as a stand-in for GitLab.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {read_yaml, root} from './runner.mjs';

const jobs = read_yaml(path.join(root, 'docs/ci/gitlab.yml'));
let top, count = 0;
before(() => { top = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-gitlab-')); });
after(() => fs.rmSync(top, {recursive: true, force: true}));

// Runs a job's `script` as GitLab's shell runner does: all lines in one shell that stops at an error.
function run(job, files, programs) {
  const folder = path.join(top, String(++count));
  fs.mkdirSync(path.join(folder, 'bin'), {recursive: true});
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text);
  for (const [name, text] of Object.entries(programs)) fs.writeFileSync(path.join(folder, 'bin', name), `#!/bin/sh\n${text}\n`, {mode: 0o755});
  const ended = spawnSync('bash', ['-eo', 'pipefail', '-c', jobs[job].script.join('\n')], {
    cwd: folder, encoding: 'utf8', env: {
      PATH: `${folder}/bin:${process.env.PATH}`, WEIR_GITLAB_TOKEN: 'glpat-secret', CI_API_V4_URL: 'https://gitlab.example/api/v4',
      CI_PROJECT_ID: '3', CI_MERGE_REQUEST_IID: '8', CI_COMMIT_SHORT_SHA: 'abc1234'}});
  const read = (name) => fs.readFileSync(path.join(folder, name), {encoding: 'utf8', flag: 'a+'});
  return {...ended, read};
}

test('all that GitLab reads is asked for, and the exit code stays the verdict', () => {
  const done = run('weir', {}, {weir: `for word; do case $word in *.*) echo x >"$word" ;; esac; done; exit 1`});
  assert.equal(done.status, 1, done.stderr);
  const {paths, reports} = jobs.weir.artifacts;
  for (const name of [...paths.filter((place) => !place.endsWith('/')), ...Object.values(reports)]) assert.equal(done.read(name), 'x\n', name);
  for (const code of [0, 2]) assert.equal(run('weir', {}, {weir: `exit ${code}`}).status, code);
});

const gitlab = (notes) => `printf '%s\\n' "$*" >>asked
[ "$(stat -c %a token)" = 600 ] || exit 9
case "$*" in
  *api/v4/user) echo '{"id": 11}' ;;
  *--request*) cat note.md >sent ;;
  *page=1) printf '%s\\n' '${typeof notes === 'string' ? notes : JSON.stringify(notes)}' ;;
  *) echo '[]' ;;
esac`;

test('one note is kept: made once, then edited; others\' notes with its mark are left alone', () => {
  const first = run('weir-note', {'weir.md': 'all well'}, {curl: gitlab([{id: 5, body: '<!-- weir -->\nmine?', author: {id: 12}}])});
  assert.equal(first.status, 0, first.stderr);
  assert.match(first.read('asked'), /--request POST .*merge_requests\/8\/notes\n/);
  assert.equal(first.read('sent'), '<!-- weir -->\nall well');
  const next = run('weir-note', {'weir.md': 'worse'}, {curl: gitlab([{id: 6, body: '<!-- weir -->\nall well', author: {id: 11}}])});
  assert.match(next.read('asked'), /--request PUT .*notes\/6\n/);
  for (const done of [first, next]) assert.ok(!(done.read('asked') + done.stdout + done.stderr).includes('glpat-secret'));
});

test('an answer that is no list makes no second note', () => {
  for (const answer of ['<html>', '{"message": "500"}', '']) {
    const done = run('weir-note', {'weir.md': 'x'}, {curl: gitlab(answer)});
    assert.notEqual(done.status, 0, answer);
    assert.equal(done.read('sent'), '');
  }
});

test('no verdict is said, too', () => {
  const done = run('weir-note', {}, {curl: gitlab([])});
  assert.match(done.read('sent'), /no verdict\*\* for abc1234/);
});
