// Heat maps of a sweep: the score over two keys, a panel for each value of a third.

const STOPS = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
const HEAT_MOST = 40; // values on a side
let heatShown = null;

function heatColour(share) {
  const place = Math.max(0, Math.min(0.9999, share)) * (STOPS.length - 1);
  const i = Math.floor(place);
  const mix = STOPS[i].map((low, k) => Math.round(low + (STOPS[i + 1][k] - low) * (place - i)));
  return {fill: `rgb(${mix.join()})`, ink: 0.299 * mix[0] + 0.587 * mix[1] + 0.114 * mix[2] > 140 ? '#10131a' : '#ffffff'};
}

// Which keys go where, unless the reader chose: many values across, the algorithm or a third key as panels.
function heatKeys(view) {
  const keys = view.keys;
  const size = new Map(keys.map((key) => [key, levels(view.runs, key).length]));
  const numeric = keys.filter((key) => !isPartial(view.runs, key) && levels(view.runs, key).every((value) => typeof value === 'number'));
  const order = [...numeric].sort((a, b) => size.get(b) - size.get(a));
  const others = keys.filter((key) => !numeric.includes(key) && size.get(key) > 1);
  const pick = (wanted, ...offers) => (keys.includes(wanted) || wanted === NONE ? wanted : offers.find((key) => key !== undefined)) || NONE;
  const x = pick(state.heatx, order[0], others[0]);
  const free = [...order, ...others].filter((key) => key !== x);
  const y = pick(state.heaty, order.length < 2 && others.includes('algorithm') ? 'algorithm' : undefined, ...free);
  const left = free.filter((key) => key !== y);
  return {x, y, z: pick(state.heatz, left.includes('algorithm') ? 'algorithm' : undefined, ...left.filter((key) => size.get(key) <= 6))};
}

function drawHeat(view) {
  const root = byId('heat');
  const {x, y, z} = heatKeys(view);
  const options = [[NONE, 'nothing'], ...view.keys.map((key) => [key, keyLabel(key, view.keys)])];
  for (const [id, value] of [['heat-x', x], ['heat-y', y], ['heat-z', z]]) fillSelect(byId(id), options, value);
  const body = root.querySelector('.body');
  const groups = settingsOf(view);
  const panels = z === NONE ? [ABSENT] : levels(view.runs, z).slice(0, 12);
  const scores = groups.filter((group) => group.mean !== null && !group.lost).map((group) => group.mean);
  const range = heatRange(scores);
  body.replaceChildren(...panels.map((value) => heatPanel(view, groups, {x, y, z, value}, range)), heatScale(range));
  heatShown = {x, y, z, groups};
  root.querySelector('.caption').textContent = `${metricTitle(state.metric)}, mean of the last ${LAST} evaluations; a cell shows its ${lessIsBetter(state.metric) ? 'lowest' : 'highest'} setting, `
    + 'mean over seeds. ✕: every run diverged. Click a cell to show its line.';
}

// From the best to a worse end that a few bad runs cannot stretch.
function heatRange(scores) {
  if (!scores.length) return [0, 1];
  const way = lessIsBetter(state.metric) ? -1 : 1;
  const ranked = scores.map((value) => way * value).sort((a, b) => a - b);
  const top = ranked[ranked.length - 1];
  const middle = ranked[Math.floor(ranked.length / 2)];
  const bottom = middle < top ? Math.max(ranked[0], top - 4 * (top - middle)) : ranked[0];
  return [way * bottom, way * top];
}

