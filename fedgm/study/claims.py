"""Claims C1-C8 and what the paper also says, part by part as in docs/claims.md.

Lines are named by their key in the experiment's yaml; ``experiment/key`` is a line of another figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fedgm.errors import require
from fedgm.results.judged_run import TEST, TRAIN, first_quarter, last_quarter, settled_stage_1, stage, whole
from fedgm.study.claim_parts import Better, Divergence, MoreStable, Part, SmallGap, Stretch, judge_all
from fedgm.study.verdict import Evidence, PartResult, Verdict, together


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
        results = judge_all(self.parts, evidence)
        return together(results), results


C1 = Claim(
    "C1",
    "FedGM beats FedAvgM and FedAvg, in training and test",
    tuple(Better("fedgm", other, split) for other in ("fedavgm", "fedavg") for split in (TRAIN, TEST)),
    budgets=(("fedgm", "fedavg"), ("fedavgm", "fedavg")),
)
C2 = Claim(
    "C2",
    "FedAvgM is faster than FedAvg, and only marginally better in test",
    (
        Better("fedavgm", "fedavg", TRAIN, whole, "over all rounds"),
        SmallGap("fedavgm", "fedavg", not_worse=True),
    ),
    budgets=(("fedavgm", "fedavg"),),
)


def _steadier(number: int) -> MoreStable:
    """Stage ``number`` of the multistage runs than stage 1, also with the first third of stage 1 left out."""
    later, first = Stretch("multistage", stage(number), f"stage {number}"), Stretch("multistage", stage(1))
    settled = Stretch("multistage", settled_stage_1)
    beside = MoreStable(later, settled, least=3)
    named = Stretch("multistage", first.window, "stage 1")
    return MoreStable(later, named, least=5, beside=(("with the first third of stage 1 left out", beside),))


C3 = Claim(
    "C3",
    "Multistage beats every constant eta; stage 1 fluctuates, later stages are stable",
    (*(Better("multistage", f"eta_{eta}") for eta in ("2", "1", "05")), _steadier(2), _steadier(3)),
)
C4 = Claim(
    "C4",
    "FedAvg is unstable at eta 2 and divergent at 3; FedGM converges at 5",
    (
        Divergence("fedavg_eta/eta_3", divergent=True),
        Divergence("fedgm_eta/eta_5", divergent=False),
        MoreStable(Stretch("fedavg_eta/eta_1"), Stretch("fedavg_eta/eta_2"), b_divergent_holds=True),
    ),
    figures=("fedavg_eta", "fedgm_eta"),
)
_LATE_1, _LATE_5 = (Stretch(line, last_quarter, "last quarter") for line in ("eta_1", "eta_5"))
C5 = Claim(
    "C5",
    "eta 5 is faster early, eta 1 is more stable late",
    (
        Better("eta_5", "eta_1", TRAIN, first_quarter, "over the first quarter"),
        MoreStable(_LATE_1, _LATE_5, beside=(("", MoreStable(_LATE_1, _LATE_5, TRAIN)),)),
    ),
)


def _autonomous(name: str, reading: str, where: str) -> Claim:
    """C6 and C7 under one reading of the simulation."""
    fedgm, fedavg = f"fedgm_{reading}", f"fedavg_{reading}"
    return Claim(
        f"{name} ({reading})",
        f"Autonomous FedGM beats Autonomous FedAvg, with a small gap to ideal FedGM{where}",
        (Better(fedgm, fedavg), SmallGap("ideal", fedgm)),
        budgets=((fedgm, fedavg),),
    )


C8 = Claim(
    "C8",
    "FedGM beats FedAvg at alpha .3 and .5",
    (Better("fedgm_03", "fedavg_03"), Better("fedgm_05", "fedavg_05")),
    budgets=(("fedgm_05", "fedavg_05"),),
)
FASTER = Claim(
    "also said",
    "FedGM at eta 5 is faster than FedAvg",
    (Better("eta_5", "fedavg", TRAIN, whole, "over all rounds"),),
)
CLAIMS: dict[str, tuple[Claim, ...]] = {
    "C1": (C1,),
    "C2": (C2,),
    "C3": (C3,),
    "C4": (C4,),
    "C5": (C5,),
    "C6": (_autonomous("C6", "start", ""), _autonomous("C6", "current", "")),
    "C7": (_autonomous("C7", "start", ", delay 10"), _autonomous("C7", "current", ", delay 10")),
    "C8": (C8,),
    "faster": (FASTER,),
}


def claims(names: Sequence[str]) -> list[Claim]:
    """The claims that a figure judges; C6 and C7 are two each, one for each reading."""
    for name in names:
        require(name in CLAIMS, "figure.claims", name, ", ".join(CLAIMS), "figure.claims=[C1]")
    return [claim for name in names for claim in CLAIMS[name]]
