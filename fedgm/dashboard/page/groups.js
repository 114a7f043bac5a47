// Runs that are one line: equal but for the seed, or equal in a key that the reader chose.

const AUTO = '(automatic)';
const EACH = '(each run)';
const NONE = '(nothing)';

// "FedGM, η 2, β 0.9": the algorithm, and what tells its runs apart.
function automaticLabels(some) {
  const families = new Map();
  for (const run of some) {
    if (!families.has(run.algorithm)) families.set(run.algorithm, []);
    families.get(run.algorithm).push(run);
  }
  const labels = new Map();
  for (const [algorithm, members] of families) {
    const keys = tellingKeys(members);
    for (const run of members) {
      const words = keys.filter((key) => valueOf(run, key) !== ABSENT)
        .map((key) => (/(^|\.)name$/.test(key) ? shown(valueOf(run, key))
          : `${keyLabel(key, keys)} ${shown(valueOf(run, key))}`));
      labels.set(run, [algorithmName(algorithm), ...words].join(', '));
    }
  }
  return labels;
}

// Every key of the algorithm that varies; of the others only those that part runs which would look alike.
function tellingKeys(members) {
  const kept = [];
  const parts = (keys) => new Set(members.map((run) => JSON.stringify(keys.map((key) => valueOf(run, key) ?? null)))).size;
  for (const key of varyingKeys(members)) {
    const always = /^algorithm\.|\.name$/.test(key);
    if (always || (kept.length < 8 && parts([...kept, key]) > parts(kept))) kept.push(key);
  }
  return kept;
}

function labeller(some, key, then) {
  const automatic = automaticLabels(some);
  const name = (run, by) => {
    if (by === AUTO) return automatic.get(run);
    if (by === EACH) return `${automatic.get(run)}, seed ${run.seed}`;
    const value = valueOf(run, by);
    return by === 'algorithm' ? algorithmName(value) : `${keyLabel(by)} ${shown(value)}`;
  };
  return (run) => (then === NONE || key === EACH ? name(run, key) : `${name(run, key)}, ${name(run, then)}`);
}

// Settings: runs that differ in nothing but the seed; computed once for each refresh.
function settingsOf(view) {
  if (!view.auto) view.auto = groupRuns(view.runs, AUTO, NONE, state.metric);
  return view.auto;
}

function groupRuns(some, key, then, metric) {
  const label = labeller(some, key, then);
  const byKey = new Map();
  for (const run of some) {
    // Two configurations may share a label; automatic groups never mix them.
    const id = key === AUTO && then === NONE ? `${label(run)} ${run.hash}` : label(run);
    if (!byKey.has(id)) byKey.set(id, {id, label: label(run), runs: []});
    byKey.get(id).runs.push(run);
  }
  const groups = [...byKey.values()];
  for (const group of groups) summarise(group, metric);
  return groups.sort((a, b) => better(a, b, metric));
}

function summarise(group, metric) {
  const finished = group.runs.filter((run) => run.status === 'finished');
  const done = group.runs.filter((run) => ['finished', 'diverged'].includes(run.status));
  const scores = (done.length ? done : group.runs).map((run) => scoreOf(run, metric)).filter((value) => value !== null);
  const mean = scores.length ? scores.reduce((a, b) => a + b, 0) / scores.length : null;
  const spread = scores.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  group.mean = mean;
  group.sd = scores.length > 1 ? Math.sqrt(spread / (scores.length - 1)) : null;
  group.finished = finished.length;
  group.running = group.runs.filter((run) => run.status === 'running').length;
  group.diverged = group.runs.filter((run) => run.status === 'diverged').length;
  group.lost = group.diverged === group.runs.length;
  group.algorithm = group.runs[0].algorithm;
}

// Finished groups in which every run survived come first, then the better score.
function better(a, b, metric) {
  const whole = (group) => (group.mean === null || group.lost ? 3 : group.diverged > 0 ? 2 : group.finished ? 0 : 1);
  const way = lessIsBetter(metric) ? 1 : -1;
  return whole(a) - whole(b) || way * ((a.mean ?? 0) - (b.mean ?? 0)) || (a.label < b.label ? -1 : 1);
}

// Mean over seeds as far as all of them go, with lowest, highest and standard deviation.
// Seeds that are still running do not cut the mean of those that have ended.
function aggregate(group, metric, axis) {
  const ended = group.runs.filter((run) => ['finished', 'diverged'].includes(run.status));
  const used = ended.length ? ended : group.runs;
  const key = `${metric} ${axis} ${used.map((run) => `${run.id}:${run.rounds_done}`).join()}`;
  if (!curves.has(key)) {
    if (curves.size > 4000) curves.clear();
    curves.set(key, combine(used.map((run) => series(run, metric, axis)).filter((one) => one.n)));
  }
  return {...curves.get(key)};
}

const curves = new Map(); // what was computed already

function combine(members) {
  if (members.length === 1) {
    const {round, x, y, n} = members[0];
    return {round, x, y, low: y, high: y, sd: null, n, seeds: 1};
  }
  const rounds = commonRounds(members);
  const n = rounds.length;
  const result = {round: rounds, n, seeds: members.length};
  for (const name of ['x', 'y', 'low', 'high', 'sd']) result[name] = new Float64Array(n);
  result.low.fill(Infinity); result.high.fill(-Infinity);
  for (const {round, x, y} of members) {
    for (let i = 0, at = 0; i < n; i += 1, at += 1) {
      while (round[at] !== rounds[i]) at += 1;
      result.x[i] += x[at] / members.length; result.y[i] += y[at] / members.length;
      if (!(y[at] >= result.low[i])) result.low[i] = y[at];
      if (!(y[at] <= result.high[i])) result.high[i] = y[at];
    }
  }
  for (const {round, y} of members) {
    for (let i = 0, at = 0; i < n; i += 1, at += 1) {
      while (round[at] !== rounds[i]) at += 1;
      result.sd[i] += (y[at] - result.y[i]) ** 2 / (members.length - 1);
    }
  }
  result.sd = result.sd.map(Math.sqrt);
  return result;
}

// Rounds that every member has, with a value; mostly all members have the same rounds.
function commonRounds(members) {
  if (!members.length) return new Float64Array(0);
  const {round: first, n} = members[0];
  const whole = members.every((one) => {
    if (one.n !== n) return false;
    for (let i = 0; i < n; i += 1) if (one.round[i] !== first[i] || Number.isNaN(one.y[i])) return false;
    return true;
  });
  if (whole) return first;
  const counts = new Map();
  for (const {round, y, n: length} of members) for (let i = 0; i < length; i += 1) if (!Number.isNaN(y[i])) counts.set(round[i], (counts.get(round[i]) || 0) + 1);
  return Float64Array.from([...counts].filter(([, count]) => count === members.length).map(([round]) => round).sort((a, b) => a - b));
}

function series(run, metric, axis) {
  const round = column(run, 'round');
  const x = column(run, axis);
  const y = column(run, metric);
  return {round, x, y, n: round && x && y ? round.length : 0};
}

// Exponential mean with the start corrected, as W&B has it.
function smoothed(y, weight) {
  if (!weight) return y;
  const result = new Float64Array(y.length);
  let last = 0;
  let debias = 0;
  for (let i = 0; i < y.length; i += 1) {
    if (Number.isNaN(y[i])) { result[i] = NaN; continue; }
    last = weight * last + (1 - weight) * y[i];
    debias = weight * debias + (1 - weight);
    result[i] = last / debias;
  }
  return result;
}
