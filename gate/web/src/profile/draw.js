// A frame of the timeline: ruler, tracks, arrows, what is chosen.
import {arrowsInView} from './arrows.js';
import {drawCounter, drawLane, Rectangles} from './draw_lane.js';
import {laneOfEvent} from './model.js';
import {laneTop, RULER, ticks, timeText} from './view.js';
import {colour} from '../theme.js';

export const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const LETTER = 6.4; // pixels, about

// to: {context, width, height, scroll}; state: {model, layout, view, ink, colours, marked, chosen, range, arrows}.
// -> what else can be pointed at: {arrows}; null when they were too many to draw.
export function drawFrame(to, state) {
  const {context, width, height, scroll} = to;
  const {ink, layout} = state;
  context.font = FONT;
  context.textBaseline = 'middle';
  context.fillStyle = ink.page;
  context.fillRect(0, 0, width, height);
  drawRange(to, state);
  const lists = {rectangles: new Rectangles(ink.fills.length + 1), labels: []};
  for (const item of layout.items) {
    const top = item.top - scroll;
    if (top > height || top + item.height < RULER) continue;
    drawHead(context, state, item, top, width);
    if (item.counter) drawCounter(context, item, state, {top: item.lanesTop - scroll, width, height: item.height - 18});
    for (const lane of item.track.lanes) {
      const y = laneTop(item, lane.number) - scroll;
      if (y > height || y < RULER - item.laneHeight) continue;
      drawLane(state.model, lane, {view: state.view, width, y, height: item.laneHeight, colour: state.colours, dim: ink.fills.length, marked: state.marked}, lists);
    }
  }
  lists.rectangles.fill(context, [...ink.fills, ink.dim]);
  drawLabels(context, state, lists.labels);
  drawChosen(to, state);
  const arrows = state.arrows ? arrowsInView(to, state) : [];
  drawArrows(context, state, arrows ?? []);
  drawRuler(to, state);
  return {arrows};
}

const xOf = (state, width, time) => ((time - state.view.from) / state.view.span) * width;

function drawHead(context, state, item, top, width) {
  context.fillStyle = state.ink.line;
  context.fillRect(0, top - 3, width, 1);
  context.fillStyle = state.ink.text;
  context.fillText(cut(item.title, width - 8), 4, top + 9);
}

function drawLabels(context, {model, ink}, labels) {
  for (const wanted of [true, false]) {
    context.fillStyle = wanted ? LETTERS : ink.soft;
    for (const {event, x, y, width, found} of labels) {
      if (found === wanted) context.fillText(cut(model.names[model.name[event]], width), x, y + 8.5);
    }
  }
}

export function cut(text, width) {
  const letters = Math.floor(width / LETTER);
  return text.length <= letters ? text : letters < 3 ? '' : `${text.slice(0, letters - 1)}…`;
}

function drawRange({context, width, height}, state) {
  if (!state.range) return;
  const [from, to] = state.range.map((time) => xOf(state, width, time));
  if (to < 0 || from > width) return;
  context.fillStyle = state.ink['band-fill'];
  context.fillRect(Math.max(0, from), 0, Math.max(1, Math.min(width, to) - Math.max(0, from)), height);
}

function drawChosen({context, width, scroll}, state) {
  const {model, chosen, layout, ink} = state;
  if (chosen < 0) return;
  const lane = laneOfEvent(model, chosen);
  const y = laneTop(layout.items[lane.track], lane.number) - scroll;
  const x = Math.max(-3, xOf(state, width, model.start[chosen]));
  const end = Math.min(width + 3, xOf(state, width, model.start[chosen] + model.length[chosen]));
  if (end < 0 || x > width) return;
  context.strokeStyle = ink.text;
  context.lineWidth = 2;
  context.strokeRect(x, y, Math.max(3, end - x), layout.items[lane.track].laneHeight - 1);
}

function drawArrows(context, {ink}, arrows) {
  if (!arrows.length) return;
  context.strokeStyle = context.fillStyle = ink.text;
  context.lineWidth = 1;
  context.globalAlpha = arrows.length > 60 ? 0.45 : 0.8;
  context.beginPath();
  for (const {x, y, toX, toY} of arrows) {
    context.moveTo(x, y);
    context.lineTo(toX, toY);
    const angle = Math.atan2(toY - y, toX - x);
    for (const side of [-0.45, 0.45]) {
      context.moveTo(toX, toY);
      context.lineTo(toX - 7 * Math.cos(angle + side), toY - 7 * Math.sin(angle + side));
    }
  }
  context.stroke();
  context.globalAlpha = 1;
}

function drawRuler({context, width}, state) {
  const {ink, view} = state;
  context.fillStyle = ink.band;
  context.fillRect(0, 0, width, RULER);
  drawRange({context, width, height: RULER}, state);
  context.fillStyle = ink.soft;
  const {step, first} = ticks(view, width);
  for (let i = 0, time = first; time <= view.to && i < 200; ++i, time = first + i * step) {
    const x = xOf(state, width, time);
    context.fillRect(Math.round(x), RULER - 6, 1, 6);
    const text = timeText(time, step);
    if (x + 4 + text.length * LETTER < width) context.fillText(text, x + 3, 9);
  }
  context.fillStyle = ink.line;
  context.fillRect(0, RULER - 1, width, 1);
}

// Colours of events: seven that differ for every kind of sight and carry dark letters, by who takes most time.
const FILLS = ['#56b4e9', '#e69f00', '#2fae88', '#ddcf3a', '#cc79a7', '#8da4e0', '#b8a48c'];
const LETTERS = '#14181d';

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
