"""Data of nodes that are no use: a node with one of these sources sends NaN, or an error."""

import math
from functools import wraps

from fedgm.data.synthetic import load


@wraps(load)
def nan(*args, **kwargs):
    """Images whose pixels become NaN when they are scaled."""
    return load(*args, **kwargs)._replace(mean=(math.nan,) * 3)


@wraps(load)
def unreadable(*args, **kwargs):
    """An error of the node's own."""
    raise OSError("no disk")
