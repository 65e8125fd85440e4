// A stand-in for GitHub, as strict as GitHub: what a token may do stands in the `permissions:` of its job, a file of an
// absent branch is not there, lists have pages, requests have limits, an answer that is known already is not sent again.
// Its repository is a bare one of git.
//
//   node github.mjs ORIGIN                          prints the port that it listens on; ends with its standard input
//   node github.mjs ORIGIN KEY CERTIFICATE RELEASE  the same over HTTPS on port 443, for all of GitHub's hosts (web.mjs);
//                                                   RELEASE is the archive that a release of weir has
//
// Tests steer it below /test/ (open, comment, merge, queue, artifact, limit) and read /test/state.
import {execFileSync} from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import {pathToFileURL} from 'node:url';
import {answer_web} from './web.mjs';

const k_repository = '/repos/o/r';
const k_bot = {login: 'github-actions[bot]', type: 'Bot'};

// The token of a job with these permissions.
export const token_of = (permissions) => `ghs_${Buffer.from(JSON.stringify(permissions ?? {})).toString('base64url')}`;
function permissions_of(header) {
  const basic = /^basic (.+)$/i.exec(header ?? '');
  const given = basic ? Buffer.from(basic[1], 'base64').toString().replace(/^x-access-token:/, 'token ') : header ?? '';
  const token = /^(?:Bearer|token) ghs_([\w-]+)$/.exec(given);
  return token ? JSON.parse(Buffer.from(token[1], 'base64url')) : undefined;
}

class Refusal extends Error {
  constructor(status, message, headers = {}) {
    super(message);
    Object.assign(this, {status, headers});
  }
}
const not_found = (what = 'Not Found') => new Refusal(404, what);

// What GitHub shows of what is kept here.
const shown = {
  pull: ({queued, ...pull}) => pull,
  status: ({sha, ...status}) => status,
  artifact: ({run, zip, ...artifact}) => artifact,
  check: ({annotations, output, ...check}) => ({...check, output: {...output, annotations_count: annotations.length}}),
};

