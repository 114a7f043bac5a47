// All runs: sort by any column, rows grouped by any key, boxes that pick runs to compare.

const STATUS = {finished: 'good', running: 'busy', diverged: 'bad', failed: 'bad', paused: 'idle', stopped: 'idle', killed: 'idle'};

function tableColumns(view) {
  const metric = state.metric;
  const keys = view.keys.filter((key) => key !== 'algorithm').slice(0, view.problem === ALL ? 3 : 7);
  const problem = {id: 'problem', name: 'problem', value: (run) => problems[run.problem].label};
  return [
    {id: 'algorithm', name: 'algorithm', value: (run) => algorithmName(run.algorithm)},
    ...(view.problem === ALL ? [problem] : []),
    ...keys.map((key) => ({id: key, name: keyLabel(key, view.keys), num: true, value: (run) => valueOf(run, key), text: (run) => shown(valueOf(run, key))})),
    {id: 'seed', name: 'seed', num: true, value: (run) => run.seed, text: seedCell},
    {id: 'status', name: 'status', value: (run) => run.status, text: statusCell},
    {id: 'done', name: 'rounds', num: true, value: (run) => run.rounds_done, text: progressCell},
    {id: 'score', name: `${metricTitle(metric)}: last ${LAST}`, num: true, value: (run) => scoreOf(run, metric), text: (run) => score(measure(run, metric).last, metric)},
    {id: 'final', name: 'final', num: true, value: (run) => measure(run, metric).final, text: (run) => score(measure(run, metric).final, metric)},
    {id: 'best', name: 'best', num: true, value: (run) => measure(run, metric).best, text: (run) => score(measure(run, metric).best, metric)},
    {id: 'seconds', name: 'time', num: true, value: (run) => run.seconds, text: (run) => duration(run.seconds)},
    {id: 'hash', name: 'run', value: (run) => run.hash, text: filesCell},
  ];
}

function statusCell(run) {
  return el('span', {class: `status ${STATUS[run.status] || 'idle'}`, title: run.reason || run.status}, run.status);
}

// A star: this run's score chose the setting from others, so it is not in the mean over the other seeds.
function seedCell(run) {
  return run.chose ? el('span', {class: 'chose', title: 'Chosen on this seed, which is not in the mean over the others'}, `★ ${run.seed}`) : shown(run.seed);
}

function progressCell(run) {
  const share = run.rounds ? Math.min(1, (run.rounds_done || 0) / run.rounds) : 0;
  return el('span', {class: 'progress', title: `${run.rounds_done} of ${run.rounds} rounds`},
    el('i', {style: {width: `${100 * share}%`}}), el('span', {}, share === 1 ? String(run.rounds_done) : `${run.rounds_done} / ${run.rounds ?? '?'}`));
}

const SHORT = {'summary.json': 'summary', 'config.yaml': 'config', 'metrics.jsonl': 'rows', 'curves.png': 'curves', 'timeline.png': 'timeline', 'model.safetensors': 'model'};
function filesCell(run) {
  const links = run.files.map((file) => el('a', {href: run.link + encodeURIComponent(file), target: '_blank', rel: 'noopener'}, SHORT[file] || file));
  return el('span', {class: 'files'}, el('code', {}, run.hash), links.length ? links : el('span', {class: 'muted'}, 'from an archive'));
}

function sorter(columns) {
  const by = columns.find((one) => one.id === state.sort) || columns.find((one) => one.id === 'score');
  // A better score first, whether that is more or less.
  const isScore = ['score', 'final', 'best'].includes(by.id);
  const flip = isScore && lessIsBetter(state.metric) ? -1 : 1;
  const way = (state.down ? -1 : 1) * flip;
  const missing = (value) => value === null || value === undefined;
  return (a, b) => {
    if (isScore && a.problem !== b.problem) return a.problem - b.problem; // problems are not ranked
    const [left, right] = [by.value(a), by.value(b)];
    if (missing(left) || missing(right)) return missing(left) - missing(right);
    if (typeof left === 'number' && typeof right === 'number') return way * (left - right) || a.seed - b.seed;
    return way * (String(left) < String(right) ? -1 : String(left) > String(right) ? 1 : 0) || a.seed - b.seed;
  };
}

