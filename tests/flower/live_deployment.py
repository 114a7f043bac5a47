"""Four nodes, of which one is ten times slower and one is killed twice: ``live_deployment.py HOME WORDS``.

A script, because it plays the part of the command: it starts the processes, kills some, and ends them all.
"""

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from fedgm.flower.loopback import Loopback, loopback

SLOW = "data.source._target_=tests.flower.slow_source.slow"  # the same data, later


def kill_twice(deployment: Loopback, output: Path, rounds: int, kills: list[int]) -> None:
    """kill -9 of node 1, after a quarter of the rounds and after half of them."""
    for least in (rounds // 4, rounds // 2):
        while sum(path.read_text().count("\n") for path in output.glob("*/*/seed=0/metrics.jsonl")) < least:
            time.sleep(0.2)
        pid = deployment.pids["node-1"]
        os.kill(pid, signal.SIGKILL)
        kills.append(pid)


def main(home: Path, words: Sequence[str]) -> None:
    given = dict(word.split("=", 1) for word in words)
    output, rounds = Path(given["output_dir"]), int(given["rounds"])
    settings = {"words": shlex.join(words), "log": str(home / "server.log"), "wait": 300.0, "timeout": 3600.0}
    kills: list[int] = []
    with loopback(home, nodes=4, tls=False) as deployment:
        deployment.words[3] = SLOW
        threading.Thread(target=kill_twice, args=(deployment, output, rounds, kills), daemon=True).start()
        deployment.start()
        code = deployment.run({**settings, "min-replies": 0}, print)
    print(f"node 1 was killed {len(kills)} times, and started {deployment.starts['node-1']} times")
    sys.exit(code or (deployment.starts["node-1"] != 3))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
