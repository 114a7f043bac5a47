"""Memory that stays: page faults fall, and nothing happens where it is switched off."""

import subprocess
import sys

import pytest

from fedgm.running.memory import is_glibc
from tests.waiting import PATIENCE

PROGRAM = """
import resource, sys
import torch
from fedgm.running.memory import kept
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.zeros(10_000_000)  # 40 MB, above glibc's largest threshold: mapped afresh
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
with kept(sys.argv[1] == "on") as done:
    faults()
    print(done, faults())
"""


def taken(switch: str) -> tuple[str, int]:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, switch], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    done, count = said.split()
    return done, int(count)


@pytest.mark.slow
@pytest.mark.skipif(not is_glibc(), reason="the switches are glibc's")
def test_freed_blocks_are_not_faulted_in_again():
    # 20 blocks of 9,766 pages: up to 195,000 faults. A busy system takes a kept page back now and then.
    done, faults = taken("on")
    off, without = taken("off")
    assert (done, off) == ("True", "False")
    assert faults < without / 3
