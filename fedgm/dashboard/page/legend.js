// The list of lines beside the charts: click to show or hide, point to highlight.

const LEGEND_FEW = 8; // of the lines that are not shown
const LEGEND_STEP = 100;

function drawLegend(view) {
  const seen = new Set(view.lines.map((group) => group.id));
  const hidden = view.groups.filter((group) => !seen.has(group.id));
  const some = hidden.slice(0, LEGEND_FEW + chosen.legend);
  const left = hidden.length - some.length;
  const rows = [...view.groups.filter((group) => seen.has(group.id)), ...some].map((group) => legendRow(group, seen.has(group.id)));
  const more = left ? [el('button', {type: 'button', class: 'link', id: 'legend-more', onclick: () => { chosen.legend += LEGEND_STEP; drawLegend(current); }}, `and ${left} more`)] : [];
  const few = (count) => () => { chosen.groups = view.groups.slice(0, count).map((group) => group.id); refresh('glance', 'curves', 'table', 'staleness'); };
  byId('legend').replaceChildren(
    el('div', {class: 'head'}, el('span', {class: 'muted'}, view.picked ? `the ${view.groups.length} picked runs` : `${seen.size} of ${view.groups.length} lines`),
      view.picked ? el('button', {type: 'button', class: 'link', onclick: () => { chosen.picked.clear(); refresh(); }}, 'unpick') : null,
      el('button', {type: 'button', class: 'link', id: 'show-best', onclick: () => { chosen.groups = null; refresh('glance', 'curves', 'table', 'staleness'); }}, 'default'),
      el('button', {type: 'button', class: 'link', id: 'show-all', onclick: few(32)}, view.groups.length > 32 ? 'top 32' : 'all'),
      el('button', {type: 'button', class: 'link', id: 'show-none', onclick: few(0)}, 'none')),
    el('div', {class: 'list'}, rows), ...more);
}

function legendRow(group, on) {
  const highlight = (id) => () => { for (const chart of charts) { chart.highlight = on ? id : null; chart.redraw(); } };
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
