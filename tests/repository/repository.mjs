// Checks what the repository says of itself: words that no file has (words.txt), and names of files in comments and
// pages, which have to be there (names.txt has those that need not be).
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const git = (root, ...args) => execFileSync('git', ['-C', root, ...args], {encoding: 'utf8', maxBuffer: 1 << 26});

// Tracked files and new ones that git does not ignore, as paths from `root`.
export const files_of = (root) =>
  git(root, 'ls-files', '-z', '--cached', '--others', '--exclude-standard').split('\0').filter((file) => file !== '' && fs.lstatSync(path.join(root, file), {throwIfNoEntry: false})?.isFile());

// Lines of "PATTERN  REASON", each followed by any number of examples that begin with two spaces, as
// [{pattern, reason, examples}].
export function read_table(text) {
  const rows = [];
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, pattern, reason] = line.match(/^(\S.*?) {2,}(\S.*)$/) ?? [];
    if (pattern !== undefined) rows.push({pattern, reason, examples: []});
    else if (line.startsWith('  ') && rows.length > 0) rows.at(-1).examples.push(line.trim());
    else throw new Error(`expected "PATTERN  REASON" or "  EXAMPLE": ${line}`);
  }
  return rows;
}

// Text of a file; nothing of a binary one.
function text_of(root, file) {
  const bytes = fs.readFileSync(path.join(root, file));
  return bytes.subarray(0, 8000).includes(0) ? undefined : bytes.toString('utf8');
}

const line_at = (text, index) => text.slice(0, index).split('\n').length;

// "FILE:LINE: "the words": the reason" of each place in `files` that a row of `table` names.
export function words_in(root, files, table) {
  const rows = table.map(({pattern, reason}) => ({pattern: new RegExp(pattern, 'g'), reason}));
  return files.flatMap((file) => {
    const text = text_of(root, file) ?? '';
    return rows.flatMap(({pattern, reason}) => [...text.matchAll(pattern)].map((match) => `${file}:${line_at(text, match.index)}: "${match[0]}": ${reason}`));
  });
}

const scanned = /^((gate|tools|tests|benchmarks|ci|cmake|docs|configs|\.github)\/|[^/]+$)/;
// The history of releases names what was there, recordings and third parties what is theirs, the test bad trees.
const left_out = /^CHANGELOG\.md$|^tests\/(golden|worked|repository)\/|\/data\/|third_party|\.(json|jsonl|patch|svg)$/;
const slashes = /\.(c|h|m|cpp|hpp|mjs|js|ts|css|comp|glsl|proto|in)$/;
const ends = 'c|h|m|cpp|hpp|mjs|js|ts|comp|glsl|sh|cmake|patch';
const name = new RegExp(`(?<![\\w./{}$*<>~@%-])((?:\\.\\.?/)*\\w[\\w.-]*(?:/[\\w.@-]+)+\\.(?:${ends}|md|yml|yaml|json|jsonl|txt|svg)|\\w[\\w.-]*\\.(?:${ends})|[A-Z][A-Z_-]+\\.md|ci/[a-z][\\w./-]*)(?![\\w/{}*<>$-]|\\.\\w)`, 'g');
// Pages that a message of the program leads to.
const page = /docs\/[\w./-]+\.md/g;

// The part of a line that people read.
function comment_of(file, line) {
  if (file.endsWith('.md')) return line;
  const text = line.replace(/[a-z]+:\/\/\S+/g, ' ');
  return (slashes.test(file) ? text.match(/(?:\/\/|\/\*|^\s*\*(?!\/))(.*)$/) : text.match(/(?:^|\s)#(.*)$/))?.[1] ?? '';
}

// Every name by which people may call a file or folder of `files`: its path, or an end or a middle of it.
function collect_names(files) {
  const names = new Set();
  for (const file of files) {
    const parts = file.split('/');
    for (let i = 0; i < parts.length; ++i) for (let j = i + 1; j <= parts.length; ++j) names.add(parts.slice(i, j).join('/'));
  }
  return names;
}

// {missing, unused}: "FILE:LINE: NAME" of each name that is not there and that no row of `table` has, and the
// patterns of rows that no such name needs.
export function names_in(root, files, table) {
  const names = collect_names(files);
  const stems = new Set([...names].map((entry) => entry.replace(/\.[a-z]+$/, '')));
  const modules = new Set(files.filter((file) => file.startsWith('gate/')).map((file) => file.split('/')[1]));
  const rows = table.map(({pattern}) => ({pattern, full_match: new RegExp(`^(?:${pattern})$`), used: false}));
  const missing = new Set();
  const note = (file, at, what) => {
    const row = rows.find(({full_match}) => full_match.test(what));
    if (row === undefined) missing.add(`${file}:${at}: ${what}`);
    else row.used = true;
  };
  for (const file of files) {
    if (!scanned.test(file) || left_out.test(file)) continue;
    const markdown = file.endsWith('.md');
    (text_of(root, file) ?? '').split('\n').forEach((line, index) => {
      if (!/[./]/.test(line)) return;
      const comment = comment_of(file, line);
      const links = markdown ? [...comment.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)|(?:src|srcset|href)="([^"#]+)/g)].map((match) => match[1] ?? match[2]) : [];
      for (const link of links) {
        if (/^[a-z]+:/.test(link)) continue;
        if (!fs.existsSync(path.join(root, path.dirname(file), link))) note(file, index + 1, link);
      }
      const prose = comment.replace(/\]\([^)]*\)/g, ']').replace(/[a-z]+:\/\/\S+/g, ' ');
      const mentioned = [...prose.matchAll(name)].map((match) => match[1].replace(/\.+$/, ''));
      const paths = new Set([...mentioned, ...(comment === line ? [] : [...line.matchAll(page)].map((match) => match[0]))]);
      for (const mention of paths) {
        const plain = mention.replace(/^(\.\.?\/)+/, '');
        if (!names.has(plain) && !fs.existsSync(path.join(root, path.dirname(file), mention))) note(file, index + 1, mention);
      }
      // "`verdict/gate`", "`measure`": how READMEs of modules call files without their ends.
      if (!markdown || !file.startsWith('gate/')) return;
      for (const [, module_path] of prose.matchAll(/`([a-z]+\/[a-z_/]+)`/g)) {
        if (modules.has(module_path.split('/')[0]) && !stems.has(module_path.replace(/\/$/, ''))) note(file, index + 1, module_path);
      }
    });
  }
  return {missing: [...missing], unused: rows.filter(({used}) => !used).map(({pattern}) => pattern)};
}
