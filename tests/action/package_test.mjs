// Ways to install weir: the launcher of the npm package, the wheel, the script that fetches a release, and how old a system
// the programs start on. No package is made: "curl", "uname" and "getconf" are stand-ins.
import assert from 'node:assert/strict';
import {execFileSync, spawn, spawnSync} from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import {createRequire} from 'node:module';
import os from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {root} from './runner.mjs';

const {refusal} = createRequire(import.meta.url)('../../ci/packaging/npm/weir.js');
const built = path.dirname(process.env.WEIR_PROGRAM ?? path.join(root, 'build/weir'));
let top, count = 0, archive, sum;
const write = (file, text) => {
  fs.mkdirSync(path.dirname(file), {recursive: true});
  fs.writeFileSync(file, text, {mode: 0o755});
};
before(() => {
  top = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-package-'));
  write(path.join(top, 'made/weir-x/bin/weir'), '#!/bin/sh\necho weir of the release\n');
  archive = path.join(top, 'weir.tar.gz');
  execFileSync('tar', ['-czf', archive, '-C', path.join(top, 'made'), 'weir-x']);
  sum = crypto.createHash('sha256').update(fs.readFileSync(archive)).digest('hex');
});
after(() => fs.rmSync(top, {recursive: true, force: true}));

test('the launcher says in one sentence where weir does not run, and starts it elsewhere', () => {
  const installed = () => {}, missing = () => { throw new Error('Cannot find module'); };
  for (const [platform, library, find, message] of [
    ['linux-x64', [2, 31], installed, undefined],
    ['linux-arm64', [2, 36], installed, undefined],
    ['linux-x64', [3, 0], installed, undefined],
    ['darwin-arm64', undefined, installed, undefined],
    ['linux-x64', [2, 28], installed, /^this system has glibc 2\.28; weir needs glibc 2\.31 or newer/],
    ['linux-x64', 'musl', installed, /^this system has no glibc, as Alpine; weir needs glibc 2\.31/],
    ['win32-x64', undefined, installed, /^there is no weir for win32-x64: .* WSL 2/],
    ['darwin-x64', undefined, installed, /^there is no weir for darwin-x64/],
    ['linux-x64', [2, 36], missing, /^@weir-gate\/linux-x64 is not installed/],
  ]) {
    const why = refusal(platform, library, find);
    if (message) assert.match(why, message);
    else assert.equal(why, undefined, platform);
    assert.ok(!why?.includes('\n'));
  }
});

// Unpacks a wheel as pip --target does, and says what its RECORD says wrongly.
const unpack = `
import base64, hashlib, os, sys, zipfile
from pathlib import Path
archive, target = zipfile.ZipFile(sys.argv[1]), Path(sys.argv[2])
record = [n for n in archive.namelist() if n.endswith("/RECORD")][0]
rows = {row.split(",")[0]: row.split(",")[1:] for row in archive.read(record).decode().splitlines()}
assert set(rows) == set(archive.namelist()), "RECORD has other files"
for entry in archive.infolist():
    content = archive.read(entry)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    assert entry.filename == record or rows[entry.filename] == ["sha256=" + digest, str(len(content))], entry.filename
    place = entry.filename.split(".data/")[-1].replace("scripts/", "bin/", 1).replace("data/", "", 1)
    print(place, oct(entry.external_attr >> 16 & 0o777))
    (target / place).parent.mkdir(parents=True, exist_ok=True)
    (target / place).write_bytes(content)
    os.chmod(target / place, entry.external_attr >> 16 & 0o777)
`;

