// Runs that are one line: one setting, which is all but the seed, or equal in a key that the reader chose.

const AUTO = '(automatic)';
const EACH = '(each run)';
const NONE = '(nothing)';

// "FedGM, η 2, β 0.9": the algorithm, its stages, and what tells its settings of a problem apart. Runs of a setting share it.
function automaticLabels(some) {
  const families = new Map();
  for (const run of some) {
    const family = `${run.problem} ${run.algorithm}`;
    if (!families.has(family)) families.set(family, new Map());
    families.get(family).set(run.hash, run);
  }
  const labels = new Map();
  for (const settings of families.values()) {
    const members = [...settings.values()];
    const keys = tellingKeys(members);
    for (const run of members) labels.set(run.hash, [algorithmName(run.algorithm), ...words(run, keys)].join(', '));
  }
  return new Map(some.map((run) => [run, labels.get(run.hash)]));
}

// Where eta changes in stages, its values stand instead of the first one.
function words(run, keys) {
  const staged = run.etas.length > 0;
  const left = keys.filter((key) => valueOf(run, key) !== ABSENT && plain[key] !== valueOf(run, key) && !(staged && ['algorithm.eta', 'schedule.etas', 'schedule.name'].includes(key)));
  const texts = left.map((key) => (/(^|\.)name$/.test(key) ? shown(valueOf(run, key)) : `${keyLabel(key, keys)} ${shown(valueOf(run, key))}`));
  return staged ? [`${run.schedule}, η ${run.etas.map((eta) => number(eta)).join(' → ')}`, ...texts] : texts;
}

// Every key of the algorithm that varies; of the others only those that part settings which would look alike.
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
  const several = new Set(some.map((run) => run.problem)).size > 1;
  return (run) => [name(run, key), then === NONE || key === EACH ? '' : `, ${name(run, then)}`, several ? ` (${problems[run.problem].label})` : ''].join('');
}

// Settings, computed once for each refresh.
function settingsOf(view) {
  if (!view.auto) view.auto = groupRuns(view.runs, AUTO, NONE, state.metric);
  return view.auto;
}

function groupRuns(some, key, then, metric) {
  const label = labeller(some, key, then);
  const byKey = new Map();
  for (const run of some) {
    const id = key === AUTO && then === NONE ? run.hash : key === EACH ? run.id : label(run);
    if (!byKey.has(id)) byKey.set(id, {id, label: label(run), runs: []});
    byKey.get(id).runs.push(run);
  }
  const groups = [...byKey.values()];
  for (const group of groups) summarise(group, metric);
  return groups.sort((a, b) => a.problem - b.problem || better(a, b, metric)); // problems are not ranked
}

const ENDED = ['finished', 'diverged'];

// The run on which a setting was chosen from others does not judge it, once there are other seeds.
function judging(group) {
  const ended = group.runs.filter((run) => ENDED.includes(run.status));
  const used = ended.length ? ended : group.runs;
  const isSetting = used.every((run) => run.hash === used[0].hash);
  const others = used.filter((run) => !run.chose);
  return isSetting && others.length ? others : used;
}

function summarise(group, metric) {
  group.used = judging(group);
  group.scores = new Map(group.used.map((run) => [run.seed, scoreOf(run, metric)]).filter(([, value]) => value !== null));
  group.chooser = group.runs.find((run) => run.chose) || null;
  const scores = group.used.map((run) => scoreOf(run, metric)).filter((value) => value !== null);
  const mean = scores.length ? scores.reduce((a, b) => a + b, 0) / scores.length : null;
  const spread = scores.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  group.mean = mean;
  group.sd = scores.length > 1 ? Math.sqrt(spread / (scores.length - 1)) : null;
  group.finished = group.runs.filter((run) => run.status === 'finished').length;
  group.running = group.runs.filter((run) => run.status === 'running').length;
  group.diverged = group.runs.filter((run) => run.status === 'diverged').length;
  group.lost = group.diverged === group.runs.length;
  group.algorithm = group.runs[0].algorithm;
  group.problem = group.runs[0].problem;
  group.mixed = group.runs.some((run) => run.algorithm !== group.algorithm);
}

// Finished groups in which every run survived come first, then the better score.
function better(a, b, metric) {
  const whole = (group) => (group.mean === null || group.lost ? 3 : group.diverged > 0 ? 2 : group.finished ? 0 : 1);
  const way = lessIsBetter(metric) ? 1 : -1;
  return whole(a) - whole(b) || way * ((a.mean ?? 0) - (b.mean ?? 0)) || (a.label < b.label ? -1 : 1);
}
