"""Memory that stays: page faults fall, and nothing happens where it is switched off."""

import subprocess
import sys

import pytest

from fedgm.process.memory import is_glibc

PROGRAM = """
import resource, sys
import torch
from fedgm.process.memory import kept
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        blocks = [torch.zeros(1_500_000) for _ in range(4)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
with kept(sys.argv[1] == "on") as done:
    faults()
    print(done, faults())
"""


def taken(switch: str) -> tuple[str, int]:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, switch], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    done, count = said.split()
    return done, int(count)


@pytest.mark.skipif(not is_glibc(), reason="the switches are glibc's")
def test_freed_blocks_are_not_faulted_in_again():
    # 200 blocks of 6 MB are 1,465 pages each: 290,000 faults where every block is mapped afresh.
    done, faults = taken("on")
    assert done == "True"
    assert faults < 5_000


def test_the_key_switches_it_off():
    assert taken("off")[0] == "False"
