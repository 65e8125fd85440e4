// Mouse, pen and fingers on the timeline. A drag moves; with Shift, or on the ruler, it marks a stretch of time. Two fingers,
// or Ctrl and the wheel, zoom; the wheel alone scrolls as everywhere.
import {RULER} from './view.js';

const CLICK = 4; // pixels that a click may move

// of: {canvas, view, timeAt(x), placed(event) -> [x, y], marks(from, to, done), click(x, y), double(x, y), hover(x, y), leave()}.
export function listen(of) {
  const {canvas} = of;
  const down = new Map(); // pointer -> [x, y] now
  let drag = null;

  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    const place = of.placed(event);
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, place);
    drag = {start: place, last: place, mark: event.shiftKey || place[1] < RULER, time: of.timeAt(place[0]), moved: false};
    if (down.size > 1) drag.moved = true;
  });

  canvas.addEventListener('pointermove', (event) => {
    const place = of.placed(event);
    if (!down.has(event.pointerId)) return of.hover(...place);
    if (down.size === 2) pinch(of, down, event.pointerId, place);
    else if (down.size === 1) move(place);
    down.set(event.pointerId, place);
  });

  function move(place) {
    if (!drag.moved && Math.abs(place[0] - drag.start[0]) < CLICK) return;
    drag.moved = true;
    if (drag.mark) of.marks(drag.time, of.timeAt(place[0]), false);
    else of.view.pan((drag.last[0] - place[0]) / canvas.clientWidth);
    drag.last = place;
  }

  const up = (event) => {
    if (!down.delete(event.pointerId) || down.size || !drag) return;
    const place = of.placed(event);
    if (drag.moved && drag.mark) of.marks(drag.time, of.timeAt(place[0]), true);
    else if (!drag.moved && event.type === 'pointerup') of.click(...place);
    drag = null;
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => of.leave());
  canvas.addEventListener('dblclick', (event) => of.double(...of.placed(event)));
  canvas.addEventListener('wheel', (event) => wheel(of, event), {passive: false});
}

function pinch(of, down, id, place) {
  const [[otherId, other]] = [...down].filter(([one]) => one !== id);
  if (otherId === undefined) return;
  const before = down.get(id);
  const [was, is] = [Math.abs(before[0] - other[0]), Math.abs(place[0] - other[0])].map((one) => Math.max(8, one));
  of.view.zoom(was / is, of.timeAt((place[0] + other[0]) / 2));
  of.view.pan(((before[0] - place[0]) / 2) / of.canvas.clientWidth);
}

function wheel(of, event) {
  const pixels = event.deltaMode === 1 ? 16 : 1;
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    of.view.zoom(Math.exp(Math.min(200, Math.max(-200, event.deltaY * pixels)) / 180), of.timeAt(of.placed(event)[0]));
    return;
  }
  const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
  if (!sideways) return;
  event.preventDefault();
  of.view.pan((sideways * pixels) / of.canvas.clientWidth);
}