test('the wheel has the program beside its probes, sums that are right, the same bytes each time, and starts weir', () => {
  const tree = path.join(top, 'tree'), target = path.join(top, 'target');
  write(path.join(tree, 'bin/weir'), '#!/bin/sh\nprintf "%s|" "$@"\nexit 4\n');
  write(path.join(tree, 'lib/weir/probes/libweir_ggml.so'), 'a probe');
  write(path.join(tree, 'lib/pkgconfig/weir-instrument.pc'), 'for C++');
  write(path.join(tree, 'include/weir/instrument.hpp'), 'for C++');
  const pack = () => {
    const folder = fs.mkdtempSync(path.join(top, 'wheel-'));
    const name = execFileSync(path.join(root, 'ci/packaging/wheel.py'), ['1.2.3', 'manylinux_2_31_x86_64', tree, folder],
                              {encoding: 'utf8', env: {...process.env, SOURCE_DATE_EPOCH: '1700000000'}}).trim();
    return path.join(folder, name);
  };
  const wheel = pack();
  assert.equal(path.basename(wheel), 'weir_gate-1.2.3-py3-none-manylinux_2_31_x86_64.whl');
  assert.deepEqual(fs.readFileSync(pack()), fs.readFileSync(wheel));
  const files = execFileSync('python3', ['-c', unpack, wheel, target], {encoding: 'utf8'}).trim().split('\n');
  assert.deepEqual(files.filter((line) => !line.includes('dist-info')), [
    'weir_gate/__init__.py 0o644', 'weir_gate/__main__.py 0o644', 'bin/weir 0o755', 'lib/weir/probes/libweir_ggml.so 0o755',
  ]);
  const start = () => spawnSync('python3', ['-m', 'weir_gate', 'gate', '--cell', '*/a b/$x'],
                                {encoding: 'utf8', cwd: top, env: {...process.env, PYTHONPATH: target, HOME: top}});
  assert.deepEqual([start().stdout, start().status], ['gate|--cell|*/a b/$x|', 4]);
  fs.rmSync(path.join(target, 'bin/weir'));
  assert.match(start().stderr, /^weir_gate: the program weir is in none of .*: install weir-gate again\n$/);
  assert.equal(start().status, 2);
});

// The launcher in node_modules, beside a stand-in for the program.
function launcher(program) {
  const modules = path.join(top, String(++count), 'node_modules');
  const platform = path.join(modules, `@weir-gate/${process.platform}-${process.arch}`);
  write(path.join(platform, 'package.json'), '{}');
  write(path.join(platform, 'bin/weir'), program);
  write(path.join(modules, 'weir-gate/weir.js'), fs.readFileSync(path.join(root, 'ci/packaging/npm/weir.js')));
  return path.join(modules, 'weir-gate/weir.js');
}

test('arguments, streams and exit code go through the launcher as they are', () => {
  const file = launcher('#!/bin/sh\nread line\nprintf "%s|" "$@" "$line"\necho loud >&2\nexit 4\n');
  const done = spawnSync(file, ['gate', '--cell', '*/a b/$x'], {input: 'in\n', encoding: 'utf8'});
  assert.deepEqual([done.stdout, done.stderr, done.status], ['gate|--cell|*/a b/$x|in|', 'loud\n', 4]);
});

test('a signal to the launcher reaches the program, which ends in its own time', async () => {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    // Not a shell: those leave a signal ignored that was ignored before, as behind "&".
    const file = launcher(`#!/usr/bin/env node
process.on('${signal}', () => { console.log('cleaned'); process.exit(130); });
setTimeout(() => {}, 60000);
console.log('ready');
`);
    const child = spawn(file, [], {stdio: ['pipe', 'pipe', 'inherit']});
    let output = '';
    child.stdout.on('data', (data) => {
      if (output === '') child.kill(signal);
      output += data;
    });
    const code = await new Promise((done) => child.on('close', done));
    assert.deepEqual([output, code], ['ready\ncleaned\n', 130]);
  }
});

