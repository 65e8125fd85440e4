// One series as a graph: value by place in commit order, its interval as a band, its levels, its
// changes as marks. Drag zooms, double click or "0" shows all, arrows read point by point.
import uPlot from 'uplot';
import {onKeys} from './dom.js';
import {axisValues} from './units.js';
import {colour} from './theme.js';
import {drawBand, drawColumns, drawLevels, drawLine, drawMarks, gapsAt} from './chart_marks.js';
import {thinner} from './thin.js';

const LEAST_WIDTH = 5; // points
const MANY = 200; // points that are too many for uPlot's own line

// options: {box, series, log, band, range: [from, to] or null, onrange(from, to, all), onpoint(i),
//           xlabel(i)}
export function makeChart(options) {
  const {box, series} = options;
  const count = series.value.length;
  const banded = options.band && Boolean(series.low);
  const thin = thinner(series, {positive: options.log, banded});
  const line = uPlot.paths.linear();
  let drawn = null; // what of the series is drawn
  const all = {min: -0.5, max: count - 0.5};
  let paint = colours();

  function colours() {
    return Object.fromEntries(['text', 'soft', 'line', 'accent', 'band-fill', 'bad', 'page'].map((name) => [name, colour(name)]));
  }

  const axis = {stroke: () => paint.soft, grid: {stroke: () => paint.line, width: 1}, ticks: {stroke: () => paint.line, width: 1}, font: '12px system-ui, sans-serif'};
  const plot = new uPlot({
    width: widthOf(box),
    height: heightOf(),
    legend: {show: false},
    padding: [26, 12, 0, 0],
    cursor: {y: false, drag: {x: true, y: false, setScale: false, dist: 4}, points: {size: 9}, bind: {dblclick: () => () => chart.showAll()}},
    scales: {x: {time: false}, y: {distr: options.log ? 3 : 1, range: () => reach()}},
    axes: [
      {...axis, space: 90, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000], values: (_, ticks) => ticks.map((i) => (Number.isInteger(i) && i >= 0 && i < count ? options.xlabel(i) : ''))},
      {...axis, size: 74, values: (_, ticks) => axisValues(series.metric, ticks)},
    ],
    series: [
      {},
      {stroke: () => paint.accent, width: 1.5, paths: (...of) => (drawn && drawn.x.length > MANY ? null : line(...of)), gaps: gapsAt(series.changes), points: {size: 5, fill: () => paint.accent}},
    ],
    hooks: {
      drawAxes: [(u) => {
        if (!drawn) return; // there is nothing yet
        const many = drawn.x.length > MANY;
        if (banded && many) drawColumns(u, drawn, paint['band-fill'], drawn.low, drawn.high, false);
        else if (banded) drawBand(u, drawn, series.changes, paint['band-fill']);
        if (drawn.size > 1) drawColumns(u, drawn, paint.accent, drawn.min, drawn.max, true);
        else if (many) drawLine(u, drawn, series.changes, paint.accent);
      }],
      draw: [(u) => {
        if (!drawn) return;
        drawLevels(u, series, paint);
        drawMarks(u, series, paint);
      }],
      setCursor: [(u) => {
        if (u.cursor.left >= 0) options.onpoint(Math.min(count - 1, Math.max(0, Math.round(u.posToVal(u.cursor.left, 'x')))));
      }],
      setSelect: [(u) => {
        if (u.select.width < 4) return;
        const [from, to] = [u.select.left, u.select.left + u.select.width].map((left) => u.posToVal(left, 'x'));
        u.setSelect({width: 0, height: 0}, false);
        chart.show(from, to);
      }],
    },
  }, null, box);

  // How far the values reach that are drawn.
  function reach() {
    if (!drawn || drawn.least > drawn.most) return [0, 1];
    if (options.log) return uPlot.rangeLog(drawn.least, drawn.most, 10, false);
    return uPlot.rangeNum(drawn.least, drawn.most, 0.1, true);
  }

  // Inside the series, and never so near that nothing is left to see.
  function held(min, max) {
    if (!Number.isFinite(min) || !Number.isFinite(max)) return [all.min, all.max];
    if (max - min >= count || (min <= 0 && max >= count - 1)) return [all.min, all.max];
    const least = Math.min(LEAST_WIDTH, count);
    if (max - min < least) {
      const middle = (min + max) / 2;
      [min, max] = [middle - least / 2, middle + least / 2];
    }
    if (min < all.min) [min, max] = [all.min, max + all.min - min];
    if (max > all.max) [min, max] = [min - (max - all.max), all.max];
    return [min, max];
  }

  const chart = {
    plot,
    show(from, to) {
      const [min, max] = held(from, to);
      drawn = thin(min, max, box.clientWidth);
      plot.batch(() => { // at once: who comes next reads it
        plot.setData([drawn.x, drawn.y], false);
        plot.setScale('x', {min, max});
      });
      options.onrange(Math.max(0, Math.ceil(min)), Math.min(count - 1, Math.floor(max)), min <= all.min && max >= all.max);
    },
    showAll() {
      chart.show(all.min, all.max);
    },
    // Around `at` (0…1 of what is seen), by a factor.
    zoom(factor, at = 0.5) {
      const {min, max} = plot.scales.x;
      const middle = min + (max - min) * at;
      chart.show(middle - (middle - min) * factor, middle + (max - middle) * factor);
    },
    pan(share) {
      const {min, max} = plot.scales.x;
      const by = (max - min) * share;
      chart.show(min + by, max + by);
    },
    point(i) {
      const {min, max} = plot.scales.x;
      if (i < min || i > max) chart.show(i - (max - min) / 2, i + (max - min) / 2);
      const value = series.value[i];
      plot.setCursor({left: plot.valToPos(i, 'x'), top: plot.valToPos(value, 'y') || 0});
    },
    leave() {
      watch.disconnect();
      removeEventListener('weir-theme', redraw);
      plot.destroy();
    },
  };

  function redraw() {
    paint = colours();
    plot.redraw(false, true);
  }
  addEventListener('weir-theme', redraw);
  const watch = new ResizeObserver(() => {
    const width = widthOf(box);
    if (width !== plot.width) plot.setSize({width, height: heightOf()});
  });
  watch.observe(box);
  // A pinch on a touch pad comes as a wheel with Ctrl; a wheel alone scrolls the page.
  plot.over.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    chart.zoom(Math.exp(event.deltaY / 400), event.offsetX / plot.over.clientWidth);
  }, {passive: false});
  if (options.range) chart.show(options.range[0] - 0.5, options.range[1] + 0.5);
  else chart.showAll();
  return chart;
}

