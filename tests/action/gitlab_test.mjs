// docs/ci/gitlab.yml: what it measures by, and what its protected pipeline judges and posts, against a fake GitLab.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {fields_of, script_of} from './gitlab.mjs';
import {read_yaml, root} from './runner.mjs';
import {World} from './world.mjs';

const jobs = read_yaml(path.join(root, 'docs/ci/gitlab.yml'));
const [sha, merged] = ['a'.repeat(40), 'c'.repeat(40)];
// POST /projects/{id}/statuses/{sha} in GitLab's OpenAPI description (doc/api/openapi/openapi_v2.yaml of gitlabhq).
const status_fields = {state: /^(pending|running|success|failed|canceled|skipped)$/, ref: /./, target_url: /./, description: /./, name: /./,
                       context: /./, coverage: /^[\d.]+$/, pipeline_id: /^\d+$/};
let world, server, gitlab;
before(async () => {
  world = new World();
  world.git(world.work, 'push', '-q', 'origin', 'main:release');
  server = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const call = `${request.method} ${request.url.replace('/api/v4', '')}`;
      const body = Buffer.concat(chunks).toString();
      gitlab.calls.push({call, body, token: request.headers['private-token']});
      const answer = gitlab.answers[call.replace(/\?.*$/, '')] ?? gitlab.answers[call];
      const described = !call.includes('/statuses/') || Object.entries(fields_of(body)).every(([name, value]) => status_fields[name]?.test(value));
      response.writeHead(answer === undefined ? 404 : described ? 200 : 400);
      response.end(answer === undefined ? '{"message": "404 Not found"}' : typeof answer === 'string' ? answer : JSON.stringify(answer));
    });
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
});
after(() => { server.close(); world.remove(); });

// Runs a job's `script` as GitLab's runner does: all lines in one shell that stops at an error.
function run(job, weir, env = {}, folder = world.checkout('main', 0)) {
  const bin = world.fresh('bin');
  fs.writeFileSync(path.join(bin, 'weir'), `#!/bin/bash\nenv >'${bin}/env'; printf '%s\\n' "$*" >>'${bin}/words'\n${weir}\n`, {mode: 0o755});
  const child = spawn('bash', ['-eo', 'pipefail', '-c', script_of(jobs, job)], {cwd: folder, env: {
    PATH: `${bin}:${process.env.PATH}`, HOME: world.top, ...jobs[job].variables, CI_API_V4_URL: `http://127.0.0.1:${server.address().port}/api/v4`,
    CI_PROJECT_DIR: folder, CI_PROJECT_ID: '3', CI_PROJECT_URL: `file://${world.origin.replace(/\.git$/, '')}`, CI_JOB_TOKEN: 'glcbt-secret', CI_COMMIT_SHA: world.git(folder, 'rev-parse', 'HEAD'), ...env}});
  const read = (name) => fs.readFileSync(path.join(bin, name), {encoding: 'utf8', flag: 'a+'});
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => { log += text; });
  return new Promise((done) => child.on('close', (status) => done({status, log, folder, read})));
}
const writes = (text) => `for word; do case $last in --json|--markdown|--junit|--openmetrics) echo '${text}' >"$word" ;; esac; last=$word; done`;

test('a merge request is measured by the rules of its target branch, and the exit code stays the verdict', async () => {
  // The merge request has committed a run, which is not the one that was measured.
  const folder = world.checkout('main', 0);
  for (const place of ['run', 'weir-out/zzz']) {
    fs.mkdirSync(path.join(folder, place), {recursive: true});
    fs.writeFileSync(path.join(folder, place, 'run.jsonl'), 'committed\n');
  }
  const weir = `${writes('x')}; last=; out=weir-out; for word; do [ "$last" != --out ] || out=$word; last=$word; done
mkdir -p "$out/1"; echo records >"$out/1/run.jsonl"; exit 1`;
  const done = await run('weir-measure', weir, {CI_PROJECT_ID: '4', CI_MERGE_REQUEST_PROJECT_ID: '3', CI_MERGE_REQUEST_IID: '8', CI_MERGE_REQUEST_TARGET_BRANCH_NAME: 'release', CI_MERGE_REQUEST_PROJECT_URL: `file://${world.origin.replace(/\.git$/, '')}`}, folder);
  assert.equal(done.status, 1, done.log);
  assert.match(done.read('words'), /--rules-from refs\/remotes\/target\/release /);
  assert.equal(world.git(done.folder, 'rev-parse', 'refs/remotes/target/release'), world.git(world.work, 'rev-parse', 'main'));
  const {paths, reports} = jobs['weir-measure'].artifacts;
  for (const name of [...paths.filter((place) => !place.endsWith('/')), ...Object.values(reports)]) assert.equal(fs.readFileSync(path.join(done.folder, name), 'utf8'), 'x\n', name);
  assert.equal(fs.readFileSync(path.join(done.folder, 'run/run.jsonl'), 'utf8'), 'records\n');
  const pushed = await run('weir-measure', weir.replace('exit 1', 'exit 0'));
  assert.equal(pushed.status, 0, pushed.log);
  const [main, before] = ['main', 'main^'].map((name) => world.git(world.work, 'rev-parse', name));
  assert.ok(pushed.read('words').includes(`--rules-from ${main} --against ${before} `), 'a push has its own rules, and is compared with the commit before');
});

