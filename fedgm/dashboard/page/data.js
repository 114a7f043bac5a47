// Runs as the page uses them: columns decoded when they are first drawn, values of a key, scores.

const LAST = 10; // evaluations behind a score
const ABSENT = undefined;
let runs = [];
let problems = []; // {id, label}
let shared = {};
let plain = {}; // choices that go without saying, by key

function load(payload) {
  shared = payload.config;
  plain = payload.plain;
  algorithmNames = payload.names;
  problems = payload.problems;
  described = new Map(Object.entries(payload.metrics));
  const before = new Map(runs.map((run) => [run.id, run]));
  runs = payload.runs.map((run) => {
    const id = `${run.hash}-${run.seed}`;
    const old = before.get(id);
    const same = old && old.points === run.points && old.rounds_done === run.rounds_done;
    return Object.assign(run, {id, decoded: same ? old.decoded : {}, measures: {}, text: null});
  });
}

// Base64 holds little-endian 32-bit floats, which is what browsers' machines have.
function decode(code, length) {
  if (Array.isArray(code)) {
    const [first, step] = code;
    const values = new Float64Array(length).fill(first === null ? NaN : first);
    if (step) for (let i = 0; i < length; i += 1) values[i] += i * step;
    return values;
  }
  const raw = atob(code);
  const buffer = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) buffer[i] = raw.charCodeAt(i);
  return new Float32Array(buffer.buffer);
}

// A column, or null where the run does not have it.
function column(run, name) {
  if (!(name in run.decoded)) {
    run.decoded[name] = name in run.columns ? decode(run.columns[name], run.points) : null;
  }
  return run.decoded[name];
}

// Value of a fact or of a dotted key of the configuration; undefined where the run has none.
function valueOf(run, key) {
  if (key === 'algorithm' || key === 'algorithm.name') return run.algorithm;
  if (key === 'experiment') return run.name;
  if (['seed', 'status', 'name', 'hash', 'rounds'].includes(key)) return run[key];
  if (key in run.config) return run.config[key];
  return run.without.includes(key) ? ABSENT : shared[key];
}

// Mean of the last evaluations and final are Python's (Run.score, Run.final): chance where a run diverged. Best is measured.
function measure(run, metric) {
  if (metric in run.measures) return run.measures[metric];
  const values = column(run, metric);
  const rounds = column(run, 'round');
  const start = rounds && rounds[0] === 0 ? 1 : 0; // the model before the first round does not count
  const measured = values ? values.subarray(start) : [];
  const less = lessIsBetter(metric);
  let best = null;
  for (const value of measured) if (!Number.isNaN(value) && (best === null || (value < best) === less)) best = value;
  const result = {final: run.finals[metric] ?? null, last: run.scores[metric] ?? null, best};
  run.measures[metric] = result;
  return result;
}

// What a run counts with: nothing where it failed; where it diverged, chance, if the metric has a chance level.
function scoreOf(run, metric) {
  return run.status === 'failed' ? null : run.scores[metric] ?? null;
}

function metricNames(some) {
  const names = new Set();
  for (const run of some) for (const name of Object.keys(run.columns)) names.add(name);
  const rank = (name) => ['test/', 'train/', 'local/'].findIndex((start) => name.startsWith(start)) + 1 || 9;
  return [...names].filter((name) => !(name in AXES))
    .sort((a, b) => rank(a) - rank(b) || lessIsBetter(a) - lessIsBetter(b) || (a < b ? -1 : 1));
}

function axisNames() {
  return Object.keys(AXES).filter((name) => name === 'round' || runs.some((run) => name in run.columns));
}

// Keys that differ between runs, the telling ones first; of keys that always change together only one.
const HIDDEN = /(^|\.)(_target_|version|channels_last)$|^(local\.optimizers\.|name$)/;
const ORDER = ['algorithm', 'algorithm.eta', 'algorithm.beta', 'algorithm.nu', 'algorithm.', 'schedule.', 'participation.',
  'client.', 'data.', 'model.', 'local.', ''];

function varyingKeys(some) {
  const keys = new Set(['algorithm', 'name', 'rounds']);
  for (const run of some) for (const key of [...Object.keys(run.config), ...run.without]) keys.add(key);
  keys.delete('algorithm.name');
  const place = (key) => ORDER.findIndex((start) => (/[a-z]$/.test(start) ? key === start : key.startsWith(start)));
  const sorted = [...keys].filter((key) => key === 'name' || !HIDDEN.test(key))
    .sort((a, b) => isPartial(some, a) - isPartial(some, b) || place(a) - place(b) || /\.name$/.test(b) - /\.name$/.test(a) || (a < b ? -1 : 1));
  const seen = new Set();
  return sorted.filter((key) => {
    const codes = new Map();
    const pattern = some.map((run) => {
      const text = JSON.stringify(valueOf(run, key)) ?? '';
      if (!codes.has(text)) codes.set(text, codes.size);
      return codes.get(text);
    }).join();
    if (codes.size < 2 || seen.has(pattern)) return false;
    seen.add(pattern);
    return true;
  });
}

// Keys that some runs do not have, mostly because they are of an older version, say little.
function isPartial(some, key) { return some.some((run) => valueOf(run, key) === ABSENT); }

function levels(some, key) {
  const values = new Map();
  for (const run of some) {
    const value = valueOf(run, key);
    if (value !== ABSENT) values.set(JSON.stringify(value), value);
  }
  return [...values.values()].sort((a, b) => {
    const numbers = (typeof b === 'number') - (typeof a === 'number');
    return numbers || (typeof a === 'number' ? a - b : String(a) < String(b) ? -1 : 1);
  });
}
