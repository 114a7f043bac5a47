// The charts' lines made from groups of runs, and one crosshair over all of them.

const charts = [];

// Metrics of the charts: the first is what runs are scored by.
function panelMetrics() {
  const wanted = state.panels === '' ? [defaultSecond()] : unpack(state.panels);
  return [state.metric, ...wanted.filter((name) => metrics.includes(name))];
}

function setPanel(place, metric) {
  if (place === 0) { state.metric = metric; changed('metric'); return; }
  const names = panelMetrics().slice(1);
  names[place - 1] = metric;
  state.panels = pack(names);
  refresh('curves');
}

function addPanel() {
  const names = panelMetrics();
  const next = metrics.find((name) => !names.includes(name)) || state.metric;
  state.panels = pack([...names.slice(1), next]);
  refresh('curves');
}

function removePanel(place) {
  state.logs = [...logPlaces()].filter((at) => at !== place).map((at) => (at > place ? at - 1 : at)).join();
  state.panels = pack(panelMetrics().slice(1).filter((_, i) => i !== place - 1));
  refresh('curves');
}

function logPlaces() { return new Set(state.logs.split(',').filter(Boolean).map(Number)); }
function isLog(place) { return logPlaces().has(place); }

function setLog(place, on) {
  const places = logPlaces();
  if (on) places.add(place); else places.delete(place);
  state.logs = [...places].sort().join();
  refresh('curves');
}

function drawCurves(view) {
  const names = panelMetrics();
  while (charts.length > names.length) charts.pop().root.remove();
  while (charts.length < names.length) { charts.push(new Chart(charts.length)); byId('panels').append(charts.at(-1).root); }
  names.forEach((metric, place) => {
    fillSelect(charts[place].select, metrics.map((name) => [name, metricTitle(name)]), metric);
    charts[place].log.checked = isLog(place);
    charts[place].draw(metric, view.lines.map((group) => lineOf(group, metric)), state.others ? restOf(view, metric) : []);
  });
  byId('unzoom').hidden = !chosen.zoom;
  byId('curves-caption').textContent = captionOf(view);
}

function captionOf(view) {
  const parts = [];
  const members = state.group === AUTO ? 'seeds' : 'the runs of a group';
  if (view.lines.some((group) => group.used.length > 1)) parts.push(`Lines are means over ${members}, as far as all of them go.`);
  if (view.lines.some((group) => group.chooser && !group.used.includes(group.chooser))) parts.push('The seed on which a setting was chosen is not in its mean.');
  if (view.lines.some((group) => group.diverged)) parts.push('✕ marks where a run diverged.');
  if (view.lines.some((group) => stagePlaces(group.runs[0], 'round').length)) parts.push('Dashed: ends of stages.');
  parts.push('Drag to zoom, double-click for the whole range.');
  return parts.join(' ');
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
