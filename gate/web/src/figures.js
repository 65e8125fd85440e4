// The figures of a verdict (gate/report/figures.hpp), drawn alike in the page of a gate and in the trend site.
import {loadCurves, loadFigure} from './load_curves.js';
import {ratiosPicture} from './ratios.js';
import {batchesPicture, requestsPicture} from './requests.js';

const PICTURES = {
  load: ({metrics, points, bases}) => loadCurves(metrics, points, bases).map((curve) => loadFigure(curve)),
  ratios: ratiosPicture,
  requests: requestsPicture,
  batches: batchesPicture,
};

// What shows it: one element, or of several curves a list.
export const pictureOf = (figure) => PICTURES[figure.kind](figure);
