// The pages, and which of them is shown.
import 'uplot/dist/uPlot.min.css';
import './style.css';
import './figures.css';
import {h, replace} from './dom.js';
import {load} from './load.js';
import {read} from './state.js';
import {startTheme} from './theme.js';
import {overviewPage} from './pages/overview.js';
import {cellPage} from './pages/cell.js';
import {runsPage} from './pages/runs.js';
import {runPage} from './pages/run.js';
import {comparePage} from './pages/compare.js';
import {baselinesPage} from './pages/baselines.js';
import {gatePage} from './pages/gate.js';
import {changesPage} from './pages/changes.js';
import {kernelsPage} from './pages/kernels.js';

const PAGES = {'': overviewPage, cell: cellPage, runs: runsPage, run: runPage, compare: comparePage, baselines: baselinesPage, gate: gatePage};
const SOME_HAVE = {changes: changesPage, kernels: kernelsPage};
const FORMAT = 1;

const main = document.getElementById('main');
let leave = null;
let turn = 0;
let shownPath = null;

async function show(first) {
  const state = read();
  const mine = ++turn;
  const path = `${state.page}/${state.id}`;
  const focused = path === shownPath ? labelOf(document.activeElement) : null;
  leave?.();
  leave = null;
  main.setAttribute('aria-busy', 'true');
  try {
    const overview = await load('overview');
    if (overview.format !== FORMAT) throw new Error('these data are of another version of weir: reload the page');
    const pages = overview.changes ? {...PAGES, ...SOME_HAVE} : PAGES;
    for (const one of document.querySelectorAll('header nav a[hidden]')) one.hidden = !overview.changes;
    const page = Object.hasOwn(pages, state.page) ? pages[state.page] : null;
    if (!page) throw new Error('there is no such page');
    const made = await page({overview, state});
    if (mine !== turn) return; // somebody went on meanwhile
    replace(main, made.nodes);
    document.title = `${made.title} · ${overview.title || 'weir'}`;
    leave = made.leave ?? null;
    made.shown?.();
  } catch (error) {
    if (mine !== turn) return;
    replace(main, h('h1', {}, 'Not shown'), h('p', {class: 'missing'}, error.message), h('p', {}, h('a', {href: '#/'}, 'All cells')));
    document.title = 'weir';
  }
  main.removeAttribute('aria-busy');
  for (const one of document.querySelectorAll('header nav a')) {
    const at = one.getAttribute('href').slice(2);
    const here = at === state.page || (at === '' && state.page === 'cell') || (at === 'runs' && state.page === 'run');
    if (here) one.setAttribute('aria-current', 'page');
    else one.removeAttribute('aria-current');
  }
  const again = focused && [...main.querySelectorAll('label')].find((one) => labelOf(one.control) === focused)?.control;
  if (again) {
    again.focus({preventScroll: true}); // another metric of the same cell, say: one goes on choosing
  } else if (!first) {
    main.focus({preventScroll: true});
    scrollTo(0, 0);
  }
  shownPath = path;
}

const labelOf = (control) => control?.labels?.[0]?.querySelector('span')?.textContent ?? null;

startTheme();
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener('hashchange', () => show(false));
show(true);
