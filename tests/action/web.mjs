// The rest of GitHub beside its API: git over HTTPS and releases (github.com), where jobs send artifacts, and where those
// are fetched from by an address that is signed.
import {execFileSync} from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

const ended = (status, body = Buffer.alloc(0), headers = {}) => ({status, body, headers});

// Git as its own http-backend speaks it; anybody reads, a token with contents: write writes.
function git(github, {method, url, headers, bytes, permissions}) {
  const match = /^\/o\/r(?:[.]git)?\/(info\/refs|git-upload-pack|git-receive-pack)$/.exec(url.pathname);
  if (!match) return undefined;
  const service = url.searchParams.get('service') ?? match[1];
  if (service === 'git-receive-pack') {
    if (!permissions) return ended(401, undefined, {'www-authenticate': 'Basic realm="GitHub"'});
    if (permissions.contents !== 'write') return ended(403, Buffer.from('Permission to o/r denied to github-actions[bot].'));
  }
  const answer = execFileSync('git', ['http-backend'], {input: bytes, maxBuffer: 1 << 30, env: {
    ...process.env, GIT_PROJECT_ROOT: path.dirname(github.origin), PATH_INFO: `/${path.basename(github.origin)}/${match[1]}`,
    GIT_HTTP_EXPORT_ALL: '1', REMOTE_USER: 'job', REQUEST_METHOD: method, QUERY_STRING: url.search.slice(1),
    CONTENT_TYPE: headers['content-type'] ?? '', CONTENT_LENGTH: String(bytes.length),
    HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '', GIT_PROTOCOL: headers['git-protocol'] ?? '',
    GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'http.receivepack', GIT_CONFIG_VALUE_0: 'true'}});
  const end = answer.indexOf('\r\n\r\n');
  const lines = answer.subarray(0, end).toString().split('\r\n').map((line) => /^([^:]*): *(.*)$/.exec(line).slice(1));
  const fields = Object.fromEntries(lines.map(([name, value]) => [name.toLowerCase(), value]));
  return ended(Number.parseInt(fields.status ?? '200', 10), answer.subarray(end + 4), fields);
}

// A release of weir has one archive, for every version and system, and its sum.
function release(github, {url}) {
  const match = /^\/OWNER\/weir\/releases\/download\/v[0-9.]+\/(weir-[^/]*[.]tar[.]gz)([.]sha256)?$/.exec(url.pathname);
  if (!match || !github.release) return undefined;
  const archive = fs.readFileSync(github.release);
  if (!match[2]) return ended(200, archive, {'content-type': 'application/octet-stream'});
  return ended(200, Buffer.from(`${crypto.createHash('sha256').update(archive).digest('hex')}  ${match[1]}\n`));
}

// The service that actions/upload-artifact speaks to, and the store of blobs that it is sent on to.
function results(github, {url, bytes}) {
  const put = /^\/put\/(\d+)$/.exec(url.pathname);
  if (put) {
    const artifact = github.uploads.get(Number(put[1]));
    const part = url.searchParams.get('comp');
    if (part === 'block') artifact.blocks.set(url.searchParams.get('blockid'), bytes);
    else if (part === 'blocklist') artifact.zip = Buffer.concat([...String(bytes).matchAll(/<Latest>([^<]+)<\/Latest>/g)].map(([, id]) => artifact.blocks.get(id)));
    else artifact.zip = bytes;
    return ended(201);
  }
  const verb = url.pathname.split('/').at(-1), asked = JSON.parse(bytes);
  const {workflow_run_backend_id: run, workflow_job_run_backend_id: job} = asked;
  const name = asked.name ?? asked.name_filter;
  const found = github.state.artifacts.filter((one) => String(one.run) === run && (name === undefined || one.name === name));
  const upload = [...github.uploads].find(([, one]) => one.run === run && one.name === name);
  const verbs = {
    CreateArtifact: () => {
      if (found.length) return ended(409, {code: 'already_exists', msg: 'an artifact with this name already exists on the workflow run'});
      const id = github.next();
      github.uploads.set(id, {run, name, blocks: new Map()});
      return ended(200, {ok: true, signed_upload_url: `https://results.example/put/${id}?sig=AAAABBBBCCCCDDDD`});
    },
    FinalizeArtifact: () => {
      const [id, {zip}] = upload;
      github.uploads.delete(id);
      github.artifact({run, name, zip: zip.toString('base64')});
      return ended(200, {ok: true, artifact_id: String(github.state.artifacts.at(-1).id)});
    },
    ListArtifacts: () => ended(200, {artifacts: found.map((one) => ({
      workflow_run_backend_id: run, workflow_job_run_backend_id: job, database_id: String(one.id), name: one.name,
      size: String(one.size_in_bytes), created_at: '2026-11-20T10:00:00Z'}))}),
    DeleteArtifact: () => {
      github.state.artifacts = github.state.artifacts.filter((one) => !found.includes(one));
      return ended(200, {ok: true, artifact_id: String(found[0]?.id ?? 0)});
    },
  };
  return verbs[verb]?.();
}

// A signed address takes no token beside it.
function blob(github, {url, headers}) {
  if (headers.authorization) return ended(400, {message: 'only one auth mechanism is allowed'});
  const artifact = github.state.artifacts.find(({id}) => url.pathname === `/blob/${id}`);
  return artifact && ended(200, Buffer.from(artifact.zip, 'base64'), {'content-type': 'application/zip'});
}

const hosts = {'github.com': [git, release], 'results.example': [results], 'blob.example': [blob], localhost: [blob]};

// → {status, body, headers}, or undefined where `host` is the API's.
export function answer_web(github, host, request) {
  if (!hosts[host]) return undefined;
  for (const page of hosts[host]) {
    const answer = page(github, request);
    if (answer) return answer;
  }
  return ended(404, Buffer.from('Not Found'));
}
