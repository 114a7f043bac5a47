// A served page asks its own server for newer data; everything the reader chose stays.

const POLL = 2500; // milliseconds

function follow() {
  if (document.documentElement.dataset.mode !== 'live') return;
  const mark = byId('live');
  mark.hidden = false;
  let tag = null;
  const ask = async () => {
    try {
      const answer = await fetch('data.json', {headers: tag ? {'If-None-Match': tag} : {}, cache: 'no-store'});
      if (answer.status === 200) {
        tag = answer.headers.get('ETag');
        take(await answer.json());
      }
      mark.textContent = runs.some((run) => run.status === 'running') ? 'live' : 'live, nothing is running';
      mark.className = 'on';
    } catch {
      mark.textContent = 'server stopped';
      mark.className = 'off';
    }
    setTimeout(ask, POLL);
  };
  setTimeout(ask, POLL);
}
