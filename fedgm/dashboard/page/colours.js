// A colour belongs to an algorithm, on every page the same for the paper's three; its lines differ in shade and dash.

const COLOURS = 8;
const PAPER = ['fedavg', 'fedavgm', 'fedgm'];
const HUE = {fedavg: 1, fedavgm: 2, fedgm: 0}; // as in the figures (fedgm/figures/style.py)
// How much of the ink (dark) or of the paper (light) is mixed in, and the dash.
const SHADES = [[0, []], [0.45, []], [-0.45, []], [0, [7, 4]], [0.45, [7, 4]], [-0.45, [7, 4]], [0, [2, 3]], [0.45, [2, 3]], [-0.45, [2, 3]],
  [0, [9, 3, 2, 3]], [0.45, [9, 3, 2, 3]], [-0.45, [9, 3, 2, 3]]];
let hues = new Map(); // algorithm -> place in the palette
let slots = new Map(); // id of a group that is shown -> {hue, shade}

// The paper's three come first.
function rankOf(algorithm) {
  return PAPER.includes(algorithm) ? PAPER.indexOf(algorithm) : PAPER.length;
}

function assignHues() {
  const names = [...new Set(runs.map((run) => run.algorithm))].sort();
  const others = names.filter((name) => !PAPER.includes(name));
  const free = [3, 4, 5, 6, 7, ...PAPER.filter((name) => !names.includes(name)).map((name) => HUE[name])];
  hues = new Map([...PAPER.map((name) => [name, HUE[name]]), ...others.map((name, i) => [name, free[i % free.length]])]);
}

// Lines keep their shade while they are shown; a new one takes that of its place among all of its algorithm, or the next free.
function assignColours(groups, all) {
  const kept = new Map();
  const places = new Map();
  const counts = new Map();
  for (const {id, algorithm} of all) { const place = counts.get(algorithm) ?? 0; counts.set(algorithm, place + 1); places.set(id, place % SHADES.length); }
  let mixed = 0;
  for (const group of groups) {
    const hue = group.mixed ? mixed++ % COLOURS : hues.get(group.algorithm) ?? 0;
    const old = slots.get(group.id);
    if (old && old.hue === hue) kept.set(group.id, old);
    else kept.set(group.id, {hue, shade: -1});
  }
  for (const [id, slot] of kept) {
    const used = new Set([...kept.values()].filter((other) => other.hue === slot.hue).map((other) => other.shade));
    if (slot.shade >= 0) continue;
    slot.shade = places.get(id);
    while (used.has(slot.shade)) slot.shade += 1;
  }
  slots = kept;
}

function shadeOf(id) { return SHADES[(slots.get(id)?.shade ?? 0) % SHADES.length]; }

function colourOf(id) {
  if (!slots.has(id)) return css('--other');
  const [share] = shadeOf(id);
  return mix(css(`--c${slots.get(id).hue}`), css(share > 0 ? '--ink' : '--card'), Math.abs(share));
}

function algorithmColour(name) { return css(`--c${hues.get(name) ?? 0}`); }

function dashOf(id) { return shadeOf(id)[1]; }

function mix(colour, other, share) {
  if (!share) return colour;
  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [from, to] = [parts(colour), parts(other)];
  return `#${from.map((value, i) => Math.round(value + (to[i] - value) * share).toString(16).padStart(2, '0')).join('')}`;
}

let styles = null;
function css(name) {
  if (!styles) styles = getComputedStyle(document.documentElement);
  return styles.getPropertyValue(name).trim();
}
