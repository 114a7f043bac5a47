// Which charts there are: a metric and a scale for each, kept in the address.

const charts = [];

// Metrics of the charts: the first is what runs are scored by.
function panelMetrics() {
  const wanted = state.panels === '' ? [defaultSecond()] : unpack(state.panels);
  return [state.metric, ...wanted.filter((name) => metrics.includes(name))];
}

function setPanel(place, metric) {
  if (place === 0) { state.metric = metric; changed('metric'); return; }
  const names = panelMetrics().slice(1);
  names[place - 1] = metric;
  state.panels = pack(names);
  refresh('curves');
}

function addPanel() {
  const names = panelMetrics();
  const next = metrics.find((name) => !names.includes(name)) || state.metric;
  state.panels = pack([...names.slice(1), next]);
  refresh('curves');
}

function removePanel(place) {
  state.logs = [...logPlaces()].filter((at) => at !== place).map((at) => (at > place ? at - 1 : at)).join();
  state.panels = pack(panelMetrics().slice(1).filter((_, i) => i !== place - 1));
  refresh('curves');
}

function logPlaces() { return new Set(state.logs.split(',').filter(Boolean).map(Number)); }
function isLog(place) { return logPlaces().has(place); }

function setLog(place, on) {
  const places = logPlaces();
  if (on) places.add(place); else places.delete(place);
  state.logs = [...places].sort().join();
  refresh('curves');
}
