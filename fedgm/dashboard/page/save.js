// What is shown, as files: pictures of the curves, tables for a spreadsheet or a paper.

const TEX = {'η': '$\\eta$', 'β': '$\\beta$', 'ν': '$\\nu$', 'α': '$\\alpha$', '→': '$\\to$', '±': '$\\pm$', '−': '$-$', '–': '--', '★': '$\\star$', '…': '\\dots{}',
  '\\': '\\textbackslash{}', '~': '\\textasciitilde{}', '^': '\\textasciicircum{}'};

function saveFile(name, kind, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type: kind}));
  el('a', {href: address, download: `${(byId('title').textContent || 'fedgm').replace(/[^\w.-]+/g, '-')}-${name}`}).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined || Number.isNaN(value) ? '' : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join()).join('\n') + '\n';
}

function tex(text) {
  return String(text).replace(/[ηβνα→±−–★…\\~^]/g, (sign) => TEX[sign]).replace(/([&%#_]|(?<!\$)\{(?!\}))/g, (sign) => `\\${sign}`);
}

function latex(head, rows, numbers) {
  const line = (cells) => `${cells.map(tex).join(' & ')} \\\\`;
  const columns = head.map((_, i) => (numbers[i] ? 'r' : 'l')).join('');
  return ['% \\usepackage{booktabs}', `\\begin{tabular}{${columns}}`, '\\toprule', line(head), '\\midrule', ...rows.map(line), '\\bottomrule', '\\end{tabular}', ''].join('\n');
}

// The cards: a line for each.
function glanceRows() {
  return leadersOf(current).filter((group) => group.mean !== null);
}

function glanceCsv() {
  const head = ['algorithm', 'setting', state.metric, 'sd', 'seeds', 'problem'];
  return csv([head, ...glanceRows().map((group) => [algorithmName(group.algorithm), group.label, group.mean, group.sd, [...group.scores.keys()].join(' '), current.problem])]);
}

function glanceTex() {
  const rows = glanceRows().map((group) => [group.label, withSpread(group.mean, group.sd, state.metric), group.scores.size]);
  return latex(['setting', metricTitle(state.metric), 'seeds'], rows, [false, true, true]);
}

function curvesCsv() {
  const rows = [];
  for (const chart of charts) {
    for (const {label, curve} of chart.lines) {
      for (let i = 0; i < curve.n; i += 1) {
        if (chosen.zoom && (curve.x[i] < chosen.zoom[0] || curve.x[i] > chosen.zoom[1])) continue;
        const spread = curve.seeds > 1 ? [curve.low[i], curve.high[i], curve.sd[i]] : ['', '', ''];
        rows.push([chart.metric, label, curve.round[i], curve.x[i], curve.y[i], ...spread, curve.seeds]);
      }
    }
  }
  return csv([['metric', 'line', 'round', AXES[state.x], 'mean', 'lowest', 'highest', 'sd', 'runs'], ...rows]);
}

// All charts, two in a row, with their titles, and the legend below.
function picture(makeInk) {
  const gap = 20;
  const across = Math.min(2, charts.length);
  const wide = Math.max(...charts.map((chart) => chart.size[0]));
  const high = Math.max(...charts.map((chart) => chart.size[1])) + 24;
  const lines = current.lines;
  const width = across * wide + (across - 1) * gap;
  const rows = Math.ceil(charts.length / across);
  const ink = makeInk(width, rows * (high + gap) + 20 * lines.length + 10);
  ink.fillStyle = css('--card'); ink.fillRect(0, 0, width, rows * (high + gap) + 20 * lines.length + 10);
  charts.forEach((chart, i) => {
    ink.save();
    ink.translate((i % across) * (wide + gap), Math.floor(i / across) * (high + gap));
    ink.fillStyle = css('--ink'); ink.font = `600 ${FONT}`; ink.textAlign = 'left'; ink.textBaseline = 'top';
    ink.fillText(metricTitle(chart.metric), MARGIN.left, 4);
    ink.font = FONT;
    ink.translate(0, 24);
    chart.render(ink);
    ink.restore();
  });
  lines.forEach((group, i) => {
    const y = rows * (high + gap) + 20 * i + 8;
    ink.strokeStyle = colourOf(group.id); ink.lineWidth = 2.5; ink.setLineDash(dashOf(group.id));
    ink.beginPath(); ink.moveTo(MARGIN.left, y); ink.lineTo(MARGIN.left + 30, y); ink.stroke(); ink.setLineDash([]);
    ink.fillStyle = css('--ink'); ink.textAlign = 'left'; ink.textBaseline = 'middle'; ink.font = FONT;
    ink.fillText(`${group.label}: ${withSpread(group.mean, group.sd, state.metric)}`, MARGIN.left + 40, y);
  });
  return ink;
}

function parallelPicture(makeInk) {
  const ink = makeInk(parallel.width, parallel.height);
  ink.fillStyle = css('--card'); ink.fillRect(0, 0, parallel.width, parallel.height);
  renderParallel(ink);
  return ink;
}

function asSvg(draw) { return draw((width, height) => new SvgInk(width, height)).toString(); }

function asPng(draw) {
  const canvas = document.createElement('canvas');
  draw((width, height) => {
    const ink = prepareCanvas(canvas, width, height, 2);
    return ink;
  });
  return new Promise((done) => { canvas.toBlob(done, 'image/png'); });
}

function heatCsv() {
  const {x, y, z, groups} = heatShown;
  const keys = [x, y, z].filter((key) => key !== NONE);
  const value = (group, key) => { const one = valueOf(group.runs[0], key); return one === ABSENT ? '' : shown(one); };
  return csv([[...keys, 'setting', state.metric, 'sd', 'runs', 'diverged'],
    ...groups.map((group) => [...keys.map((key) => value(group, key)), group.label, group.lost ? '' : group.mean, group.sd, group.runs.length, group.diverged])]);
}

// The table as it is sorted, every row; a link or a bar becomes its text.
function runsTable() {
  const columns = tableColumns(current);
  const text = (cell) => (cell instanceof Node ? cell.textContent : String(cell));
  const sorted = [...current.runs].sort(sorter(columns));
  return {columns, sorted, text};
}

function runsCsv() {
  const {columns, sorted} = runsTable();
  return csv([columns.map((one) => one.name), ...sorted.map((run) => columns.map((one) => { const value = one.value(run); return typeof value === 'number' ? value : shown(value); }))]);
}

function runsTex() {
  const {columns, sorted, text} = runsTable();
  const kept = columns.filter((one) => one.id !== 'hash');
  return latex(kept.map((one) => one.name), sorted.map((run) => kept.map((one) => text(one.text ? one.text(run) : shown(one.value(run))))), kept.map((one) => one.num === true));
}

const SAVED = {
  'glance-csv': () => saveFile('scores.csv', 'text/csv', glanceCsv()),
  'glance-tex': () => saveFile('scores.tex', 'text/plain', glanceTex()),
  'curves-svg': () => saveFile('curves.svg', 'image/svg+xml', asSvg(picture)),
  'curves-png': async () => saveFile('curves.png', 'image/png', await asPng(picture)),
  'curves-csv': () => saveFile('curves.csv', 'text/csv', curvesCsv()),
  'heat-csv': () => saveFile('map.csv', 'text/csv', heatCsv()),
  'parallel-svg': () => saveFile('settings.svg', 'image/svg+xml', asSvg(parallelPicture)),
  'parallel-png': async () => saveFile('settings.png', 'image/png', await asPng(parallelPicture)),
  'runs-csv': () => saveFile('runs.csv', 'text/csv', runsCsv()),
  'runs-tex': () => saveFile('runs.tex', 'text/plain', runsTex()),
};

function listenToSave() {
  for (const button of document.querySelectorAll('[data-save]')) button.addEventListener('click', SAVED[button.dataset.save]);
}
