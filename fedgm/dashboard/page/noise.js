// What seeds can tell apart: paired differences over common seeds with a 95 % interval, as in docs/claims.md.

const T975 = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622, 2.2281];

// Student's t for two-sided 95 %; beyond the table by its expansion, to three digits.
function student(freedom) {
  if (freedom <= T975.length) return T975[freedom - 1];
  const z = 1.959964;
  return z + (z ** 3 + z) / (4 * freedom) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2);
}

// How far a is better than b: ahead where the whole interval is above 0; one common seed tells nothing.
function lead(a, b, metric) {
  const way = lessIsBetter(metric) ? -1 : 1;
  const gaps = [...a.scores].filter(([seed]) => b.scores.has(seed)).map(([seed, value]) => way * (value - b.scores.get(seed)));
  const n = gaps.length;
  if (n < 2) return {seeds: n, ahead: false, low: null, high: null};
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / n;
  const sd = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / (n - 1));
  const half = student(n - 1) * sd / Math.sqrt(n);
  return {seeds: n, ahead: mean - half > 0, low: mean - half, high: mean + half};
}

function interval({low, high}, metric) {
  return `${signed(low, metric)} to ${signed(high, metric)}`;
}

function signed(value, metric) { return `${value < 0 ? '−' : '+'}${score(Math.abs(value), metric)}`; }