test('the token is for a pipeline of the protected default branch, and measuring has no use for it', () => {
  assert.ok(!JSON.stringify(jobs['weir-measure']).includes('TOKEN'));
  const [{if: condition}, ...others] = jobs['weir-post'].rules;
  assert.deepEqual(others, []);
  for (const part of ['$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH', '$CI_COMMIT_REF_PROTECTED == "true"', '/^(schedule|web)$/']) assert.ok(condition.includes(part), part);
  assert.deepEqual([jobs['weir-post'].cache, jobs['weir-post'].needs, jobs['weir-post'].dependencies], [[], undefined, undefined]);
});

const request = (more = {}) => ({iid: 8, sha, target_branch: 'main', head_pipeline: {id: 21, project_id: 3, status: 'success', sha}, ...more});
function fake({merge_request = request(), notes = [], records = 'records\n', more = {}} = {}) {
  const project = merge_request.head_pipeline?.project_id;
  return {calls: [], answers: {
    'GET /user': {id: 11}, 'GET /projects/3/merge_requests': [{iid: 8}], 'GET /projects/3/merge_requests/8': merge_request,
    'GET /projects/3/merge_requests/8/notes?per_page=100&sort=asc&page=1': notes, 'GET /projects/3/merge_requests/8/notes?per_page=100&sort=asc&page=2': [],
    [`GET /projects/${project}/pipelines/21/jobs`]: [{id: 4, name: 'other', artifacts_file: {}}, {id: 5, name: 'weir-measure', artifacts_file: {}}, {id: 6, name: 'weir-measure'}],
    [`GET /projects/${project}/jobs/5/artifacts/run/run.jsonl`]: records,
    [`GET /projects/${project}/repository/commits/${merged}`]: {parent_ids: ['d'.repeat(40), sha]},
    [`POST /projects/3/statuses/${sha}`]: {}, [`POST /projects/3/statuses/${merged}`]: {}, 'POST /projects/3/merge_requests/8/notes': {}, 'PUT /projects/3/merge_requests/8/notes/6': {}, ...more}};
}
// → what was posted: {state, name, note, how}, and the run.
async function posted(given, weir = writes('all well')) {
  gitlab = fake(given);
  const done = await run('weir-post', weir, {WEIR_GITLAB_TOKEN: 'glpat-secret'});
  const sent = gitlab.calls.filter(({call}) => !call.startsWith('GET'));
  const status = sent.find(({call}) => call.includes('statuses')), note = sent.find(({call}) => call.includes('notes'));
  const {state, name, pipeline_id: pipeline} = fields_of(status?.body ?? '');
  return {...done, sent: sent.map(({call}) => call), state, name, pipeline, note: fields_of(note?.body ?? '').body};
}

test('records are judged by the tip of the target branch in a process that has no token', async () => {
  const done = await posted();
  assert.equal(done.status, 0, done.log);
  assert.match(done.read('words'), /gate --config weir.yaml --from \S+\/run --rules-from refs\/remotes\/origin\/main --counts-only --require-baseline/);
  assert.ok(!/secret/.test(done.read('env')), done.read('env'));
  assert.deepEqual([done.state, done.name, done.pipeline], ['success', 'weir (main !8)', '21']);
  assert.match(done.note, new RegExp(`^<!-- weir !8 main ${sha} 21 -->\r?\nall well\n[^]*ran the code of the merge request`));
  assert.ok(gitlab.calls.every(({token}) => token === 'glpat-secret'));
  assert.ok(!done.log.includes('secret'));
});

test('what fails, what can not be judged and what was not measured is red', async () => {
  for (const [code, note] of [[1, /all well/], [3, /all well/], [4, /all well/]]) {
    const done = await posted({}, `${writes('all well')}; exit ${code}`);
    assert.equal(done.state, 'failed', String(code));
    assert.match(done.note, note);
  }
  for (const given of [{records: undefined, more: {'GET /projects/3/jobs/5/artifacts/run/run.jsonl': ''}}, {more: {'GET /projects/3/pipelines/21/jobs': []}},
                       {merge_request: request({head_pipeline: {id: 21, project_id: 3, status: 'success', sha: 'b'.repeat(40)}})}]) {
    const done = await posted(given);
    assert.equal(done.state, 'failed');
    assert.match(done.note, /no verdict\*\* for aaaaaaaaaaaa: not judged/);
    assert.equal(done.read('words'), '');
  }
  assert.match((await posted({}, 'exit 2')).note, /no verdict\*\*.*ended with 2/);
});