// → {status, stdout, stderr, fetched}. `glibc` is what getconf answers; nothing: it fails, and ldd is musl's.
function install(env, {glibc = 'glibc 2.36', machine = 'x86_64', sum_text = `${sum}  weir.tar.gz\n`} = {}) {
  const folder = path.join(top, String(++count)), bin = path.join(folder, 'bin');
  const program = (name, text) => write(path.join(bin, name), `#!/bin/sh\n${text}\n`);
  program('curl', `for word; do [ "$last" != --output ] || to=$word; last=$word; done
echo "$last" >>'${folder}/fetched'
case "$*" in
  *url_effective*) echo https://github.example/o/weir/releases/tag/v0.7.2 ;;
  *.sha256) printf '${sum_text}' >"$to" ;;
  *.tar.gz) cp '${archive}' "$to" ;;
esac`);
  program('uname', `case $1 in -s) echo Linux ;; -m) echo ${machine} ;; esac`);
  program('getconf', glibc ? `echo ${glibc}` : 'exit 1');
  if (!glibc) program('ldd', 'echo "musl libc (x86_64)" >&2; exit 1');
  const done = spawnSync('sh', [path.join(root, 'ci/install.sh')], {encoding: 'utf8',
    env: {PATH: `${bin}:${process.env.PATH}`, HOME: path.join(folder, 'home'), WEIR_RELEASES: 'https://github.example/o/weir/releases', ...env}});
  return Object.assign(done, {home: path.join(folder, 'home'),
    fetched: fs.readFileSync(path.join(folder, 'fetched'), {encoding: 'utf8', flag: 'a+'}).split('\n').filter(Boolean)});
}

test('the script installs the newest release, checks its sum and links it', () => {
  const done = install({});
  assert.equal(done.status, 0, done.stderr);
  const page = 'https://github.example/o/weir/releases', file = `${page}/download/v0.7.2/weir-0.7.2-linux-x86-64.tar.gz`;
  assert.deepEqual(done.fetched, [`${page}/latest`, file, `${file}.sha256`]);
  assert.match(done.stdout, /^weir of the release in .*\/home\/\.local\/share\/weir\nAdd .*\.local\/bin to PATH\.\n$/);
  assert.equal(execFileSync(path.join(done.home, '.local/bin/weir'), {encoding: 'utf8'}), 'weir of the release\n');
});

test('a pinned sum is the one that counts, and what is another is not installed', () => {
  const pinned = install({WEIR_VERSION: `v0.2.0@sha256:${sum}`}, {sum_text: 'nonsense'});
  assert.equal(pinned.status, 0, pinned.stderr);
  assert.deepEqual(pinned.fetched.map((url) => path.basename(url)), ['weir-0.2.0-linux-x86-64.tar.gz']);
  for (const [version, why] of [[`0.2.0@sha256:${'0'.repeat(64)}`, /SHA-256 is [0-9a-f]{64}, not 0{64}/], ['0.2.0@sha256:12', /64 hex digits/],
                                [`0.2.0@${sum}`, /64 hex digits/], ['../0.2.0', /is no release/]]) {
    const done = install({WEIR_VERSION: version});
    assert.equal(done.status, 2);
    assert.match(done.stderr, why);
    assert.ok(!fs.existsSync(path.join(done.home, '.local')), version);
  }
  assert.match(install({WEIR_VERSION: '1.0'}, {sum_text: '0'.repeat(64)}).stderr, /SHA-256/);
});

test('the script refuses systems that are too old, or have no glibc, before it fetches anything', () => {
  for (const [system, why] of [
    [{glibc: 'glibc 2.28'}, /^weir: this system has glibc 2\.28; weir needs glibc 2\.31 or newer.*\n$/],
    [{glibc: 'glibc 2.9'}, /glibc 2\.9;/],
    [{glibc: ''}, /^weir: this system has no glibc, as Alpine; weir needs glibc 2\.31 or newer.*\n$/],
    [{machine: 'riscv64'}, /^weir: there is no release for Linux on riscv64.*\n$/],
  ]) {
    const done = install({}, system);
    assert.deepEqual([done.status, done.fetched], [2, []]);
    assert.match(done.stderr, why);
  }
  for (const glibc of ['glibc 2.31', 'glibc 2.100', 'glibc 3.0']) assert.equal(install({}, {glibc}).status, 0, glibc);
});

test('the script replaces what it made, and no other folder', () => {
  const own = path.join(top, 'own');
  for (let i = 0; i < 2; ++i) assert.equal(install({WEIR_PREFIX: own, WEIR_BIN: ''}).status, 0);
  const foreign = path.join(top, 'other');
  write(path.join(foreign, 'bin/precious'), '');
  const done = install({WEIR_PREFIX: foreign});
  assert.deepEqual([done.status, done.fetched, fs.readdirSync(path.join(foreign, 'bin'))], [2, [], ['precious']]);
});

