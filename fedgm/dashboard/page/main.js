// Puts the panels together: one view of the filtered runs, from which each panel draws.

const PANELS = [['glance', drawGlance], ['curves', (view) => { drawLegend(view); drawCurves(view); }],
  ['compare', drawCompare], ['table', drawTable], ['staleness', drawStaleness],
  ['sweep', (view) => { drawHeat(view); drawParallel(view); }]];

// What the reader changed decides which panels are drawn again; without a word all are.
function refresh(...only) {
  if ([AUTO, EACH].includes(state.group)) state.then = NONE;
  styles = null;
  current = makeView();
  fillControls(current);
  for (const [id, draw] of PANELS) {
    if (only.length && !only.includes(id)) continue;
    const hidden = !current.runs.length || (id === 'sweep' && (current.problem === ALL || !(current.keys.length && current.settings > 1)));
    byId(id).hidden = hidden;
    if (!hidden) draw(current);
  }
  writeAddress();
}

function drawHeader(payload) {
  byId('title').textContent = payload.title;
  document.title = `${payload.title} – fedgm`;
  const counts = new Map();
  for (const run of runs) counts.set(run.status, (counts.get(run.status) || 0) + 1);
  byId('counts').replaceChildren(el('b', {}, `${runs.length} runs`), ...[...counts].sort().map(([status, count]) => el('span', {class: `status ${STATUS[status]}`}, `${count} ${status}`)));
  const notes = byId('notes');
  notes.hidden = !payload.notes.length;
  notes.querySelector('summary').textContent = `Left out: ${payload.notes.length} ${payload.notes.length === 1 ? 'note' : 'notes'}`;
  notes.querySelector('ul').replaceChildren(...payload.notes.map((note) => el('li', {}, note)));
}

function take(payload) {
  version += 1;
  load(payload);
  assignHues();
  settle();
  drawHeader(payload);
  drawPartition(payload.splits);
  refresh();
}

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function themed() {
  byId('theme').textContent = isDark() ? '☀' : '☾';
  refresh();
}

const payloadNow = JSON.parse(byId('data').textContent);
readAddress();
listen();
listenToSave();
byId('theme').textContent = isDark() ? '☀' : '☾';
take(payloadNow);
follow();
document.documentElement.dataset.ready = 'yes';
