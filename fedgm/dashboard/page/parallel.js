// Parallel coordinates of a sweep: a line for each setting, coloured by its score; drag along an axis to select.

const PARALLEL_MOST = 9;
let parallel = null;

function drawParallel(view) {
  const root = byId('parallel');
  const keys = view.keys.slice(0, PARALLEL_MOST - 1);
  const groups = settingsOf(view).filter((group) => group.mean !== null && !group.lost).reverse();
  const body = root.querySelector('.body');
  const canvas = el('canvas', {role: 'img', 'aria-label': `${groups.length} settings over ${keys.length} keys`});
  body.replaceChildren(canvas);
  for (const key of [...chosen.brushes.keys()]) if (key !== 'score' && !keys.includes(key)) chosen.brushes.delete(key);
  const width = Math.max(300, body.clientWidth);
  const height = 320;
  const axes = [...keys.map((key) => valueAxis(view, key)), scoreAxis(groups)];
  const gap = (width - 128) / Math.max(1, axes.length - 1);
  axes.forEach((axis, i) => { axis.x = 64 + i * gap; });
  parallel = {canvas, axes, groups, width, height, gap, range: heatRange(groups.map((group) => group.mean))};
  paintParallel();
  listenParallel();
}

function valueAxis(view, key) {
  const values = [...(isPartial(view.runs, key) ? [ABSENT] : []), ...levels(view.runs, key)];
  const many = values.length > 12 && values.every((value) => typeof value === 'number');
  const place = new Map(values.map((value, i) => [JSON.stringify(value), values.length === 1 ? 0.5 : i / (values.length - 1)]));
  const ends = [values[0], values[values.length - 1]];
  const text = (value) => (key === 'algorithm' ? algorithmName(value) : shown(value));
  return {key, label: keyLabel(key, view.keys), at: (group) => place.get(JSON.stringify(valueOf(group.runs[0], key))),
    marks: (many ? ends : values).map((value) => [place.get(JSON.stringify(value)), text(value)])};
}

function scoreAxis(groups) {
  const means = groups.map((group) => group.mean);
  const [low, high] = means.length ? [Math.min(...means), Math.max(...means)] : [0, 1];
  const at = (value) => (high > low ? (value - low) / (high - low) : 0.5);
  const count = high > low ? linearTicks(low, high, 5) : [low];
  return {key: 'score', label: metricTitle(state.metric), at: (group) => at(group.mean), marks: count.map((value) => [at(value), score(value, state.metric)])};
}

function passes(group) {
  return parallel.axes.every((axis) => {
    const brush = chosen.brushes.get(axis.key);
    const place = axis.at(group);
    return !brush || (place !== undefined && place >= brush[0] && place <= brush[1]);
  });
}

function paintParallel() {
  const {canvas, groups, width, height} = parallel;
  renderParallel(prepareCanvas(canvas, width, height));
  const inside = groups.filter(passes);
  const best = inside.length ? inside[inside.length - 1] : null;
  const words = chosen.brushes.size ? `${inside.length} of ${groups.length} settings selected. Click an axis to undo.` : 'A line is a setting. Drag along an axis to select.';
  byId('parallel').querySelector('.caption').textContent = words + (best ? ` ${lessIsBetter(state.metric) ? 'Lowest' : 'Highest'}: ${best.label}, ${withSpread(best.mean, best.sd, state.metric)}.` : '');
}

