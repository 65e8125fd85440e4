// Chromium, and sites for it, for the tests of the trend pages.
import {execFileSync} from 'node:child_process';
import {createServer} from 'node:http';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {extname, join, normalize} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(join(root, '.cache/browser/'));
export const build = process.env.WEIR_BUILD ?? join(root, 'build');
export const {chromium} = require('playwright-core');
export const axe = require('axe-core').source;

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-dev-shm-usage'],
  });
}

// A site in a new folder: {folder, address (of its index.html, as a file), remove()}.
export function makeSite(scene, ...more) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-site-'));
  execFileSync(join(build, 'tests/browser/site_fixture'), [join(build, 'share/weir/web'), folder, scene, ...more.map(String)]);
  return {folder, address: pathToFileURL(join(folder, 'index.html')).href, remove: () => rmSync(folder, {recursive: true})};
}

// The same folder behind a server, as GitHub Pages or weir serve have it: {address, close()}.
export async function serve(folder) {
  const types = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml'};
  const server = createServer((request, response) => {
    try {
      const path = normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
      const body = readFileSync(join(folder, path));
      response.writeHead(200, {'content-type': types[extname(path)] ?? 'text/plain', 'x-content-type-options': 'nosniff'});
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {address: `http://127.0.0.1:${server.address().port}/index.html`, close: () => server.close()};
}

// A page that notes what it should not do: errors, and requests to anything but its own site.
export async function openPage(browser, site, hash = '#/', {width = 1200, height = 900, scheme = 'light', ...more} = {}) {
  const context = await browser.newContext({viewport: {width, height}, colorScheme: scheme, ...more});
  context.setDefaultTimeout(120_000);  // against hanging alone
  const page = await context.newPage();
  page.faults = [];
  const own = site.address.replace(/index\.html$/, '');
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && page.faults.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => page.faults.push(`error: ${error.stack}`));
  page.on('request', (request) => request.url().startsWith(own) || page.faults.push(`request: ${request.url()}`));
  page.on('requestfailed', (request) => page.faults.push(`failed: ${request.url()}`));
  await page.goto(site.address + hash);
  await shown(page);
  return page;
}

// Until the page that the address names is there.
export async function shown(page) {
  await page.waitForSelector('main:not([aria-busy]) h1');
}

export async function goTo(page, hash) {
  await page.evaluate((to) => {
    document.querySelector('main').setAttribute('aria-busy', 'true');
    location.hash = to;
  }, hash);
  await shown(page);
}

// "#/cell/ID" of the cell whose name has all of `text`.
export async function cellAddress(page, text) {
  return (await page.locator('.matrix th a', {hasText: text}).first().getAttribute('href')).split('?')[0];
}

// Returns the serious faults that axe finds.
export async function seriousFaults(page) {
  await page.evaluate(axe);
  const {violations} = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ['violations'], preload: false}));
  return violations.filter((violation) => ['serious', 'critical'].includes(violation.impact))
    .flatMap((violation) => violation.nodes.map((node) => `${violation.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}
