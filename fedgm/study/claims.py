"""Claims C1-C9 and what the paper also says, part by part as in docs/claims.md, version 2.

Lines are named by their key in the experiment's yaml; ``experiment/key`` is a line of another figure. A claim
of your own is a :class:`Claim` in any package: ``figure.claims: [C1, my_package.claims.MINE]``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from fedgm.errors import ClashError, require
from fedgm.results.run import first_quarter, last_quarter, settled_stage_1, stage, whole
from fedgm.study.claim_parts import Better, Lost, MoreStable, Part, SmallGap, Stretch
from fedgm.study.verdict import Evidence, PartResult, Verdict, together
from fedgm.tasks.metric import TEST, TRAIN

ETAS = ("2", "1", "05")  # of the single stages that multistage is compared with


@dataclass(frozen=True)
class Claim:
    """What the paper says, and the parts that decide it.

    ``budgets`` are winners with their baselines; ``figures`` are experiments whose lines the parts name.
    """

    name: str
    text: str
    parts: tuple[Part, ...]
    budgets: tuple[tuple[str, str], ...] = ()
    figures: tuple[str, ...] = ()

    def judge(self, evidence: Evidence) -> tuple[Verdict, list[PartResult]]:
        """All parts, and what they come to together."""
        results = [part.judge(evidence) for part in self.parts]
        return together([result.verdict for result in results]), results


C1 = Claim(
    "C1",
    "FedGM beats FedAvgM and FedAvg, in training and test",
    tuple(Better("fedgm", other, split) for other in ("fedavgm", "fedavg") for split in (TRAIN, TEST)),
    budgets=(("fedgm", "fedavg"), ("fedavgm", "fedavg")),
)
C2 = Claim(
    "C2",
    "FedAvgM is faster than FedAvg",
    (Better("fedavgm", "fedavg", TRAIN, whole, "over all rounds"),),
    budgets=(("fedavgm", "fedavg"),),
)
C2_MARGIN = Claim(
    "C2, margin",
    "FedAvgM is only marginally better than FedAvg in test",
    (SmallGap("fedavgm", "fedavg", not_worse=True),),
)


def _over_etas(name: str, text: str, *splits: str) -> Claim:
    """Multistage over each constant eta."""
    return Claim(name, text, tuple(Better("multistage", f"eta_{e}", split) for split in splits for e in ETAS))


def _steadier(number: int) -> MoreStable:
    """Stage ``number`` of the multistage runs than stage 1, also with the first third of stage 1 left out."""
    later = Stretch("multistage", stage(number), f"stage {number}")
    settled = MoreStable(later, Stretch("multistage", settled_stage_1), least=3)
    beside = (("with the first third of stage 1 left out", settled),)
    return MoreStable(later, Stretch("multistage", stage(1), "stage 1"), least=5, beside=beside)


C3_TRAINING = _over_etas("C3 (training)", "Multistage beats every constant eta in training", TRAIN)
C3_TEST = _over_etas("C3 (test)", "Multistage beats every constant eta in test", TEST)
C3_STAGES = Claim("C3 (stages)", "Stage 1 fluctuates, later stages are stable", (_steadier(2), _steadier(3)))
C4 = Claim(
    "C4",
    "FedAvg is unstable at eta 2 and divergent at 3; FedGM converges at 5",
    (
        Lost("fedavg_eta/eta_3", expected=True),
        Lost("fedgm_eta/eta_5", expected=False),
        MoreStable(Stretch("fedavg_eta/eta_1"), Stretch("fedavg_eta/eta_2"), b_lost_holds=True),
    ),
    figures=("fedavg_eta", "fedgm_eta"),
)
C5_EARLY = Claim(
    "C5 (early)",
    "eta 5 is faster in the first quarter",
    (Better("eta_5", "eta_1", TRAIN, first_quarter, "over the first quarter"),),
)


def _late(name: str, text: str, split: str) -> Claim:
    """Eta 1 is steadier than eta 5 in the last quarter."""
    a, b = (Stretch(line, last_quarter, "last quarter") for line in ("eta_1", "eta_5"))
    return Claim(name, text, (MoreStable(a, b, split),))


C5_TRAINING = _late("C5 (late, training)", "eta 1 is more stable in the last quarter, in training", TRAIN)
C5_TEST = _late("C5 (late, test)", "eta 1 is more stable in the last quarter, in test", TEST)


def stale(name: str, reading: str, ideal: str = "ideal", where: str = "") -> tuple[Claim, Claim]:
    """C6 and C7 under one reading of the simulation; ``ideal`` is the line of ideal clients."""
    fedgm, fedavg = f"fedgm_{reading}", f"fedavg_{reading}"
    beats = Claim(
        f"{name} ({reading})",
        f"Autonomous FedGM beats Autonomous FedAvg{where}",
        (Better(fedgm, fedavg),),
        budgets=((fedgm, fedavg),),
    )
    gap = f"Autonomous FedGM has a small gap to ideal FedGM{where}"
    return beats, Claim(f"{name} gap ({reading})", gap, (SmallGap(ideal, fedgm),))


# Of conf/experiment/long.yaml, whose line of ideal clients is called fedgm.
C6_LONG = (*stale("C6", "current", ideal="fedgm"), *stale("C6", "literal", ideal="fedgm"))
C8 = Claim(
    "C8",
    "FedGM beats FedAvg at alpha .3 and .5",
    (Better("fedgm_03", "fedavg_03"), Better("fedgm_05", "fedavg_05")),
    budgets=(("fedgm_05", "fedavg_05"),),
)
C9 = _over_etas(
    "C9",
    "Multistage FedAvg converges much better than single-stage FedAvg, in training and test",
    TRAIN,
    TEST,
)
FASTER = Claim(
    "also said",
    "FedGM at eta 5 is faster than FedAvg",
    (Better("eta_5", "fedavg", TRAIN, whole, "over all rounds"),),
)
DELAY_10 = ", delay 10"
CLAIMS: dict[str, tuple[Claim, ...]] = {
    "C1": (C1,),
    "C2": (C2, C2_MARGIN),
    "C3": (C3_TRAINING, C3_TEST, C3_STAGES),
    "C4": (C4,),
    "C5": (C5_EARLY, C5_TRAINING, C5_TEST),
    **{f"C6 ({reading})": stale("C6", reading) for reading in ("literal", "start", "current")},
    **{f"C7 ({reading})": stale("C7", reading, where=DELAY_10) for reading in ("start", "current")},
    "C8": (C8,),
    "C9": (C9,),
    "faster": (FASTER,),
}


def claims(entries: Sequence[str | Mapping[str, Any]]) -> list[Claim]:
    """The claims that a figure judges: names of ours, dotted paths, or a ``_target_`` with its arguments."""
    return [claim for entry in entries for claim in _claims(entry)]


def _claims(entry: str | Mapping[str, Any]) -> Sequence[Claim]:
    if isinstance(entry, str) and "." not in entry:
        allowed = f"{', '.join(CLAIMS)}, or the dotted path of a claim"
        require(entry in CLAIMS, "figure.claims", entry, allowed, "figure.claims=[C1]")
        return CLAIMS[entry]
    path = entry if isinstance(entry, str) else str(entry.get("_target_"))
    module, _, name = path.rpartition(".")
    try:
        made: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        why = f"nothing can be imported from there ({error})"
        raise ClashError("figure.claims", path, why, "my_package.claims.MINE") from None
    if not isinstance(entry, str):
        made = made(**{key: value for key, value in entry.items() if key != "_target_"})
    many: Sequence[Any] = made if isinstance(made, tuple | list) else [made]
    if not many or not all(isinstance(claim, Claim) for claim in many):
        raise ClashError("figure.claims", path, "not a fedgm.study.claims.Claim", "my_package.claims.MINE")
    return many
