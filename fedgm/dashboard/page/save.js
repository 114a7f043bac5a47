// What is shown, as files: pictures of the curves, tables for a spreadsheet or a paper.

function saveFile(name, kind, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type: kind}));
  el('a', {href: address, download: `${(byId('title').textContent || 'fedgm').replace(/[^\w.-]+/g, '-')}-${name}`}).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// The cards: a line for each.
function glanceRows() {
  return leadersOf(current).filter((group) => group.mean !== null);
}

function glanceCsv() {
  const head = ['algorithm', 'setting', state.metric, 'sd', 'seeds', 'problem'];
  return csv([head, ...glanceRows().map((group) => [algorithmName(group.algorithm), group.label, group.mean, group.sd, [...group.scores.keys()].join(' '), problems[group.problem].label])]);
}

function glanceTex() {
  const rows = glanceRows().map((group) => [group.label, withSpread(group.mean, group.sd, state.metric), group.scores.size]);
  return latex(['setting', metricTitle(state.metric), 'seeds'], rows, [false, true, true]);
}

function curvesCsv() {
  const rows = [];
  for (const chart of charts) {
    for (const {label, curve} of chart.lines) {
      for (let i = 0; i < curve.n; i += 1) {
        if (chosen.zoom && (curve.x[i] < chosen.zoom[0] || curve.x[i] > chosen.zoom[1])) continue;
        const spread = curve.seeds > 1 ? [curve.low[i], curve.high[i], curve.sd[i]] : ['', '', ''];
        rows.push([chart.metric, label, curve.round[i], curve.x[i], curve.y[i], ...spread, curve.seeds]);
      }
    }
  }
  return csv([['metric', 'line', 'round', AXES[state.x], 'mean', 'lowest', 'highest', 'sd', 'runs'], ...rows]);
}

function heatCsv() {
  const {x, y, z, groups} = heatShown;
  const keys = [x, y, z].filter((key) => key !== NONE);
  const value = (group, key) => { const one = valueOf(group.runs[0], key); return one === ABSENT ? '' : shown(one); };
  return csv([[...keys, 'setting', state.metric, 'sd', 'runs', 'diverged'],
    ...groups.map((group) => [...keys.map((key) => value(group, key)), group.label, group.lost ? '' : group.mean, group.sd, group.runs.length, group.diverged])]);
}

// The table as it is sorted, every row; a link or a bar becomes its text.
function runsTable() {
  const columns = tableColumns(current);
  const text = (cell) => (cell instanceof Node ? cell.textContent : String(cell));
  const sorted = [...current.runs].sort(sorter(columns));
  return {columns, sorted, text};
}

function runsCsv() {
  const {columns, sorted} = runsTable();
  return csv([columns.map((one) => one.name), ...sorted.map((run) => columns.map((one) => { const value = one.value(run); return typeof value === 'number' ? value : shown(value); }))]);
}

function runsTex() {
  const {columns, sorted, text} = runsTable();
  const kept = columns.filter((one) => one.id !== 'hash');
  return latex(kept.map((one) => one.name), sorted.map((run) => kept.map((one) => text(one.text ? one.text(run) : shown(one.value(run))))), kept.map((one) => one.num === true));
}

const SAVED = {
  'glance-csv': () => saveFile('scores.csv', 'text/csv', glanceCsv()),
  'glance-tex': () => saveFile('scores.tex', 'text/plain', glanceTex()),
  'curves-svg': () => saveFile('curves.svg', 'image/svg+xml', asSvg(picture)),
  'curves-png': async () => saveFile('curves.png', 'image/png', await asPng(picture)),
  'curves-csv': () => saveFile('curves.csv', 'text/csv', curvesCsv()),
  'heat-csv': () => saveFile('map.csv', 'text/csv', heatCsv()),
  'parallel-svg': () => saveFile('settings.svg', 'image/svg+xml', asSvg(parallelPicture)),
  'parallel-png': async () => saveFile('settings.png', 'image/png', await asPng(parallelPicture)),
  'runs-csv': () => saveFile('runs.csv', 'text/csv', runsCsv()),
  'runs-tex': () => saveFile('runs.tex', 'text/plain', runsTex()),
};

function listenToSave() {
  for (const button of document.querySelectorAll('[data-save]')) button.addEventListener('click', SAVED[button.dataset.save]);
}
