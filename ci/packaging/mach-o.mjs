// Looks at what was linked for macOS, as far as that can be done elsewhere:
//
//   mach-o.mjs FILE library INTERPOSED    a library that stands in front of so many functions (the Metal probe)
//   mach-o.mjs FILE program               weir: needs libSystem and SQLite alone, and nothing of them that is not there
//
// ZIG_LIB_DIR or .cache/zig has Apple's list of what libSystem exports (libSystem.tbd), ci/packaging/macos-setup
// what is taken from SQLite.
import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {createHash} from 'node:crypto';

const [path, kind, interposed_wanted = '0'] = process.argv.slice(2);
const file = readFileSync(path);
const fail = (why) => {
  console.error(`ci/packaging/mach-o.mjs: ${path} ${why}`);
  process.exit(1);
};
const u32 = (at) => file.readUInt32LE(at);
const u64 = (at) => Number(file.readBigUInt64LE(at));
const text = (at, size = 4096) => file.toString('latin1', at, at + size).split('\0')[0];
const version = (packed) => [packed >> 16, (packed >> 8) & 0xff].join('.');

// mach-o/loader.h
const MH_EXECUTE = 2, MH_DYLIB = 6, MH_PIE = 0x200000;
const LC_SYMTAB = 0x2, LC_LOAD_DYLIB = 0xc, LC_LOAD_WEAK_DYLIB = 0x80000018, LC_REEXPORT_DYLIB = 0x8000001f;
const LC_SEGMENT_64 = 0x19, LC_CODE_SIGNATURE = 0x1d, LC_BUILD_VERSION = 0x32, LC_MAIN = 0x80000028, LC_RPATH = 0x8000001c;
const SYSTEM = '/usr/lib/libSystem.B.dylib', SQLITE = '/usr/lib/libsqlite3.dylib';
const expected = {
  library: {type: MH_DYLIB, oldest: '12.0', dylibs: {
    [SYSTEM]: LC_LOAD_DYLIB, '/usr/lib/libobjc.A.dylib': LC_LOAD_DYLIB,
    '/System/Library/Frameworks/Metal.framework/Versions/A/Metal': LC_LOAD_WEAK_DYLIB}},
  program: {type: MH_EXECUTE, oldest: '13.0', dylibs: {[SYSTEM]: LC_LOAD_DYLIB, [SQLITE]: LC_LOAD_DYLIB}},
}[kind] ?? fail('is looked at as a "library" or a "program"');

if (u32(0) !== 0xfeedfacf || u32(4) !== 0x0100000c) fail('is no Mach-O file for arm64');
if (u32(12) !== expected.type) fail(`is no ${kind}`);
const needed = {};
let interposed = 0, oldest = '', signature, symbols, entry = false;
for (let i = 0, at = 32; i < u32(16); ++i, at += u32(at + 4)) {
  switch (u32(at)) {
    case LC_LOAD_DYLIB: case LC_LOAD_WEAK_DYLIB: case LC_REEXPORT_DYLIB:
      needed[text(at + u32(at + 8))] = u32(at);
      break;
    case LC_RPATH: fail(`looks for libraries in ${text(at + u32(at + 8))}`); break;
    case LC_MAIN: entry = true; break;
    case LC_BUILD_VERSION:
      if (u32(at + 8) !== 1) fail('is not for macOS');
      oldest = version(u32(at + 12));
      break;
    case LC_CODE_SIGNATURE: signature = u32(at + 8); break;
    case LC_SYMTAB: symbols = {at: u32(at + 8), number: u32(at + 12), names: u32(at + 16)}; break;
    case LC_SEGMENT_64:
      for (let s = 0; s < u32(at + 64); ++s) {
        const section = at + 72 + 80 * s;
        if (text(section, 16) === '__interpose' && text(section + 16, 16) === '__DATA') interposed = u64(section + 40) / 16;
      }
  }
}
const same = Object.keys(needed).sort().join() === Object.keys(expected.dylibs).sort().join() &&
  Object.entries(needed).every(([name, how]) => expected.dylibs[name] === how);
