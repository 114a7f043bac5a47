// What is on the page now: the runs of a problem that pass the filter, in groups, and the lines of the charts.

let current = null;
let metrics = [];

// The filtered and grouped runs are kept until something that they depend on changes; lines are chosen each time.
let view_ = {key: null};
let version = 0;

function makeView() {
  const key = JSON.stringify([version, state.problem, state.filter, state.group, state.then, state.metric, [...chosen.picked]]);
  if (view_.key !== key) view_ = {key, ...groupedView()};
  const ids = new Set(view_.groups.map((group) => group.id));
  const kept = (chosen.groups || []).filter((id) => ids.has(id));
  const wanted = chosen.groups === null || (view_.picked && !kept.length) ? defaultChoice(view_.groups) : kept;
  assignColours(wanted.map((id) => view_.groups.find((group) => group.id === id)), view_.groups);
  const lines = new Set(wanted);
  view_.lines = view_.groups.filter((group) => lines.has(group.id));
  return view_;
}

function groupedView() {
  const tests = parseFilter(state.filter);
  const problem = currentProblem();
  const some = ofProblem(problem).filter((run) => tests.every((test) => test(run)));
  const picks = some.filter((run) => chosen.picked.has(run.id));
  const picked = picks.length > 1; // then the curves are theirs alone
  const groups = picked ? groupRuns(picks, EACH, NONE, state.metric) : groupRuns(some, state.group, state.then, state.metric);
  const groupOf = new Map(groups.flatMap((group) => group.runs.map((run) => [run, group])));
  return {problem, runs: some, keys: varyingKeys(some), groups, groupOf, metrics, picked, settings: new Set(some.map((run) => run.hash)).size};
}

// The problem that was chosen, else the one with most algorithms and runs.
function currentProblem() {
  return state.problem === ALL || problems.some(({id}) => id === state.problem) ? state.problem : problems[0]?.id ?? ALL;
}

function ofProblem(id) {
  return id === ALL ? runs : runs.filter((run) => problems[run.problem].id === id);
}

function defaultMetric() { return metrics.find((name) => name.startsWith('test/')) || metrics[0] || ''; }

function defaultSecond() {
  return ['train/loss', ...metrics.filter((name) => name.startsWith('train/')), ...metrics].find((name) => metrics.includes(name) && name !== state.metric) || state.metric;
}

// What the address asks for may not be on this page, or not in this problem.
function settle() {
  metrics = metricNames(ofProblem(currentProblem()));
  if (!metrics.includes(state.metric)) state.metric = defaultMetric();
  if (!axisNames().includes(state.x)) state.x = 'round';
}
