// The charts' lines, made from groups of runs.

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
