// One crosshair over all charts, and the small table beside the pointer.

function nearest(values, wanted) {
  let low = 0;
  let high = values.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle; else high = middle;
  }
  return Math.abs(values[low] - wanted) <= Math.abs(values[high] - wanted) ? low : high;
}

Chart.prototype.hover = function hover(event) {
  if (!this.xs) return;
  const box = this.over.getBoundingClientRect();
  const [px, py] = [event.clientX - box.left, event.clientY - box.top];
  const wanted = this.xs.back(Math.max(this.xs.from, Math.min(px, this.xs.to)));
  for (const chart of charts) if (chart !== this) chart.crosshair(wanted);
  const points = this.crosshair(wanted, this.drag !== null && Math.abs(px - this.drag) > 3 ? [this.drag, px].sort((a, b) => a - b) : null);
  if (!points.length) { byId('tip').hidden = true; return; }
  this.tip(event, points, points.reduce((a, b) => (Math.abs(b.py - py) < Math.abs(a.py - py) ? b : a)));
};

// A line at this place of the x-axis with a dot on every curve that reaches it; the dots.
Chart.prototype.crosshair = function crosshair(wanted, selection) {
  if (!this.xs) return [];
  const ink = prepareCanvas(this.over, ...this.size);
  const [top, bottom] = [MARGIN.top, this.size[1] - MARGIN.bottom];
  if (selection) { ink.fillStyle = css('--select'); ink.fillRect(selection[0], top, selection[1] - selection[0], bottom - top); }
  const points = [];
  for (const line of this.lines) {
    if (!line.curve.n || wanted > line.curve.x[line.curve.n - 1] * 1.001 + 1e-9) continue;
    const i = nearest(line.curve.x, wanted);
    points.push({line, i, value: line.curve.y[i], py: this.ys.at(line.curve.y[i] * this.factor)});
  }
  const at = points.length ? points[0].line.curve.x[points[0].i] : wanted;
  this.over.dataset.cross = String(at);
  ink.strokeStyle = css('--muted'); ink.globalAlpha = 0.6;
  ink.beginPath(); ink.moveTo(this.xs.at(at), top); ink.lineTo(this.xs.at(at), bottom); ink.stroke();
  ink.globalAlpha = 1;
  for (const {line, i, value} of points) this.dot(ink, line.curve.x[i], value * this.factor, line.colour);
  return points;
};

Chart.prototype.tip = function tip(event, points, closest) {
  const way = lessIsBetter(this.metric) ? 1 : -1;
  points.sort((a, b) => way * (a.value - b.value));
  const {line, i} = closest;
  const at = state.x === 'round' ? '' : ` (${AXES[state.x]} ${tick(line.curve.x[i], state.x)})`;
  const rows = points.slice(0, 12).map((entry) => el('tr', {class: entry === closest ? 'strong' : ''},
    el('td', {}, el('i', {class: 'swatch', style: {background: entry.line.colour}}), entry.line.label),
    el('td', {class: 'num'}, withSpread(entry.value, entry.line.curve.seeds > 1 ? entry.line.curve.sd[entry.i] : null, this.metric))));
  showTip(event, el('div', {class: 'muted'}, `round ${number(line.curve.round[i])}${at}`), el('table', {}, rows));
};

function showTip(event, ...content) {
  const tip = byId('tip');
  tip.replaceChildren(...content);
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  const left = event.clientX + 16 + width > innerWidth ? event.clientX - width - 16 : event.clientX + 16;
  const top = Math.min(event.clientY + 12, innerHeight - height - 8);
  Object.assign(tip.style, {left: `${Math.max(4, left)}px`, top: `${Math.max(4, top)}px`});
}
