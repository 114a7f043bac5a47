// A drawing surface that writes SVG: as much of the canvas as the charts use, so that both are drawn by one code.

class SvgInk {
  constructor(width, height) {
    Object.assign(this, {width, height, parts: [], path: [], stack: [], depth: 0, clips: 0, dash: [], box: null,
      fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, globalAlpha: 1, font: FONT, textAlign: 'left', textBaseline: 'alphabetic', lineJoin: 'round'});
    this.ruler = new OffscreenCanvas(1, 1).getContext('2d');
  }

  beginPath() { this.path = []; this.box = null; }
  moveTo(x, y) { this.path.push(`M${trim(x)} ${trim(y)}`); }
  lineTo(x, y) { this.path.push(`${this.path.length ? 'L' : 'M'}${trim(x)} ${trim(y)}`); }
  bezierCurveTo(...v) { this.path.push(`C${v.map(trim).join(' ')}`); }
  rect(x, y, w, h) { this.box = [x, y, w, h]; }
  arc(x, y, r) { this.path.push(`M${trim(x - r)} ${trim(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`); }
  setLineDash(dash) { this.dash = dash; }
  measureText(text) { this.ruler.font = this.font; return this.ruler.measureText(text); }

  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(' ')}"` : '';
    this.add(`<path d="${this.path.join('')}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-linejoin="round"${dash}${this.alpha()}/>`);
  }

  fill() { this.add(`<path d="${this.path.join('')}Z" fill="${this.fillStyle}"${this.alpha()}/>`); }

  fillRect(x, y, w, h) { this.add(`<rect x="${trim(x)}" y="${trim(y)}" width="${trim(w)}" height="${trim(h)}" fill="${this.fillStyle}"${this.alpha()}/>`); }

  fillText(text, x, y) { this.add(this.words(text, x, y, `fill="${this.fillStyle}"`)); }

  strokeText(text, x, y) { this.add(this.words(text, x, y, `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-linejoin="round"`)); }

  words(text, x, y, look) {
    const anchor = {center: 'middle', right: 'end'}[this.textAlign] || 'start';
    const shift = {middle: '.35em', top: '.8em'}[this.textBaseline] || '0';
    const [, weight, size] = /^(\d+ |bold )?(\d+)px/.exec(this.font) || [null, '', '12'];
    return `<text x="${trim(x)}" y="${trim(y)}" dy="${shift}" text-anchor="${anchor}" font-size="${size}" font-weight="${(weight || '400').trim()}" ${look}${this.alpha()}>${escapeXml(text)}</text>`;
  }

  // A clip or a shift is a group that restore() closes.
  save() { this.stack.push(this.depth); }
  restore() { const depth = this.stack.pop() ?? 0; while (this.depth > depth) { this.parts.push('</g>'); this.depth -= 1; } }
  translate(x, y) { this.parts.push(`<g transform="translate(${trim(x)} ${trim(y)})">`); this.depth += 1; }
  clip() {
    const [x, y, w, h] = this.box;
    this.clips += 1;
    this.parts.push(`<clipPath id="c${this.clips}"><rect x="${trim(x)}" y="${trim(y)}" width="${trim(w)}" height="${trim(h)}"/></clipPath><g clip-path="url(#c${this.clips})">`);
    this.depth += 1;
  }

  add(text) { this.parts.push(text); }
  alpha() { return this.globalAlpha < 1 ? ` opacity="${trim(this.globalAlpha)}"` : ''; }

  toString() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" `
      + `font-family="system-ui, sans-serif">${this.parts.join('\n')}</svg>\n`;
  }
}

function trim(value) { return Number.isFinite(value) ? String(Math.round(value * 100) / 100) : '0'; }

function escapeXml(text) { return String(text).replace(/[&<>"]/g, (sign) => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'})[sign]); }
