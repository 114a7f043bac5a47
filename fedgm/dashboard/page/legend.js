// The list of lines beside the charts: click to show or hide, point to highlight.

const LEGEND_MOST = 200;

function drawLegend(view) {
  const seen = new Set(view.lines.map((group) => group.id));
  const order = [...view.groups.filter((group) => seen.has(group.id)), ...view.groups.filter((group) => !seen.has(group.id))];
  const rows = order.slice(0, LEGEND_MOST).map((group) => legendRow(group, seen.has(group.id)));
  const note = order.length > LEGEND_MOST ? [el('p', {class: 'caption'}, `and ${order.length - LEGEND_MOST} more: filter to see them`)] : [];
  const few = (count) => () => { chosen.groups = view.groups.slice(0, count).map((group) => group.id); refresh('glance', 'curves', 'table', 'staleness'); };
  byId('legend').replaceChildren(
    el('div', {class: 'head'}, el('span', {class: 'muted'}, view.picked ? `the ${order.length} picked runs` : `${seen.size} of ${order.length} lines`),
      view.picked ? el('button', {type: 'button', class: 'link', onclick: () => { chosen.picked.clear(); refresh(); }}, 'unpick') : null,
      el('button', {type: 'button', class: 'link', id: 'show-best', onclick: () => { chosen.groups = null; refresh('glance', 'curves', 'table', 'staleness'); }}, 'best'),
      el('button', {type: 'button', class: 'link', id: 'show-all', onclick: few(32)}, order.length > 32 ? 'top 32' : 'all'),
      el('button', {type: 'button', class: 'link', id: 'show-none', onclick: few(0)}, 'none')),
    el('div', {class: 'list'}, rows), ...note);
}

function legendRow(group, on) {
  const highlight = (id) => () => {
    for (const chart of charts) { chart.highlight = on ? id : null; chart.draw(chart.lines, chart.rest, chart.options); }
  };
  const seeds = group.runs.length > 1 ? ` · ${group.runs.length} runs` : '';
  const busy = group.running ? ` · ${group.running === group.runs.length ? '' : `${group.running} `}running` : '';
  const lost = group.diverged ? ` · ${group.diverged} diverged` : '';
  return el('button', {type: 'button', class: `line${on ? ' on' : ''}`, 'aria-pressed': String(on), title: group.label,
    onclick: () => toggleGroup(group.id), onpointerenter: highlight(group.id), onpointerleave: highlight(null)},
  strokeSample(group.id, on), el('span', {class: 'name'}, group.label, el('small', {}, seeds + busy + lost)),
  el('span', {class: 'num'}, withSpread(group.mean, group.sd, state.metric)));
}

function strokeSample(id, on) {
  const dashed = on && dashOf(id).length;
  return el('i', {class: `stroke${dashed ? ' dashed' : ''}`, style: {borderColor: on ? colourOf(id) : css('--other')}});
}

function toggleGroup(id) {
  const now = current.lines.map((group) => group.id);
  chosen.groups = now.includes(id) ? now.filter((other) => other !== id) : [...now, id];
  refresh('glance', 'curves', 'table', 'staleness');
}
