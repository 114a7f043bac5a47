"""Whether a change that should move no result moves none: 34 tiny commands, their models and rows.

    python -m benchmarks.same_bytes --write before.json     # on the commit before
    python -m benchmarks.same_bytes --against before.json   # on the commit after
    python -m benchmarks.same_bytes --against before.json profile.noise=0.8   # what was implied before

Of every command it keeps the SHA-256 of model.safetensors and one of every column of the
rows, `time/*` apart, so that a column that was added is told from one that changed.
"""

import argparse
import hashlib
import json
import tempfile
import warnings
from pathlib import Path

from fedgm.config import compose
from fedgm.running.start import execute
from fedgm.screen import Screen

SMALL = [
    "profile=tiny", "data.train_samples=200", "data.test_samples=30", "eval.train_samples=30",
    "clients.count=10", "clients.per_round=3", "local.epochs=2", "local.batch_size=10", "eval.batch_size=10",
    "rounds=4", "track.mode=disabled", "trainer.workers=1",
]  # fmt: skip
COMMANDS = [
    "algorithm=fedgm",
    "algorithm=fedavg",
    "algorithm=fedavgm",
    "algorithm=fednag",
    "algorithm=fedadam",
    "algorithm=diloco local.optimizer=adamw local.weight_decay=0.1",
    "algorithm=qhadam",
    "algorithm=nsgdm",
    "schedule=multistage rounds=7 eval.every=3",
    "schedule=cosine",
    "schedule=stages rounds=7",
    "participation=autonomous",
    "participation=autonomous participation/sampler=biased trainer.workers=2 trainer.precision=64-true",
    "participation=autonomous participation/sampler=bernoulli participation.epochs=[0,2]",
    "participation=autonomous_current stop_after=2",
    "participation=event",
    "participation=fedasync algorithm=fedavg",
    "participation=fedbuff trainer.workers=2 stop_after=3",
    "participation=anarchic",
    "participation=fednova",
    "client=fedprox",
    "client=scaffold",
    "client=scaffold trainer.workers=2 stop_after=2 algorithm=fedavgm",
    "client=mifa stop_after=1",
    "profile.norm=batch trainer.workers=2",
    "local.momentum=0.5 local.clip=0.5 clients.weights=samples data.augment=crop_flip",
    "data.partition=virtual local.unit=steps clients.nonfinite=drop",
    "model=vgg11 schedule=multistage rounds=7 stop_after=3 local.lr=0.05",
    "upload=topk stop_after=2",
    "upload=qsgd trainer.workers=2",
    "upload=qsparse",
    "data=text data.path=TEXT local.unit=steps",
    "algorithm=gpa eval.point=average",
    "algorithm=fedexp client=fedprox",
]
TEXT = "What is said once is said again, and what is said again is read. " * 200


def record(command: str, more: list[str], home: Path) -> dict[str, object]:
    """What a command leaves, with ``more`` words; one with ``stop_after`` is then continued to its end."""
    (home / "text.txt").write_text(TEXT)
    images = ("data.train_samples", "eval.train_samples")
    small = [word for word in SMALL if "data=text" not in command or not word.startswith(images)]
    given = command.replace("TEXT", str(home / "text.txt")).split()
    words = [*small, *more, *given, f"output_dir={home}"]
    result = execute(compose(words), words, Screen(quiet=True))
    if "stop_after" in command:
        words = [word for word in words if not word.startswith("stop_after")]
        result = execute(compose(words), words, Screen(quiet=True))
    assert result.status == "finished", (command, result.summary)
    rows = [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]
    keys = {k for row in rows for k in row if not k.startswith("time/") and k != "samples_per_s"}
    return {
        "model": hashlib.sha256((result.folder / "model.safetensors").read_bytes()).hexdigest(),
        "columns": {
            k: hashlib.sha256(json.dumps([r.get(k) for r in rows]).encode()).hexdigest() for k in sorted(keys)
        },
    }


def differences(before: dict, now: dict) -> list[str]:
    """Everything that is not as it was; columns that were added are no difference."""
    keys = [key for key in ("model",) if before[key] != now[key]]
    return keys + [key for key, value in before["columns"].items() if now["columns"].get(key) != value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("words", nargs="*", help="added to every command")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    records = {}
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as home:
            records[command] = record(command, asked.words, Path(home))
    if asked.write:
        asked.write.write_text(json.dumps(records, indent=1))
    if asked.against:
        before = json.loads(asked.against.read_text())
        changed = {c: moved for c in COMMANDS if (moved := differences(before[c], records[c]))}
        for command, moved in changed.items():
            print(f"differs  {command}: {', '.join(moved)}")
        added = sorted({k for c in COMMANDS for k in set(records[c]["columns"]) - set(before[c]["columns"])})
        print(f"{len(COMMANDS) - len(changed)} of {len(COMMANDS)} commands equal; columns added: {added}")
        raise SystemExit(bool(changed))


if __name__ == "__main__":
    main()
