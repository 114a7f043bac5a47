// One chart of curves on a canvas: lines, bands, stage lines, crosses; a second canvas above it is for the crosshair.

const MARGIN = {left: 54, right: 14, top: 10, bottom: 38};

class Chart {
  constructor(place) {
    Object.assign(this, {place, lines: [], highlight: null, drag: null});
    this.select = el('select', {'aria-label': 'Metric', onchange: () => setPanel(place, this.select.value)});
    this.log = el('input', {type: 'checkbox', onchange: () => setLog(place, this.log.checked)});
    this.base = el('canvas', {role: 'img'});
    this.over = el('canvas', {class: 'over'});
    this.frame = el('div', {class: 'frame'}, this.base, this.over);
    const close = el('button', {type: 'button', class: 'link close', 'aria-label': 'Remove this chart', title: 'Remove this chart', onclick: () => removePanel(place)}, '×');
    this.root = el('div', {class: 'chart', id: `chart-${place}`},
      el('div', {class: 'head'}, this.select, el('label', {}, this.log, ' log y'), place ? close : null), this.frame);
    this.listen();
  }

  listen() {
    const at = (event) => event.clientX - this.over.getBoundingClientRect().left;
    this.over.addEventListener('pointermove', (event) => this.hover(event));
    this.over.addEventListener('pointerleave', () => { this.drag = null; for (const chart of charts) chart.clear(); });
    this.over.addEventListener('pointerdown', (event) => { this.drag = at(event); });
    this.over.addEventListener('pointerup', (event) => {
      const [from, to] = [this.drag, at(event)].sort((a, b) => a - b);
      if (this.drag !== null && this.xs && to - from > 6) {
        const ends = [Math.max(from, this.xs.from), Math.min(to, this.xs.to)];
        chosen.zoom = ends.map((end) => Number(this.xs.back(end).toPrecision(7))); // as the address has it
        refresh('curves');
      }
      this.drag = null;
    });
    this.over.addEventListener('dblclick', () => { chosen.zoom = null; refresh('curves'); });
  }

  // lines: {id, label, colour, dash, curve, raw, runs, stages}; rest: faint curves behind.
  draw(metric, lines, rest) {
    Object.assign(this, {metric, lines, rest, factor: scaleOf(metric)});
    const width = Math.max(240, this.frame.clientWidth);
    this.size = [width, Math.max(230, Math.min(380, width * 0.62))];
    const drawn = lines.filter((line) => line.curve.n);
    this.base.setAttribute('aria-label', `${metricTitle(metric)} of ${drawn.length} lines over ${AXES[state.x]}`);
    this.root.dataset.lines = drawn.length;
    this.render(prepareCanvas(this.base, ...this.size));
    this.clear();
  }

  redraw() { this.draw(this.metric, this.lines, this.rest); }

  // Onto the page, or into a file.
  render(ink) {
    const [width, height] = this.size;
    const {rest} = this;
    const drawn = this.lines.filter((line) => line.curve.n);
    if (!drawn.length && !rest.some((curve) => curve.n)) { this.xs = null; return this.say(ink, `No values of ${metricName(this.metric)} over ${AXES[state.x]}`); }
    this.setScales(drawn.length ? drawn.map((line) => line.curve) : rest);
    this.axes(ink);
    ink.save();
    ink.beginPath();
    ink.rect(MARGIN.left, MARGIN.top, width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom);
    ink.clip();
    this.paint(ink, drawn);
    ink.restore();
  }

