"""Parts by ``_target_``: the target's own signature is the schema."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional

import pytest

from fedgm.config.parts import build, check_part, fits, in_words
from fedgm.errors import ConfigError

HERE = f"{__name__}."


@dataclass(frozen=True)
class Part:
    rate: float
    count: int
    on: bool = False
    kind: Literal["a", "b"] = "a"
    etas: Sequence[float] = ()
    limit: int | None = None
    label: str = ""


def function(rate: float, num_classes: int) -> tuple[float, int]:
    return rate, num_classes


def open_ended(rate: float, **kwargs: Any) -> dict[str, Any]:
    return {"rate": rate, **kwargs}


def raising(rate: float) -> None:
    raise ConfigError("part.rate", rate, "nothing", "something else")


def unreadable(rate: "Nowhere") -> Any:  # noqa: F821  # pyright: ignore
    return rate


def node(target: str = "Part", **values: Any) -> dict[str, Any]:
    return {"_target_": HERE + target, "rate": 0.5, "count": 3, **values}


def refusal(target: dict[str, Any], **given: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        check_part(target, "part", **given)
    return caught.value


def test_a_part_is_built_from_its_yaml():
    assert build(node(etas=[2, 1.0], limit=7), "part") == Part(0.5, 3, etas=[2, 1.0], limit=7)


def test_name_and_layout_belong_to_the_group_and_not_to_the_target():
    assert build(node(name="mine", channels_last=True), "part") == Part(0.5, 3)


def test_extra_arguments_count_as_given_and_are_passed_as_they_are():
    values = {"_target_": HERE + "function", "rate": 1}
    assert build(values, "part", num_classes=10) == (1, 10)
    assert refusal(values).key == "part.num_classes"
    marker = object()
    assert build({"_target_": HERE + "open_ended", "rate": 1}, "part", data=marker)["data"] is marker


@pytest.mark.parametrize("name", ["no.such.module", HERE + "Nothing", "fedgm.server.Nope", None])
def test_an_unknown_target_is_named(name):
    error = refusal({"_target_": name})
    assert (error.key, error.value) == ("part._target_", name)
    assert "importable" in error.allowed
    assert "\n" not in error.allowed


def test_an_unknown_parameter_is_named_with_those_that_exist():
    error = refusal(node(rat=1))
    assert (error.key, error.value, error.hint) == ("part.rat", 1, "part.rate=1")
    assert "takes rate, count, on, kind, etas, limit, label" in error.allowed


def test_a_target_with_keywords_takes_any_parameter():
    assert build({"_target_": HERE + "open_ended", "rate": 1, "more": 2}, "part") == {"rate": 1, "more": 2}


def test_a_missing_parameter_is_named_with_what_to_type():
    error = refusal({"_target_": HERE + "Part", "rate": 0.5})
    assert (error.key, error.value, error.hint) == ("part.count", "(missing)", "+part.count=1")
    assert str(error) == f"part.count=(missing): {HERE}Part needs it. Try +part.count=1"


@pytest.mark.parametrize(
    ("values", "allowed", "hint"),
    [
        ({"rate": "high"}, "a number", "part.rate=0.9"),
        ({"rate": None}, "a number", "part.rate=0.9"),
        ({"rate": True}, "a number", "part.rate=0.9"),
        ({"rate": [0.5]}, "a number", "part.rate=0.9"),
        ({"count": 1.5}, "a whole number", "part.count=1"),
        ({"count": False}, "a whole number", "part.count=1"),
        ({"on": 1}, "true or false", "part.on=true"),
        ({"on": "yes"}, "true or false", "part.on=true"),
        ({"kind": "c"}, "a or b", "part.kind=a"),
        ({"etas": 2.0}, "a list, each entry a number", "part.etas=[0.9]"),
        ({"etas": [2.0, "x"]}, "a list, each entry a number", "part.etas=[0.9]"),
        ({"etas": "2,1"}, "a list, each entry a number", "part.etas=[0.9]"),
        ({"limit": 1.5}, "a whole number or null", "part.limit=1"),
        ({"label": 3}, "a word", "part.label=name"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(values, allowed, hint):
    error = refusal(node(**values))
    (key, value), *_ = values.items()
    assert (error.key, error.value, error.allowed, error.hint) == (f"part.{key}", value, allowed, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, float), (1.5, float), (7, int), (True, bool), ("a", Literal["a"]), ([], Sequence[float]),
        ((1, 2), Sequence[int]), ([1.0], list[float]), (None, int | None), (3, Optional[int]),  # noqa: UP045
        ("x", str),
        (object(), dict[str, int]), ("anything", Any), ([[1], [2]], Sequence[Sequence[int]]),
    ],
)  # fmt: skip
def test_values_that_fit(value, hint):
    assert fits(value, hint)


def test_hints_in_words():
    assert in_words(Sequence[int] | None) == "a list, each entry a whole number or null"
    assert in_words(Literal["batch", "group"]) == "batch or group"


def test_an_error_of_the_target_itself_comes_through_unwrapped():
    with pytest.raises(ConfigError, match=r"^part\.rate=1: expected nothing\. Try something else$"):
        build({"_target_": HERE + "raising", "rate": 1}, "part")


def test_hints_that_cannot_be_read_leave_the_check_to_the_target():
    assert build({"_target_": HERE + "unreadable", "rate": "x"}, "part") == "x"


def test_optimisers_of_torch_are_parts():
    import torch

    weight = torch.nn.Parameter(torch.zeros(1))
    sgd = build({"_target_": "torch.optim.SGD", "lr": 0.1}, "local.optimizers.sgd", params=[weight])
    assert sgd.param_groups[0]["params"][0] is weight
    error = refusal({"_target_": "torch.optim.SGD", "lrr": 0.1}, given={"params"})
    assert (error.key, "lr, momentum" in error.allowed) == ("part.lrr", True)


@dataclass(frozen=True)
class Around:
    inner: Any
    seed: int


@pytest.mark.parametrize(("target", "got"), [("unreadable", 0.5), ("open_ended", {"rate": 0.5, "seed": 3})])
def test_what_is_only_passed_on_is_left_out_where_nobody_takes_it(target, got):
    inner = {"_target_": HERE + target, "rate": 0.5, "seed": 3}
    values = {"_target_": HERE + "Around", "seed": 3, "inner": inner}
    assert build(values, "part") == Around(got, 3)


def test_a_value_of_the_inner_parts_own_is_not_left_out():
    inner = {"_target_": HERE + "unreadable", "rate": 0.5, "seed": 4}
    with pytest.raises(ConfigError) as caught:
        build({"_target_": HERE + "Around", "seed": 3, "inner": inner}, "part")
    assert caught.value.key == "part.inner.seed"
