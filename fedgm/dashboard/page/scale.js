// Axes: from values to pixels, and where the marks stand.

function makeScale(low, high, from, to, log) {
  if (log) { low = Math.log10(low); high = Math.log10(high); }
  if (!(high > low)) { const pad = Math.abs(low) * 0.05 || 0.5; low -= pad; high += pad; }
  const factor = (to - from) / (high - low);
  return {
    log, low, high, from, to,
    at: log ? (v) => (v > 0 ? from + (Math.log10(v) - low) * factor : NaN) : (v) => from + (v - low) * factor,
    back: (p) => { const v = low + (p - from) / factor; return log ? 10 ** v : v; },
  };
}

function ticks(scale, count) {
  return scale.log ? logTicks(scale, count) : linearTicks(scale.low, scale.high, count);
}

function linearTicks(low, high, count) {
  if (!(high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high)))) return [low]; // no step would change the number
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999) || power * 10;
  const places = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) places.push(Number((i * step).toPrecision(12)));
  return places;
}

function logTicks(scale, count) {
  const places = [];
  const decades = scale.high - scale.low;
  const steps = decades > count ? [1] : decades > 2 ? [1, 3] : [1, 2, 5];
  for (let p = Math.floor(scale.low); p <= Math.ceil(scale.high); p += 1) {
    for (const m of steps) {
      const place = Math.log10(m) + p;
      if (place >= scale.low - 1e-9 && place <= scale.high + 1e-9) places.push(Number((m * 10 ** p).toPrecision(6)));
    }
  }
  return places.length > 1 ? places : linearTicks(10 ** scale.low, 10 ** scale.high, count);
}

// Ends of an axis that a few runaway values cannot stretch.
function robustRange(values) {
  if (!values.length) return [0, 1];
  const sorted = Float64Array.from(values).sort();
  const low = sorted[0];
  const high = sorted[sorted.length - 1];
  const most = sorted[Math.floor(0.95 * (sorted.length - 1))];
  return [low, most > low && high - low > 4 * (most - low) ? low + 1.6 * (most - low) : high];
}

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

function prepareCanvas(canvas, width, height, ratio = window.devicePixelRatio || 1) {
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  Object.assign(canvas.style, {width: `${width}px`, height: `${height}px`});
  const ink = canvas.getContext('2d');
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  ink.clearRect(0, 0, width, height);
  ink.font = FONT;
  return ink;
}

// A line; where several points fall on one pixel column only the lowest and the highest are drawn.
function strokeLine(ink, x, y, xs, ys, factor) {
  ink.beginPath();
  let open = false;
  let at = null;
  const flush = () => { if (at && at.count > 2) { ink.lineTo(at.px, at.min); ink.lineTo(at.px, at.max); ink.lineTo(at.px, at.last); } };
  for (let i = 0; i < x.length; i += 1) {
    const px = xs.at(x[i]);
    const py = ys.at(y[i] * factor);
    if (Number.isNaN(px) || Number.isNaN(py)) { flush(); open = false; at = null; continue; }
    if (at && Math.abs(px - at.px) < 0.5) {
      at.count += 1; at.min = Math.min(at.min, py); at.max = Math.max(at.max, py); at.last = py;
      if (at.count === 2) ink.lineTo(px, py);
      continue;
    }
    flush();
    if (open) ink.lineTo(px, py); else ink.moveTo(px, py);
    open = true;
    at = {px, min: py, max: py, last: py, count: 1};
  }
  flush();
  ink.stroke();
}