// Onto the page, or into a file.
function renderParallel(ink) {
  const {axes, groups, height, range} = parallel;
  const y = (share) => height - 24 - share * (height - 84);
  const inside = groups.filter(passes);
  const selected = new Set(inside);
  for (const group of groups) {
    const on = selected.has(group);
    const share = range[1] === range[0] ? 0.7 : (group.mean - range[0]) / (range[1] - range[0]);
    ink.strokeStyle = on ? heatColour(isDark() ? 0.3 + 0.7 * share : 0.93 * share).fill : css('--other');
    ink.globalAlpha = on ? 0.85 : 0.2; ink.lineWidth = on ? 1.8 : 1;
    ink.beginPath();
    axes.forEach((axis, i) => {
      const place = axis.at(group);
      if (place === undefined) return;
      const before = axes[i - 1];
      const from = before && before.at(group);
      if (from === undefined) ink.moveTo(axis.x, y(place));
      else { const half = (before.x + axis.x) / 2; ink.bezierCurveTo(half, y(from), half, y(place), axis.x, y(place)); }
    });
    ink.stroke();
  }
  ink.globalAlpha = 1;
  ink.font = `600 ${FONT}`;
  const crowded = axes.some((axis) => ink.measureText(axis.label).width > parallel.gap - 10);
  parallel.canvas.dataset.titles = JSON.stringify(axes.map((axis, i) => paintAxis(ink, axis, y, crowded ? i % 2 : 0)));
}

// The text, shortened to a width.
function fitted(ink, text, width) {
  if (ink.measureText(text).width <= width) return text;
  let length = text.length - 1;
  while (length > 1 && ink.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}

// Long titles stand in two rows and are as wide as two gaps at most, so that neighbours never meet. Returns the title's box.
function paintAxis(ink, axis, y, row) {
  ink.font = FONT;
  ink.strokeStyle = css('--muted'); ink.lineWidth = 1;
  ink.beginPath(); ink.moveTo(axis.x, y(0)); ink.lineTo(axis.x, y(1)); ink.stroke();
  const brush = chosen.brushes.get(axis.key);
  if (brush) { ink.fillStyle = css('--select'); ink.fillRect(axis.x - 9, y(brush[1]), 18, y(brush[0]) - y(brush[1])); }
  ink.textAlign = axis.key === 'score' ? 'left' : 'right'; ink.textBaseline = 'middle'; ink.lineJoin = 'round';
  const write = (text, place, colour, shift) => {
    ink.strokeStyle = css('--card'); ink.lineWidth = 4; ink.strokeText(text, axis.x + shift, place);
    ink.fillStyle = colour; ink.fillText(text, axis.x + shift, place);
  };
  for (const [share, text] of axis.marks) write(fitted(ink, String(text), axis === parallel.axes[0] ? axis.x - 8 : Math.max(24, parallel.gap - 16)), y(share), css('--ink'), axis.key === 'score' ? 7 : -7);
  ink.font = `600 ${FONT}`;
  ink.textAlign = 'center';
  const room = Math.min(2 * parallel.gap - 10, 2 * Math.min(axis.x, parallel.width - axis.x) - 4);
  const title = fitted(ink, axis.label, room);
  write(title, row ? 30 : 12, css('--ink'), 0);
  const wide = ink.measureText(title).width;
  ink.font = FONT;
  return {title, left: axis.x - wide / 2, right: axis.x + wide / 2, row};
}

function listenParallel() {
  const {canvas, axes, height} = parallel;
  let start = null;
  const share = (event) => Math.max(0, Math.min(1, (height - 24 - (event.clientY - canvas.getBoundingClientRect().top)) / (height - 84)));
  const near = (event) => {
    const x = event.clientX - canvas.getBoundingClientRect().left;
    return axes.reduce((a, b) => (Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a));
  };
  canvas.addEventListener('pointerdown', (event) => { start = {axis: near(event), at: share(event)}; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener('pointermove', (event) => {
    if (!start) return;
    chosen.brushes.set(start.axis.key, [Math.min(start.at, share(event)) - 0.01, Math.max(start.at, share(event)) + 0.01]);
    paintParallel();
  });
  canvas.addEventListener('pointerup', (event) => {
    if (start && Math.abs(share(event) - start.at) < 0.01) { chosen.brushes.delete(start.axis.key); paintParallel(); }
    start = null;
    writeAddress();
  });
}
