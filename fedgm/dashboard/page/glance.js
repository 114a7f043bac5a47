// The best setting of each algorithm side by side, within one problem; "best" only beyond the noise of seeds.

function drawGlance(view) {
  const body = byId('glance').querySelector('.body');
  byId('glance-title').textContent = view.problem === ALL ? 'Problems' : 'At a glance';
  byId('glance-save').hidden = view.problem === ALL;
  if (view.problem === ALL) {
    byId('glance-note').textContent = 'Runs of different problems are not ranked: choose one.';
    return body.replaceChildren(...problemCards(view));
  }
  const leaders = leadersOf(view);
  const top = leaders.filter((group) => group.mean !== null && !group.diverged).sort((a, b) => better(a, b, state.metric))[0] || null;
  const leads = new Map(leaders.map((group) => [group, top && group !== top && group.mean !== null ? lead(top, group, state.metric) : null]));
  const rivals = leaders.filter((group) => leads.get(group));
  const best = rivals.length > 0 && rivals.every((group) => leads.get(group).ahead) ? top : null;
  byId('glance-note').textContent = top ? verdict(top, rivals, leads) : '';
  return body.replaceChildren(...leaders.slice(0, 12).map((group) => glanceCard(view, group, {top, best, gap: leads.get(group)})));
}

// The best setting of each algorithm; of a single algorithm the best settings.
function leadersOf(view) {
  const all = settingsOf(view);
  const names = [...new Set(all.map((group) => group.algorithm))].sort((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
  return names.length === 1 ? all.slice(0, 5) : names.map((name) => all.find((group) => group.algorithm === name));
}

// One sentence: who is ahead of whom, or that seeds cannot tell.
function verdict(top, rivals, leads) {
  if (!rivals.length) return '';
  const name = (group) => (rivals.every((other) => other.algorithm === top.algorithm) ? group.label : algorithmName(group.algorithm));
  const unclear = rivals.filter((group) => !leads.get(group).ahead).sort((a, b) => better(a, b, state.metric));
  const closest = [...(unclear.length ? unclear : rivals)].sort((a, b) => better(a, b, state.metric))[0];
  const gap = leads.get(closest);
  const unit = isShare(state.metric) ? ' points' : '';
  if (gap.seeds < 2) return `No best: ${name(top)} and ${name(closest)} have ${gap.seeds === 1 ? 'one common seed' : 'no common seed'}, which does not show the noise of seeds.`;
  const range = `${gap.seeds} common seeds, 95 %: ${interval(gap, state.metric)}${unit}`;
  return unclear.length ? `No best: ${name(top)} and ${name(closest)} cannot be told apart (${range}).`
    : `${name(top)} is ahead of ${name(closest)} beyond the noise of seeds (${range}).`;
}

function glanceCard(view, group, {top, best, gap}) {
  const members = view.runs.filter((run) => run.algorithm === group.algorithm);
  const single = new Set(view.runs.map((run) => run.algorithm)).size === 1;
  const settings = single ? 1 : new Set(members.map((run) => run.hash)).size;
  const count = single ? group.runs.length : members.length;
  const lost = (single ? group.runs : members).filter((run) => run.status === 'diverged').length;
  const measured = group.mean !== null;
  const words = [`${settings} ${settings === 1 ? 'setting' : 'settings'} · ${count} ${count === 1 ? 'run' : 'runs'}`];
  if (lost) words.push(`${lost} diverged`);
  const isGap = measured && top !== null && group !== top && !group.diverged;
  const told = gap && gap.low !== null ? `${interval({low: -gap.high, high: -gap.low}, state.metric)}, 95 % over ${gap.seeds} common seeds` : 'no two common seeds';
  return el('button', {type: 'button', class: `card-mini${group === best ? ' best' : ''}`, title: 'Show its line',
    onclick: () => { if (!current.lines.some((line) => line.id === group.id)) toggleGroupAnywhere(group); }},
  el('b', {}, el('i', {class: 'swatch', style: {background: single && slots.has(group.id) ? colourOf(group.id) : algorithmColour(group.algorithm)}}),
    algorithmName(group.algorithm), group === best ? [' ', el('span', {class: 'badge'}, 'best')] : null),
  el('span', {class: 'big'}, measured ? score(group.mean, state.metric) : '–',
    el('small', {}, `${measured && isShare(state.metric) ? ' %' : ''}${group.sd !== null ? ` ± ${score(group.sd, state.metric)}` : ''}`),
    isGap ? el('small', {class: gap && gap.ahead ? 'gap' : 'gap noise', title: told}, gapText(group, top)) : null),
  el('span', {class: 'muted'}, group.label.split(', ').slice(1).join(', ') || ' '),
  el('span', {class: 'muted small'}, [seedsText(group), ...words].filter(Boolean).join(' · ')));
}

function gapText(group, top) {
  return `${lessIsBetter(state.metric) ? '+' : '−'}${score(Math.abs(group.mean - top.mean), state.metric)}`;
}

// Which seeds are in a mean; the one that chose the setting is not.
function seedsText(group) {
  const seeds = [...group.scores.keys()].sort((a, b) => a - b);
  if (!seeds.length) return '';
  const text = seeds.length > 6 ? `${seeds.length} seeds` : `${seeds.length === 1 ? 'seed' : 'seeds'} ${seeds.join(', ')}`;
  if (!group.chooser) return text;
  const left = !group.used.includes(group.chooser);
  return left ? `${text}; seed ${group.chooser.seed} chose it (${score(scoreOf(group.chooser, state.metric), state.metric)})` : `${text}, which chose it`;
}

function problemCards(view) {
  return problems.map((problem, place) => [problem, view.runs.filter((run) => run.problem === place)]).filter(([, some]) => some.length)
    .map(([{id, label}, some]) => {
      const names = [...new Set(some.map((run) => run.algorithm))].sort((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
      return el('button', {type: 'button', class: 'card-mini', title: 'Compare these', onclick: () => { state.problem = id; changed('problem'); }},
        el('b', {}, label), el('span', {class: 'muted'}, names.map(algorithmName).join(', ')),
        el('span', {class: 'muted small'}, `${some.length} ${some.length === 1 ? 'run' : 'runs'}`));
    });
}
