// Puts the panels together: one view of the filtered runs, from which each panel draws.

let current = null;
let metrics = [];

function fillSelect(select, options, value) {
  const text = JSON.stringify(options);
  if (select.dataset.options !== text) {
    select.replaceChildren(...options.map(([key, label]) => el('option', {value: key}, label)));
    select.dataset.options = text;
  }
  select.value = value;
}

// The filtered and grouped runs are kept until something that they depend on changes; lines are chosen each time.
let view_ = {key: null};
let version = 0;

function makeView() {
  const key = JSON.stringify([version, state.problem, state.filter, state.group, state.then, state.metric, [...chosen.picked]]);
  if (view_.key !== key) view_ = {key, ...groupedView()};
  const ids = new Set(view_.groups.map((group) => group.id));
  const kept = (chosen.groups || []).filter((id) => ids.has(id));
  const wanted = chosen.groups === null || (view_.picked && !kept.length) ? defaultChoice(view_.groups) : kept;
  assignColours(wanted.map((id) => view_.groups.find((group) => group.id === id)), view_.groups);
  const lines = new Set(wanted);
  view_.lines = view_.groups.filter((group) => lines.has(group.id));
  return view_;
}

function groupedView() {
  const tests = parseFilter(state.filter);
  const problem = currentProblem();
  const place = problemNames.indexOf(problem);
  const some = runs.filter((run) => (problem === ALL || run.problem === place) && tests.every((test) => test(run)));
  const picks = some.filter((run) => chosen.picked.has(run.id));
  const picked = picks.length > 1; // then the curves are theirs alone
  const groups = picked ? groupRuns(picks, EACH, NONE, state.metric) : groupRuns(some, state.group, state.then, state.metric);
  const groupOf = new Map(groups.flatMap((group) => group.runs.map((run) => [run, group])));
  return {problem, runs: some, keys: varyingKeys(some), groups, groupOf, metrics, picked, settings: new Set(some.map((run) => run.hash)).size};
}

// The problem that was chosen, else the one with most algorithms and runs.
function currentProblem() {
  return state.problem === ALL || problemNames.includes(state.problem) ? state.problem : problemNames[0] ?? ALL;
}

function fillProblems() {
  const counts = problemNames.map((_, place) => runs.filter((run) => run.problem === place).length);
  const options = problemNames.map((name, place) => [name, `${name} (${counts[place]} ${counts[place] === 1 ? 'run' : 'runs'})`]);
  fillSelect(byId('problem'), [...options, [ALL, `all ${problemNames.length} problems, not ranked`]], currentProblem());
  byId('problem-label').hidden = problemNames.length < 2;
}

let allKeys = {version: -1, keys: []};

