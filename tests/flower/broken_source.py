"""Data of nodes that are no use: a node with one of these sources sends NaN, or nothing at all."""

import math
import os
from functools import wraps

from fedgm.data.synthetic import load


@wraps(load)
def nan(*args, **kwargs):
    """Images whose pixels become NaN when they are scaled."""
    return load(*args, **kwargs)._replace(mean=(math.nan,) * 3)


@wraps(load)
def crash(*args, **kwargs):
    """The end of the process, before it can say why."""
    os._exit(1)
