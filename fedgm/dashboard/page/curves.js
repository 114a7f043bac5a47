// The charts' lines made from groups of runs, and what the pointer shows.

const charts = [];

function buildCharts() {
  charts.push(new Chart(byId('chart-a'), 'metric', 'logya'), new Chart(byId('chart-b'), 'second', 'logyb'));
}

function drawCurves(view) {
  for (const chart of charts) {
    fillSelect(chart.select, view.metrics.map((name) => [name, metricTitle(name)]), state[chart.metricKey]);
    chart.log.checked = state[chart.logKey];
    const metric = state[chart.metricKey];
    const lines = view.lines.map((group) => lineOf(group, metric));
    chart.draw(lines, state.others ? restOf(view, metric) : [], {});
  }
  byId('unzoom').hidden = !chosen.zoom;
  const seeds = view.lines.some((group) => group.runs.length > 1);
  const parts = [];
  const members = state.group === AUTO ? 'seeds' : 'the runs of a group';
  if (seeds) parts.push(`Lines are means over ${members}, as far as all of them go.`);
  if (view.lines.some((group) => group.diverged)) parts.push('✕ marks where a run diverged.');
  if (view.lines.some((group) => stagePlaces(group.runs[0], 'round').length)) parts.push('Dashed: ends of stages.');
  parts.push('Drag to zoom, double-click for the whole range.');
  byId('curves-caption').textContent = parts.join(' ');
}

function lineOf(group, metric) {
  const curve = aggregate(group, metric, state.x);
  const line = {id: group.id, label: group.label, colour: colourOf(group.id), dash: dashOf(group.id), raw: null,
    runs: [], ends: endsOf(group, metric), stages: stagePlaces(group.runs[0], state.x)};
  curve.mid = curve.y;
  if (state.smooth > 0 && curve.n > 2) {
    line.raw = curve.y;
    curve.y = smoothed(curve.y, state.smooth);
    curve.mid = curve.y;
  }
  // A mean that stops where the first seed diverged hides what the others did: show them.
  const cut = group.diverged > 0 && group.runs.length > 1;
  if (group.runs.length > 1 && (state.each || cut)) line.runs = group.runs.map((run) => series(run, metric, state.x)).filter((s) => s.n);
  line.curve = curve;
  return line;
}

// Groups that were not chosen, as one faint line each.
function restOf(view, metric) {
  const seen = new Set(view.lines.map((group) => group.id));
  return view.groups.filter((group) => !seen.has(group.id)).map((group) => aggregate(group, metric, state.x)).filter((c) => c.n);
}

function endsOf(group, metric) {
  return group.runs.filter((run) => run.status === 'diverged').map((run) => {
    const {x, y, n} = series(run, metric, state.x);
    let last = n - 1;
    while (last > 0 && Number.isNaN(y[last])) last -= 1;
    if (!n) return null;
    // The round in which it ended may lie after the last evaluation.
    return {x: state.x === 'round' ? Math.max(run.rounds_done || 0, x[n - 1]) : x[n - 1], y: y[last]};
  }).filter(Boolean);
}

// Ends of stages, which are rounds, on the chosen axis.
function stagePlaces(run, axis) {
  const round = column(run, 'round');
  const x = column(run, axis);
  if (!round || !x || run.ends.length > 12) return [];
  return run.ends.map((end) => {
    if (axis === 'round') return end;
    let i = 0;
    while (i < round.length && round[i] < end) i += 1;
    if (i === 0 || i >= round.length) return NaN;
    return x[i - 1] + (x[i] - x[i - 1]) * (end - round[i - 1]) / (round[i] - round[i - 1]);
  }).filter((place) => !Number.isNaN(place));
}

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
  const ink = prepareCanvas(this.over, ...this.size);
  if (this.drag !== null && this.drag !== undefined && Math.abs(px - this.drag) > 3) {
    ink.fillStyle = css('--select');
    ink.fillRect(Math.min(px, this.drag), MARGIN.top, Math.abs(px - this.drag), this.size[1] - MARGIN.top - MARGIN.bottom);
  }
  const wanted = this.xs.back(Math.max(this.xs.from, Math.min(px, this.xs.to)));
  const points = [];
  for (const line of this.lines) {
    if (!line.curve.n || wanted > line.curve.x[line.curve.n - 1] * 1.001 + 1e-9) continue;
    const i = nearest(line.curve.x, wanted);
    points.push({line, i, value: line.curve.y[i], py: this.ys.at(line.curve.y[i] * this.factor)});
  }
  if (!points.length) { byId('tip').hidden = true; return; }
  const closest = points.reduce((a, b) => (Math.abs(b.py - py) < Math.abs(a.py - py) ? b : a));
  const x = this.xs.at(closest.line.curve.x[closest.i]);
  ink.strokeStyle = css('--muted'); ink.globalAlpha = 0.6;
  ink.beginPath(); ink.moveTo(x, MARGIN.top); ink.lineTo(x, this.size[1] - MARGIN.bottom); ink.stroke();
  ink.globalAlpha = 1;
  for (const {line, i, value} of points) this.dot(ink, line.curve.x[i], value * this.factor, line.colour);
  this.tip(event, points, closest);
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
