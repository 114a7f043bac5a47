// What a line is: the mean over its runs, with the spread; or that, smoothed.

// Mean over seeds as far as all of them go, with lowest, highest and standard deviation.
// Seeds that are still running do not cut the mean of those that have ended.
function aggregate(group, metric, axis) {
  const key = `${metric} ${axis} ${group.used.map((run) => `${run.id}:${run.rounds_done}`).join()}`;
  if (!curves.has(key)) {
    if (curves.size > 4000) curves.clear();
    curves.set(key, combine(group.used.map((run) => series(run, metric, axis)).filter((one) => one.n)));
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