test('records that are judged without end are not judged, and the next merge request is posted', async () => {
  const next = request({iid: 9, head_pipeline: {id: 22, project_id: 3, status: 'success', sha}});
  const judge = `if [ ! -e "$HOME/judged" ]; then touch "$HOME/judged"; while :; do sleep 1; done; fi; ${writes('all well')}`;
  gitlab = fake({more: {
    'GET /projects/3/merge_requests': [{iid: 8}, {iid: 9}], 'GET /projects/3/merge_requests/9': next,
    'GET /projects/3/merge_requests/9/notes?per_page=100&sort=asc&page=1': [], 'POST /projects/3/merge_requests/9/notes': {},
    'GET /projects/3/pipelines/22/jobs': [{id: 7, name: 'weir-measure', artifacts_file: {}}], 'GET /projects/3/jobs/7/artifacts/run/run.jsonl': 'records\n'}});
  const done = await run('weir-post', judge, {WEIR_GITLAB_TOKEN: 'glpat-secret', WEIR_JUDGE_SECONDS: '2'});
  assert.equal(done.status, 0, done.log);
  const notes = gitlab.calls.filter(({call}) => call.startsWith('POST') && call.endsWith('/notes')).map(({call, body}) => [call, fields_of(body).body]);
  assert.equal(notes.length, 2, done.log);
  assert.match(notes[0][0], /requests\/8/);
  assert.match(notes[0][1], /no verdict\*\* for aaaaaaaaaaaa: the records take more time or memory to judge than they may/);
  assert.match(notes[1][0], /requests\/9/);
  assert.match(notes[1][1], /all well/);
});

test('another target branch has other rules and a note of its own; a fork\'s pipeline is its project\'s', async () => {
  const done = await posted({merge_request: request({target_branch: 'release'}), notes: [{id: 6, body: `<!-- weir !8 main ${sha} 21 -->\n`, author: {id: 11}}]});
  assert.match(done.read('words'), /--rules-from refs\/remotes\/origin\/release /);
  assert.deepEqual([done.name, done.sent[1]], ['weir (release !8)', 'PUT /projects/3/merge_requests/8/notes/6']);
  const fork = await posted({merge_request: request({head_pipeline: {id: 21, project_id: 99, status: 'failed', sha: merged}})});
  assert.deepEqual([fork.state, fork.pipeline, fork.sent[0]], ['success', undefined, `POST /projects/3/statuses/${sha}`], fork.log);
  const results = await posted({merge_request: request({head_pipeline: {id: 21, project_id: 3, status: 'success', sha: merged}})});
  assert.deepEqual([results.state, results.pipeline, results.sent[0]], ['success', '21', `POST /projects/3/statuses/${merged}`], results.log);
});

test('one note is kept, and each head is posted once; others\' notes with its mark are left alone', async () => {
  const theirs = {id: 5, body: `<!-- weir !8 main ${sha} 21 -->`, author: {id: 12}};
  assert.ok((await posted({notes: [theirs]})).sent.includes('POST /projects/3/merge_requests/8/notes'));
  const old = {id: 6, body: `<!-- weir !8 main ${sha} 20 -->\nall well`, author: {id: 11}};
  assert.ok((await posted({notes: [theirs, old]})).sent.includes('PUT /projects/3/merge_requests/8/notes/6'));
  assert.deepEqual((await posted({notes: [{...old, body: `<!-- weir !8 main ${sha} 21 -->\nall well`}]})).sent, []);
  assert.deepEqual((await posted({merge_request: request({head_pipeline: {id: 21, project_id: 3, status: 'running', sha}})})).sent, []);
  assert.deepEqual((await posted({merge_request: request({head_pipeline: null})})).sent, []);
});

test('only the pipeline of a merge train is left to the train', async () => {
  const sent = async (ref, source) => (await posted({merge_request: request({head_pipeline: {id: 21, project_id: 3, status: 'success', sha, ref, source}})})).sent;
  assert.deepEqual(await sent('refs/merge-requests/8/train', 'merge_request_event'), []);
  // Branches may have these names; 9 is another merge request.
  for (const [ref, source] of [['x/train', 'push'], ['refs/merge-requests/8/train', 'push'], ['refs/merge-requests/9/train', 'merge_request_event'], ['refs/merge-requests/8/head', 'merge_request_event']]) {
    assert.equal((await sent(ref, source)).length, 2, `${ref} ${source}`);
  }
});

test('an answer that is no list makes no second note, and hostile names are text', async () => {
  for (const answer of ['<html>', '{"message": "500"}', '']) {
    const done = await posted({notes: answer});
    assert.equal(done.status, 1, answer);
    assert.deepEqual(done.sent, []);
  }
  for (const target_branch of ['$(touch pwned)', '--upload-pack=touch pwned', '`touch pwned`', '../..']) {
    const done = await posted({merge_request: request({target_branch})});
    assert.equal(done.read('words'), '', target_branch);
    assert.ok(!fs.existsSync(path.join(done.folder, 'pwned')));
  }
});