class GitHub {
  constructor(origin) {
    this.origin = origin;
    this.work = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-github-'));
    this.state = {next: 1000, pulls: [], comments: [], checks: [], statuses: [], artifacts: []};
    this.requests = [];
    this.uploads = new Map();
    this.refusals = [];
  }
  git(...words) { return this.git_with({}, ...words); }
  git_with({input, folder = this.origin}, ...words) {
    return execFileSync('git', ['-c', 'user.name=GitHub', '-c', 'user.email=noreply@github.com', ...words],
                        {cwd: folder, input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe']}).trim();
  }
  commit_of(name) {
    try {
      return this.git('rev-parse', '--verify', '-q', `${name}^{commit}`);
    } catch {
      return undefined;
    }
  }
  // The tree of a commit, or an empty one, with these files: {path, content}.
  tree({parent, files}) {
    const index = path.join(this.work, `index-${this.next()}`);
    const git = (...words) => execFileSync('git', words, {cwd: this.origin, encoding: 'utf8', env: {...process.env, GIT_INDEX_FILE: index}}).trim();
    if (parent) git('read-tree', parent);
    for (const {path: file, content} of files) {
      const blob = this.git_with({input: content}, 'hash-object', '-w', '--stdin');
      git('update-index', '--add', '--cacheinfo', `100644,${blob},${file}`);
    }
    return git('write-tree');
  }
  branch(name) {
    const commit = this.commit_of(`refs/heads/${name}`);
    if (!commit) throw not_found(`Branch ${name} not found`);
    return commit;
  }
  pull(number) {
    const pull = this.state.pulls.find((one) => one.number === Number(number));
    if (!pull) throw not_found();
    return pull;
  }
  next() { return ++this.state.next; }

  // --- what people do

  open({number, head, base = 'main', author = 'dev', from = 'o/r'}) {
    const pull = {
      number, title: head, state: 'open', merged: false, merged_at: null, merge_commit_sha: null, user: {login: author, type: 'User'},
      head: {ref: head, sha: this.branch(head), repo: {full_name: from, owner: {login: from.split('/')[0]}}},
      base: {ref: base, sha: this.branch(base), repo: {full_name: 'o/r'}}};
    this.state.pulls = [...this.state.pulls.filter((other) => other.number !== number), pull];
    return pull;
  }
  comment({number, body, author = 'rev'}) {
    const comment = {id: this.next(), body, user: {login: author, type: 'User'}, issue_url: `https://api.example/repos/o/r/issues/${number}`};
    this.state.comments.push(comment);
    return comment;
  }
  // Puts the pull request onto the commit `onto`, in one of the ways that GitHub has; returns the new commit.
  put(pull, onto, way) {
    const folder = fs.mkdtempSync(path.join(this.work, 'tree-'));
    const git = (...words) => this.git_with({folder}, ...words);
    this.git('worktree', 'add', '-q', '--detach', folder, onto);
    try {
      const subject = `${pull.title} (#${pull.number})`;
      if (way === 'merge') git('merge', '-q', '--no-ff', '-m', `Merge pull request #${pull.number} from o/${pull.head.ref}`, pull.head.sha);
      if (way === 'squash') {
        git('merge', '-q', '--squash', pull.head.sha);
        git('commit', '-q', '-m', subject);
      }
      if (way === 'rebase') git('cherry-pick', `${this.git('merge-base', onto, pull.head.sha)}..${pull.head.sha}`);
      return git('rev-parse', 'HEAD');
    } finally {
      this.git('worktree', 'remove', '--force', folder);
    }
  }
  // Merges a pull request; returns the event of the push.
  merge({number, way}) {
    const pull = this.pull(number), before = this.branch(pull.base.ref);
    return this.land([pull], before, this.put(pull, before, way));
  }
  land(pulls, before, after) {
    const branch = pulls[0].base.ref;
    this.git('update-ref', `refs/heads/${branch}`, after, before);
    for (const pull of pulls) {
      Object.assign(pull, {state: 'closed', merged: true, merged_at: '2026-11-20T10:00:00Z', merge_commit_sha: pull.queued ?? after});
      delete pull.queued;
    }
    return {event_name: 'push', ref: `refs/heads/${branch}`, ref_name: branch, sha: after,
            event: {ref: `refs/heads/${branch}`, before, after, repository: {full_name: 'o/r', default_branch: 'main'}}};
  }
  // Puts pull requests into the merge queue, each onto the one before; returns their events.
  queue({numbers, way}) {
    let onto = this.branch('main');
    return numbers.map((number) => {
      const pull = this.pull(number), base = onto;
      const ref = `gh-readonly-queue/main/pr-${number}-${base}`;
      onto = pull.queued = this.put(pull, base, way);
      this.git('update-ref', `refs/heads/${ref}`, onto);
      return {event_name: 'merge_group', ref: `refs/heads/${ref}`, ref_name: ref, sha: onto, base_ref: '', event: {
        action: 'checks_requested', repository: {full_name: 'o/r', default_branch: 'main'},
        merge_group: {head_sha: onto, head_ref: `refs/heads/${ref}`, base_sha: base, base_ref: 'refs/heads/main'}}};
    });
  }
  // Merges what is queued, up to `number`, and drops the queue's branches.
  dequeue({number}) {
    const before = this.branch('main'), after = this.pull(number).queued;
    const pulls = this.state.pulls.filter((pull) => pull.queued && this.git('merge-base', pull.queued, after) === pull.queued);
    const event = this.land(pulls, before, after);
    for (const ref of this.git('for-each-ref', '--format=%(refname)', 'refs/heads/gh-readonly-queue').split('\n').filter(Boolean)) {
      this.git('update-ref', '-d', ref);
    }
    return event;
  }
  artifact({run, name, zip}) {
    this.state.artifacts.push({id: this.next(), run, name, zip, size_in_bytes: zip.length, expired: false});
    return {};
  }

  // Refuses the next requests: "primary" until `seconds` from now, "secondary" for `seconds` (403 or 429), "silent" without
  // saying for how long; or answers nothing that helps ("down").
  limit({kind, times, seconds = 0}) {
    const reset = Math.floor(Date.now() / 1000) + seconds;
    const message = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.';
    const refusals = {
      primary: [403, 'API rate limit exceeded for installation ID 1.', {'x-ratelimit-remaining': 0, 'x-ratelimit-reset': reset}],
      secondary: [403, message, {'retry-after': seconds}],
      many: [429, message, {'retry-after': seconds}],
      silent: [429, message],
      down: [502, 'Server Error'],
    };
    this.refusals = Array.from({length: times}, () => new Refusal(...refusals[kind]));
    return {};
  }

  // --- the API

  routes = [
    ['GET', '/collaborators/([^/]+)/permission', 'metadata', (login) => ({permission: login === 'stranger' ? 'read' : 'write', user: {login}})],
    ['GET', '/pulls/([0-9]+)', 'pull_requests', (number) => shown.pull(this.pull(number))],
    ['GET', '/pulls', 'pull_requests', () => this.state.pulls.filter((pull) =>
        pull.state === (this.query.get('state') ?? 'open') && [null, `${pull.head.repo.owner.login}:${pull.head.ref}`].includes(this.query.get('head'))).map(shown.pull)],
    ['GET', '/commits/([0-9a-f]+)/pulls', 'pull_requests', (sha) => this.state.pulls.filter((pull) => [pull.head.sha, pull.merge_commit_sha].includes(sha)).map(shown.pull)],
    ['GET', '/commits/([0-9a-f]+)', 'contents', (sha) => {
      if (!this.commit_of(sha)) throw new Refusal(422, `No commit found for SHA: ${sha}`);
      return {sha, parents: this.git('rev-list', '--parents', '-n1', sha).split(' ').slice(1).map((parent) => ({sha: parent}))};
    }],
    ['GET', '/compare/(.+)[.]{3}(.+)', 'contents', (from, to) => {
      const [a, b] = [from, to].map((name) => this.commit_of(name) ?? this.commit_of(`refs/heads/${name}`));
      if (!a || !b) throw not_found();
      const base = this.git('merge-base', a, b);
      return {status: a === b ? 'identical' : base === a ? 'ahead' : base === b ? 'behind' : 'diverged'};
    }],
    ['GET', '/contents/(.+)', 'contents', (file) => {
      const at = this.commit_of(this.query.get('ref'));
      if (!at) throw not_found(`No commit found for the ref ${this.query.get('ref')}`);
      try {
        const content = Buffer.from(`${this.git('cat-file', 'blob', `${at}:${file}`)}\n`).toString('base64');
        return {content, encoding: 'base64', sha: this.git('rev-parse', `${at}:${file}`)};
      } catch {
        throw not_found();
      }
    }],
    ['PUT', '/contents/(.+)', 'contents', (file, body) => {
      const parent = this.branch(body.branch);
      let there;
      try { there = this.git('rev-parse', '-q', '--verify', `${parent}:${file}`); } catch { there = undefined; }
      if (there !== body.sha) throw new Refusal(there && !body.sha ? 422 : 409, `${file} does not match ${there}`);
      const tree = this.tree({parent, files: [{path: file, content: Buffer.from(body.content, 'base64')}]});
      const commit = this.git('commit-tree', tree, '-p', parent, '-m', body.message);
      this.git('update-ref', `refs/heads/${body.branch}`, commit, parent);
      return {commit: {sha: commit}};
    }],
    ['POST', '/git/trees', 'contents', (body) => ({sha: this.tree({files: body.tree})})],
    ['POST', '/git/commits', 'contents', (body) => ({sha: this.git('commit-tree', body.tree, ...(body.parents ?? []).flatMap((parent) => ['-p', parent]), '-m', body.message)})],
    ['POST', '/git/refs', 'contents', (body) => {
      if (this.commit_of(body.ref)) throw new Refusal(422, 'Reference already exists');
      this.git('update-ref', body.ref, body.sha, '0'.repeat(40));
      return {ref: body.ref, object: {sha: body.sha}};
    }],
    ['GET', '/commits/([0-9a-f]+)/check-runs', 'checks', (sha) => this.list('check_runs', this.state.checks.filter((check) =>
        check.head_sha === sha && [null, check.name].includes(this.query.get('check_name'))).map(shown.check))],
    ['POST', '/check-runs', 'checks', (body) => {
      if (!this.commit_of(body.head_sha)) throw new Refusal(422, `No commit found for SHA: ${body.head_sha}`);
      const {annotations = [], ...output} = body.output ?? {};
      const check = {...body, output, annotations, id: this.next(), app: {slug: 'github-actions'}, html_url: 'https://github.example/o/r/runs/1'};
      this.state.checks.push(check);
      return shown.check(check);
    }],
    ['PATCH', '/check-runs/([0-9]+)', 'checks', (id, body) => {
      const check = this.check(id), {annotations = [], ...output} = body.output ?? {};
      return shown.check(Object.assign(check, body, {output: {...check.output, ...output}, annotations: [...check.annotations, ...annotations]}));
    }],
    ['GET', '/check-runs/([0-9]+)/annotations', 'checks', (id) => this.check(id).annotations],
    ['GET', '/commits/([0-9a-f]+)/statuses', 'statuses', (sha) => this.state.statuses.filter((status) => status.sha === sha).reverse().map(shown.status)],
    ['POST', '/statuses/([0-9a-f]+)', 'statuses', (sha, body) => {
      const status = {...body, sha, id: this.next(), creator: k_bot};
      this.state.statuses.push(status);
      return shown.status(status);
    }],
    ['GET', '/issues/([0-9]+)/comments', 'pull_requests', (number) => this.state.comments.filter((comment) => comment.issue_url.endsWith(`/issues/${number}`))],
    ['POST', '/issues/([0-9]+)/comments', 'pull_requests', (number, body) => {
      const comment = {id: this.next(), body: body.body, user: k_bot, issue_url: `https://api.example/repos/o/r/issues/${number}`,
                       html_url: `https://github.example/o/r/pull/${number}#1`};
      this.state.comments.push(comment);
      return comment;
    }],
    ['GET', '/issues/comments/([0-9]+)', 'pull_requests', (id) => this.comment_of(id)],
    ['PATCH', '/issues/comments/([0-9]+)', 'pull_requests', (id, body) => Object.assign(this.comment_of(id), {body: body.body})],
    ['GET', '/actions/runs/([0-9]+)/artifacts', 'actions', (run) => this.list('artifacts', this.state.artifacts.filter((artifact) =>
        String(artifact.run) === run && [null, artifact.name].includes(this.query.get('name'))).map(shown.artifact))],
    ['GET', '/actions/runs/[0-9]+/attempts/[0-9]+/jobs', 'actions', () => this.list('jobs', [{name: 'gpu', status: 'in_progress'}])],
    ['GET', '/actions/artifacts/([0-9]+)/zip', 'actions', (id) => {
      if (!this.state.artifacts.some((one) => one.id === Number(id))) throw not_found();
      return {redirect: `${this.blobs}/blob/${id}`};
    }],
  ];
  list(name, items) { return {total_count: items.length, [name]: this.page(items)}; }
  check(id) {
    const check = this.state.checks.find((one) => one.id === Number(id));
    if (!check) throw not_found();
    return check;
  }
  comment_of(id) {
    const comment = this.state.comments.find((one) => one.id === Number(id));
    if (!comment) throw not_found();
    return comment;
  }

  // The answer to a request for the API.
  answer(method, target, header, body) {
    const url = new URL(target, 'http://api');
    this.query = url.searchParams;
    this.pages = undefined;
    if (this.refusals.length) throw this.refusals.shift();
    const permissions = permissions_of(header);
    if (!permissions) throw new Refusal(401, 'Requires authentication');
    if (!url.pathname.startsWith(k_repository)) throw new Refusal(403, 'Resource not accessible by integration');
    const place = url.pathname.slice(k_repository.length);
    for (const [verb, pattern, area, handle] of this.routes) {
      const match = verb === method && new RegExp(`^${pattern}$`).exec(place);
      if (!match) continue;
      const held = permissions[area.replace('_', '-')];
      const is_allowed = area === 'metadata' || held === 'write' || (method === 'GET' && held === 'read');
      if (!is_allowed) throw new Refusal(method === 'GET' && area === 'contents' ? 404 : 403, 'Resource not accessible by integration');
      const answer = handle(...match.slice(1).map(decodeURIComponent), ...(body === undefined ? [] : [body]));
      if (answer?.redirect) return {status: 302, body: {}, headers: {location: answer.redirect}};
      const listed = Array.isArray(answer) ? this.page(answer) : answer;
      return {status: method === 'POST' ? 201 : 200, body: listed, headers: this.link(url)};
    }
    throw not_found();
  }
  // One page of a list.
  page(items) {
    const size = Math.min(Number(this.query.get('per_page') ?? 30), 100), page = Number(this.query.get('page') ?? 1);
    this.pages = {page, last: Math.max(1, Math.ceil(items.length / size))};
    return items.slice((page - 1) * size, page * size);
  }
  // Where the next page is.
  link(url) {
    if (!this.pages || this.pages.page >= this.pages.last) return {};
    const place = (page) => {
      const next = new URL(url.pathname + url.search, this.address);
      next.searchParams.set('page', page);
      return next.href;
    };
    return {link: `<${place(this.pages.page + 1)}>; rel="next", <${place(this.pages.last)}>; rel="last"`};
  }
}

// Each answer of the API says what is left of the hour's requests.
const limits_of = () => ({'x-ratelimit-limit': 1000, 'x-ratelimit-remaining': 900, 'x-ratelimit-reset': Math.floor(Date.now() / 1000) + 3600,
                          'x-ratelimit-resource': 'core'});

// A GET whose answer is known already, by its ETag, is answered without one.
function unless_known({status, body, headers = {}}, method, known) {
  if (method !== 'GET' || status !== 200 || Buffer.isBuffer(body)) return {status, body, headers};
  const etag = `W/"${crypto.createHash('sha256').update(JSON.stringify(body)).digest('hex')}"`;
  if (known === etag) return {status: 304, body: Buffer.alloc(0), headers: {...headers, etag}};
  return {status, body, headers: {...headers, etag}};
}

function serve(origin, key, certificate, release) {
  const github = new GitHub(origin);
  github.release = release;
  const respond = (request, bytes) => {
    const host = (request.headers.host ?? '').replace(/:\d+$/, '');
    const {method, headers} = request, url = new URL(request.url, 'http://api');
    const web = answer_web(github, host, {method, headers, url, bytes, permissions: permissions_of(headers.authorization)});
    if (web) return web;
    const given = bytes.length ? JSON.parse(bytes) : undefined;
    if (request.url === '/test/state') return {status: 200, body: {...github.state, requests: github.requests}};
    if (request.url.startsWith('/test/')) return {status: 200, body: github[request.url.slice('/test/'.length)](given)};
    const answer = unless_known(github.answer(method, request.url, headers.authorization, given), method, headers['if-none-match']);
    return {...answer, headers: {...limits_of(), ...answer.headers}};
  };
  const listener = (request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const received = Buffer.concat(parts);
      let answer;
      try {
        answer = respond(request, received);
      } catch (error) {
        answer = {status: error.status ?? 500, body: {message: error.message, documentation_url: 'https://docs.github.com/rest', status: String(error.status ?? 500)},
                  headers: {...limits_of(), ...error.headers}};
      }
      const {status, body, headers = {}} = answer;
      if (!request.url.startsWith('/test/')) {
        github.requests.push({method: request.method, target: request.url, body: received.toString(), status,
                              answer: Buffer.isBuffer(body) ? undefined : structuredClone(body)});
      }
      const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
      response.writeHead(status, {'content-type': 'application/json', ...headers, 'content-length': bytes.length, connection: 'close'});
      response.end(bytes);
    });
  };
  const server = key ? https.createServer({key: fs.readFileSync(key), cert: fs.readFileSync(certificate)}, listener) : http.createServer(listener);
  server.listen(key ? 443 : 0, '127.0.0.1', () => {
    const {port} = server.address();
    github.address = key ? 'https://api.github.com' : `http://127.0.0.1:${port}`;
    github.blobs = key ? 'https://blob.example' : `http://localhost:${port}`;
    console.log(port);
  });
  process.stdin.on('end', () => {
    fs.rmSync(github.work, {recursive: true, force: true});
    process.exit();
  }).resume();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) serve(...process.argv.slice(2));
