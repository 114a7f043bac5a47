// Charts as pictures: drawn once more, into SVG or onto a canvas of their own.

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
