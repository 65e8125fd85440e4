// Puts script and style into a page, with their hashes in its Content-Security-Policy; {{data}} stays for weir to fill.
//   node one_page.mjs PAGE SCRIPT STYLE OUT
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';

const [page, script, style] = process.argv.slice(2, 5).map((path) => readFileSync(path, 'utf8'));
if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error('what is put into the page would end it');
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const parts = {script, style, 'script-hash': hash(script), 'style-hash': hash(style)};
writeFileSync(process.argv[5], page.replace(/\{\{([a-z-]+)\}\}/g, (whole, name) => parts[name] ?? whole));
