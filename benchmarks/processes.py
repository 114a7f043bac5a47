"""What a process and all that it has started hold in memory."""

from pathlib import Path


def descendants(pid: int) -> list[int]:
    """A process, its children, their children and so on, whichever thread started them."""
    pids = [pid]
    for parent in pids:  # grows while it is read
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                pids += [int(child) for child in children.read_text().split()]
            except OSError:  # it has just ended
                continue
    return pids


def pss(pid: int) -> float:
    """Megabytes of a process, pages that several share counted in parts."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
