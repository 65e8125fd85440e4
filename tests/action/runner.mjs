// Runs a composite action as a runner does: steps with their environment files, `if:`, outputs; the
// actions that it uses (cache, upload-artifact) by stand-ins.
import {execFileSync, spawn, spawnSync} from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {createRequire} from 'node:module';
import {fileURLToPath} from 'node:url';
import {filled, holds} from './expressions.mjs';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const require = createRequire(import.meta.url);
export const tool = (name) => require(path.join(root, '.cache/workflow-tools', name));
const yaml = tool('yaml-2.8.1/dist/index.js');
// GitLab's !reference [JOB, KEY] stays the list that it is.
export const read_yaml = (file) => yaml.parse(fs.readFileSync(file, 'utf8'), {logLevel: 'error'});

// An API that lets a token do nothing, in a process of its own: steps are waited for here. No test asks
// GitHub itself.
let api_url;
function api() {
  if (api_url) return api_url;
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'weir-api-')), 'port');
  const server = spawn(process.execPath, ['-e', `
    const fs = require('fs');
    const server = require('http').createServer((request, response) => {
      request.resume();
      response.writeHead(403, {'content-type': 'application/json'});
      response.end('{"message": "Resource not accessible by integration"}');
    });
    server.listen(0, '127.0.0.1', () => {
      fs.writeFileSync('${file}.new', String(server.address().port));
      fs.renameSync('${file}.new', '${file}');
    });`], {stdio: 'ignore'});
  server.unref();
  process.on('exit', () => server.kill());
  for (let i = 0; i < 400 && !fs.existsSync(file); ++i) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 25);
  return api_url = `http://127.0.0.1:${fs.readFileSync(file, 'utf8')}`;
}

// A release whose weir is the shell script `text`, and a "curl" that fetches it: for actions that take no cache.
// → {version, bin (a folder for PATH)}
export function release(folder, text) {
  const bin = path.join(folder, 'curl');
  const release_bin = path.join(folder, 'release/weir-x/bin');
  for (const place of [bin, release_bin]) fs.mkdirSync(place, {recursive: true});
  fs.writeFileSync(path.join(release_bin, 'weir'), `#!/bin/sh\n${text}\n`, {mode: 0o755});
  const archive = path.join(folder, 'weir.tar.gz');
  execFileSync('tar', ['-czf', archive, '-C', path.join(folder, 'release'), 'weir-x']);
  fs.writeFileSync(path.join(bin, 'curl'),
                   `#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" != --output ] || to=$2; shift; done\ncp '${archive}' "$to"\n`, {mode: 0o755});
  const sum = crypto.createHash('sha256').update(fs.readFileSync(archive)).digest('hex');
  return {version: `0.1.0@sha256:${sum}`, bin};
}

// GITHUB_OUTPUT and GITHUB_ENV: NAME=VALUE, or NAME<<MARK … MARK; anything else is refused.
export function read_pairs(text) {
  const pairs = {};
  const lines = text.split('\n');
  for (let i = 0; i < lines.length - 1; ++i) {
    const heredoc = /^([^=<]+)<<(.+)$/.exec(lines[i]);
    const plain = /^([^=]+)=(.*)$/.exec(lines[i]);
    if (heredoc) {
      const end = lines.indexOf(heredoc[2], i + 1);
      if (end < 0) throw new Error(`no end of ${lines[i]}`);
      pairs[heredoc[1]] = lines.slice(i + 1, end).join('\n');
      i = end;
    } else if (plain) {
      pairs[plain[1]] = plain[2];
    } else if (lines[i] !== '') {
      throw new Error(`unreadable line of an environment file: ${lines[i]}`);
    }
  }
  return pairs;
}

// The workflow commands in what a step printed: a line of its own that begins with "::", or "##[" anywhere.
export const commands_in = (text) =>
    text.split('\n').map((line) => line.trim())
        .filter((line) => /^::[a-z-]+/.test(line) || line.includes('##['));

// Files that actions/upload-artifact keeps of a folder, by their path in it.
function files_of(folder) {
  const files = {};
  const walk = (at) => {
    for (const entry of fs.readdirSync(at, {withFileTypes: true})) {
      const place = path.join(at, entry.name);
      if (entry.isDirectory()) walk(place);
      else files[path.relative(folder, place)] = fs.readFileSync(place);
    }
  };
  walk(folder);
  return files;
}