  setScales(curves) {
    const [width, height] = this.size;
    const xs = [];
    const ys = [];
    const logy = isLog(this.place);
    for (const curve of curves) {
      for (let i = 0; i < curve.n; i += 1) if (!state.logx || curve.x[i] > 0) xs.push(curve.x[i]);
    }
    let [low, high] = xs.length ? [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b))] : [0, 1];
    if (chosen.zoom) [low, high] = chosen.zoom;
    for (const curve of curves) {
      for (let i = 0; i < curve.n; i += 1) {
        if (curve.x[i] < low || curve.x[i] > high) continue;
        for (const value of curve.low ? [curve.low[i], curve.high[i]] : [curve.y[i]]) {
          if (!Number.isNaN(value) && (!logy || value > 0)) ys.push(value * this.factor);
        }
      }
    }
    this.xs = makeScale(low, high, MARGIN.left, width - MARGIN.right, state.logx && low > 0);
    const range = logy && ys.length ? [ys.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.max(a, b))] : robustRange(ys);
    const pad = logy ? 0 : (range[1] - range[0]) * 0.04;
    this.ys = makeScale(range[0] - pad, range[1] + pad, height - MARGIN.bottom, MARGIN.top, logy && range[0] > 0);
  }

  axes(ink) {
    const [width, height] = this.size;
    ink.strokeStyle = css('--grid'); ink.fillStyle = css('--muted'); ink.lineWidth = 1;
    ink.textAlign = 'right'; ink.textBaseline = 'middle';
    for (const value of ticks(this.ys, 6)) {
      const y = Math.round(this.ys.at(value)) + 0.5;
      ink.beginPath(); ink.moveTo(MARGIN.left, y); ink.lineTo(width - MARGIN.right, y); ink.stroke();
      ink.fillText(tick(value), MARGIN.left - 8, y);
    }
    ink.textAlign = 'center'; ink.textBaseline = 'top';
    for (const value of ticks(this.xs, Math.max(3, Math.floor(width / 110)))) {
      const x = Math.max(MARGIN.left, Math.min(this.xs.at(value), width - MARGIN.right - 8));
      ink.fillText(tick(value, state.x), x, height - MARGIN.bottom + 7);
    }
    ink.fillText(AXES[state.x], (MARGIN.left + width - MARGIN.right) / 2, height - 15);
  }

  paint(ink, drawn) {
    const stroke = (x, y) => strokeLine(ink, x, y, this.xs, this.ys, this.factor);
    ink.strokeStyle = css('--other'); ink.lineWidth = 1; ink.globalAlpha = this.rest.length > 60 ? 0.35 : 0.7;
    for (const curve of this.rest) stroke(curve.x, curve.y);
    ink.globalAlpha = 1;
    this.stages(ink, drawn);
    for (const line of drawn) {
      ink.globalAlpha = this.highlight && this.highlight !== line.id ? 0.18 : 1;
      this.band(ink, line);
      ink.strokeStyle = line.colour; ink.setLineDash(line.dash);
      const strong = ink.globalAlpha;
      for (const run of line.runs) { ink.globalAlpha = 0.45 * strong; ink.lineWidth = 1; stroke(run.x, run.y); }
      if (line.raw) { ink.globalAlpha = 0.4 * strong; ink.lineWidth = 1.2; stroke(line.curve.x, line.raw); }
      ink.globalAlpha = strong; ink.lineWidth = this.highlight === line.id ? 3 : 2;
      stroke(line.curve.x, line.curve.y);
      ink.setLineDash([]);
      if (line.curve.n === 1) this.dot(ink, line.curve.x[0], line.curve.y[0] * this.factor, line.colour);
      for (const end of line.ends) this.cross(ink, end, line.colour);
    }
    ink.globalAlpha = 1;
  }

  band(ink, {curve, colour}) {
    if (curve.seeds < 2 || state.band === 'none') return;
    const alpha = ink.globalAlpha;
    const sd = state.band === 'sd';
    const edge = (i, way) => this.ys.at(this.factor * (sd ? curve.mid[i] + way * curve.sd[i] : way > 0 ? curve.high[i] : curve.low[i]));
    ink.beginPath();
    for (let i = 0; i < curve.n; i += 1) ink.lineTo(this.xs.at(curve.x[i]), edge(i, 1));
    for (let i = curve.n - 1; i >= 0; i -= 1) ink.lineTo(this.xs.at(curve.x[i]), edge(i, -1));
    ink.globalAlpha = 0.18 * alpha * Math.min(1, 5 / this.lines.length); // many bands would hide the lines
    ink.fillStyle = colour; ink.fill();
    ink.globalAlpha = alpha;
  }

  stages(ink, drawn) {
    const places = new Map();
    for (const line of drawn) for (const x of line.stages) places.set(Math.round(this.xs.at(x)), x);
    ink.strokeStyle = css('--muted'); ink.setLineDash([3, 4]); ink.lineWidth = 1;
    for (const px of places.keys()) { ink.beginPath(); ink.moveTo(px + 0.5, MARGIN.top); ink.lineTo(px + 0.5, this.size[1] - MARGIN.bottom); ink.stroke(); }
    ink.setLineDash([]);
  }

  // Where a run diverged; above the frame when its last value is.
  cross(ink, {x, y}, colour) {
    const px = this.xs.at(x);
    const inside = Number.isNaN(y) ? MARGIN.top + 8 : this.ys.at(y * this.factor);
    const py = Math.max(MARGIN.top + 7, Math.min(inside || MARGIN.top + 7, this.size[1] - MARGIN.bottom - 7));
    for (const [stroke, wide] of [[css('--card'), 5], [colour, 2.2]]) {
      ink.strokeStyle = stroke; ink.lineWidth = wide;
      ink.beginPath();
      ink.moveTo(px - 5, py - 5); ink.lineTo(px + 5, py + 5); ink.moveTo(px + 5, py - 5); ink.lineTo(px - 5, py + 5);
      ink.stroke();
    }
  }

  dot(ink, x, y, colour) {
    ink.fillStyle = colour;
    ink.beginPath(); ink.arc(this.xs.at(x), this.ys.at(y), 4, 0, 7); ink.fill();
  }

  say(ink, text) {
    ink.fillStyle = css('--muted'); ink.textAlign = 'center';
    ink.fillText(text, this.size[0] / 2, this.size[1] / 2);
  }

  clear() {
    if (this.size) prepareCanvas(this.over, ...this.size);
    this.over.dataset.cross = '';
    byId('tip').hidden = true;
  }
}