function heatPanel(view, groups, {x, y, z, value}, range) {
  const some = groups.filter((group) => value === ABSENT || same(valueOf(group.runs[0], z), value));
  const members = some.flatMap((group) => group.runs);
  const across = x === NONE ? [ABSENT] : levels(members, x).slice(0, HEAT_MOST);
  const up = y === NONE ? [ABSENT] : levels(members, y).slice(0, HEAT_MOST).reverse();
  const cell = (row, col) => some.filter((group) => (row === ABSENT || same(valueOf(group.runs[0], y), row))
    && (col === ABSENT || same(valueOf(group.runs[0], x), col)));
  const name = (key, text) => (key === 'algorithm' ? algorithmName(text) : shown(text));
  const rows = up.map((row) => el('tr', {}, el('th', {scope: 'row'}, row === ABSENT ? '' : name(y, row)),
    across.map((col) => heatCell(cell(row, col), range))));
  const texts = across.map((col) => (col === ABSENT ? '' : name(x, col)));
  const {size, every, room} = heatSize(up.map((row) => (row === ABSENT ? '' : name(y, row))), texts);
  const named = texts.map((text, i) => [text, Math.min(every, texts.length - i)]).filter((_, i) => i % every === 0);
  const foot = el('tr', {}, el('th', {}), named.map(([text, span]) => el('th', {scope: 'col', colspan: span}, span === every ? text : '')));
  const widths = size === 'bare' ? el('colgroup', {}, el('col'), texts.map(() => el('col', {style: {width: `${room - 1}px`}}))) : null;
  const title = value === ABSENT ? '' : z === 'algorithm' ? algorithmName(value) : `${keyLabel(z, view.keys)} ${shown(value)}`;
  return el('figure', {class: `heat ${size}`}, el('figcaption', {}, title || ' '),
    el('table', {}, widths, el('tbody', {}, rows, foot)),
    el('div', {class: 'axis'}, `${x === NONE ? '' : `→ ${keyLabel(x, view.keys)}`}   ${y === NONE ? '' : `↑ ${keyLabel(y, view.keys)}`}`));
}

// Many columns on a narrow page: smaller numbers, then colours alone, with a name under every few of them.
function heatSize(rowNames, columnNames) {
  const wide = (texts) => Math.max(0, ...texts.map((text) => String(text).length)) * 7.5;
  const room = (byId('heat').clientWidth - Math.min(120, wide(rowNames)) - 24) / columnNames.length;
  if (room >= 27) return {size: room >= 48 ? '' : 'tight', every: 1, room};
  return {size: 'bare', every: Math.ceil((wide(columnNames) + 4) / room), room};
}

function same(a, b) { return a === b || JSON.stringify(a) === JSON.stringify(b); }

function heatCell(groups, range) {
  if (!groups.length) return el('td', {class: 'none'});
  const best = groups.reduce((a, b) => (better(b, a, state.metric) < 0 ? b : a));
  const show = () => toggleGroupAnywhere(best);
  const tip = {onpointermove: (event) => showTip(event, el('b', {}, best.label), el('div', {}, `${withSpread(best.mean, best.sd, state.metric)} · ${best.runs.map((run) => run.status).join(', ')}`)),
    onpointerleave: () => { byId('tip').hidden = true; }};
  if (best.mean === null || best.lost) return el('td', {class: 'lost', onclick: show, ...tip}, best.diverged ? '✕' : '·');
  const share = range[1] === range[0] ? 0.7 : (best.mean - range[0]) / (range[1] - range[0]);
  const {fill, ink} = heatColour(share);
  const button = el('button', {type: 'button', style: {color: ink}, onclick: show}, score(best.mean, state.metric));
  return el('td', {style: {background: fill}, ...tip}, button);
}

// Cells are automatic groups; where the curves are grouped otherwise, go back to automatic groups.
function toggleGroupAnywhere(group) {
  if (current.groups.some((other) => other.id === group.id)) return toggleGroup(group.id);
  chosen.picked.clear();
  state.group = AUTO; state.then = NONE; chosen.groups = [group.id];
  return refresh();
}

function heatScale([worst, best]) {
  const bar = Array.from({length: 24}, (_, i) => el('i', {style: {background: heatColour(i / 23).fill}}));
  return el('div', {class: 'heat-scale'}, el('span', {}, score(worst, state.metric)), el('div', {}, bar), el('span', {}, score(best, state.metric)));
}