const widthOf = (box) => Math.max(240, box.clientWidth);
const heightOf = () => Math.max(240, Math.min(420, Math.round(innerHeight * 0.48)));

// A graph under the keyboard. of: {series, chart(), at(), point(i)} -> a listener for keydown.
export function keysOf(of) {
  const last = of.series.value.length - 1;
  const held = (i) => Math.min(last, Math.max(0, i));
  const change = (way) => {
    const places = of.series.changes.map((one) => one.index);
    const next = way > 0 ? places.find((i) => i > of.at()) : places.findLast((i) => i < of.at());
    if (next !== undefined) of.point(next);
  };
  const acts = {
    ArrowLeft: () => of.point(held(of.at() - 1)),
    ArrowRight: () => of.point(held(of.at() + 1)),
    PageUp: () => of.point(held(of.at() - Math.max(10, Math.round(last / 20)))),
    PageDown: () => of.point(held(of.at() + Math.max(10, Math.round(last / 20)))),
    Home: () => of.point(0),
    End: () => of.point(last),
    '+': () => of.chart().zoom(0.5),
    '=': () => of.chart().zoom(0.5),
    '-': () => of.chart().zoom(2),
    0: () => of.chart().showAll(),
    n: () => change(1),
    p: () => change(-1),
    'Shift+ArrowLeft': () => of.chart().pan(-0.25),
    'Shift+ArrowRight': () => of.chart().pan(0.25),
  };
  return onKeys(acts, (event) => (event.shiftKey && event.key.startsWith('Arrow') ? `Shift+${event.key}` : event.key));
}
