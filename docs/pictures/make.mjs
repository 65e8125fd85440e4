// Makes the pictures of the documentation from what weir really prints: a red gate in a terminal (SVG), and the
// comment it posts, rendered as GitHub does (PNG, light and dark), and what releases of llama.cpp took (SVG, from the data of ci/atlas).
//   ci/pictures [FOLDER]      default: docs/pictures. Needs ./ci/gate's set-up, cmark-gfm and Chromium (ci/setup all).
import {execFileSync, spawnSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = resolve(process.argv[2] ?? join(root, 'docs/pictures'));
const weir = process.env.WEIR_PROGRAM ?? join(root, 'build/weir');
const scratch = mkdtempSync(join(tmpdir(), 'weir-pictures-'));
const command = "GGML_VK_DISABLE_FUSION=1 weir gate --counts-only --cell '*/tiny-llama/vulkan/decode'";

function gate() {
  const ran = spawnSync(weir, ['gate', '-c', 'configs/llama.cpp.yaml', '--counts-only', '--cell', '*/tiny-llama/vulkan/decode',
    '--color', 'always', '-q'], {cwd: root, encoding: 'utf8', env: {...process.env, GGML_VK_DISABLE_FUSION: '1'}});
  if (ran.status !== 1) throw new Error(`the gate ended with ${ran.status}: ${ran.stderr}`);
  return ran.stdout.trimEnd();
}

function comment() {
  const sent = execFileSync(weir, ['post', '--repo', 'you/engine', '--pr', '7', '--sha', '0123456789abcdef0123456789abcdef01234567',
    '--dry-run', '--json', '-'], {cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']});
  const part = JSON.parse(sent).find(({url}) => url.endsWith('/issues/7/comments'));
  return part.body.body;
}

const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

// Lines with SGR codes as text of an SVG that follows the reader's colours.
function terminal(text) {
  const kinds = {1: 'b', 2: 'd', 31: 'r', 32: 'g', 33: 'y'};
  const lines = [`$ ${command}`, ...text.split('\n')];
  const columns = Math.max(...lines.map((line) => [...line.replace(/\x1b\[[0-9;]*m/g, '')].length));
  const rows = lines.map((line, i) => {
    let on = [];
    let spans = '';
    for (const part of line.split(/(\x1b\[[0-9;]*m)/)) {
      const code = /^\x1b\[([0-9;]*)m$/.exec(part);
      if (code) on = code[1] === '' || code[1] === '0' ? [] : [...on, ...code[1].split(';').map((one) => kinds[one]).filter(Boolean)];
      else if (part !== '') spans += on.length ? `<tspan class="${on.join(' ')}">${escaped(part)}</tspan>` : escaped(part);
    }
    return `<text x="16" y="${34 + i * 19}" xml:space="preserve">${spans}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${columns * 8.43 + 32 | 0}" height="${lines.length * 19 + 36}" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14">
<style>rect{fill:#f6f8fa;stroke:#d0d7de}text{fill:#1f2328}.b{font-weight:600}.d{fill:#59636e}.r{fill:#c4262e}.g{fill:#1a7f37}.y{fill:#9a6700}
@media (prefers-color-scheme:dark){rect{fill:#0d1117;stroke:#30363d}text{fill:#e6edf3}.d{fill:#9198a1}.r{fill:#ff7b72}.g{fill:#3fb950}.y{fill:#d29922}}</style>
<rect x=".5" y=".5" width="${(columns * 8.43 + 32 | 0) - 1}" height="${lines.length * 19 + 35}" rx="8"/>
${rows.join('\n')}
</svg>
`;
}

// Close to GitHub's own styles; what counts is that the Markdown is read by its parser.
const style = `body{margin:0;padding:20px;width:760px;font:14px/1.5 -apple-system,"Segoe UI","Noto Sans",Helvetica,Arial,sans-serif;background:Canvas;color:#1f2328}
h3{font-size:1.25em;margin:0 0 16px}p,ul,table,details,pre{margin:0 0 16px}table{border-collapse:collapse}td,th{border:1px solid #d1d9e0;padding:6px 13px}
tr:nth-child(2n){background:#f6f8fa}code,pre{font:85% ui-monospace,Menlo,Consolas,monospace;background:#818b981f;border-radius:6px}code{padding:.2em .4em}pre{padding:16px;overflow:auto}pre code{padding:0;background:none}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#f0f6fc}td,th{border-color:#3d444d}tr:nth-child(2n){background:#151b23}}`;

async function rendered(markdown) {
  const html = execFileSync('cmark-gfm', ['--unsafe', '-e', 'table', '-e', 'strikethrough', '-e', 'autolink'], {input: markdown, encoding: 'utf8'});
  execFileSync(join(root, 'ci/browser'));
  const {launch} = await import('../../tests/browser/browser.mjs');
  const browser = await launch();
  try {
    for (const colorScheme of ['light', 'dark']) {
      const page = await browser.newPage({colorScheme, viewport: {width: 800, height: 400}, deviceScaleFactor: 2});
      await page.setContent(`<!doctype html><meta charset=utf-8><meta name=color-scheme content="light dark"><style>${style}</style>${html}`);
      await page.locator('body').screenshot({path: join(folder, `comment-${colorScheme}.png`)});
    }
  } finally {
    await browser.close();
  }
}

try {
  mkdirSync(folder, {recursive: true});
  writeFileSync(join(folder, 'gate.svg'), terminal(gate()));
  writeFileSync(join(folder, 'atlas.svg'), execFileSync('node', [join(root, 'benchmarks/atlas/atlas.mjs'), 'picture']));
  const markdown = comment();
  writeFileSync(join(scratch, 'comment.md'), markdown);
  await rendered(markdown);
} finally {
  rmSync(scratch, {recursive: true});
}
