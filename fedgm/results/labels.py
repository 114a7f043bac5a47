"""Runs in words: ``FedGM, eta 2`` where a configuration has ``algorithm.name: fedgm, algorithm.eta: 2.0``."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fedgm.config.identity import IMPLIED, NOT_IDENTITY, number
from fedgm.plain import plain
from fedgm.results.run import Run

NAMES = {
    "fedgm": "FedGM", "fedavg": "FedAvg", "fedsgd": "FedSGD", "fedavgm": "FedAvgM", "fednag": "FedNAG",
    "fedavgm_summed": "FedAvgM (summed)", "fedmom": "FedMom", "snv": "SNV", "triple": "Triple Momentum",
    "robust": "Robust Momentum", "pid": "PID", "pid_opt": "PID optimiser", "accsgd": "AccSGD",
    "slowmo": "SlowMo", "diloco": "DiLoCo", "muloco": "MuLoCo", "fedadagrad": "FedAdagrad",
    "fedadam": "FedAdam", "fedyogi": "FedYogi", "fedams": "FedAMS", "fedamsgrad": "FedAMSGrad",
    "qhadam": "QHAdam",
    "nsgdm": "NSGD-M", "gpa": "GPA", "schedule_free": "Schedule-Free", "ema_nesterov": "EMA-Nesterov",
    "fedacg": "FedACG", "fedexp": "FedExP", "fedexp_gm": "FedExP x FedGM", "snoo": "SNOO",
    "fetchsgd": "FetchSGD", "true_topk": "True top-k", "amplified": "Amplified FedAvg",
    "delayed_nesterov": "Delayed Nesterov", "momentum_approximation": "Momentum approximation",
}  # fmt: skip
# Always said of the server rule, where it has them: what the paper's figures differ in.
RATES = ("algorithm.eta", "algorithm.beta", "algorithm.nu")
PLAIN = {
    "schedule.name": "constant", "participation.name": "ideal", "client.name": "plain", "sending.name": "all",
    "privacy.name": "none", "work.name": "constant",
}  # fmt: skip
METHOD = ("algorithm.", "schedule.")
WORD, WHOLE = 60, 400  # characters of a value, and of a label
QUIET = ("_target_", "version", "channels_last", "nu_is_beta")


def algorithm(run: Run) -> str:
    """The server rule's name as papers print it."""
    name = plain(run.facts.get("algorithm") or "?", WORD)
    return NAMES.get(name, name)


def differing(runs: Sequence[Run]) -> list[str]:
    """Keys that tell the runs apart: not seeds, nor what cannot change a result, nor what was implied."""
    keys = list(dict.fromkeys(key for run in runs for key in run.config))
    return [key for key in keys if _counts(key) and _differs(_values(runs, key))]


def _differs(values: list[Any]) -> bool:
    """Whether they are not all shown alike; the same value is not put into words again."""
    different = {(type(value), repr(value)): value for value in values}.values()
    return len({_text(value, sys.maxsize) for value in different}) > 1


def _values(runs: Sequence[Run], key: str) -> list[Any]:
    """A key's values; a run that is older than the key has what was implied before."""
    return [run.config.get(key, IMPLIED.get(key)) for run in runs]


def telling(runs: Sequence[Run]) -> list[str]:
    """Of the keys in which runs differ all of the method, and of the others those that part settings."""
    kept: list[str] = []
    settings = [0] * len(runs)
    for key in sorted(differing(runs), key=lambda key: not key.startswith(METHOD)):
        numbers: dict[tuple[int, str], int] = {}
        pairs = zip(settings, map(repr, _values(runs, key)), strict=True)
        parted = [numbers.setdefault(pair, len(numbers)) for pair in pairs]
        if key.startswith(METHOD) or len(numbers) > len(set(settings)):
            kept.append(key)
            settings = parted
    return kept


def _counts(key: str) -> bool:
    """Whether a key may stand in a label."""
    parts = key.split(".")
    left_out = any(key == name or key.startswith(f"{name}.") for name in NOT_IDENTITY)
    return not left_out and parts[-1] not in (*QUIET, "seed") and key != "algorithm.name"


