#!/usr/bin/env node
// Starts the weir of this platform, which lies in a package of its own (@weir-gate/linux-x64 …): npm installs the one
// that fits. Says in one sentence where none does.
'use strict';
const {spawn} = require('node:child_process');
const path = require('node:path');

const oldest = [2, 31]; // ci/packaging/needs

// glibc's version as [2, 36], "musl" on a Linux without it, nothing on other systems.
function c_library() {
  if (process.platform !== 'linux') return undefined;
  const version = process.report?.getReport().header.glibcVersionRuntime;
  return version ? version.split('.').map(Number) : 'musl';
}

// Why weir cannot be started here, or nothing.
function refusal(platform, library, find) {
  const needs = 'weir needs glibc 2.31 or newer (Debian 11, Ubuntu 20.04, or a container of them)';
  if (!['linux-x64', 'linux-arm64', 'darwin-arm64'].includes(platform)) {
    return `there is no weir for ${platform}: it runs on Linux (x64, arm64) and macOS (arm64), and on Windows in WSL 2`;
  }
  if (library === 'musl') return `this system has no glibc, as Alpine; ${needs}`;
  if (library && (library[0] - oldest[0] || library[1] - oldest[1]) < 0) {
    return `this system has glibc ${library.join('.')}; ${needs}`;
  }
  try {
    find();
  } catch {
    return `@weir-gate/${platform} is not installed: install weir-gate again without --omit=optional (--no-optional), ` +
        'and with node_modules of this platform';
  }
  return undefined;
}

function main() {
  const platform = `${process.platform}-${process.arch}`;
  const find = () => require.resolve(`@weir-gate/${platform}/package.json`);
  const why = refusal(platform, c_library(), find);
  if (why) {
    console.error(`weir-gate: ${why}`);
    process.exitCode = 2;
    return;
  }
  // weir ends what it has started before it ends. A terminal sends SIGINT to both; what is sent to this process
  // alone is handed on.
  let child;
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child = spawn(path.join(path.dirname(find()), 'bin', 'weir'), process.argv.slice(2), {stdio: 'inherit'});
  child.on('error', (error) => {
    console.error(`weir-gate: ${error.message}`);
    process.exitCode = 3;
  });
  child.on('exit', (code, signal) => {
    if (!signal) {
      process.exitCode = code;
      return;
    }
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

if (require.main === module) main();
module.exports = {refusal};