const needs = (...files) => spawnSync(path.join(root, 'ci/packaging/needs'), files, {encoding: 'utf8'});

test('a program linked as releases are starts on glibc 2.31, and one that is not is noticed', () => {
  const older = path.join(top, 'older'), [plain, linked] = ['plain', 'linked'].map((name) => path.join(top, name));
  const options = execFileSync(path.join(root, 'ci/packaging/older-glibc'), [older], {encoding: 'utf8'}).trim().split(' ');
  const compile = (file, more) => execFileSync('g++', ['-std=c++20', '-O1', path.join(root, 'tests/action/older_glibc.cpp'), '-o', file,
                                                       '-static-libgcc', '-static-libstdc++', '-pthread', ...more]);
  compile(plain, []);
  compile(linked, options);
  const out = (file) => execFileSync(file, {encoding: 'utf8'});
  assert.equal(out(linked), 'constructed\n4\nthrown in a thread\nthrown in a thread\nNo such file or directory\n1\n1 5\n1\ndestroyed\n');
  assert.equal(out(plain), out(linked));
  const good = needs(linked), bad = needs(linked, plain);
  assert.match(good.stdout, /linked: glibc 2\.(2\d|3[01])\n/);
  assert.equal(bad.status, 1);
  assert.match(bad.stderr, /plain needs \w+ of glibc 2\.3[2-9]; 2\.31 is the newest/);
});

test('a library beside glibc, what is no program, and no file at all are noticed', () => {
  for (const [files, why] of [[[path.join(built, 'weir')], /weir needs .*libstdc\+\+/], [['/etc/passwd'], /does not say/], [[], /no file/]]) {
    const done = needs(...files);
    assert.equal(done.status, 1);
    assert.match(done.stderr, why);
  }
});

test('a program without what the build asks for is told of each thing that it lacks', () => {
  const source = path.join(top, 'copies.cpp'), [plain, hard] = ['soft', 'hard'].map((name) => path.join(top, name));
  const functions = Array.from({length: 20}, (_, i) => `int f${i}(char** v) { char b[32]; strcpy(b, v[0]); return puts(b); }`);
  fs.writeFileSync(source, `#include <cstdio>\n#include <cstring>\n${functions.join('\n')}\nint main(int, char** v) { return f1(v); }\n`);
  execFileSync('g++', ['-O1', '-no-pie', '-fno-stack-protector', '-U_FORTIFY_SOURCE', '-Wl,-z,norelro,-z,lazy,-z,execstack', source, '-o', plain]);
  const module = fs.readFileSync(path.join(root, 'cmake/WeirHardening.cmake'), 'utf8');
  const options = module.match(/-fstack-protector-strong|-U_FORTIFY_SOURCE|-D_FORTIFY_SOURCE=\d|-z,relro,-z,now/g);
  execFileSync('g++', ['-O1', '-pie', '-fPIE', ...(process.arch === 'x64' ? ['-fcf-protection'] : []),
                       ...options.map((option) => option.replace(/^-z/, '-Wl,-z')), source, '-o', hard]);
  const hardened = (...files) => spawnSync(path.join(root, 'ci/packaging/hardened'), files, {encoding: 'utf8'});
  assert.deepEqual([hardened(hard).status, hardened(hard).stderr], [0, '']);
  const done = hardened(hard, plain);
  assert.equal(done.status, 1);
  assert.equal(done.stderr.replace(/ \(\d+ landing pads\)/, ''), `ci/packaging/hardened: ${plain} lacks position independence (-pie), ` +
    'full RELRO (-z relro -z now), a stack that is not executable, -fstack-protector-strong, _FORTIFY_SOURCE' +
    `${process.arch === 'x64' ? ', -fcf-protection' : ''}\n`);
  assert.equal(hardened().status, 1);
});
