// A colour belongs to an algorithm, on every page and in the figures; its lines differ in shade and dash.

const COLOURS = 8;
const PAPER = ['fedavg', 'fedavgm', 'fedgm'];
const HUE = { // as in the figures (HUES of fedgm/figures/style.py)
  fedgm: 0,
  fedavg: 1, fedsgd: 1,
  fedavgm: 2, fedavgm_summed: 2, slowmo: 2, momentum_approximation: 2,
  fednag: 3, fedmom: 3, snoo: 3, ema_nesterov: 3, delayed_nesterov: 3, nsgdm: 3, fetchsgd: 3,
  fedadam: 4, fedamsgrad: 4, qhadam: 4, robust: 4, gpa: 4,
  fedacg: 5, diloco: 5, muloco: 5, accsgd: 5, triple: 5, amplified: 5,
  fedexp: 6, fedexp_gm: 6, snv: 6, pid: 6, true_topk: 6,
  fedyogi: 7, fedadagrad: 7, fedams: 7, schedule_free: 7, pid_opt: 7,
};
// How much of the ink (dark) or of the paper (light) is mixed in, and the dash.
const SHADES = [[0, []], [0.45, []], [-0.45, []], [0, [7, 4]], [0.45, [7, 4]], [-0.45, [7, 4]], [0, [2, 3]], [0.45, [2, 3]], [-0.45, [2, 3]],
  [0, [9, 3, 2, 3]], [0.45, [9, 3, 2, 3]], [-0.45, [9, 3, 2, 3]]];
let hues = new Map(); // algorithm -> place in the palette
let slots = new Map(); // id of a group that is shown -> {hue, shade}

// The paper's three come first.
function rankOf(algorithm) {
  return PAPER.includes(algorithm) ? PAPER.indexOf(algorithm) : PAPER.length;
}

// A rule that the table does not know takes a hue that is free on the page.
function assignHues() {
  const names = [...new Set(runs.map((run) => run.algorithm))].sort();
  const others = names.filter((name) => !(name in HUE));
  const left = [3, 4, 5, 6, 7].filter((hue) => !names.some((name) => HUE[name] === hue));
  const free = left.length ? left : [3, 4, 5, 6, 7];
  hues = new Map([...Object.entries(HUE), ...others.map((name, i) => [name, free[i % free.length]])]);
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
