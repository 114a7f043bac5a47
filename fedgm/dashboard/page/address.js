// What the reader has chosen; kept in the address after #, so that a view can be sent with the page.

const ALL = '(all)';
const DEFAULTS = {problem: '', metric: '', panels: '', logs: '', x: 'round', group: AUTO, then: NONE, filter: '', smooth: 0, band: 'minmax',
  logx: false, each: false, others: true, heatx: '', heaty: '', heatz: '', rows: NONE, sort: 'score', down: true, a: '', b: '',
  lines: '', picks: '', zoom: '', brushes: ''};
const state = {...DEFAULTS};
const chosen = {groups: null, picked: new Set(), zoom: null, expanded: new Set(), limit: 100, brushes: new Map(), legend: 0};
const NOTHING = '-'; // a list that was emptied; an empty text is the default

const pack = (list) => (list.length ? list.map(encodeURIComponent).join() : NOTHING);
const unpack = (text) => (text === NOTHING ? [] : text.split(',').map(decode_));

function decode_(word) { try { return decodeURIComponent(word); } catch { return word; } }

function readAddress() {
  Object.assign(state, DEFAULTS);
  for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
    if (!Object.hasOwn(DEFAULTS, key)) continue;
    const kind = typeof DEFAULTS[key];
    state[key] = kind === 'boolean' ? text === '1' : kind === 'number' ? Number(text) || 0 : text;
  }
  const ends = unpack(state.zoom).map(Number);
  chosen.groups = state.lines ? unpack(state.lines) : null;
  chosen.picked = new Set(state.picks ? unpack(state.picks) : []);
  chosen.zoom = ends.length === 2 && ends[0] < ends[1] ? ends : null;
  chosen.brushes = new Map(state.brushes ? unpack(state.brushes).map((word) => word.split('|')).filter((words) => words.length === 3)
    .map(([key, low, high]) => [key, [Number(low) || 0, Number(high) || 0]]) : []);
}

function writeAddress() {
  state.lines = chosen.groups === null ? '' : pack(chosen.groups);
  state.picks = chosen.picked.size ? pack([...chosen.picked]) : '';
  state.zoom = chosen.zoom ? pack(chosen.zoom.map(String)) : '';
  state.brushes = chosen.brushes.size ? pack([...chosen.brushes].map(([key, [low, high]]) => `${key}|${low.toFixed(3)}|${high.toFixed(3)}`)) : '';
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value === DEFAULTS[key] || (key === 'metric' && value === defaultMetric())) continue;
    words.set(key, typeof value === 'boolean' ? Number(value) : value);
  }
  const text = words.toString();
  try { history.replaceState(null, '', text ? `#${text}` : location.pathname + location.search); } catch { /* sandboxed */ }
}

// On opening: all lines where they are few, else the best of each algorithm, then the best of the rest.
function defaultChoice(groups) {
  const best = [];
  const alike = (a, b) => a.algorithm === b.algorithm && a.problem === b.problem;
  for (const group of groups) if (!best.some((other) => alike(other, group))) best.push(group);
  const order = [...best, ...groups.filter((group) => !best.includes(group))];
  const few = best.length === 1 ? 5 : Math.max(3, Math.min(COLOURS, best.length));
  const most = groups.length <= COLOURS ? COLOURS : few;
  return order.slice(0, most).sort((a, b) => rankOf(a.algorithm) - rankOf(b.algorithm)).map((group) => group.id);
}