// options: action (folder of action.yml), inputs, github (the context), env, workspace, temp, path
// (folders before PATH), installed (prefix => puts weir there), cache (key => fills the folder that is asked for, or nothing).
// → {success, outputs, steps, log, summary, artifacts, saved (key of the cache), ran (names of steps), path (folders that
// were put before PATH)}
export function run_action(options) {
  const definition = read_yaml(path.join(options.action, 'action.yml'));
  const {github, temp, workspace} = options;
  const inputs = {};
  for (const [name, input] of Object.entries(definition.inputs)) {
    inputs[name] = options.inputs?.[name] ?? filled(input.default ?? '', {github});
  }
  for (const name of Object.keys(options.inputs ?? {})) {
    if (!(name in definition.inputs)) throw new Error(`the action has no input ${name}`);
  }
  const contexts = {github, inputs, steps: {}, runner: {temp}};
  const files = {};
  for (const name of ['output', 'env', 'path', 'step_summary', 'state']) files[name] = path.join(temp, `file-${name}`);
  fs.writeFileSync(files.step_summary, '');
  const event = path.join(temp, 'event.json');
  fs.writeFileSync(event, JSON.stringify(github.event ?? {}));
  const base = {
    PATH: process.env.PATH, HOME: temp, LANG: 'C.UTF-8', CI: 'true', GITHUB_ACTIONS: 'true',
    GITHUB_WORKSPACE: workspace, GITHUB_EVENT_PATH: event, GITHUB_EVENT_NAME: github.event_name,
    GITHUB_REPOSITORY: github.repository, GITHUB_SHA: github.sha, GITHUB_REF: github.ref,
    GITHUB_BASE_REF: github.base_ref ?? '', GITHUB_HEAD_REF: github.head_ref ?? '',
    GITHUB_RUN_ID: '77', GITHUB_RUN_ATTEMPT: String(github.run_attempt ?? 1),
    GITHUB_SERVER_URL: 'https://github.example', GITHUB_API_URL: api(), RUNNER_TEMP: temp, RUNNER_OS: 'Linux', ...options.env};
  const added = {};
  const folders = [...(options.path ?? [])];
  const done = {success: true, outputs: {}, steps: contexts.steps, log: '', artifacts: {}, ran: [], path: folders};

  for (const step of definition.runs.steps) {
    const id = step.id ?? step.name;
    if (!holds(step.if, contexts, done.success)) {
      contexts.steps[id] = {outcome: 'skipped', outputs: {}};
      continue;
    }
    done.ran.push(step.name);
    if (step.name === 'Install weir') options.installed?.(contexts.steps.check.outputs.prefix);
    if (step.uses) {
      if (!/^actions\/[a-z/-]+@[0-9a-f]{40}$/.test(step.uses)) throw new Error(`not pinned: ${step.uses}`);
      const given = Object.fromEntries(
          Object.entries(step.with).map(([name, value]) => [name, filled(value, contexts)]));
      const outputs = {};
      if (step.uses.startsWith('actions/cache/restore@')) {
        options.cache?.(given.key, given.path);
        outputs['cache-hit'] = options.cache ? 'true' : 'false';
      } else if (step.uses.startsWith('actions/cache/save@')) {
        done.saved = given.key;
      } else if (step.uses.startsWith('actions/upload-artifact@')) {
        done.artifacts[given.name] = files_of(given.path);
      } else {
        throw new Error(`unknown action ${step.uses}`);
      }
      contexts.steps[id] = {outcome: 'success', outputs};
      continue;
    }
    // As the runner: an expression inside the script is replaced before a shell sees it. weir's have none.
    const script = filled(step.run, contexts);
    const script_file = path.join(temp, 'step.sh');
    fs.writeFileSync(script_file, script);
    for (const name of ['output', 'env', 'path', 'state']) fs.writeFileSync(files[name], '');
    const env = {...base, ...added, GITHUB_ACTION_PATH: options.action, GITHUB_OUTPUT: files.output,
                 GITHUB_ENV: files.env, GITHUB_PATH: files.path, GITHUB_STEP_SUMMARY: files.step_summary,
                 GITHUB_STATE: files.state};
    env.PATH = [...folders, env.PATH].join(':');
    for (const [name, value] of Object.entries(step.env ?? {})) env[name] = filled(value, contexts);
    if (step.shell !== 'bash') throw new Error(`shell ${step.shell}`);
    const ended = spawnSync('bash', ['--noprofile', '--norc', '-e', '-o', 'pipefail', script_file],
                            {cwd: workspace, env, encoding: 'utf8', timeout: 120000});
    const text = ended.stdout + ended.stderr;
    done.log += text;
    const ok = ended.status === 0;
    Object.assign(added, read_pairs(fs.readFileSync(files.env, 'utf8')));
    folders.unshift(...fs.readFileSync(files.path, 'utf8').split('\n').filter(Boolean));
    contexts.steps[id] = {outcome: ok ? 'success' : 'failure', exit: ended.status, log: text,
                          outputs: read_pairs(fs.readFileSync(files.output, 'utf8'))};
    if (!ok) done.success = false;
  }
  for (const [name, output] of Object.entries(definition.outputs ?? {})) {
    done.outputs[name] = filled(output.value, contexts);
  }
  done.summary = fs.readFileSync(files.step_summary, 'utf8');
  return done;
}
