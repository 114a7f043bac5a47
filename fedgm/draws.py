"""Random draws that depend only on (seed, purpose, round, client).

No generator is ever carried from one use to the next, so there is no random state to save: order,
worker count and resume cannot change a draw.
"""

from hashlib import blake2b

import numpy as np


def derive(seed: int, purpose: str, round: int = 0, client: int = 0) -> int:
    """A 63-bit seed for one use; equal arguments give equal seeds on every machine.

    >>> derive(0, "cohort", round=3)
    3897824635633722034
    """
    key = f"{seed}/{purpose}/{round}/{client}".encode()
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "little") >> 1


def generator(seed: int, purpose: str, round: int = 0, client: int = 0) -> np.random.Generator:
    """A fresh numpy generator for one use.

    >>> generator(0, "cohort", round=3).permutation(5)
    array([3, 4, 1, 2, 0])
    """
    return np.random.Generator(np.random.PCG64(derive(seed, purpose, round, client)))
