// How stale the models were from which clients started: a histogram for each line that had any.

const BINS = 16;

function drawStaleness(view) {
  const stale = view.groups.filter((group) => group.runs.some((run) => run.staleness.length));
  const section = byId('staleness');
  section.hidden = !stale.length;
  if (!stale.length) return;
  const seen = view.lines.filter((group) => stale.includes(group));
  const shownGroups = (seen.length ? seen : stale).slice(0, 12);
  const most = Math.max(...shownGroups.flatMap((group) => group.runs.flatMap((run) => run.staleness.map(([value]) => value))));
  section.querySelector('.body').replaceChildren(...shownGroups.map((group) => histogram(group, most)));
  section.querySelector('.caption').textContent = 'Rounds by the mean staleness of their clients: how many server steps old the model was from which they started.';
}

function histogram(group, most) {
  const counts = new Array(BINS).fill(0);
  let total = 0;
  let sum = 0;
  for (const run of group.runs) {
    for (const [value, count] of run.staleness) {
      counts[Math.min(BINS - 1, Math.floor(BINS * value / (most || 1)))] += count;
      total += count; sum += value * count;
    }
  }
  const top = Math.max(...counts);
  const bars = counts.map((count, i) => el('i', {style: {height: `${top ? 100 * count / top : 0}%`, background: slots.has(group.id) ? colourOf(group.id) : css('--accent')},
    title: `${number(most * i / BINS, 3)} to ${number(most * (i + 1) / BINS, 3)}: ${count} rounds`}));
  return el('figure', {class: 'histogram'}, el('figcaption', {title: group.label}, group.label), el('div', {class: 'bars'}, bars),
    el('div', {class: 'axis'}, el('span', {}, '0'), el('span', {}, `mean ${number(total ? sum / total : 0, 3)}`), el('span', {}, number(most, 3))));
}
