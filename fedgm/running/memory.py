"""Memory that stays with the process: otherwise glibc gives large blocks back after every step.

A training step allocates and frees the same few blocks of some hundred kilobytes. glibc maps each from the
kernel and unmaps it, so that every step pays for thousands of page faults. Kept in the heap, the blocks are
there for the next step. The price is that memory freed once is not returned to the system until the end.
"""

import ctypes
import platform
import sys
from collections.abc import Generator
from contextlib import contextmanager

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # of <malloc.h>
NEVER = 2**31 - 1
STEP = 64 * 2**20  # bytes by which the heap grows; only what is touched costs memory


def is_glibc() -> bool:
    """Whether the C library is the one whose switches these are."""
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc"


@contextmanager
def kept(wanted: bool = True) -> Generator[bool]:
    """Keep freed memory for the next step while the block lasts, also in processes forked in it.

    Yields whether that was possible. No result depends on it: torch aligns its tensors itself.
    """
    if not (wanted and is_glibc()):
        yield False
        return
    libc = ctypes.CDLL(None)
    done = [libc.mallopt(M_MMAP_MAX, 0), libc.mallopt(M_TRIM_THRESHOLD, NEVER), libc.mallopt(M_TOP_PAD, STEP)]
    try:
        yield all(done)
    finally:
        for option, usual in ((M_MMAP_MAX, 65536), (M_TRIM_THRESHOLD, 128 * 1024), (M_TOP_PAD, 128 * 1024)):
            libc.mallopt(option, usual)
        libc.malloc_trim(0)