function fillControls(view) {
  fillProblems();
  const measured = metrics.filter((name) => /^(test|train)\//.test(name));
  fillSelect(byId('metric'), (measured.length ? measured : metrics).map((name) => [name, metricTitle(name)]), state.metric);
  fillSelect(byId('x'), axisNames().map((name) => [name, AXES[name]]), state.x);
  if (allKeys.version !== version) allKeys = {version, keys: varyingKeys(runs)};
  const keys = [...allKeys.keys];
  for (const key of [state.group, state.then]) if (!keys.includes(key) && ![AUTO, EACH, NONE].includes(key)) keys.push(key);
  const options = [...new Set(['algorithm', ...keys, 'name', 'seed', 'status'])].map((key) => [key, keyLabel(key, keys)]);
  fillSelect(byId('group'), [[AUTO, 'setting'], [EACH, 'each run'], ...options], state.group);
  fillSelect(byId('then'), [[NONE, 'nothing else'], ...options], state.then);
  byId('then-label').hidden = [AUTO, EACH].includes(state.group);
  byId('filter').value = state.filter;
  byId('smooth').value = state.smooth;
  byId('smooth-out').textContent = state.smooth ? state.smooth.toFixed(2) : 'off';
  byId('band').value = state.band;
  for (const id of ['logx', 'each', 'others']) byId(id).checked = state[id];
  byId('empty').hidden = view.runs.length > 0;
  byId('empty').textContent = runs.length ? `No run ${problemNames.length > 1 && currentProblem() !== ALL ? 'of this problem ' : ''}matches the filter "${state.filter}".` : 'There are no runs here yet. Start one with: python run.py profile=tiny';
}

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

function defaultMetric() { return metrics.find((name) => name.startsWith('test/')) || metrics[0] || ''; }

function defaultSecond() {
  return ['train/loss', ...metrics.filter((name) => name.startsWith('train/')), ...metrics].find((name) => metrics.includes(name) && name !== state.metric) || state.metric;
}

// What the address asks for may not be on this page, or not in this problem.
function settle() {
  const place = problemNames.indexOf(currentProblem());
  metrics = metricNames(place < 0 ? runs : runs.filter((run) => run.problem === place));
  if (!metrics.includes(state.metric)) state.metric = defaultMetric();
  if (!axisNames().includes(state.x)) state.x = 'round';
}

function listen() {
  const bind = (id, key, event = 'change', value = (node) => node.value) => byId(id).addEventListener(event, () => { state[key] = value(byId(id)); changed(key); });
  const checked = (node) => node.checked;
  for (const [id, key] of [['problem', 'problem'], ['metric', 'metric'], ['group', 'group'], ['then', 'then'], ['x', 'x'], ['band', 'band'], ['heat-x', 'heatx'],
    ['heat-y', 'heaty'], ['heat-z', 'heatz'], ['table-group', 'rows'], ['compare-a', 'a'], ['compare-b', 'b']]) bind(id, key);
  for (const id of ['logx', 'each', 'others']) bind(id, id, 'change', checked);
  bind('smooth', 'smooth', 'input', (node) => Number(node.value));
  let waiting = null;
  byId('filter').addEventListener('input', () => { clearTimeout(waiting); waiting = setTimeout(() => { state.filter = byId('filter').value; changed('filter'); }, 120); });
  byId('reset').addEventListener('click', () => {
    Object.assign(state, DEFAULTS, {problem: state.problem, metric: defaultMetric()});
    chosen.picked.clear(); chosen.brushes.clear(); changed('filter');
  });
  byId('unzoom').addEventListener('click', () => { chosen.zoom = null; refresh('curves'); });
  byId('unpick').addEventListener('click', () => { chosen.picked.clear(); refresh(); });
  byId('add-panel').addEventListener('click', addPanel);
  addEventListener('hashchange', () => { readAddress(); settle(); refresh(); });
  addEventListener('keydown', (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); byId('filter').select(); }
    if (event.key === 'Escape' && event.target === byId('filter')) byId('filter').blur();
  });
  byId('more').addEventListener('click', () => { chosen.limit += 400; refresh('table'); });
  byId('theme').addEventListener('click', () => { document.documentElement.dataset.theme = isDark() ? 'light' : 'dark'; themed(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', themed);
  let resized = null;
  addEventListener('resize', () => { clearTimeout(resized); resized = setTimeout(() => refresh(), 120); });
}

// Choices that one panel alone shows.
const ONLY = {x: 'curves', band: 'curves', smooth: 'curves', logx: 'curves', each: 'curves', others: 'curves', heatx: 'sweep',
  heaty: 'sweep', heatz: 'sweep', rows: 'table', a: 'compare', b: 'compare'};

function changed(key) {
  if (['problem', 'group', 'then', 'filter', 'metric'].includes(key)) chosen.groups = null;
  if (['problem', 'x', 'filter'].includes(key)) chosen.zoom = null;
  if (key === 'problem') { chosen.picked.clear(); chosen.brushes.clear(); settle(); }
  const panel = ONLY[key];
  if (panel) refresh(panel); else refresh();
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