if (!same) fail(`needs ${Object.keys(needed).join(', ')}`);
if (oldest !== expected.oldest) fail(`runs from macOS ${oldest || '?'} on, not ${expected.oldest}`);
if (interposed !== Number(interposed_wanted)) fail(`stands in front of ${interposed} functions, not ${interposed_wanted}`);
if (kind === 'program' && !(entry && (u32(24) & MH_PIE))) fail('has no entry point, or stands at one address');

// A signature by nobody (ad hoc) is enough to be run, and Apple's processors run nothing without one. Big-endian.
if (signature === undefined || file.readUInt32BE(signature) !== 0xfade0cc0) fail('is not signed');
let directory;
for (let i = 0; i < file.readUInt32BE(signature + 8); ++i) {
  if (file.readUInt32BE(signature + 12 + 8 * i) === 0) directory = signature + file.readUInt32BE(signature + 16 + 8 * i);
}
if (directory === undefined || file.readUInt32BE(directory) !== 0xfade0c02) fail('has a signature without a code directory');
if ((file.readUInt32BE(directory + 12) & 0x2) === 0) fail('is not signed ad hoc');
// Every page as it was signed, up to the signature: what macOS looks at before it runs one.
const [hashes, , , slots, limit] = [16, 20, 24, 28, 32].map((at) => file.readUInt32BE(directory + at));
const page = 2 ** file[directory + 39];
if (file[directory + 36] !== 32 || file[directory + 37] !== 2) fail('is not signed with SHA-256');
if (limit !== signature || slots !== Math.ceil(limit / page)) fail('is signed for another length');
for (let i = 0; i < slots; ++i) {
  const hash = createHash('sha256').update(file.subarray(i * page, Math.min(limit, (i + 1) * page))).digest();
  const at = directory + hashes + 32 * i;
  if (!hash.equals(file.subarray(at, at + 32))) fail(`is not what was signed (page ${i})`);
}

// What is left undefined, against what the library that it is taken from exports: the libraries count from one, in
// the order of the load commands.
const taken = {};
let total = 0;
for (let i = 0; i < (symbols?.number ?? 0); ++i) {
  const at = symbols.at + 16 * i, type = file[at + 4];
  if ((type & 0xe0) !== 0 || (type & 0x0e) !== 0 || (type & 0x01) === 0) continue;
  const name = text(symbols.names + u32(at)), library = Object.keys(needed)[file[at + 7] - 1];
  if (library === undefined) fail(`takes ${name} from no library`);
  (taken[library] ??= []).push(name);
  ++total;
}
if (total === 0) fail('does not say what it takes from the system');
if (kind === 'program') {
  const cache = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../../.cache');
  const zig = () => join(cache, 'zig', readdirSync(join(cache, 'zig')).find((name) => name.startsWith('lib-')) ?? '');
  const lists = {
    [SYSTEM]: join(process.env.ZIG_LIB_DIR ?? zig(), 'libc/darwin/libSystem.tbd'),
    [SQLITE]: join(cache, 'macos/lib/libsqlite3.tbd'),
  };
  for (const [library, list] of Object.entries(lists)) {
    if (!existsSync(list)) fail(`cannot be looked at: no ${list}`);
    const exported = new Set(readFileSync(list, 'utf8').match(/[A-Za-z0-9_$.]+/g));
    const missing = (taken[library] ?? []).filter((name) => !exported.has(name));
    if (missing.length > 0) fail(`needs what ${library} does not export: ${missing.slice(0, 20).join(', ')}`);
  }
}
console.log(`${path}: Mach-O ${kind} for arm64, macOS ${oldest} or newer, signed ad hoc, ` +
  `${total} functions from ${Object.keys(needed).length} libraries of the system`);
