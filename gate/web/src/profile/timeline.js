// The timeline on the page: a canvas that follows what is looked at, chosen, and found.
import {arrowNear} from './arrows.js';
import {coloursOf, drawFrame, inks} from './draw.js';
import {listen} from './gestures.js';
import {keysOf} from './keys.js';
import {layOut, placeAt, laneTop, RULER} from './view.js';
import {eventAt, laneOfEvent} from './model.js';
import {strip as makeStrip} from './strip.js';
import {h} from '../dom.js';

const MOST_HEIGHT = 420; // pixels at first; it can be pulled
const REACH = 3; // pixels from an event that still mean it

// tell: {chosen(event), hovered({event, arrow}), range(range or null), drawn({arrows}), find(way), search()}.
export class TimelineBox {
  constructor(model, view, tell) {
    Object.assign(this, {model, view, tell, layout: layOut(model), colours: coloursOf(model), ink: inks()});
    this.state = {marked: null, chosen: -1, range: null, arrows: true};
    for (const item of this.layout.items) {
      const process = model.head.processes[item.track.process];
      item.title = model.head.processes.length > 1 && process ? `${item.track.name} · ${process}` : item.track.name;
    }
    this.strip = makeStrip(model, view);
    this.canvas = h('canvas', {'aria-hidden': 'true'});
    this.tall = h('div', {class: 'tall'}, this.canvas);
    this.scroller = h('div', {class: 'tracks', id: 'timeline', tabindex: '0', role: 'application', 'aria-label': 'Timeline', 'aria-describedby': 'timeline-keys',
      onkeydown: keysOf(this), onscroll: () => this.redraw()}, this.tall);
    this.tall.style.height = `${this.layout.height + 4}px`;
    this.scroller.style.height = `${Math.min(this.layout.height + 8, MOST_HEIGHT)}px`;
    this.box = h('div', {class: 'timeline'}, this.strip.canvas, this.scroller);
    listen({
      canvas: this.canvas, view, timeAt: (x) => this.timeAt(x), placed: (event) => this.placed(event),
      marks: (from, to, done) => this.mark(from, to, done), click: (x, y) => this.click(x, y),
      double: (x, y) => this.double(x, y), hover: (x, y) => this.hover(x, y), leave: () => tell.hovered(null),
    });
    new ResizeObserver(() => this.redraw()).observe(this.scroller);
    addEventListener('weir-theme', () => { this.ink = inks(); this.redraw(); });
  }

  timeAt(x) { return this.view.from + (x / this.canvas.clientWidth) * this.view.span; }

  placed(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  redraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const [width, height, dots] = [this.scroller.clientWidth, this.scroller.clientHeight, devicePixelRatio];
    if (!width) return;
    const [w, high] = [Math.round(width * dots), Math.round(height * dots)];
    if (this.canvas.width !== w || this.canvas.height !== high) {
      Object.assign(this.canvas, {width: w, height: high});
      Object.assign(this.canvas.style, {width: `${width}px`, height: `${height}px`});
    }
    const context = this.context ??= this.canvas.getContext('2d', {alpha: false});
    context.setTransform(dots, 0, 0, dots, 0, 0);
    this.drawn = drawFrame({context, width, height, scroll: this.scroller.scrollTop}, {...this.state, ...this.now()});
    this.strip.canvas.style.width = `${width}px`;
    this.strip.draw(this.ink);
    this.tell.drawn(this.drawn);
  }

  now() { return {model: this.model, layout: this.layout, view: this.view, ink: this.ink, colours: this.colours}; }

  // What lies at a place: {event, lane} (event -1: none), and an arrow that passes there.
  at(x, y) {
    const place = y < RULER ? null : placeAt(this.layout, y + this.scroller.scrollTop);
    const slack = (this.view.span / this.canvas.clientWidth) * REACH;
    const event = place?.lane ? eventAt(this.model, place.lane, this.timeAt(x), slack) : -1;
    const arrow = event < 0 ? arrowNear(this.drawn?.arrows ?? [], x, y)?.arrow ?? -1 : -1;
    return {event, arrow};
  }

  hover(x, y) {
    const there = this.at(x, y);
    this.canvas.style.cursor = there.event >= 0 || there.arrow >= 0 ? 'pointer' : '';
    this.tell.hovered(there);
  }

  click(x, y) {
    const there = this.at(x, y);
    if (there.arrow >= 0) return this.tell.hovered(there);
    if (there.event < 0 && this.state.range) this.mark(0, 0, true);
    this.choose(there.event);
  }

  double(x, y) {
    const {event} = this.at(x, y);
    if (event < 0) this.view.zoom(0.5, this.timeAt(x));
    else this.frameEvent(event);
  }

  frameEvent(event) { this.view.frame(this.model.start[event], this.model.start[event] + this.model.length[event]); }

  // reach: bring it into view.
  choose(event, reach = false) {
    this.state.chosen = event;
    if (event >= 0 && reach) {
      this.view.reach(this.model.start[event], this.model.start[event] + this.model.length[event]);
      const lane = laneOfEvent(this.model, event);
      this.uncover(laneTop(this.layout.items[lane.track], lane.number));
    }
    this.redraw();
    this.tell.chosen(event);
  }

  uncover(top) {
    const {scroller} = this;
    if (top < scroller.scrollTop + RULER + 20) scroller.scrollTop = top - RULER - 20;
    else if (top > scroller.scrollTop + scroller.clientHeight - 24) scroller.scrollTop = top - scroller.clientHeight + 40;
  }

  // A stretch of time; an empty one ends the marking.
  mark(from, to, done) {
    const [low, high] = [Math.max(0, Math.min(from, to)), Math.min(this.model.end, Math.max(from, to))];
    this.state.range = high > low ? [low, high] : null;
    this.redraw();
    if (done) this.tell.range(this.state.range);
  }

  set(parts) {
    Object.assign(this.state, parts);
    this.redraw();
  }
}
