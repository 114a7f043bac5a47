// What differs between two settings, or between the runs that were picked in the table.

const COMPARE_MOST = 6;

function drawCompare(view) {
  const all = settingsOf(view);
  const ids = all.map((group) => group.id);
  const a = ids.includes(state.a) ? state.a : ids[0];
  const other = all.find((group) => group.id !== a && group.algorithm !== all[0].algorithm) || all.find((group) => group.id !== a);
  const b = ids.includes(state.b) ? state.b : other ? other.id : a;
  const options = all.slice(0, 500).map((group) => [group.id, group.label]);
  fillSelect(byId('compare-a'), options, a);
  fillSelect(byId('compare-b'), options, b);
  const picked = view.runs.filter((run) => chosen.picked.has(run.id)).slice(0, COMPARE_MOST);
  const usePicked = picked.length > 1;
  const columns = usePicked ? picked.map((run) => ({label: `${algorithmName(run.algorithm)} ${run.hash}, seed ${run.seed}`, runs: [run]}))
    : [a, b].map((id) => all.find((group) => group.id === id)).filter(Boolean);
  for (const id of ['compare-a', 'compare-b']) byId(id).disabled = usePicked;
  byId('compare-how').textContent = usePicked ? `the ${picked.length} runs picked in the table${chosen.picked.size > COMPARE_MOST ? ` (the first ${COMPARE_MOST})` : ''}`
    : 'or pick runs in the table below';
  byId('compare').querySelector('.body').replaceChildren(columns.length ? compareTable(view, columns) : '');
}

function compareTable(view, columns) {
  const keys = new Set(['algorithm', ...columns.flatMap(({runs: some}) => some.slice(0, 1).flatMap((run) => [...Object.keys(run.config), ...run.without]))]);
  keys.delete('algorithm.name');
  const differing = [...keys].filter((key) => new Set(columns.map(({runs: some}) => JSON.stringify(valueOf(some[0], key)) ?? '')).size > 1).sort();
  const cell = (value) => el('td', {}, value === ABSENT ? el('span', {class: 'muted'}, 'absent') : shown(value));
  const config = differing.map((key) => el('tr', {}, el('th', {scope: 'row'}, key), columns.map(({runs: some}) => cell(valueOf(some[0], key)))));
  const measured = view.metrics.filter((name) => /^(test|train)\//.test(name)).slice(0, 8).map((metric) => el('tr', {},
    el('th', {scope: 'row'}, metricTitle(metric)), columns.map((group) => {
      const pooled = {runs: group.runs};
      summarise(pooled, metric);
      return el('td', {}, withSpread(pooled.mean, pooled.sd, metric));
    })));
  const status = el('tr', {}, el('th', {scope: 'row'}, 'status'), columns.map(({runs: some}) => el('td', {}, [...new Set(some.map((run) => run.status))].join(', '))));
  const span = columns.length + 1;
  const head = (text) => el('tr', {class: 'part'}, el('td', {colspan: span}, text));
  const nothing = differing.length ? [] : [el('tr', {}, el('td', {colspan: span, class: 'muted'}, 'The configurations are equal.'))];
  return el('table', {class: 'diff'}, el('thead', {}, el('tr', {}, el('th', {}), columns.map((group) => el('th', {scope: 'col'}, group.label)))),
    el('tbody', {}, head('Configuration, where it differs'), config, nothing, head(`Mean of the last ${LAST} evaluations`), measured, status));
}
