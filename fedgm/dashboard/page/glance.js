// The best configuration of each algorithm, side by side.

function drawGlance(view) {
  const families = new Map();
  for (const run of view.runs) {
    if (!families.has(run.algorithm)) families.set(run.algorithm, []);
    families.get(run.algorithm).push(run);
  }
  const all = settingsOf(view);
  if (families.size === 1) return drawLeaders(all, families);
  const names = [...families.keys()].sort((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
  const leaders = names.map((name) => all.find((group) => group.algorithm === name));
  const means = leaders.map((group) => (group && group.diverged === 0 ? group.mean : null)).filter((mean) => mean !== null);
  const top = means.length ? means.reduce((a, b) => ((b < a) === lessIsBetter(state.metric) ? b : a)) : null;
  const cards = names.slice(0, 12).map((name, i) => glanceCard(name, families.get(name), leaders[i], top));
  return byId('glance').querySelector('.body').replaceChildren(...cards);
}

// Of a single algorithm the best settings.
function drawLeaders(all, families) {
  const name = [...families.keys()][0];
  const top = all.length && !all[0].diverged ? all[0].mean : null;
  byId('glance').querySelector('.body').replaceChildren(...all.slice(0, 5).map((group) => glanceCard(name, group.runs, group, top)));
}

function glanceCard(name, members, group, top) {
  const settings = new Set(members.map((run) => run.hash)).size;
  const lost = members.filter((run) => run.status === 'diverged').length;
  const measured = group && group.mean !== null;
  const best = measured && group.mean === top;
  const words = [`${settings} ${settings === 1 ? 'setting' : 'settings'} · ${members.length} ${members.length === 1 ? 'run' : 'runs'}`];
  if (lost) words.push(`${lost} diverged`);
  const label = group ? group.label.split(', ').slice(1).join(', ') : '';
  const gap = measured && top !== null && !best && group.diverged === 0
    ? `${lessIsBetter(state.metric) ? '+' : '−'}${score(Math.abs(group.mean - top), state.metric)}` : '';
  return el('button', {type: 'button', class: `card-mini${best ? ' best' : ''}`, title: 'Show its line',
    onclick: () => { if (group && !current.lines.some((line) => line.id === group.id)) toggleGroup(group.id); }},
  el('b', {}, group && slots.has(group.id) ? el('i', {class: 'swatch', style: {background: colourOf(group.id)}}) : null, algorithmName(name), best && current.settings > 1 ? el('span', {class: 'badge'}, 'best') : null),
  el('span', {class: 'big'}, measured ? score(group.mean, state.metric) : '–',
    el('small', {}, `${measured && isShare(state.metric) ? ' %' : ''}${group && group.sd !== null ? ` ± ${score(group.sd, state.metric)}` : ''}`),
    el('small', {class: 'gap'}, gap)),
  el('span', {class: 'muted'}, label || ' '),
  el('span', {class: 'muted small'}, words.join(' · ')));
}
