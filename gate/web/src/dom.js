// Elements. Text from data goes into text nodes and nowhere else: no markup is ever read from it.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'path', 'circle', 'line', 'rect', 'text', 'title', 'desc']);

// h('a', {href: '#/', class: 'x', onclick: f}, 'text', node, [nodes], null)
export function h(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'selected') element[name] = value;
    else if (name === 'href') element.setAttribute('href', safeAddress(value));
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  put(element, children);
  return element;
}

function put(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) put(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  put(element, children);
  return element;
}

// Places of these pages, and of the web; anything else leads nowhere.
function safeAddress(address) {
  return /^(#|https?:\/\/)/.test(address) ? address : '#/';
}

export function option(value, label, chosen) {
  return h('option', {value, selected: value === chosen}, label);
}

// A labelled <select>; entries: [value, label].
export function choice(label, entries, chosen, onchange) {
  const select = h('select', {onchange: () => onchange(select.value)},
    entries.map(([value, words]) => option(value, words, chosen)));
  return h('label', {class: 'field'}, h('span', {}, label), select);
}

// What somebody types or ticks goes to take() at once.
export const searchField = (value, take, more = {}) => h('input', {type: 'search', value, ...more, oninput: (event) => take(event.target.value)});
export const checkBox = (checked, take, more = {}) => h('input', {type: 'checkbox', checked, ...more, onchange: (event) => take(event.target.checked)});

// What somebody looks for, and whether a text has all of it.
export const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
export const hasWords = (text, words) => words.every((word) => text.toLowerCase().includes(word));

// A listener for keydown: what keys do, by their names, on the element itself and with no other key held.
export function onKeys(acts, nameOf = (event) => event.key) {
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const name = nameOf(event);
    if (!Object.hasOwn(acts, name)) return;
    event.preventDefault();
    acts[name]();
  };
}

// A button that is pressed or not, among others of which one is at most. chosen(): whether it is; turn(): makes it so, or no more.
export function filterButton(chosen, turn, title, ...children) {
  return h('button', {type: 'button', class: 'filter', title, 'aria-pressed': String(chosen()), onclick: (event) => {
    turn();
    for (const one of event.currentTarget.parentElement.children) one.setAttribute('aria-pressed', String(one === event.currentTarget && chosen()));
  }}, children);
}

// Said to those who listen rather than look.
export function announce(text) {
  document.getElementById('live').textContent = text;
}
