// The controls: filled from what there is, and what happens when the reader changes one.

function fillSelect(select, options, value) {
  const text = JSON.stringify(options);
  if (select.dataset.options !== text) {
    select.replaceChildren(...options.map(([key, label]) => el('option', {value: key}, label)));
    select.dataset.options = text;
  }
  select.value = value;
}

function fillProblems() {
  const options = problems.map(({id, label}) => [id, `${label} (${ofProblem(id).length} ${ofProblem(id).length === 1 ? 'run' : 'runs'})`]);
  fillSelect(byId('problem'), [...options, [ALL, `all ${problems.length} problems, not ranked`]], currentProblem());
  byId('problem-label').hidden = problems.length < 2;
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
  byId('empty').textContent = runs.length ? `No run ${problems.length > 1 && currentProblem() !== ALL ? 'of this problem ' : ''}matches the filter "${state.filter}".` : 'There are no runs here yet. Start one with: python run.py profile=tiny';
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
