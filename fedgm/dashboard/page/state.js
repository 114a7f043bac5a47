// What the reader has chosen; kept in the address after #, so that a view can be sent with the page.

const DEFAULTS = {metric: '', second: '', x: 'round', group: AUTO, then: NONE, filter: '', smooth: 0, band: 'minmax',
  logx: false, logya: false, logyb: false, each: false, others: true, heatx: '', heaty: '', heatz: '', rows: NONE,
  sort: 'score', down: true, a: '', b: ''};
const state = {...DEFAULTS};
const chosen = {groups: null, picked: new Set(), zoom: null, expanded: new Set(), limit: 100, brushes: new Map()};
const COLOURS = 8;
let slots = new Map(); // id of a group -> place in the palette

function readAddress() {
  for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
    if (!(key in DEFAULTS)) continue;
    const kind = typeof DEFAULTS[key];
    state[key] = kind === 'boolean' ? text === '1' : kind === 'number' ? Number(text) || 0 : text;
  }
}

function writeAddress() {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value !== DEFAULTS[key]) words.set(key, typeof value === 'boolean' ? Number(value) : value);
  }
  const text = words.toString();
  try { history.replaceState(null, '', text ? `#${text}` : location.pathname + location.search); } catch { /* sandboxed */ }
}

// "fedgm eta>1 status!=diverged": words look anywhere, comparisons at one key.
function parseFilter(text) {
  return text.trim().split(/\s+/).filter(Boolean).map((word) => {
    const comparison = /^([\w./]+)(!=|<=|>=|=|<|>)(.*)$/.exec(word);
    if (!comparison) return (run) => haystack(run).includes(word.toLowerCase());
    const [, key, how, wanted] = comparison;
    return (run) => compareValue(lookUp(run, key), how, wanted);
  });
}

function haystack(run) {
  if (run.text === null) {
    run.text = [run.name, run.algorithm, algorithmName(run.algorithm), run.schedule, run.participation, run.profile, run.model,
      run.data, run.status, run.hash, ...Object.entries(run.config).map(([k, v]) => `${k}=${shown(v)}`)].join(' ').toLowerCase();
  }
  return run.text;
}

// A whole key, a fact, or the last part of a key: eta is algorithm.eta.
function lookUp(run, key) {
  const exact = valueOf(run, key);
  if (exact !== ABSENT && exact !== null && typeof exact !== 'object') return exact;
  if (key in run && typeof run[key] !== 'object') return run[key];
  const fitting = Object.keys({...shared, ...run.config}).filter((other) => other.endsWith(`.${key}`))
    .sort((a, b) => (b.startsWith('algorithm.') - a.startsWith('algorithm.')) || (a < b ? -1 : 1));
  for (const other of fitting) if (valueOf(run, other) !== ABSENT) return valueOf(run, other);
  return ABSENT;
}

function compareValue(value, how, wanted) {
  if (value === ABSENT) return how === '!=';
  const both = typeof value === 'number' && wanted !== '' && !Number.isNaN(Number(wanted));
  const left = both ? value : String(shown(value)).toLowerCase();
  const right = both ? Number(wanted) : wanted.toLowerCase();
  switch (how) {
    case '=': return left === right;
    case '!=': return left !== right;
    case '<': return both && left < right;
    case '>': return both && left > right;
    case '<=': return both && left <= right;
    default: return both && left >= right;
  }
}

// The paper's three come first, and so have the same colours on every page that compares them.
function rankOf(algorithm) {
  const paper = ['fedavg', 'fedavgm', 'fedgm'];
  return paper.includes(algorithm) ? paper.indexOf(algorithm) : paper.length;
}

// On opening: all lines where they are few, else the best of each algorithm, then the best of the rest.
function defaultChoice(groups) {
  const best = [];
  for (const group of groups) if (!best.some((other) => other.algorithm === group.algorithm)) best.push(group);
  const order = [...best, ...groups.filter((group) => !best.includes(group))];
  const few = best.length === 1 ? 5 : Math.max(3, Math.min(COLOURS, best.length));
  const most = groups.length <= COLOURS ? COLOURS : few;
  return order.slice(0, most).sort((a, b) => rankOf(a.algorithm) - rankOf(b.algorithm)).map((group) => group.id);
}

function assignColours(ids) {
  const kept = new Map([...slots].filter(([id]) => ids.includes(id)));
  const used = new Set(kept.values());
  let next = 0;
  for (const id of ids) {
    if (kept.has(id)) continue;
    while (used.has(next)) next += 1;
    kept.set(id, next); used.add(next);
  }
  slots = kept;
}

function colourOf(id) {
  if (!slots.has(id)) return css('--other');
  return css(`--c${slots.get(id) % COLOURS}`);
}

// Beyond eight lines the stroke tells them apart.
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
function dashOf(id) { return DASHES[Math.floor((slots.get(id) || 0) / COLOURS) % DASHES.length]; }

let styles = null;
function css(name) {
  if (!styles) styles = getComputedStyle(document.documentElement);
  return styles.getPropertyValue(name).trim();
}