function drawTable(view) {
  const columns = tableColumns(view);
  const options = [[NONE, 'nothing'], [AUTO, 'setting'], ...['algorithm', 'status', 'seed', ...view.keys.filter((key) => key !== 'algorithm')].map((key) => [key, keyLabel(key, view.keys)])];
  fillSelect(byId('table-group'), options, state.rows);
  const sorted = [...view.runs].sort(sorter(columns));
  const body = state.rows === NONE ? sorted.slice(0, chosen.limit).map((run) => tableRow(view, run, columns)) : groupedRows(view, sorted, columns);
  byId('table').querySelector('.body').replaceChildren(el('table', {class: 'runs'}, el('thead', {}, tableHead(columns)), el('tbody', {}, body)));
  byId('table-count').textContent = view.runs.length === runs.length ? `${runs.length} runs` : `${view.runs.length} of ${runs.length} runs`;
  const more = state.rows === NONE ? view.runs.length - chosen.limit : 0;
  byId('more').hidden = more <= 0;
  byId('more').textContent = `Show ${Math.min(more, 400)} more`;
  byId('unpick').hidden = chosen.picked.size === 0;
  byId('unpick').textContent = `Unpick ${chosen.picked.size}`;
}

function tableHead(columns) {
  return el('tr', {}, el('th', {title: 'Pick runs to compare'}, '✓'), columns.map((one) => {
    const on = state.sort === one.id;
    const change = () => { state.down = on ? !state.down : one.num === true; state.sort = one.id; refresh('table'); };
    return el('th', {class: one.num ? 'num' : '', 'aria-sort': on ? (state.down ? 'descending' : 'ascending') : null},
      el('button', {type: 'button', 'data-sort': one.id, onclick: change}, one.name, on ? (state.down ? ' ↓' : ' ↑') : ''));
  }));
}

function tableRow(view, run, columns) {
  const picked = chosen.picked.has(run.id);
  const pick = () => { if (picked) chosen.picked.delete(run.id); else chosen.picked.add(run.id); refresh(); };
  const group = view.groupOf.get(run);
  const mark = group && view.lines.includes(group) ? el('i', {class: 'swatch', style: {background: colourOf(group.id)}}) : el('i', {class: 'swatch'});
  return el('tr', {class: picked ? 'picked' : ''},
    el('td', {}, el('input', {type: 'checkbox', checked: picked, 'aria-label': `Pick ${run.algorithm} ${run.hash} seed ${run.seed}`, onchange: pick})),
    columns.map((one, i) => el('td', {class: one.num ? 'num' : ''}, i === 0 ? mark : null, one.text ? one.text(run) : shown(one.value(run)))));
}

function groupedRows(view, sorted, columns) {
  const label = labeller(view.runs, state.rows, NONE);
  const byLabel = new Map();
  for (const run of sorted) {
    if (!byLabel.has(label(run))) byLabel.set(label(run), {label: label(run), runs: []});
    byLabel.get(label(run)).runs.push(run);
  }
  return [...byLabel.values()].flatMap((group) => {
    summarise(group, state.metric);
    const open = chosen.expanded.has(group.label);
    const flip = () => { if (open) chosen.expanded.delete(group.label); else chosen.expanded.add(group.label); refresh('table'); };
    const text = `${group.runs.length} ${group.runs.length === 1 ? 'run' : 'runs'}${group.diverged ? `, ${group.diverged} diverged` : ''}`;
    const head = el('tr', {class: 'group'}, el('td', {colspan: columns.length + 1},
      el('button', {type: 'button', 'aria-expanded': String(open), onclick: flip}, open ? '▾ ' : '▸ ', el('b', {}, group.label),
        el('span', {class: 'muted'}, ` ${text} `), el('span', {}, withSpread(group.mean, group.sd, state.metric)))));
    return open ? [head, ...group.runs.slice(0, 400).map((run) => tableRow(view, run, columns))] : [head];
  });
}
