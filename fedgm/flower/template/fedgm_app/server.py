"""The server's side: the run that `words` in pyproject.toml name, in a run folder where the SuperLink works.

The same words continue a run that was killed. `fedgm list`, `show`, `compare`, `dashboard` and `sync` read
the folder as that of a simulation. Parts of your own go into this package, and are named by their `_target_`:
words = "... data.source._target_=fedgm_app.data.Mine".
"""

from fedgm.flower import server_app

app = server_app()