def label(run: Run, keys: Sequence[str]) -> str:
    """The algorithm and the values of ``keys``, those that it has."""
    words = [algorithm(run)]
    for key in keys:
        if run.config.get(key) is None or _implied(run, key):
            continue
        group, _, last = key.rpartition(".")
        words.append(
            _text(run.config[key]) if last == "name" else f"{_word(group, last)} {_text(run.config[key])}"
        )
    return plain(", ".join(words), WHOLE)


def _implied(run: Run, key: str) -> bool:
    """FedAvg has no momentum to speak of, FedAvgM no nu, stages their own etas; nor is a plain part said."""
    staged = key == "algorithm.eta" and run.config.get("schedule.etas")
    if staged or PLAIN.get(key) == run.config.get(key):
        return True
    without = {
        "algorithm.beta": ("fedavg", "fedsgd"),
        "algorithm.nu": ("fedavg", "fedsgd", "fedavgm", "fednag"),
    }
    return run.facts.get("algorithm") in without.get(key, ())


def _word(group: str, last: str) -> str:
    """``profile`` for profile.name, ``local lr`` where the last part alone says little."""
    part = group.rpartition(".")[2]
    return f"{part} {last}" if last in ("lr", "momentum", "every", "count", "batch_size", "epochs") else last


def _text(value: Any, most: int = WORD) -> str:
    if isinstance(value, list):
        return " then ".join(_text(entry, most) for entry in value)
    value = number(value)
    return f"{value:.4g}" if isinstance(value, float) else plain(value, most)


def in_turn(values: Sequence[float]) -> str:
    """What a rate is in one stage after the other.

    >>> in_turn([0.9, 36 / 38]), in_turn([2.0, 2.0])
    ('0.9 then 0.9474', '2')
    """
    texts = [f"{value:.4g}" for value in values]
    return " then ".join(texts) if len(set(texts)) > 1 else texts[0]


def work(configs: Sequence[Mapping[str, Any]]) -> str:
    """What is trained on what, with whom: that in which the runs agree, and every network and data set.

    ``resnet-8 on 10,000 samples of cifar10, 16x16, alpha 0.5, 5 of 100 clients, batch 10``
    """
    said = [_work(config) for config in configs]
    what = " and ".join(dict.fromkeys(words[0] for words in said))
    return plain(", ".join([what, *(word for word in said[0][1:] if all(word in words for words in said))]))


def _work(config: Mapping[str, Any]) -> list[str]:
    """Network and data, resolution, Dirichlet's alpha, cohort, batch: those that a configuration has."""
    whole = ("model.depth", "data.resolution", "data.train_samples", "clients.per_round", "clients.count")
    depth, side, samples, cohort, clients = (
        value if type(value := config.get(key)) is int else None for key in whole
    )
    net, data = (plain(config.get(key, "?"), WORD) for key in ("model.name", "data.name"))
    net, data = f"{net}-{depth}" if depth else net, f"{samples:,} samples of {data}" if samples else data
    alpha = config.get("data.alpha") if config.get("data.partition") == "dirichlet" else None
    batch = config.get("local.batch_size")
    words = [
        f"{net} on {data}",
        f"{side}x{side}" if side else "",
        f"alpha {_text(alpha)}" if alpha and str(alpha) != "inf" else "",
    ]
    words += [f"{cohort} of {clients} clients" if cohort and clients else ""]
    words += [f"batch {_text(batch)}" if batch else ""]
    return [word for word in words if word]


def labels(groups: Sequence[Sequence[Run]]) -> list[str]:
    """A name for each line (its runs differ in the seed alone); equal names get the start of the hash."""
    firsts = [group[0] for group in groups]
    keys = telling(firsts)
    named = [label(run, keys) for run in firsts]
    return [
        name if named.count(name) == 1 else f"{name} [{run.key[0][:6]}]"
        for name, run in zip(named, firsts, strict=True)
    ]


def lines(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs by line: seeds of one configuration together, each under its name."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.key[0], []).append(run)
    ordered = [sorted(group, key=lambda run: run.facts["seed"]) for group in groups.values()]
    return dict(zip(labels(ordered), ordered, strict=True))
