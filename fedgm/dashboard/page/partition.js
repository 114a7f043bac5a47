// Who has how much of which class: a bar for each client, a colour for each class.

const CLASS_COLOURS = ['#4c78a8', '#f58518', '#54a24b', '#e45756', '#b279a2', '#9d755d', '#ff9da6', '#8c96a3', '#e3c13b', '#3fb8af'];

function drawPartition(splits) {
  byId('partition').hidden = !splits.length;
  byId('partition').querySelector('.body').replaceChildren(...splits.map(splitFigure));
}

function splitFigure(split) {
  const sizes = split.counts.map((row) => row.reduce((a, b) => a + b, 0));
  const most = Math.max(1, ...sizes);
  const colour = (i) => CLASS_COLOURS[i % CLASS_COLOURS.length];
  const bars = split.counts.map((row, client) => el('div', {class: 'client', title: `client ${client}: ${sizes[client]} samples; `
    + row.map((count, i) => [count, split.classes[i]]).filter(([count]) => count).map(([count, name]) => `${name} ${count}`).join(', ')},
  row.map((count, i) => el('i', {style: {height: `${100 * count / most}%`, background: colour(i)}}))));
  const names = split.classes.slice(0, 20).map((name, i) => el('span', {}, el('i', {class: 'swatch', style: {background: colour(i)}}), name));
  const range = `${Math.min(...sizes)} to ${Math.max(...sizes)} samples`;
  const first = split.clients > split.counts.length ? `the first ${split.counts.length} of ${split.clients.toLocaleString('en-US')} clients` : `${split.clients} clients`;
  return el('figure', {class: 'split'}, el('figcaption', {}, split.title), el('div', {class: 'clients'}, bars),
    el('div', {class: 'classes'}, names), el('p', {class: 'caption'}, `${first}, ${range}; ${split.runs} ${split.runs === 1 ? 'run' : 'runs'}`));
}
