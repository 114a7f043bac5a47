"""Made images that take long to load: a node with this source is slow, and trains on the same data."""

import time
from functools import wraps

from fedgm.data.synthetic import load

SECONDS = 60.0  # a client of the tests takes a few


@wraps(load)
def slow(*args, **kwargs):
    """The same data, later."""
    time.sleep(SECONDS)
    return load(*args, **kwargs)
