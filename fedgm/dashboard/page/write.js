// Tables as text: CSV for a spreadsheet, LaTeX for a paper.

const TEX = {'η': '$\\eta$', 'β': '$\\beta$', 'ν': '$\\nu$', 'α': '$\\alpha$', '→': '$\\to$', '±': '$\\pm$', '−': '$-$', '–': '--', '★': '$\\star$', '…': '\\dots{}',
  '\\': '\\textbackslash{}', '~': '\\textasciitilde{}', '^': '\\textasciicircum{}'};

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
