// A stand-in for GitLab, as strict as GitLab: who asks is said by a token with its role, what is absent is 404, lists have
// pages with their headers. Its repository is a bare one of git; jobs of docs/ci/gitlab.yml run as GitLab's runner runs them.
import {spawn, spawnSync} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import {weir} from './world.mjs';

const k_project = '/api/v4/projects/3';
export const k_token = 'glpat-bot';
const k_bot = 11;

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}
export const fields_of = (body) => Object.fromEntries([...body.matchAll(/name="(\w+)"[^]*?\r\n\r\n([^]*?)\r\n--/g)].map(([, name, value]) => [name, value]));

// All lines of a job's script, with those that it refers to.
export const script_of = (jobs, name) => jobs[name].script.flatMap((line) => Array.isArray(line) ? jobs[line[0]][line[1]] : line).join('\n');

export class GitLab {
  static async start(world, jobs) {
    const gitlab = new GitLab();
    // Users by id: their names, and their roles here (no role: no member).
    Object.assign(gitlab, {world, jobs, count: 100, requests: [], notes: [], statuses: [], runs: [], role: 40,
                           users: {[k_bot]: ['bot', 40], 21: ['dev', 30], 22: ['rev', 30], 23: ['guest', 10], 24: ['stranger']}});
    gitlab.server = http.createServer((request, response) => {
      const chunks = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => gitlab.serve(request, response, Buffer.concat(chunks).toString()));
    });
    await new Promise((ready) => gitlab.server.listen(0, '127.0.0.1', ready));
    return gitlab;
  }
  stop() { this.server.close(); }
  git(...words) { return this.world.git(this.world.origin, ...words); }
  has(commit) {
    try { return this.git('cat-file', '-t', commit) === 'commit'; } catch { return false; }
  }
  next() { return ++this.count; }

  // --- the API

  routes = [
    ['GET', '/merge_requests', () => this.requests.filter(({state}) => state === this.query.get('state'))],
    ['GET', '/merge_requests/([0-9]+)', (iid) => this.request(iid)],
    ['GET', '/merge_requests/([0-9]+)/notes', (iid) => this.notes.filter((note) => note.iid === Number(iid))],
    ['POST', '/merge_requests/([0-9]+)/notes', (iid, form) => this.note(iid, form.body, k_bot)],
    ['PUT', '/merge_requests/[0-9]+/notes/([0-9]+)', (id, form) => {
      const note = this.found(this.notes.find((one) => one.id === Number(id)));
      if (note.author.id !== k_bot) throw new Refusal(403, '403 Forbidden');
      return Object.assign(note, {body: form.body});
    }],
    ['GET', '/members/all/([0-9]+)', (id) => ({id: Number(id), access_level: this.found(this.users[id]?.[1])})],
    ['GET', '/pipelines/([0-9]+)/jobs', (id) => this.runs.filter((run) => run.pipeline === Number(id))],
    ['GET', '/jobs/([0-9]+)/artifacts/run/run.jsonl', (id) => this.found(this.runs.find((run) => run.id === Number(id))?.records)],
    ['POST', '/jobs/([0-9]+)/retry', (id) => {
      this.developer();
      const run = this.found(this.runs.find((one) => one.id === Number(id)));
      run.is_retried = true;
      return run;
    }],
    ['GET', '/repository/commits/([0-9a-f]+)', (sha) => {
      if (!this.has(sha)) throw new Refusal(404, '404 Commit Not Found');
      return {id: sha, parent_ids: this.git('rev-list', '--parents', '-n1', sha).split(' ').slice(1)};
    }],
    ['POST', '/statuses/([0-9a-f]+)', (sha, form) => {
      this.developer();
      if (!this.has(sha)) throw new Refusal(404, '404 Commit Not Found');
      if (!/^(pending|running|success|failed|canceled|skipped)$/.test(form.state)) throw new Refusal(400, 'state is invalid');
      this.statuses.push({...form, sha});
      return form;
    }],
  ];
  developer() { if (this.role < 30) throw new Refusal(403, '403 Forbidden'); }
  found(value) {
    if (value === undefined) throw new Refusal(404, '404 Not found');
    return value;
  }
  request(iid) { return this.found(this.requests.find((one) => one.iid === Number(iid))); }
  answer(method, url, token, body) {
    if (token !== k_token) throw new Refusal(401, '401 Unauthorized');
    this.query = url.searchParams;
    if (method === 'GET' && url.pathname === '/api/v4/user') return {id: k_bot};
    if (!url.pathname.startsWith(k_project)) throw new Refusal(404, '404 Project Not Found');
    for (const [verb, pattern, handle] of this.routes) {
      const match = verb === method && new RegExp(`^${pattern}$`).exec(url.pathname.slice(k_project.length));
      if (match) return handle(...match.slice(1), ...(method === 'GET' ? [] : [fields_of(body)]));
    }
    throw new Refusal(404, '404 Not Found');
  }
  serve(request, response, body) {
    const url = new URL(request.url, 'http://gitlab');
    let status = request.method === 'POST' ? 201 : 200, answer;
    const headers = {};
    try {
      answer = this.answer(request.method, url, request.headers['private-token'], body);
      if (Array.isArray(answer)) {
        const size = Math.min(Number(this.query.get('per_page') ?? 20), 100), page = Number(this.query.get('page') ?? 1);
        Object.assign(headers, {'x-page': page, 'x-next-page': page * size < answer.length ? page + 1 : ''});
        answer = answer.slice((page - 1) * size, page * size);
      }
    } catch (error) {
      status = error instanceof Refusal ? error.status : 500;
      answer = {message: error.message};
    }
    response.writeHead(status, headers);
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  }

  // --- what people do

  note(iid, body, user) {
    const note = {id: this.next(), iid: Number(iid), body, system: false, author: {id: user, username: this.users[user][0]}};
    this.notes.push(note);
    return note;
  }
  own_note(iid) { return this.notes.find((note) => note.iid === iid && note.author.id === k_bot && note.body.startsWith('<!-- weir !')); }
  // Opens merge request `iid` of `branch`, which is pushed.
  open(iid, branch, author = 21) {
    const sha = this.git('rev-parse', branch);
    this.git('update-ref', `refs/merge-requests/${iid}/head`, sha);
    this.requests.push({iid, sha, state: 'opened', source_branch: branch, target_branch: 'main', author: {id: author}, merge_commit_sha: null, squash_commit_sha: null});
  }
  // Puts the merge request onto `onto`; → the new commit, which is in the repository.
  put(iid, onto, way) {
    const {world} = this, {sha} = this.request(iid);
    const folder = world.fresh('put');
    this.git('worktree', 'add', '-q', '--detach', folder, onto);
    const git = (...words) => world.git(folder, ...words);
    if (way === 'merge') git('merge', '-q', '--no-ff', '-m', `Merge branch '${iid}'`, sha);
    if (way === 'squash') {
      git('merge', '-q', '--squash', sha);
      git('commit', '-q', '-m', `change ${iid}`);
    }
    if (way === 'fast-forward') git('merge', '-q', '--ff-only', sha);
    const commit = git('rev-parse', 'HEAD');
    this.git('worktree', 'remove', '--force', folder);
    return commit;
  }
  land(iid, way, commit) {
    const before = this.git('rev-parse', 'main'), after = commit ?? this.put(iid, before, way);
    this.git('update-ref', 'refs/heads/main', after, before);
    for (const ref of this.git('for-each-ref', '--format=%(refname)', 'refs/merge-requests/*/train').split('\n').filter(Boolean)) this.git('update-ref', '-d', ref);
    Object.assign(this.request(iid), {state: 'merged', merge_commit_sha: way === 'merge' ? after : null, squash_commit_sha: way === 'squash' ? after : null});
    return {before, after};
  }
  // Puts merge requests into the train, each onto the one before; → {iid, base, commit} of each.
  train(iids) {
    let onto = this.git('rev-parse', 'main');
    return iids.map((iid) => {
      const base = onto;
      onto = this.put(iid, base, 'merge');
      this.git('update-ref', `refs/merge-requests/${iid}/train`, onto);
      return {iid, base, commit: onto};
    });
  }

  // --- pipelines

  // Runs a job's `script` in a fresh checkout: all lines in one shell that stops at an error. → {status, log, folder}
  run(name, commit, env, files = {}) {
    const {world} = this, job = this.jobs[name];
    const folder = world.checkout(commit, 0), bin = world.fresh('bin');
    for (const [file, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, file), text);
    fs.symlinkSync(weir, path.join(bin, 'weir'));
    // A push over HTTP: who it is says the header alone, and the branch is one that Maintainers may push to.
    const header = `AUTHORIZATION: basic ${Buffer.from(`oauth2:${k_token}`).toString('base64')}`;
    fs.writeFileSync(path.join(bin, 'git'), `#!/bin/sh
for word; do
  if [ "$word" = push ] && { [ "$GIT_CONFIG_KEY_0" != http.extraheader ] || [ "$GIT_CONFIG_VALUE_0" != '${header}' ]; }; then echo 'remote: HTTP Basic: Access denied' >&2; exit 128; fi
  if [ "$word" = push ] && [ ${this.role} -lt 40 ]; then echo 'remote: GitLab: You are not allowed to push code to protected branches on this project.' >&2; exit 1; fi
done
exec ${spawnSync('sh', ['-c', 'command -v git'], {encoding: 'utf8'}).stdout.trim()} "$@"
`, {mode: 0o755});
    const child = spawn('bash', ['-eo', 'pipefail', '-c', script_of(this.jobs, name)], {cwd: folder, env: {
      PATH: `${bin}:${process.env.PATH}`, HOME: world.fresh('home'), ...job.variables, WEIR_LOCK_DIR: path.join(world.top, 'locks'),
      CI_API_V4_URL: `http://127.0.0.1:${this.server.address().port}/api/v4`, CI_PROJECT_ID: '3', CI_PROJECT_DIR: folder,
      CI_PROJECT_URL: `file://${world.origin.replace(/\.git$/, '')}`, CI_COMMIT_SHA: commit, CI_DEFAULT_BRANCH: 'main', GITLAB_CI: 'true', ...env}});
    let log = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => { log += text; });
    return new Promise((done) => child.on('close', (status) => done({status, log, folder})));
  }
  // The pipeline of a merge request: → {status, log}.
  async measure(iid, {base, commit} = {}) {
    const request = this.request(iid), {sha} = request;
    const pipeline = this.next();
    const done = await this.run('weir-measure', commit ?? sha, {
      CI_PIPELINE_SOURCE: 'merge_request_event', CI_MERGE_REQUEST_IID: String(iid), CI_MERGE_REQUEST_TARGET_BRANCH_NAME: 'main',
      CI_MERGE_REQUEST_PROJECT_ID: '3', CI_MERGE_REQUEST_PROJECT_URL: `file://${this.world.origin.replace(/\.git$/, '')}`,
      CI_MERGE_REQUEST_DIFF_BASE_SHA: this.git('merge-base', 'main', sha), CI_MERGE_REQUEST_EVENT_TYPE: commit ? 'merge_train' : 'detached',
      ...(commit ? {CI_MERGE_REQUEST_SOURCE_BRANCH_SHA: sha, CI_MERGE_REQUEST_TARGET_BRANCH_SHA: base} : {})});
    const records = path.join(done.folder, 'run/run.jsonl');
    this.runs.push({id: this.next(), pipeline, name: 'weir-measure', artifacts_file: {}, records: fs.existsSync(records) ? fs.readFileSync(records, 'utf8') : undefined});
    const ref = `refs/merge-requests/${iid}/${commit ? 'train' : 'head'}`;
    request.head_pipeline = {id: pipeline, project_id: 3, sha: commit ?? sha, ref, source: 'merge_request_event', status: done.status === 0 ? 'success' : 'failed'};
    return done;
  }
  // The scheduled pipeline of main.
  post() { return this.run('weir-post', this.git('rev-parse', 'main'), {WEIR_GITLAB_TOKEN: k_token}); }
  // The pipeline of a push to main: → by job {status, log}.
  async push({before, after}) {
    const env = {CI_PIPELINE_SOURCE: 'push', CI_COMMIT_BRANCH: 'main', CI_COMMIT_BEFORE_SHA: before, CI_COMMIT_REF_PROTECTED: 'true'};
    const merged = await this.run('weir-merged', after, {...env, WEIR_GITLAB_TOKEN: k_token});
    const files = {'weir-merged.txt': fs.readFileSync(path.join(merged.folder, 'weir-merged.txt'), 'utf8')};
    const dotenv = Object.fromEntries(fs.readFileSync(path.join(merged.folder, 'weir-merged.env'), 'utf8').trim().split('\n').map((line) => line.split('=')));
    const measured = await this.run('weir-measure', after, {...env, ...dotenv}, files);
    const store = measured.status === 0 ? await this.run('weir-store', after, {...env, WEIR_GITLAB_TOKEN: k_token}, files) : undefined;
    return {merged, measured, store, held: files['weir-merged.txt']};
  }
}
