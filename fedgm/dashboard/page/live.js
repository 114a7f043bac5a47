// A served page asks its own server for newer data; everything the reader chose stays.

const POLL = 2500; // milliseconds

function follow() {
  if (document.documentElement.dataset.mode !== 'live') return;
  const mark = byId('live');
  mark.hidden = false;
  let tag = null;
  const say = (text, kind) => { mark.textContent = text; mark.className = kind; };
  const ask = async () => {
    try {
      const answer = await fetch('data.json', {headers: tag ? {'If-None-Match': tag} : {}, cache: 'no-store'});
      if (answer.status === 200) {
        tag = answer.headers.get('ETag');
        take(await answer.json());
      }
      if (answer.status === 403) say('server restarted: open the address that it printed', 'off');
      else if (answer.status >= 400) say(`server error ${answer.status}`, 'off');
      else say(runs.some((run) => run.status === 'running') ? 'live' : 'live, nothing is running', 'on');
    } catch {
      say('server stopped', 'off');
    }
    setTimeout(ask, POLL);
  };
  setTimeout(ask, POLL);
}
