// Colours of events: seven that differ for every kind of sight and carry dark letters, by who takes most time.
import {colour} from '../theme.js';

const FILLS = ['#56b4e9', '#e69f00', '#2fae88', '#ddcf3a', '#cc79a7', '#8da4e0', '#b8a48c'];
export const LETTERS = '#14181d';

// index of a name -> index of its colour.
export function coloursOf(model) {
  const time = new Float64Array(model.names.length);
  for (let i = 0; i < model.count; ++i) time[model.name[i]] += model.length[i];
  const order = [...time.keys()].sort((a, b) => time[b] - time[a]);
  const out = new Uint8Array(time.length);
  order.forEach((name, rank) => { out[name] = rank % FILLS.length; });
  return out;
}

// What is drawn beside events, as the style sheet has it now.
export function inks() {
  return {fills: FILLS, ...Object.fromEntries(['page', 'text', 'soft', 'line', 'band', 'accent', 'band-fill', 'dim'].map((name) => [name, colour(name)]))};
}
