// How numbers, keys and names are written, and the few lines that make elements.

let algorithmNames = {}; // as papers print them
const SYMBOLS = {'algorithm.eta': 'η', 'algorithm.beta': 'β', 'algorithm.nu': 'ν', 'data.alpha': 'α'};
const SPLITS = {test: 'test', train: 'training', local: 'local'};
const AXES = {round: 'round', 'total/steps': 'local steps', 'total/bytes': 'bytes sent by clients',
  'clock/time': 'virtual time, s', 'total/seconds': 'wall time, s'};

// Text goes in as text nodes only: a name with <script> in it stays a name.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'class') node.className = value;
    else if (key === 'style') Object.assign(node.style, value);
    else if (value === true) node.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined).map(String_));
  return node;
}

function String_(child) { return child instanceof Node ? child : document.createTextNode(String(child)); }

const byId = (id) => document.getElementById(id);

let described = new Map(); // metrics by name, as the tasks of the runs describe them

// Of test/loss and worst_loss the description of loss; of two that fit, the longer name.
function describedOf(metric) {
  let longest = '';
  for (const name of described.keys()) {
    if ((metric === name || metric.endsWith(`/${name}`) || metric.endsWith(`_${name}`)) && name.length > longest.length) longest = name;
  }
  return described.get(longest);
}
function isShare(metric) { return scaleOf(metric) === 100; }
function scaleOf(metric) { return describedOf(metric)?.scale ?? 1; }
function metricName(metric) {
  const [split, name] = metric.split('/');
  return Object.hasOwn(SPLITS, split) && described.has(name) ? `${SPLITS[split]} ${described.get(name).label}` : metric;
}
function metricTitle(metric) { return metricName(metric) + (isShare(metric) ? ', %' : ''); }

// As the task says; of columns that no task describes, losses, errors and the like are better small.
function lessIsBetter(metric) {
  const description = describedOf(metric);
  return description ? description.better === 'lower' : /loss|err|perplex|ppl|nll|bpc|mse|mae|norm|drift|time|seconds/.test(metric);
}

function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) return value.toExponential(2).replace('-', '−');
  if (size >= 1e4) return Math.round(value).toLocaleString('en-US').replace('-', '−');
  return String(Number(value.toPrecision(digits))).replace('-', '−');
}

// A score with as many decimals as its neighbours have.
function score(value, metric) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (isShare(metric)) return (100 * value).toFixed(1);
  return Math.abs(value) >= 1000 ? number(value, 4) : value.toFixed(Math.abs(value) >= 10 ? 2 : 3);
}

function withSpread(mean, sd, metric) {
  return score(mean, metric) + (sd === null ? '' : ` ± ${score(sd, metric)}`);
}

function bytes(value) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let place = 0;
  while (Math.abs(value) >= 1000 && place < units.length - 1) { value /= 1000; place += 1; }
  return `${number(value, 3)} ${units[place]}`;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds < 100) return `${number(seconds, 2)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return `${number(seconds / 3600, 3)} h`;
}

function tick(value, axis) {
  if (axis === 'total/bytes') return bytes(value);
  if (Math.abs(value) >= 1e6) return `${number(value / 1e6, 3)}M`;
  if (Math.abs(value) >= 1e4) return `${number(value / 1e3, 3)}k`;
  return number(value, 5);
}

function algorithmName(name) { return Object.hasOwn(algorithmNames, name) ? algorithmNames[name] : String(name); }

function shown(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'number') return number(value, 6);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

// The paper's symbol, or the last part of a key where that is unmistakable.
function keyLabel(key, keys) {
  if (SYMBOLS[key]) return SYMBOLS[key];
  const last = (other) => other.slice(other.lastIndexOf('.') + 1);
  const alike = (keys || []).filter((other) => last(other) === last(key)).length;
  return alike > 1 || last(key) === 'name' ? key.replace(/\.name$/, '') : last(key);
}
