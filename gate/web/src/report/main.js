// Draws the figures of a gate's page, each in place of its data (gate/report/html.cpp). Words and tables stand there anyway.
import '../figures.css';
import {pictureOf} from '../figures.js';

addEventListener('DOMContentLoaded', () => {
  for (const data of document.querySelectorAll('script.figure')) {
    try {
      data.replaceWith(...[pictureOf(JSON.parse(data.textContent))].flat());
    } catch (error) {
      console.error(error); // its words stay, and the other figures are drawn
    }
  }
});
