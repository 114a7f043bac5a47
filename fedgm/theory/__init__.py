"""The paper's theorems as a diagnostic: conditions, bounds, rates, and a quadratic to hold them against."""

from fedgm.theory.bounds import corollary, diagnose, theorem1, theorem2, theorem3
from fedgm.theory.estimate import Curvature, Estimate, Spread, gradient_spread, hessian_norm, measure
from fedgm.theory.report import render, verdict
from fedgm.theory.scope import Training, require_covered
from fedgm.theory.setting import (
    Problem,
    Setting,
    Symbols,
    TheoryStage,
    Work,
    arrives_uniformly,
    local_work,
    symbols,
    theory_stages,
)
from fedgm.theory.statement import Bound, Condition, Rate, Report, Variant, rate

__all__ = [
    "Bound",
    "Condition",
    "Curvature",
    "Estimate",
    "Problem",
    "Rate",
    "Report",
    "Setting",
    "Spread",
    "Symbols",
    "TheoryStage",
    "Training",
    "Variant",
    "Work",
    "arrives_uniformly",
    "corollary",
    "diagnose",
    "gradient_spread",
    "hessian_norm",
    "local_work",
    "measure",
    "rate",
    "render",
    "require_covered",
    "symbols",
    "theorem1",
    "theorem2",
    "theorem3",
    "theory_stages",
    "verdict",
]
