// The filter: words that look anywhere in a run, and comparisons of one key.

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
